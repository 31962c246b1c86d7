//! From a `PostgresCluster` to what makes it: decided from the resource and what its members say.

mod access;
mod network;
mod rolling;
mod survey;
mod tell;
mod upgrade;
pub(crate) mod workload;

use std::collections::BTreeMap;

use rand::Rng;
use rand::distr::Alphanumeric;
use windlass::k8s_openapi::api::coordination::v1::Lease;
use windlass::k8s_openapi::api::policy::v1::PodDisruptionBudget;
use windlass::k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use windlass::prelude::*;

use self::rolling::Turn;
use self::survey::Survey;
use crate::kind::{DeletionPolicy, PostgresCluster, PostgresClusterStatus};
use crate::supervisor::Supervisor;
use crate::wire::{Origin, Plan};
use crate::{archive, names};

/// The length of passwords.
const PASSWORD_CHARS: usize = 32;
/// The roles that have a Secret: the Secret's name ends with it, and what the role is called in the database.
const CREDENTIALS: [(&str, &str); 3] =
    [("superuser", names::SUPERUSER), ("replication", names::REPLICATION), ("app", names::APPLICATION)];

/// Keeps PostgreSQL clusters.
pub struct PostgresOperator {
    /// How members get the program that supervises them.
    pub(crate) supervisor: Supervisor,
    /// Where passwords come from.
    pub(crate) password: fn() -> String,
}

impl Default for PostgresOperator {
    fn default() -> Self {
        Self { supervisor: Supervisor::of_this_process(), password: chance }
    }
}

fn chance() -> String {
    rand::rng().sample_iter(Alphanumeric).take(PASSWORD_CHARS).map(char::from).collect()
}

impl Operator for PostgresOperator {
    type Resource = PostgresCluster;

    fn desired(&self, cluster: &PostgresCluster, world: &World) -> Outcome<PostgresClusterStatus> {
        let name = cluster.name_any();
        let survey = Survey::of(cluster, world);
        let turn = rolling::turn(&survey);
        let mut desired = Desired::new()
            .child(config_map(cluster, &plan(cluster, &survey, &turn)))
            .child(Lease { metadata: metadata(&name, names::lease(&name)), ..Lease::default() })
            .child(access::account(cluster))
            .child(access::role(cluster, &survey.all()))
            .child(access::binding(cluster))
            .child(network::budget(cluster));
        for service in network::services(cluster) {
            desired = desired.child(service);
        }
        for (suffix, role) in CREDENTIALS {
            let secret = names::secret(&name, suffix);
            // A password is made once; whoever changes it changes it in the database, too.
            desired = match world.child::<Secret>(cluster, &secret) {
                Some(_) => desired.keep::<Secret>(secret),
                None => desired.child(network::credentials(cluster, secret, role, &(self.password)())),
            };
        }
        for member in &survey.wanted {
            desired = if turn.waits.contains(member) {
                desired.keep::<StatefulSet>(member.clone())
            } else {
                desired.child(workload::member(cluster, member, &self.supervisor))
            };
        }
        for member in turn.leaving.iter() {
            desired = desired.keep::<StatefulSet>(member.clone());
        }
        tell::outcome(desired, cluster, &survey, &turn)
    }
}

/// What the members are told.
fn plan(cluster: &PostgresCluster, survey: &Survey, turn: &Turn) -> Plan {
    let spec = &cluster.spec;
    Plan {
        members: turn.roster.clone(),
        synchronous: survey.synchronous,
        parameters: spec.parameters.clone(),
        lease_seconds: spec.lease_seconds,
        successor: turn.successor.clone(),
        archive: spec.archive.as_ref().map(|_| archives(cluster)),
        origin: spec.recovery.as_ref().map(|it| Origin { path: it.path.clone(), time: it.time.clone() }),
        restart: turn.restart.clone(),
    }
}

/// The folder of the archives of this resource, and of no other of the same name.
fn archives(cluster: &PostgresCluster) -> String {
    let (namespace, uid) = (cluster.namespace().unwrap_or_default(), cluster.uid().unwrap_or_default());
    archive::prefix(&namespace, &cluster.name_any(), &uid)
}

fn config_map(cluster: &PostgresCluster, plan: &Plan) -> ConfigMap {
    let name = cluster.name_any();
    let text = serde_json::to_string_pretty(plan).expect("a plan is plain data");
    let data = BTreeMap::from([(names::PLAN_KEY.to_owned(), text)]);
    ConfigMap { metadata: metadata(&name, names::plan(&name)), data: Some(data), ..ConfigMap::default() }
}

fn metadata(cluster: &str, name: impl Into<String>) -> ObjectMeta {
    ObjectMeta { labels: Some(names::labels(cluster)), ..named(name) }
}

/// Declares the kinds that the operator makes and reads.
pub(crate) fn declare(app: windlass::App<PostgresOperator>) -> windlass::App<PostgresOperator> {
    app.owns::<StatefulSet>()
        .owns::<Service>()
        .owns::<ConfigMap>()
        .owns::<Secret>()
        .owns::<ServiceAccount>()
        .owns::<Role>()
        .owns::<RoleBinding>()
        .owns::<PodDisruptionBudget>()
        .owns::<Lease>()
        .pods()
        .upgrades()
        .releases(|cluster| cluster.spec.deletion_policy == DeletionPolicy::Orphan)
        // Nobody can give away what they do not have: members may hold the lease and say what they are.
        .allow("coordination.k8s.io", "leases", &["update"])
        .allow("", "pods", &["patch"])
}
