//! What is decided of upgrades, as tables.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::pods::Pods;

const TERMS: Terms = Terms { window: Duration::from_secs(60), deadline: Duration::from_secs(600) };

/// What is asked for at a time, in seconds: the hash, and the value of the annotation that asks for another attempt.
fn at<'a>(seconds: i64, hash: &'a str, retry: Option<&'a str>) -> Situation<'a> {
    Situation { hash, version: hash, retry, terms: TERMS, now: Timestamp::from_second(seconds).unwrap() }
}

fn failing(attempts: u32) -> Health {
    Health::Failing { member: "m".into(), attempts, why: "exit code 1".into() }
}

/// A pass of the engine, in short: `health` is how the trial does, and it is proven by that.
fn pass(record: &UpgradeStatus, situation: &Situation<'_>, health: Health) -> UpgradeStatus {
    let chosen = record.choose(situation, || health.clone());
    chosen.prove(situation, health.objection(), &json!({"image": situation.hash}))
}

/// The record in a line: current, good, tried and failed.
fn show(record: &UpgradeStatus) -> String {
    let text = |text: Option<&String>| text.cloned().unwrap_or_else(|| "-".into());
    format!(
        "{} good {} tried {} failed {}",
        text(record.current_version.as_ref()),
        text(record.last_known_good.as_ref().map(|it| &it.hash)),
        text(record.in_progress.as_ref().map(|it| &it.hash)),
        text(record.failed_revision.as_ref().map(|it| &it.hash)),
    )
}

/// One pass after the other, with what is asked for, how it does, and the record that follows.
fn course(steps: &[(i64, &str, Option<&str>, Health, &str)]) -> UpgradeStatus {
    let mut record = UpgradeStatus::default();
    for (seconds, hash, retry, health, expected) in steps {
        record = pass(&record, &at(*seconds, hash, *retry), health.clone());
        assert_eq!(show(&record), *expected, "at {seconds}");
    }
    record
}

/// Version `a` is known to be good at 100 s.
const GOOD: [(i64, &str, Option<&str>, Health, &str); 3] = [
    (0, "a", None, Health::Healthy, "a good - tried a failed -"),
    (59, "a", None, Health::Healthy, "a good - tried a failed -"),
    (60, "a", None, Health::Healthy, "a good a tried - failed -"),
];

#[test]
fn a_revision_is_good_when_it_was_healthy_for_its_window_without_a_break() {
    course(&GOOD);
    let unwell = Health::Progressing("1 of 2".into());
    course(&[
        (0, "a", None, unwell.clone(), "- good - tried a failed -"),
        (50, "a", None, Health::Healthy, "a good - tried a failed -"),
        (100, "a", None, unwell, "a good - tried a failed -"),
        (120, "a", None, Health::Healthy, "a good - tried a failed -"),
        (179, "a", None, Health::Healthy, "a good - tried a failed -"),
        (180, "a", None, Health::Healthy, "a good a tried - failed -"),
    ]);
}

#[test]
fn a_revision_that_failed_is_taken_back_and_not_tried_again() {
    let mut steps = GOOD.to_vec();
    steps.extend([
        (100, "b", None, Health::Progressing("0 of 2".into()), "a good a tried b failed -"),
        (110, "b", None, failing(2), "a good a tried b failed -"),
        (120, "b", None, failing(3), "a good a tried - failed b"),
        (130, "b", None, Health::Healthy, "a good a tried - failed b"),
        (99_999, "b", None, Health::Healthy, "a good a tried - failed b"),
    ]);
    let record = course(&steps);
    assert!(record.is_rolled_back());
    let failed = record.failed_revision.unwrap();
    assert_eq!(
        (failed.reason.as_str(), failed.rolled_back_to.as_deref()),
        ("m failed to start 3 times: exit code 1", Some("a"))
    );
}

#[test]
fn a_revision_that_failed_while_it_is_proven_is_taken_back() {
    let mut steps = GOOD.to_vec();
    steps.extend([
        (100, "b", None, Health::Healthy, "b good a tried b failed -"),
        (150, "b", None, failing(3), "a good a tried - failed b"),
    ]);
    course(&steps);
}

#[test]
fn another_wish_and_a_person_end_the_quarantine() {
    let mut steps = GOOD.to_vec();
    steps.extend([
        (100, "b", None, Health::Healthy, "b good a tried b failed -"),
        (101, "b", None, failing(3), "a good a tried - failed b"),
        // Back to what is good: nothing is tried.
        (110, "a", None, Health::Healthy, "a good a tried - failed -"),
        // Asked for anew: it is tried again.
        (120, "b", None, failing(1), "a good a tried b failed -"),
        (130, "b", None, failing(3), "a good a tried - failed b"),
        (140, "c", None, Health::Healthy, "c good a tried c failed -"),
        (150, "b", None, failing(1), "c good a tried b failed -"),
        (160, "b", Some("1"), failing(4), "a good a tried - failed b"),
        (170, "b", Some("1"), Health::Healthy, "a good a tried - failed b"),
        (180, "b", None, Health::Healthy, "a good a tried - failed b"),
        (190, "b", Some("2"), Health::Healthy, "b good a tried b failed -"),
        (250, "b", Some("2"), Health::Healthy, "b good b tried - failed -"),
    ]);
    course(&steps);
}

#[test]
fn without_a_good_revision_there_is_none_to_go_back_to() {
    let record = course(&[
        (0, "a", None, failing(1), "- good - tried a failed -"),
        (10, "a", None, failing(3), "- good - tried a failed a"),
        (20, "a", None, failing(4), "- good - tried a failed a"),
    ]);
    assert!(!record.is_rolled_back());
    let before = UpgradeStatus { failed_revision: None, ..record.clone() };
    assert!(matches!(record.news(&before), Some(News::Failed(_))));
    // What was missing is there: it goes on by itself.
    let record = pass(&record, &at(30, "a", None), Health::Healthy);
    let record = pass(&record, &at(90, "a", None), Health::Healthy);
    assert_eq!(show(&record), "a good a tried - failed -");
}

#[test]
fn a_revision_that_is_late_has_failed_when_it_is_late_at_a_second_look() {
    let unwell = || Health::Progressing("1 of 2".into());
    let mut steps = GOOD.to_vec();
    steps.extend([
        (100, "b", None, unwell(), "a good a tried b failed -"),
        (699, "b", None, unwell(), "a good a tried b failed -"),
        (700, "b", None, unwell(), "a good a tried b failed -"),
        (759, "b", None, unwell(), "a good a tried b failed -"),
        (760, "b", None, unwell(), "a good a tried - failed b"),
    ]);
    let record = course(&steps);
    assert_eq!(record.failed_revision.unwrap().reason, "not healthy within 600s: 1 of 2");
    // A clock that jumped: it is well at the second look.
    let mut steps = GOOD.to_vec();
    steps.extend([
        (100, "b", None, unwell(), "a good a tried b failed -"),
        (3700, "b", None, unwell(), "a good a tried b failed -"),
        (3710, "b", None, Health::Healthy, "b good a tried b failed -"),
        (3770, "b", None, Health::Healthy, "b good b tried - failed -"),
    ]);
    course(&steps);
}

#[test]
fn a_revision_that_cannot_be_started_at_all_is_given_half_a_minute() {
    let mut steps = GOOD.to_vec();
    steps.extend([
        (100, "b", None, failing(0), "a good a tried b failed -"),
        (110, "b", None, failing(0), "a good a tried b failed -"),
        (120, "b", None, Health::Progressing("0 of 2".into()), "a good a tried b failed -"),
        (130, "b", None, failing(0), "a good a tried b failed -"),
        // The clock was put back: the half minute begins anew.
        (125, "b", None, failing(0), "a good a tried b failed -"),
        (154, "b", None, failing(0), "a good a tried b failed -"),
        (155, "b", None, failing(0), "a good a tried - failed b"),
    ]);
    assert_eq!(course(&steps).failed_revision.unwrap().reason, "m does not start: exit code 1");
}

#[test]
fn a_clock_that_was_put_back_keeps_nobody_waiting() {
    let mut steps = GOOD.to_vec();
    steps.extend([
        (9000, "b", None, Health::Healthy, "b good a tried b failed -"),
        (5400, "b", None, Health::Healthy, "b good a tried b failed -"),
        (5460, "b", None, Health::Healthy, "b good b tried - failed -"),
    ]);
    course(&steps);
}

#[test]
fn news_are_told_once() {
    let good = course(&GOOD);
    let tried = pass(&good, &at(100, "b", None), Health::Healthy);
    let proven = pass(&tried, &at(160, "b", None), Health::Healthy);
    assert_eq!((tried.news(&good), proven.news(&proven)), (None, None));
    assert_eq!(proven.news(&tried), Some(News::Succeeded { from: "a".into(), to: "b".into() }));
    let failed = pass(&tried, &at(110, "b", None), failing(3));
    assert!(matches!(failed.news(&tried), Some(News::RolledBack(_))));
    assert_eq!(pass(&failed, &at(120, "b", None), failing(3)).news(&failed), None);
}

#[test]
fn it_is_looked_again_while_something_is_tried_and_not_later_than_needed() {
    let good = course(&GOOD);
    let tried = pass(&good, &at(100, "b", None), Health::Healthy);
    let rows = [(&good, 100, None), (&tried, 100, Some(10)), (&tried, 157, Some(3)), (&tried, 160, Some(1))];
    for (record, seconds, expected) in rows {
        let recheck = record.recheck(&at(seconds, "b", None));
        assert_eq!(recheck, expected.map(Duration::from_secs), "{seconds}");
    }
}

#[test]
fn starts_of_pods_are_counted() {
    let check = |container: Value, expected: Option<(u32, &str)>| {
        let mut container = container;
        container["name"] = json!("c");
        container["image"] = json!("i:1");
        let pod = json!({
            "metadata": {"name": "p", "uid": "p"},
            "status": {"containerStatuses": [container]},
        });
        let pods: Pods = std::iter::once(std::sync::Arc::new(serde_json::from_value(pod.clone()).unwrap())).collect();
        let health = Health::of_pods(&pods);
        let expected = expected.map_or(Health::Healthy, |(attempts, why)| Health::Failing {
            member: "p".into(),
            attempts,
            why: why.into(),
        });
        assert_eq!(health, expected, "{pod}");
    };
    let container = |ready: bool, restarts: u32, state: Value, last: Value| json!({"ready": ready, "restartCount": restarts, "imageID": "", "state": state, "lastState": last});
    let ended = |code: i32| json!({"terminated": {"exitCode": code}});
    let waits = |reason: &str| json!({"waiting": {"reason": reason}});
    let (runs, none) = (json!({"running": {}}), json!({}));
    check(container(true, 0, runs.clone(), none.clone()), None);
    check(container(true, 7, runs.clone(), ended(1)), None);
    check(container(false, 0, runs.clone(), none.clone()), None);
    check(container(false, 0, waits("ContainerCreating"), none.clone()), None);
    check(container(false, 0, ended(1), none.clone()), Some((1, "it ended with exit code 1")));
    check(container(false, 1, runs, ended(9)), Some((1, "it ended with exit code 9")));
    check(container(false, 2, waits("CrashLoopBackOff"), ended(1)), Some((3, "it ended with exit code 1")));
    check(container(false, 0, waits("ImagePullBackOff"), none), Some((0, "ImagePullBackOff: image i:1")));
}
