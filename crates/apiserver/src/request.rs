//! What a request asks for, read from its method and path.

use http::{Method, Uri};

use crate::{
    auth::{Attributes, Target},
    query::{Query, decode},
    rest::FieldSelector,
};

/// What is done, in the words of authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// A method that no resource has, such as OPTIONS.
    Other,
}

impl Verb {
    /// The verb as RBAC rules spell it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "",
        }
    }
}

/// Everything that method, path and query say.
#[derive(Clone, Debug)]
pub(crate) struct RequestInfo {
    /// The method.
    pub(crate) method: Method,
    /// The path, as sent.
    pub(crate) path: String,
    /// The parameters.
    pub(crate) query: Query,
    /// The resource, unless the path is outside of the resource tree.
    pub(crate) resource: Option<ResourceRequest>,
}

/// A path inside of the resource tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourceRequest {
    /// What is done.
    pub(crate) verb: Verb,
    /// The API group, empty for core.
    pub(crate) group: String,
    /// The version of the group.
    pub(crate) version: String,
    /// The namespace, empty for cluster-scoped resources and for all namespaces.
    pub(crate) namespace: String,
    /// The plural name of the resource.
    pub(crate) resource: String,
    /// The object's name, empty for collections.
    pub(crate) name: String,
    /// The part of the object, empty for the object itself.
    pub(crate) subresource: String,
    /// What follows the subresource, for proxies.
    pub(crate) rest: String,
    /// The name that a field selector narrows a collection to, for authorization.
    pub(crate) selected_name: String,
}

impl RequestInfo {
    /// Reads a request line.
    pub(crate) fn new(method: &Method, uri: &Uri) -> Self {
        let query = Query::parse(uri.query());
        let resource = resource(method, uri.path(), &query);
        Self { method: method.clone(), path: uri.path().to_owned(), query, resource }
    }

    /// The request in the terms of authorization. `method` holds the lower-case method for paths outside of the tree.
    pub(crate) fn attributes<'a>(&'a self, method: &'a str) -> Attributes<'a> {
        let Some(request) = &self.resource else { return Attributes::path(method, &self.path) };
        let name = if request.name.is_empty() { &request.selected_name } else { &request.name };
        Attributes {
            verb: request.verb.as_str(),
            target: Target::Resource {
                group: &request.group,
                resource: &request.resource,
                subresource: &request.subresource,
                namespace: &request.namespace,
                name,
            },
        }
    }
}

fn resource(method: &Method, path: &str, query: &Query) -> Option<ResourceRequest> {
    let decoded: Vec<String> = path.trim_matches('/').split('/').map(|part| decode(part, false)).collect();
    let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
    let (group, version, parts) = match &parts[..] {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        _ => return None,
    };
    let (watch_by_path, parts) = match parts {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, parts),
    };
    let (namespace, parts) = match parts {
        // A namespace's own subresources are about the namespace, not inside of it.
        ["namespaces", namespace, "status" | "finalize", ..] | ["namespaces", namespace] => (*namespace, parts),
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        _ => ("", parts),
    };
    let name = parts.get(1).copied().unwrap_or_default();
    let mut verb = verb(method, name.is_empty(), query);
    if watch_by_path && matches!(verb, Verb::Get | Verb::List) {
        verb = Verb::Watch;
    }
    let mut selected_name = selected_name(query);
    if watch_by_path && !name.is_empty() {
        selected_name = name.to_owned();
    }
    Some(ResourceRequest {
        verb,
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        resource: parts[0].to_owned(),
        name: if watch_by_path { String::new() } else { name.to_owned() },
        subresource: parts.get(2).copied().unwrap_or_default().to_owned(),
        rest: parts.get(3..).unwrap_or_default().join("/"),
        selected_name,
    })
}

fn verb(method: &Method, collection: bool, query: &Query) -> Verb {
    match (method.as_str(), collection) {
        ("GET" | "HEAD", true) if query.flag("watch") => Verb::Watch,
        ("GET" | "HEAD", true) => Verb::List,
        ("GET" | "HEAD", false) => Verb::Get,
        ("POST", _) => Verb::Create,
        ("PUT", _) => Verb::Update,
        ("PATCH", _) => Verb::Patch,
        ("DELETE", true) => Verb::DeleteCollection,
        ("DELETE", false) => Verb::Delete,
        _ => Verb::Other,
    }
}

fn selected_name(query: &Query) -> String {
    let selector = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default());
    selector.ok().and_then(|selector| selector.name().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Method, uri: &str, expect: Option<(&str, &str, &str, &str, &str, &str)>) {
        let info = RequestInfo::new(&method, &uri.parse().unwrap());
        let found = info.resource.as_ref().map(|request| {
            let version = if request.group.is_empty() {
                request.version.clone()
            } else {
                format!("{}/{}", request.group, request.version)
            };
            (request.verb.as_str(), version, request)
        });
        let found = found.as_ref().map(|(verb, version, request)| {
            let ResourceRequest { namespace, resource, name, subresource, .. } = request;
            (*verb, version.as_str(), namespace.as_str(), resource.as_str(), name.as_str(), subresource.as_str())
        });
        assert_eq!(found, expect, "{method} {uri}");
    }

    #[test]
    fn every_form_of_path() {
        let get = || Method::GET;
        check(get(), "/", None);
        check(get(), "/api", None);
        check(get(), "/api/v1", None);
        check(get(), "/apis/apps/v1", None);
        check(get(), "/version", None);
        check(get(), "/api/v1/pods", Some(("list", "v1", "", "pods", "", "")));
        check(get(), "/api/v1/pods?watch=true", Some(("watch", "v1", "", "pods", "", "")));
        check(get(), "/api/v1/nodes/n/status", Some(("get", "v1", "", "nodes", "n", "status")));
        check(get(), "/api/v1/namespaces", Some(("list", "v1", "", "namespaces", "", "")));
        check(get(), "/api/v1/namespaces/a", Some(("get", "v1", "a", "namespaces", "a", "")));
        check(Method::PUT, "/api/v1/namespaces/a/finalize", Some(("update", "v1", "a", "namespaces", "a", "finalize")));
        check(get(), "/api/v1/namespaces/a/pods/p/log", Some(("get", "v1", "a", "pods", "p", "log")));
        check(Method::POST, "/api/v1/namespaces/a/pods", Some(("create", "v1", "a", "pods", "", "")));
        check(Method::DELETE, "/api/v1/namespaces/a/pods", Some(("deletecollection", "v1", "a", "pods", "", "")));
        check(Method::DELETE, "/api/v1/namespaces/a/pods/p", Some(("delete", "v1", "a", "pods", "p", "")));
        check(
            Method::PATCH,
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            Some(("patch", "apps/v1", "a", "deployments", "d", "scale")),
        );
        check(get(), "/api/v1/watch/namespaces/a/pods", Some(("watch", "v1", "a", "pods", "", "")));
        check(get(), "/apis/a/v1/clusterroles/system%3Ax", Some(("get", "a/v1", "", "clusterroles", "system:x", "")));
    }

    #[test]
    fn a_selected_name_is_authorized_as_the_name() {
        let info =
            RequestInfo::new(&Method::GET, &"/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dp".parse().unwrap());
        let attributes = info.attributes("get");
        assert!(matches!(attributes.target, Target::Resource { name: "p", .. }));
        assert_eq!(attributes.verb, "watch");
    }
}
