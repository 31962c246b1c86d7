//! How many replicas a metric asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscalerBehavior;
use k8s_openapi::api::core::v1::Pod;

use super::pods::{Groups, group, ready_count};
use super::reading::{Reading, Readings};
use crate::quantity::Amount;

/// How far from its target a metric may be, unless the autoscaler says otherwise.
const TOLERANCE: f64 = 0.1;
const NO_PODS: &str = "no pods returned by selector while calculating replica count";
const NO_READINGS: &str = "did not receive metrics for targeted pods (pods might be unready)";

/// How far from its target a metric may be before something is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tolerances {
    up: f64,
    down: f64,
}

impl Tolerances {
    /// Those of an autoscaler with this behaviour.
    pub(super) fn of(behavior: Option<&HorizontalPodAutoscalerBehavior>) -> Self {
        let rules = |up: bool| behavior.and_then(|it| if up { it.scale_up.as_ref() } else { it.scale_down.as_ref() });
        let tolerance = |up: bool| {
            let own = rules(up).and_then(|rules| rules.tolerance.as_ref());
            own.map_or(TOLERANCE, |own| Amount::from(own).nanos() as f64 / 1e9)
        };
        Self { up: tolerance(true), down: tolerance(false) }
    }

    fn permit(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

/// What is seen of a target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight<'a> {
    /// How many replicas it should have, and how many it says it has.
    pub(super) wanted: i32,
    pub(super) present: i32,
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) tolerances: Tolerances,
    pub(super) now: Timestamp,
}

/// What a metric of Pods is to be on average.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal<'a> {
    /// So many percent of what Pods ask for.
    Utilization(i32, &'a BTreeMap<String, i64>),
    /// So much, in thousandths.
    Average(i64),
}

/// What a metric asks for, and what it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// In percent of what is asked for.
    pub(super) utilization: Option<i32>,
    /// In thousandths.
    pub(super) value: i64,
}

impl Goal<'_> {
    /// How the readings relate to the goal, and what they are.
    fn ratio(self, readings: &Readings) -> Result<(f64, Option<i32>, i64), String> {
        match self {
            Self::Average(target) => {
                let average = average(readings.values().map(|reading| i128::from(reading.value)).sum(), readings.len());
                Ok((average as f64 / target as f64, None, average))
            }
            Self::Utilization(target, requests) => {
                let known: Vec<(i64, i64)> =
                    readings.iter().filter_map(|(pod, it)| Some((it.value, *requests.get(pod)?))).collect();
                let used: i128 = known.iter().map(|(used, _)| i128::from(*used)).sum();
                let asked: i128 = known.iter().map(|(_, asked)| i128::from(*asked)).sum();
                if asked == 0 {
                    return Err("no metrics returned matched known pods".to_owned());
                }
                let percent = clamp((used * 100 / asked) as f64);
                Ok((f64::from(percent) / f64::from(target), Some(percent), average(used, known.len())))
            }
        }
    }

    /// What a Pod is taken to use of which nothing is known, when there seem to be too many.
    fn caution(self, pod: &str) -> i64 {
        match self {
            Self::Average(target) => target,
            Self::Utilization(target, requests) => {
                requests.get(pod).copied().unwrap_or_default().saturating_mul(i64::from(target.max(100))) / 100
            }
        }
    }
}

/// What readings of Pods ask for; `resource` is what they are of, if they are of a resource.
///
/// # Errors
/// If they say nothing of the Pods.
pub(super) fn of_pods(
    sight: &Sight<'_>,
    goal: Goal<'_>,
    mut readings: Readings,
    resource: Option<&str>,
) -> Result<Proposal, String> {
    if sight.pods.is_empty() {
        return Err(NO_PODS.to_owned());
    }
    let groups = group(sight.pods, &readings, resource, sight.now);
    readings.retain(|pod, _| !groups.ignored.contains(pod) && !groups.unready.contains(pod));
    if readings.is_empty() {
        return Err(NO_READINGS.to_owned());
    }
    let (ratio, utilization, value) = goal.ratio(&readings)?;
    let propose = |replicas| Ok(Proposal { replicas, utilization, value });
    let waits_for_unready = !groups.unready.is_empty() && ratio > 1.0;
    if !waits_for_unready && groups.missing.is_empty() {
        let permitted = sight.tolerances.permit(ratio);
        return propose(if permitted { sight.wanted } else { ceiling(ratio * groups.ready as f64) });
    }
    assume(&mut readings, &groups, goal, ratio);
    let (assumed, _, _) = goal.ratio(&readings)?;
    let turns = (ratio < 1.0 && assumed > 1.0) || (ratio > 1.0 && assumed < 1.0);
    if sight.tolerances.permit(assumed) || turns {
        return propose(sight.wanted);
    }
    let replicas = ceiling(assumed * readings.len() as f64);
    let turns = (assumed < 1.0 && replicas > sight.wanted) || (assumed > 1.0 && replicas < sight.wanted);
    propose(if turns { sight.wanted } else { replicas })
}

/// Adds the Pods of which nothing is known, such that they slow down whatever is about to happen.
fn assume(readings: &mut Readings, groups: &Groups, goal: Goal<'_>, ratio: f64) {
    let mut add = |pod: &String, value: i64| {
        let reading = Reading { value, at: Timestamp::MIN, window: SignedDuration::ZERO };
        readings.insert(pod.clone(), reading);
    };
    if ratio < 1.0 {
        groups.missing.iter().for_each(|pod| add(pod, goal.caution(pod)));
    }
    if ratio > 1.0 {
        groups.missing.iter().chain(&groups.unready).for_each(|pod| add(pod, 0));
    }
}

/// What one value asks for that all Pods together are to bring to `target`.
///
/// # Errors
/// If there are no Pods.
pub(super) fn of_value(sight: &Sight<'_>, usage: i64, target: i64) -> Result<Proposal, String> {
    let ratio = usage as f64 / target as f64;
    let replicas = if sight.wanted == 0 {
        ceiling(ratio)
    } else if sight.tolerances.permit(ratio) {
        sight.wanted
    } else if sight.pods.is_empty() {
        return Err(format!("unable to calculate ready pods: {NO_PODS}"));
    } else {
        ceiling(ratio * ready_count(sight.pods) as f64)
    };
    Ok(Proposal { replicas, utilization: None, value: usage })
}

/// What one value asks for of which each Pod is to have `target`.
pub(super) fn of_share(sight: &Sight<'_>, usage: i64, target: i64) -> Proposal {
    let ratio = usage as f64 / (target as f64 * f64::from(sight.present));
    let permitted = sight.tolerances.permit(ratio);
    let replicas = if permitted { sight.present } else { ceiling(usage as f64 / target as f64) };
    let value = (usage as f64 / f64::from(sight.present)).ceil() as i64;
    Proposal { replicas, utilization: None, value }
}

fn average(total: i128, count: usize) -> i64 {
    let average = total / i128::try_from(count).unwrap_or(i128::MAX).max(1);
    i64::try_from(average).unwrap_or(i64::MAX)
}

/// The whole number above, as far as a number of replicas goes.
fn ceiling(number: f64) -> i32 {
    clamp(number.ceil())
}

fn clamp(number: f64) -> i32 {
    number.clamp(0.0, f64::from(i32::MAX)) as i32
}
