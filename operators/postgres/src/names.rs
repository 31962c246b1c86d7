//! The names of what belongs to a cluster, and the words on it.

use std::collections::BTreeMap;

use windlass::names::{APP_INSTANCE, APP_NAME};

/// The label of Pods that says what they serve as: [`PRIMARY`] or [`REPLICA`].
pub(crate) const ROLE: &str = "postgres.windlass.dev/role";
/// The value of [`ROLE`] of the one that takes writes.
pub(crate) const PRIMARY: &str = "primary";
/// The value of [`ROLE`] of those that follow.
pub(crate) const REPLICA: &str = "replica";
/// The label that names a member.
pub(crate) const MEMBER: &str = "postgres.windlass.dev/member";
/// The annotation of Pods with what the member says of itself.
pub(crate) const REPORT: &str = "postgres.windlass.dev/report";
/// The annotation of workloads and Pods with a hash of what they were made from.
pub(crate) const REVISION: &str = "postgres.windlass.dev/revision";
/// The annotation of a cluster that asks for another primary: the name of a member, or `any`; more words make it a new request.
pub const SWITCHOVER: &str = "postgres.windlass.dev/switchover";

/// The setting by which a server says which settings it has read.
pub(crate) const SETTINGS: &str = "windlass.settings";
/// Where the server listens.
pub(crate) const POSTGRES_PORT: u16 = 5432;
/// Where the supervisor answers.
pub(crate) const STATUS_PORT: u16 = 8008;
/// The database and its owner that every cluster begins with.
pub(crate) const APPLICATION: &str = "app";
/// The role that standbys connect as.
pub(crate) const REPLICATION: &str = "streaming_replica";
/// The role that may do everything.
pub(crate) const SUPERUSER: &str = "postgres";
/// The key of the plan in its ConfigMap.
pub(crate) const PLAN_KEY: &str = "plan.json";

/// The member with this number.
pub(crate) fn member(cluster: &str, number: u32) -> String {
    format!("{cluster}-{number}")
}

/// The Pod of a member.
pub(crate) fn pod(member: &str) -> String {
    format!("{member}-0")
}

/// The Service by which members find each other.
pub(crate) fn members_service(cluster: &str) -> String {
    format!("{cluster}-members")
}

/// The ConfigMap that tells the members what is wanted.
pub(crate) fn plan(cluster: &str) -> String {
    format!("{cluster}-plan")
}

/// The Lease of the primary.
pub(crate) fn lease(cluster: &str) -> String {
    format!("{cluster}-primary")
}

/// The Secret of a database role.
pub(crate) fn secret(cluster: &str, role: &str) -> String {
    format!("{cluster}-{role}")
}

/// The name of a member in the network.
pub(crate) fn host(cluster: &str, member: &str, namespace: &str) -> String {
    format!("{}.{}.{namespace}.svc", pod(member), members_service(cluster))
}

/// The replication slot of a member on the primary.
pub(crate) fn slot(member: &str) -> String {
    member.replace(['-', '.'], "_")
}

/// The labels of everything that belongs to a cluster.
pub(crate) fn labels(cluster: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(APP_NAME.to_owned(), "postgres".to_owned()), (APP_INSTANCE.to_owned(), cluster.to_owned())])
}

/// The labels of the Pods that serve as `role`.
pub(crate) fn role_labels(cluster: &str, role: &str) -> BTreeMap<String, String> {
    let mut labels = labels(cluster);
    labels.insert(ROLE.to_owned(), role.to_owned());
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_names_in_the_network_and_on_the_primary() {
        assert_eq!(slot(&member("my-db", 1)), "my_db_1");
        assert_eq!(host("db", "db-1", "shop"), "db-1-0.db-members.shop.svc");
    }
}
