//! What the metrics of an autoscaler want of its target.

use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, MetricStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::core::SelectorExt;
use windlass_runtime::ObjectKey;

use super::draft::Draft;
use super::measure::{Measured, Unmeasured, measure};
use super::replicas::{Sight, Tolerances};
use super::target::Target;
use super::{ACTIVE, Autoscalers, Known, selector};

/// What the metrics want: how many replicas, by which of them, and what they are.
pub(super) struct Wish {
    pub(super) replicas: i32,
    pub(super) metric: String,
    pub(super) metrics: Vec<MetricStatus>,
}

/// Every metric that was looked at, in their order.
type Looks = Vec<Result<Measured, Unmeasured>>;

impl Autoscalers {
    /// What the metrics ask for; `None` if they do not say, which the draft then tells.
    pub(super) async fn wish(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        key: &ObjectKey,
        target: &Target,
        draft: &mut Draft,
    ) -> Option<Wish> {
        let pods = match self.selected(key, target.selector()) {
            Ok(pods) => pods,
            Err(Unselected { event, reason, condition, why }) => {
                self.warn(autoscaler, event, why.clone());
                draft.condition(ACTIVE, false, reason, condition);
                draft.observed(target.wanted(), vec![]);
                self.warn(autoscaler, "FailedComputeMetricsReplicas", why);
                return None;
            }
        };
        let looks = self.measured(&autoscaler.spec, key, target, &pods).await;
        for failure in looks.iter().filter_map(|look| look.as_ref().err()) {
            self.warn(autoscaler, failure.reason, failure.why.clone());
        }
        match judged(looks, target.wanted()) {
            Ok(wish) => {
                let text = format!("the HPA was able to successfully calculate a replica count from {}", wish.metric);
                draft.condition(ACTIVE, true, "ValidMetricFound", text);
                Some(wish)
            }
            Err(Silence { reason, condition, event, metrics }) => {
                draft.observed(target.wanted(), metrics);
                draft.condition(ACTIVE, false, reason, condition);
                self.warn(autoscaler, "FailedComputeMetricsReplicas", event);
                None
            }
        }
    }

    async fn measured(
        &self,
        spec: &HorizontalPodAutoscalerSpec,
        key: &ObjectKey,
        target: &Target,
        pods: &[Arc<Pod>],
    ) -> Looks {
        let sight = Sight {
            wanted: target.wanted(),
            present: target.present(),
            pods,
            tolerances: Tolerances::of(spec.behavior.as_ref()),
            now: self.actor.clock.now(),
        };
        let place = (key.namespace.as_deref().unwrap_or_default(), target.selector());
        let mut looks = Looks::new();
        for metric in spec.metrics.iter().flatten() {
            looks.push(measure(&self.source, &sight, place, metric).await);
        }
        looks
    }

    /// The Pods of the target, which nobody else may scale.
    fn selected(&self, key: &ObjectKey, text: &str) -> Result<Vec<Arc<Pod>>, Unselected> {
        if text.is_empty() {
            let condition = "the HPA target's scale is missing a selector".to_owned();
            let why = "selector is required".to_owned();
            return Err(Unselected { event: "SelectorRequired", reason: "InvalidSelector", condition, why });
        }
        let selector = selector::parse(text).map_err(|error| {
            let why = format!("couldn't convert selector into a corresponding internal selector object: {error}");
            Unselected { event: "InvalidSelector", reason: "InvalidSelector", condition: why.clone(), why }
        })?;
        let mut pods = self.pods.in_namespace(key.namespace.as_deref().unwrap_or_default());
        pods.retain(|pod| selector.matches(pod.labels()));
        let mut known = self.known();
        known.entry(key.clone()).or_default().selector = Some(selector);
        let selects = |(other, it): &(&ObjectKey, &Known)| {
            let selector = it.selector.as_ref().filter(|_| other.namespace == key.namespace);
            selector.is_some_and(|selector| pods.iter().any(|pod| selector.matches(pod.labels())))
        };
        let mut all: Vec<&ObjectKey> = known.iter().filter(selects).map(|(other, _)| other).collect();
        if all.len() < 2 {
            return Ok(pods);
        }
        all.sort_by_key(|key| &key.name);
        let shown = |key: &&ObjectKey| format!("{{{} {}}}", key.name, key.namespace.as_deref().unwrap_or_default());
        let names = all.iter().map(shown).collect::<Vec<_>>().join(" ");
        let why = format!("pods by selector {text} are controlled by multiple HPAs: [{names}]");
        Err(Unselected { event: "AmbiguousSelector", reason: "AmbiguousSelector", condition: why.clone(), why })
    }
}

/// Why the Pods of a target cannot be told.
struct Unselected {
    event: &'static str,
    reason: &'static str,
    condition: String,
    why: String,
}

/// Why the metrics say nothing that can be followed.
struct Silence {
    reason: &'static str,
    condition: String,
    event: String,
    metrics: Vec<MetricStatus>,
}

/// The most that is asked for. Where a metric could not be read, nothing is followed that asks for less than there is.
fn judged(looks: Looks, wanted: i32) -> Result<Wish, Silence> {
    let (count, mut failures, mut first, mut best) = (looks.len(), 0, None, None::<Measured>);
    let mut metrics = Vec::with_capacity(count);
    for look in looks {
        match look {
            Ok(measured) => {
                metrics.push(measured.status.clone());
                if best.as_ref().is_none_or(|best| measured.replicas > best.replicas) {
                    best = Some(measured);
                }
            }
            Err(failure) => {
                // The place of a metric tells clients which one it is.
                metrics.push(MetricStatus::default());
                failures += 1;
                first.get_or_insert(failure);
            }
        }
    }
    match (best.filter(|best| failures == 0 || best.replicas >= wanted), first) {
        (Some(best), _) => Ok(Wish { replicas: best.replicas, metric: best.name, metrics }),
        (None, Some(Unmeasured { reason, what, why })) => Err(Silence {
            reason,
            condition: format!("the HPA was unable to compute the replica count: {why}"),
            event: format!(
                "invalid metrics ({failures} invalid out of {count}), first error is: failed to get {what}: {why}"
            ),
            metrics,
        }),
        (None, None) => Err(Silence {
            reason: "InvalidMetricSourceType",
            condition: "the HPA was unable to compute the replica count: it has no metrics".to_owned(),
            event: "the autoscaler has no metrics".to_owned(),
            metrics,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(looks: &[Option<i32>], wanted: i32, expect: Result<(i32, &str), &str>) {
        let look = |(number, replicas): (usize, &Option<i32>)| match replicas {
            Some(replicas) => {
                Ok(Measured { replicas: *replicas, name: number.to_string(), status: MetricStatus::default() })
            }
            None => Err(Unmeasured { reason: "Failed", what: number.to_string(), why: "no".to_owned() }),
        };
        let outcome = judged(looks.iter().enumerate().map(look).collect(), wanted);
        let outcome = outcome.map(|wish| (wish.replicas, wish.metric)).map_err(|silence| silence.event);
        let expect = expect.map(|(replicas, metric)| (replicas, metric.to_owned())).map_err(str::to_owned);
        assert_eq!(outcome, expect, "{looks:?}");
    }

    #[test]
    fn the_greatest_wish_counts_and_unknown_ones_only_hinder_shrinking() {
        check(&[Some(3), Some(5), Some(5)], 4, Ok((5, "1")));
        check(&[None, Some(5)], 4, Ok((5, "1")));
        check(&[None, Some(4)], 4, Ok((4, "1")));
        let why = "invalid metrics (1 invalid out of 2), first error is: failed to get 1: no";
        check(&[Some(3), None], 4, Err(why));
        check(&[None], 4, Err("invalid metrics (1 invalid out of 1), first error is: failed to get 0: no"));
    }
}
