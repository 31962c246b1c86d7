//! Who may lead: only a member that is sure to have every acknowledged commit.

use std::collections::BTreeSet;

use super::observed::{Observed, Vitals};
use crate::wire::{Position, Quorum, Report, Role};

/// A standby that is further behind is not handed over to.
const CLOSE_BYTES: u64 = 16 << 20;
/// How long members that are about to let go of the last primary are waited for.
const GRACE_MS: u64 = 3_000;
/// How long a named successor is waited for.
const SUCCESSION_MS: u64 = 5_000;

/// Why a member does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// A word.
    pub(crate) word: &'static str,
    /// For people.
    pub(crate) message: String,
}

impl Obstacle {
    pub(crate) fn new(word: &'static str, message: impl Into<String>) -> Self {
        Self { word, message: message.into() }
    }
}

/// Whether the data of the cluster may be made: it never was, and every member says that it has none. Of those who may, the
/// first does it.
pub(crate) fn may_initialize(seen: &Observed) -> Result<(), Obstacle> {
    if let Some(system_id) = &seen.memory.system_id {
        let message = format!(
            "the cluster has data (system {system_id}), and this member has none: it is cloned when there is a primary"
        );
        return Err(Obstacle::new("NoData", message));
    }
    let silent: Vec<&str> = seen.others().filter(|name| !seen.peers.contains_key(*name)).map(String::as_str).collect();
    if !silent.is_empty() {
        let message = format!(
            "not known whether {} has data: a new cluster is made when all say that they have none",
            silent.join(", ")
        );
        return Err(Obstacle::new("WaitingForMembers", message));
    }
    if let Some(peer) = seen.peers.values().find(|peer| peer.system_id.is_some()) {
        return Err(Obstacle::new("NoData", format!("{} has data: it is to lead", peer.member)));
    }
    match seen.plan.members.first() {
        Some(first) if *first == seen.me => Ok(()),
        Some(first) => Err(Obstacle::new("NoData", format!("{first} makes the data of the new cluster"))),
        None => Err(Obstacle::new("NotAMember", "the plan has no members")),
    }
}

/// Whether the last primary ended in order, named this standby, and all of its log is here: then nothing else has to be asked.
pub(crate) fn is_handed(seen: &Observed, vitals: &Vitals) -> bool {
    let is_named = seen.memory.successor.as_ref() == Some(&seen.me) && seen.plan.members.contains(&seen.me);
    is_named && seen.memory.handed.is_some_and(|end| vitals.position.lsn > end)
}

/// Whether this standby, which receives from nobody, may lead.
pub(crate) fn may_lead(seen: &Observed, vitals: &Vitals) -> Result<(), Obstacle> {
    if !seen.plan.members.contains(&seen.me) {
        return Err(Obstacle::new("NotAMember", "the cluster does without this member"));
    }
    if let Some(peer) = seen.peers.values().find(|peer| peer.role == Role::Primary) {
        return Err(Obstacle::new("WaitingForPrimary", format!("{} still takes writes", peer.member)));
    }
    let named = seen.memory.successor.as_ref().filter(|name| seen.plan.members.contains(name) && **name != seen.me);
    if let Some(name) = named.filter(|_| seen.course.vacant_ms < SUCCESSION_MS) {
        return Err(Obstacle::new("Electing", format!("{name} is to lead: it was named")));
    }
    if let Some(name) = seen.others().find(|name| is_awaited(seen, name)).filter(|_| seen.course.vacant_ms < GRACE_MS) {
        return Err(Obstacle::new("Electing", format!("{name} has not said how far it is")));
    }
    let rivals = seen.peers.values().filter(|peer| is_rival(seen, peer));
    let loose: Vec<&Report> = rivals.filter(|peer| has_let_go(peer)).collect();
    check_rules(seen, &loose)?;
    let order = |position: Position, name: &str| (position, std::cmp::Reverse(rank(seen, name)));
    let mine = order(vitals.position, &seen.me);
    match loose.iter().find(|peer| order(peer.position.unwrap_or_default(), &peer.member) > mine) {
        Some(peer) => Err(Obstacle::new("Electing", format!("{} is to lead: it is as far or further", peer.member))),
        None => Ok(()),
    }
}

/// Whether enough members are seen that one of them has every acknowledged commit; who is further than all of them has, too.
fn check_rules(seen: &Observed, loose: &[&Report]) -> Result<(), Obstacle> {
    if seen.memory.leader.as_ref() == Some(&seen.me) {
        return Ok(()); // Nobody acknowledged anything since.
    }
    let known: BTreeSet<&str> = loose.iter().map(|peer| peer.member.as_str()).chain([seen.me.as_str()]).collect();
    let everybody = || vec![Quorum { need: 1, of: seen.plan.members.iter().cloned().collect() }];
    for rule in seen.memory.rules.clone().unwrap_or_else(everybody) {
        let (there, away): (Vec<&String>, Vec<&String>) =
            rule.of.iter().partition(|name| known.contains(name.as_str()));
        if there.len() < rule.to_see() {
            let message = format!(
                "{} of {} are needed to be sure of every acknowledged commit, and {} cannot be asked: bring one of them back{}",
                rule.to_see(),
                list(rule.of.iter()),
                list(away.into_iter()),
                seen.memory.leader.as_ref().map(|leader| format!(", or {leader}, which led last")).unwrap_or_default(),
            );
            return Err(Obstacle::new("NoSafeCandidate", message));
        }
    }
    Ok(())
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Whether a member may still say how far it is. Who led last is silent because it is gone, or it would lead.
fn is_awaited(seen: &Observed, name: &str) -> bool {
    match seen.peers.get(name) {
        Some(peer) => is_rival(seen, peer) && !has_let_go(peer),
        None => seen.memory.leader.as_deref() != Some(name),
    }
}

/// Whether a member has data of this cluster.
fn is_rival(seen: &Observed, peer: &Report) -> bool {
    peer.system_id.is_some() && (seen.memory.system_id.is_none() || peer.system_id == seen.memory.system_id)
}

/// Whether a member receives from nobody any more, so that what it says of its position is final.
fn has_let_go(peer: &Report) -> bool {
    peer.role == Role::Replica && peer.follows.is_none() && peer.position.is_some()
}

fn rank(seen: &Observed, name: &str) -> usize {
    seen.plan.members.iter().position(|member| member == name).unwrap_or(usize::MAX)
}

/// The standby that is furthest, of those that receive: the one to hand over to.
pub(crate) fn best_standby(seen: &Observed) -> Option<String> {
    let streaming = seen.peers.values().filter(|peer| peer.streaming && peer.follows.as_ref() == Some(&seen.me));
    let of_plan = streaming.filter(|peer| seen.plan.members.contains(&peer.member));
    of_plan
        .max_by_key(|peer| (peer.position, std::cmp::Reverse(rank(seen, &peer.member))))
        .map(|peer| peer.member.clone())
}

/// Whether `to` receives from this primary and is not far behind.
pub(crate) fn is_close(seen: &Observed, vitals: &Vitals, to: &str) -> bool {
    seen.peers.get(to).is_some_and(|peer| {
        let lsn = peer.position.unwrap_or_default().lsn;
        let is_near = lsn.saturating_add(CLOSE_BYTES) >= vitals.position.lsn;
        peer.streaming && is_near && peer.follows.as_ref() == Some(&seen.me)
    })
}

/// Whether a primary that takes long to recover may let another one lead: somebody is sure to have every commit.
pub(crate) fn may_step_back(seen: &Observed) -> bool {
    let rules = seen.memory.rules.as_deref().unwrap_or_default();
    let has_standby =
        |rule: &Quorum| rule.of.iter().filter(|name| seen.peers.contains_key(*name)).count() >= rule.to_see();
    !rules.is_empty() && rules.iter().all(has_standby)
}
