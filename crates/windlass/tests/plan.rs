//! A plan's view of the cluster: what is written in it is read in it, and nowhere else.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::{Arc, Mutex};

use windlass::kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use windlass::kube::{self, Api, Client};
use windlass::plan::{Plan, Wish, plan};
use windlass::prelude::*;
use windlass::runtime::{Action, Context, Controller, Error, Namespaces, Reconcile};
use windlass::serde_json::{Value, json};
use windlass_testkit::{Profile, TestCluster};

/// Never asked for here.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[resource(group = "example.com", version = "v1", kind = "Greeting")]
pub struct GreetingSpec {}

struct Greeter;

impl Operator for Greeter {
    type Resource = Greeting;

    fn desired(&self, _: &Greeting, _: &World) -> Outcome<NoStatus> {
        Desired::new().settled()
    }
}

type Story = Arc<Mutex<Vec<String>>>;

/// Goes through a story when it sees the ConfigMap `start`, and writes down what it saw.
struct Narrator(Story);

impl Reconcile for Narrator {
    type Resource = ConfigMap;

    async fn reconcile(&self, object: Arc<ConfigMap>, cx: &Context<ConfigMap>) -> Result<Action, Error> {
        let is_new = self.0.lock().unwrap().is_empty();
        if object.name_any() == "start" && is_new {
            self.0.lock().unwrap().push("begun".into());
            tell(cx.client(), &self.0).await?;
        }
        Ok(Action::Await)
    }
}

async fn tell(client: Client, story: &Story) -> Result<(), kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let say = |line: String| story.lock().unwrap().push(line);
    let data = |map: &ConfigMap| json!(map.data).to_string();
    let one: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "one", "labels": {"a": "1"}}, "data": {"k": "1"}})).unwrap();
    let made = maps.create(&PostParams::default(), &one).await?;
    say(format!("created with a uid: {}", made.uid().is_some()));
    say(format!("read: {}", data(&maps.get("one").await?)));
    say(format!("again: {}", code(maps.create(&PostParams::default(), &one).await)));
    let patched = maps.patch("one", &PatchParams::default(), &Patch::Merge(json!({"data": {"l": "2"}}))).await?;
    say(format!("patched: {}", data(&patched)));
    let stale = json!({"metadata": {"resourceVersion": made.resource_version()}, "data": {"l": "3"}});
    say(format!("stale: {}", code(maps.patch("one", &PatchParams::default(), &Patch::Merge(stale)).await)));
    let apply = |value: Value| {
        Patch::Apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": value,
        }))
    };
    let params = PatchParams::apply("narrator");
    maps.patch("one", &params, &apply(json!({"m": "4", "n": "5"}))).await?;
    let applied = maps.patch("one", &params, &apply(json!({"m": "6"}))).await?;
    say(format!("applied: {}", data(&applied)));
    let labelled = |selector: &str| ListParams::default().labels(selector);
    say(format!("listed: {:?}", names(&maps, &labelled("a in (1, 2)")).await?));
    say(format!("listed without: {:?}", names(&maps, &labelled("!a")).await?));
    maps.delete("there", &DeleteParams::default()).await?;
    say(format!("gone: {}", code(maps.get("there").await)));
    let back = ConfigMap { metadata: named("there"), ..ConfigMap::default() };
    say(format!("back: {}", code(maps.create(&PostParams::default(), &back).await)));
    maps.delete("one", &DeleteParams::default()).await?;
    say(format!("left: {:?}", names(&maps, &ListParams::default()).await?));
    Ok(())
}

fn code<T>(result: Result<T, kube::Error>) -> String {
    match result {
        Ok(_) => "done".into(),
        Err(kube::Error::Api(status)) => status.reason,
        Err(error) => error.to_string(),
    }
}

async fn names(maps: &Api<ConfigMap>, params: &ListParams) -> Result<Vec<String>, kube::Error> {
    let mut names: Vec<_> = maps.list(params).await?.items.iter().map(ResourceExt::name_any).collect();
    names.retain(|name| name != "kube-root-ca.crt");
    names.sort();
    Ok(names)
}

async fn foresee(cluster: &TestCluster, story: &Story) -> Plan {
    let story = story.clone();
    let program = windlass::operator(Greeter).with(move |manager, _, _| {
        let controller = Controller::of(manager, Narrator(story.clone()));
        manager.add(controller);
    });
    let start = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "start"}});
    let wish = Wish { apply: vec![start], field_manager: "test".into(), ..Wish::default() };
    plan(&program, cluster.client(), Namespaces::all(), &wish).await.unwrap()
}

#[tokio::test]
async fn what_is_written_is_read() {
    let cluster = TestCluster::builder().profile(Profile::Bare).start().await;
    cluster.define(windlass::Program::crds(&windlass::operator(Greeter))).await;
    cluster.create::<ConfigMap>(json!({"metadata": {"name": "there"}, "data": {"k": "1"}})).await;
    let story = Story::default();
    let plan = foresee(&cluster, &story).await;
    let expected = [
        "begun",
        "created with a uid: true",
        r#"read: {"k":"1"}"#,
        "again: AlreadyExists",
        r#"patched: {"k":"1","l":"2"}"#,
        "stale: Conflict",
        r#"applied: {"k":"1","l":"2","m":"6"}"#,
        r#"listed: ["one"]"#,
        r#"listed without: ["start", "there"]"#,
        "gone: NotFound",
        "back: done",
        r#"left: ["start", "there"]"#,
    ];
    assert_eq!(*story.lock().unwrap(), expected);
    assert_eq!(names(&cluster.api(), &ListParams::default()).await.unwrap(), ["there"]);
    assert_eq!(cluster.api::<ConfigMap>().get("there").await.unwrap().data.unwrap()["k"], "1");
    assert!(plan.to_string().contains("- data.k: 1"), "what was deleted and made anew is a change: {plan}");
    assert_eq!(plan.refused.len(), 2, "{:?}", plan.refused);
}
