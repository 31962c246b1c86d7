//! What a request to the API asks for.

use std::collections::VecDeque;

use http::Method;

/// A request to the API, without its contents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or the method in lowercase for other paths.
    pub verb: &'static str,
    /// The API group, empty for the core group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The plural, empty for a path that is no resource.
    pub resource: String,
    /// `status`, `scale`, … or empty.
    pub subresource: String,
    /// The namespace, if there is one.
    pub namespace: Option<String>,
    /// The name, if there is one; for a list or a watch the one that its field selector asks for.
    pub name: Option<String>,
}

impl Call {
    /// Reads method, path and query.
    pub fn parse(method: &Method, path: &str, query: Option<&str>) -> Self {
        let mut segments: VecDeque<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, version) = match (segments.pop_front(), segments.pop_front(), segments.front()) {
            (Some("api"), Some(version), Some(_)) => (String::new(), version.to_owned()),
            (Some("apis"), Some(group), Some(version)) if segments.len() > 1 => {
                let version = (*version).to_owned();
                segments.pop_front();
                (group.to_owned(), version)
            }
            _ => return Self::other(method),
        };
        // `/namespaces/NAME` alone, `/status` or `/finalize` below it, is the Namespace itself.
        let is_inside = segments.len() > 2 && !matches!(segments[2], "status" | "finalize");
        let namespace = (segments[0] == "namespaces" && is_inside).then(|| {
            segments.pop_front();
            segments.pop_front().map(str::to_owned).unwrap_or_default()
        });
        let resource = segments.pop_front().unwrap_or_default().to_owned();
        let name = segments.pop_front().map(str::to_owned);
        let subresource = Vec::from(segments).join("/");
        let watches = query.is_some_and(|query| query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1"));
        let verb = if watches { "watch" } else { verb(method, name.is_some()) };
        let name = name.or_else(|| selected_name(query.filter(|_| matches!(verb, "list" | "watch"))?));
        Self { verb, group, version, resource, subresource, namespace, name }
    }

    /// Whether the call changes something.
    pub fn is_write(&self) -> bool {
        matches!(self.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    fn other(method: &Method) -> Self {
        Self {
            verb: match *method {
                Method::GET => "get",
                Method::POST => "post",
                Method::PUT => "put",
                Method::DELETE => "delete",
                _ => "other",
            },
            group: String::new(),
            version: String::new(),
            resource: String::new(),
            subresource: String::new(),
            namespace: None,
            name: None,
        }
    }
}

fn verb(method: &Method, named: bool) -> &'static str {
    match (method, named) {
        (&Method::GET, true) => "get",
        (&Method::GET, false) => "list",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        _ => "other",
    }
}

/// The name that the field selector of a query asks for, if that is all it asks for.
fn selected_name(query: &str) -> Option<String> {
    let (_, selector) = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "fieldSelector")?;
    let name = selector.strip_prefix("metadata.name=")?;
    (!name.contains([',', '=', '!'])).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Method, target: &str, expected: &str) {
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let call = Call::parse(&method, path, query);
        let text = format!(
            "{} {}/{} {}/{} {}/{}",
            call.verb,
            call.group,
            call.version,
            call.resource,
            call.subresource,
            call.namespace.unwrap_or_default(),
            call.name.unwrap_or_default()
        );
        assert_eq!(text, expected, "{method} {target}");
    }

    #[test]
    fn paths_name_resources() {
        check(Method::GET, "/api/v1/pods?watch=true&allowWatchBookmarks=true", "watch /v1 pods/ /");
        check(Method::GET, "/api/v1/namespaces/a/pods", "list /v1 pods/ a/");
        check(Method::GET, "/api/v1/namespaces/a/pods/p/log", "get /v1 pods/log a/p");
        check(Method::GET, "/api/v1/namespaces/a", "get /v1 namespaces/ /a");
        check(Method::PUT, "/api/v1/namespaces/a/finalize", "update /v1 namespaces/finalize /a");
        check(Method::POST, "/apis/apps/v1/namespaces/a/deployments", "create apps/v1 deployments/ a/");
        check(Method::PATCH, "/apis/apps/v1/namespaces/a/deployments/d/scale", "patch apps/v1 deployments/scale a/d");
        check(Method::DELETE, "/apis/apps/v1/namespaces/a/deployments", "deletecollection apps/v1 deployments/ a/");
        check(Method::GET, "/api/v1/pods?fieldSelector=metadata.name%3Dp", "list /v1 pods/ /p");
        check(Method::GET, "/api/v1/pods?fieldSelector=metadata.name%21%3Dp", "list /v1 pods/ /");
        check(Method::GET, "/apis/apps/v1", "get / / /");
        check(Method::GET, "/version", "get / / /");
        check(Method::GET, "/readyz", "get / / /");
    }
}
