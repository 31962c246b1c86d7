//! What roles allow, without asking a cluster.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject};
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_runtime::tap::{Place, Right, Uses};

/// What every account may do by the role `system:basic-user`, which every cluster has.
const BASIC: [(&str, &str); 2] =
    [("authorization.k8s.io", "selfsubjectaccessreviews"), ("authorization.k8s.io", "selfsubjectrulesreviews")];

/// The rules that hold for one service account, and where.
#[derive(Clone, Debug, Default)]
pub struct Grants(Vec<Grant>);

#[derive(Clone, Debug)]
struct Grant {
    /// Where it holds; `None` is everywhere.
    namespace: Option<String>,
    rule: PolicyRule,
}

impl Grants {
    /// What the roles and bindings among `objects` allow the service account `name` of `namespace`.
    pub fn of(objects: &[Value], namespace: &str, name: &str) -> Self {
        let is_it = |subjects: &Option<Vec<Subject>>| {
            let is_it = |subject: &Subject| {
                subject.kind == "ServiceAccount"
                    && subject.name == name
                    && subject.namespace.as_deref() == Some(namespace)
            };
            subjects.iter().flatten().any(is_it)
        };
        let mut grants = Vec::new();
        for binding in read::<ClusterRoleBinding>(objects, "ClusterRoleBinding").filter(|it| is_it(&it.subjects)) {
            let rules = cluster_rules(objects, &binding.role_ref.name);
            grants.extend(rules.into_iter().map(|rule| Grant { namespace: None, rule }));
        }
        for binding in read::<RoleBinding>(objects, "RoleBinding").filter(|it| is_it(&it.subjects)) {
            let namespace = binding.metadata.namespace;
            let rules = match binding.role_ref.kind.as_str() {
                "ClusterRole" => cluster_rules(objects, &binding.role_ref.name),
                _ => role_rules(objects, &binding.role_ref.name, namespace.as_deref()),
            };
            grants.extend(rules.into_iter().map(|rule| Grant { namespace: namespace.clone(), rule }));
        }
        Self(grants)
    }

    /// Whether `right` may be used at `place`.
    pub fn allow(&self, right: &Right, place: &Place) -> bool {
        if right.verb == "create" && BASIC.contains(&(right.group.as_str(), right.resource.as_str())) {
            return true;
        }
        self.0.iter().any(|grant| {
            let holds = grant.namespace.is_none() || grant.namespace == place.namespace;
            holds && covers(&grant.rule, right, place.name.as_deref())
        })
    }

    /// The places of `uses` at which `right` may not be used.
    pub fn refuse(&self, right: &Right, uses: &Uses) -> Vec<Place> {
        // Of places that were not noted it is only known that their names were others.
        let unknown = |place: &Place| Place { namespace: place.namespace.clone(), name: None };
        let more = uses.places.iter().filter(|_| uses.elsewhere).map(unknown);
        let mut refused: Vec<Place> =
            uses.places.iter().cloned().chain(more).filter(|place| !self.allow(right, place)).collect();
        refused.dedup();
        refused
    }
}

/// Whether a rule allows `right` on the object `name`, or on any if there is no name.
pub(crate) fn covers(rule: &PolicyRule, right: &Right, name: Option<&str>) -> bool {
    let has = |words: &Option<Vec<String>>, word: &str| words.iter().flatten().any(|it| it == word || it == "*");
    let of_any = right.resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
    let resource = has(&rule.resources, &right.resource) || of_any.is_some_and(|of_any| has(&rule.resources, &of_any));
    let names = rule.resource_names.as_deref().unwrap_or_default();
    let is_named = names.is_empty() || name.is_some_and(|name| names.iter().any(|it| it == name));
    let verb = rule.verbs.iter().any(|verb| *verb == right.verb || verb == "*");
    verb && has(&rule.api_groups, &right.group) && resource && is_named
}

fn read<K: DeserializeOwned>(objects: &[Value], kind: &str) -> impl Iterator<Item = K> {
    objects.iter().filter(move |object| object["kind"] == kind).filter_map(|object| K::deserialize(object).ok())
}

fn cluster_rules(objects: &[Value], name: &str) -> Vec<PolicyRule> {
    let role = read::<ClusterRole>(objects, "ClusterRole").find(|role| role.metadata.name.as_deref() == Some(name));
    role.and_then(|role| role.rules).unwrap_or_default()
}

fn role_rules(objects: &[Value], name: &str, namespace: Option<&str>) -> Vec<PolicyRule> {
    let is_it =
        |role: &Role| role.metadata.name.as_deref() == Some(name) && role.metadata.namespace.as_deref() == namespace;
    read::<Role>(objects, "Role").find(is_it).and_then(|role| role.rules).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grants() -> Grants {
        let subjects = json!([{"kind": "ServiceAccount", "name": "op", "namespace": "system"}]);
        let reference =
            |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
        let objects = [
            json!({"kind": "ClusterRole", "metadata": {"name": "everywhere"}, "rules": [
                {"apiGroups": [""], "resources": ["pods", "*/log"], "verbs": ["get", "list"]},
                {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"], "resourceNames": ["one"]},
            ]}),
            json!({"kind": "ClusterRoleBinding", "metadata": {"name": "b"}, "roleRef": reference("ClusterRole", "everywhere"),
                   "subjects": subjects}),
            json!({"kind": "Role", "metadata": {"name": "here", "namespace": "a"}, "rules": [
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
            ]}),
            json!({"kind": "RoleBinding", "metadata": {"name": "b", "namespace": "a"}, "roleRef": reference("Role", "here"),
                   "subjects": subjects}),
            json!({"kind": "ClusterRole", "metadata": {"name": "bound-in-b"}, "rules": [
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]},
            ]}),
            json!({"kind": "RoleBinding", "metadata": {"name": "b", "namespace": "b"},
                   "roleRef": reference("ClusterRole", "bound-in-b"), "subjects": subjects}),
            json!({"kind": "RoleBinding", "metadata": {"name": "other", "namespace": "c"}, "roleRef": reference("ClusterRole", "bound-in-b"),
                   "subjects": [{"kind": "ServiceAccount", "name": "another", "namespace": "system"}]}),
        ];
        Grants::of(&objects, "system", "op")
    }

    #[test]
    fn roles_allow_what_kubernetes_lets_them_allow() {
        type Row = (&'static str, &'static str, &'static str, Option<&'static str>, Option<&'static str>, bool);
        let rows: [Row; 15] = [
            ("", "pods", "get", Some("a"), Some("p"), true),
            ("", "pods", "list", None, None, true),
            ("", "pods", "delete", Some("a"), Some("p"), false),
            ("", "pods/log", "get", Some("a"), Some("p"), true),
            ("", "pods/exec", "get", Some("a"), Some("p"), false),
            ("apps", "deployments", "patch", Some("a"), Some("one"), true),
            ("apps", "deployments", "patch", Some("a"), Some("two"), false),
            ("apps", "deployments", "create", Some("a"), None, false),
            ("", "secrets", "get", Some("a"), Some("s"), true),
            ("", "secrets", "get", Some("b"), Some("s"), false),
            ("", "secrets", "get", None, None, false),
            ("", "secrets", "list", Some("b"), None, true),
            ("", "secrets", "list", Some("c"), None, false),
            ("authorization.k8s.io", "selfsubjectaccessreviews", "create", None, None, true),
            ("authorization.k8s.io", "subjectaccessreviews", "create", None, None, false),
        ];
        let grants = grants();
        for (group, resource, verb, namespace, name, expected) in rows {
            let place = Place { namespace: namespace.map(Into::into), name: name.map(Into::into) };
            let right = Right::new(group, resource, verb);
            assert_eq!(grants.allow(&right, &place), expected, "{right} at {place:?}");
        }
    }

    #[test]
    fn places_that_were_not_noted_are_of_any_name() {
        let place = Place { namespace: Some("a".into()), name: Some("one".into()) };
        let right = Right::new("apps", "deployments", "patch");
        let uses = |elsewhere| Uses { places: [place.clone()].into(), elsewhere, refused: false };
        assert_eq!(grants().refuse(&right, &uses(false)), []);
        assert_eq!(grants().refuse(&right, &uses(true)), [Place { namespace: Some("a".into()), name: None }]);
    }
}
