//! What holds of watches: each fails alone, they come and go at run time, and they follow kinds as these change.

use std::sync::Arc;

use crate::notes::{
    Note, NoteSpec, Running, app, cluster_with, edit, eventually, manager_of, message, note, says, settled, write,
};
use tokio::sync::mpsc;
use windlass::Program;
use windlass::k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use windlass::kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use windlass::kube::core::{ApiResource, PartialObjectMeta};
use windlass::prelude::*;
use windlass::serde_json::{Value, from_value, json};
use windlass_runtime::{Controller, Manager, ManagerConfig, Namespaces, Watch};
use windlass_testkit::TestCluster;

/// Lets the user `operator` do all to notes, ConfigMaps and events, but nothing to Secrets unless `secrets`.
async fn grant(cluster: &TestCluster, secrets: bool) {
    let core: &[&str] = if secrets { &["configmaps", "events", "secrets"] } else { &["configmaps", "events"] };
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "operator"},
    "rules": [
        {"apiGroups": ["notes.example.com"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": core, "verbs": ["*"]},
    ]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "operator"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "operator"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "operator"}]});
    let params = PatchParams::apply("test").force();
    let roles: Api<ClusterRole> = Api::all(cluster.client());
    roles.patch("operator", &params, &Patch::Apply(role)).await.unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client());
    bindings.patch("operator", &params, &Patch::Apply(binding)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_owned_kind_does_not_delay_the_main_one() {
    let cluster = TestCluster::start().await;
    grant(&cluster, false).await;
    cluster.define(app().crds()).await;
    let running = Running::start(manager_of(&app(), cluster.client_as("operator", &[]), Namespaces::all()));
    let notes = cluster.api::<Note>();

    write(&notes, note("open", "hello")).await;
    settled(&notes, "open").await;
    assert_eq!(cluster.api::<ConfigMap>().get("open").await.unwrap().data.unwrap()["text"], "hello");

    // Only what needs the forbidden kind waits, and says for what.
    let secret = NoteSpec { secret: true, ..note("hidden", "psst").spec };
    write(&notes, Note::new("hidden", secret)).await;
    let hidden = says(&notes, "hidden", "Ready", "WatchFailed").await;
    assert!(message(&hidden, "Ready").contains("secrets"), "{}", message(&hidden, "Ready"));
    running.reports("watch secrets", Some("allow get, list and watch in the role")).await;
    running.reports("watch notes.notes.example.com", None).await;
    assert_eq!(running.metric(r#"operator_watch_up{watch="secrets"}"#), Some(0.0));
    assert_eq!(running.metric(r#"operator_watch_up{watch="configmaps"}"#), Some(1.0));
    assert!(running.metric(r#"operator_watch_errors_total{watch="secrets"}"#).unwrap() >= 1.0);

    // What is granted later is used without a restart.
    grant(&cluster, true).await;
    settled(&notes, "hidden").await;
    running.reports("watch secrets", None).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_defined_later_is_served_then() {
    let cluster = TestCluster::start().await;
    let running = Running::start(manager_of(&app(), cluster.client(), Namespaces::all()));
    running.reports("watch notes.notes.example.com", Some("apply its definition")).await;
    cluster.define(app().crds()).await;
    let notes = cluster.api::<Note>();
    write(&notes, note("late", "better than never")).await;
    settled(&notes, "late").await;
    running.reports("watch notes.notes.example.com", None).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_of_the_kind_keeps_triggering() {
    let (cluster, running) = cluster_with(app()).await;
    let notes = cluster.api::<Note>();
    write(&notes, note("n", "hello")).await;
    settled(&notes, "n").await;

    let mut definition = app().crds().remove(0);
    let mut newer = definition.spec.versions[0].clone();
    newer.name = "v2".into();
    definition.spec.versions[0].storage = false;
    definition.spec.versions.push(newer);
    cluster.define([definition]).await;

    // The child was made by, and says that it belongs to, another version than the operator knows.
    let child = cluster.api::<ConfigMap>().get("n").await.unwrap();
    let mut owner = child.metadata.owner_references.unwrap().remove(0);
    owner.api_version = "notes.example.com/v2".into();
    let patch = json!({"metadata": {"ownerReferences": [owner]}, "data": {"text": "changed"}});
    cluster.patch::<ConfigMap>("n", patch).await;
    let healed = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["text"] == "hello");
    cluster.until("n", healed).await;

    // What is made in the new version is served as well.
    let resource = ApiResource {
        version: "v2".into(),
        api_version: "notes.example.com/v2".into(),
        ..ApiResource::erase::<Note>(&())
    };
    let object = DynamicObject::new("newer", &resource).data(json!({"spec": {"text": "two"}}));
    let newer: Api<DynamicObject> = Api::default_namespaced_with(cluster.client(), &resource);
    newer.create(&PostParams::default(), &object).await.unwrap();
    settled(&notes, "newer").await;
    running.end().await;
}

/// Tells of every run.
struct Teller(mpsc::UnboundedSender<String>);

impl Reconcile for Teller {
    type Resource = Note;

    async fn reconcile(&self, note: Arc<Note>, _: &Context<Note>) -> Result<Action, Error> {
        self.0.send(note.name_any()).unwrap();
        Ok(Action::Await)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_names_another_version_of_its_owner_wakes_it() {
    let cluster = TestCluster::start().await;
    cluster.define(app().crds()).await;
    let mut manager = Manager::new(cluster.client(), ManagerConfig::new("test"));
    let (tell, mut told) = mpsc::unbounded_channel();
    let maps = manager.informers().all::<ConfigMap>();
    manager.add(Controller::of(&manager, Teller(tell)).owns(&maps));
    let running = Running::start(manager);
    let notes = cluster.api::<Note>();
    write(&notes, note("n", "hello")).await;
    assert_eq!(told.recv().await.as_deref(), Some("n"));
    // It never had another owner: nothing but this version leads to the note.
    let owner = json!({"apiVersion": "notes.example.com/v2", "kind": "Note", "name": "n", "controller": true,
        "uid": notes.get("n").await.unwrap().metadata.uid});
    cluster.create::<ConfigMap>(json!({"metadata": {"name": "child", "ownerReferences": [owner]}})).await;
    let woken = tokio::time::timeout(crate::notes::PATIENCE, told.recv()).await;
    assert_eq!(woken.ok().flatten().as_deref(), Some("n"));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_is_shared_and_ends_with_its_last_user() {
    let cluster = TestCluster::start().await;
    let manager = Manager::new(cluster.client(), ManagerConfig::new("test"));
    let watches = |title: &str| {
        let made = |verb: &str| {
            let entries = manager.tap().journal().entries();
            entries.iter().filter(|entry| entry.call.verb == verb && entry.call.resource == "configmaps").count()
        };
        let has = manager.health().report().iter().any(|(name, _)| name == title);
        (has, made("list"))
    };
    let first = manager.informers().all::<ConfigMap>();
    let second = manager.informers().all::<ConfigMap>();
    let subscription = second.subscribe(|_| {});
    first.synced().await;
    assert_eq!(watches("watch configmaps"), (true, 1));
    drop((first, second));
    assert_eq!(watches("watch configmaps"), (true, 1), "a subscription keeps it");
    drop(subscription);
    eventually("the watch has ended", || !watches("watch configmaps").0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_dynamic_and_metadata_only_watches_see_the_same_objects() {
    let cluster = TestCluster::start().await;
    let manager = Manager::new(cluster.client(), ManagerConfig::new("test"));
    let typed = manager.informers().all::<ConfigMap>();
    let dynamic = manager.informers().get(Watch::<DynamicObject>::of(ApiResource::erase::<ConfigMap>(&())));
    let metadata = manager.informers().get(Watch::<PartialObjectMeta<ConfigMap>>::all());
    cluster.create::<ConfigMap>(json!({"metadata": {"name": "settings"}, "data": {"size": "3"}})).await;
    let key = ObjectKey::namespaced("default", "settings");
    eventually("all have it", || {
        typed.get(&key).is_some() && dynamic.get(&key).is_some() && metadata.get(&key).is_some()
    })
    .await;
    assert_eq!(typed.get(&key).unwrap().data.as_ref().unwrap()["size"], "3");
    assert_eq!(dynamic.get(&key).unwrap().data["data"]["size"], "3");
}

/// Follows the ConfigMap that a note names, and tells of every run.
struct Reader(mpsc::UnboundedSender<String>);

impl Reconcile for Reader {
    type Resource = Note;

    async fn reconcile(&self, note: Arc<Note>, cx: &Context<Note>) -> Result<Action, Error> {
        let Some(name) = &note.spec.appendix else {
            self.0.send("nothing".into()).unwrap();
            return Ok(Action::Await);
        };
        let watch = Watch::<ConfigMap>::all().fields(format!("metadata.name={name}"));
        let maps = cx.follow(watch);
        maps.synced().await;
        let map = maps.get(&ObjectKey::namespaced("default", name.as_str()));
        let text = map.and_then(|map| map.data.clone()).and_then(|mut data| data.remove("text"));
        self.0.send(text.unwrap_or_else(|| "missing".into())).unwrap();
        Ok(Action::Await)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconcile_follows_what_it_asks_for_and_no_longer() {
    let cluster = TestCluster::start().await;
    cluster.define(app().crds()).await;
    let mut manager = Manager::new(cluster.client(), ManagerConfig::new("test"));
    let (tell, mut told) = mpsc::unbounded_channel();
    manager.add(Controller::of(&manager, Reader(tell)));
    let running = Running::start(manager);
    let mut hears = async |wanted: &str| {
        let heard = async { while told.recv().await.unwrap() != wanted {} };
        tokio::time::timeout(crate::notes::PATIENCE, heard).await.unwrap_or_else(|_| panic!("{wanted} was not heard"));
    };
    let notes = cluster.api::<Note>();
    write(&notes, Note::new("n", NoteSpec { appendix: Some("a".into()), ..note("n", "").spec })).await;
    hears("missing").await;
    cluster.create::<ConfigMap>(json!({"metadata": {"name": "a"}, "data": {"text": "one"}})).await;
    hears("one").await;
    cluster.patch::<ConfigMap>("a", json!({"data": {"text": "two"}})).await;
    hears("two").await;
    running.reports("watch configmaps where metadata.name=a", None).await;

    edit(&notes, "n", json!({"spec": {"appendix": "b"}})).await;
    hears("missing").await;
    let has = |name: &str| running.health.report().iter().any(|(check, _)| check.ends_with(name));
    eventually("only the new one is watched", || !has("metadata.name=a") && has("metadata.name=b")).await;
    edit(&notes, "n", json!({"spec": {"appendix": Value::Null}})).await;
    hears("nothing").await;
    eventually("nothing is watched for it", || !has("metadata.name=b")).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_is_woken_by_what_it_refers_to() {
    let refers = |note: &Note| Vec::from_iter(note.spec.appendix.clone());
    let (cluster, running) = cluster_with(app().refers_to::<ConfigMap>(refers)).await;
    let notes = cluster.api::<Note>();
    write(&notes, Note::new("n", NoteSpec { appendix: Some("a".into()), ..note("n", "one ").spec })).await;
    says(&notes, "n", "Ready", "AppendixMissing").await;
    cluster.create::<ConfigMap>(json!({"metadata": {"name": "a"}, "data": {"text": "two"}})).await;
    settled(&notes, "n").await;
    cluster.patch::<ConfigMap>("a", json!({"data": {"text": "three"}})).await;
    let is_new = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["text"] == "one three");
    cluster.until("n", is_new).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_finds_objects_as_soon_as_they_are_written() {
    let cluster = TestCluster::start().await;
    let manager = Manager::new(cluster.client(), ManagerConfig::new("test"));
    let maps = manager.informers().all::<ConfigMap>();
    let by_size = maps.index(|map| Vec::from_iter(map.data.as_ref().and_then(|data| data.get("size")).cloned()));
    maps.synced().await;
    let own: Api<ConfigMap> = Api::namespaced(manager.handle().client, "default");
    for (name, size) in [("x", "1"), ("y", "2"), ("z", "1")] {
        let map = from_value(json!({"metadata": {"name": name}, "data": {"size": size}})).unwrap();
        own.create(&PostParams::default(), &map).await.unwrap();
    }
    let names = |size: &str| by_size.get(size).iter().map(|map| map.name_any()).collect::<Vec<_>>();
    assert_eq!(names("1"), ["x", "z"]);
    own.patch("x", &PatchParams::default(), &Patch::Merge(json!({"data": {"size": "2"}}))).await.unwrap();
    assert_eq!((names("1"), names("2")), (vec!["z".to_owned()], vec!["x".to_owned(), "y".to_owned()]));
}
