//! Operators at work on a test cluster: one, and several in one program.

#![expect(missing_docs, reason = "the kinds are those of a test")]

use kube::api::PostParams;
use windlass::prelude::*;
use windlass::{App, Program};
use windlass_testkit::TestCluster;

/// A note, kept in a ConfigMap.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "desk.example.com", version = "v1", kind = "Note")]
pub struct NoteSpec {
    pub text: String,
}

/// A number, kept in a Secret.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "desk.example.com", version = "v1", kind = "Number")]
pub struct NumberSpec {
    pub value: i32,
}

struct Notes;
struct Numbers;

impl Operator for Notes {
    type Resource = Note;

    fn desired(&self, note: &Note, _: &World) -> Outcome<NoStatus> {
        let data = Some([("text".to_owned(), note.spec.text.clone())].into());
        Desired::new().child(ConfigMap { metadata: named(note.name_any()), data, ..ConfigMap::default() }).settled()
    }
}

impl Operator for Numbers {
    type Resource = Number;

    fn desired(&self, number: &Number, _: &World) -> Outcome<NoStatus> {
        let string_data = Some([("value".to_owned(), number.spec.value.to_string())].into());
        Desired::new().child(Secret { metadata: named(number.name_any()), string_data, ..Secret::default() }).settled()
    }
}

fn notes() -> App<Notes> {
    windlass::operator(Notes)
        .owns::<ConfigMap>()
        .validating(|note, _| Verdict::allow().invalid_if(note.spec.text.is_empty(), "spec.text", "write something"))
}

fn numbers() -> App<Numbers> {
    windlass::operator(Numbers).owns::<Secret>()
}

#[tokio::test(flavor = "multi_thread")]
async fn several_operators_are_one_program() {
    let program = windlass::program("desk").with(notes()).with(numbers());
    let cluster = TestCluster::start().await;
    let operation = cluster.run(&program).await;

    // Each kind has its operator, and the webhook of one judges its own kind.
    let refusal = cluster.api().create(&PostParams::default(), &Note::new("n", NoteSpec { text: String::new() })).await;
    assert!(refusal.expect_err("it is empty").to_string().contains("write something"));
    cluster
        .api()
        .create(&PostParams::default(), &Note::new("n", NoteSpec { text: "x".into() }))
        .await
        .expect("it is accepted");
    cluster
        .api()
        .create(&PostParams::default(), &Number::new("n", NumberSpec { value: 7 }))
        .await
        .expect("it is accepted");
    let kept = cluster.until("n", |_: &ConfigMap| true).await;
    cluster.until("n", |_: &Secret| true).await;
    assert_eq!(kept.managed_fields()[0].manager.as_deref(), Some("desk"), "the program's name is that of all");
    assert!(operation.health().is_ready(), "{:?}", operation.health().report());
    operation.stop().await;

    // Stopped, it does nothing any more.
    cluster
        .api()
        .create(&PostParams::default(), &Number::new("m", NumberSpec { value: 8 }))
        .await
        .expect("it is accepted");
    assert!(cluster.api::<Secret>().get_opt("m").await.expect("it can be asked for").is_none());
}

#[test]
fn one_account_has_the_permissions_of_all() {
    let program = windlass::program("desk").with(notes()).with(numbers());
    let names: Vec<String> = program.crds().iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["notes.desk.example.com", "numbers.desk.example.com"]);
    let rules = program.rules();
    let resources: Vec<&String> = rules.iter().flat_map(|rule| rule.resources.iter().flatten()).collect();
    for resource in ["notes", "numbers", "notes/status", "numbers/status", "configmaps", "secrets"] {
        assert!(resources.iter().any(|it| *it == resource), "{resource}: {resources:?}");
    }
    let one = windlass::program("desk").with(notes()).rules();
    assert!(!one.iter().flat_map(|rule| rule.resources.iter().flatten()).any(|it| it == "secrets"));
}

#[test]
#[should_panic(expected = "notes.desk.example.com is in the program twice")]
fn a_kind_has_one_operator() {
    let _ = windlass::program("desk").with(notes()).with(notes());
}
