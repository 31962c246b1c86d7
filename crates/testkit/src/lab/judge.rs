//! The oracles: what must be true of every run, whatever goes wrong in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass_store::Revision;

use super::canary::{Canaries, SECRETS};
use super::claims::{Claims, is_ready};
use super::form::{self, Form, Kin, Noise};
use super::gate::FOREIGN;
use super::plan::{Fault, StepFault};
use super::session::{Session, Shown};
use super::wishes::{self, Wishes};
use super::world::{self, Change, Chronicle, World};

/// So long must nothing change for everything to count as settled, unless said otherwise. More than faults last.
const QUIET: Duration = Duration::from_secs(12);
/// How many calls the operator may make while nothing changes.
const IDLE_CALLS_MAX: usize = 200;

/// Checks the world after every write.
pub(crate) type Invariant = Arc<dyn Fn(&World) -> Result<(), String> + Send + Sync>;

/// What the author says must be true, and of what.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    pub(crate) invariants: Vec<(String, Invariant)>,
    /// What the keys of the operator's own kinds begin with.
    pub(crate) own: Vec<String>,
    /// Whether it is a part of the cluster: roles of manifests and borders of namespaces are not for it.
    pub(crate) is_cluster: bool,
    /// What the keys of kinds begin with whose objects stay after their owner.
    pub(crate) kept: Vec<String>,
    /// Namespaces that the operator may use for resources of others.
    pub(crate) reach: BTreeSet<String>,
    /// The groups and plurals of kinds without a namespace that it may write for resources that have one.
    pub(crate) reach_cluster: BTreeSet<(String, String)>,
    /// The keys of Secrets under which there is nothing to hide.
    pub(crate) shown: BTreeSet<String>,
    /// So long must nothing change for everything to count as settled, if it is longer than usual.
    pub(crate) quiet: Duration,
}

/// The world when everything was quiet.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    pub(crate) step: usize,
    pub(crate) form: Form,
    pub(crate) uids: BTreeMap<String, String>,
    /// Of the objects that the operator made and chance named.
    pub(crate) kin: Kin,
    pub(crate) wishes: Wishes,
    /// The objects that the operator has made and that are there.
    pub(crate) made: BTreeSet<String>,
    /// The resources that say that they are ready.
    pub(crate) was_ready: BTreeSet<String>,
}

impl Settled {
    /// The same at another step.
    pub(crate) fn as_of(&self, step: usize) -> Self {
        Self { step, ..self.clone() }
    }
}

/// How the run without faults went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clean {
    pub(crate) states: Vec<Settled>,
    pub(crate) noise: Noise,
    pub(crate) sight: Sight,
    /// How often each object was made.
    pub(crate) made: BTreeMap<String, usize>,
}

/// How much of the world is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sight {
    /// All of it.
    #[default]
    Everything,
    /// The resources, and what the operator wrote of the objects that it made.
    Operators,
}

impl Clean {
    pub(crate) fn at(&self, step: usize) -> Option<&Settled> {
        self.states.iter().find(|state| state.step == step)
    }
}

pub(crate) struct Judge {
    chronicle: Chronicle,
    rules: Arc<Rules>,
    clean: Option<Arc<Clean>>,
    pub(crate) wishes: Wishes,
    pub(crate) states: Vec<Settled>,
    pub(crate) changed_at: Duration,
    claims: Claims,
    canaries: Canaries,
    /// How many lines of the log were searched.
    searched: usize,
}

impl Judge {
    pub(crate) fn new(chronicle: Chronicle, rules: Arc<Rules>, clean: Option<Arc<Clean>>) -> Self {
        let canaries = Canaries::new(rules.shown.clone());
        Self {
            chronicle,
            rules,
            clean,
            wishes: Wishes::default(),
            states: Vec::new(),
            changed_at: Duration::ZERO,
            claims: Claims::default(),
            canaries,
            searched: 0,
        }
    }

    /// So long must nothing change for everything to count as settled.
    pub(crate) fn quiet(&self) -> Duration {
        self.rules.quiet.max(QUIET)
    }

    /// Looks at every change since the last look.
    pub(crate) fn look(&mut self, session: &Session) {
        let (rules, claims, canaries, wishes) = (&self.rules, &mut self.claims, &mut self.canaries, &self.wishes);
        let (mut has_changed, mut has_learned) = (false, false);
        self.chronicle.follow(|change| {
            has_changed |= world::is_inside(change.key);
            check_change(rules, change, session);
            claims.notice(&rules.own, change);
            match &change.new {
                Some(secret) if change.key.starts_with(SECRETS) => has_learned |= canaries.learn(change.key, secret),
                Some(_) if !canaries.is_empty() => search(canaries, wishes, (change.key, change.text), session),
                _ => {}
            }
        });
        if has_changed {
            self.changed_at = session.now();
        }
        if has_learned {
            self.searched = 0;
        }
    }

    /// Looks for what Secrets hold in all that is to be seen: what came before its Secret, too.
    fn search_all(&mut self, session: &Session) {
        if self.canaries.is_empty() {
            return;
        }
        let (canaries, wishes) = (&self.canaries, &self.wishes);
        for (key, object) in self.chronicle.world.objects().iter().filter(|(key, _)| !key.starts_with(SECRETS)) {
            search(canaries, wishes, (key, &object.to_string()), session);
        }
        let (lines, count) = session.log.since(self.searched);
        for line in lines {
            search(canaries, wishes, ("the log", &line), session);
        }
        self.searched = count;
        for (what, text) in session.said() {
            search(canaries, wishes, (what, &text), session);
        }
    }

    /// Everything is quiet for the time with the number `step`.
    pub(crate) fn settled(&mut self, step: usize, session: &Session) {
        self.search_all(session);
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
        let made: BTreeSet<String> =
            session.lock().made.keys().filter(|key| objects.contains_key(*key)).cloned().collect();
        let kin = form::kin(made.iter().filter_map(|key| objects.get_key_value(key)));
        let is_own = |key: &str| self.rules.own.iter().any(|prefix| key.starts_with(prefix));
        let ready = objects.iter().filter(|(key, object)| is_own(key) && is_ready(object));
        Settled {
            step,
            was_ready: ready.map(|(key, _)| key.clone()).collect(),
            form: form::of(objects),
            kin,
            uids: objects.iter().filter_map(uid).collect(),
            wishes: self.wishes.clone(),
            made,
        }
    }

    fn faults_of(&mut self, now: &Settled, session: &Session) -> Vec<String> {
        let mut faults = self.user_faults(session);
        faults.extend(std::mem::take(&mut self.claims).false_one(now, self.chronicle.world.objects()));
        let is_fresh = session.plan.fresh().is_some();
        let Some(clean) = self.clean.clone().filter(|_| !is_fresh) else { return faults };
        if let Some(expected) = clean.at(now.step) {
            faults.extend(match clean.sight {
                Sight::Everything => form::difference(&expected.form, &now.form, &clean.noise),
                Sight::Operators => {
                    let [expected, found] = [expected, now].map(|state| form::view(state, &self.rules));
                    form::difference(&expected, &found, &clean.noise)
                }
            });
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

    /// Objects that were deleted and made again, though nobody asked for that.
    fn replaced(&self, clean: &Clean, now: &Settled, session: &Session) -> Vec<String> {
        let Some(before) = self.states.last().filter(|_| !is_disturbed(session)) else { return Vec::new() };
        let stays = |key: &String| {
            before.step == now.step
                || matches!((clean.at(before.step), clean.at(now.step)), (Some(one), Some(other))
                    if one.uids.contains_key(key) && one.uids.get(key) == other.uids.get(key))
        };
        let is_other = |(key, uid): (&String, &String)| {
            let replaced = now.uids.get(key).is_some_and(|now| now != uid) && stays(key);
            replaced.then(|| format!("{key} was deleted and made again"))
        };
        let mut replaced: Vec<String> = before.uids.iter().filter_map(is_other).take(1).collect();
        replaced.extend(before.kin.keys().filter_map(|key| {
            let stay = |one: &Settled, other: &Settled| match (one.kin.get(key), other.kin.get(key)) {
                (Some(one), Some(other)) => one.intersection(other).count(),
                _ => 0,
            };
            let expected = match (clean.at(before.step)?, clean.at(now.step)?) {
                (one, _) if before.step == now.step => one.kin.get(key).map_or(0, BTreeSet::len),
                (one, other) => stay(one, other),
            };
            let lost = expected.saturating_sub(stay(before, now));
            (lost > 0).then(|| format!("{lost} of {expected} {key} were deleted and others made in their place"))
        }));
        replaced
    }

    /// Nothing was asked since there were `before` calls: nothing may have been written.
    pub(crate) fn idle(&self, before: usize, session: &Session) {
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
    pub(crate) fn left_over(&self, session: &Session) {
        let objects = self.chronicle.world.objects();
        for key in self.wishes.deleted().iter().filter(|key| objects.contains_key(*key)) {
            session.violate(format!("{key} was deleted by the user and does not go"));
        }
        let begins = |key: &str, prefixes: &[String]| prefixes.iter().any(|prefix| key.starts_with(prefix));
        if objects.keys().any(|key| begins(key, &self.rules.own)) {
            return;
        }
        let made = session.lock().made.clone();
        for key in made.keys().filter(|key| objects.contains_key(*key) && !begins(key, &self.rules.kept)) {
            session.violate(format!("{key} is an orphan: no resource is left that it could belong to"));
        }
    }

    /// What a controller of the cluster made more often than in the run without faults, though nobody deleted it. Of operators
    /// this is not asked: an apply from an old view is undone when the view is new.
    pub(crate) fn made_again(&self, session: &Session) {
        let Some(clean) = self.clean.as_ref().filter(|_| self.rules.is_cluster) else { return };
        if is_disturbed(session) || session.plan.fresh().is_some() {
            return;
        }
        let made = session.lock().made.clone();
        for (key, times) in made {
            // Names that other times or other chances gave are there once.
            let expected = clean.made.get(&key).copied().unwrap_or(1);
            if times > expected {
                session.violate(format!("{key} was made {times} times, not {expected}: what it did was done again"));
            }
        }
    }

    /// Whether the operator's objects are as if there had been no history.
    pub(crate) fn compare_fresh(&self, step: usize, session: &Session) {
        let (Some(clean), Some(found)) = (&self.clean, self.states.last()) else { return };
        let Some(expected) = clean.at(step) else { return };
        let children = |state: &Settled| -> Form {
            let mut view = form::view(state, &self.rules);
            view.retain(|key, _| form::is_made(key, &state.made));
            view
        };
        if let Some(what) = form::difference(&children(found), &children(expected), &clean.noise) {
            session.violate(format!("step {step} leaves another state than the same wish without a history: {what}"));
        }
    }

    /// The revision before an event of this run.
    pub(crate) fn before_event(&self, event: usize, session: &Session) -> Revision {
        let state = session.lock();
        let revision = state.events.get(event).map_or(1, |event| event.revision);
        Revision(revision.saturating_sub(1).max(1))
    }

    /// An object as it is now.
    pub(crate) fn object(&self, key: &str) -> Option<&Value> {
        self.chronicle.world.objects().get(key)
    }

    /// The path of an object in the API.
    pub(crate) fn path_of(&self, key: &str) -> Option<String> {
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

/// Whether the plan itself deletes something.
fn is_disturbed(session: &Session) -> bool {
    let deletes = |fault: &Fault| matches!(fault, Fault::Step(_, StepFault::Delete(_) | StepFault::DeleteWhileDown(_)));
    session.plan.faults.iter().any(deletes)
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

/// Tells of what Secrets hold if it is in something that others can see.
fn search(canaries: &Canaries, wishes: &Wishes, (what, text): (&str, &str), session: &Session) {
    if let Some(canary) = canaries.find(text, wishes.open()) {
        let line = if what == "the log" { format!(": {}", canary.mask(text)) } else { String::new() };
        session.violate(format!("a secret is to be seen: {} is in {what}{line}", canary.whose()));
    }
}
