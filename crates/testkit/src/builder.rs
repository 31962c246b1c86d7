//! What a test cluster is told before it starts.

use windlass_cluster::{Cluster, ClusterConfig, Profile};
use windlass_controllers::{Name, Set};

use crate::cluster::Ground;
use crate::kubernetes::{self, Kubernetes};
use crate::{TestClock, TestCluster};

/// A test cluster before it starts.
#[derive(Clone, Debug)]
#[must_use = "a cluster runs only after `start`"]
pub struct Builder {
    controllers: Set,
    clock: TestClock,
    nodes: usize,
}

impl Default for Builder {
    fn default() -> Self {
        Self { controllers: Set::gc(), clock: TestClock::default(), nodes: 1 }
    }
}

impl Builder {
    /// The controllers of `profile`: none with `Bare`; garbage collection, namespaces and service accounts with `Gc`,
    /// the default; all of them and a node that only seems to run Pods with `Workloads`.
    ///
    /// # Panics
    /// With `Node`: a node that runs processes needs a directory, which [`Cluster::start`] takes.
    pub fn profile(self, profile: Profile) -> Self {
        let controllers = match profile {
            Profile::Bare => Set::none(),
            Profile::Gc => Set::gc(),
            Profile::Workloads => Set::workloads(),
            Profile::Node => panic!("a test cluster has no disk for real Pods; use windlass_cluster::Cluster"),
        };
        Self { controllers, ..self }
    }

    /// Switches a controller on.
    pub fn with(self, controller: Name) -> Self {
        Self { controllers: self.controllers.with(controller), ..self }
    }

    /// Switches a controller off.
    pub fn without(self, controller: Name) -> Self {
        Self { controllers: self.controllers.without(controller), ..self }
    }

    /// How many nodes only seem to run Pods, with `Workloads`: `fake-node-0` and so on. One, if not said otherwise.
    pub fn nodes(self, count: usize) -> Self {
        Self { nodes: count, ..self }
    }

    /// Takes the time from `clock`.
    pub fn clock(self, clock: TestClock) -> Self {
        Self { clock, ..self }
    }

    /// Starts the cluster; when this returns, it answers.
    ///
    /// # Panics
    /// If it cannot start.
    pub async fn start(self) -> TestCluster {
        if let Some(programs) = kubernetes::programs() {
            let kubernetes = Kubernetes::start(programs, &self.controllers, self.nodes).await;
            return TestCluster::new(Ground::Kubernetes(Box::new(kubernetes)), self.clock);
        }
        let config = ClusterConfig {
            controllers: Some(self.controllers),
            clock: self.clock.clock(),
            fake_nodes: self.nodes,
            ..ClusterConfig::in_memory(Profile::Bare)
        };
        match Cluster::start(config).await {
            Ok(cluster) => TestCluster::new(Ground::Embedded(Box::new(cluster)), self.clock),
            Err(error) => panic!("the test cluster does not start: {error}"),
        }
    }
}
