//! Vaults, whose handlers write down what they do and fail when they are told to.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::notes::{Running, eventually};
use windlass::prelude::*;
use windlass::runtime::{Clock, LeaderConfig, Manager, ManagerConfig, Namespaces};
use windlass::serde_json::{Value, json};
use windlass::{App, Handlers, Program, condition, names};
use windlass_testkit::TestCluster;

/// Something that keeps things.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[resource(group = "vaults.example.com", version = "v1", kind = "Vault", status = VaultStatus)]
pub(crate) struct VaultSpec {
    pub(crate) size: u32,
    #[serde(default)]
    pub(crate) region: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) password: Option<String>,
}

/// Where it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct VaultStatus {
    #[serde(default)]
    pub(crate) address: String,
}

/// What handlers did, and what they are told to do.
#[derive(Clone, Default)]
pub(crate) struct Stage(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    diary: Vec<String>,
    troubles: HashMap<String, VecDeque<Failure>>,
    at_work: usize,
    clashes: usize,
}

impl Stage {
    /// Lets the next runs of `id` fail like this.
    pub(crate) fn trouble(&self, id: &str, failure: Failure) {
        self.lock().troubles.entry(id.to_owned()).or_default().push_back(failure);
    }

    /// A handler that writes down `words`, and does as it is told.
    pub(crate) async fn play(&self, words: String) -> Result<(), Failure> {
        let id = words.split(' ').next().unwrap_or_default().to_owned();
        let trouble = {
            let mut script = self.lock();
            script.diary.push(words);
            script.clashes += script.at_work;
            script.at_work += 1;
            script.troubles.get_mut(&id).and_then(VecDeque::pop_front)
        };
        tokio::task::yield_now().await;
        self.lock().at_work -= 1;
        trouble.map_or(Ok(()), Err)
    }

    pub(crate) fn diary(&self) -> Vec<String> {
        self.lock().diary.clone()
    }

    /// How often two handlers were at work at the same time.
    pub(crate) fn clashes(&self) -> usize {
        self.lock().clashes
    }

    /// Waits until the diary ends with this.
    pub(crate) async fn until(&self, last: &str) {
        eventually(&format!("{last} is the last of {:?}", self.diary()), || {
            self.diary().last().is_some_and(|known| known == last)
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
    }
}

/// A handler that plays `id` with the size of the vault and the attempt.
macro_rules! plays {
    ($stage:expr, $id:literal) => {{
        let stage = $stage.clone();
        move |vault: std::sync::Arc<crate::handlers::stage::Vault>,
              cx: windlass::prelude::HandlerContext<crate::handlers::stage::Vault>| {
            let stage = stage.clone();
            async move { stage.play(format!("{} {} #{}", $id, vault.spec.size, cx.attempt())).await }
        }
    }};
}
pub(crate) use plays;

/// Vaults with a handler of each sort that can be told by the diary.
pub(crate) fn vaults(stage: &Stage) -> App<Handlers<Vault>> {
    let moves = stage.clone();
    windlass::handlers::<Vault>("vault-operator")
        .on_create("build", plays!(stage, "build"))
        .on_create("open", plays!(stage, "open"))
        .on_update("inspect", plays!(stage, "inspect"))
        .on_field(
            "move",
            |spec| spec.region.clone(),
            move |_, region: Changed<String>, _| {
                let stage = moves.clone();
                async move { stage.play(format!("move {:?} {:?}", region.old, region.new)).await }
            },
        )
        .on_delete("empty", plays!(stage, "empty"))
}

/// A cluster that knows vaults.
pub(crate) async fn cluster() -> TestCluster {
    let cluster = TestCluster::start().await;
    cluster.define(vaults(&Stage::default()).crds()).await;
    cluster
}

/// Puts an app to work by the cluster's clock.
pub(crate) fn run(app: &App<Handlers<Vault>>, cluster: &TestCluster) -> Running {
    run_as(app, cluster, cluster.clock().clock(), None)
}

pub(crate) fn run_as(
    app: &App<Handlers<Vault>>,
    cluster: &TestCluster,
    clock: Clock,
    leader: Option<LeaderConfig>,
) -> Running {
    let config = ManagerConfig { clock, leader, ..ManagerConfig::new(app.name()) };
    let mut manager = Manager::new(cluster.client(), config);
    app.install(&mut manager, Namespaces::all());
    Running::start(manager)
}

pub(crate) async fn build(cluster: &TestCluster, name: &str, size: u32) {
    cluster.create::<Vault>(json!({"metadata": {"name": name}, "spec": {"size": size, "region": "north"}})).await;
}

/// Waits until a condition of the present generation has this reason, and returns its message.
pub(crate) async fn says(cluster: &TestCluster, name: &str, type_: &str, reason: &str) -> String {
    let message = |vault: &Vault| {
        let conditions = vault.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let found = condition::find(conditions, type_)?;
        let is_it = found.reason == reason && found.observed_generation == vault.metadata.generation;
        is_it.then(|| found.message.clone())
    };
    let vault = cluster.until(name, |vault: &Vault| message(vault).is_some()).await;
    message(&vault).unwrap()
}

pub(crate) async fn ready(cluster: &TestCluster, name: &str) {
    says(cluster, name, "Ready", "Settled").await;
}

/// What is remembered of a vault, as text.
pub(crate) fn remembered(vault: &Vault) -> String {
    vault.annotations().get(&names::progress("vault-operator")).cloned().unwrap_or_default()
}

pub(crate) async fn annotate(cluster: &TestCluster, name: &str, key: &str, value: Value) {
    cluster.patch::<Vault>(name, json!({"metadata": {"annotations": {key: value}}})).await;
}
