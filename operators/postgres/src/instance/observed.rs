//! What a member sees before it decides: plain data.

use std::collections::BTreeMap;

use windlass::runtime::tenure::Holder;

use crate::wire::{Memory, Plan, Position, Report};

/// All that counts for the next step of a member.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// This member.
    pub(crate) me: String,
    /// What is wanted.
    pub(crate) plan: Plan,
    /// Who leads.
    pub(crate) holder: Holder,
    /// What the members remember together.
    pub(crate) memory: Memory,
    /// What is on the volume.
    pub(crate) data: Data,
    /// What the server does.
    pub(crate) server: Server,
    /// The other members of the plan that answered, since nobody leads if that is so.
    pub(crate) peers: BTreeMap<String, Report>,
    /// How things went so far.
    pub(crate) course: Course,
}

/// What is on the volume of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// Nothing that was ever finished.
    Empty,
    /// A data directory.
    Present(Control),
}

/// What the control file of a data directory says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    /// The identity of the data.
    pub(crate) system_id: String,
    /// The timeline of the last checkpoint.
    pub(crate) timeline: u32,
    /// Whether it was last written by a server that took writes: it may have what nobody else has.
    pub(crate) was_primary: bool,
}

/// What the server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// There is none.
    Stopped,
    /// It runs, and takes no connections yet.
    Starting,
    /// It took connections, and does not answer any more.
    Silent,
    /// It takes writes.
    Primary(Vitals),
    /// It is in recovery.
    Standby(Vitals),
}

/// What a server that answers says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact by itself, not a state of one thing")]
pub(crate) struct Vitals {
    /// How far its data goes.
    pub(crate) position: Position,
    /// Whom it is told to follow.
    pub(crate) follows: Option<String>,
    /// Whether there is a process that receives, from whomever.
    pub(crate) receiving: bool,
    /// Whether what it receives arrives.
    pub(crate) streaming: bool,
    /// The version.
    pub(crate) version: String,
    /// Whether settings wait for a restart.
    pub(crate) pending_restart: bool,
    /// The settings that it does not take, and would not start with.
    pub(crate) refused: Option<String>,
    /// The settings that it has read, by their hash.
    pub(crate) settings: Option<String>,
}

/// How things went so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Course {
    /// How often in a row the last kind of work failed.
    pub(crate) failures: u32,
    /// Where this member stands in time.
    pub(crate) phase: Phase,
    /// For how long nobody leads, in milliseconds.
    pub(crate) vacant_ms: u64,
}

/// What time says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing special.
    #[default]
    Steady,
    /// This member was told to end.
    Stopping,
    /// Something failed a moment ago: it is not tried again yet.
    Resting,
    /// A primary takes too long to come back.
    Late,
    /// A standby receives nothing for too long, although there is a primary.
    Stuck,
}

impl Observed {
    /// The other members, whether they answer or not.
    pub(crate) fn others(&self) -> impl Iterator<Item = &String> {
        self.plan.members.iter().filter(|member| **member != self.me)
    }
}
