//! Webhooks of an operator, served to a cluster in this process.

#![allow(dead_code, reason = "every test file uses its own part")]

use tokio_util::sync::CancellationToken;
use windlass::Program;
use windlass::runtime::webhook::{Serving, Way, Webhooks};
use windlass::runtime::{Clock, Health, Manager, ManagerConfig};
use windlass_testkit::TestCluster;

/// A cluster whose API server asks webhooks of this process.
pub(crate) struct Served {
    pub(crate) cluster: TestCluster,
    pub(crate) health: Health,
    stop: CancellationToken,
    serving: Serving,
}

impl Served {
    pub(crate) async fn start(program: &dyn Program) -> Self {
        Self::on(TestCluster::start().await, program, Clock::system()).await
    }

    pub(crate) async fn on(cluster: TestCluster, program: &dyn Program, clock: Clock) -> Self {
        let (health, stop) = (Health::default(), CancellationToken::new());
        let mut serving = serve(&cluster, program, &health, clock, &stop).await;
        serving.ready().await;
        // The definitions came with the webhooks; now they have to be served, too.
        let crds = program.crds();
        let established = |all: &[windlass::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition]| {
            all.len() >= crds.len() && all.iter().all(|crd| {
                let conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
                conditions.into_iter().any(|it| it.type_ == "Established" && it.status == "True")
            })
        };
        windlass_testkit::until(windlass::kube::Api::all(cluster.client()), established).await;
        Self { cluster, health, stop, serving }
    }

    /// The same cluster with other webhooks.
    pub(crate) async fn restart(self, program: &dyn Program) -> Self {
        self.stop.cancel();
        self.serving.ended().await;
        Self::on(self.cluster, program, Clock::system()).await
    }

    /// Ends the webhooks, not the cluster.
    pub(crate) async fn end_webhooks(self) -> TestCluster {
        self.stop.cancel();
        self.serving.ended().await;
        self.cluster
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.serving.ended().await;
        self.cluster.stop().await;
    }
}

/// Serves the webhooks of `program` on a port of the loopback address.
pub(crate) async fn serve(
    cluster: &TestCluster,
    program: &dyn Program,
    health: &Health,
    clock: Clock,
    stop: &CancellationToken,
) -> Serving {
    let webhooks = Webhooks {
        registration: program.registration(Vec::new()),
        address: "127.0.0.1:0".parse().unwrap(),
        way: Way::Address { namespace: "default".into() },
    };
    let check = health.check("webhooks", "are not served yet");
    let manager = Manager::new(cluster.client(), ManagerConfig { clock, ..ManagerConfig::new(program.name()) });
    webhooks.start(&manager.handle(), check, stop.clone()).await.unwrap()
}
