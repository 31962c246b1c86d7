//! Parts in their order, on a cluster whose workloads live: a Secret, then a StatefulSet, then a Job.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod databases;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass::kube::api::{DeleteParams, PropagationPolicy};
use windlass::plan::{What, Wish, plan};
use windlass::prelude::*;
use windlass::runtime::tap::{Intercept, Tap};
use windlass::runtime::{Manager, ManagerConfig, Namespaces, RunError};
use windlass::serde_json::{Value, json};
use windlass::{Program, condition, names};
use windlass_testkit::{Kind, Profile, TestCluster};

use databases::{Database, Databases, app};

/// Holds an object until it is taken away.
const HOLD: &str = "example.com/hold";

/// The operator at work.
struct Running {
    tap: Tap,
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    fn start(cluster: &TestCluster, intercept: Option<Intercept>) -> Self {
        let app = app();
        let config = ManagerConfig { clock: cluster.clock().clock(), ..ManagerConfig::new(app.name()) };
        let mut manager = Manager::new(cluster.client(), config);
        app.install(&mut manager, Namespaces::all());
        let (tap, stop) = (manager.tap().clone(), CancellationToken::new());
        tap.intercept(intercept);
        Self { tap, stop: stop.clone(), task: tokio::spawn(manager.run(stop)) }
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }

    /// Ends it as a power cut does.
    async fn kill(self) {
        self.tap.fence();
        self.task.abort();
        let _ = self.task.await;
    }
}

async fn cluster() -> TestCluster {
    let cluster = TestCluster::builder().profile(Profile::Workloads).start().await;
    cluster.define(app().crds()).await;
    cluster
}

async fn create(cluster: &TestCluster, name: &str, image: &str, schema: Option<&str>) {
    let spec = json!({"size": 2, "image": image, "schema": schema, "password": "one"});
    cluster.create::<Database>(json!({"metadata": {"name": name}, "spec": spec})).await;
}

/// The reason and message of a condition of the present generation.
fn says(database: &Database, type_: &str) -> Option<(String, String)> {
    let conditions = &database.status.as_ref()?.conditions;
    let found = condition::find(conditions, type_)?;
    let is_current = found.observed_generation == database.metadata.generation;
    is_current.then(|| (found.reason.clone(), found.message.clone()))
}

async fn until_says(cluster: &TestCluster, name: &str, reason: &str) -> (String, Database) {
    let is_it = |database: &Database| says(database, "Ready").is_some_and(|(it, _)| it == reason);
    let database = cluster.until(name, is_it).await;
    (says(&database, "Ready").unwrap().1, database)
}

async fn settled(cluster: &TestCluster, name: &str) -> Database {
    until_says(cluster, name, "Settled").await.1
}

fn is_going<K: Kind>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

async fn hold<K: Kind>(cluster: &TestCluster, name: &str, held: bool) {
    let finalizers = if held { json!([HOLD]) } else { Value::Null };
    // What the API holds an object by is not ours to take away.
    let has_more = |object: &K| object.finalizers().iter().any(|finalizer| finalizer != HOLD);
    if !held {
        cluster.until(name, |object: &K| !has_more(object)).await;
    }
    cluster.patch::<K>(name, json!({"metadata": {"finalizers": finalizers}})).await;
}

/// The kinds that the operator made or removed, in order; `-` is a removal.
fn story(running: &Running) -> Vec<String> {
    let writes = running.tap.journal().writes();
    let is_done = |code: Option<u16>| code.is_some_and(|code| code < 300);
    let parts = writes
        .iter()
        .filter(|entry| is_done(entry.code) && ["secrets", "statefulsets", "jobs"].contains(&&*entry.call.resource));
    let sign = |verb: &str| if verb == "delete" { "-" } else { "" };
    parts.map(|entry| format!("{}{}", sign(entry.call.verb), entry.call.resource)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_made_and_changed_when_those_before_them_are_ready() {
    let cluster = cluster().await;
    let running = Running::start(&cluster, None);
    create(&cluster, "d", "broken", Some("v1")).await;
    let message = "migration waits for database: 0 of 2 Pods are ready";
    let waits = |it: &Database| says(it, "Ready") == Some(("Waiting".into(), message.into()));
    let database = cluster.until("d", waits).await;
    assert_eq!(database.metadata.finalizers, Some(vec![names::ORDER_FINALIZER.to_owned()]));
    assert_eq!(cluster.list::<Job>().await.len(), 0, "not before the servers are ready");
    assert_eq!(story(&running), ["secrets", "statefulsets"]);

    cluster.patch::<Database>("d", json!({"spec": {"image": "nginx:1"}})).await;
    settled(&cluster, "d").await;
    assert_eq!(story(&running), ["secrets", "statefulsets", "statefulsets", "jobs"]);
    let job = cluster.api::<Job>().get("d-v1").await.unwrap();
    assert_eq!(
        (job.annotations()[names::PART].as_str(), job.annotations()[names::AFTER].as_str()),
        ("migration", "database")
    );

    // The servers break, and the new Job waits: what there is stays, and nothing is removed for not being reached.
    cluster.patch::<Database>("d", json!({"spec": {"image": "broken", "schema": "v2", "password": "two"}})).await;
    cluster.until("d", |it: &Database| says(it, "Ready").is_some_and(|(_, it)| it.contains("Pods are"))).await;
    let password = cluster.api::<Secret>().get("d").await.unwrap().data.unwrap()["password"].clone();
    assert_eq!(password.0, b"two", "the first part is changed at once");
    cluster.until_gone::<Job>("d-v1").await;
    assert_eq!(cluster.list::<Job>().await.len(), 0, "the old Job is no longer wanted, the new one waits");
    cluster.patch::<Database>("d", json!({"spec": {"image": "nginx:2"}})).await;
    settled(&cluster, "d").await;
    cluster.until("d-v2", |_: &Job| true).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_failed_is_told_once_and_a_change_helps() {
    let cluster = cluster().await;
    let running = Running::start(&cluster, None);
    create(&cluster, "d", "nginx:1", Some("bad")).await;
    let (message, database) = until_says(&cluster, "d", "PartFailed").await;
    assert!(message.starts_with("migration failed: BackoffLimitExceeded: "), "{message}");
    let conditions = database.status.unwrap().conditions;
    assert!(condition::is_true(&conditions, "Stalled") && !condition::is_true(&conditions, "Progressing"));
    let event = cluster.until_event("d", "PartFailed").await;
    assert_eq!(event.message.as_deref(), Some(message.as_str()));
    assert_eq!(story(&running), ["secrets", "statefulsets", "jobs"], "it is not tried again");

    cluster.patch::<Database>("d", json!({"spec": {"schema": "good"}})).await;
    let database = settled(&cluster, "d").await;
    assert!(!condition::is_true(&database.status.unwrap().conditions, "Stalled"));
    cluster.until_gone::<Job>("d-bad").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_go_in_the_reverse_of_their_order_and_the_resource_last() {
    let cluster = cluster().await;
    let running = Running::start(&cluster, None);
    create(&cluster, "d", "nginx:1", Some("v1")).await;
    settled(&cluster, "d").await;
    hold::<Job>(&cluster, "d-v1", true).await;
    hold::<StatefulSet>(&cluster, "d", true).await;
    cluster.api::<Database>().delete("d", &DeleteParams::default()).await.unwrap();
    cluster.until("d-v1", is_going::<Job>).await;
    until_says(&cluster, "d", "Deleting").await;
    assert!(!is_going(&cluster.api::<StatefulSet>().get("d").await.unwrap()), "the Job is still there");
    // Nothing wakes the operator when a part takes too long, but the time.
    cluster.clock().advance(Duration::from_secs(300));
    let blocked = |it: &Database| says(it, "DeletionBlocked").is_some_and(|(reason, _)| reason == "PartRemains");
    let database = cluster.until("d", blocked).await;
    let (_, message) = says(&database, "DeletionBlocked").unwrap();
    assert!(message.starts_with("Job d-v1 is being deleted since "), "{message}");
    assert!(message.ends_with("somebody removes its finalizers example.com/hold"), "{message}");

    hold::<Job>(&cluster, "d-v1", false).await;
    cluster.until("d", is_going::<StatefulSet>).await;
    let pods = |pods: &[Pod]| pods.iter().all(|pod| !pod.labels().contains_key("database"));
    cluster.until_all(pods).await;
    assert!(!is_going(&cluster.api::<Secret>().get("d").await.unwrap()), "the servers are still there");
    hold::<StatefulSet>(&cluster, "d", false).await;
    cluster.until_gone::<Database>("d").await;
    assert_eq!(story(&running)[3..], ["-jobs", "-statefulsets", "-secrets"]);
    assert!(cluster.api::<Secret>().get_opt("d").await.unwrap().is_none());
    cluster.until_gone::<ConfigMap>("d").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_deletes_a_resource_and_keeps_its_parts_keeps_them() {
    let cluster = cluster().await;
    let running = Running::start(&cluster, None);
    create(&cluster, "d", "nginx:1", None).await;
    settled(&cluster, "d").await;
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    cluster.api::<Database>().delete("d", &orphan).await.unwrap();
    cluster.until_gone::<Database>("d").await;
    for meta in [
        cluster.api::<Secret>().get("d").await.unwrap().metadata,
        cluster.api::<StatefulSet>().get("d").await.unwrap().metadata,
    ] {
        assert!(meta.deletion_timestamp.is_none() && meta.owner_references.unwrap_or_default().is_empty());
    }
    running.end().await;
}

/// What there is of a database, without what differs between two runs.
async fn remains(cluster: &TestCluster, name: &str) -> Value {
    fn tidy<K: Kind>(objects: Vec<K>, name: &str) -> Vec<Value> {
        let own = objects.into_iter().filter(|it| it.owner_references().iter().any(|owner| owner.name == name));
        let tidy = |object: K| {
            let value = windlass::serde_json::to_value(&object).unwrap();
            let meta = json!({
                "name": object.name_any(), "annotations": object.annotations(), "labels": object.labels(),
                "going": is_going(&object),
            });
            let text = json!([meta, value["data"], value["spec"]["replicas"], value["spec"]["template"]]).to_string();
            // The labels of a Job's Pods have its uid.
            let uid = object.uid().unwrap();
            windlass::serde_json::from_str(&text.replace(&uid, "UID").replace(name, "NAME")).unwrap()
        };
        own.map(tidy).collect()
    }
    json!([
        tidy(cluster.list::<ConfigMap>().await, name),
        tidy(cluster.list::<Secret>().await, name),
        tidy(cluster.list::<StatefulSet>().await, name),
        tidy(cluster.list::<Job>().await, name),
    ])
}

/// The life of a database: what there was of it when it was made, and when it was changed.
async fn life(cluster: &TestCluster, name: &str) -> [Value; 2] {
    let spec = json!({"size": 1, "image": "nginx:1", "schema": "v1", "password": "one"});
    cluster.create::<Database>(json!({"metadata": {"name": name}, "spec": spec})).await;
    settled(cluster, name).await;
    let made = remains(cluster, name).await;
    cluster.patch::<Database>(name, json!({"spec": {"image": "nginx:2", "schema": null, "password": "two"}})).await;
    settled(cluster, name).await;
    let changed = remains(cluster, name).await;
    cluster.api::<Database>().delete(name, &DeleteParams::default()).await.unwrap();
    cluster.until_gone::<Database>(name).await;
    cluster.until_gone::<ConfigMap>(name).await;
    assert_eq!(remains(cluster, name).await, json!([[], [], [], []]), "{name}");
    [made, changed]
}

/// Carries out the write with this number, counted from zero, and then nothing any more.
fn die_after(number: usize, died: Arc<Notify>) -> (Intercept, Arc<AtomicUsize>) {
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = writes.clone();
    let intercept: Intercept = Arc::new(move |call, request, next| {
        // Events are told in the background and may be lost without harm.
        let is_it = call.is_write() && call.resource != "events" && counted.fetch_add(1, Ordering::SeqCst) == number;
        let died = died.clone();
        Box::pin(async move {
            let answer = next(request).await;
            if is_it {
                died.notify_one();
                std::future::pending::<()>().await;
            }
            answer
        })
    });
    (intercept, writes)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_dies_after_any_write_goes_on_where_it_was() {
    let cluster = cluster().await;
    let running = Running::start(&cluster, None);
    let clean = life(&cluster, "life-clean").await;
    assert_eq!(clean[0][3].as_array().unwrap().len(), 1, "the Job was there: {clean:?}");
    running.end().await;
    for number in 0.. {
        let (died, name) = (Arc::new(Notify::new()), format!("life-{number}"));
        let (intercept, writes) = die_after(number, died.clone());
        let mut running = Running::start(&cluster, Some(intercept));
        let mut life = std::pin::pin!(life(&cluster, &name));
        let seen = loop {
            tokio::select! {
                seen = &mut life => break seen,
                () = died.notified() => {
                    running.kill().await;
                    running = Running::start(&cluster, None);
                }
            }
        };
        running.end().await;
        assert_eq!(seen, clean, "it died after write {number}");
        if writes.load(Ordering::SeqCst) <= number {
            assert!(number > 8, "only {number} writes were made");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_names_the_parts_that_wait_and_those_that_go() {
    let cluster = cluster().await;
    let spec = json!({"size": 2, "image": "nginx:1", "schema": "v1", "password": "one"});
    let database = json!({
        "apiVersion": "data.example.com/v1", "kind": "Database", "metadata": {"name": "d", "namespace": "default"},
        "spec": spec,
    });
    let wish = Wish { apply: vec![database.clone()], field_manager: "kubectl".into(), ..Wish::default() };
    let foreseen = plan(&app(), cluster.client(), Namespaces::all(), &wish).await.unwrap();
    let made = |what| -> Vec<String> {
        let done = foreseen.changes.iter().filter(|change| change.what == what && !change.asked);
        done.map(|change| change.object.clone()).collect()
    };
    assert_eq!(made(What::Create), ["ConfigMap default/d", "Secret default/d", "StatefulSet default/d"]);
    assert_eq!(foreseen.waits.len(), 1, "{foreseen}");
    assert!(foreseen.waits[0].starts_with("Database default/d: migration waits for database: "), "{foreseen}");

    let running = Running::start(&cluster, None);
    create(&cluster, "d", "nginx:1", Some("v1")).await;
    settled(&cluster, "d").await;
    running.end().await;
    let wish = Wish { delete: vec![database], ..Wish::default() };
    let foreseen = plan(&app(), cluster.client(), Namespaces::all(), &wish).await.unwrap();
    for part in ["Job default/d-v1", "StatefulSet default/d", "Secret default/d", "Database default/d"] {
        let is_it = |change: &windlass::plan::Change| change.object == part && change.what == What::Delete;
        assert!(foreseen.changes.iter().any(is_it), "{part} goes: {foreseen}");
    }
}

struct Forgetful;

impl Operator for Forgetful {
    type Resource = Database;

    fn desired(&self, database: &Database, world: &World) -> Outcome<NoStatus> {
        Databases.desired(database, world)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_was_not_declared_is_refused() {
    let cluster = cluster().await;
    let app = windlass::operator(Forgetful).owns::<ConfigMap>().owns::<Secret>().owns::<StatefulSet>().owns::<Job>();
    let mut manager = Manager::new(cluster.client(), ManagerConfig::new(app.name()));
    app.install(&mut manager, Namespaces::all());
    let running = tokio::spawn(manager.run(CancellationToken::new()));
    create(&cluster, "d", "nginx:1", None).await;
    let (message, _) = until_says(&cluster, "d", "ChildRefused").await;
    assert_eq!(message, "parts have an order: add .ordered() to the operator");
    assert!(cluster.list::<Secret>().await.is_empty());
    running.abort();
}
