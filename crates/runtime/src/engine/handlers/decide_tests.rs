//! Tables of what is to run when.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::engine::handlers::seen::Part;

/// A resource and its handlers, with a clock in seconds.
struct Story {
    entries: Vec<Entry>,
    seen: Seen,
    state: State,
    now: i64,
}

fn entry(id: &str) -> Entry {
    let cause = match id.split('-').next().unwrap_or_default() {
        "create" => Cause::Create,
        "update" => Cause::Update,
        "field" => Cause::Field,
        "resume" => Cause::Resume,
        "delete" => Cause::Delete,
        "timer" => Cause::Timer,
        _ => Cause::Daemon,
    };
    let cycle = Cycle { interval: Duration::from_secs(100), ..Cycle::default() };
    Entry { id: id.into(), cause, retry: Retry::new(), cycle }
}

impl Story {
    /// A new resource of generation 1 with the spec `a`, whose chosen part is the first letter of it.
    fn new(ids: &str) -> Self {
        let entries = ids.split_whitespace().map(entry).collect();
        let created_at = Timestamp::from_second(0).unwrap();
        let seen = Seen { uid: "u".into(), created_at, has_finalizer: true, ..Seen::default() };
        let mut story = Self { entries, seen, state: State::default(), now: 0 };
        story.spec("a");
        story
    }

    fn spec(&mut self, spec: &str) -> &mut Self {
        self.seen.generation += 1;
        self.seen.spec = spec.to_owned();
        let letter = &spec[..1];
        for entry in self.entries.iter().filter(|entry| entry.cause == Cause::Field) {
            let part = Part { hash: format!("part {letter}"), value: Some(letter.into()) };
            self.seen.parts.insert(entry.id.clone(), part);
        }
        self
    }

    fn at(&mut self, now: i64) -> &mut Self {
        self.now = now;
        self
    }

    fn deleted(&mut self) -> &mut Self {
        self.seen.is_deleting = true;
        self.seen.generation += 1;
        self
    }

    /// Another process: what was not stored is gone.
    fn restart(&mut self) -> &mut Self {
        let text = self.state.progress.write();
        let progress = Progress::read(Some(&text), &self.seen.uid).unwrap_or_default();
        self.state = State { memo: Memo { existed: !progress.uid.is_empty(), ..Memo::default() }, progress };
        self
    }

    fn time(&self) -> Timestamp {
        Timestamp::from_second(self.now).unwrap()
    }

    /// What is decided, in words.
    fn decide(&mut self) -> (String, Act) {
        let decision = decide(&self.entries, &self.seen, self.state.clone(), self.time());
        self.state = decision.state;
        let words = match &decision.act {
            Act::Run { index, attempt, old, .. } => {
                let again = if *attempt > 1 { format!(" again {attempt}") } else { String::new() };
                let old = old.as_ref().map(|old| format!(" from {old}")).unwrap_or_default();
                format!("{}{again}{old}", self.entries[*index].id)
            }
            Act::Rest { until: Some(until) } => format!("rest until {}", until.as_second()),
            Act::Rest { until: None } => "rest".to_owned(),
            Act::Release => "release".to_owned(),
        };
        (words, decision.act)
    }

    /// Decides, and expects that; what is to run ends with `outcome`.
    fn ends(&mut self, expected: &str, outcome: Result<(), Failure>) -> &mut Self {
        let (words, act) = self.decide();
        assert_eq!(words, expected, "at {}: {:#?}", self.now, self.state);
        if let Act::Run { index, target, .. } = act {
            let ended = (self.state.clone(), outcome.as_ref().copied());
            self.state = settle(&self.entries, index, &target, ended, self.time());
        }
        self
    }

    fn does(&mut self, expected: &str) -> &mut Self {
        for expected in expected.split(", ") {
            self.ends(expected, Ok(()));
        }
        self
    }

    fn fails(&mut self, expected: &str) -> &mut Self {
        self.ends(expected, Err(Failure::temporary("no")))
    }

    fn refuses(&mut self, expected: &str) -> &mut Self {
        self.ends(expected, Err(Failure::permanent("never")))
    }

    /// Decides, and expects that; the process dies in the middle of it.
    fn dies(&mut self, expected: &str) -> &mut Self {
        let (words, _) = self.decide();
        assert_eq!(words, expected);
        self.restart()
    }
}

const ALL: &str = "create-a create-b update-a field-a field-b delete-a delete-b";

#[test]
fn a_life_in_order() {
    let mut story = Story::new(ALL);
    story.does("create-a, create-b, rest").spec("ab").does("update-a, rest");
    story.spec("b").does(r#"update-a, field-a from "a", field-b from "a", rest"#);
    story.deleted().does("delete-a, delete-b, release");
}

#[test]
fn nothing_is_done_twice_and_nothing_is_written_without_need() {
    let mut story = Story::new(ALL);
    story.does("create-a, create-b, rest");
    let stored = story.state.progress.write();
    story.restart().does("rest");
    // There and back again is no change.
    story.spec("b").spec("a").does("rest");
    assert_eq!(story.state.progress.write(), stored);
}

#[test]
fn a_crash_repeats_only_what_was_at_work() {
    Story::new(ALL).does("create-a").dies("create-b").does("create-b again 2, rest");
    Story::new(ALL).dies("create-a").dies("create-a again 2").does("create-a again 3, create-b, rest");
    Story::new(ALL)
        .does("create-a, create-b, rest")
        .deleted()
        .does("delete-a")
        .dies("delete-b")
        .does("delete-b again 2, release");
}

#[test]
fn retries_survive_restarts_with_their_count_and_their_time() {
    let mut story = Story::new("create-a create-b");
    story.at(10).fails("create-a").does("create-b, rest until 11").restart().does("rest until 11");
    story.at(11).fails("create-a again 2").restart().does("rest until 13");
    story.at(13).fails("create-a again 3").does("rest until 17").at(20).does("create-a again 4, rest");
    let after = Failure::retry_after(Duration::from_secs(60), "busy");
    Story::new("create-a").ends("create-a", Err(after)).restart().does("rest until 60");
}

#[test]
fn what_gave_up_waits_for_a_change() {
    let mut story = Story::new("create-a update-a");
    story.refuses("create-a").does("rest").restart().at(9999).does("rest").spec("b").does("create-a, rest");
    story.spec("c").refuses("update-a").does("rest").spec("d").does("update-a, rest");

    let mut story = Story::new("create-a");
    story.entries[0].retry = Retry::new().attempts(2);
    story.fails("create-a").at(1).fails("create-a again 2").does("rest");
    story.spec("b").fails("create-a").does("rest until 2");
    // The last attempt was begun, and nobody knows how it ended.
    story.at(2).dies("create-a again 2").does("rest");

    let mut story = Story::new("create-a");
    story.entries[0].retry = Retry::new().within(Duration::from_secs(3));
    story.fails("create-a").at(1).fails("create-a again 2").does("rest");
}

#[test]
fn a_second_change_is_neither_lost_nor_done_twice() {
    // Each handler is done with the newest; who was done with the first change is asked again.
    let mut story = Story::new("update-a update-b");
    story.does("rest").spec("b").does("update-a").fails("update-b");
    story.spec("c").does("update-a, update-b, rest");
    // A handler that did not begin sees only the second change.
    let mut story = Story::new("field-a field-b");
    story.does("rest").spec("b").does(r#"field-a from "a""#).spec("c");
    story.does(r#"field-a from "b", field-b from "a", rest"#);
    // What was half done is put right, although the spec is back to what it was.
    let mut story = Story::new("update-a field-a field-b");
    story.does("rest").spec("b").does("update-a").dies(r#"field-a from "a""#).spec("a");
    story.does(r#"update-a, field-a from "a", rest"#);
}

#[test]
fn a_change_during_the_creation_is_an_update_only_for_what_was_made_before_it() {
    Story::new("create-a update-a").fails("create-a").spec("b").does("create-a, rest");
    Story::new("create-a create-b update-a field-a")
        .does("create-a")
        .spec("b")
        .does(r#"create-b, update-a, field-a from "a", rest"#);
}

#[test]
fn a_handler_that_fails_does_not_hold_up_the_others() {
    let mut story = Story::new("update-a update-b timer-a");
    story.does("timer-a, rest until 100").spec("b").fails("update-a").does("update-b, rest until 1");
    story.at(500).does("update-a again 2, timer-a, rest until 600");
}

#[test]
fn what_existed_is_resumed_once_per_process() {
    let mut story = Story::new("create-a resume-a update-a");
    story.does("create-a, rest").restart().does("resume-a, rest").spec("b").restart().does("resume-a, update-a, rest");
    story.restart().fails("resume-a").does("rest until 1").at(1).refuses("resume-a again 2").does("rest");
    story.restart().does("resume-a, rest");
    // It was there, but not served yet: that is a creation.
    Story::new("create-a resume-a").restart().does("create-a, rest");
    Story::new("create-a resume-a").dies("create-a").does("create-a again 2, resume-a, rest");
}

#[test]
fn timers_run_after_the_creation_until_the_deletion() {
    let mut story = Story::new("create-a timer-a delete-a");
    story.refuses("create-a").does("rest").spec("b").does("create-a, timer-a, rest until 100");
    story.at(150).does("timer-a, rest until 250").restart().does("rest until 250").at(260).fails("timer-a");
    story.does("rest until 261").at(261).does("timer-a again 2, rest until 361");
    story.at(400).refuses("timer-a").does("rest").spec("c").does("timer-a, rest until 500").at(500).deleted();
    story.does("delete-a, release");
}

#[test]
fn a_timer_waits_for_its_delay_and_for_quiet_and_a_short_one_is_not_remembered() {
    let mut story = Story::new("timer-a");
    story.entries[0].cycle.initial_delay = Duration::from_secs(30);
    story.does("rest until 30").at(40).does("timer-a, rest until 140");

    let mut story = Story::new("timer-a");
    story.entries[0].cycle.idle = Some(Duration::from_secs(20));
    story.does("rest until 20").at(10).spec("b").does("rest until 30").at(30).does("timer-a, rest until 130");
    story.at(120).spec("c").does("rest until 140");

    let mut story = Story::new("timer-a");
    story.entries[0].cycle.interval = Duration::from_secs(5);
    story.does("timer-a, rest until 5");
    assert!(story.state.progress.timers.is_empty());
    story.restart().does("timer-a, rest until 5");
}

#[test]
fn deletion_comes_before_all_that_is_open() {
    let mut story = Story::new("create-a update-a delete-a");
    story.fails("create-a").deleted().fails("delete-a").does("rest until 1").at(1).refuses("delete-a again 2");
    // A finalizer stays until somebody decides.
    story.does("rest");
    story.seen.force = Some("now".into());
    story.does("delete-a, release");

    let mut story = Story::new("create-a delete-a");
    story.seen.has_finalizer = false;
    story.deleted().does("rest");
    Story::new("create-a daemon-a").does("create-a, rest").deleted().does("release");
}

#[test]
fn force_tries_again_what_gave_up_and_runs_updates() {
    let mut story = Story::new("create-a update-a field-a resume-a");
    story.refuses("create-a").does("rest");
    story.seen.force = Some("one".into());
    story.does("create-a, rest");
    story.seen.force = Some("two".into());
    story.does("update-a, rest").restart().does("resume-a, rest");
    story.spec("b").does("update-a").refuses(r#"field-a from "a""#).does("rest");
    story.seen.force = Some("three".into());
    story.does(r#"update-a, field-a from "a", rest"#);
    story.seen.force = None;
    story.does("rest");

    let mut new = Story::new("update-a");
    new.seen.force = Some("from the beginning".into());
    new.does("rest");
}

#[test]
fn another_version_of_the_operator_goes_on() {
    let mut story = Story::new("create-a update-a");
    story.does("create-a, rest");
    // New handlers begin from what is there; it is not created again, and a type that reads the spec otherwise is no change.
    story.entries = ["create-a", "create-b", "update-a", "update-b", "field-a"].map(entry).into();
    story.seen.spec = "a with a default".into();
    story.seen.parts.insert("field-a".into(), Part { hash: "part a".into(), value: Some(json!("a")) });
    story.restart().does("rest");
    story.spec("b").does(r#"update-a, update-b, field-a from "a", rest"#);
    // A change while nobody looked reaches the handler that is new, too.
    story.entries.push(entry("field-b"));
    story.spec("c").restart().does(r#"update-a, update-b, field-a from "b", field-b, rest"#);
    // What is no longer declared is forgotten.
    story.entries = ["update-a"].map(entry).into();
    story.restart().does("rest");
    assert_eq!(story.state.progress.steps.len(), 1);
}

#[test]
fn a_copy_of_an_object_is_new() {
    let mut story = Story::new("create-a delete-a");
    story.does("create-a, rest");
    story.seen.uid = "copy".into();
    story.restart().does("create-a, rest");
}
