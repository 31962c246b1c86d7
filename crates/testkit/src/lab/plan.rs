//! What goes wrong in a run, and where: data that can be printed and read again.

use std::fmt;
use std::str::FromStr;

/// The faults of one run, and the seed of its chance. Its text, such as `crash-after@12`, is what replays it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Plan {
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// What chance follows from.
    pub seed: u64,
}

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// At the call with this number.
    Call(usize, CallFault),
    /// At the event of a watch with this number.
    Event(usize, EventFault),
    /// After everything has settled for the time with this number.
    Step(usize, StepFault),
    /// In a campaign: the user changes one property of the resource.
    Change(Change),
}

/// What the user of a campaign changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Change {
    /// The property, as a JSON pointer such as `/spec/size`.
    pub path: String,
    /// What becomes of it, as the campaign names it, such as `max`.
    pub to: String,
}

/// What can go wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallFault {
    /// The operator's process ends before the call and is started again.
    CrashBefore,
    /// It ends after the call, before it knows the answer.
    CrashAfter,
    /// The call is answered with a conflict, and nothing is done.
    Conflict,
    /// The API server has too much to do: 429, and nothing is done.
    TooMany,
    /// The API server fails: 500, and nothing is done.
    Failed,
    /// The API server does not answer, and nothing is done.
    Timeout,
    /// What was asked is done, but there is no answer.
    Lost,
    /// The user's next step comes before the call arrives.
    User,
    /// Somebody else changes the object before the call arrives: an annotation that the operator does not know.
    Meddle,
    /// The clock of the operator's machine goes an hour ahead.
    Jump,
    /// The clock of the operator's machine is put back by an hour.
    Back,
    /// What was asked is done, and the process then stands still until another replica leads: from then on it must not write.
    Deposed,
}

/// What can go wrong with an event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventFault {
    /// It, and all that follow on this watch, come late.
    Delay,
    /// It is never seen: the watch is silent for a while, then must begin anew with a list.
    Blind,
    /// As [`EventFault::Blind`], and the user acts meanwhile.
    Overtaken,
    /// The watch ends with 410 before it.
    Gone,
    /// The connection of the watch breaks before it.
    Cut,
    /// It comes twice.
    Twice,
}

/// What can go wrong when everything is quiet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StepFault {
    /// The operator is started again.
    Restart,
    /// It is started again, and its caches see for a while what there was before the event with this number.
    Stale(usize),
    /// Somebody deletes this object, which the operator has made.
    Delete(String),
    /// As [`StepFault::Delete`], while the operator is down.
    DeleteWhileDown(String),
    /// There was no history: what the user wants now is made on an empty cluster.
    Fresh,
}

const CALLS: [(&str, CallFault); 12] = [
    ("crash-before", CallFault::CrashBefore),
    ("crash-after", CallFault::CrashAfter),
    ("conflict", CallFault::Conflict),
    ("too-many", CallFault::TooMany),
    ("failed", CallFault::Failed),
    ("timeout", CallFault::Timeout),
    ("lost", CallFault::Lost),
    ("user", CallFault::User),
    ("meddle", CallFault::Meddle),
    ("jump", CallFault::Jump),
    ("back", CallFault::Back),
    ("deposed", CallFault::Deposed),
];

const EVENTS: [(&str, EventFault); 6] = [
    ("delay", EventFault::Delay),
    ("blind", EventFault::Blind),
    ("overtaken", EventFault::Overtaken),
    ("gone", EventFault::Gone),
    ("cut", EventFault::Cut),
    ("twice", EventFault::Twice),
];

/// A text that is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a plan; take one from a report, such as crash-after@12")]
pub struct UnknownPlan(String);

impl Plan {
    /// A run in which nothing goes wrong.
    pub fn clean(seed: u64) -> Self {
        Self { faults: Vec::new(), seed }
    }

    pub(crate) fn of(fault: Fault, seed: u64) -> Self {
        Self { faults: vec![fault], seed }
    }

    pub(crate) fn at_call(&self, number: usize) -> Option<CallFault> {
        self.faults.iter().find_map(|fault| match fault {
            Fault::Call(at, what) if *at == number => Some(*what),
            _ => None,
        })
    }

    pub(crate) fn at_event(&self, number: usize) -> Option<EventFault> {
        self.faults.iter().find_map(|fault| match fault {
            Fault::Event(at, what) if *at == number => Some(*what),
            _ => None,
        })
    }

    pub(crate) fn after_step(&self, number: usize) -> impl Iterator<Item = &StepFault> {
        self.faults.iter().filter_map(move |fault| match fault {
            Fault::Step(at, what) if *at == number => Some(what),
            _ => None,
        })
    }

    /// What the user of a campaign changes.
    pub(crate) fn change(&self) -> Option<&Change> {
        self.faults.iter().find_map(|fault| match fault {
            Fault::Change(change) => Some(change),
            _ => None,
        })
    }

    /// Whether the operator is one of several replicas.
    pub(crate) fn has_leader(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault, Fault::Call(_, CallFault::Deposed)))
    }

    /// Whether it looks only at what the user wants at one step, on an empty cluster.
    pub(crate) fn fresh(&self) -> Option<usize> {
        self.faults.iter().find_map(|fault| match fault {
            Fault::Step(at, StepFault::Fresh) => Some(*at),
            _ => None,
        })
    }
}

impl Fault {
    /// The class of faults that it belongs to, as reports name it.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Call(_, what) => CALLS.iter().find(|(_, it)| it == what).map_or("", |(name, _)| name),
            Self::Event(_, what) => EVENTS.iter().find(|(_, it)| it == what).map_or("", |(name, _)| name),
            Self::Step(_, StepFault::Restart) => "restart",
            Self::Step(_, StepFault::Stale(_)) => "stale",
            Self::Step(_, StepFault::Delete(_)) => "delete",
            Self::Step(_, StepFault::DeleteWhileDown(_)) => "delete-while-down",
            Self::Step(_, StepFault::Fresh) => "fresh",
            Self::Change(_) => "change",
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.faults.is_empty() {
            f.write_str("clean")?;
        }
        for (number, fault) in self.faults.iter().enumerate() {
            write!(f, "{}{fault}", if number == 0 { "" } else { "+" })?;
        }
        if self.seed == 0 { Ok(()) } else { write!(f, "#{}", self.seed) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.class();
        match self {
            Self::Call(at, _) | Self::Event(at, _) => write!(f, "{class}@{at}"),
            Self::Step(at, StepFault::Stale(event)) => write!(f, "{class}@{at}:{event}"),
            Self::Step(at, StepFault::Delete(key) | StepFault::DeleteWhileDown(key)) => write!(f, "{class}@{at}:{key}"),
            Self::Step(at, StepFault::Restart | StepFault::Fresh) => write!(f, "{class}@{at}"),
            Self::Change(Change { path, to }) => write!(f, "{class}@{path}:{to}"),
        }
    }
}

impl FromStr for Plan {
    type Err = UnknownPlan;

    fn from_str(text: &str) -> Result<Self, UnknownPlan> {
        let unknown = || UnknownPlan(text.to_owned());
        let (faults, seed) = text.split_once('#').unwrap_or((text, "0"));
        let seed = seed.parse().map_err(|_| unknown())?;
        if faults == "clean" {
            return Ok(Self::clean(seed));
        }
        let faults = faults.split('+').map(|fault| read(fault).ok_or_else(unknown)).collect::<Result<_, _>>()?;
        Ok(Self { faults, seed })
    }
}

fn read(text: &str) -> Option<Fault> {
    let (class, place) = text.split_once('@')?;
    if class == "change" {
        let (path, to) = place.rsplit_once(':')?;
        return Some(Fault::Change(Change { path: path.to_owned(), to: to.to_owned() }));
    }
    let (at, detail) = place.split_once(':').unwrap_or((place, ""));
    let at = at.parse().ok()?;
    if let Some((_, what)) = CALLS.iter().find(|(name, _)| *name == class) {
        return Some(Fault::Call(at, *what));
    }
    if let Some((_, what)) = EVENTS.iter().find(|(name, _)| *name == class) {
        return Some(Fault::Event(at, *what));
    }
    Some(Fault::Step(
        at,
        match class {
            "restart" => StepFault::Restart,
            "stale" => StepFault::Stale(detail.parse().ok()?),
            "delete" => StepFault::Delete(detail.to_owned()),
            "delete-while-down" => StepFault::DeleteWhileDown(detail.to_owned()),
            "fresh" => StepFault::Fresh,
            _ => return None,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_as_it_is_printed() {
        let texts = [
            "clean",
            "crash-after@12",
            "lost@3+gone@7#9",
            "restart@2",
            "stale@2:5",
            "delete@1:/core/configmaps/default/a",
            "fresh@0#3",
            "back@4",
            "change@/spec/size:max",
            "change@/spec/size:max+deposed@4#1",
        ];
        for text in texts {
            assert_eq!(text.parse::<Plan>().map(|plan| plan.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "crash", "crash-after@x", "stale@2", "nothing@1", "change@/spec/size"] {
            assert!(text.parse::<Plan>().is_err(), "{text}");
        }
    }
}
