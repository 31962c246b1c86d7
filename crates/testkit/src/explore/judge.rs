//! The oracles: what must be true of every run, whatever goes wrong in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass_store::Revision;

use super::form::{self, Form, Noise};
use super::gate::FOREIGN;
use super::plan::{Fault, StepFault};
use super::session::{Session, Shown};
use super::wishes::{self, Wishes};
use super::world::{self, Change, Chronicle, World};

/// How many calls the operator may make while nothing changes.
const IDLE_CALLS_MAX: usize = 200;

/// Checks the world after every write.
pub(super) type Invariant = Arc<dyn Fn(&World) -> Result<(), String> + Send + Sync>;

/// What the author says must be true, and of what.
#[derive(Clone, Default)]
pub(super) struct Rules {
    pub(super) invariants: Vec<(String, Invariant)>,
    /// What the keys of the operator's own kinds begin with.
    pub(super) own: Vec<String>,
    /// What the keys of kinds begin with whose objects stay after their owner.
    pub(super) kept: Vec<String>,
}

/// The world when everything was quiet.
#[derive(Clone, Debug)]
pub(super) struct Settled {
    pub(super) step: usize,
    pub(super) form: Form,
    pub(super) uids: BTreeMap<String, String>,
    pub(super) wishes: Wishes,
    /// The objects that the operator has made and that are there.
    pub(super) made: BTreeSet<String>,
}

/// How the run without faults went.
#[derive(Clone, Debug, Default)]
pub(super) struct Clean {
    pub(super) states: Vec<Settled>,
    pub(super) noise: Noise,
}

impl Clean {
    pub(super) fn at(&self, step: usize) -> Option<&Settled> {
        self.states.iter().find(|state| state.step == step)
    }
}

/// A resource began to say that it is ready.
struct Claim {
    resource: String,
    /// The wish that it spoke of.
    generation: Value,
    /// What was there.
    there: BTreeSet<String>,
}

pub(super) struct Judge {
    chronicle: Chronicle,
    rules: Arc<Rules>,
    clean: Option<Arc<Clean>>,
    pub(super) wishes: Wishes,
    pub(super) states: Vec<Settled>,
    pub(super) changed_at: Duration,
    claims: Vec<Claim>,
}

impl Judge {
    pub(super) fn new(chronicle: Chronicle, rules: Arc<Rules>, clean: Option<Arc<Clean>>) -> Self {
        Self {
            chronicle,
            rules,
            clean,
            wishes: Wishes::default(),
            states: Vec::new(),
            changed_at: Duration::ZERO,
            claims: Vec::new(),
        }
    }

    /// Looks at every change since the last look.
    pub(super) fn look(&mut self, session: &Session) {
        let (rules, claims) = (&self.rules, &mut self.claims);
        let mut has_changed = false;
        self.chronicle.follow(|change| {
            has_changed |= world::is_inside(change.key);
            check_change(rules, change, session);
            claims.extend(claim(rules, change));
        });
        if has_changed {
            self.changed_at = session.now();
        }
    }

    /// Everything is quiet for the time with the number `step`.
    pub(super) fn settled(&mut self, step: usize, session: &Session) {
        let now = self.state(step, session);
        for what in self.faults_of(&now, session) {
            session.violate(format!("after step {step}: {what}"));
        }
        self.states.push(now);
    }

    fn state(&mut self, step: usize, session: &Session) -> Settled {
        let objects = self.chronicle.world.objects();
        let uid =
            |(key, object): (&String, &Value)| Some((key.clone(), object["metadata"]["uid"].as_str()?.to_owned()));
        let made = session.lock().made.iter().filter(|key| objects.contains_key(*key)).cloned().collect();
        Settled {
            step,
            form: form::of(objects),
            uids: objects.iter().filter_map(uid).collect(),
            wishes: self.wishes.clone(),
            made,
        }
    }

    fn faults_of(&mut self, now: &Settled, session: &Session) -> Vec<String> {
        let mut faults = self.user_faults(session);
        faults.extend(self.false_claims(now));
        let is_fresh = session.plan.fresh().is_some();
        let Some(clean) = self.clean.clone().filter(|_| !is_fresh) else { return faults };
        if let Some(expected) = clean.at(now.step) {
            faults.extend(form::difference(&expected.form, &now.form, &clean.noise));
            faults.extend(self.replaced(&clean, now, session));
        }
        faults
    }

    /// What is the user's, or somebody else's, and is not as they left it.
    fn user_faults(&self, session: &Session) -> Vec<String> {
        let objects = self.chronicle.world.objects();
        let mut faults = Vec::new();
        for (key, wanted) in self.wishes.iter() {
            match objects.get(key) {
                None => faults.push(format!("{key} is the user's, and was deleted")),
                Some(found) => faults.extend(
                    wishes::unlike(wanted, found, "")
                        .map(|what| format!("{key} is the user's, and was changed: {what}")),
                ),
            }
        }
        let state = session.lock();
        for (key, uid) in &state.meddled {
            let Some(object) = objects.get(key) else { continue };
            let meta = &object["metadata"];
            if meta["uid"] == uid.as_str() && meta["annotations"][FOREIGN] != "stays" {
                faults.push(format!("{key} lost an annotation that somebody else wrote"));
            }
        }
        faults
    }

    /// Resources that said that they were ready before what belongs to them was there.
    fn false_claims(&mut self, now: &Settled) -> Vec<String> {
        let claims = std::mem::take(&mut self.claims);
        let objects = self.chronicle.world.objects();
        let missing = |Claim { resource, generation, there }: Claim| {
            let missing = now.made.iter().find(|key| !there.contains(*key))?;
            let is_same_wish = objects.get(&resource)?["metadata"]["generation"] == generation;
            is_same_wish.then(|| format!("{resource} said that it was ready before {missing} was there"))
        };
        claims.into_iter().filter_map(missing).take(1).collect()
    }

    /// Objects that were deleted and made again, though nobody asked for that.
    fn replaced(&self, clean: &Clean, now: &Settled, session: &Session) -> Vec<String> {
        let is_disturbed = session
            .plan
            .faults
            .iter()
            .any(|fault| matches!(fault, Fault::Step(_, StepFault::Delete(_) | StepFault::DeleteWhileDown(_))));
        let Some(before) = self.states.last().filter(|_| !is_disturbed) else { return Vec::new() };
        let stays = |key: &String| {
            before.step == now.step
                || matches!((clean.at(before.step), clean.at(now.step)), (Some(one), Some(other))
                    if one.uids.contains_key(key) && one.uids.get(key) == other.uids.get(key))
        };
        let is_other = |(key, uid): (&String, &String)| {
            let replaced = now.uids.get(key).is_some_and(|now| now != uid) && stays(key);
            replaced.then(|| format!("{key} was deleted and made again"))
        };
        before.uids.iter().filter_map(is_other).take(1).collect()
    }

    /// Nothing was asked for some time: nothing may have happened. `before` is the number of calls until then.
    pub(super) fn stayed(&self, before: usize, session: &Session) {
        self.idle(before, session);
        self.left_over(session);
    }

    /// Nothing was asked since there were `before` calls: nothing may have been written.
    pub(super) fn idle(&self, before: usize, session: &Session) {
        let (writes, count) = {
            let state = session.lock();
            let idle = &state.calls[before.min(state.calls.len())..];
            let writes = idle.iter().filter(|called| called.changed).map(|called| Shown(&called.call).to_string());
            (writes.collect::<Vec<_>>(), idle.len())
        };
        if let Some(first) = writes.first() {
            session.violate(format!("{} writes although nothing changed, the first one {first}", writes.len()));
        }
        if count > IDLE_CALLS_MAX {
            session.violate(format!("{count} calls although nothing changed"));
        }
    }

    /// What should be gone and is not.
    fn left_over(&self, session: &Session) {
        let objects = self.chronicle.world.objects();
        for key in self.wishes.deleted().iter().filter(|key| objects.contains_key(*key)) {
            session.violate(format!("{key} was deleted by the user and does not go"));
        }
        let begins = |key: &str, prefixes: &[String]| prefixes.iter().any(|prefix| key.starts_with(prefix));
        if objects.keys().any(|key| begins(key, &self.rules.own)) {
            return;
        }
        let made = session.lock().made.clone();
        for key in made.iter().filter(|key| objects.contains_key(*key) && !begins(key, &self.rules.kept)) {
            session.violate(format!("{key} is an orphan: no resource is left that it could belong to"));
        }
    }

    /// Whether the operator's objects are as if there had been no history.
    pub(super) fn compare_fresh(&self, step: usize, session: &Session) {
        let (Some(clean), Some(found)) = (&self.clean, self.states.last()) else { return };
        let Some(expected) = clean.at(step) else { return };
        let children = |state: &Settled| -> Form {
            let is_child = |key: &String| state.made.contains(key);
            state
                .form
                .iter()
                .filter(|(key, _)| is_child(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        if let Some(what) = form::difference(&children(found), &children(expected), &clean.noise) {
            session.violate(format!("step {step} leaves another state than the same wish without a history: {what}"));
        }
    }

    /// The revision before an event of this run.
    pub(super) fn before_event(&self, event: usize, session: &Session) -> Revision {
        let state = session.lock();
        let revision = state.events.get(event).map_or(1, |event| event.revision);
        Revision(revision.saturating_sub(1).max(1))
    }

    /// The path of an object in the API.
    pub(super) fn path_of(&self, key: &str) -> Option<String> {
        let object = self.chronicle.world.objects().get(key)?;
        let version = object["apiVersion"].as_str()?;
        let root = if version.contains('/') { "/apis" } else { "/api" };
        let plural = key.split('/').nth(2)?;
        let name = object["metadata"]["name"].as_str()?;
        Some(match object["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{root}/{version}/namespaces/{namespace}/{plural}/{name}"),
            None => format!("{root}/{version}/{plural}/{name}"),
        })
    }
}

fn check_change(rules: &Rules, change: &Change<'_>, session: &Session) {
    for (name, invariant) in &rules.invariants {
        if let Err(why) = invariant(change.world) {
            session.violate(format!("{name}: {why}"));
        }
    }
    let Some(new) = change.new.as_ref().filter(|_| change.key.starts_with("/core/events/")) else { return };
    let message = new["message"].as_str().unwrap_or_default();
    match new["reason"].as_str() {
        Some("ReconcilePanicked" | "ReconcileTimedOut") => {
            session.violate(format!("a reconcile did not come back: {message}"));
        }
        // The runtime has noticed it, and slows it down.
        Some("HotLoop") => session.violate(format!("hot loop: {message}")),
        _ => {}
    }
}

/// A resource that says from now on that it is ready, as it is wanted now, and what is there.
fn claim(rules: &Rules, change: &Change<'_>) -> Option<Claim> {
    let new = change.new.as_ref().filter(|_| rules.own.iter().any(|prefix| change.key.starts_with(prefix)))?;
    let was = change.old.as_ref().is_some_and(is_ready);
    (is_ready(new) && !was).then(|| Claim {
        resource: change.key.to_owned(),
        generation: new["metadata"]["generation"].clone(),
        there: change.world.objects().keys().cloned().collect(),
    })
}

/// Whether a resource says that it is ready as it is wanted now.
fn is_ready(object: &Value) -> bool {
    let (status, generation) = (&object["status"], &object["metadata"]["generation"]);
    let conditions = status["conditions"].as_array();
    let is_true = |condition: &&Value| condition["type"] == "Ready" && condition["status"] == "True";
    let condition = conditions.and_then(|all| all.iter().find(is_true));
    let says_so = condition.is_some() || status["phase"] == "Ready" || status["ready"] == true;
    let seen = condition.map_or(&Value::Null, |condition| &condition["observedGeneration"]);
    let seen = if seen.is_null() { &status["observedGeneration"] } else { seen };
    says_so && (seen.is_null() || seen == generation)
}
