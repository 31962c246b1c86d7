//! The rules of a member, row by row: what it sees, and what it does.

use std::collections::BTreeMap;

use windlass::runtime::tenure::Holder;

use super::decide::{Action, decide};
use super::observed::{Control, Course, Data, Observed, Phase, Server, Vitals};
use crate::wire::{Memory, Origin, Plan, Position, Quorum, Report, Role};

/// Member `b` of `a`, `b` and `c`, of an asynchronous cluster with system 7 that `a` led last; nobody answers.
fn base() -> Observed {
    let members = ["a", "b", "c"].map(str::to_owned).to_vec();
    Observed {
        me: "b".into(),
        plan: Plan { members, lease_seconds: 6, ..Plan::default() },
        holder: Holder::Nobody,
        memory: Memory {
            system_id: Some("7".into()),
            leader: Some("a".into()),
            rules: Some(Vec::new()),
            ..Memory::default()
        },
        data: present(false),
        server: Server::Stopped,
        peers: BTreeMap::new(),
        course: Course { vacant_ms: 3_000, ..Course::default() },
    }
}

fn present(was_primary: bool) -> Data {
    Data::Present(Control { system_id: "7".into(), timeline: 1, was_primary })
}

fn vitals(lsn: u64) -> Vitals {
    Vitals { position: Position { timeline: 1, lsn }, ..Vitals::default() }
}

/// A standby that receives from nobody.
fn loose(lsn: u64) -> Server {
    Server::Standby(vitals(lsn))
}

fn following(leader: &str) -> Server {
    Server::Standby(Vitals { follows: Some(leader.into()), receiving: true, streaming: true, ..vitals(5) })
}

fn report(member: &str, role: Role, lsn: u64) -> Report {
    Report {
        member: member.into(),
        system_id: Some("7".into()),
        role,
        position: Some(Position { timeline: 1, lsn }),
        rewindable: role == Role::Primary,
        ..Report::default()
    }
}

fn empty(member: &str) -> Report {
    Report { member: member.into(), ..Report::default() }
}

fn rule(need: u32, of: &[&str]) -> Quorum {
    Quorum { need, of: of.iter().map(|name| (*name).to_owned()).collect() }
}

fn other() -> Holder {
    Holder::Other("a".into())
}

impl Observed {
    fn with(mut self, peer: Report) -> Self {
        self.peers.insert(peer.member.clone(), peer);
        self
    }

    fn fresh(mut self) -> Self {
        self.memory = Memory::default();
        self.data = Data::Empty;
        self
    }

    fn at(mut self, phase: Phase) -> Self {
        self.course.phase = phase;
        self
    }

    fn failed(mut self, failures: u32) -> Self {
        self.course.failures = failures;
        self
    }

    fn vacant(mut self, ms: u64) -> Self {
        self.course.vacant_ms = ms;
        self
    }

    fn rules(mut self, rules: &[Quorum]) -> Self {
        self.memory.rules = Some(rules.to_vec());
        self
    }
}

fn check(seen: Observed, expected: &str) {
    let action = match decide(&seen) {
        Action::Wait(obstacle) => format!("wait {}", obstacle.word),
        Action::Release { .. } => "release".into(),
        Action::Clone { from } => format!("clone {from}"),
        Action::Rewind { from } => format!("rewind {from}"),
        Action::Follow { leader } => format!("follow {leader}"),
        Action::HandOver { to } => format!("hand over {to}"),
        other => format!("{other:?}").to_lowercase(),
    };
    assert_eq!(action, expected, "{seen:#?}");
}

#[test]
fn a_server_takes_writes_with_a_lease_and_not_otherwise() {
    for holder in [other(), Holder::Nobody, Holder::Lapsed, Holder::Unknown] {
        check(Observed { holder: holder.clone(), server: Server::Primary(vitals(5)), ..base() }, "fence");
        check(Observed { holder, server: Server::Silent, ..base() }, "fence");
    }
    check(Observed { holder: Holder::Me, server: Server::Primary(vitals(5)), ..base() }, "lead");
    check(Observed { holder: Holder::Me, server: Server::Silent, ..base() }, "fence");
    check(Observed { holder: Holder::Unknown, ..base() }, "wait Connecting");
}

#[test]
fn data_is_made_once_by_the_first_when_all_say_that_there_is_none() {
    let first = || Observed { me: "a".into(), ..base().fresh() };
    check(first(), "wait WaitingForMembers");
    check(first().with(empty("b")), "wait WaitingForMembers");
    check(first().with(empty("b")).with(empty("c")), "bid");
    check(first().with(empty("b")).with(report("c", Role::None, 0)), "wait NoData");
    check(base().fresh().with(empty("a")).with(empty("c")), "wait NoData");
    let leads = || Observed { holder: Holder::Me, ..first() };
    check(leads().with(empty("b")).with(empty("c")), "initialize");
    check(leads().with(empty("b")), "release");
    let lapsed = || Observed { holder: Holder::Lapsed, ..first() };
    check(lapsed().with(empty("b")).with(empty("c")), "bid");
    // A crash after the data was made, before anybody was told: it is there, and nobody makes it again.
    let crashed = |holder| Observed { holder, data: present(true), memory: Memory::default(), ..first() };
    check(crashed(Holder::Lapsed), "bid");
    check(crashed(Holder::Me), "startprimary");
    check(base().fresh().with(report("a", Role::None, 0)).with(empty("c")), "wait NoData");
    // The cluster has data, and this member lost its own.
    let lost = |holder| Observed { holder, data: Data::Empty, ..base() };
    check(lost(Holder::Me).with(empty("a")).with(empty("c")), "release");
    check(lost(Holder::Lapsed).with(empty("a")).with(empty("c")), "release");
    check(lost(Holder::Nobody).with(empty("a")).with(empty("c")), "wait NoData");
}

#[test]
fn the_leader_starts_and_serves() {
    let me = |data, server| Observed { holder: Holder::Me, data, server, ..base() };
    check(me(present(true), Server::Stopped), "startprimary");
    check(me(present(false), Server::Stopped), "startstandby");
    check(me(present(true), Server::Stopped).at(Phase::Resting), "wait Resting");
    check(me(present(true), Server::Stopped).failed(3), "release");
    check(me(present(true), Server::Starting), "wait Recovering");
    check(me(present(true), Server::Starting).at(Phase::Late), "wait Recovering");
    check(me(present(false), loose(5)), "promote");
    let foreign = Data::Present(Control { system_id: "8".into(), timeline: 1, was_primary: true });
    check(me(foreign, Server::Stopped), "release");
}

#[test]
fn a_leader_that_takes_long_to_recover_steps_back_for_who_has_everything() {
    let late =
        || Observed { holder: Holder::Me, data: present(true), server: Server::Starting, ..base() }.at(Phase::Late);
    let voters = [rule(1, &["a", "c"])];
    check(late().rules(&voters), "wait Recovering");
    check(late().rules(&voters).with(report("a", Role::Replica, 5)), "wait Recovering");
    check(late().rules(&voters).with(report("a", Role::Replica, 5)).with(report("c", Role::Replica, 5)), "stepback");
}

#[test]
fn a_leader_hands_over_to_who_is_close() {
    let streaming = |lsn| Report { streaming: true, follows: Some("b".into()), ..report("c", Role::Replica, lsn) };
    let serving = || {
        let mut seen = Observed { holder: Holder::Me, server: Server::Primary(vitals(1 << 30)), ..base() };
        seen.plan.successor = Some("c".into());
        seen
    };
    check(serving(), "lead");
    check(serving().with(streaming(1)), "lead");
    check(serving().with(streaming(1 << 30)), "hand over c");
    check(serving().with(Report { follows: Some("a".into()), ..streaming(1 << 30) }), "lead");
    let mut own = serving().with(streaming(1 << 30));
    own.plan.successor = Some("b".into());
    check(own, "lead");
    // The end of the Pod is a hand-over, too, if there is somebody.
    let ending = || Observed { holder: Holder::Me, server: Server::Primary(vitals(9)), ..base() }.at(Phase::Stopping);
    check(ending(), "stop");
    check(ending().with(streaming(9)), "hand over c");
}

#[test]
fn a_lease_of_an_earlier_life_is_taken_again() {
    check(Observed { holder: Holder::Lapsed, data: present(true), ..base() }, "bid");
    check(Observed { holder: Holder::Lapsed, data: present(true), ..base() }.at(Phase::Resting), "wait Resting");
}

#[test]
fn a_member_follows_whoever_leads() {
    let primary = || report("a", Role::Primary, 9);
    let follows = |data, server| Observed { holder: other(), data, server, ..base() };
    check(follows(Data::Empty, Server::Stopped), "wait WaitingForPrimary");
    check(follows(Data::Empty, Server::Stopped).with(primary()), "clone a");
    check(follows(Data::Empty, Server::Stopped).with(primary()).at(Phase::Resting), "wait Resting");
    check(follows(present(false), Server::Stopped), "startstandby");
    check(follows(present(false), Server::Starting), "wait Recovering");
    check(follows(present(false), loose(5)), "follow a");
    check(follows(present(false), following("c")), "follow a");
    check(follows(present(false), following("a")), "replicate");
    let foreign = || Data::Present(Control { system_id: "8".into(), timeline: 1, was_primary: true });
    check(follows(foreign(), Server::Stopped).with(primary()), "wait ForeignData");
    check(follows(foreign(), following("a")).with(primary()), "stop");
}

#[test]
fn a_former_primary_is_led_back_and_cloned_only_when_that_fails() {
    let primary = || report("a", Role::Primary, 9);
    let former = || Observed { holder: other(), data: present(true), ..base() };
    check(former(), "wait WaitingForPrimary");
    check(former().with(Report { rewindable: false, ..primary() }), "wait WaitingForPrimary");
    check(former().with(primary()), "rewind a");
    check(former().with(primary()).failed(2), "clone a");
    let stuck = || Observed { server: following("a"), data: present(false), ..former() }.at(Phase::Stuck);
    check(stuck(), "replicate");
    check(stuck().with(primary()), "rewind a");
    check(stuck().with(primary()).failed(2), "clone a");
}

#[test]
fn before_anybody_leads_everybody_lets_go_of_who_led() {
    check(Observed { server: following("a"), ..base() }, "detach");
    check(Observed { server: Server::Standby(Vitals { receiving: true, ..vitals(5) }), ..base() }, "detach");
    check(base(), "startstandby");
    check(Observed { data: present(true), ..base() }, "startstandby");
}

#[test]
fn of_those_who_may_lead_the_furthest_does_and_of_equals_the_first() {
    let stands = |lsn| Observed { server: loose(lsn), ..base() };
    let peer = |lsn| report("c", Role::Replica, lsn);
    check(stands(5), "bid");
    check(stands(5).with(peer(6)), "wait Electing");
    check(stands(5).with(peer(5)), "bid");
    check(stands(5).with(report("a", Role::Replica, 5)), "wait Electing");
    let later = Report { position: Some(Position { timeline: 2, lsn: 1 }), ..peer(0) };
    check(stands(5).with(later), "wait Electing");
    // Who still receives, or has not started, is waited for: for a while.
    let attached = || Report { follows: Some("a".into()), ..peer(9) };
    let starting = || Report { role: Role::None, position: None, ..peer(0) };
    for peer in [attached(), starting()] {
        check(stands(5).with(peer.clone()).vacant(2_999), "wait Electing");
        check(stands(5).with(peer), "bid");
    }
    check(stands(5).vacant(2_999), "wait Electing");
    check(stands(5).with(peer(5)).vacant(0), "bid"); // Who led last is not waited for.
    check(stands(5).with(report("a", Role::Primary, 5)).vacant(60_000), "wait WaitingForPrimary");
    check(stands(5).with(empty("c")), "bid");
    check(stands(5).with(Report { system_id: Some("8".into()), ..peer(9) }), "bid");
    let mut outsider = stands(5);
    outsider.plan.members.retain(|member| member != "b");
    check(outsider, "wait NotAMember");
}

#[test]
fn a_named_successor_goes_first_for_a_while() {
    let stands = |successor: &str| {
        let mut seen = Observed { server: loose(5), ..base() }.with(report("c", Role::Replica, 4)).vacant(4_999);
        seen.memory.successor = Some(successor.into());
        seen
    };
    check(stands("c"), "wait Electing");
    check(stands("c").vacant(5_000), "bid");
    check(stands("gone"), "bid");
    check(stands("b"), "bid");
    check(stands("b").with(report("c", Role::Replica, 6)), "wait Electing");
}

#[test]
fn whoever_was_handed_the_whole_log_leads_at_once() {
    let named = |successor: &str, end: Option<u64>| {
        let mut seen = Observed { server: following("a"), ..base() }.rules(&[rule(1, &["b", "c"])]).vacant(0);
        seen.memory.successor = Some(successor.into());
        seen.memory.handed = end;
        seen
    };
    check(named("b", Some(4)), "bid");
    check(named("b", Some(5)), "detach"); // The last record begins there: it is not here yet.
    check(named("b", None), "detach");
    check(named("c", Some(4)), "detach");
}

#[test]
fn nobody_leads_who_may_lack_an_acknowledged_commit() {
    let stands = |rules: &[Quorum]| Observed { server: loose(5), ..base() }.rules(rules);
    let peer = |name: &str, lsn| report(name, Role::Replica, lsn);
    let any_of_two = [rule(1, &["b", "c"])];
    check(stands(&any_of_two), "wait NoSafeCandidate");
    check(stands(&any_of_two).with(peer("c", 4)), "bid");
    check(stands(&any_of_two).with(peer("c", 6)), "wait Electing");
    // A voter that still receives could acknowledge more: its word does not count, however long it takes.
    let attached = Report { follows: Some("a".into()), ..peer("c", 4) };
    check(stands(&any_of_two).with(attached).vacant(60_000), "wait NoSafeCandidate");
    check(stands(&[rule(2, &["b", "c"])]), "bid");
    check(stands(&[rule(1, &["b"])]), "bid");
    // While the rule changes, both count.
    check(stands(&[rule(1, &["b"]), rule(1, &["b", "c"])]), "wait NoSafeCandidate");
    // Not being asked does not matter to who is further than enough of those who are.
    check(stands(&[rule(1, &["c"])]), "wait NoSafeCandidate");
    check(stands(&[rule(1, &["c"])]).with(peer("c", 5)), "bid");
    // Who led last has everything.
    let mut last = stands(&any_of_two);
    last.memory.leader = Some("b".into());
    check(last, "bid");
    // Without a memory, all have to be asked.
    let forgotten = || Observed { memory: Memory::default(), ..stands(&[]) };
    check(forgotten().with(peer("c", 4)), "wait NoSafeCandidate");
    check(forgotten().with(peer("c", 4)).with(peer("a", 4)), "bid");
}

#[test]
fn settings_that_need_it_restart_one_server_when_it_is_told() {
    let pending = |server: fn(Vitals) -> Server, restart: Option<&str>, holder| {
        let vitals = Vitals { pending_restart: true, follows: Some("a".into()), streaming: true, ..vitals(5) };
        let mut seen = Observed { holder, server: server(vitals), ..base() };
        seen.plan.restart = restart.map(Into::into);
        seen
    };
    check(pending(Server::Standby, None, other()), "replicate");
    check(pending(Server::Standby, Some("a"), other()), "replicate");
    check(pending(Server::Standby, Some("b"), other()), "restart");
    check(pending(Server::Primary, Some("b"), Holder::Me), "restart");
    check(pending(Server::Primary, None, Holder::Me), "lead");
}

#[test]
fn a_member_ends_in_order() {
    let ends = |holder, server| Observed { holder, server, ..base() }.at(Phase::Stopping);
    check(ends(other(), following("a")), "stop");
    check(ends(other(), Server::Starting), "stop");
    check(ends(other(), Server::Primary(vitals(5))), "fence");
    check(ends(Holder::Me, Server::Stopped), "release");
    check(ends(Holder::Lapsed, Server::Stopped), "release");
    check(ends(other(), Server::Stopped), "exit");
    check(ends(Holder::Nobody, Server::Stopped), "exit");
}

#[test]
fn the_first_member_makes_the_data_from_a_backup_if_there_is_one() {
    let first = |origin: Option<&str>, failures: u32, phase: Phase| {
        let origin = origin.map(|path| Origin { path: path.into(), time: None });
        let plan = Plan { members: vec!["b".into()], lease_seconds: 6, origin, ..Plan::default() };
        let course = Course { failures, phase, ..Course::default() };
        let holder = Holder::Me;
        decide(&Observed { plan, holder, memory: Memory::default(), data: Data::Empty, course, ..base() })
    };
    let word = |action: &Action| match action {
        Action::Wait(obstacle) => obstacle.word,
        _ => "acts",
    };
    assert_eq!(first(None, 0, Phase::Steady), Action::Initialize);
    assert_eq!(first(Some("shop/db"), 0, Phase::Steady), Action::Restore);
    assert_eq!(first(Some("shop/db"), 2, Phase::Steady), Action::Restore, "it is tried again");
    assert_eq!(word(&first(Some("shop/db"), 2, Phase::Resting)), "Restoring");
    assert_eq!(word(&first(Some("shop/db"), 3, Phase::Steady)), "RestoreFailed", "and then somebody has to look");
    let served = Observed { plan: Plan { origin: Some(Origin::default()), ..base().plan }, ..base() };
    assert_ne!(decide(&served), Action::Restore, "data that is there is never restored over");
}
