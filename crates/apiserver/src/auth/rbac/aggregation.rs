//! Cluster roles that are the sum of others, chosen by label.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_store::{Snapshot, Store, Write};

use super::Rule;

const CLUSTER_ROLES: &str = "/rbac.authorization.k8s.io/clusterroles/";
/// How many rounds an aggregate of aggregates may take to settle.
const ROUNDS_MAX: usize = 8;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClusterRole {
    metadata: Metadata,
    aggregation_rule: Option<AggregationRule>,
    rules: Option<Vec<Rule>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AggregationRule {
    cluster_role_selectors: Option<Vec<Selector>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    match_labels: Option<BTreeMap<String, String>>,
    match_expressions: Option<Vec<Expression>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Expression {
    key: String,
    operator: String,
    values: Option<Vec<String>>,
}

/// The rules that aggregated roles should have and do not, by the roles' names; `roles` holds all cluster roles.
pub fn aggregate(roles: &BTreeMap<String, Value>) -> BTreeMap<String, Vec<Rule>> {
    let mut roles: BTreeMap<&str, ClusterRole> =
        roles.iter().filter_map(|(name, value)| Some((name.as_str(), ClusterRole::deserialize(value).ok()?))).collect();
    let mut changed = BTreeMap::new();
    for _ in 0..ROUNDS_MAX {
        let sums: Vec<(&str, Vec<Rule>)> = roles
            .iter()
            .filter_map(|(name, role)| Some((*name, sum(role.aggregation_rule.as_ref()?, name, &roles))))
            .filter(|(name, rules)| roles[name].rules.as_deref().unwrap_or_default() != rules.as_slice())
            .collect();
        if sums.is_empty() {
            break;
        }
        for (name, rules) in sums {
            changed.insert(name.to_owned(), rules.clone());
            roles.entry(name).or_default().rules = Some(rules);
        }
    }
    changed
}

/// Keeps the aggregated roles of a store up to date until `shutdown`.
pub async fn keep_aggregated(store: Store, shutdown: CancellationToken) {
    loop {
        let snapshot = store.snapshot();
        let Ok(mut watch) = store.watch(CLUSTER_ROLES, snapshot.revision()) else { continue };
        if let Err(error) = settle(&store, &snapshot).await {
            tracing::debug!(%error, "cluster roles changed while they were aggregated");
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            event = watch.next() => if event == Err(windlass_store::WatchError::Closed) { return },
        }
    }
}

async fn settle(store: &Store, snapshot: &Snapshot) -> Result<(), windlass_store::CommitError> {
    let mut roles: BTreeMap<String, Value> = snapshot
        .range(CLUSTER_ROLES, None)
        .filter_map(|(key, entry)| {
            Some((key[CLUSTER_ROLES.len()..].to_owned(), serde_json::from_slice(&entry.value).ok()?))
        })
        .collect();
    let mut writes = Vec::new();
    for (name, rules) in aggregate(&roles) {
        let key = format!("{CLUSTER_ROLES}{name}");
        let (Some(role), Some(entry)) = (roles.get_mut(&name), snapshot.get(&key)) else { continue };
        role["rules"] = serde_json::to_value(rules).expect("rules are plain data");
        writes.push(Write::update(key, entry.modified, role.to_string()));
    }
    if !writes.is_empty() {
        store.commit(writes).await?;
    }
    Ok(())
}

fn sum(rule: &AggregationRule, own: &str, roles: &BTreeMap<&str, ClusterRole>) -> Vec<Rule> {
    let mut seen = BTreeSet::new();
    let mut rules = Vec::new();
    for selector in rule.cluster_role_selectors.iter().flatten() {
        let selected = roles.iter().filter(|(name, role)| **name != own && selector.matches(role));
        for rule in selected.flat_map(|(_, role)| role.rules.iter().flatten()) {
            if seen.insert(rule) {
                rules.push(rule.clone());
            }
        }
    }
    rules
}

impl Selector {
    fn matches(&self, role: &ClusterRole) -> bool {
        let label = |key: &str| role.metadata.labels.as_ref().and_then(|labels| labels.get(key));
        let equal = self.match_labels.iter().flatten().all(|(key, value)| label(key) == Some(value));
        equal
            && self.match_expressions.iter().flatten().all(|expression| {
                let value = label(&expression.key);
                let listed = value.is_some_and(|value| expression.values.iter().flatten().any(|own| own == value));
                match expression.operator.as_str() {
                    "In" => listed,
                    "NotIn" => !listed,
                    "Exists" => value.is_some(),
                    "DoesNotExist" => value.is_none(),
                    _ => false,
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn role(labels: &[&str], sum_of: Option<&str>, verbs: &[&str]) -> Value {
        let labels: BTreeMap<&str, &str> = labels.iter().map(|label| (*label, "true")).collect();
        let rules: Vec<Value> =
            verbs.iter().map(|verb| json!({"verbs": [verb], "apiGroups": [""], "resources": ["pods"]})).collect();
        let mut role = json!({"metadata": {"labels": labels}, "rules": rules});
        if let Some(label) = sum_of {
            role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
        }
        role
    }

    fn verbs(changed: &BTreeMap<String, Vec<Rule>>, name: &str) -> Vec<String> {
        changed[name].iter().flat_map(|rule| rule.verbs.clone()).collect()
    }

    #[test]
    fn sums_follow_labels_and_other_sums() {
        let roles = BTreeMap::from([
            ("admin".to_owned(), role(&[], Some("to-admin"), &[])),
            ("edit".to_owned(), role(&["to-admin"], Some("to-edit"), &[])),
            ("part".to_owned(), role(&["to-edit"], None, &["get", "patch"])),
            ("other".to_owned(), role(&["else"], None, &["delete"])),
        ]);
        let changed = aggregate(&roles);
        assert_eq!(changed.keys().collect::<Vec<_>>(), ["admin", "edit"]);
        assert_eq!(verbs(&changed, "admin"), ["get", "patch"]);
    }

    #[test]
    fn settled_roles_do_not_change() {
        let roles = BTreeMap::from([
            ("sum".to_owned(), role(&[], Some("part"), &["get"])),
            ("part".to_owned(), role(&["part"], None, &["get"])),
        ]);
        assert!(aggregate(&roles).is_empty());
    }

    #[tokio::test]
    async fn a_new_part_reaches_the_sum() {
        let store = Store::in_memory();
        let sum = role(&[], Some("part"), &[]);
        store.commit(vec![Write::create(format!("{CLUSTER_ROLES}sum"), sum.to_string())]).await.unwrap();
        let shutdown = CancellationToken::new();
        let keeper = tokio::spawn(keep_aggregated(store.clone(), shutdown.clone()));

        let mut watch = store.watch(&format!("{CLUSTER_ROLES}sum"), store.revision()).unwrap();
        let part = role(&["part"], None, &["watch"]);
        store.commit(vec![Write::create(format!("{CLUSTER_ROLES}part"), part.to_string())]).await.unwrap();
        let event = watch.next().await.unwrap();
        let stored: Value = serde_json::from_slice(&event.entry.as_ref().unwrap().value).unwrap();
        assert_eq!(stored["rules"][0]["verbs"], json!(["watch"]));

        shutdown.cancel();
        keeper.await.unwrap();
    }
}
