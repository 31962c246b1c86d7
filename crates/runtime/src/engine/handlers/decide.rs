//! What is to run now: from a resource, what is remembered of it, the time and the declared handlers.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::answer::Failure;
use super::progress::{Mark, Progress, Step, Tries};
use super::retry::Retry;
use super::seen::Seen;

/// A timer with at least this interval is remembered over restarts; a shorter one would be a stream of writes.
const TIMER_KEPT_MIN: Duration = Duration::from_secs(60);

/// Why a handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The resource is new.
    Create,
    /// The spec is another than the one that the handler was last done with.
    Update,
    /// The chosen part of the spec is another than the one that the handler was last done with.
    Field,
    /// This process has begun to serve a resource that was there before.
    Resume,
    /// The resource is to go.
    Delete,
    /// It is time.
    Timer,
    /// The resource is there.
    Daemon,
}

impl Cause {
    /// Whether progress is kept in the resource, and not only in this process.
    fn is_kept(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Field | Self::Delete)
    }
}

/// A declared handler, as far as it matters when to run it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) cause: Cause,
    pub(crate) retry: Retry,
    /// For timers.
    pub(crate) cycle: Cycle,
}

/// When a timer runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// From the end of one run to the next.
    pub(crate) interval: Duration,
    /// How long the spec must have been the same.
    pub(crate) idle: Option<Duration>,
    /// From the creation of the resource to the first run.
    pub(crate) initial_delay: Duration,
}

/// What is known of one resource besides itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    /// What the resource keeps.
    pub(crate) progress: Progress,
    /// What this process keeps.
    pub(crate) memo: Memo,
}

/// What one process remembers of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Memo {
    /// Whether the resource was known before this process first saw it.
    pub(crate) existed: bool,
    /// How far resume handlers and timers are.
    pub(crate) steps: BTreeMap<String, Step>,
    /// When timers last ran.
    pub(crate) timers: BTreeMap<String, Timestamp>,
    /// The generation, and since when it is known.
    pub(crate) changed: Option<(i64, Timestamp)>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Act {
    /// To run the handler at this place of the declared ones; its progress says already that it was begun.
    Run {
        index: usize,
        /// The attempt, beginning with 1.
        attempt: u32,
        /// What it looks at.
        target: Mark,
        /// The part that it was last done with.
        old: Option<Value>,
    },
    /// Nothing, before this time or a change.
    Rest { until: Option<Timestamp> },
    /// All is done before the deletion: the finalizer may go.
    Release,
}

/// What to remember, and what to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub(crate) state: State,
    pub(crate) act: Act,
}

/// When a handler is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Never,
    Now,
    At(Timestamp),
    GaveUp,
}

/// Decides what is to run. The state in the answer is to be stored before it is acted on.
pub(crate) fn decide(entries: &[Entry], seen: &Seen, state: State, now: Timestamp) -> Decision {
    let mut state = note(entries, seen, state, now);
    let mut until: Option<Timestamp> = None;
    for (index, entry) in turns(entries, seen, &state) {
        match due(entry, seen, &state, now) {
            Due::Now => {
                let (attempt, old) = begin(entry, seen, &mut state, now);
                let act = Act::Run { index, attempt, target: seen.mark(entry), old };
                return Decision { state, act };
            }
            Due::At(time) => until = Some(until.map_or(time, |until| until.min(time))),
            Due::Never | Due::GaveUp => {}
        }
    }
    let is_pending = |entry: &Entry| entry.cause == Cause::Delete && is_pending(entry, seen, &state);
    let act = if seen.is_deleting && seen.has_finalizer && !entries.iter().any(is_pending) {
        Act::Release
    } else {
        Act::Rest { until }
    };
    Decision { state, act }
}

/// Takes in how a run for `target` ended.
pub(crate) fn settle(
    entries: &[Entry],
    index: usize,
    target: &Mark,
    (mut state, outcome): (State, Result<(), &Failure>),
    now: Timestamp,
) -> State {
    let entry = &entries[index];
    let step = state.step_mut(entry);
    match (outcome, step.tries.as_mut()) {
        (Ok(()), _) => {
            *step = Step { done: Some(target.clone()), tries: None };
            if entry.cause == Cause::Timer {
                *step = Step::default();
                state.memo.timers.insert(entry.id.clone(), now);
                if entry.cycle.interval >= TIMER_KEPT_MIN {
                    state.progress.timers.insert(entry.id.clone(), now);
                }
            }
        }
        (Err(failure), Some(tries)) => {
            let next = now + entry.retry.pause(tries.count, failure.after());
            tries.gave_up = failure.is_permanent() || entry.retry.is_over(tries.count, tries.since, next);
            tries.due = (!tries.gave_up).then_some(next);
        }
        (Err(_), None) => {}
    }
    tidy(entries, &mut state);
    state
}

/// Whether resources carry a finalizer: something has to be done, or to end, before they go.
pub(crate) fn wants_finalizer(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| matches!(entry.cause, Cause::Delete | Cause::Daemon))
}

/// The handlers that may have a turn, in their order: change before time.
pub(super) fn turns<'a>(
    entries: &'a [Entry],
    seen: &Seen,
    state: &State,
) -> impl Iterator<Item = (usize, &'a Entry)> + use<'a> {
    let phases: &[&[Cause]] = if seen.is_deleting {
        if seen.has_finalizer { &[&[Cause::Delete]] } else { &[] }
    } else if !state.progress.created {
        &[&[Cause::Create]]
    } else {
        &[&[Cause::Resume], &[Cause::Update, Cause::Field], &[Cause::Timer]]
    };
    phases
        .iter()
        .flat_map(move |phase| entries.iter().enumerate().filter(move |(_, entry)| phase.contains(&entry.cause)))
}

/// When this handler, which has a turn, is due.
pub(super) fn due(entry: &Entry, seen: &Seen, state: &State, now: Timestamp) -> Due {
    if !is_pending(entry, seen, state) {
        return Due::Never;
    }
    let target = seen.mark(entry);
    let at = |time: Timestamp| if time <= now { Due::Now } else { Due::At(time) };
    match state.tries(entry, &target) {
        Some(tries) if tries.gave_up || entry.retry.is_over(tries.count, tries.since, now) => Due::GaveUp,
        Some(tries) => tries.due.map_or(Due::Now, at),
        None if entry.cause == Cause::Timer => at(next_turn(entry, seen, state)),
        None => Due::Now,
    }
}

fn is_pending(entry: &Entry, seen: &Seen, state: &State) -> bool {
    let step = state.step(entry);
    match entry.cause {
        Cause::Create | Cause::Delete => step.is_none_or(|step| step.done.is_none()),
        Cause::Resume => state.memo.existed && step.is_none_or(|step| step.done.is_none()),
        // What was tried may be half done, so that it has to be done again even if the spec is back to what it was.
        Cause::Update | Cause::Field => step.is_some_and(|step| {
            step.tries.is_some() || step.done.as_ref().is_none_or(|done| !done.is_same(&seen.mark(entry)))
        }),
        Cause::Timer => true,
        Cause::Daemon => false,
    }
}

/// When a timer is next due.
fn next_turn(entry: &Entry, seen: &Seen, state: &State) -> Timestamp {
    let Cycle { interval, idle, initial_delay } = entry.cycle;
    let kept = state.progress.timers.get(&entry.id);
    let last = kept.max(state.memo.timers.get(&entry.id));
    let turn = last.map_or(seen.created_at + initial_delay, |last| *last + interval);
    match (idle, state.memo.changed) {
        (Some(idle), Some((_, since))) => turn.max(since + idle),
        _ => turn,
    }
}

/// Enters that an attempt begins, and returns its number and what the handler was last done with.
fn begin(entry: &Entry, seen: &Seen, state: &mut State, now: Timestamp) -> (u32, Option<Value>) {
    let target = Mark { value: None, ..seen.mark(entry) };
    let before = state.tries(entry, &target).filter(|tries| tries.count > 0);
    let (count, since) = before.map_or((1, now), |tries| (tries.count + 1, tries.since));
    if entry.cause.is_kept() {
        state.progress.generation = seen.generation;
    }
    let step = state.step_mut(entry);
    step.tries = Some(Tries { count, since, due: None, gave_up: false, target });
    (count, step.done.as_ref().and_then(|done| done.value.clone()))
}

/// Takes in what is new about the resource and the declared handlers.
fn note(entries: &[Entry], seen: &Seen, mut state: State, now: Timestamp) -> State {
    if state.memo.changed.is_none_or(|(generation, _)| generation != seen.generation) {
        state.memo.changed = Some((seen.generation, now));
    }
    if state.progress.uid != seen.uid {
        state.progress = Progress {
            uid: seen.uid.clone(),
            generation: seen.generation,
            forced: seen.force.clone(),
            ..Progress::default()
        };
        state.memo.existed = false;
    }
    tidy(entries, &mut state);
    if !seen.is_deleting {
        baseline(entries, seen, &mut state);
    }
    if seen.force.is_some() && state.progress.forced != seen.force {
        state.progress.forced.clone_from(&seen.force);
        force(entries, seen, &mut state, now);
    }
    state
}

/// Forgets what is not declared any more, and sees whether the creation is over.
fn tidy(entries: &[Entry], state: &mut State) {
    let progress = &mut state.progress;
    let created = |entry: &Entry| progress.steps.get(&entry.id).is_some_and(|step| step.done.is_some());
    let is_created = entries.iter().filter(|entry| entry.cause == Cause::Create).all(created);
    progress.created |= is_created;
    let is_over = progress.created;
    let is_of = |id: &str, is_it: &dyn Fn(Cause) -> bool| entries.iter().any(|it| it.id == id && is_it(it.cause));
    progress.steps.retain(|id, _| is_of(id, &|cause| cause.is_kept() && !(is_over && cause == Cause::Create)));
    progress.timers.retain(|id, _| is_of(id, &|cause| cause == Cause::Timer));
}

/// Enters what handlers of changes compare with, where that is not known yet.
fn baseline(entries: &[Entry], seen: &Seen, state: &mut State) {
    let progress = &mut state.progress;
    let is_untouched = !progress.created
        && !entries.iter().any(|entry| {
            entry.cause == Cause::Create && progress.steps.get(&entry.id).is_some_and(|step| step.done.is_some())
        });
    for entry in entries.iter().filter(|entry| matches!(entry.cause, Cause::Update | Cause::Field)) {
        let target = seen.mark(entry);
        let known = progress.steps.get(&entry.id).and_then(|step| step.done.as_ref());
        let mark = match known {
            // Nothing was made of an older spec yet, so that the change from it is none.
            Some(done) if is_untouched && !done.is_same(&target) => target,
            Some(_) => continue,
            None if progress.generation == seen.generation => target,
            // The handler is new, and the spec is, too: from what it was changed is not known, but that it was is.
            None => Mark { generation: progress.generation, ..Mark::default() },
        };
        progress.steps.insert(entry.id.clone(), Step { done: Some(mark), tries: None });
    }
}

/// What was given up, or waits, is due now; and what follows changes runs as if there were one.
fn force(entries: &[Entry], seen: &Seen, state: &mut State, now: Timestamp) {
    let is_created = state.progress.created;
    for entry in entries {
        let again = match entry.cause {
            Cause::Update => is_created,
            Cause::Field => state.step(entry).is_some_and(|step| step.tries.is_some()),
            Cause::Create | Cause::Resume | Cause::Delete | Cause::Timer | Cause::Daemon => false,
        };
        let target = Mark { value: None, ..seen.mark(entry) };
        let fresh = again.then_some(Tries { count: 0, since: now, due: None, gave_up: false, target });
        state.step_mut(entry).tries = fresh;
    }
    state.memo.steps.retain(|_, step| *step != Step::default());
    state.progress.steps.retain(|_, step| *step != Step::default());
}

impl State {
    fn step(&self, entry: &Entry) -> Option<&Step> {
        let steps = if entry.cause.is_kept() { &self.progress.steps } else { &self.memo.steps };
        steps.get(&entry.id)
    }

    fn step_mut(&mut self, entry: &Entry) -> &mut Step {
        let steps = if entry.cause.is_kept() { &mut self.progress.steps } else { &mut self.memo.steps };
        steps.entry(entry.id.clone()).or_default()
    }

    /// The attempts for this state of the resource.
    pub(super) fn tries(&self, entry: &Entry, target: &Mark) -> Option<&Tries> {
        self.step(entry)?.tries.as_ref().filter(|tries| tries.target.is_same(target))
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
