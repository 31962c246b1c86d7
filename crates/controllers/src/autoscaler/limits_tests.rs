//! Windows, rates and ranges, as tables.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscalerBehavior;
use serde_json::{Value, json};

use super::limits::Limits;
use super::memory::Memory;

fn second(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(10_000 + second)
}

/// An autoscaler from 1 to 100 that sees these recommendations, by second; what comes of each.
fn check(behavior: Option<Value>, start: i32, course: &[(i64, i32, i32, &str)]) {
    let behavior: Option<HorizontalPodAutoscalerBehavior> =
        behavior.map(|behavior| serde_json::from_value(behavior).unwrap());
    let limits = Limits { least: 1, most: 100, behavior: behavior.as_ref() };
    let (mut memory, mut current) = (Memory::default(), start);
    memory.begin(current, second(0));
    for (at, wanted, expect, reason) in course {
        let outcome = limits.apply(current, *wanted, &mut memory, second(*at));
        let shown = if outcome.is_limited { outcome.limited.0 } else { outcome.able.0 };
        assert_eq!((outcome.replicas, shown), (*expect, *reason), "{behavior:?} second {at}");
        if outcome.replicas != current {
            memory.change(outcome.replicas - current, second(*at));
            current = outcome.replicas;
        }
    }
}

#[test]
fn without_rules_up_is_quick_and_down_takes_five_minutes() {
    check(
        None,
        2,
        &[
            (15, 3, 3, "ReadyForNewScale"),
            (30, 50, 6, "ScaleUpLimit"),
            (45, 50, 12, "ScaleUpLimit"),
            (60, 1, 24, "ScaleUpLimit"),
            (300, 1, 48, "ScaleUpLimit"),
            (330, 1, 50, "ScaleDownStabilized"),
            (346, 1, 1, "ReadyForNewScale"),
            (360, 0, 1, "ScaleDownStabilized"),
            (375, 500, 4, "ScaleUpLimit"),
        ],
    );
    check(None, 80, &[(15, 500, 100, "TooManyReplicas")]);
    check(None, 3, &[(400, 0, 1, "TooFewReplicas")]);
}

#[test]
fn windows_of_zero_follow_at_once() {
    let behavior =
        json!({"scaleUp": {"stabilizationWindowSeconds": 0}, "scaleDown": {"stabilizationWindowSeconds": 0}});
    check(
        Some(behavior),
        1,
        &[
            (15, 3, 3, "ReadyForNewScale"),
            (30, 1, 1, "ReadyForNewScale"),
            (45, 0, 1, "TooFewReplicas"),
            (60, 10, 5, "ScaleUpLimit"),
            (75, 10, 10, "ReadyForNewScale"),
        ],
    );
}

#[test]
fn a_window_up_takes_the_lowest_and_one_down_the_highest() {
    let behavior =
        json!({"scaleUp": {"stabilizationWindowSeconds": 60}, "scaleDown": {"stabilizationWindowSeconds": 60}});
    check(
        Some(behavior),
        5,
        &[
            (15, 8, 5, "ScaleUpStabilized"),
            (60, 8, 8, "ReadyForNewScale"),
            (90, 2, 8, "ScaleDownStabilized"),
            (121, 2, 2, "ReadyForNewScale"),
        ],
    );
}

#[test]
fn policies_limit_the_rate_by_period() {
    let down = json!({"scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Min",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}, {"type": "Percent", "value": 10, "periodSeconds": 60}]}});
    check(
        Some(down),
        80,
        &[
            (15, 10, 76, "ScaleDownLimit"),
            (30, 10, 76, "ScaleDownLimit"),
            (76, 10, 72, "ScaleDownLimit"),
            (137, 10, 68, "ScaleDownLimit"),
        ],
    );
    let up = json!({"scaleUp": {"selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}, {"type": "Percent", "value": 50, "periodSeconds": 30}]}});
    check(Some(up), 3, &[(15, 50, 5, "ScaleUpLimit"), (30, 50, 5, "ScaleUpLimit"), (46, 50, 8, "ScaleUpLimit")]);
    let off = json!({"scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Disabled"}});
    check(Some(off), 9, &[(15, 1, 9, "ScaleDownLimit"), (30, 10, 10, "ReadyForNewScale")]);
}
