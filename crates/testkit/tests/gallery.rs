//! The gallery of bugs: each is found by the class of faults that it is there for, and the fixed reconcilers pass.

#[path = "../gallery/mod.rs"]
mod gallery;

use gallery::{Bug, ENTRIES, Entry, Family, Play, Tune, exploration, play, run};
use windlass_testkit::explore::Plan;

/// How many plans of the fixed reconcilers the tests try; `cargo xtask testkit gallery` tries all.
const FIXED_PLANS: usize = 8;

fn found(family: Family) {
    let entries: Vec<&Entry> = ENTRIES.iter().filter(|entry| entry.family == family).collect();
    assert!(!entries.is_empty(), "{family:?}");
    for entry in entries {
        let report = run(entry, &entry.bug, Tune { classes: Some(entry.class), threads: Some(1), plans: None });
        assert!(!report.findings.is_empty(), "{} ({}) is not found by {:?}", entry.what, entry.link, entry.class);
        let is_clean = report.findings[0].plan.faults.is_empty();
        assert_eq!(is_clean, entry.class.is_empty(), "{:?}: {report}", entry.bug);
    }
}

fn fixed(family: Family, play: Play) {
    let is_it = |entry: &&Entry| entry.family == family && entry.play == play;
    let entry = ENTRIES.iter().find(is_it).expect("the gallery has it");
    run(entry, &Bug::None, Tune { plans: Some(FIXED_PLANS), threads: Some(1), classes: None }).assert();
}

#[test]
fn bugs_of_settings_are_found() {
    found(Family::Settings);
    fixed(Family::Settings, Play::Life);
    fixed(Family::Settings, Play::Changes);
}

#[test]
fn bugs_of_members_are_found() {
    found(Family::Members);
    fixed(Family::Members, Play::Sizes);
    fixed(Family::Members, Play::Changes);
}

#[test]
fn bugs_of_credentials_are_found() {
    found(Family::Credentials);
    fixed(Family::Credentials, Play::Life);
}

#[test]
fn bugs_of_things_outside_are_found() {
    found(Family::Outside);
    fixed(Family::Outside, Play::Again);
}

#[test]
fn bugs_of_reports_are_found() {
    found(Family::Reports);
    fixed(Family::Reports, Play::Licence);
    fixed(Family::Reports, Play::Changes);
}

#[test]
fn bugs_of_vaults_are_found() {
    found(Family::Vaults);
    fixed(Family::Vaults, Play::Access);
    fixed(Family::Vaults, Play::Changes);
}

#[test]
fn a_plan_of_many_calls_has_one_schedule() {
    let members = exploration(Family::Members, &Bug::None).threads(1);
    let schedules = members.repeat(&Plan::clean(0), 3, |user| play(Play::Many, user));
    assert_eq!(schedules.values().copied().collect::<Vec<_>>(), [3]);
    let calls = schedules.keys().map(|schedule| schedule.lines().count() - 1).sum::<usize>();
    assert!((150..300).contains(&calls), "the scenario whose cost is measured has about 200 calls, not {calls}");
}
