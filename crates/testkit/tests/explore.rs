//! Explorations of small operators.

#![expect(missing_docs, reason = "the kinds are those of a test")]

use std::sync::Arc;

use serde_json::json;
use windlass::prelude::*;
use windlass_testkit::explore::{Exploration, Plan, User};

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

#[test]
fn a_replica_that_lost_the_lead_writes_no_more() {
    let exploration = Exploration::of(|| windlass::operator(Notes).owns::<ConfigMap>()).threads(1);
    let (first, _) = exploration.replay(&Plan::clean(0), life_of_a_note);
    let is_write = |line: &&str| line.contains(" life 0 patch ") && line.ends_with("changed");
    let write = first.lines().find(is_write).and_then(|line| line.strip_prefix('#')).expect("it writes something");
    let number = write.split(' ').next().unwrap_or_default();
    let plan = format!("deposed@{number}").parse().expect("it is a plan");
    let (schedule, report) = exploration.replay(&plan, life_of_a_note);
    report.assert();
    let (before, after) = schedule.split_once("<- Deposed").expect("it was deposed");
    assert!(before.contains("life 0") && after.contains("life 1 patch"), "{schedule}");
    assert!(!after.contains("life 0 patch") && !after.contains("life 0 create"), "{schedule}");
}

#[test]
fn the_same_plan_has_one_schedule_on_all_threads() {
    let exploration = Exploration::of(|| windlass::operator(Notes).owns::<ConfigMap>()).threads(2);
    let plan = "crash-after@2#3".parse().expect("it is a plan");
    let schedules = exploration.repeat(&plan, 20, life_of_a_note);
    assert_eq!(schedules.into_values().collect::<Vec<_>>(), [20]);
}

/// A house, made of parts.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "desk.example.com", version = "v1", kind = "House")]
pub struct HouseSpec {
    pub floors: u32,
    #[serde(default)]
    pub roof: bool,
}

struct Houses;

fn map(name: String, floors: u32) -> ConfigMap {
    let data = Some([("floors".to_owned(), floors.to_string())].into());
    ConfigMap { metadata: named(name), data, ..ConfigMap::default() }
}

impl Operator for Houses {
    type Resource = House;

    fn desired(&self, house: &House, _: &World) -> Outcome<NoStatus> {
        let (name, floors) = (house.name_any(), house.spec.floors);
        let walls = Secret { metadata: named(format!("{name}-walls")), ..Secret::default() };
        Desired::new()
            .part(Part::new("ground", map(format!("{name}-ground"), floors)))
            .part(Part::new("walls", walls).after("ground"))
            .part_if(house.spec.roof, || Part::new("roof", map(format!("{name}-roof"), floors)).after("walls"))
            .settled()
    }
}

async fn life_of_a_house(user: User) {
    user.create::<House>(json!({"metadata": {"name": "h"}, "spec": {"floors": 1, "roof": true}})).await;
    user.settle().await;
    user.patch::<House>("h", json!({"spec": {"floors": 2, "roof": false}})).await;
    user.settle().await;
    user.delete::<House>("h").await;
}

#[test]
fn parts_survive_every_fault() {
    let houses = || windlass::operator(Houses).owns::<ConfigMap>().owns::<Secret>().ordered();
    let report = Exploration::of(houses).plans(60).run(life_of_a_house);
    println!("{report}");
    report.assert();
}

/// An account, opened and closed by handlers.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "desk.example.com", version = "v1", kind = "Account")]
pub struct AccountSpec {
    pub size: u32,
}

async fn open(account: Arc<Account>, cx: HandlerContext<Account>) -> Result<(), Failure> {
    cx.apply(map(account.name_any(), account.spec.size)).await?;
    Ok(())
}

async fn close(_: Arc<Account>, _: HandlerContext<Account>) -> Result<(), Failure> {
    Ok(())
}

async fn life_of_an_account(user: User) {
    user.create::<Account>(json!({"metadata": {"name": "a"}, "spec": {"size": 1}})).await;
    user.settle().await;
    user.patch::<Account>("a", json!({"spec": {"size": 2}})).await;
    user.settle().await;
    user.delete::<Account>("a").await;
}

#[test]
fn handlers_survive_every_fault() {
    let accounts = || {
        windlass::handlers::<Account>("account-operator")
            .owns::<ConfigMap>()
            .on_create("open", open)
            .on_update("resize", open)
            .on_delete("close", close)
    };
    // What a handler made and somebody else deleted is not made again: nothing has happened to the resource.
    let report = Exploration::of(accounts).without(["delete", "delete-while-down"]).plans(60).run(life_of_an_account);
    println!("{report}");
    report.assert();
}
