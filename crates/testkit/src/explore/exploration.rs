//! An exploration: the run without faults, then every plan.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windlass::Program;

use super::generate::{Limits, Plans};
use crate::Controller;
use crate::lab::{Lab, Plan, Report, Settings, Setup, User, Work, schedule, setters};

/// What is explored, and how: see [`explore`](super::explore) for what it does.
#[must_use = "nothing runs before `run`"]
pub struct Exploration {
    settings: Settings,
    pairs: usize,
    only: Option<Vec<&'static str>>,
    never: Vec<&'static str>,
}

impl Exploration {
    /// Explores the operator that `make` makes: it is called for each of its lives, so that nothing is remembered.
    pub fn of<P: Program + 'static>(make: impl Fn() -> P + Send + Sync + 'static) -> Self {
        Self { settings: Settings::of(make), pairs: 0, only: None, never: Vec::new() }
    }

    /// Explores built-in controllers of the cluster in the place of an operator; the others run beside them, with a node
    /// that only seems to run Pods. Oracles that are about operators, roles and borders of namespaces, do not apply.
    pub fn of_controllers(names: impl IntoIterator<Item = Controller>) -> Self {
        let settings = Settings::of_controllers(names.into_iter().collect());
        Self { settings, pairs: 0, only: None, never: Vec::new() }
    }

    setters!();

    /// Adds so many plans of two faults each, by chance.
    pub fn pairs(self, count: usize) -> Self {
        Self { pairs: count, ..self }
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
        let Some(plan) = Settings::only_plan() else { return self.explored(&setup) };
        let (schedule, report) = self.replayed(&setup, &plan);
        println!("{schedule}");
        report
    }

    /// Runs one plan, and tells every call of it.
    pub fn replay<F: Future<Output = ()> + 'static>(
        &self,
        plan: &Plan,
        scenario: impl Fn(User) -> F + Send + Sync + 'static,
    ) -> (String, Report) {
        self.replayed(&self.setup(scenario), plan)
    }

    /// Runs one plan so many times, on all threads: the schedules that came of it, and how often. There is one of them, unless
    /// the operator takes chance or time from elsewhere than its clock.
    pub fn repeat<F: Future<Output = ()> + 'static>(
        &self,
        plan: &Plan,
        times: usize,
        scenario: impl Fn(User) -> F + Send + Sync + 'static,
    ) -> BTreeMap<String, usize> {
        let setup = self.setup(scenario);
        let lab = Lab::new(&setup);
        let (clean, budget, _) = self.settings.calibrate(&lab, &setup);
        let (clean, schedules) = (Arc::new(clean), Mutex::new(BTreeMap::new()));
        let run = |lab: &Lab, plan: &Plan| {
            let outcome = lab.run(&setup, plan, Some(&clean), budget);
            let mut schedules = schedules.lock().expect("no code that can panic runs under this lock");
            *schedules.entry(schedule(plan, &outcome)).or_default() += 1;
            outcome
        };
        let plans = vec![plan.clone(); times];
        let work = Work { setup: &setup, plans: &plans, run: &run, first_only: false };
        work.on_all_threads(self.settings.threads(), &lab);
        schedules.into_inner().expect("a thread that panicked has failed the test")
    }

    fn setup<F: Future<Output = ()> + 'static>(&self, scenario: impl Fn(User) -> F + Send + Sync + 'static) -> Setup {
        self.settings.setup(Arc::new(move |user| Box::pin(scenario(user))))
    }

    fn replayed(&self, setup: &Setup, plan: &Plan) -> (String, Report) {
        let lab = Lab::new(setup);
        let (clean, budget, first) = self.settings.calibrate(&lab, setup);
        let outcome = lab.run(setup, plan, Some(&Arc::new(clean)), budget);
        let schedule = schedule(plan, &outcome);
        let mut report = Report { calls: first.calls.len(), ..Report::default() };
        report.take(plan, outcome);
        (schedule, report)
    }

    fn explored(&self, setup: &Setup) -> Report {
        let began = Instant::now();
        let lab = Lab::new(setup);
        let (clean, budget, first) = self.settings.calibrate(&lab, setup);
        let clean = Arc::new(clean);
        let mut report = Report { calls: first.calls.len(), ..Report::default() };
        let limits = Limits { plans: self.settings.plans_max(), pairs: self.pairs, seed: self.settings.seed };
        let mut plans = Plans::of(&first, limits);
        plans.plans.retain(|plan| self.is_wanted(plan));
        report.pruned = plans.pruned;
        report.add(&Plan::clean(self.settings.seed), first);
        if report.findings.is_empty() {
            let run = |lab: &Lab, plan: &Plan| lab.run(setup, plan, Some(&clean), budget);
            let first_only = self.settings.first_only;
            let work = Work { setup, plans: &plans.plans, run: &run, first_only };
            report.take_all(&plans.plans, work.on_all_threads(self.settings.threads(), &lab));
        }
        self.settings.judge_roles(&mut report);
        report.took = began.elapsed();
        report.busy = report.busy.max(Duration::from_nanos(1));
        report
    }

    fn is_wanted(&self, plan: &Plan) -> bool {
        let is_class = |classes: &Vec<&str>| plan.faults.iter().any(|fault| classes.contains(&fault.class()));
        self.only.as_ref().is_none_or(is_class) && !is_class(&self.never)
    }
}
