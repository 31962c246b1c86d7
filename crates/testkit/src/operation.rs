//! Operators at work on a test cluster.

use std::net::Ipv4Addr;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass::runtime::tap::Tap;
use windlass::runtime::webhook::{Serving, Way, Webhooks};
use windlass::runtime::{Health, Manager, ManagerConfig, Metrics, Namespaces, RunError};
use windlass::{Chain, Program};

use crate::{TestCluster, wait};

/// Where the keys of webhooks are.
const NAMESPACE: &str = "default";

/// An operator at work; it ends when this is dropped, and [`Operation::stop`] waits for that.
pub struct Operation {
    tap: Tap,
    health: Health,
    metrics: Metrics,
    stop: DropGuard,
    running: JoinHandle<Result<(), RunError>>,
    serving: Option<Serving>,
}

impl TestCluster {
    /// Runs an operator on this cluster, in this process: its kinds are served, its webhooks are asked, and its time is
    /// that of the cluster. When this returns, resources can be made.
    ///
    /// # Panics
    /// If a definition is refused, or not served within [`crate::PATIENCE`].
    pub async fn run(&self, program: &dyn Program) -> Operation {
        let stop = CancellationToken::new();
        let config = ManagerConfig { clock: self.clock().clock(), ..ManagerConfig::new(program.name()) };
        let mut manager = Manager::new(self.client(), config);
        let (health, metrics) = (manager.health().clone(), manager.metrics().clone());
        self.define(program.registration(Vec::new()).chains.iter().map(Chain::definition)).await;
        let serving = serve(program, &manager, &stop).await;
        program.install(&mut manager, Namespaces::all());
        let tap = manager.tap().clone();
        let running = tokio::spawn(manager.run(stop.clone()));
        Operation { tap, health, metrics, stop: stop.drop_guard(), running, serving }
    }
}

/// Serves the webhooks of `program` to the API server, if it has some.
async fn serve(program: &dyn Program, manager: &Manager, stop: &CancellationToken) -> Option<Serving> {
    let registration = program.registration(Vec::new());
    if registration.is_empty() {
        return None;
    }
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let webhooks = Webhooks { registration, address, way: Way::Address { namespace: NAMESPACE.to_owned() } };
    let check = manager.health().check("webhooks", "are not served yet");
    let mut serving = match webhooks.start(&manager.handle(), check, stop.clone()).await {
        Ok(serving) => serving,
        Err(error) => panic!("the webhooks are not served: {error}"),
    };
    if tokio::time::timeout(wait::PATIENCE, serving.ready()).await.is_err() {
        panic!("the API server was not told of the webhooks: {:?}", manager.health().report());
    }
    Some(serving)
}

impl Operation {
    /// The calls that it makes: see [`Tap`].
    pub fn tap(&self) -> &Tap {
        &self.tap
    }

    /// What is well with it and what is not, as its probes would say.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// What it counts.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Ends it and waits for that; what it made stays.
    ///
    /// # Panics
    /// If it ended before by itself.
    pub async fn stop(self) {
        drop(self.stop);
        match self.running.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => panic!("the operator ended: {error}"),
            Err(error) => panic!("the operator ended: {error}"),
        }
        if let Some(serving) = self.serving {
            serving.ended().await;
        }
    }
}
