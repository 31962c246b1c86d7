//! The decision about parts: what to apply now, what to hold, what to remove now, and how far the whole is.

use windlass_core::{Readiness, Statement, names};

/// A wanted object as it is found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Which part it is; none for a child that has no place in the order.
    pub(crate) part: Option<String>,
    /// The parts that have to be ready first.
    pub(crate) after: Vec<String>,
    /// What else has to come first, if something does.
    pub(crate) missing: Option<String>,
    /// The parts that the live object was after when it was last applied.
    pub(crate) leans_on: Vec<String>,
    pub(crate) state: State,
}

/// The state of a wanted object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// It is not there.
    #[default]
    Missing,
    /// It is not as wanted.
    Differs,
    /// It is as wanted, or was made so in this pass.
    Current(Readiness),
    /// It is on its way out, and is made anew when it is gone.
    Going,
    /// It could not be made as wanted.
    Troubled(String),
}

/// An object of the owner that is not wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leftover {
    /// Kind and name.
    pub(crate) title: String,
    /// Which part it was, if it was one.
    pub(crate) part: Option<String>,
    /// The parts that it was after.
    pub(crate) after: Vec<String>,
    /// Whether it is on its way out.
    pub(crate) going: bool,
}

/// What is to be done, and how far the whole is when nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The wanted objects to apply now, by their places in the list.
    pub(crate) apply: Vec<usize>,
    /// The leftovers to remove now, by their places in the list.
    pub(crate) remove: Vec<usize>,
    pub(crate) standing: Standing,
}

/// How far the parts are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// What the parts wait for.
    pub(crate) waiting: Vec<String>,
    /// What has failed.
    pub(crate) failed: Vec<String>,
    /// Whether anything was applied in this pass.
    pub(crate) has_applied: bool,
}

/// Decides. `forced` applies what there is although it is not its turn.
///
/// A part is applied when all parts that it is after are ready, and those that they are after, and so on. One that is there
/// and whose turn it is not stays as it is: a change makes its way in the order in which the parts were made. It counts as
/// wanted, so that it is never removed for not being reached. Nothing is removed before all is applied whose turn it is.
pub(crate) fn decide(wanted: &[Wanted], leftovers: &[Leftover], forced: bool) -> Decision {
    let held = hindrances(wanted);
    let is_due = |index: usize| match wanted[index].state {
        State::Missing => held[index].is_none(),
        State::Differs => held[index].is_none() || forced,
        State::Current(_) | State::Going | State::Troubled(_) => false,
    };
    let apply: Vec<usize> = (0..wanted.len()).filter(|index| is_due(*index)).collect();
    let is_troubled = wanted.iter().any(|item| matches!(item.state, State::Troubled(_)));
    let remove = if apply.is_empty() && !is_troubled { removable(wanted, leftovers) } else { Vec::new() };
    Decision { apply, remove, standing: standing(wanted, &held, leftovers) }
}

/// What each waits for whose turn it is not.
fn hindrances(wanted: &[Wanted]) -> Vec<Option<String>> {
    let mut held = vec![None; wanted.len()];
    // Each round follows one more link of the order.
    for _ in 0..wanted.len() {
        let next: Vec<_> = wanted.iter().map(|item| hindrance(item, wanted, &held)).collect();
        if next == held {
            break;
        }
        held = next;
    }
    held
}

fn hindrance(item: &Wanted, wanted: &[Wanted], held: &[Option<String>]) -> Option<String> {
    if let Some(missing) = &item.missing {
        return Some(missing.clone());
    }
    item.after.iter().find_map(|name| {
        let index = wanted.iter().position(|other| other.part.as_deref() == Some(name))?;
        match (unready(&wanted[index]), &held[index]) {
            (Some(_), Some(further)) if is_to_do(&wanted[index]) => Some(format!("{name}: it waits for {further}")),
            (Some(why), _) => Some(format!("{name}: {why}")),
            // It is ready, but what it is after is not.
            (None, further) => further.clone(),
        }
    })
}

fn is_to_do(item: &Wanted) -> bool {
    matches!(item.state, State::Missing | State::Differs)
}

/// Why a part is not ready.
fn unready(item: &Wanted) -> Option<String> {
    match &item.state {
        State::Missing => Some("it is not there".into()),
        State::Differs => Some("it is not as wanted".into()),
        State::Going => Some("it is being deleted".into()),
        State::Troubled(why) => Some(why.clone()),
        State::Current(Readiness::Ready) => None,
        State::Current(Readiness::NotYet(why)) => Some(why.clone()),
        State::Current(Readiness::Failed(why)) => Some(format!("it failed: {why}")),
    }
}

fn standing(wanted: &[Wanted], held: &[Option<String>], leftovers: &[Leftover]) -> Standing {
    let mut standing = Standing::default();
    let is_awaited = |name: &str| {
        let waits = |(other, held): (&Wanted, &Option<String>)| {
            held.is_some() && is_to_do(other) && other.after.iter().any(|after| after == name)
        };
        wanted.iter().zip(held).any(waits)
    };
    for (item, held) in wanted.iter().zip(held) {
        let Some(name) = &item.part else { continue };
        match (&item.state, held) {
            (State::Missing | State::Differs, Some(what)) => standing.waiting.push(format!("{name} waits for {what}")),
            (State::Current(Readiness::Failed(why)), _) => standing.failed.push(format!("{name} failed: {why}")),
            _ if is_awaited(name) => {} // Whoever waits for it tells of it.
            _ => standing.waiting.extend(unready(item).map(|why| format!("{name}: {why}"))),
        }
    }
    for leftover in leftovers.iter().filter(|leftover| leftover.part.is_some()) {
        let what = if leftover.going { "is being deleted" } else { "is to go" };
        standing.waiting.push(format!("{} {what}", leftover.title));
    }
    standing
}

/// The leftovers that nothing needs any more.
fn removable(wanted: &[Wanted], leftovers: &[Leftover]) -> Vec<usize> {
    let open = || (0..leftovers.len()).filter(|index| !leftovers[*index].going);
    let needs = |after: &[String], index: usize| {
        leftovers[index].part.as_ref().is_some_and(|part| after.iter().any(|name| name == part))
    };
    // A wanted object that is not as wanted yet may still use what is no longer wanted.
    let is_used = |index: usize| {
        let uses = |item: &Wanted| !matches!(item.state, State::Current(_)) && needs(&item.leans_on, index);
        wanted.iter().any(uses)
    };
    let needed_by = |index: usize| {
        (0..leftovers.len()).filter(move |other| *other != index && needs(&leftovers[*other].after, index))
    };
    let free: Vec<usize> = open().filter(|index| !is_used(*index) && needed_by(*index).next().is_none()).collect();
    if !free.is_empty() || leftovers.iter().any(|leftover| leftover.going) {
        return free;
    }
    // Only annotations that somebody edited make a circle. It must not keep a deletion from its end.
    let mut stuck: Vec<bool> = (0..leftovers.len()).map(is_used).collect();
    for _ in 0..leftovers.len() {
        let next = (0..leftovers.len()).map(|index| stuck[index] || needed_by(index).any(|other| stuck[other]));
        stuck = next.collect();
    }
    open().filter(|index| !stuck[*index]).collect()
}

impl Standing {
    /// Whether all parts are there and ready, and nothing else is.
    pub(crate) fn is_complete(&self) -> bool {
        self.waiting.is_empty() && self.failed.is_empty()
    }

    /// The reason and the message of the conditions, if something is not ready.
    pub(crate) fn verdict(&self) -> Option<(&'static str, String)> {
        let reason = if self.failed.is_empty() { "Waiting" } else { "PartFailed" };
        let all: Vec<&str> = self.failed.iter().chain(&self.waiting).map(String::as_str).collect();
        (!self.is_complete()).then(|| (reason, all.join("; ")))
    }

    /// The conditions that follow, if something is not ready. What failed needs a person.
    pub(crate) fn statements(&self) -> Vec<Statement> {
        let Some((reason, message)) = self.verdict() else { return Vec::new() };
        let stalled = !self.failed.is_empty();
        vec![
            Statement::new(names::condition::READY, false, reason, message.clone()),
            Statement::new(names::condition::PROGRESSING, !stalled, reason, message.clone()),
            Statement::new(names::condition::STALLED, stalled, reason, if stalled { &message } else { "" }),
        ]
    }
}

#[cfg(test)]
mod tests;
