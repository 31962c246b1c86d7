//! Which controllers run.

use std::collections::BTreeSet;

/// A controller that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// Deletes objects whose owners are gone.
    GarbageCollector,
    /// Empties namespaces that are deleted.
    Namespace,
    /// Gives every namespace its service account `default`.
    ServiceAccount,
    /// Publishes the certificate authority in every namespace.
    RootCa,
    /// Fills Secrets that are for the token of a service account.
    TokenSecret,
    /// Counts what ResourceQuotas limit.
    ResourceQuota,
    /// Keeps the number of Pods of ReplicaSets.
    ReplicaSet,
    /// Keeps the number of Pods of ReplicationControllers.
    ReplicationController,
    /// Rolls out Deployments.
    Deployment,
    /// Keeps the named Pods of StatefulSets.
    StatefulSet,
    /// Keeps a Pod of each DaemonSet on every node that suits.
    DaemonSet,
    /// Runs Jobs to their end.
    Job,
    /// Makes the Jobs of CronJobs.
    CronJob,
    /// Scales what HorizontalPodAutoscalers are for.
    HorizontalPodAutoscaler,
    /// Says how many Pods of a PodDisruptionBudget may be evicted.
    Disruption,
    /// Keeps Endpoints and EndpointSlices of Services.
    Endpoints,
    /// Gives Pods a node.
    Scheduler,
    /// Deletes Pods of nodes that are gone.
    PodGc,
    /// Notices nodes that fall silent, and taints nodes by their conditions.
    NodeLifecycle,
    /// Deletes Pods that do not tolerate the `NoExecute` taints of their node.
    TaintEviction,
    /// Binds claims to persistent volumes, makes volumes for them and reclaims them.
    Volumes,
    /// Plays nodes on which Pods only seem to run.
    FakeNode,
}

/// The controllers that run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set(BTreeSet<Name>);

impl Set {
    /// No controller.
    pub fn none() -> Self {
        Self::default()
    }

    /// Garbage collection, namespaces, what every namespace has, and quotas.
    pub fn gc() -> Self {
        Self(
            [
                Name::GarbageCollector,
                Name::Namespace,
                Name::ServiceAccount,
                Name::RootCa,
                Name::TokenSecret,
                Name::ResourceQuota,
            ]
            .into(),
        )
    }

    /// All controllers for a cluster with a node.
    pub fn node() -> Self {
        let workloads = [
            Name::ReplicaSet,
            Name::ReplicationController,
            Name::Deployment,
            Name::StatefulSet,
            Name::DaemonSet,
            Name::Job,
            Name::CronJob,
            Name::HorizontalPodAutoscaler,
            Name::Disruption,
            Name::Endpoints,
            Name::Scheduler,
            Name::PodGc,
            Name::NodeLifecycle,
            Name::TaintEviction,
            Name::Volumes,
        ];
        workloads.into_iter().fold(Self::gc(), Self::with)
    }

    /// All controllers, and a node that only seems to run its Pods.
    pub fn workloads() -> Self {
        Self::node().with(Name::FakeNode)
    }

    /// The set with one more.
    #[must_use]
    pub fn with(mut self, name: Name) -> Self {
        self.0.insert(name);
        self
    }

    /// The set with one less.
    #[must_use]
    pub fn without(mut self, name: Name) -> Self {
        self.0.remove(&name);
        self
    }

    /// Whether the controller runs.
    pub fn has(&self, name: Name) -> bool {
        self.0.contains(&name)
    }
}
