//! Whose turn it is: which member changes, goes, restarts or takes over now, and who waits for what.

use std::collections::BTreeSet;

use super::survey::{Seen, Survey};
use crate::kind::SwitchoverStatus;

/// What may happen now.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Turn {
    /// The members that the members are told of.
    pub(super) roster: Vec<String>,
    /// Those whose workload stays as it is for now.
    pub(super) waits: BTreeSet<String>,
    /// Those that are to go, and not yet.
    pub(super) leaving: BTreeSet<String>,
    /// Who is to be the primary, if another one is.
    pub(super) successor: Option<String>,
    /// Who restarts its server for settings that need it.
    pub(super) restart: Option<String>,
    /// What becomes of a request for another primary.
    pub(super) switchover: Option<SwitchoverStatus>,
    /// What goes on, for people.
    pub(super) news: Vec<String>,
}

/// Decides.
pub(super) fn turn(survey: &Survey) -> Turn {
    let mut turn = Turn { roster: survey.wanted.clone(), switchover: survey.answered.clone(), ..Turn::default() };
    shrink(survey, &mut turn);
    roll(survey, &mut turn);
    if turn.waits.is_empty() {
        restart(survey, &mut turn);
    }
    request(survey, &mut turn);
    turn
}

/// Members that are too many go: not the primary, and none whose word may be needed.
fn shrink(survey: &Survey, turn: &mut Turn) {
    let surplus: BTreeSet<String> =
        survey.members.keys().filter(|member| !survey.wanted.contains(member)).cloned().collect();
    if surplus.is_empty() {
        return;
    }
    let Some((primary, seen)) = survey.primary() else {
        turn.news.push(format!("{} stay until there is a primary", list(&surplus)));
        turn.roster.extend(surplus.iter().cloned());
        turn.leaving = surplus;
        return;
    };
    if surplus.contains(primary) {
        turn.roster.push(primary.clone());
        turn.successor = best(survey, &survey.wanted);
        turn.news.push(format!("{primary} hands over before it goes"));
        turn.leaving = surplus;
        return;
    }
    let voters = seen.report.as_ref().map(|report| report.voters.clone()).unwrap_or_default();
    turn.leaving = surplus.intersection(&voters).cloned().collect();
    if !turn.leaving.is_empty() {
        turn.news.push(format!("{} go when commits do not depend on them", list(&turn.leaving)));
    }
}

/// Members that are made from something else than is wanted change one after the other, the primary last.
fn roll(survey: &Survey, turn: &mut Turn) {
    let is_outdated =
        |member: &&String| survey.members.get(*member).is_some_and(|seen| seen.revision != survey.revision);
    let outdated: Vec<&String> = survey.wanted.iter().filter(is_outdated).collect();
    if outdated.is_empty() {
        return;
    }
    turn.waits = outdated.iter().map(|member| (*member).clone()).collect();
    let is_broken = |member: &&&String| survey.members.get(**member).is_some_and(|seen| seen.is_broken);
    let broken: Vec<&String> = outdated.iter().filter(is_broken).copied().collect();
    if !broken.is_empty() {
        // They serve nobody: a change can only help.
        turn.waits.retain(|member| !broken.contains(&member));
        return;
    }
    let primary = survey.primary().map(|(name, _)| name);
    let Some(next) = outdated.iter().rev().find(|member| Some(**member) != primary).or(outdated.last()).copied() else {
        return;
    };
    let unsettled: Vec<&String> = (survey.members.iter())
        .filter(|(member, seen)| *member != next && !seen.is_settled())
        .map(|(member, _)| member)
        .collect();
    if !unsettled.is_empty() {
        let who: BTreeSet<String> = unsettled.into_iter().cloned().collect();
        turn.news.push(format!("{next} changes when {} are ready", list(&who)));
        return;
    }
    if Some(next) == primary && survey.members.len() > 1 {
        let others: Vec<String> = survey.wanted.iter().filter(|member| *member != next).cloned().collect();
        turn.successor = best(survey, &others);
        turn.news.push(format!("{next} hands over before it changes"));
        return;
    }
    turn.news.push(format!("{next} changes"));
    turn.waits.remove(next);
}

/// Servers whose settings need it restart one after the other, the primary last.
fn restart(survey: &Survey, turn: &mut Turn) {
    // Who has not read them does not know whether it has to, and the primary would seem to be the only one.
    let is_unaware = |(_, seen): &(&String, &Seen)| !seen.has_read(&survey.settings);
    if let Some((member, _)) = survey.members.iter().find(is_unaware) {
        if survey.members.values().any(Seen::is_pending) {
            turn.news.push(format!("servers restart for their settings when {member} has read them"));
        }
        return;
    }
    let pending: Vec<&String> =
        survey.members.iter().filter(|(_, seen)| seen.is_pending()).map(|(member, _)| member).collect();
    let primary = survey.primary().map(|(name, _)| name);
    let next = pending.iter().rev().find(|member| Some(**member) != primary).or(pending.last()).copied();
    let Some(next) = next else { return };
    let away: BTreeSet<String> = (survey.members.iter())
        .filter(|(member, seen)| *member != next && !seen.is_settled())
        .map(|(member, _)| member.clone())
        .collect();
    if away.is_empty() {
        turn.news.push(format!("{next} restarts for its settings"));
        turn.restart = Some(next.clone());
    } else {
        turn.news.push(format!("{next} restarts for its settings when {} are ready", list(&away)));
    }
}

/// Somebody asks for another primary: each request is answered once.
fn request(survey: &Survey, turn: &mut Turn) {
    let Some(requested) = &survey.request else { return };
    let is_open = survey.answered.as_ref().is_none_or(|it| it.requested != *requested || it.state == "Waiting");
    if !is_open {
        return;
    }
    let to = requested.split_whitespace().next().unwrap_or_default();
    let answer = |state: &str, message: String| {
        Some(SwitchoverStatus { requested: requested.clone(), state: state.into(), message })
    };
    let primary = survey.primary().map(|(name, _)| name.as_str());
    turn.switchover = match survey.members.get(to) {
        _ if !survey.wanted.iter().any(|member| member == to) => {
            answer("Refused", format!("{to:?} is no member: name one of {}", survey.wanted.join(", ")))
        }
        _ if primary == Some(to) => answer("Done", String::new()),
        Some(seen) if seen.is_streaming() && turn.successor.is_none() => {
            turn.successor = Some(to.to_owned());
            answer("Waiting", format!("{to} is about to take over"))
        }
        _ => answer("Waiting", format!("{to} does not follow a primary now")),
    };
}

/// The best of `among` to take over: one that is as wanted, if there is one.
fn best(survey: &Survey, among: &[String]) -> Option<String> {
    let seen = |member: &&String| survey.members.get(*member).filter(|seen| seen.is_streaming());
    let rank =
        |seen: &Seen| (seen.revision == survey.revision, seen.report.as_ref().and_then(|report| report.position));
    let fit = among.iter().filter(|member| seen(member).is_some());
    fit.max_by_key(|member| seen(member).map(rank)).cloned()
}

fn list(members: &BTreeSet<String>) -> String {
    members.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::wire::{Position, Report, Role};

    /// Members by name: role (`p`, `r` or `-` for none), then what is special of them.
    fn survey(wanted: &[&str], members: &[(&str, &str)]) -> Survey {
        let seen = |(name, text): &(&str, &str)| {
            let has = |word: &str| text.split(' ').any(|it| it == word);
            let role = match text.chars().next() {
                Some('p') => Role::Primary,
                Some('r') => Role::Replica,
                _ => Role::None,
            };
            let report = Report {
                member: (*name).to_owned(),
                role,
                streaming: role == Role::Replica,
                position: Some(Position { timeline: 1, lsn: 1 }),
                pending_restart: has("pending"),
                settings: Some(if has("untold") { "0" } else { "1" }.into()),
                has_read: role != Role::None && !has("unread"),
                voters: if has("asks-c") { BTreeSet::from(["c".to_owned()]) } else { BTreeSet::new() },
                ..Report::default()
            };
            let revision = if has("old") { "1" } else { "2" }.to_owned();
            let seen = Seen {
                pod_revision: Some(if has("changing") { "1".into() } else { revision.clone() }),
                revision,
                is_ready: (role != Role::None || has("stopped")) && !has("away"),
                is_broken: has("broken"),
                report: Some(report),
            };
            ((*name).to_owned(), seen)
        };
        let members: BTreeMap<String, Seen> = members.iter().map(seen).collect();
        let wanted = wanted.iter().map(|name| (*name).to_owned()).collect();
        Survey { wanted, revision: "2".into(), settings: "1".into(), members, ..Survey::default() }
    }

    const ABC: [&str; 3] = ["a", "b", "c"];

    fn check_roll(members: &[(&str, &str)], waits: &[&str], successor: Option<&str>) {
        let turn = turn(&survey(&ABC, members));
        assert_eq!(turn.waits, waits.iter().map(|name| (*name).to_owned()).collect(), "{members:?}");
        assert_eq!(turn.successor.as_deref(), successor, "{members:?}");
        assert_eq!((turn.roster.len(), turn.leaving.len()), (3, 0));
    }

    #[test]
    fn members_change_one_after_the_other_and_the_primary_last() {
        check_roll(&[("a", "p"), ("b", "r"), ("c", "r")], &[], None);
        check_roll(&[("a", "p old"), ("b", "r old"), ("c", "r old")], &["a", "b"], None);
        check_roll(&[("a", "p old"), ("b", "r old"), ("c", "r changing")], &["a", "b"], None);
        check_roll(&[("a", "p old"), ("b", "r old"), ("c", "r away")], &["a", "b"], None);
        check_roll(&[("a", "p old"), ("b", "r old"), ("c", "r")], &["a"], None);
        check_roll(&[("a", "p old"), ("b", "r"), ("c", "r")], &["a"], Some("c"));
        check_roll(&[("a", "r old"), ("b", "r"), ("c", "p")], &[], None);
        check_roll(&[("a", "r old"), ("b", "r"), ("c", "p old")], &["c"], None);
        check_roll(&[("a", "r"), ("b", "r old"), ("c", "p old")], &["c"], None);
    }

    #[test]
    fn what_is_broken_can_always_be_repaired() {
        check_roll(&[("a", "p old"), ("b", "- old broken"), ("c", "- old broken")], &["a"], None);
        check_roll(&[("a", "- old broken"), ("b", "- old broken"), ("c", "- old broken")], &[], None);
        check_roll(&[("a", "p old"), ("b", "- old"), ("c", "- old")], &["a", "b", "c"], None);
    }

    #[test]
    fn a_single_server_changes_in_place() {
        let turn = turn(&survey(&["a"], &[("a", "p old")]));
        assert_eq!((turn.waits.len(), turn.successor), (0, None));
    }

    #[test]
    fn members_go_when_nothing_depends_on_them() {
        let check = |members: &[(&str, &str)], leaving: &[&str], roster: &[&str], successor: Option<&str>| {
            let turn = turn(&survey(&["a", "b"], members));
            assert_eq!(turn.leaving, leaving.iter().map(|name| (*name).to_owned()).collect(), "{members:?}");
            assert_eq!(
                (turn.roster, turn.successor.as_deref()),
                (roster.iter().map(|it| (*it).to_owned()).collect(), successor)
            );
        };
        check(&[("a", "p"), ("b", "r"), ("c", "r")], &[], &["a", "b"], None);
        check(&[("a", "p asks-c"), ("b", "r"), ("c", "r")], &["c"], &["a", "b"], None);
        check(&[("a", "r"), ("b", "r"), ("c", "p")], &["c"], &["a", "b", "c"], Some("b"));
        check(&[("a", "r"), ("b", "r"), ("c", "r")], &["c"], &["a", "b", "c"], None);
    }

    #[test]
    fn servers_restart_for_their_settings_one_after_the_other_and_the_primary_last() {
        let check = |members: &[(&str, &str)], restart: Option<&str>| {
            assert_eq!(turn(&survey(&ABC, members)).restart.as_deref(), restart, "{members:?}");
        };
        check(&[("a", "p"), ("b", "r"), ("c", "r")], None);
        check(&[("a", "p pending"), ("b", "r pending"), ("c", "r")], Some("b"));
        check(&[("a", "p pending"), ("b", "r pending"), ("c", "- stopped")], None);
        check(&[("a", "p pending"), ("b", "r unread"), ("c", "r unread")], None);
        check(&[("a", "p pending"), ("b", "r pending"), ("c", "r untold")], None);
        check(&[("a", "p pending"), ("b", "r"), ("c", "r away")], None);
        check(&[("a", "p pending"), ("b", "r"), ("c", "r")], Some("a"));
        check(&[("a", "p pending"), ("b", "r pending"), ("c", "r old")], Some("b"));
    }

    #[test]
    fn a_request_for_another_primary_is_answered_once() {
        let check = |request: &str, answered: Option<(&str, &str)>, primary: &str, expected: (&str, Option<&str>)| {
            let role = |name: &str| if name == primary { "p" } else { "r" };
            let mut survey = survey(&ABC, &ABC.map(|name| (name, role(name))));
            survey.request = Some(request.into());
            let status = |(requested, state): (&str, &str)| SwitchoverStatus {
                requested: requested.into(),
                state: state.into(),
                message: String::new(),
            };
            survey.answered = answered.map(status);
            let turn = turn(&survey);
            let state = turn.switchover.map(|it| it.state).unwrap_or_default();
            assert_eq!((state.as_str(), turn.successor.as_deref()), expected, "{request} {answered:?} {primary}");
        };
        check("b", None, "a", ("Waiting", Some("b")));
        check("b", Some(("b", "Waiting")), "a", ("Waiting", Some("b")));
        check("b", Some(("b", "Waiting")), "b", ("Done", None));
        check("b", Some(("b", "Done")), "a", ("Done", None));
        check("b again", Some(("b", "Done")), "a", ("Waiting", Some("b")));
        check("x", None, "a", ("Refused", None));
    }
}
