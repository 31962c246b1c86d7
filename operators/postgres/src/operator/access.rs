//! What the members of a cluster may do in the API: hold their lease, read their plan, say what they are.

use windlass::k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use windlass::prelude::*;

use super::metadata;
use crate::kind::PostgresCluster;
use crate::names;

const RBAC: &str = "rbac.authorization.k8s.io";

/// The account of the members.
pub(super) fn account(cluster: &PostgresCluster) -> ServiceAccount {
    let name = cluster.name_any();
    ServiceAccount { metadata: metadata(&name, members(&name)), ..ServiceAccount::default() }
}

/// What the account may do, with nothing but the cluster's own objects.
pub(super) fn role(cluster: &PostgresCluster, all: &[String]) -> Role {
    let name = cluster.name_any();
    let rule = |group: &str, resource: &str, objects: Vec<String>, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        resource_names: Some(objects),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    let watch = ["get", "list", "watch"];
    let pods = all.iter().map(|member| names::pod(member)).collect();
    let rules = vec![
        rule("coordination.k8s.io", "leases", vec![names::lease(&name)], &["get", "list", "watch", "update"]),
        rule("", "configmaps", vec![names::plan(&name)], &watch),
        rule("", "pods", pods, &["get", "patch"]),
    ];
    Role { metadata: metadata(&name, members(&name)), rules: Some(rules) }
}

/// That it may.
pub(super) fn binding(cluster: &PostgresCluster) -> RoleBinding {
    let name = cluster.name_any();
    let subject = Subject {
        kind: "ServiceAccount".into(),
        name: members(&name),
        namespace: cluster.namespace(),
        ..Subject::default()
    };
    RoleBinding {
        metadata: metadata(&name, members(&name)),
        role_ref: RoleRef { api_group: Some(RBAC.into()), kind: "Role".into(), name: members(&name) },
        subjects: Some(vec![subject]),
    }
}

/// The name of the account, the role and the binding.
pub(super) fn members(cluster: &str) -> String {
    names::members_service(cluster)
}
