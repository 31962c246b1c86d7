//! The name of what a request is passed on to: `name`, `name:port` or `scheme:name:port`.

/// How the other side is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// The port, where none is said.
    pub(super) fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A name with all that can be said along with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProxyName<'a> {
    pub(super) scheme: Scheme,
    pub(super) name: &'a str,
    /// A number or a name; empty if nothing is said.
    pub(super) port: &'a str,
}

impl<'a> ProxyName<'a> {
    /// Reads a name; `None` if it is none.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts[..] {
            [name] => ("", name, ""),
            [name, port] => ("", name, port),
            [scheme, name, port] => (scheme, name, port),
            _ => return None,
        };
        let scheme = match scheme {
            "" | "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return None,
        };
        (!name.is_empty()).then_some(Self { scheme, name, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_name() {
        let check = |text: &str, expect: Option<(Scheme, &str, &str)>| {
            let found = ProxyName::parse(text).map(|found| (found.scheme, found.name, found.port));
            assert_eq!(found, expect, "{text}");
        };
        check("web", Some((Scheme::Http, "web", "")));
        check("web:80", Some((Scheme::Http, "web", "80")));
        check("web:metrics", Some((Scheme::Http, "web", "metrics")));
        check("https:web:", Some((Scheme::Https, "web", "")));
        check("http:web:8080", Some((Scheme::Http, "web", "8080")));
        check(":web:8080", Some((Scheme::Http, "web", "8080")));
        check("ftp:web:21", None);
        check(":80", None);
        check("", None);
        check("a:b:c:d", None);
    }
}
