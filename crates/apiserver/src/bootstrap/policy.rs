//! The RBAC policy of a new cluster, from the table beside this file.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Map, Value, json};

use super::Wanted;
use super::reconcile::{AUTO_UPDATE, complete_binding, complete_role};
use crate::auth::rbac::{GROUP, Rule, aggregate};

const TABLE: &str = include_str!("policy.txt");
/// Who may read `metrics.k8s.io`, as servers of that group ship it.
const METRICS: &str = "cluster-role system:aggregated-metrics-reader part-of:view part-of:edit part-of:admin
  get,list,watch metrics.k8s.io nodes,pods
";
const AGGREGATE_TO: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// The roles and bindings; the table is read once per process.
pub(super) fn policy() -> &'static [Wanted] {
    static POLICY: LazyLock<Vec<Wanted>> = LazyLock::new(|| read(TABLE));
    &POLICY
}

/// The role of those who may read metrics.
pub(super) fn metrics() -> &'static [Wanted] {
    static POLICY: LazyLock<Vec<Wanted>> = LazyLock::new(|| read(METRICS));
    &POLICY
}

fn read(table: &str) -> Vec<Wanted> {
    let mut objects: Vec<(String, Value)> = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !line.starts_with(' ') {
            objects.push(object(&words));
            continue;
        }
        let (_, role) = objects.last_mut().expect("a rule follows its role");
        let rules = role["rules"].as_array_mut().expect("a role has rules");
        rules.push(json!(rule(&words)));
    }
    sum_up(&mut objects);
    objects.into_iter().map(|(key, object)| wanted(key, object)).collect()
}

fn wanted(key: String, object: Value) -> Wanted {
    let reconcile = if object.get("roleRef").is_some() { complete_binding } else { complete_role };
    Wanted::new(key, object, reconcile)
}

fn object(words: &[&str]) -> (String, Value) {
    match words {
        ["cluster-role", name, marks @ ..] => {
            let (key, mut role) = shell("ClusterRole", "clusterroles", name);
            role["rules"] = json!([]);
            for mark in marks {
                match mark.split_once(':') {
                    Some(("part-of", sum)) => {
                        role["metadata"]["labels"][format!("{AGGREGATE_TO}{sum}")] = json!("true")
                    }
                    Some(("sum-of", sum)) => {
                        let labels = Map::from_iter([(format!("{AGGREGATE_TO}{sum}"), json!("true"))]);
                        role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": labels}]});
                    }
                    _ => unreachable!("the table knows no mark {mark}"),
                }
            }
            (key, role)
        }
        ["role", name] => {
            let (key, mut role) = shell("Role", "roles", name);
            role["rules"] = json!([]);
            (key, role)
        }
        ["cluster-role-binding", name, role, subjects @ ..] => {
            binding(shell("ClusterRoleBinding", "clusterrolebindings", name), "ClusterRole", role, subjects)
        }
        ["role-binding", name, role, subjects @ ..] => {
            binding(shell("RoleBinding", "rolebindings", name), "Role", role, subjects)
        }
        _ => unreachable!("the table knows no line {words:?}"),
    }
}

/// The key and the metadata of an object; `name` is `NAMESPACE/NAME` for those in a namespace.
fn shell(kind: &str, resource: &str, name: &str) -> (String, Value) {
    let mut metadata = json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {AUTO_UPDATE: "true"},
    });
    if let Some((namespace, name)) = name.split_once('/') {
        metadata["name"] = json!(name);
        metadata["namespace"] = json!(namespace);
    }
    let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata});
    (format!("/{GROUP}/{resource}/{name}"), object)
}

fn binding(shell: (String, Value), role_kind: &str, role: &str, subjects: &[&str]) -> (String, Value) {
    let (key, mut binding) = shell;
    binding["roleRef"] = json!({"apiGroup": GROUP, "kind": role_kind, "name": role});
    if !subjects.is_empty() {
        binding["subjects"] = subjects.iter().map(|subject| self::subject(subject)).collect();
    }
    (key, binding)
}

fn subject(word: &str) -> Value {
    match word.split_once(':') {
        Some(("group", name)) => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
        Some(("user", name)) => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
        Some(("account", account)) => {
            let (namespace, name) = account.split_once('/').expect("an account has a namespace");
            json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
        }
        _ => unreachable!("the table knows no subject {word}"),
    }
}

fn rule(words: &[&str]) -> Rule {
    let list = |word: &str| -> Vec<String> { word.split(',').map(str::to_owned).collect() };
    match words {
        [verbs, "url", paths] => Rule { verbs: list(verbs), non_resource_urls: list(paths), ..Rule::default() },
        [verbs, groups, resources, names @ ..] => Rule {
            verbs: list(verbs),
            api_groups: list(groups)
                .into_iter()
                .map(|group| if group == "core" { String::new() } else { group })
                .collect(),
            resources: list(resources),
            resource_names: names.first().map(|names| list(names)).unwrap_or_default(),
            ..Rule::default()
        },
        _ => unreachable!("the table knows no rule {words:?}"),
    }
}

/// Fills the roles that are the sum of others, so that they are right from the first moment.
fn sum_up(objects: &mut [(String, Value)]) {
    let roles: BTreeMap<String, Value> = objects
        .iter()
        .filter(|(_, object)| object["kind"] == "ClusterRole")
        .map(|(key, object)| (key.clone(), object.clone()))
        .collect();
    let sums = aggregate(&roles);
    for (key, object) in objects {
        if let Some(rules) = sums.get(key) {
            object["rules"] = json!(rules);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> BTreeMap<String, usize> {
        let mut kinds = BTreeMap::new();
        for wanted in policy() {
            *kinds.entry(wanted.object["kind"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        kinds
    }

    #[test]
    fn the_table_is_complete() {
        let kinds = kinds();
        assert_eq!(kinds["ClusterRole"], 69);
        assert_eq!(kinds["Role"], 7);
        assert_eq!(kinds["RoleBinding"], 7);
    }

    #[test]
    fn admin_is_the_sum_of_its_parts() {
        let policy = policy();
        let admin = policy.iter().find(|wanted| wanted.key.ends_with("/clusterroles/admin")).unwrap();
        let rules: Vec<Rule> = serde_json::from_value(admin.object["rules"].clone()).unwrap();
        let holds = |verb: &str, resource: &str| {
            rules.iter().any(|rule| {
                rule.verbs.iter().any(|own| own == verb) && rule.resources.iter().any(|own| own == resource)
            })
        };
        assert!(holds("create", "rolebindings"), "its own part");
        assert!(holds("create", "deployments"), "the part of edit");
        assert!(holds("list", "resourcequotas"), "the part of view");
    }
}
