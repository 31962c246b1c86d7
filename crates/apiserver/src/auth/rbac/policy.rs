//! All roles and bindings of a cluster, ready to be asked.

use std::collections::HashMap;

use serde::Deserialize;

use super::{GROUP, Rule};
use crate::auth::{Attributes, Target, User, service_account_name};

/// All roles and bindings of a cluster.
#[derive(Debug, Default)]
pub struct Policy {
    cluster_roles: HashMap<String, Vec<Rule>>,
    roles: HashMap<(String, String), Vec<Rule>>,
    cluster_bindings: HashMap<String, Binding>,
    bindings: HashMap<String, HashMap<String, Binding>>,
}

/// The role that a binding gives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleReference {
    /// The API group, always that of RBAC.
    pub api_group: String,
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The name of the role.
    pub name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Binding {
    role_ref: RoleReference,
    subjects: Option<Vec<Subject>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Role {
    rules: Option<Vec<Rule>>,
}

impl Policy {
    /// The prefix of the store's keys that [`Policy::apply`] understands.
    pub const PREFIX: &str = "/rbac.authorization.k8s.io/";

    /// Takes over one stored object, or its absence.
    ///
    /// An object that cannot be read grants nothing.
    pub fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        let parts: Vec<&str> = key.split('/').skip(2).collect();
        match parts.as_slice() {
            ["clusterroles", name] => set(&mut self.cluster_roles, (*name).to_owned(), value.map(rules)),
            ["roles", namespace, name] => {
                set(&mut self.roles, ((*namespace).to_owned(), (*name).to_owned()), value.map(rules));
            }
            ["clusterrolebindings", name] => set(&mut self.cluster_bindings, (*name).to_owned(), value.map(binding)),
            ["rolebindings", namespace, name] => {
                let bindings = self.bindings.entry((*namespace).to_owned()).or_default();
                set(bindings, (*name).to_owned(), value.map(binding));
                if bindings.is_empty() {
                    self.bindings.remove(*namespace);
                }
            }
            _ => {}
        }
    }

    /// Whether `user` may do what `attributes` describe.
    pub fn allows(&self, user: &User, attributes: &Attributes<'_>) -> bool {
        let namespace = match attributes.target {
            Target::Resource { namespace, .. } => namespace,
            Target::Path(_) => "",
        };
        user.is_master() || self.rules_of(user, namespace).any(|rule| rule.allows(attributes))
    }

    /// The rules that `user` has in a namespace, or cluster-wide if it is empty.
    pub fn rules_of<'a>(&'a self, user: &'a User, namespace: &'a str) -> impl Iterator<Item = &'a Rule> {
        let cluster = self.cluster_bindings.values();
        let local = self.bindings.get(namespace).into_iter().flat_map(HashMap::values);
        cluster
            .filter(move |binding| binding.has(user, ""))
            .map(|binding| self.rules_of_role(&binding.role_ref, ""))
            .chain(
                local
                    .filter(move |binding| binding.has(user, namespace))
                    .map(move |binding| self.rules_of_role(&binding.role_ref, namespace)),
            )
            .flat_map(|rules| rules.unwrap_or_default())
    }

    /// The rules of a role that is referred to from a namespace; `None` if the role does not exist.
    pub fn rules_of_role(&self, role: &RoleReference, namespace: &str) -> Option<&[Rule]> {
        let rules = match role.kind.as_str() {
            "ClusterRole" => self.cluster_roles.get(&role.name),
            "Role" if !namespace.is_empty() => self.roles.get(&(namespace.to_owned(), role.name.clone())),
            _ => None,
        };
        rules.map(Vec::as_slice)
    }
}

impl Binding {
    fn has(&self, user: &User, namespace: &str) -> bool {
        self.subjects.iter().flatten().any(|subject| subject.is(user, namespace))
    }
}

impl Subject {
    fn is(&self, user: &User, namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => self.name == user.name,
            "Group" => user.in_group(&self.name),
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
                !namespace.is_empty() && user.name == service_account_name(namespace, &self.name)
            }
            _ => false,
        }
    }
}

fn set<K: std::hash::Hash + Eq, V>(map: &mut HashMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}

fn rules(value: &[u8]) -> Vec<Rule> {
    serde_json::from_slice::<Role>(value).ok().and_then(|role| role.rules).unwrap_or_default()
}

fn binding(value: &[u8]) -> Binding {
    let binding: Binding = serde_json::from_slice(value).unwrap_or_default();
    if binding.role_ref.api_group == GROUP { binding } else { Binding::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy() -> Policy {
        let mut policy = Policy::default();
        let reader = json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]});
        let role = |kind: &str| json!({"apiGroup": GROUP, "kind": kind, "name": "reader"});
        for (key, value) in [
            ("clusterroles/reader", reader.clone()),
            ("roles/red/reader", reader),
            ("clusterroles/empty", json!({"rules": null})),
            (
                "clusterrolebindings/ann",
                json!({"roleRef": role("ClusterRole"), "subjects": [{"kind": "User", "name": "ann"}]}),
            ),
            ("rolebindings/red/ops", json!({"roleRef": role("Role"), "subjects": [{"kind": "Group", "name": "ops"}]})),
            (
                "rolebindings/blue/robot",
                json!({"roleRef": role("ClusterRole"), "subjects": [{"kind": "ServiceAccount", "name": "robot"}]}),
            ),
            (
                "rolebindings/blue/lost",
                json!({"roleRef": role("Role"), "subjects": [{"kind": "Group", "name": "ops"}]}),
            ),
        ] {
            policy.apply(&format!("{}{key}", Policy::PREFIX), Some(value.to_string().as_bytes()));
        }
        policy
    }

    fn get_pod(namespace: &str) -> Attributes<'_> {
        let target = Target::Resource { group: "", resource: "pods", subresource: "", namespace, name: "a" };
        Attributes { verb: "get", target }
    }

    #[test]
    fn bindings_give_their_role_where_they_are() {
        let policy = policy();
        let ann = User::new("ann", ["people"]);
        let ops = User::new("bob", ["ops"]);
        let robot = User::new("system:serviceaccount:blue:robot", ["system:serviceaccounts"]);
        let stranger = User::new("system:serviceaccount:red:robot", ["system:serviceaccounts"]);
        for (user, namespace, expected) in [
            (&ann, "", true),
            (&ann, "blue", true),
            (&ops, "red", true),
            (&ops, "blue", false),
            (&ops, "", false),
            (&robot, "blue", true),
            (&robot, "red", false),
            (&stranger, "blue", false),
        ] {
            assert_eq!(policy.allows(user, &get_pod(namespace)), expected, "{} in {namespace:?}", user.name);
        }
        assert!(policy.allows(&User::master("root"), &Attributes::path("post", "/anything")));
    }

    #[test]
    fn what_is_deleted_gives_nothing() {
        let mut policy = policy();
        let ann = User::new("ann", ["people"]);
        policy.apply("/rbac.authorization.k8s.io/clusterrolebindings/ann", None);
        assert!(!policy.allows(&ann, &get_pod("red")));
    }

    #[test]
    fn what_cannot_be_read_gives_nothing() {
        let mut policy = policy();
        policy.apply("/rbac.authorization.k8s.io/clusterroles/reader", Some(b"{"));
        assert!(!policy.allows(&User::new("ann", ["people"]), &get_pod("red")));
    }
}
