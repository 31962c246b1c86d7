//! Flow schemas: which requests belong to which level.

use serde::Deserialize;
use windlass_store::Snapshot;

use super::SCHEMAS;
use crate::auth::{Attributes, Target, User, service_account_name};

/// One flow schema.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) uid: String,
    pub(super) level: String,
    precedence: i64,
    name: String,
    rules: Vec<Rule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    uid: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    matching_precedence: Option<i64>,
    priority_level_configuration: Named,
    rules: Vec<Rule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
    namespace: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    subjects: Vec<Subject>,
    resource_rules: Vec<ResourceRule>,
    non_resource_rules: Vec<PathRule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Subject {
    kind: String,
    user: Option<Named>,
    group: Option<Named>,
    service_account: Option<Named>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    namespaces: Vec<String>,
    cluster_scope: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PathRule {
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    paths: Vec<String>,
}

/// What a schema without a precedence gets.
const PRECEDENCE_DEFAULT: i64 = 1000;

/// The schemas of a snapshot, in the order in which they are asked.
pub(super) fn schemas(snapshot: &Snapshot) -> Vec<Schema> {
    let stored = snapshot.range(SCHEMAS, None).filter_map(|(_, entry)| serde_json::from_slice(&entry.value).ok());
    let mut schemas: Vec<Schema> = stored.map(Schema::new).collect();
    schemas.sort_by(|a, b| (a.precedence, &a.name).cmp(&(b.precedence, &b.name)));
    schemas
}

impl Schema {
    fn new(object: Object) -> Self {
        let Object { metadata, spec } = object;
        Self {
            uid: metadata.uid,
            name: metadata.name,
            level: spec.priority_level_configuration.name,
            precedence: spec.matching_precedence.unwrap_or(PRECEDENCE_DEFAULT),
            rules: spec.rules,
        }
    }

    pub(super) fn matches(&self, user: &User, attributes: &Attributes<'_>) -> bool {
        self.rules.iter().any(|rule| rule.subjects.iter().any(|subject| subject.is(user)) && rule.covers(attributes))
    }
}

impl Rule {
    fn covers(&self, attributes: &Attributes<'_>) -> bool {
        match attributes.target {
            Target::Path(path) => self.non_resource_rules.iter().any(|rule| {
                has(&rule.verbs, attributes.verb) && rule.paths.iter().any(|pattern| path_matches(pattern, path))
            }),
            Target::Resource { group, resource, subresource, namespace, .. } => {
                self.resource_rules.iter().any(|rule| {
                    let place =
                        if namespace.is_empty() { rule.cluster_scope } else { has(&rule.namespaces, namespace) };
                    place
                        && has(&rule.verbs, attributes.verb)
                        && has(&rule.api_groups, group)
                        && has_resource(&rule.resources, resource, subresource)
                })
            }
        }
    }
}

impl Subject {
    fn is(&self, user: &User) -> bool {
        let named = |subject: &Option<Named>, is: &dyn Fn(&Named) -> bool| subject.as_ref().is_some_and(is);
        match self.kind.as_str() {
            "User" => named(&self.user, &|subject| subject.name == "*" || subject.name == user.name),
            "Group" => named(&self.group, &|subject| subject.name == "*" || user.in_group(&subject.name)),
            "ServiceAccount" => named(&self.service_account, &|subject| {
                if subject.name == "*" {
                    return user.name.starts_with(&service_account_name(&subject.namespace, ""));
                }
                user.name == service_account_name(&subject.namespace, &subject.name)
            }),
            _ => false,
        }
    }
}

fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|item| item == "*" || item == value)
}

fn has_resource(list: &[String], resource: &str, subresource: &str) -> bool {
    list.iter().any(|item| match item.split_once('/') {
        None => item == "*" || (subresource.is_empty() && item == resource),
        Some((of, part)) => part == subresource && (of == "*" || of == resource),
    })
}

fn path_matches(pattern: &str, path: &str) -> bool {
    pattern == "*"
        || pattern == path
        || pattern.strip_suffix('*').is_some_and(|start| start.ends_with('/') && path.starts_with(start))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource<'a>(verb: &'a str, group: &'a str, resource: &'a str, namespace: &'a str) -> Attributes<'a> {
        Attributes { verb, target: Target::Resource { group, resource, subresource: "", namespace, name: "" } }
    }

    #[test]
    fn a_request_must_suit_subject_and_rule() {
        let object = json!({"spec": {"rules": [{
            "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"namespace": "red", "name": "*"}}],
            "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["red"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/healthz", "/logs/*"]}],
        }]}});
        let schema = Schema::new(serde_json::from_value(object).unwrap());
        let (mine, other) = (User::new("system:serviceaccount:red:a", ["g"]), User::new("ann", ["g"]));
        assert!(schema.matches(&mine, &resource("get", "", "pods", "red")));
        assert!(!schema.matches(&other, &resource("get", "", "pods", "red")));
        assert!(!schema.matches(&mine, &resource("list", "", "pods", "red")));
        assert!(!schema.matches(&mine, &resource("get", "", "pods", "")), "cluster scope is said separately");
        assert!(schema.matches(&mine, &Attributes::path("get", "/logs/a")));
        assert!(!schema.matches(&mine, &Attributes::path("get", "/healthz/x")));
    }
}
