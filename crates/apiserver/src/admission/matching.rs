//! Whether a rule is about a request: groups, versions, resources, operations, scope, labels.

use serde::Deserialize;
use serde_json::Value;
use windlass_store::Store;

use super::{Operation, Review, stored};
use crate::{ApiError, Subject, rest::LabelSelector};

/// What a rule is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Rule {
    operations: Vec<String>,
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    resources: Vec<String>,
    scope: Option<String>,
    /// The names that it is about; all if there are none.
    resource_names: Vec<String>,
}

/// A resource in one of its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resource<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) resource: &'a str,
}

impl Rule {
    /// Whether the rule is about `review`, if that were about `resource`.
    pub(super) fn matches(&self, review: &Review<'_>, resource: Resource<'_>) -> bool {
        self.has_scope(review)
            && listed(&self.operations, review.operation.as_str())
            && listed(&self.api_groups, resource.group)
            && listed(&self.api_versions, resource.version)
            && self.has_resource(resource.resource, review.subresource)
            && (self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == review.given_name))
    }

    fn has_scope(&self, review: &Review<'_>) -> bool {
        let namespaced = !review.namespace.is_empty() && !is_namespace(review);
        match self.scope.as_deref() {
            None | Some("*" | "") => true,
            Some("Namespaced") => namespaced,
            Some("Cluster") => !namespaced,
            Some(_) => false,
        }
    }

    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|own| {
            let (own, part) = own.split_once('/').unwrap_or((own, ""));
            (own == "*" || own == resource) && (part == "*" || part == subresource)
        })
    }
}

fn listed(items: &[String], wanted: &str) -> bool {
    items.iter().any(|item| item == "*" || item == wanted)
}

fn is_namespace(review: &Review<'_>) -> bool {
    review.group.is_empty() && review.resource == "namespaces"
}

/// Whether the labels of the namespace of the request are as `selector` wants them.
///
/// # Errors
/// 404 if the namespace is not there.
pub(super) fn selects_namespace(
    store: &Store,
    selector: &LabelSelector,
    review: &Review<'_>,
) -> Result<bool, ApiError> {
    if selector.is_empty() || (review.namespace.is_empty() && review.resource != "namespaces") {
        return Ok(true);
    }
    let writes = matches!(review.operation, Operation::Create | Operation::Update);
    if is_namespace(review) && review.subresource.is_empty() && writes {
        return Ok(selector.matches(&review.object));
    }
    let name = review.namespace;
    let namespace: Option<Value> = stored(store, &format!("/core/namespaces/{name}"));
    let missing = || ApiError::not_found(Subject { group: "", resource: "namespaces" }, name);
    Ok(selector.matches(&namespace.ok_or_else(missing)?))
}

/// Whether the labels of the object, or of what it was, are as `selector` wants them.
pub(super) fn selects_object(selector: &LabelSelector, review: &Review<'_>) -> bool {
    let selects = |object: &Value| object.is_object() && selector.matches(object);
    selector.is_empty() || selects(&review.object) || selects(&review.old)
}

/// Whether the request is about what configures admission itself, which must stay repairable.
pub(super) fn is_exempt(review: &Review<'_>) -> bool {
    const KINDS: [&str; 6] = [
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ];
    review.kind.group == "admissionregistration.k8s.io" && KINDS.contains(&review.kind.kind.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::review::tests::creation;
    use super::*;
    use crate::auth::User;

    fn check(rule: Value, subresource: &str, namespace: &str, expected: bool) {
        let rule: Rule = serde_json::from_value(rule).unwrap();
        let user = User::master("test");
        let mut review = creation(&user, "apps", "deployments", namespace, json!({}));
        review.subresource = subresource;
        let resource = Resource { group: "apps", version: "v1", resource: "deployments" };
        assert_eq!(rule.matches(&review, resource), expected, "{rule:?} {subresource}");
    }

    #[test]
    fn rules_are_about_what_they_list() {
        let rule = |operations: &[&str], groups: &[&str], resources: &[&str], scope: &str| json!({"operations": operations, "apiGroups": groups, "apiVersions": ["v1"], "resources": resources, "scope": scope});
        check(rule(&["CREATE"], &["apps"], &["deployments"], "*"), "", "n", true);
        check(rule(&["*"], &["*"], &["*"], "Namespaced"), "", "n", true);
        check(rule(&["*"], &["*"], &["*"], "Cluster"), "", "n", false);
        check(rule(&["*"], &["*"], &["*"], "Cluster"), "", "", true);
        check(rule(&["UPDATE"], &["apps"], &["deployments"], "*"), "", "n", false);
        check(rule(&["CREATE"], &[""], &["deployments"], "*"), "", "n", false);
        check(rule(&["CREATE"], &["apps"], &["deployments"], "*"), "scale", "n", false);
        check(rule(&["CREATE"], &["apps"], &["deployments/*"], "*"), "scale", "n", true);
        check(rule(&["CREATE"], &["apps"], &["*/scale"], "*"), "scale", "n", true);
        check(rule(&["CREATE"], &["apps"], &["*/*"], "*"), "", "n", true);
    }
}
