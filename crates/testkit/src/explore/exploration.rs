//! An exploration: the run without faults, then every plan.

use std::fmt::Write;
use std::future::Future;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windlass::Program;

use super::form;
use super::generate::{Limits, Plans};
use super::judge::{Clean, Rules};
use super::lab::{Lab, Outcome, Setup};
use super::plan::Plan;
use super::report::{Finding, Line, Report};
use super::session::Budget;
use super::user::User;
use super::world::{self, World};
use crate::{Kind, Profile};

/// The environment variable that names the one plan to run.
pub const PLAN_VARIABLE: &str = "WINDLASS_PLAN";
/// The environment variable that says how many plans to try at most, whatever the test says: a number, or `all`.
pub const PLANS_VARIABLE: &str = "WINDLASS_PLANS";
/// How many plans there are at most, unless said otherwise.
const PLANS_MAX: usize = 2_000;
/// What the run without faults may take.
const FIRST_BUDGET: Budget = Budget { calls: 5_000, per_instant: 500 };
/// What a run with faults may take beyond ten times as many calls as the one without.
const EXTRA_CALLS: usize = 300;

/// What is explored, and how: see [`explore`](super::explore) for what it does.
#[must_use = "nothing runs before `run`"]
pub struct Exploration {
    make: super::lab::Make,
    profile: Profile,
    rules: Rules,
    limits: Limits,
    threads: Option<usize>,
    only: Option<Vec<&'static str>>,
    never: Vec<&'static str>,
    first_only: bool,
}

impl Exploration {
    /// Explores the operator that `make` makes: it is called for each of its lives, so that nothing is remembered.
    pub fn of<P: Program + 'static>(make: impl Fn() -> P + Send + Sync + 'static) -> Self {
        let own = make().crds();
        let own = own.iter().map(|definition| world::prefix(&definition.spec.group, &definition.spec.names.plural));
        Self {
            profile: Profile::Gc,
            rules: Rules { own: own.collect(), ..Rules::default() },
            limits: Limits { plans: PLANS_MAX, pairs: 0, seed: 0 },
            threads: None,
            only: None,
            never: Vec::new(),
            first_only: false,
            make: Arc::new(move || Box::new(make())),
        }
    }

    /// What runs beside the API server: garbage collection, unless said otherwise. `Workloads` for operators that wait
    /// for Pods.
    pub fn profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// Something that must be true after every single write.
    pub fn invariant(
        mut self,
        name: impl Into<String>,
        check: impl Fn(&World) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.rules.invariants.push((name.into(), Arc::new(check)));
        self
    }

    /// Objects of this kind may stay after the resource that they were made for, as volumes do.
    pub fn keeps<K: Kind>(mut self) -> Self {
        self.rules.kept.push(world::prefix(&K::group(&()), &K::plural(&())));
        self
    }

    /// How many plans at most; beyond that, a sample. The environment variable `WINDLASS_PLANS` overrules it.
    pub fn plans(mut self, count: usize) -> Self {
        self.limits.plans = count;
        self
    }

    /// Adds so many plans of two faults each, by chance.
    pub fn pairs(mut self, count: usize) -> Self {
        self.limits.pairs = count;
        self
    }

    /// What chance follows from.
    pub fn seed(mut self, seed: u64) -> Self {
        self.limits.seed = seed;
        self
    }

    /// On how many threads; on all that the machine has, unless said otherwise.
    pub fn threads(self, count: usize) -> Self {
        Self { threads: Some(count), ..self }
    }

    /// Only plans of these classes, as reports name them.
    pub fn classes(self, classes: impl IntoIterator<Item = &'static str>) -> Self {
        Self { only: Some(classes.into_iter().collect()), ..self }
    }

    /// No plans of these classes.
    pub fn without(mut self, classes: impl IntoIterator<Item = &'static str>) -> Self {
        self.never.extend(classes);
        self
    }

    /// Ends with the first finding.
    pub fn until_found(self) -> Self {
        Self { first_only: true, ..self }
    }

    /// Runs the scenario without faults, then once for every plan; or only the plan that the environment variable
    /// `WINDLASS_PLAN` names, and then prints its schedule.
    ///
    /// # Panics
    /// If a variable holds no plan, or no number of them.
    pub fn run<F: Future<Output = ()> + 'static>(
        &self,
        scenario: impl Fn(User) -> F + Send + Sync + 'static,
    ) -> Report {
        let setup = self.setup(scenario);
        match std::env::var(PLAN_VARIABLE) {
            Ok(text) => match text.parse() {
                Ok(plan) => {
                    let (schedule, report) = self.replayed(&setup, &plan);
                    println!("{schedule}");
                    report
                }
                Err(error) => panic!("{PLAN_VARIABLE}: {error}"),
            },
            Err(_) => self.explored(&setup),
        }
    }

    /// Runs one plan, and tells every call of it.
    pub fn replay<F: Future<Output = ()> + 'static>(
        &self,
        plan: &Plan,
        scenario: impl Fn(User) -> F + Send + Sync + 'static,
    ) -> (String, Report) {
        self.replayed(&self.setup(scenario), plan)
    }

    fn setup<F: Future<Output = ()> + 'static>(&self, scenario: impl Fn(User) -> F + Send + Sync + 'static) -> Setup {
        Setup {
            make: self.make.clone(),
            scenario: Arc::new(move |user| Box::pin(scenario(user))),
            profile: self.profile,
            rules: Arc::new(self.rules.clone()),
        }
    }

    fn replayed(&self, setup: &Setup, plan: &Plan) -> (String, Report) {
        let lab = Lab::new(setup);
        let (clean, budget, first) = self.calibrate(&lab, setup);
        let outcome = lab.run(setup, plan, Some(&clean), budget);
        let mut schedule = format!("plan {plan}\n");
        for called in &outcome.calls {
            let _ = writeln!(schedule, "{}", Line(called));
        }
        let mut report = Report { calls: first.calls.len(), ..Report::default() };
        report.take(plan, outcome);
        (schedule, report)
    }

    fn explored(&self, setup: &Setup) -> Report {
        let began = Instant::now();
        let lab = Lab::new(setup);
        let (clean, budget, first) = self.calibrate(&lab, setup);
        let mut report = Report { calls: first.calls.len(), ..Report::default() };
        let mut plans = Plans::of(&first, Limits { plans: self.plans_max(), ..self.limits });
        let is_wanted = |plan: &Plan| {
            let is_class = |classes: &Vec<&str>| plan.faults.iter().any(|fault| classes.contains(&fault.class()));
            self.only.as_ref().is_none_or(is_class) && !is_class(&self.never)
        };
        plans.plans.retain(is_wanted);
        report.pruned = plans.pruned;
        report.add(&Plan::clean(self.limits.seed), first);
        if report.findings.is_empty() {
            let work = Work { setup, clean: &clean, budget, plans: &plans.plans, next: AtomicUsize::new(0) };
            self.run_all(&work, lab, &mut report);
        }
        report.took = began.elapsed();
        report.busy = report.busy.max(Duration::from_nanos(1));
        report
    }

    fn plans_max(&self) -> usize {
        match std::env::var(PLANS_VARIABLE).as_deref() {
            Ok("all") => usize::MAX,
            Ok(number) => match number.parse() {
                Ok(number) => number,
                Err(_) => panic!("{PLANS_VARIABLE} is {number:?}: it takes a number, or all"),
            },
            Err(_) => self.limits.plans,
        }
    }

    /// Runs without faults: twice with other chances, to see what chance decides.
    fn calibrate(&self, lab: &Lab, setup: &Setup) -> (Arc<Clean>, Budget, Outcome) {
        let seed = self.limits.seed;
        let first = lab.run(setup, &Plan::clean(seed), None, FIRST_BUDGET);
        let other = lab.run(setup, &Plan::clean(seed.wrapping_add(1)), None, FIRST_BUDGET);
        let pairs = first.states.iter().zip(&other.states);
        let noise = pairs.flat_map(|(one, other)| form::noise(&one.form, &other.form)).collect();
        let clean = Arc::new(Clean { states: first.states.clone(), noise });
        let calls = first.calls.len() * 10 + EXTRA_CALLS;
        (clean, Budget { calls, per_instant: FIRST_BUDGET.per_instant }, first)
    }

    fn run_all(&self, work: &Work<'_>, lab: Lab, report: &mut Report) {
        let threads = self.threads.or_else(|| std::thread::available_parallelism().ok().map(NonZero::get)).unwrap_or(1);
        let results = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 1..threads.min(work.plans.len()) {
                scope.spawn(|| work.share(&Lab::new(work.setup), self.first_only, &results));
            }
            work.share(&lab, self.first_only, &results);
        });
        let mut results = results.into_inner().expect("a thread that panicked has failed the test");
        results.sort_unstable_by_key(|(number, _, _)| *number);
        for (number, outcome, busy) in results {
            report.busy += busy;
            report.take(&work.plans[number], outcome);
        }
    }
}

/// The time that this thread has worked.
fn cpu() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Plans that threads take one after the other.
struct Work<'a> {
    setup: &'a Setup,
    clean: &'a Arc<Clean>,
    budget: Budget,
    plans: &'a [Plan],
    next: AtomicUsize,
}

impl Work<'_> {
    fn share(&self, lab: &Lab, first_only: bool, results: &Mutex<Vec<(usize, Outcome, Duration)>>) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(plan) = self.plans.get(number) else { return };
            let began = cpu();
            let mut outcome = lab.run(self.setup, plan, Some(self.clean), self.budget);
            outcome.states.clear();
            if outcome.violations.is_empty() {
                outcome.calls.clear();
            } else if first_only {
                self.next.store(self.plans.len(), Ordering::Relaxed);
            }
            let mut results = results.lock().expect("a thread that panicked has failed the test");
            results.push((number, outcome, cpu().saturating_sub(began)));
        }
    }
}

impl Report {
    /// Counts a plan.
    fn take(&mut self, plan: &Plan, outcome: Outcome) {
        let classes: Vec<&str> = plan.faults.iter().map(super::plan::Fault::class).collect();
        let counts =
            self.classes.entry(if classes.len() > 1 { "pair".to_owned() } else { classes.concat() }).or_default();
        counts.0 += 1;
        counts.1 += usize::from(!outcome.violations.is_empty());
        self.add(plan, outcome);
    }

    fn add(&mut self, plan: &Plan, outcome: Outcome) {
        if !outcome.violations.is_empty() {
            self.findings.push(Finding { plan: plan.clone(), violations: outcome.violations, calls: outcome.calls });
        }
    }
}
