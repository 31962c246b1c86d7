//! Upgrades in a pass: which revision is carried out, what is kept of it, and whether it is known to be good.

mod engine;
mod skill;
mod tell;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::ResourceExt;
use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_core::{
    Child, CustomResource, Health, News, Outcome, Situation, Statement, Terms, UpgradeStatus, World, names,
};

pub(crate) use self::skill::{Skill, SkillOf, skill_of};
use self::tell::event;
use super::act::Trouble;
use super::parts::Standing;
use crate::reconcile::Action;

/// How many bytes of its hash a revision is called by.
const HASH_BYTES: usize = 5;
/// More of a resource's name is not in the names of its revisions.
const NAME_CHARS_MAX: usize = 180;

/// The revision that a resource asks for.
#[derive(Clone, Debug, PartialEq)]
struct Wanted {
    hash: String,
    version: String,
    data: Value,
}

/// What a pass does about upgrades.
pub(crate) struct Way<R> {
    /// The resource as it asks for the revision that is carried out; or why that is not known.
    pub(crate) pinned: Result<R, String>,
    pub(crate) record: UpgradeStatus,
    before: UpgradeStatus,
    wanted: Wanted,
    health: Health,
    retry: Option<String>,
    terms: Terms,
    now: Timestamp,
}

impl Wanted {
    /// A revision that says the same as the one that is known to be good is that one, however it is written.
    fn of<R: CustomResource>(skill: &dyn Skill<R>, resource: &R, record: &UpgradeStatus) -> Self {
        let data = skill.revision(resource);
        let version = skill.version(&data);
        let good = record.last_known_good.as_ref().filter(|good| skill.is_same(&good.revision, &data));
        match good {
            Some(good) => Self { hash: good.hash.clone(), version, data: good.revision.clone() },
            None => Self { hash: hash(&data), version, data },
        }
    }
}

impl<R: CustomResource> Way<R> {
    /// Chooses the revision: the one that is asked for, or the last good one in its place.
    pub(crate) fn choose(skill: &dyn Skill<R>, resource: &R, world: &World) -> Self {
        let before = resource.status().and_then(|status| status.upgrade.clone()).unwrap_or_default();
        let wanted = Wanted::of(skill, resource, &before);
        let is_tried = before.in_progress.as_ref().is_some_and(|trial| trial.hash == wanted.hash);
        let mut way = Self {
            pinned: Ok(resource.clone()),
            record: UpgradeStatus::default(),
            health: if is_tried { skill.judge(resource, world) } else { Health::Healthy },
            retry: resource.annotations().get(names::RETRY_UPGRADE).cloned(),
            terms: skill.terms(resource),
            now: world.now(),
            before,
            wanted,
        };
        // What could not be seen speaks against nobody.
        let health = if world.blind().is_some() { Health::Healthy } else { way.health.clone() };
        way.record = way.before.choose(&way.situation(), || health);
        let good = way.record.last_known_good.as_ref().filter(|_| way.record.is_rolled_back());
        if let Some(good) = good {
            way.pinned = skill.pinned(resource, &good.revision);
        }
        way
    }

    /// Whether the revision that is tried has just failed, and is to be taken back. That is written down before it is done:
    /// whoever ends in between must not find it well, and try it again.
    pub(crate) fn turns_back(&self) -> bool {
        matches!(self.news(), Some(News::RolledBack(_)))
    }

    /// What is wanted, with the revisions that a decision may need: the one that is asked for, and the last good one.
    pub(crate) fn with_revisions(&self, mut outcome: Outcome<R::Status>, resource: &R) -> Outcome<R::Status> {
        let desired = match &mut outcome {
            Outcome::Settled(desired) | Outcome::Waiting { desired: Some(desired), .. } => desired,
            _ => return outcome,
        };
        // A resource without a namespace cannot own what has one. The record is enough.
        if resource.meta().namespace.is_none() {
            return outcome;
        }
        let good = self.record.last_known_good.iter().filter(|good| good.hash != self.wanted.hash);
        let good = good.map(|good| Wanted {
            hash: good.hash.clone(),
            version: good.version.clone(),
            data: good.revision.clone(),
        });
        for revision in good.chain([self.wanted.clone()]) {
            let object = Child::new(&object(&revision, resource));
            desired.children.push(object.expect("a ControllerRevision has a name, and can be written"));
        }
        outcome
    }

    /// Takes in how the pass went: whether anything speaks against the revision that is tried.
    pub(crate) fn prove(
        &mut self,
        outcome: &Outcome<R::Status>,
        carried: Option<&Result<Standing, Trouble>>,
        unready: impl FnOnce() -> Option<String>,
    ) {
        if matches!(outcome, Outcome::Invalid { .. }) {
            // Nothing is tried of a resource that cannot be served.
            self.record = self.before.clone();
            return;
        }
        let objection = self.health.objection().or_else(|| objection(outcome, carried)).or_else(unready);
        self.record = self.record.prove(&self.situation(), objection, &self.wanted.data);
    }

    /// What is new, once the record is written.
    pub(crate) fn news(&self) -> Option<News> {
        self.record.news(&self.before)
    }

    /// When to look again.
    pub(crate) fn action(&self) -> Action {
        self.record.recheck(&self.situation()).map_or(Action::Await, Action::Recheck)
    }

    /// The conditions that follow, beyond those of the outcome; none is the outcome of a pass that only writes down.
    pub(crate) fn statements(&self, outcome: Option<&Outcome<R::Status>>) -> Vec<Statement> {
        tell::statements(&self.record, outcome)
    }

    fn situation(&self) -> Situation<'_> {
        Situation {
            hash: &self.wanted.hash,
            version: &self.wanted.version,
            retry: self.retry.as_deref(),
            terms: self.terms,
            now: self.now,
        }
    }
}

/// What in the course of a pass speaks against a revision.
fn objection<S>(outcome: &Outcome<S>, carried: Option<&Result<Standing, Trouble>>) -> Option<String> {
    match (outcome, carried) {
        (_, Some(Err(trouble))) => Some(trouble.in_short()),
        (Outcome::Waiting { message, .. } | Outcome::Retry { message, .. } | Outcome::Invalid { message }, _) => {
            Some(message.clone())
        }
        (Outcome::Settled(_), None) => Some("it was not carried out".into()),
        (Outcome::Settled(_), Some(Ok(standing))) => {
            let applied = standing.has_applied.then(|| "it was just applied".to_owned());
            applied.or_else(|| standing.failed.first().or(standing.waiting.first()).cloned())
        }
    }
}

/// A revision as an object that never changes.
fn object<R: CustomResource>(revision: &Wanted, resource: &R) -> ControllerRevision {
    let name: String = resource.name_any().chars().take(NAME_CHARS_MAX).collect();
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{name}-{}", R::facts().singular, revision.hash)),
            annotations: Some([(names::VERSION.to_owned(), revision.version.clone())].into()),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(revision.data.clone())),
        // They have no order: what was good before may be wanted next.
        revision: 1,
    }
}

fn hash(data: &Value) -> String {
    let digest = Sha256::digest(data.to_string());
    digest.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
}
