//! Links that a proxied server makes, led back through the proxy.

/// What is needed to lead links back.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// The path at which the proxied server begins here: `/api/v1/…/proxy`.
    pub(super) prefix: String,
    /// Host and port of the proxied server.
    pub(super) backend: String,
    /// The host that the client asked; empty if it named none.
    pub(super) asked: String,
}

impl Links {
    /// The link as it works through the proxy; `None` if it stays as it is: because it is relative, or leads elsewhere.
    pub(super) fn led_back(&self, link: &str) -> Option<String> {
        let parts = Parts::split(link);
        let is_here = parts.host.is_empty() || parts.host == self.backend || parts.host == self.asked;
        if !is_here || !parts.path.starts_with('/') {
            return None;
        }
        // Whoever was asked by name is still asked by it; the name of the proxied server means nothing outside.
        let start = if !parts.host.is_empty() && parts.host == self.asked { parts.start } else { "" };
        let prefix = if parts.path.starts_with(&self.prefix) { "" } else { &self.prefix };
        Some(format!("{start}{prefix}{}{}", parts.path, parts.rest))
    }
}

/// A link in its parts.
struct Parts<'a> {
    /// Everything before the path.
    start: &'a str,
    host: &'a str,
    path: &'a str,
    /// Query and fragment, with what they begin with.
    rest: &'a str,
}

impl<'a> Parts<'a> {
    fn split(link: &'a str) -> Self {
        let scheme = link.find(':').filter(|end| is_scheme(&link[..*end])).map_or(0, |colon| colon + 1);
        let host_start = if link[scheme..].starts_with("//") { scheme + 2 } else { scheme };
        let host_end = if host_start == scheme {
            scheme
        } else {
            link[host_start..].find(['/', '?', '#']).map_or(link.len(), |length| host_start + length)
        };
        let path_end = link[host_end..].find(['?', '#']).map_or(link.len(), |length| host_end + length);
        Self {
            start: &link[..host_end],
            host: &link[host_start..host_end],
            path: &link[host_end..path_end],
            rest: &link[path_end..],
        }
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_the_proxied_server_are_led_back() {
        let links = Links { prefix: "/proxy/path".into(), backend: "10.0.0.1:80".into(), asked: "here:8001".into() };
        let check = |link: &str, expect: &str| {
            assert_eq!(links.led_back(link).as_deref().unwrap_or(link), expect, "{link}");
        };
        check("/a/b?c=/d#e", "/proxy/path/a/b?c=/d#e");
        check("/", "/proxy/path/");
        check("/a/", "/proxy/path/a/");
        check("http://10.0.0.1:80/a", "/proxy/path/a");
        check("//10.0.0.1:80/a", "/proxy/path/a");
        check("https://here:8001/a", "https://here:8001/proxy/path/a");
        check("/proxy/path/a", "/proxy/path/a");
        check("http://10.0.0.1:80/proxy/path/a", "/proxy/path/a");
        for stays in ["a/b", "", "#top", "?a=/b", "http://other/a", "//other/a", "http://10.0.0.1:80", "mailto:a@b"] {
            check(stays, stays);
        }
        check("javascript:go('/a')", "javascript:go('/a')");
        check("http://u@10.0.0.1:80/a", "http://u@10.0.0.1:80/a");
    }
}
