//! What an exploration found, for people.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use windlass::Program;
use windlass::rbac::{Comparison, Recording};
use windlass::runtime::tap::Rights;

use super::laboratory::Outcome;
use super::plan::{Fault, Plan};
use super::session::{Called, Shown};
use super::settings::PLAN_VARIABLE;
use super::work::Done;

/// How many calls around the fault a report shows.
const CALLS_SHOWN: usize = 10;
/// How many plans a report shows in full.
const FINDINGS_SHOWN: usize = 5;

/// A plan in which something was not as it must be.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The plan, which replays it.
    pub plan: Plan,
    /// What was not as it must be.
    pub violations: Vec<String>,
    /// The calls of the run.
    pub calls: Vec<Called>,
}

/// What an exploration tried and found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many plans of each class were tried, and how many found something.
    pub classes: BTreeMap<String, (usize, usize)>,
    /// What was found, in the order of the plans.
    pub findings: Vec<Finding>,
    /// How many plans were left out, and why.
    pub pruned: BTreeMap<&'static str, usize>,
    /// How many calls the operator made in the run without faults.
    pub calls: usize,
    /// The rights that the operator took in all runs together.
    pub rights: Rights,
    /// How long all runs took together on the clock of the wall.
    pub took: Duration,
    /// How long the threads worked on the plans, without waiting for others on the machine.
    pub busy: Duration,
}

impl Report {
    /// How many plans were tried, the one without faults included.
    pub fn plans(&self) -> usize {
        1 + self.classes.values().map(|(tried, _)| tried).sum::<usize>()
    }

    /// The roles that `program` asks for, held against what it took in these runs: see [`Comparison::assert_used_but`].
    pub fn roles(&self, program: &dyn Program) -> Comparison {
        Comparison::of(program, &[Recording::of(program, self.rights.clone())])
    }

    /// Counts plans that were run.
    pub(crate) fn take_all(&mut self, plans: &[Plan], done: Vec<Done>) {
        for Done { number, outcome, busy } in done {
            self.busy += busy;
            self.take(&plans[number], outcome);
        }
    }

    /// Counts a plan.
    pub(crate) fn take(&mut self, plan: &Plan, outcome: Outcome) {
        let classes: Vec<&str> = plan.faults.iter().map(Fault::class).collect();
        let class = if classes.len() > 1 { "pair".to_owned() } else { classes.concat() };
        let counts = self.classes.entry(class).or_default();
        counts.0 += 1;
        counts.1 += usize::from(!outcome.violations.is_empty());
        self.add(plan, outcome);
    }

    pub(crate) fn add(&mut self, plan: &Plan, outcome: Outcome) {
        self.rights.merge(&outcome.rights);
        if !outcome.violations.is_empty() {
            self.findings.push(Finding { plan: plan.clone(), violations: outcome.violations, calls: outcome.calls });
        }
    }

    /// Fails the test if something was found.
    ///
    /// # Panics
    /// If something was found: the message is the report.
    pub fn assert(&self) {
        assert!(self.findings.is_empty(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plans, found) = (self.plans(), self.findings.len());
        writeln!(f, "{plans} plans, {found} with findings; {} calls in the run without faults", self.calls)?;
        let per_plan = self.busy.as_secs_f64() * 1000.0 / plans as f64;
        let per_second = plans as f64 / self.took.as_secs_f64().max(0.001);
        writeln!(f, "{per_plan:.1} ms of CPU per plan, {per_second:.0} plans per second")?;
        for (class, (tried, failed)) in &self.classes {
            writeln!(f, "  {class:<18} {tried:>5} tried {failed:>5} with findings")?;
        }
        for (why, count) in &self.pruned {
            writeln!(f, "  left out {count:>5}: {why}")?;
        }
        for finding in self.findings.iter().take(FINDINGS_SHOWN) {
            write!(f, "\n{finding}")?;
        }
        match found.saturating_sub(FINDINGS_SHOWN) {
            0 => Ok(()),
            more => {
                let plans = self.findings.iter().skip(FINDINGS_SHOWN).map(|finding| finding.plan.to_string());
                writeln!(f, "\n{more} more: {}", plans.collect::<Vec<_>>().join(" "))
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan {}", self.plan)?;
        for violation in &self.violations {
            writeln!(f, "  {violation}")?;
        }
        let middle = self.calls.iter().position(|called| called.fault.is_some()).unwrap_or(self.calls.len());
        let first = middle.saturating_sub(CALLS_SHOWN / 2);
        for called in self.calls.iter().skip(first).take(CALLS_SHOWN) {
            writeln!(f, "    {}", Line(called))?;
        }
        writeln!(f, "  replay: {}='{}' cargo test NAME_OF_THE_TEST", PLAN_VARIABLE, self.plan)
    }
}

/// Every call of a run of `plan`.
pub(crate) fn schedule(plan: &Plan, outcome: &Outcome) -> String {
    let calls = outcome.calls.iter().map(|called| format!("{}\n", Line(called)));
    std::iter::once(format!("plan {plan}\n")).chain(calls).collect()
}

/// A call as a line of a schedule.
struct Line<'a>(pub(crate) &'a Called);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Called { number, at, life, call, code, changed, fault, .. } = self.0;
        write!(f, "#{number} {:.3}s life {life} {} ", at.as_secs_f64(), Shown(call))?;
        match code {
            Some(code) => write!(f, "{code}")?,
            None => write!(f, "no answer")?,
        }
        if *changed {
            write!(f, " changed")?;
        }
        match fault {
            Some(fault) => write!(f, " <- {fault:?}"),
            None => Ok(()),
        }
    }
}
