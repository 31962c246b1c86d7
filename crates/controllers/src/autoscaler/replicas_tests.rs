//! The replicas that metrics ask for, as tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscalerBehavior;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::reading::{Reading, Readings};
use super::replicas::{Goal, Proposal, Sight, Tolerances, of_pods, of_share, of_value};

fn now() -> Timestamp {
    Timestamp::from_second(10_000).unwrap()
}

/// Pods by letter: r(eady), u(nready), p(ending), f(ailed), t(erminating).
fn pods(letters: &str) -> Vec<Arc<Pod>> {
    let pod = |(number, letter): (usize, char)| {
        let phase = match letter {
            'p' => "Pending",
            'f' => "Failed",
            _ => "Running",
        };
        let (ready, since) = if letter == 'u' { ("False", 9_995) } else { ("True", 100) };
        let started = if letter == 'u' { 9_990 } else { 90 };
        let second = |second: i64| Timestamp::from_second(second).unwrap().to_string();
        let object = json!({
            "metadata": {"name": number.to_string(), "deletionTimestamp": (letter == 't').then(|| second(1))},
            "status": {"phase": phase, "startTime": second(started),
                "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": second(since)}]}});
        Arc::new(serde_json::from_value(object).unwrap())
    };
    letters.chars().enumerate().map(pod).collect()
}

/// Readings of the Pods in order; a negative one is missing.
fn readings(values: &[i64]) -> Readings {
    let reading = |value: i64| Reading { value, at: now(), window: SignedDuration::from_secs(15) };
    let known = values.iter().enumerate().filter(|(_, value)| **value >= 0);
    known.map(|(number, value)| (number.to_string(), reading(*value))).collect()
}

fn sight(pods: &[Arc<Pod>], wanted: i32) -> Sight<'_> {
    Sight { wanted, present: wanted, pods, tolerances: Tolerances::of(None), now: now() }
}

/// Pods that ask for one processor each, with these uses in thousandths and a target in percent.
fn check_percent(letters: &str, uses: &[i64], target: i32, expect: Result<(i32, i32), &str>) {
    let pods = pods(letters);
    let requests: BTreeMap<String, i64> = (0..pods.len()).map(|number| (number.to_string(), 1000)).collect();
    let sight = sight(&pods, i32::try_from(pods.len()).unwrap());
    let found = of_pods(&sight, Goal::Utilization(target, &requests), readings(uses), Some("cpu"));
    let found = found.map(|it| (it.replicas, it.utilization.unwrap()));
    assert_eq!(found, expect.map_err(str::to_owned), "{letters} {uses:?} {target}");
}

#[test]
fn utilization_decides_by_the_pods_that_are_known() {
    check_percent("rrr", &[300, 500, 700], 30, Ok((5, 50)));
    check_percent("rrr", &[300, 300, 300], 30, Ok((3, 30)));
    check_percent("rrr", &[320, 320, 330], 30, Ok((3, 32)));
    check_percent("rrrr", &[100, 100, 100, 100], 50, Ok((1, 10)));
    // Not ready yet: counts as idle when there seem to be too few, and not at all else.
    check_percent("rru", &[1000, 1000, 1000], 50, Ok((4, 100)));
    check_percent("rru", &[600, 600, 600], 50, Ok((3, 60)));
    check_percent("rrp", &[100, 100, -1], 50, Ok((1, 10)));
    // Unknown: idle when there seem to be too few, as much as it asks for when there seem to be too many.
    check_percent("rrr", &[1000, 1000, -1], 50, Ok((4, 100)));
    check_percent("rrr", &[100, 100, -1], 50, Ok((3, 10)));
    check_percent("rrrr", &[100, 100, 100, -1], 70, Ok((2, 10)));
    check_percent("rrr", &[500, 500, -1], 50, Ok((3, 50)));
    // Gone or failed: not there.
    check_percent("rrtf", &[1000, 1000, 1000, 1000], 50, Ok((4, 100)));
    check_percent("u", &[1000], 50, Err("did not receive metrics for targeted pods (pods might be unready)"));
    check_percent("", &[], 50, Err("no pods returned by selector while calculating replica count"));
}

#[test]
fn averages_decide_by_the_pods_that_are_known() {
    let check = |letters: &str, values: &[i64], target: i64, expect: (i32, i64)| {
        let pods = pods(letters);
        let sight = sight(&pods, i32::try_from(pods.len()).unwrap());
        let found = of_pods(&sight, Goal::Average(target), readings(values), None).unwrap();
        assert_eq!((found.replicas, found.value), expect, "{letters} {values:?} {target}");
    };
    check("rrr", &[20_000, 10_000, 30_000], 15_000, (4, 20_000));
    check("rrr", &[12_000, 12_000, 12_000], 20_000, (2, 12_000));
    check("rrr", &[20_000, 10_000, -1], 15_000, (3, 15_000));
    check("rrrr", &[1_000, 1_000, 1_000, -1], 15_000, (2, 1_000));
    // Of what is not the processor, Pods that are not ready count too.
    check("rru", &[30_000, 30_000, 30_000], 15_000, (6, 30_000));
}

#[test]
fn single_values_decide_by_ready_pods_or_by_shares() {
    let pods = pods("rrrp");
    let proposal = |replicas, value| Proposal { replicas, utilization: None, value };
    assert_eq!(of_value(&sight(&pods, 3), 20_000, 10_000), Ok(proposal(6, 20_000)));
    assert_eq!(of_value(&sight(&pods, 3), 10_500, 10_000), Ok(proposal(3, 10_500)));
    assert!(of_value(&sight(&[], 3), 20_000, 10_000).is_err());
    assert_eq!(of_share(&sight(&pods, 3), 50_000, 10_000), proposal(5, 16_667));
    assert_eq!(of_share(&sight(&pods, 3), 31_000, 10_000), proposal(3, 10_334));
    assert_eq!(of_value(&sight(&pods, 3), i64::MAX, 1), Ok(proposal(i32::MAX, i64::MAX)));
}

#[test]
fn tolerances_can_differ_by_direction() {
    let behavior: HorizontalPodAutoscalerBehavior =
        serde_json::from_value(json!({"scaleUp": {"tolerance": "0.5"}, "scaleDown": {"tolerance": "0"}})).unwrap();
    let pods = pods("rrrr");
    let sight = Sight { tolerances: Tolerances::of(Some(&behavior)), ..sight(&pods, 4) };
    let found = |value: i64| of_pods(&sight, Goal::Average(1000), readings(&[value; 4]), None).unwrap().replicas;
    assert_eq!((found(1400), found(1600), found(990), found(700)), (4, 7, 4, 3));
}
