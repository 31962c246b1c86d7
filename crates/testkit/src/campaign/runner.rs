//! A campaign: the resource as it is, then every change of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use windlass::Program;

use super::changes::Changes;
use super::course::{CHANGED, Course, GONE, REVERTED};
use super::properties;
use super::report::{CampaignReport, Tried};
use crate::lab::{
    Budget, Clean, Fault, Finding, Item, Lab, Outcome, Plan, Report, Settings, Settled, Setup, Sight, StepFault, Work,
    schedule, setters,
};

/// A change may lead to more than what the resource took as it was.
const CALLS_MAX: usize = 4_000;
const MORE_THAN_ASKED: &str = "more changes than the budget: the first of each property are tried";

/// What is changed, and how: from the schema of its kind, every property of a resource gets every value that means something
/// for it, one in each run. It is then changed back, and everything must be as before; what the schema forbids must be
/// refused with the path of the field.
#[must_use = "nothing runs before `run`"]
pub struct Campaign {
    settings: Settings,
    object: Value,
    given: Vec<Value>,
    hints: BTreeMap<String, Vec<Value>>,
    inert: BTreeSet<String>,
    remembers: Vec<String>,
}

impl Campaign {
    /// Changes the resource `object` of the operator that `make` makes: one that is as most are, and becomes ready.
    pub fn of<P: Program + 'static>(make: impl Fn() -> P + Send + Sync + 'static, object: Value) -> Self {
        Self {
            settings: Settings::of(make),
            object,
            given: Vec::new(),
            hints: BTreeMap::new(),
            inert: BTreeSet::new(),
            remembers: Vec::new(),
        }
    }

    setters!();

    /// An object that is there before the resource, such as a Secret that it names.
    pub fn given(mut self, object: Value) -> Self {
        self.given.push(object);
        self
    }

    /// Values to try for a property, besides those that follow from its schema and its name.
    pub fn hint<V: Into<Value>>(mut self, path: impl Into<String>, values: impl IntoIterator<Item = V>) -> Self {
        self.hints.entry(path.into()).or_default().extend(values.into_iter().map(Into::into));
        self
    }

    /// Nothing follows from this property, nor from those in it, and that is as it should be.
    pub fn inert(mut self, path: impl Into<String>) -> Self {
        self.inert.insert(path.into());
        self
    }

    /// What the resource says here tells of its past, and need not be as before when a change is taken back.
    pub fn remembers(mut self, path: impl Into<String>) -> Self {
        self.remembers.push(path.into());
        self
    }

    /// Runs the resource as it is, then once for every change; or only the change that the environment variable
    /// `WINDLASS_PLAN` names, and then prints its schedule.
    ///
    /// # Panics
    /// If the operator has no such kind, or a variable holds no plan, or no number of them.
    pub fn run(&self) -> CampaignReport {
        let Some(plan) = Settings::only_plan() else { return self.ran() };
        let (schedule, report) = self.replay(&plan);
        println!("{schedule}");
        CampaignReport { report, properties: BTreeMap::new() }
    }

    /// Runs one plan, and tells every call of it.
    ///
    /// # Panics
    /// As [`Campaign::run`].
    pub fn replay(&self, plan: &Plan) -> (String, Report) {
        let (course, setup) = self.course();
        let lab = Lab::new(&setup);
        let (bench, first) = self.bench(&course, &lab, &setup);
        let outcome = bench.run(&lab, plan);
        let schedule = schedule(plan, &outcome);
        let mut report = Report { calls: first.calls.len(), ..Report::default() };
        report.take(plan, outcome);
        (schedule, report)
    }

    fn ran(&self) -> CampaignReport {
        let began = Instant::now();
        let (course, setup) = self.course();
        let lab = Lab::new(&setup);
        let (bench, first) = self.bench(&course, &lab, &setup);
        let seed = self.settings.seed;
        let plan = |change| Plan::of(Fault::Change(change), seed);
        let mut plans: Vec<Plan> = course.changes.order.iter().cloned().map(plan).collect();
        let mut report = Report { calls: first.calls.len(), ..Report::default() };
        let extra = plans.len().saturating_sub(self.settings.plans_max());
        plans.truncate(plans.len() - extra);
        if extra > 0 {
            report.pruned.insert(MORE_THAN_ASKED, extra);
        }
        report.add(&Plan::clean(seed), first);
        if report.findings.is_empty() {
            let run = |lab: &Lab, plan: &Plan| bench.run(lab, plan);
            let work = Work { setup: &setup, plans: &plans, run: &run, first_only: self.settings.first_only };
            report.take_all(&plans, work.on_all_threads(self.settings.threads(), &lab));
        }
        let properties = self.properties(&course);
        if extra == 0 && report.findings.is_empty() {
            report.findings.extend(self.without_effect(&course, &properties));
        }
        self.settings.judge_roles(&mut report);
        report.took = began.elapsed();
        report.busy = report.busy.max(Duration::from_nanos(1));
        CampaignReport { report, properties }
    }

    /// What is done in all runs.
    fn course(&self) -> (Arc<Course>, Setup) {
        let definitions = (self.settings.make)().crds();
        let kind = self.object["kind"].as_str().unwrap_or_default();
        let is_it = |definition: &&CustomResourceDefinition| kind.is_empty() || definition.spec.names.kind == kind;
        let Some(definition) = definitions.iter().find(is_it) else {
            panic!("the operator has no kind {kind:?}: say one of its kinds in the resource");
        };
        let version = self.object["apiVersion"].as_str().and_then(|version| version.rsplit('/').next());
        let Some((version, schema)) = properties::schema(definition, version) else {
            panic!("{kind} has no schema in the version {version:?}");
        };
        let changes = Changes::of(&schema, &self.object, &self.hints);
        let course = Arc::new(Course {
            item: item(definition, version, &self.object),
            object: self.object.clone(),
            given: [self.given.clone(), changes.given.clone()].concat(),
            changes,
            rules: Arc::new(self.settings.rules.clone()),
            board: Mutex::default(),
        });
        let of_run = course.clone();
        let setup = self.settings.setup(Arc::new(move |user| Box::pin(of_run.clone().run(user))));
        (course, setup)
    }

    /// What all runs are held against.
    fn bench<'a>(&self, course: &'a Course, lab: &Lab, setup: &'a Setup) -> (Bench<'a>, Outcome) {
        let (mut clean, budget, first) = self.settings.calibrate(lab, setup);
        clean.sight = Sight::Operators;
        clean.noise.extend(self.remembers.iter().map(|path| (course.item.key(), path.clone())));
        let back = clean.at(0).map(|state| state.as_of(REVERTED));
        clean.states.extend(back);
        debug_assert!(clean.states.iter().any(|state| state.step == GONE) || clean.states.is_empty());
        let budget = Budget { calls: budget.calls.max(CALLS_MAX), ..budget };
        (Bench { course, setup, clean: Arc::new(clean), budget }, first)
    }

    /// How the changes of each property that holds a value went.
    fn properties(&self, course: &Course) -> BTreeMap<String, Tried> {
        let leaves = course.changes.properties.iter().filter(|property| property.is_leaf);
        let mut all: BTreeMap<String, Tried> = leaves.map(|leaf| (leaf.pointer(), Tried::default())).collect();
        for (change, tried) in &*course.board.lock().expect("a run that panicked has failed the test") {
            if let Some(known) = all.get_mut(&change.path) {
                known.add(tried);
            }
        }
        all
    }

    /// Properties that are accepted and from which nothing follows.
    fn without_effect(&self, course: &Course, properties: &BTreeMap<String, Tried>) -> Vec<Finding> {
        let is_inert =
            |path: &str| self.inert.iter().any(|inert| path == inert || path.starts_with(&format!("{inert}/")));
        let idle = properties.iter().filter(|(path, tried)| tried.is_covered() && !tried.has_effect && !is_inert(path));
        let finding = |(path, _): (&String, &Tried)| {
            let change = course.changes.order.iter().find(|change| change.path == *path)?;
            let what = format!(
                "{path} has no effect: whatever it is, the operator does the same; if that is right, say .inert({path:?})"
            );
            let plan = Plan::of(Fault::Change(change.clone()), self.settings.seed);
            Some(Finding { plan, violations: vec![what], calls: Vec::new() })
        };
        idle.filter_map(finding).collect()
    }
}

/// What all runs of a campaign are held against.
struct Bench<'a> {
    course: &'a Course,
    setup: &'a Setup,
    clean: Arc<Clean>,
    budget: Budget,
}

impl Bench<'_> {
    /// Runs a change; for some, also makes the resource with it on an empty cluster: that must lead to the same.
    fn run(&self, lab: &Lab, plan: &Plan) -> Outcome {
        let mut outcome = lab.run(self.setup, plan, Some(&self.clean), self.budget);
        let is_sampled = plan.change().is_some_and(|change| self.course.changes.fresh.contains(change));
        let changed = outcome.states.iter().find(|state| state.step == CHANGED);
        // Without a history there is nothing to go back to.
        let is_comparable = changed.is_some_and(|state| !is_taken_back(state, &self.course.item.key()));
        if is_sampled && is_comparable && outcome.violations.is_empty() {
            let clean = Clean { states: outcome.states.clone(), ..(*self.clean).clone() };
            let mut fresh = plan.clone();
            fresh.faults.push(Fault::Step(CHANGED, StepFault::Fresh));
            let made = lab.run(self.setup, &fresh, Some(&Arc::new(clean)), self.budget);
            outcome.violations.extend(made.violations);
            outcome.rights.merge(&made.rights);
        }
        outcome
    }
}

/// Whether the resource says that what was asked for was tried, and taken back.
fn is_taken_back(state: &Settled, resource: &str) -> bool {
    let conditions = state.form.get(resource).and_then(|object| object["status"]["conditions"].as_array());
    conditions.into_iter().flatten().any(|condition| {
        (&condition["type"], &condition["status"], &condition["reason"])
            == (&json!("Stalled"), &json!("True"), &json!("RolledBack"))
    })
}

/// Where the resource is.
fn item(definition: &CustomResourceDefinition, version: String, object: &Value) -> Item {
    let is_namespaced = definition.spec.scope == "Namespaced";
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    Item {
        group: definition.spec.group.clone(),
        version,
        kind: definition.spec.names.kind.clone(),
        plural: definition.spec.names.plural.clone(),
        namespace: is_namespaced.then(|| namespace.to_owned()),
        name: object["metadata"]["name"].as_str().unwrap_or("campaign").to_owned(),
    }
}
