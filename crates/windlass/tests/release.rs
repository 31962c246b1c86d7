//! A resource that is let go of leaves what it is made of as it is; whoever comes after it takes that over before anything else.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::time::Duration;

use windlass::kube::Api;
use windlass::kube::api::DeleteParams;
use windlass::plan::{Wish, plan};
use windlass::prelude::*;
use windlass::runtime::Namespaces;
use windlass::runtime::tap::Intercept;
use windlass::serde_json::{Value, json};
use windlass::{condition, names};
use windlass_testkit::explore::{self, Exploration, User};
use windlass_testkit::{Operation, TestCluster};

/// A safe with a code that is made once, and a sign.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "vault.example.com", version = "v1", kind = "Safe")]
pub struct SafeSpec {
    /// What the sign says, and what a new code would be.
    pub text: String,
    /// Whether code and sign stay when the safe is deleted.
    #[serde(default)]
    pub stays: bool,
}

struct Safes;

impl Operator for Safes {
    type Resource = Safe;

    fn desired(&self, safe: &Safe, world: &World) -> Outcome<NoStatus> {
        let map = |name: String| {
            let data = [("text".to_owned(), safe.spec.text.clone())].into();
            ConfigMap { metadata: named(name), data: Some(data), ..ConfigMap::default() }
        };
        let code = format!("{}-code", safe.name_any());
        let desired = Desired::new().child(map(safe.name_any()));
        match world.child::<ConfigMap>(safe, &code) {
            Some(_) => desired.keep::<ConfigMap>(code),
            None => desired.child(map(code)),
        }
        .settled()
    }
}

impl Cleanup for Safes {
    async fn cleanup(&self, safe: &Safe, _: &Context<Safe>) -> Result<(), Error> {
        assert!(!safe.spec.stays, "nothing is cleaned up of what stays");
        Ok(())
    }
}

fn app() -> windlass::App<Safes> {
    windlass::operator(Safes).owns::<ConfigMap>().cleanup().releases(|safe| safe.spec.stays)
}

fn safe(text: &str, stays: bool) -> Value {
    json!({"metadata": {"name": "s"}, "spec": {"text": text, "stays": stays}})
}

fn text(map: &ConfigMap) -> &str {
    &map.data.as_ref().unwrap()["text"]
}

fn is_owned_by(map: &ConfigMap, safe: &Safe) -> bool {
    let owners: Vec<&String> = map.owner_references().iter().map(|owner| &owner.uid).collect();
    owners == [safe.metadata.uid.as_ref().unwrap()]
}

async fn start() -> (TestCluster, Operation) {
    let cluster = TestCluster::start().await;
    let operator = cluster.run(&app()).await;
    cluster.create::<Safe>(safe("1", true)).await;
    for name in ["s", "s-code"] {
        cluster.until(name, |_: &ConfigMap| true).await;
    }
    (cluster, operator)
}

async fn delete(cluster: &TestCluster) {
    let safes: Api<Safe> = cluster.api();
    safes.delete("s", &DeleteParams::background()).await.unwrap();
}

#[tokio::test]
async fn what_stays_belongs_to_nobody_and_is_taken_over_before_it_is_changed() {
    let (cluster, operator) = start().await;
    let before = cluster.list::<ConfigMap>().await;
    let object = json!({"apiVersion": "vault.example.com/v1", "kind": "Safe", "metadata": {"name": "s"}});
    let wish = Wish { delete: vec![object], ..Wish::default() };
    let plan = plan(&app(), cluster.client(), Namespaces::all(), &wish).await.unwrap().to_string();
    assert!(plan.contains("~ ConfigMap default/s-code (it stays, and belongs to nobody)"), "{plan}");
    assert!(plan.contains("0 to create, 2 to change, 0 to delete") && !plan.contains("refuse"), "{plan}");
    delete(&cluster).await;
    cluster.until_gone::<Safe>("s").await;
    cluster.until_event("s", "Released").await;
    let uids = |maps: Vec<ConfigMap>| maps.into_iter().map(|map| map.metadata.uid).collect::<Vec<_>>();
    let free = cluster.list::<ConfigMap>().await;
    let of_safe = free.iter().filter(|map| map.name_any().starts_with('s'));
    assert_eq!(of_safe.map(|map| map.owner_references().len()).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(uids(free), uids(before), "nothing was made anew");

    // The one that comes after wants another text: its sign changes, and the code that was made once does not.
    let next: Safe = cluster.create(safe("2", false)).await;
    cluster.until("s", |map: &ConfigMap| text(map) == "2" && is_owned_by(map, &next)).await;
    let code = cluster.until("s-code", |map: &ConfigMap| is_owned_by(map, &next)).await;
    assert_eq!(text(&code), "1");
    let told = cluster.until_event("s", "Adopted").await;
    assert_eq!(
        told.message.as_deref(),
        Some("ConfigMap s, ConfigMap s-code belonged to nobody and are taken over as they are")
    );

    // It does not stay this time, and so it is collected.
    delete(&cluster).await;
    cluster.until_gone::<ConfigMap>("s").await;
    cluster.until_gone::<ConfigMap>("s-code").await;
    operator.stop().await;
}

#[tokio::test]
async fn what_cannot_be_let_go_keeps_its_owner_which_says_so() {
    let (cluster, operator) = start().await;
    let refuse: Intercept = Arc::new(|call, request, next| {
        let is_release = call.is_write() && call.resource == "configmaps";
        if is_release { Box::pin(async { Err("the gate is closed".into()) }) } else { next(request) }
    });
    operator.tap().intercept(Some(refuse));
    delete(&cluster).await;
    let blocked = |safe: &Safe| {
        let conditions = &safe.status.as_ref().unwrap().conditions;
        condition::find(conditions, names::condition::DELETION_BLOCKED).cloned()
    };
    let safe = cluster.until("s", |safe: &Safe| blocked(safe).is_some()).await;
    let blocked = blocked(&safe).unwrap();
    assert_eq!((blocked.status.as_str(), blocked.reason.as_str()), ("True", "ReleaseFailed"));
    assert!(blocked.message.contains("cannot let go of ConfigMap s"), "{}", blocked.message);
    assert!(cluster.list::<ConfigMap>().await.iter().any(|map| is_owned_by(map, &safe)));

    operator.tap().intercept(None);
    cluster.until_gone::<Safe>("s").await;
    cluster.until("s", |map: &ConfigMap| map.owner_references().is_empty()).await;
    cluster.until("s-code", |map: &ConfigMap| map.owner_references().is_empty()).await;
    operator.stop().await;
}

/// A safe goes and leaves what it is made of; another one comes, with another text; that one takes everything with it.
async fn two_lives(user: User) {
    user.create::<Safe>(safe("1", true)).await;
    user.settle().await;
    user.delete::<Safe>("s").await;
    user.settle().await;
    user.create::<Safe>(safe("2", false)).await;
    user.settle().await;
    user.delete::<Safe>("s").await;
}

/// What was made once is never made again: the one that is there has the first text.
fn is_made_once(world: &explore::World) -> Result<(), String> {
    let Some(code) = world.get::<ConfigMap>("s-code") else { return Ok(()) };
    let is_second = world.get::<Safe>("s").is_some_and(|safe| safe.spec.text == "2");
    if is_second && text(&code) == "2" { Err("there is a new code".into()) } else { Ok(()) }
}

#[test]
fn no_fault_loses_what_stays() {
    let report = Exploration::of(app)
        .keeps::<ConfigMap>()
        // There is nothing to take over without a history, or if the first life was over before anything was made; and what
        // somebody else deletes while it belongs to nobody is gone.
        .without(["fresh", "user", "overtaken", "delete", "delete-while-down"])
        .settles_after(Duration::from_secs(75))
        .plans(60)
        .invariant("what stays is not made again", is_made_once)
        .run(two_lives);
    println!("{report}");
    report.assert();
}
