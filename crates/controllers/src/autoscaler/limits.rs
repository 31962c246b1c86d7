//! What becomes of the number that metrics ask for: windows, rates, and the range of the autoscaler.

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerBehavior};

use super::memory::Memory;

/// How long the highest recommendation counts, unless the autoscaler says otherwise.
const DOWN_WINDOW_SECONDS: i32 = 300;
/// Without rules of its own an autoscaler at most doubles its target at once, or brings it to this number.
const UP_FACTOR: i32 = 2;
const UP_LEAST: i32 = 4;

const WITHIN: Reason = ("DesiredWithinRange", "the desired count is within the acceptable range");
const TOO_MANY: Reason = ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FEW: Reason = ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const UP_LIMIT: Reason = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const DOWN_LIMIT: Reason =
    ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate");
const READY: Reason = ("ReadyForNewScale", "recommended size matches current size");
const UP_STABILIZED: Reason = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const DOWN_STABILIZED: Reason = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);

/// Reason and message of a condition.
pub(super) type Reason = (&'static str, &'static str);

/// What bounds an autoscaler.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    pub(super) least: i32,
    pub(super) most: i32,
    pub(super) behavior: Option<&'a HorizontalPodAutoscalerBehavior>,
}

/// What comes of a recommendation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) replicas: i32,
    /// Why the target can be scaled.
    pub(super) able: Reason,
    /// Whether a limit keeps it from what is wanted, and which.
    pub(super) is_limited: bool,
    pub(super) limited: Reason,
}

impl Limits<'_> {
    /// What comes of `wanted` for a target that has `current`; it is remembered.
    pub(super) fn apply(&self, current: i32, wanted: i32, memory: &mut Memory, now: Timestamp) -> Outcome {
        let (stable, able) = match self.behavior {
            None => stable_by_default(wanted, memory, now),
            Some(behavior) => stable(behavior, current, wanted, memory, now),
        };
        memory.recommend(wanted, now);
        let (replicas, limited) = match self.behavior {
            None => self.range(current, stable),
            Some(behavior) => self.rated(behavior, current, stable, (memory, now)),
        };
        Outcome { replicas, able, is_limited: replicas != stable, limited }
    }

    fn range(&self, current: i32, wanted: i32) -> (i32, Reason) {
        let fast = current.saturating_mul(UP_FACTOR).max(UP_LEAST);
        let (most, reason) = if self.most > fast { (fast, UP_LIMIT) } else { (self.most, TOO_MANY) };
        match wanted {
            _ if wanted < self.least => (self.least, TOO_FEW),
            _ if wanted > most => (most, reason),
            _ => (wanted, WITHIN),
        }
    }

    fn rated(
        &self,
        behavior: &HorizontalPodAutoscalerBehavior,
        current: i32,
        wanted: i32,
        (memory, now): (&Memory, Timestamp),
    ) -> (i32, Reason) {
        if wanted > current {
            let limit = Rate::up(behavior.scale_up.as_ref()).limit(current, memory, now).max(current);
            let (most, reason) = if self.most > limit { (limit, UP_LIMIT) } else { (self.most, TOO_MANY) };
            if wanted > most {
                return (most, reason);
            }
        }
        if wanted < current {
            let limit = Rate::down(behavior.scale_down.as_ref()).limit(current, memory, now).min(current);
            let (least, reason) = if self.least < limit { (limit, DOWN_LIMIT) } else { (self.least, TOO_FEW) };
            if wanted < least {
                return (least, reason);
            }
        }
        (wanted, WITHIN)
    }
}

fn stable_by_default(wanted: i32, memory: &Memory, now: Timestamp) -> (i32, Reason) {
    let stable = memory.recommended(DOWN_WINDOW_SECONDS, now).fold(wanted, i32::max);
    (stable, if stable == wanted { READY } else { DOWN_STABILIZED })
}

fn stable(
    behavior: &HorizontalPodAutoscalerBehavior,
    current: i32,
    wanted: i32,
    memory: &Memory,
    now: Timestamp,
) -> (i32, Reason) {
    let window = |rules: Option<&HPAScalingRules>, default: i32| {
        rules.and_then(|rules| rules.stabilization_window_seconds).unwrap_or(default)
    };
    let low = memory.recommended(window(behavior.scale_up.as_ref(), 0), now).fold(wanted, i32::min);
    let high =
        memory.recommended(window(behavior.scale_down.as_ref(), DOWN_WINDOW_SECONDS), now).fold(wanted, i32::max);
    // No clamp: a short window up and a long one down can make the lower bound the higher one.
    let stable = current.max(low).min(high);
    let reason = match wanted {
        _ if stable == wanted => READY,
        _ if wanted >= current => UP_STABILIZED,
        _ => DOWN_STABILIZED,
    };
    (stable, reason)
}

/// How fast a target may change in one direction.
struct Rate<'a> {
    policies: Vec<HPAScalingPolicy>,
    select: &'a str,
    is_up: bool,
}

impl<'a> Rate<'a> {
    fn up(rules: Option<&'a HPAScalingRules>) -> Self {
        Self::new(rules, true, &[("Pods", 4), ("Percent", 100)])
    }

    fn down(rules: Option<&'a HPAScalingRules>) -> Self {
        Self::new(rules, false, &[("Percent", 100)])
    }

    fn new(rules: Option<&'a HPAScalingRules>, is_up: bool, default: &[(&str, i32)]) -> Self {
        let policy = |(type_, value): &(&str, i32)| HPAScalingPolicy {
            type_: (*type_).to_owned(),
            value: *value,
            period_seconds: 15,
        };
        let policies = rules.and_then(|rules| rules.policies.clone());
        let select = rules.and_then(|rules| rules.select_policy.as_deref()).unwrap_or("Max");
        Self { policies: policies.unwrap_or_else(|| default.iter().map(policy).collect()), select, is_up }
    }

    /// The number that the target may be brought to at most, or at least.
    fn limit(&self, current: i32, memory: &Memory, now: Timestamp) -> i32 {
        let sign = if self.is_up { 1.0 } else { -1.0 };
        let proposals = self.policies.iter().map(|policy| {
            let start = f64::from(current) - f64::from(memory.growth(policy.period_seconds, now));
            let value = f64::from(policy.value);
            match policy.type_.as_str() {
                "Pods" => start + sign * value,
                _ if self.is_up => (start * (1.0 + value / 100.0)).ceil(),
                _ => (start * (1.0 - value / 100.0)).trunc(),
            }
        });
        let chosen = match (self.select, self.is_up) {
            ("Disabled", _) => return current,
            // The least change upwards is the lowest number, and downwards the highest.
            ("Min", true) | ("Max", false) => proposals.reduce(f64::min),
            _ => proposals.reduce(f64::max),
        };
        chosen.map_or(current, |chosen| chosen as i32)
    }
}
