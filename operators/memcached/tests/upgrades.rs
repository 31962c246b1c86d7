//! Upgrades and the way back, on a cluster whose Pods only pretend to run and whose clock the test moves.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use memcached_operator::{Memcached, app};
use windlass::k8s_openapi::api::apps::v1::ControllerRevision;
use windlass::k8s_openapi::api::core::v1::Event as CoreEvent;
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use windlass::kube::api::{Patch, PatchParams};
use windlass::prelude::*;
use windlass::serde_json::{Value, json};
use windlass::{UpgradeStatus, condition};
use windlass_testkit::{Operation, Profile, TestClock, TestCluster};

/// How far the clock is moved between two looks, …
const STEP: Duration = Duration::from_secs(5);
/// … how long that takes, so that others get their turn, …
const TURN: Duration = Duration::from_millis(20);
/// … and how often it is done at most.
const STEPS_MAX: usize = 1000;

struct Fixture {
    cluster: TestCluster,
    operation: Operation,
}

impl Fixture {
    async fn start() -> Self {
        let clock = TestClock::running_from("2030-01-01T00:00:00Z");
        let cluster = TestCluster::builder().profile(Profile::Workloads).clock(clock).start().await;
        let operation = cluster.run(&app()).await;
        Self { cluster, operation }
    }

    async fn create(&self, spec: Value) {
        self.cluster.create::<Memcached>(json!({"metadata": {"name": "cache"}, "spec": spec})).await;
    }

    async fn patch(&self, patch: Value) {
        self.cluster.api::<Memcached>().patch("cache", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    async fn image(&self, image: &str) {
        self.patch(json!({"spec": {"image": image}})).await;
    }

    /// Moves the clock until `is_there`.
    async fn reach(&self, what: &str, is_there: impl Fn(&Memcached, &UpgradeStatus) -> bool) -> Memcached {
        let mut last = None;
        for _ in 0..STEPS_MAX {
            let memcached = self.cluster.api::<Memcached>().get("cache").await.unwrap();
            if is_there(&memcached, &upgrade(&memcached)) {
                return memcached;
            }
            last = memcached.status;
            self.cluster.clock().advance(STEP);
            tokio::time::sleep(TURN).await;
        }
        panic!("{what} was not reached, but {last:?}")
    }

    /// Waits until the image is known to be good.
    async fn good(&self, version: &str) -> Memcached {
        self.reach(version, |memcached, upgrade| {
            let good = upgrade.last_known_good.as_ref().map(|good| good.version.as_str());
            good == Some(version)
                && upgrade.in_progress.is_none()
                && condition::is_true(&conditions(memcached), "Ready")
        })
        .await
    }

    /// Waits until the resource is as it was before this image, and says so.
    async fn rolled_back(&self, version: &str) -> Memcached {
        self.reach("the way back", |memcached, upgrade| {
            let failed = upgrade.failed_revision.as_ref().map(|failed| failed.version.as_str());
            let conditions = conditions(memcached);
            let stalled = condition::find(&conditions, "Stalled").filter(|it| it.status == "True");
            failed == Some(version) && stalled.is_some_and(|stalled| stalled.reason == "RolledBack")
        })
        .await
    }

    /// The names of the ready Pods, by their image.
    async fn pods(&self, image: &str) -> Vec<String> {
        ready_pods(&self.cluster.list::<Pod>().await, image)
    }

    /// Waits until so many Pods with this image are ready.
    async fn pods_ready(&self, image: &str, number: usize) {
        windlass_testkit::until(self.cluster.api(), |pods: &[Pod]| ready_pods(pods, image).len() == number).await;
    }

    /// A figure of the operator.
    fn figure(&self, line: &str) -> u64 {
        let text = self.operation.metrics().render();
        let found = text.lines().find_map(|it| it.strip_prefix(line)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("{line} is not in {text}"))
    }

    async fn end(self) {
        self.operation.stop().await;
        self.cluster.stop().await;
    }
}

fn ready_pods(pods: &[Pod], image: &str) -> Vec<String> {
    let is_ready_with = |pod: &&Pod| {
        let is_of = pod.spec.as_ref().is_some_and(|spec| spec.containers[0].image.as_deref() == Some(image));
        let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        is_of
            && conditions.any(|it| it.type_ == "Ready" && it.status == "True")
            && pod.metadata.deletion_timestamp.is_none()
    };
    pods.iter().filter(is_ready_with).map(ResourceExt::name_any).collect()
}

fn upgrade(memcached: &Memcached) -> UpgradeStatus {
    memcached.status.as_ref().and_then(|status| status.upgrade.clone()).unwrap_or_default()
}

fn conditions(memcached: &Memcached) -> Vec<Condition> {
    memcached.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default()
}

const ROLLBACKS: &str = "operator_rollbacks_total{kind=\"Memcached\"}";

fn upgrades(result: &str) -> String {
    format!("operator_upgrades_total{{kind=\"Memcached\",result=\"{result}\"}}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_upgrade_becomes_the_last_known_good() {
    let fixture = Fixture::start().await;
    fixture.create(json!({"size": 2})).await;
    fixture.good("memcached:1.6").await;
    assert_eq!(fixture.figure(&upgrades("succeeded")), 0, "the first one is no upgrade");

    fixture.patch(json!({"spec": {"image": "memcached:1.7", "arguments": ["-m", "128"]}})).await;
    let tried = fixture.reach("the trial", |_, upgrade| upgrade.in_progress.is_some()).await;
    let record = upgrade(&tried);
    assert_eq!(record.desired_version.as_deref(), Some("memcached:1.7 -m 128"));
    assert_eq!(record.last_known_good.unwrap().version, "memcached:1.6", "it has to prove itself first");

    let record = upgrade(&fixture.good("memcached:1.7 -m 128").await);
    assert_eq!(record.current_version.as_deref(), Some("memcached:1.7 -m 128"));
    let good = record.last_known_good.unwrap();
    assert_eq!(good.revision, json!({"image": "memcached:1.7", "arguments": ["-m", "128"]}));
    windlass_testkit::until(fixture.cluster.api(), |revisions: &[ControllerRevision]| {
        revisions.iter().map(ResourceExt::name_any).collect::<Vec<_>>() == [format!("memcached-cache-{}", good.hash)]
    })
    .await;
    assert_eq!((fixture.figure(&upgrades("succeeded")), fixture.figure(ROLLBACKS)), (1, 0));
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_upgrade_is_taken_back_once_and_a_new_wish_is_tried() {
    let fixture = Fixture::start().await;
    fixture.create(json!({"size": 3})).await;
    fixture.good("memcached:1.6").await;
    let before = fixture.pods("memcached:1.6").await;
    assert_eq!(before.len(), 3);

    fixture.image("memcached:does-not-exist").await;
    let back = fixture.rolled_back("memcached:does-not-exist").await;
    let (record, status) = (upgrade(&back), back.status.unwrap());
    assert_eq!(record.current_version.as_deref(), Some("memcached:1.6"));
    assert_eq!(record.desired_version.as_deref(), Some("memcached:does-not-exist"));
    let failed = record.failed_revision.unwrap();
    assert!(failed.reason.contains("ImagePullBackOff"), "{}", failed.reason);
    assert_eq!(failed.rolled_back_to.as_deref(), Some("memcached:1.6"));
    assert!(!condition::is_true(&status.conditions, "Ready") && condition::is_true(&status.conditions, "Degraded"));
    let message = &condition::find(&status.conditions, "Stalled").unwrap().message;
    assert!(
        message.contains("memcached:1.6 takes its place") && message.contains("windlass.dev/retry-upgrade"),
        "{message}"
    );
    assert_eq!(fixture.pods("memcached:1.6").await, before, "those that were well were left alone");
    assert_eq!((fixture.figure(ROLLBACKS), fixture.figure(&upgrades("rolled_back"))), (1, 1));
    windlass_testkit::until(fixture.cluster.api(), |events: &[CoreEvent]| {
        events
            .iter()
            .any(|event| event.reason.as_deref() == Some("RolledBack") && event.type_.as_deref() == Some("Warning"))
    })
    .await;

    // Ten more reconciles: it is not tried again, and what else is wanted is done.
    let writes = fixture.operation.tap().journal().writes().len();
    let reconciles =
        || fixture.figure("controller_runtime_reconcile_total{controller=\"memcached\",result=\"success\"}");
    for number in 0..10 {
        let done = reconciles();
        fixture.patch(json!({"metadata": {"labels": {"touched": number.to_string()}}})).await;
        fixture.reach("another reconcile", |_, _| reconciles() > done).await;
    }
    let since: Vec<_> = fixture.operation.tap().journal().writes().into_iter().skip(writes).collect();
    assert!(since.iter().all(|entry| entry.call.resource != "deployments"), "{since:?}");
    fixture.patch(json!({"spec": {"size": 4}})).await;
    fixture.pods_ready("memcached:1.6", 4).await;
    assert_eq!(fixture.figure(ROLLBACKS), 1);

    // Another bad one is another attempt; the same once more is one if somebody asks for it.
    fixture.image("memcached:exits-at-once").await;
    let failed = upgrade(&fixture.rolled_back("memcached:exits-at-once").await).failed_revision.unwrap();
    assert!(failed.reason.ends_with("failed to start 3 times: it ended with exit code 1"), "{}", failed.reason);
    fixture.patch(json!({"metadata": {"annotations": {"windlass.dev/retry-upgrade": "1"}}})).await;
    fixture
        .reach("another failure", |_, upgrade| {
            upgrade.failed_revision.as_ref().is_some_and(|failed| failed.retry.as_deref() == Some("1"))
        })
        .await;
    assert_eq!(fixture.figure(ROLLBACKS), 3);

    fixture.image("memcached:1.7").await;
    assert_eq!(upgrade(&fixture.good("memcached:1.7").await).failed_revision, None);
    fixture.pods_ready("memcached:1.7", 4).await;
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_revision_that_fails_is_told_and_can_be_put_right() {
    let fixture = Fixture::start().await;
    fixture.create(json!({"size": 1, "image": "memcached:does-not-exist"})).await;
    let stalled = fixture
        .reach("a word about it", |memcached, _| {
            let conditions = memcached.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
            condition::find(&conditions, "Stalled")
                .is_some_and(|it| it.status == "True" && it.reason == "InstallFailed")
        })
        .await;
    assert_eq!(upgrade(&stalled).failed_revision.unwrap().rolled_back_to, None);
    assert_eq!((fixture.figure(ROLLBACKS), fixture.figure(&upgrades("failed"))), (0, 1));
    let writes = || fixture.operation.tap().journal().writes();
    let (before, until) = (writes().len(), fixture.cluster.clock().now() + Duration::from_secs(300));
    fixture.reach("five minutes", |_, _| fixture.cluster.clock().now() > until).await;
    assert!(writes().len() == before, "nothing is written while nothing happens: {:?}", &writes()[before..]);
    fixture.image("memcached:1.6").await;
    let good = fixture.good("memcached:1.6").await;
    assert_eq!(upgrade(&good).failed_revision, None);
    fixture.end().await;
}
