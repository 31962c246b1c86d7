//! The gallery of bugs: each is found by the class of faults that it is there for, and the fixed reconcilers pass.

#[path = "../gallery/mod.rs"]
mod gallery;

use gallery::{Bug, ENTRIES, Entry, Family, Play, exploration, run};

/// How many plans of the fixed reconcilers the tests try; `cargo xtask testkit gallery` tries all.
const FIXED_PLANS: usize = 12;

fn found(family: Family) {
    let entries: Vec<&Entry> = ENTRIES.iter().filter(|entry| entry.family == family).collect();
    assert!(!entries.is_empty(), "{family:?}");
    for entry in entries {
        let explored = exploration(family, &entry.bug).classes([entry.class]).until_found().threads(1);
        let report = run(&explored, entry.play);
        assert!(!report.findings.is_empty(), "{} ({}) is not found by {:?}", entry.what, entry.link, entry.class);
        let is_clean = report.findings[0].plan.faults.is_empty();
        assert_eq!(is_clean, entry.class.is_empty(), "{:?}: {report}", entry.bug);
    }
}

fn fixed(family: Family, play: Play) {
    run(&exploration(family, &Bug::None).plans(FIXED_PLANS).threads(1), play).assert();
}

#[test]
fn bugs_of_settings_are_found() {
    found(Family::Settings);
    fixed(Family::Settings, Play::Life);
}

#[test]
fn bugs_of_members_are_found() {
    found(Family::Members);
    fixed(Family::Members, Play::Sizes);
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
}
