//! The lives of the operator in one run.

use std::sync::Arc;

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass::ManifestOptions;
use windlass::runtime::journal::Question;
use windlass::runtime::{LeaderConfig, Manager, ManagerConfig, Namespaces, RunError};
use windlass_apiserver::server;

use super::gate::Gate;
use super::laboratory::Make;
use super::session::{DOWN, Order, Session};

/// How many histories of the journal are looked at.
const HISTORIES_MAX: usize = 64;

/// Runs the operator, one life after the other.
pub(crate) struct Operating {
    pub(crate) make: Make,
    pub(crate) session: Arc<Session>,
    /// Whether the operator is a part of the cluster.
    pub(crate) is_cluster: bool,
    /// The API as the operator has it.
    pub(crate) api: server::Local,
    /// The API as everybody else has it.
    pub(crate) master: server::Local,
}

impl Operating {
    pub(crate) async fn run(self, mut orders: mpsc::Receiver<Order>) {
        // Those that do not lead any more, and do not know it yet.
        let mut old = Vec::new();
        loop {
            let life = self.session.lock().life;
            let mut living = Living(self.live(life));
            let order = tokio::select! {
                biased;
                order = orders.recv() => order,
                ended = &mut living.0 => {
                    self.session.violate(format!("the operator ended by itself: {ended:?}"));
                    orders.recv().await
                }
            };
            match order {
                None => return,
                Some(Order::Replace) => old.push(living),
                Some(Order::Crash) => {
                    drop(living);
                    tokio::time::sleep(DOWN).await;
                }
                Some(Order::Down(start)) => {
                    drop(living);
                    drop(start.await);
                }
            }
        }
    }

    fn live(&self, life: usize) -> JoinHandle<Result<(), RunError>> {
        let program = (self.make)();
        let gate = Gate { session: self.session.clone(), life, api: self.api.clone(), master: self.master.clone() };
        let client = Client::new(gate, "default");
        // Leases cost calls: only where one is lost there is one.
        let leader = self.session.plan.has_leader().then(|| {
            let config = LeaderConfig::new(ManifestOptions::of(&*program).namespace, program.name());
            LeaderConfig { identity: format!("life-{life}"), ..config }
        });
        let clock = self.session.clock().clone();
        // What the parts of a cluster write over and over is the progress of others.
        let notice_loops = !self.is_cluster;
        let config = ManagerConfig { clock, leader, notice_loops, ..ManagerConfig::new(program.name()) };
        let mut manager = Manager::new(client, config);
        program.install(&mut manager, Namespaces::all());
        let (metrics, runs) = (manager.metrics().clone(), manager.runs());
        self.session.hear("the metrics", move || metrics.render());
        self.session.hear("the journal", move || {
            let histories = runs.as_ref().map(|runs| runs.find(&Question::default(), HISTORIES_MAX).0);
            serde_json::to_string(&histories).unwrap_or_default()
        });
        tokio::spawn(manager.run(CancellationToken::new()))
    }
}

/// A life of the operator; it ends at once when this is dropped.
struct Living(JoinHandle<Result<(), RunError>>);

impl Drop for Living {
    fn drop(&mut self) {
        self.0.abort();
    }
}
