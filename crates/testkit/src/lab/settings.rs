//! What explorations and campaigns are told alike: of which operator, beside what, how much, on how many threads.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::Arc;

use windlass::Program;
use windlass::rbac::{Need, Part};

use super::built_in::{self, BuiltIn};
use super::form;
use super::judge::{Clean, Rules};
use super::laboratory::{Lab, Make, Outcome, Setup};
use super::plan::Plan;
use super::report::{Finding, Report};
use super::session::Budget;
use super::{Scenario, world};
use crate::{Controller, Controllers, Profile, TestCluster};

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

/// What is tried, and how.
pub(crate) struct Settings {
    pub(crate) make: Make,
    pub(crate) profile: Profile,
    pub(crate) nodes: usize,
    /// The built-in controllers that are the operator.
    explored: Vec<Controller>,
    pub(crate) rules: Rules,
    pub(crate) plans: usize,
    pub(crate) seed: u64,
    pub(crate) threads: Option<usize>,
    /// Whether the first finding ends it.
    pub(crate) first_only: bool,
    /// The rights that need not be used, if the others must be.
    pub(crate) argued: Option<BTreeSet<&'static str>>,
}

impl Settings {
    pub(crate) fn of<P: Program + 'static>(make: impl Fn() -> P + Send + Sync + 'static) -> Self {
        let own = make().crds();
        let own = own.iter().map(|definition| world::prefix(&definition.spec.group, &definition.spec.names.plural));
        Self {
            profile: Profile::Gc,
            nodes: 1,
            explored: Vec::new(),
            rules: Rules { own: own.collect(), ..Rules::default() },
            plans: PLANS_MAX,
            seed: 0,
            threads: None,
            first_only: false,
            argued: None,
            make: Arc::new(move || Box::new(make())),
        }
    }

    /// The built-in controllers `names` in the place of an operator.
    pub(crate) fn of_controllers(names: Vec<Controller>) -> Self {
        let set = names.iter().fold(Controllers::none(), |set, name| set.with(*name));
        let rules = Rules { own: built_in::own(&names), is_cluster: true, ..Rules::default() };
        let settings = Self::of(move || BuiltIn::new(set.clone()));
        Self { rules, profile: Profile::Workloads, explored: names, ..settings }
    }

    pub(crate) fn setup(&self, scenario: Scenario) -> Setup {
        let cluster = TestCluster::builder().profile(self.profile).nodes(self.nodes);
        // What is explored runs at the gate, and nowhere else.
        let cluster = self.explored.iter().fold(cluster, |cluster, name| cluster.without(*name));
        Setup { make: self.make.clone(), scenario, cluster, rules: Arc::new(self.rules.clone()) }
    }

    /// How many plans there are at most.
    ///
    /// # Panics
    /// If the variable holds no number.
    pub(crate) fn plans_max(&self) -> usize {
        match std::env::var(PLANS_VARIABLE).as_deref() {
            Ok("all") => usize::MAX,
            Ok(number) => match number.parse() {
                Ok(number) => number,
                Err(_) => panic!("{PLANS_VARIABLE} is {number:?}: it takes a number, or all"),
            },
            Err(_) => self.plans,
        }
    }

    /// The one plan to run, if the environment names one.
    ///
    /// # Panics
    /// If the variable holds no plan.
    pub(crate) fn only_plan() -> Option<Plan> {
        let text = std::env::var(PLAN_VARIABLE).ok()?;
        match text.parse() {
            Ok(plan) => Some(plan),
            Err(error) => panic!("{PLAN_VARIABLE}: {error}"),
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.or_else(|| std::thread::available_parallelism().ok().map(NonZero::get)).unwrap_or(1)
    }

    /// Adds what the roles of the manifests allow and the operator did not do, if that is asked for.
    pub(crate) fn judge_roles(&self, report: &mut Report) {
        let Some(argued) = self.argued.as_ref().filter(|_| report.findings.is_empty()) else { return };
        let unused = report.roles(&*(self.make)()).of_part(Part::Work).unused;
        let unused = unused.iter().filter(|need| !argued.contains(need.right.to_string().as_str()));
        let say = |need: &Need| {
            let Need { right, why, .. } = need;
            format!("the roles of the manifests let it {right} (because {why}), and it never does")
        };
        let violations: Vec<String> = unused.map(say).collect();
        if !violations.is_empty() {
            report.findings.push(Finding { plan: Plan::clean(self.seed), violations, calls: Vec::new() });
        }
    }

    /// Runs without faults: twice with other chances, to see what chance decides.
    pub(crate) fn calibrate(&self, lab: &Lab, setup: &Setup) -> (Clean, Budget, Outcome) {
        let first = lab.run(setup, &Plan::clean(self.seed), None, FIRST_BUDGET);
        let other = lab.run(setup, &Plan::clean(self.seed.wrapping_add(1)), None, FIRST_BUDGET);
        let pairs = first.states.iter().zip(&other.states);
        let noise = pairs.flat_map(|(one, other)| form::noise(&one.form, &other.form)).collect();
        let made = first.made.clone();
        let clean = Clean { states: first.states.clone(), noise, made, ..Clean::default() };
        let calls = first.calls.len() * 10 + EXTRA_CALLS;
        (clean, Budget { calls, per_instant: FIRST_BUDGET.per_instant }, first)
    }
}

/// The setters of everything that has `settings`.
macro_rules! setters {
    () => {
        /// What runs beside the API server: garbage collection, unless said otherwise. `Workloads` for operators that wait
        /// for Pods.
        pub fn profile(mut self, profile: $crate::Profile) -> Self {
            self.settings.profile = profile;
            self
        }

        /// How many nodes only seem to run Pods, with `Workloads`: one, unless said otherwise.
        pub fn nodes(mut self, count: usize) -> Self {
            self.settings.nodes = count;
            self
        }

        /// So long must nothing change for everything to count as settled: 12 s, unless said otherwise. More for operators
        /// that wait for something on purpose, such as for an upgrade to prove itself.
        pub fn settles_after(mut self, quiet: std::time::Duration) -> Self {
            self.settings.rules.quiet = quiet;
            self
        }

        /// Something that must be true after every single write.
        pub fn invariant(
            mut self,
            name: impl Into<String>,
            check: impl Fn(&$crate::explore::World) -> Result<(), String> + Send + Sync + 'static,
        ) -> Self {
            self.settings.rules.invariants.push((name.into(), std::sync::Arc::new(check)));
            self
        }

        /// Objects of this kind may stay after the resource that they were made for, as volumes do.
        pub fn keeps<K: kube::Resource<DynamicType = ()>>(mut self) -> Self {
            self.settings.rules.kept.push($crate::lab::prefix(&K::group(&()), &K::plural(&())));
            self
        }

        /// The operator may use what is in this namespace for resources of any other: by a grant that its users know of.
        pub fn reaches(mut self, namespace: impl Into<String>) -> Self {
            self.settings.rules.reach.insert(namespace.into());
            self
        }

        /// The operator may write this kind, which lives in no namespace (its plural), for resources that live in one.
        pub fn reaches_cluster(mut self, group: &str, plural: &str) -> Self {
            self.settings.rules.reach_cluster.insert((group.to_owned(), plural.to_owned()));
            self
        }

        /// What Secrets hold under this key may be seen by all, as the name of a user.
        pub fn shows(mut self, key: impl Into<String>) -> Self {
            self.settings.rules.shown.insert(key.into());
            self
        }

        /// The roles of the manifests allow nothing but what the operator does in these runs, and these rights, each as
        /// `delete deployments.apps`: what the runs cannot or need not show.
        pub fn argues(mut self, rights: impl IntoIterator<Item = &'static str>) -> Self {
            self.settings.argued = Some(rights.into_iter().collect());
            self
        }

        /// How many plans at most; beyond that, a sample. The environment variable `WINDLASS_PLANS` overrules it.
        pub fn plans(mut self, count: usize) -> Self {
            self.settings.plans = count;
            self
        }

        /// What chance follows from.
        pub fn seed(mut self, seed: u64) -> Self {
            self.settings.seed = seed;
            self
        }

        /// On how many threads; on all that the machine has, unless said otherwise.
        pub fn threads(mut self, count: usize) -> Self {
            self.settings.threads = Some(count);
            self
        }

        /// Ends with the first finding.
        pub fn until_found(mut self) -> Self {
            self.settings.first_only = true;
            self
        }
    };
}

pub(crate) use setters;
