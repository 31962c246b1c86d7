//! The next step of a member: from what it sees to what it does. Every rule that keeps data safe is here.

use windlass::runtime::tenure::Holder;

use super::candidate::{self, Obstacle};
use super::observed::{Control, Data, Observed, Phase, Server, Vitals};
use crate::wire::Role;

/// A primary that cannot be started so often lets another one lead.
const FAILED_STARTS_MAX: u32 = 3;
/// A former primary that cannot be led back so often is cloned anew.
const FAILED_REWINDS_MAX: u32 = 2;

/// A backup that cannot be restored so often needs somebody to look at it.
const FAILED_RESTORES_MAX: u32 = 3;

/// What a member does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Makes the data of a new cluster.
    Initialize,
    /// Makes the data of a new cluster from a backup.
    Restore,
    /// Copies the data of the primary.
    Clone { from: String },
    /// Starts the server to take writes.
    StartPrimary,
    /// Starts the server in recovery.
    StartStandby,
    /// Tries to become the leader.
    Bid,
    /// Makes the standby the primary.
    Promote,
    /// Leads: slots, roles, the rule of acknowledgement.
    Lead,
    /// Restarts the server for settings that need it.
    Restart,
    /// Ends the server in order and lets `to` lead.
    HandOver { to: String },
    /// Receives from another primary.
    Follow { leader: String },
    /// Receives from nobody: whoever led cannot get an acknowledgement here any more.
    Detach,
    /// Follows, and has nothing to do.
    Replicate,
    /// Leads a former primary back to where the present one is.
    Rewind { from: String },
    /// Ends the server at once: it may not take another write.
    Fence,
    /// Ends the server at once, and lets somebody else lead.
    StepBack,
    /// Ends the server in order.
    Stop,
    /// Lets somebody else lead.
    Release { why: String },
    /// Has nothing more to do.
    Exit,
    /// Waits.
    Wait(Obstacle),
}

/// Decides.
pub(crate) fn decide(seen: &Observed) -> Action {
    if seen.course.phase == Phase::Stopping {
        return leave(seen);
    }
    match &seen.holder {
        Holder::Me => lead(seen),
        // Writes without a lease: somebody else may take them, too.
        _ if matches!(seen.server, Server::Primary(_)) => Action::Fence,
        _ if seen.server == Server::Silent => Action::Fence,
        Holder::Lapsed => take_again(seen),
        Holder::Other(leader) => follow(seen, leader),
        Holder::Nobody => stand(seen),
        Holder::Unknown => wait("Connecting", "the lease of the primary was not seen yet"),
    }
}

fn leave(seen: &Observed) -> Action {
    match (&seen.server, &seen.holder) {
        (Server::Primary(_), Holder::Me) => match candidate::best_standby(seen) {
            Some(to) => Action::HandOver { to },
            None => Action::Stop,
        },
        (Server::Primary(_) | Server::Silent, _) => Action::Fence,
        (Server::Starting | Server::Standby(_), _) => Action::Stop,
        (Server::Stopped, Holder::Me | Holder::Lapsed) => Action::Release { why: "the member ends".into() },
        (Server::Stopped, _) => Action::Exit,
    }
}

fn lead(seen: &Observed) -> Action {
    let control = match usable(seen) {
        Ok(Some(control)) => control,
        Ok(None) => {
            return match candidate::may_initialize(seen) {
                Ok(()) => begin(seen),
                Err(why) => Action::Release { why: why.message },
            };
        }
        Err(why) => return Action::Release { why: why.message },
    };
    let phase = seen.course.phase;
    match &seen.server {
        Server::Stopped if seen.course.failures >= FAILED_STARTS_MAX => {
            Action::Release { why: format!("the server could not be started {} times", seen.course.failures) }
        }
        Server::Stopped if phase == Phase::Resting => {
            wait("Resting", "the server ended, and is started again in a moment")
        }
        Server::Stopped if control.was_primary => Action::StartPrimary,
        Server::Stopped => Action::StartStandby,
        // Writes wait for it: with a standby that has every commit, recovery need not be waited for.
        Server::Starting if phase == Phase::Late && candidate::may_step_back(seen) => Action::StepBack,
        Server::Starting => wait("Recovering", "the server replays its log"),
        Server::Silent => Action::Fence,
        Server::Standby(_) => Action::Promote,
        Server::Primary(vitals) => serve(seen, vitals),
    }
}

/// There is no data anywhere: this member makes it.
fn begin(seen: &Observed) -> Action {
    let is_resting = seen.course.phase == Phase::Resting;
    match &seen.plan.origin {
        None if is_resting => wait("Resting", "something failed, and is tried again in a moment"),
        None => Action::Initialize,
        Some(_) if seen.course.failures >= FAILED_RESTORES_MAX => {
            wait("RestoreFailed", "put spec.recovery right, or delete the cluster: it has no data")
        }
        Some(_) if is_resting => wait("Restoring", "it failed, and is tried again in a moment"),
        Some(_) => Action::Restore,
    }
}

fn serve(seen: &Observed, vitals: &Vitals) -> Action {
    match &seen.plan.successor {
        Some(to) if *to != seen.me && candidate::is_close(seen, vitals, to) => Action::HandOver { to: to.clone() },
        _ if vitals.pending_restart && seen.plan.restart.as_ref() == Some(&seen.me) => Action::Restart,
        _ => Action::Lead,
    }
}

/// The lease is this member's, from an earlier life or too long ago: nobody led since.
fn take_again(seen: &Observed) -> Action {
    match usable(seen) {
        Ok(Some(_)) if seen.course.phase != Phase::Resting => Action::Bid,
        Ok(Some(_)) => wait("Resting", "something failed, and is tried again in a moment"),
        Ok(None) => match candidate::may_initialize(seen) {
            Ok(()) => Action::Bid,
            Err(why) => Action::Release { why: why.message },
        },
        Err(why) => Action::Release { why: why.message },
    }
}

fn follow(seen: &Observed, leader: &str) -> Action {
    let control = match usable(seen) {
        Ok(control) => control,
        Err(why) => return aside(seen, why),
    };
    let from = || leader.to_owned();
    let primary = seen.peers.get(leader).filter(|report| report.role == Role::Primary);
    let phase = seen.course.phase;
    match (&seen.server, control) {
        (Server::Stopped, _) if phase == Phase::Resting => {
            wait("Resting", "something failed, and is tried again in a moment")
        }
        (Server::Stopped, None) if primary.is_some() => Action::Clone { from: from() },
        (Server::Stopped, None) => wait("WaitingForPrimary", format!("{leader} does not take writes yet")),
        (Server::Stopped, Some(control)) if control.was_primary => match primary {
            Some(_) if seen.course.failures >= FAILED_REWINDS_MAX => Action::Clone { from: from() },
            Some(primary) if primary.rewindable => Action::Rewind { from: from() },
            _ => wait("WaitingForPrimary", format!("{leader} does not take writes yet")),
        },
        (Server::Stopped, Some(_)) => Action::StartStandby,
        (Server::Standby(vitals), _) if vitals.follows.as_deref() != Some(leader) => Action::Follow { leader: from() },
        (Server::Standby(_), _) if phase == Phase::Stuck => match primary {
            Some(primary) if primary.rewindable && seen.course.failures < FAILED_REWINDS_MAX => {
                Action::Rewind { from: from() }
            }
            Some(primary) if primary.rewindable => Action::Clone { from: from() },
            _ => Action::Replicate,
        },
        (Server::Standby(vitals), _) if vitals.pending_restart && seen.plan.restart.as_ref() == Some(&seen.me) => {
            Action::Restart
        }
        (Server::Standby(_), _) => Action::Replicate,
        _ => wait("Recovering", "the server replays its log"),
    }
}

/// Nobody leads: this member may.
fn stand(seen: &Observed) -> Action {
    match (&seen.server, usable(seen)) {
        (_, Err(why)) => aside(seen, why),
        (_, Ok(None)) => match candidate::may_initialize(seen) {
            Ok(()) => Action::Bid,
            Err(why) => Action::Wait(why),
        },
        (Server::Stopped, Ok(Some(_))) if seen.course.phase == Phase::Resting => {
            wait("Resting", "something failed, and is tried again in a moment")
        }
        // Also what was the primary: how far it goes is known only when it has replayed its log.
        (Server::Stopped, Ok(Some(_))) => Action::StartStandby,
        (Server::Standby(vitals), _) if candidate::is_handed(seen, vitals) => Action::Bid,
        (Server::Standby(vitals), _) if vitals.receiving || vitals.follows.is_some() => Action::Detach,
        (Server::Standby(vitals), _) => match candidate::may_lead(seen, vitals) {
            Ok(()) => Action::Bid,
            Err(why) => Action::Wait(why),
        },
        _ => wait("Recovering", "the server replays its log"),
    }
}

/// The data of this member, if it has any that belongs to the cluster.
fn usable(seen: &Observed) -> Result<Option<&Control>, Obstacle> {
    let Data::Present(control) = &seen.data else { return Ok(None) };
    match &seen.memory.system_id {
        Some(system_id) if *system_id != control.system_id => Err(Obstacle::new(
            "ForeignData",
            format!(
                "the volume has data of another cluster (system {}, not {system_id}): delete its claim to have it cloned anew",
                control.system_id
            ),
        )),
        _ => Ok(Some(control)),
    }
}

/// Does nothing, with no server.
fn aside(seen: &Observed, why: Obstacle) -> Action {
    if seen.server == Server::Stopped { Action::Wait(why) } else { Action::Stop }
}

fn wait(word: &'static str, message: impl Into<String>) -> Action {
    Action::Wait(Obstacle::new(word, message))
}
