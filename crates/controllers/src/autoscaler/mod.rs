//! HorizontalPodAutoscalers change the number of replicas of what they scale, by what metrics say.

mod draft;
mod limits;
#[cfg(test)]
mod limits_tests;
mod measure;
mod memory;
mod pods;
mod reading;
mod replicas;
#[cfg(test)]
mod replicas_tests;
mod selector;
mod source;
mod target;
mod wish;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::core::Selector;
use windlass_runtime::{Action, Attempt, Controller, Error, Event, Informer, Manager, ObjectKey, Process};

use crate::actor::{Actor, is_gone, message};
use crate::kinds::Kinds;
use draft::Draft;
use limits::Limits;
use memory::Memory;
use source::Source;
use target::Target;

/// How often an autoscaler is looked at.
const SYNC_PERIOD: Duration = Duration::from_secs(15);
/// How long to wait for the list of kinds, which is made when controllers start.
const KINDS_WAIT: Duration = Duration::from_millis(200);

const ABLE: &str = "AbleToScale";
const ACTIVE: &str = "ScalingActive";
const LIMITED: &str = "ScalingLimited";
const BELOW: &str = "All metrics below target";

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager, kinds: &Kinds) {
    let autoscalers = manager.informers().all::<HorizontalPodAutoscaler>();
    let pods = manager.informers().all::<Pod>();
    let actor = Actor::new(manager, "horizontal-pod-autoscaler");
    let source = Source { client: actor.client.clone(), kinds: kinds.clone() };
    let process = Autoscalers { actor, autoscalers: autoscalers.clone(), pods, source, known: Mutex::default() };
    let controller = Controller::keyed(manager, "horizontalpodautoscaler", process);
    // Its own writes of the status are no news to it.
    manager.add(controller.on(&autoscalers, |change| {
        let spec = |it: &Option<Arc<HorizontalPodAutoscaler>>| it.as_ref().map(|it| (it.uid(), it.spec.clone()));
        (spec(&change.old) != spec(&change.new)).then(|| change.key())
    }));
}

struct Autoscalers {
    actor: Actor,
    autoscalers: Informer<HorizontalPodAutoscaler>,
    pods: Informer<Pod>,
    source: Source,
    known: Mutex<HashMap<ObjectKey, Known>>,
}

/// What is remembered of one autoscaler.
#[derive(Default)]
struct Known {
    memory: Memory,
    /// Which Pods it scales, once that is known.
    selector: Option<Selector>,
}

impl Process for Autoscalers {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, _: &Attempt) -> Result<Action, Error> {
        let Some(autoscaler) = self.autoscalers.get(key).filter(|it| it.metadata.deletion_timestamp.is_none()) else {
            self.known().remove(key);
            return Ok(Action::Await);
        };
        if self.source.kinds.now().is_empty() {
            return Ok(Action::Recheck(KINDS_WAIT));
        }
        let mut draft = Draft::of(&autoscaler, self.actor.clock.now());
        self.look(&autoscaler, key, &mut draft).await;
        if autoscaler.status.as_ref() != Some(&draft.status) {
            let updated =
                HorizontalPodAutoscaler { status: Some(draft.status), ..HorizontalPodAutoscaler::clone(&autoscaler) };
            match self.actor.replace_status(&updated).await {
                Err(error) if !is_gone(&error) => return Err(error.into()),
                _ => {}
            }
        }
        Ok(Action::Recheck(SYNC_PERIOD))
    }
}

/// What is done with a target.
#[derive(Debug, PartialEq, Eq)]
enum Course {
    /// Somebody wants it to rest.
    Rest,
    /// It is outside of the range: back to its border, for this reason.
    Return(i32, &'static str),
    /// Metrics decide.
    Measure,
}

fn course(current: i32, least: i32, most: i32) -> Course {
    match current {
        0 => Course::Rest,
        _ if current > most => Course::Return(most, "Current number of replicas above Spec.MaxReplicas"),
        _ if current < least => Course::Return(least, "Current number of replicas below Spec.MinReplicas"),
        _ => Course::Measure,
    }
}

impl Autoscalers {
    /// One look: what the target has, what the metrics ask for, and what comes of it.
    async fn look(&self, autoscaler: &HorizontalPodAutoscaler, key: &ObjectKey, draft: &mut Draft) {
        let mut target = match Target::find(&self.actor, &self.source.kinds, autoscaler).await {
            Ok(target) => target,
            Err(why) => {
                self.warn(autoscaler, "FailedGetScale", why.clone());
                let text = format!("the HPA controller was unable to get the target's current scale: {why}");
                return draft.condition(ABLE, false, "FailedGetScale", text);
            }
        };
        let found = "the HPA controller was able to get the target's current scale";
        draft.condition(ABLE, true, "SucceededGetScale", found);
        let (current, now) = (target.wanted(), self.actor.clock.now());
        self.known().entry(key.clone()).or_default().memory.begin(current, now);
        let spec = &autoscaler.spec;
        let least = spec.min_replicas.unwrap_or(1);
        let (wanted, why) = match course(current, least, spec.max_replicas) {
            Course::Rest => {
                let text = "scaling is disabled since the replica count of the target is zero";
                draft.condition(ACTIVE, false, "ScalingDisabled", text);
                draft.observed(current, vec![]);
                (current, String::new())
            }
            Course::Return(wanted, why) => {
                draft.observed(current, vec![]);
                (wanted, why.to_owned())
            }
            Course::Measure => {
                let Some(wish) = self.wish(autoscaler, key, &target, draft).await else { return };
                draft.observed(current, wish.metrics);
                let replicas = self.bounded(spec, key, (current, wish.replicas), draft);
                let above = wish.replicas > current;
                (replicas, if above { format!("{} above target", wish.metric) } else { BELOW.to_owned() })
            }
        };
        if wanted != current && !self.rescale(autoscaler, &mut target, (wanted, &why), draft).await {
            return;
        }
        if wanted != current && spec.behavior.is_some() {
            self.known().entry(key.clone()).or_default().memory.change(wanted - current, now);
        }
        draft.status.desired_replicas = wanted;
    }

    /// What comes of the number that the metrics ask for.
    fn bounded(
        &self,
        spec: &HorizontalPodAutoscalerSpec,
        key: &ObjectKey,
        (current, wanted): (i32, i32),
        draft: &mut Draft,
    ) -> i32 {
        let least = spec.min_replicas.unwrap_or(1);
        let limits = Limits { least, most: spec.max_replicas, behavior: spec.behavior.as_ref() };
        let now = self.actor.clock.now();
        let mut known = self.known();
        let outcome = limits.apply(current, wanted, &mut known.entry(key.clone()).or_default().memory, now);
        draft.condition(ABLE, true, outcome.able.0, outcome.able.1);
        draft.condition(LIMITED, outcome.is_limited, outcome.limited.0, outcome.limited.1);
        outcome.replicas
    }

    /// Changes the target; `false` if that failed, which the draft then tells.
    async fn rescale(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        target: &mut Target,
        (wanted, why): (i32, &str),
        draft: &mut Draft,
    ) -> bool {
        match target.set(&self.actor, wanted).await {
            Ok(()) => {
                let text = format!("the HPA controller was able to update the target scale to {wanted}");
                draft.condition(ABLE, true, "SucceededRescale", text);
                draft.rescaled();
                let text = format!("New size: {wanted}; reason: {why}");
                self.actor.tell(autoscaler, Event::normal("SuccessfulRescale", text));
                true
            }
            Err(error) => {
                let error = message(&error);
                let text = format!("the HPA controller was unable to update the target scale: {error}");
                draft.condition(ABLE, false, "FailedUpdateScale", text);
                self.warn(autoscaler, "FailedRescale", format!("New size: {wanted}; reason: {why}; error: {error}"));
                false
            }
        }
    }

    fn warn(&self, autoscaler: &HorizontalPodAutoscaler, reason: &'static str, text: String) {
        self.actor.tell(autoscaler, Event::warning(reason, text));
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ObjectKey, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
