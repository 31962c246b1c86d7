//! All controllers of a set, run together.

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::ReplicationController;
use kube::Client;
use tokio_util::sync::CancellationToken;
use windlass_runtime::{Clock, Manager, ManagerConfig, RunError};

use crate::fake_node::FakeUsage;
use crate::kinds::Kinds;
use crate::set::{Name, Set};
use crate::volume::VolumeStore;
use crate::{
    autoscaler, cronjob, daemonset, deployment, disruption, endpoints, fake_node, garbage, job, namespace,
    node_lifecycle, pod_gc, quota, replicaset, scheduler, service_account, statefulset, taint_eviction, token_secret,
    volume,
};

/// Runs the controllers of `set` until `stop`.
///
/// # Errors
/// See [`Controllers::run`].
pub async fn run(client: Client, set: Set, stop: CancellationToken) -> Result<(), RunError> {
    Controllers::new(client, set).run(stop).await
}

/// The controllers of a set, before they run.
pub struct Controllers {
    client: Client,
    set: Set,
    clock: Clock,
    root_ca: Option<String>,
    fake_nodes: usize,
    fake_usage: FakeUsage,
    volumes: Option<VolumeStore>,
}

impl Controllers {
    /// The controllers of `set`, acting through `client`.
    pub fn new(client: Client, set: Set) -> Self {
        Self {
            client,
            set,
            clock: Clock::system(),
            root_ca: None,
            fake_nodes: 1,
            fake_usage: FakeUsage::default(),
            volumes: None,
        }
    }

    /// Takes the time from `clock`.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The certificate authority of the cluster (PEM), for `kube-root-ca.crt` in every namespace.
    #[must_use]
    pub fn root_ca(mut self, pem: impl Into<String>) -> Self {
        self.root_ca = Some(pem.into());
        self
    }

    /// How many nodes only seem to run Pods, if that controller runs; at most [`FAKE_NODES_MAX`](crate::FAKE_NODES_MAX).
    #[must_use]
    pub fn fake_nodes(mut self, count: usize) -> Self {
        self.fake_nodes = count;
        self
    }

    /// Lets `usage` tell what Pods seem to use that only seem to run.
    #[must_use]
    pub fn fake_usage(mut self, usage: FakeUsage) -> Self {
        self.fake_usage = usage;
        self
    }

    /// Where persistent volumes are made; without one, they are objects only.
    #[must_use]
    pub fn volumes(mut self, store: VolumeStore) -> Self {
        self.volumes = Some(store);
        self
    }

    /// Runs until `stop`.
    ///
    /// # Errors
    /// None at present: controllers neither listen nor compete. The type is that of the runtime.
    pub async fn run(self, stop: CancellationToken) -> Result<(), RunError> {
        let common = ManagerConfig { journal: false, ..ManagerConfig::new("windlass-controllers") };
        // What these write over and over is progress of others; looking closer costs more than it tells.
        let config = ManagerConfig { clock: self.clock.clone(), notice_loops: false, ..common };
        let mut manager = Manager::new(self.client.clone(), config);
        self.install(&mut manager);
        manager.run(stop).await
    }

    /// Puts them to work in a manager that somebody else runs: its client and its clock are theirs.
    pub fn install(&self, manager: &mut Manager) {
        self.add_for_all_kinds(manager);
        self.add_housekeeping(manager);
        self.add_workloads(manager);
    }

    /// Adds those that care for objects of any kind.
    fn add_for_all_kinds(&self, manager: &mut Manager) {
        type Add = fn(&mut Manager, &Kinds);
        let table: [(Name, Add); 4] = [
            (Name::GarbageCollector, garbage::add),
            (Name::Namespace, namespace::add),
            (Name::ResourceQuota, quota::add),
            (Name::HorizontalPodAutoscaler, autoscaler::add),
        ];
        let wanted: Vec<Add> = table.into_iter().filter(|(name, _)| self.set.has(*name)).map(|(_, add)| add).collect();
        if wanted.is_empty() {
            return;
        }
        let kinds = Kinds::new(manager);
        wanted.into_iter().for_each(|add| add(manager, &kinds));
    }

    fn add_housekeeping(&self, manager: &mut Manager) {
        let has = |name| self.set.has(name);
        if has(Name::ServiceAccount) {
            service_account::add_accounts(manager);
        }
        if let Some(pem) = self.root_ca.clone().filter(|_| has(Name::RootCa)) {
            service_account::add_root_ca(manager, pem);
        }
        if let Some(pem) = self.root_ca.clone().filter(|_| has(Name::TokenSecret)) {
            token_secret::add(manager, pem);
        }
    }

    fn add_workloads(&self, manager: &mut Manager) {
        type Add = fn(&mut Manager);
        let table: [(Name, Add); 13] = [
            (Name::ReplicaSet, replicaset::add::<ReplicaSet>),
            (Name::ReplicationController, replicaset::add::<ReplicationController>),
            (Name::Deployment, deployment::add),
            (Name::StatefulSet, statefulset::add),
            (Name::DaemonSet, daemonset::add),
            (Name::Job, job::add),
            (Name::CronJob, cronjob::add),
            (Name::Disruption, disruption::add),
            (Name::Endpoints, endpoints::add),
            (Name::Scheduler, scheduler::add),
            (Name::PodGc, pod_gc::add),
            (Name::NodeLifecycle, node_lifecycle::add),
            (Name::TaintEviction, taint_eviction::add),
        ];
        for (name, add) in table {
            if self.set.has(name) {
                add(manager);
            }
        }
        if self.set.has(Name::Volumes) {
            volume::add(manager, self.volumes.clone());
        }
        if self.set.has(Name::FakeNode) {
            fake_node::add(manager, self.fake_nodes, self.fake_usage.clone());
        }
    }
}
