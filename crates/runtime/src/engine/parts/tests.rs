//! What becomes of parts, as tables.

use super::*;

/// A part: `name<after,after state`, where the state is `-` for missing, `~` for one that differs, `+` for ready, `.` for
/// one on its way, `!` for a failed one, `x` for one that goes and `?` for one in trouble. A live one leans on what it is after.
fn wanted(text: &str) -> Wanted {
    let (place, state) = text.split_once(' ').unwrap();
    let (name, after) = place.split_once('<').unwrap_or((place, ""));
    let after: Vec<String> = after.split(',').filter(|name| !name.is_empty()).map(Into::into).collect();
    let state = match state {
        "-" => State::Missing,
        "~" => State::Differs,
        "+" => State::Current(Readiness::Ready),
        "." => State::Current(Readiness::NotYet("1 of 3 Pods are ready".into())),
        "!" => State::Current(Readiness::Failed("no disk".into())),
        "x" => State::Going,
        "?" => State::Troubled("forbidden".into()),
        other => panic!("{other} is no state"),
    };
    let leans_on = if state == State::Missing { Vec::new() } else { after.clone() };
    Wanted { part: Some(name.to_owned()), after, missing: None, leans_on, state }
}

/// A leftover: `name<after,after`, with `x` before it if it goes.
fn leftover(text: &str) -> Leftover {
    let (going, text) = text.strip_prefix('x').map_or((false, text), |text| (true, text));
    let (name, after) = text.split_once('<').unwrap_or((text, ""));
    let after = after.split(',').filter(|name| !name.is_empty()).map(Into::into).collect();
    Leftover { title: format!("ConfigMap {name}"), part: Some(name.to_owned()), after, going }
}

fn names(decision: &[usize], name: impl Fn(usize) -> String) -> String {
    decision.iter().map(|index| name(*index)).collect::<Vec<_>>().join(" ")
}

/// What is applied, and what is said.
fn check(parts: &[&str], applied: &str, message: &str) {
    let parts: Vec<Wanted> = parts.iter().map(|text| wanted(text)).collect();
    let decision = decide(&parts, &[], false);
    assert_eq!(names(&decision.apply, |index| parts[index].part.clone().unwrap()), applied, "{parts:?}");
    let text = decision.standing.verdict().map(|(reason, message)| format!("{reason}: {message}"));
    assert_eq!(text.unwrap_or_default(), message, "{parts:?}");
    assert_eq!(decision.standing.is_complete(), message.is_empty());
}

#[test]
fn a_part_is_made_when_those_that_it_is_after_are_ready() {
    check(&[], "", "");
    check(&["a -", "b<a -"], "a", "Waiting: b waits for a: it is not there");
    check(&["a .", "b<a -"], "", "Waiting: b waits for a: 1 of 3 Pods are ready");
    check(&["a +", "b<a -"], "b", "Waiting: b: it is not there");
    check(&["a +", "b<a ."], "", "Waiting: b: 1 of 3 Pods are ready");
    check(&["a +", "b<a +"], "", "");
    check(&["b<a -", "a +"], "b", "Waiting: b: it is not there");
    check(&["a +", "b .", "c<a,b -"], "", "Waiting: c waits for b: 1 of 3 Pods are ready");
    check(&["a ?", "b<a -", "c -"], "c", "Waiting: b waits for a: forbidden; c: it is not there");
    check(&["a x", "b<a -"], "", "Waiting: b waits for a: it is being deleted");
}

#[test]
fn a_change_makes_its_way_in_the_same_order() {
    check(&["a ~", "b<a ~"], "a", "Waiting: b waits for a: it is not as wanted");
    check(&["a .", "b<a ~"], "", "Waiting: b waits for a: 1 of 3 Pods are ready");
    check(&["a +", "b<a ~"], "b", "Waiting: b: it is not as wanted");
    check(&["a .", "b<a +"], "", "Waiting: a: 1 of 3 Pods are ready");
}

#[test]
fn the_order_is_followed_over_parts_that_are_ready_already() {
    check(&["a .", "b<a +", "c<b -"], "", "Waiting: a: 1 of 3 Pods are ready; c waits for a: 1 of 3 Pods are ready");
    let deep = "Waiting: b waits for a: 1 of 3 Pods are ready; c waits for b: it waits for a: 1 of 3 Pods are ready";
    check(&["a .", "b<a -", "c<b -"], "", deep);
    check(&["a +", "b<a +", "c<b -"], "c", "Waiting: c: it is not there");
}

#[test]
fn a_failed_part_needs_a_person_and_holds_those_after_it() {
    check(&["a !", "b<a -"], "", "PartFailed: a failed: no disk; b waits for a: it failed: no disk");
    let decision = decide(&[wanted("a !")], &[], false);
    let text: Vec<_> = decision.standing.statements().iter().map(|it| format!("{}={:?}", it.type_, it.truth)).collect();
    assert_eq!(text, ["Ready=False", "Progressing=False", "Stalled=True"]);
}

#[test]
fn a_precondition_holds_a_part_and_keeps_what_is_there() {
    for (state, expected) in
        [("a -", "a waits for a word of yours"), ("a ~", "a waits for a word of yours"), ("a +", "")]
    {
        let part = Wanted { missing: Some("a word of yours".into()), ..wanted(state) };
        let decision = decide(std::slice::from_ref(&part), &[leftover("old")], false);
        assert!(decision.apply.is_empty());
        assert_eq!(decision.standing.waiting.first().filter(|it| it.starts_with('a')).map_or("", |it| it), expected);
    }
}

#[test]
fn force_applies_what_is_there_out_of_turn_and_makes_nothing_new() {
    let parts = ["a .", "b<a ~", "c<b -"].map(wanted);
    assert_eq!(decide(&parts, &[], true).apply, [1]);
}

#[test]
fn children_without_a_place_neither_wait_nor_count() {
    let child = |state| Wanted { state, ..Wanted::default() };
    let children = [child(State::Missing), child(State::Differs), child(State::Going)];
    let decision = decide(&children, &[], false);
    assert_eq!((decision.apply, decision.standing.is_complete()), (vec![0, 1], true));
}

/// What is removed.
fn check_removal(parts: &[&str], leftovers: &[&str], removed: &str) {
    let parts: Vec<Wanted> = parts.iter().map(|text| wanted(text)).collect();
    let leftovers: Vec<Leftover> = leftovers.iter().map(|text| leftover(text)).collect();
    let decision = decide(&parts, &leftovers, false);
    assert_eq!(names(&decision.remove, |index| leftovers[index].part.clone().unwrap()), removed, "{leftovers:?}");
}

#[test]
fn what_is_needed_goes_after_what_needs_it_is_gone() {
    check_removal(&[], &[], "");
    check_removal(&[], &["a", "b<a", "c<b"], "c");
    check_removal(&[], &["a", "b<a", "xc<b"], "");
    check_removal(&[], &["a", "b<a"], "b");
    check_removal(&[], &["a", "xb<a"], "");
    check_removal(&[], &["a"], "a");
    check_removal(&[], &["xa"], "");
    check_removal(&[], &["a", "b<a", "c<a"], "b c");
    check_removal(&["a +"], &["b<a"], "b");
}

#[test]
fn nothing_is_removed_before_its_users_are_as_wanted() {
    let part = |state: &str| Wanted { after: Vec::new(), ..wanted(state) };
    let check = |item: Wanted, removed: &[usize]| {
        assert_eq!(decide(std::slice::from_ref(&item), &[leftover("old")], false).remove, removed, "{item:?}");
    };
    check(part("b<old ~"), &[]);
    check(Wanted { missing: Some("more".into()), ..part("b<old ~") }, &[]);
    check(part("b<old +"), &[0]);
    check(part("b<old ."), &[0]);
    check_removal(&["a -"], &["old"], "");
    check_removal(&["a ?"], &["old"], "");
    check_removal(&["a .", "b<a -"], &["old"], "old");
    // The object of a part was renamed: the old one goes when what needs it was moved to the new one.
    check_removal(&["a .", "b<a ~"], &["a"], "");
    check_removal(&["a +", "b<a +"], &["a"], "a");
}

#[test]
fn a_circle_that_somebody_made_does_not_keep_a_deletion_from_its_end() {
    check_removal(&[], &["a<b", "b<a"], "a b");
    check_removal(&[], &["a<b", "b<a", "c<a"], "c");
    check_removal(&[], &["a<b", "xb<a"], "");
    let user = Wanted { missing: Some("more".into()), ..wanted("u<a ~") };
    assert!(decide(&[user], &["a<b", "b<a"].map(leftover), false).remove.is_empty());
}
