//! Explorations of small operators.

#![expect(missing_docs, reason = "the kinds are those of a test")]

use serde_json::json;
use windlass::prelude::*;
use windlass_testkit::explore::{Exploration, User};

/// A note, kept in a ConfigMap.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "desk.example.com", version = "v1", kind = "Note")]
pub struct NoteSpec {
    pub text: String,
}

struct Notes;

impl Operator for Notes {
    type Resource = Note;

    fn desired(&self, note: &Note, _: &World) -> Outcome<NoStatus> {
        let data = Some([("text".to_owned(), note.spec.text.clone())].into());
        Desired::new().child(ConfigMap { metadata: named(note.name_any()), data, ..ConfigMap::default() }).settled()
    }
}

async fn life_of_a_note(user: User) {
    user.create::<Note>(json!({"metadata": {"name": "n"}, "spec": {"text": "one"}})).await;
    user.settle().await;
    user.patch::<Note>("n", json!({"spec": {"text": "two"}})).await;
    user.settle().await;
    user.delete::<Note>("n").await;
}

#[test]
fn the_engine_survives_every_fault() {
    let report = Exploration::of(|| windlass::operator(Notes).owns::<ConfigMap>()).run(life_of_a_note);
    println!("{report}");
    report.assert();
    assert!(report.plans() > 50, "{report}");
}

#[test]
fn a_plan_gives_the_same_schedule_every_time() {
    let exploration = || Exploration::of(|| windlass::operator(Notes).owns::<ConfigMap>()).threads(1);
    for text in ["clean", "crash-after@2", "lost@3", "gone@4", "stale@1:2", "user@3#5"] {
        let plan = text.parse().expect("it is a plan");
        let (one, report) = exploration().replay(&plan, life_of_a_note);
        let (other, _) = exploration().replay(&plan, life_of_a_note);
        assert_eq!(one, other, "{text}");
        assert!(one.lines().count() > 5 && report.findings.is_empty(), "{one}\n{report}");
    }
}
