//! The plans of an exploration: every fault at every place where it can matter.

use std::collections::{BTreeMap, BTreeSet};

use windlass_clock::Clock;

use crate::lab::{CallFault, Called, EventFault, Fault, Outcome, Plan, StepFault};

/// The plans, and how many were left out for which reason.
#[derive(Debug, Default)]
pub(super) struct Plans {
    pub(super) plans: Vec<Plan>,
    pub(super) pruned: BTreeMap<&'static str, usize>,
    seed: u64,
    /// The last step, after which the user does nothing any more.
    last: usize,
}

/// How many plans there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) plans: usize,
    pub(super) pairs: usize,
    pub(super) seed: u64,
}

const SAME_STATE: &str = "a crash before a write that follows another one: the crash after that one is tried";
const NOTHING_DONE: &str = "a crash or a lost answer at a write that changed nothing: nothing is half done";
const SAME_CODE: &str = "429 and time-outs at writes of the same verb and kind: one of each is tried";
const SAME_LEAD: &str = "the lead lost at writes of the same verb and kind in the same step: one is tried";
const SAME_READ: &str = "failures of reads of the same kind in the same step: one is tried";
const SAME_CUT: &str = "broken connections and 410 at events of the same kind in the same step: one of each is tried";
const SAME_VIEW: &str = "old views that differ in nothing that the operator had been told: one is tried";
const OVER_BUDGET: &str = "more plans than the budget: a sample is tried";

impl Plans {
    /// What can go wrong in a run like `clean`.
    pub(super) fn of(clean: &Outcome, limits: Limits) -> Self {
        let last = clean.states.last().map_or(0, |state| state.step);
        let mut plans = Self { seed: limits.seed, last, ..Self::default() };
        let mut before: Option<&Called> = None;
        let mut seen = BTreeSet::new();
        for called in &clean.calls {
            plans.at_call(called, before, &mut seen);
            before = Some(called);
        }
        plans.at_events(clean);
        plans.at_steps(clean);
        plans.deal();
        plans.within(limits);
        plans
    }

    /// One of each class, then another of each: what is to be found is found soon.
    fn deal(&mut self) {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let turn = |plan: &Plan| {
            let count = counts.entry(plan.faults[0].class()).or_default();
            *count += 1;
            *count
        };
        let turns: Vec<usize> = self.plans.iter().map(turn).collect();
        let mut plans: Vec<_> = turns.into_iter().zip(std::mem::take(&mut self.plans)).collect();
        plans.sort_by_key(|(turn, _)| *turn);
        self.plans = plans.into_iter().map(|(_, plan)| plan).collect();
    }

    fn at_call(&mut self, called: &Called, before: Option<&Called>, seen: &mut BTreeSet<String>) {
        use CallFault::{
            Back, Conflict, CrashAfter, CrashBefore, Deposed, Failed, Jump, Lost, Meddle, Timeout, TooMany, User,
        };
        let kind = format!("{} {}/{}", called.call.verb, called.call.resource, called.call.subresource);
        let add = |plans: &mut Self, fault| plans.add(Fault::Call(called.number, fault));
        if !called.call.is_write() {
            if seen.insert(format!("{kind} {}", called.step)) {
                add(self, Failed)
            } else {
                self.prune(SAME_READ, 1)
            }
            return;
        }
        match before {
            Some(before) if before.call.is_write() && before.changed => self.prune(SAME_STATE, 1),
            _ => add(self, CrashBefore),
        }
        add(self, Failed);
        if called.changed {
            [CrashAfter, Lost].into_iter().for_each(|fault| add(self, fault));
        } else {
            self.prune(NOTHING_DONE, 2);
        }
        if called.changed && called.in_run {
            if seen.insert(format!("deposed {kind} {}", called.step)) {
                add(self, Deposed)
            } else {
                self.prune(SAME_LEAD, 1)
            }
        }
        if called.call.verb != "create" {
            [Conflict, Meddle].into_iter().for_each(|fault| add(self, fault));
        }
        if called.step < self.last {
            add(self, User);
        }
        if seen.insert(kind) {
            [TooMany, Timeout, Jump, Back].into_iter().for_each(|fault| add(self, fault));
        } else {
            self.prune(SAME_CODE, 2);
        }
    }

    fn at_events(&mut self, clean: &Outcome) {
        let mut seen = BTreeSet::new();
        for (number, event) in clean.events.iter().enumerate() {
            let add = |plans: &mut Self, fault| plans.add(Fault::Event(number, fault));
            add(self, EventFault::Delay);
            add(self, EventFault::Blind);
            if event.step < self.last {
                add(self, EventFault::Overtaken);
            }
            if seen.insert((event.step, event.resource.clone(), event.kind.clone())) {
                [EventFault::Gone, EventFault::Cut, EventFault::Twice].into_iter().for_each(|fault| add(self, fault));
            } else {
                self.prune(SAME_CUT, 3);
            }
        }
    }

    fn at_steps(&mut self, clean: &Outcome) {
        for state in &clean.states {
            let step = state.step;
            self.add(Fault::Step(step, StepFault::Restart));
            if step > 0 && state.wishes.iter().next().is_some() {
                self.add(Fault::Step(step, StepFault::Fresh));
            }
            for object in &state.made {
                self.add(Fault::Step(step, StepFault::Delete(object.clone())));
                self.add(Fault::Step(step, StepFault::DeleteWhileDown(object.clone())));
            }
            let mut revisions = BTreeSet::new();
            for (number, event) in clean.events.iter().enumerate().filter(|(_, event)| event.step <= step) {
                if revisions.insert(event.revision) {
                    self.add(Fault::Step(step, StepFault::Stale(number)));
                } else {
                    self.prune(SAME_VIEW, 1);
                }
            }
        }
    }

    /// Keeps to the limits, and adds pairs.
    fn within(&mut self, limits: Limits) {
        let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        clock.seed(limits.seed);
        let pick = |length: usize| usize::try_from(clock.random() % length as u64).expect("it is below the length");
        let singles = self.plans.clone();
        while self.plans.len() > limits.plans {
            let gone = pick(self.plans.len());
            self.plans.remove(gone);
            self.prune(OVER_BUDGET, 1);
        }
        let can_join = |plan: &Plan| plan.fresh().is_none();
        let singles: Vec<&Plan> = singles.iter().filter(|plan| can_join(plan)).collect();
        if singles.len() < 2 {
            return;
        }
        for _ in 0..limits.pairs {
            let (one, other) = (singles[pick(singles.len())], singles[pick(singles.len())]);
            let faults = one.faults.iter().chain(&other.faults).cloned().collect();
            self.plans.push(Plan { faults, seed: limits.seed });
        }
    }

    fn add(&mut self, fault: Fault) {
        self.plans.push(Plan::of(fault, self.seed));
    }

    fn prune(&mut self, why: &'static str, count: usize) {
        *self.pruned.entry(why).or_default() += count;
    }
}
