//! Nobody grants rights that they do not hold, unless they may `escalate` or `bind`.

use serde::Deserialize;

use super::{Operation, Review};
use crate::auth::rbac::{GROUP, RoleReference, Rule, describe_missing, uncovered};
use crate::auth::{Attributes, Auth, Target};
use crate::{ApiError, Subject};

pub(super) fn check(auth: &Auth, review: &Review<'_>) -> Result<(), ApiError> {
    let writes = matches!(review.operation, Operation::Create | Operation::Update);
    if !writes || review.group != GROUP || !review.subresource.is_empty() || review.user.is_master() {
        return Ok(());
    }
    match review.resource {
        "roles" | "clusterroles" => check_role(auth, review),
        "rolebindings" | "clusterrolebindings" => check_binding(auth, review),
        _ => Ok(()),
    }
}

fn check_role(auth: &Auth, review: &Review<'_>) -> Result<(), ApiError> {
    let unchanged = |field: &str| review.object.get(field) == review.old.get(field);
    if review.operation == Operation::Update && unchanged("rules") && unchanged("aggregationRule") {
        return Ok(());
    }
    if may(auth, review, "escalate", review.resource, review.name) {
        return Ok(());
    }
    if !review.object["aggregationRule"].is_null() && !unchanged("aggregationRule") {
        let everything = [everywhere(), every_path()];
        if !missing(auth, review, &everything).is_empty() {
            return Err(review.refuse("must have cluster-admin privileges to use an aggregationRule"));
        }
    }
    let rules = Option::<Vec<Rule>>::deserialize(&review.object["rules"]).ok().flatten().unwrap_or_default();
    refuse_missing(review, &missing(auth, review, &rules))
}

fn check_binding(auth: &Auth, review: &Review<'_>) -> Result<(), ApiError> {
    let unchanged = |field: &str| review.object.get(field) == review.old.get(field);
    if review.operation == Operation::Update && unchanged("roleRef") && unchanged("subjects") {
        return Ok(());
    }
    let role = RoleReference::deserialize(&review.object["roleRef"]).unwrap_or_default();
    let resource = if role.kind == "ClusterRole" { "clusterroles" } else { "roles" };
    if may(auth, review, "bind", resource, &role.name) {
        return Ok(());
    }
    let rules = auth.authorizer().ask(|policy| policy.rules_of_role(&role, review.namespace).map(<[Rule]>::to_vec));
    let rules = rules.ok_or_else(|| ApiError::not_found(Subject { group: GROUP, resource }, &role.name))?;
    refuse_missing(review, &missing(auth, review, &rules))
}

fn may(auth: &Auth, review: &Review<'_>, verb: &str, resource: &str, name: &str) -> bool {
    let target = Target::Resource { group: GROUP, resource, subresource: "", namespace: review.namespace, name };
    auth.authorizer().allows(review.user, &Attributes { verb, target })
}

fn missing(auth: &Auth, review: &Review<'_>, rules: &[Rule]) -> Vec<Rule> {
    auth.authorizer().ask(|policy| {
        let held: Vec<&Rule> = policy.rules_of(review.user, review.namespace).collect();
        uncovered(&held, rules)
    })
}

fn refuse_missing(review: &Review<'_>, missing: &[Rule]) -> Result<(), ApiError> {
    if missing.is_empty() { Ok(()) } else { Err(review.refuse(describe_missing(review.user, missing))) }
}

fn everywhere() -> Rule {
    let all = || vec!["*".to_owned()];
    Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() }
}

fn every_path() -> Rule {
    let all = || vec!["*".to_owned()];
    Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() }
}

#[cfg(test)]
mod tests {
    use super::super::review::tests::creation;
    use super::*;
    use crate::auth::User;
    use serde_json::{Value, json};
    use windlass_store::{Store, Write};

    fn rule(verbs: &[&str]) -> Value {
        json!({"verbs": verbs, "apiGroups": [""], "resources": ["pods"]})
    }

    async fn auth(extra: Value) -> Auth {
        let store = Store::in_memory();
        let role = json!({"rules": [rule(&["get"]), extra]});
        let reference = json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": "own"});
        let binding = json!({"roleRef": reference, "subjects": [{"kind": "User", "name": "ann"}]});
        let writes = vec![
            Write::create(format!("/{GROUP}/clusterroles/own"), role.to_string()),
            Write::create(format!("/{GROUP}/clusterroles/more"), json!({"rules": [rule(&["delete"])]}).to_string()),
            Write::create(format!("/{GROUP}/clusterrolebindings/own"), binding.to_string()),
        ];
        store.commit(writes).await.unwrap();
        Auth::new(store)
    }

    fn refused(auth: &Auth, resource: &str, object: Value) -> bool {
        let ann = User::new("ann", ["people"]);
        check(auth, &creation(&ann, GROUP, resource, "red", object)).is_err()
    }

    #[tokio::test]
    async fn a_role_has_no_more_than_its_author() {
        let plain = auth(json!({})).await;
        assert!(!refused(&plain, "roles", json!({"rules": [rule(&["get"])]})));
        assert!(refused(&plain, "roles", json!({"rules": [rule(&["get", "list"])]})));
        let sum = json!({"aggregationRule": {"clusterRoleSelectors": [{}]}});
        assert!(refused(&plain, "clusterroles", sum));
        let escalate = auth(json!({"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["roles"]})).await;
        assert!(!refused(&escalate, "roles", json!({"rules": [rule(&["list"])]})));
    }

    #[tokio::test]
    async fn a_binding_gives_no_more_than_its_author_has() {
        let plain = auth(json!({})).await;
        let binding = |name: &str| json!({"roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}});
        assert!(!refused(&plain, "rolebindings", binding("own")));
        assert!(refused(&plain, "rolebindings", binding("more")));
        assert!(refused(&plain, "rolebindings", binding("ghost")));
        let bind = auth(json!({"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"]})).await;
        assert!(!refused(&bind, "rolebindings", binding("more")));
    }

    #[tokio::test]
    async fn an_update_that_grants_nothing_new_is_fine() {
        let plain = auth(json!({})).await;
        let ann = User::new("ann", ["people"]);
        let mut review = creation(&ann, GROUP, "roles", "red", json!({"rules": [rule(&["list"])]}));
        review.operation = Operation::Update;
        review.old = json!({"rules": [rule(&["list"])]});
        assert!(check(&plain, &review).is_ok());
        review.old = json!({"rules": []});
        assert!(check(&plain, &review).is_err());
    }
}
