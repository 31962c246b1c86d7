//! How many replicas each ReplicaSet of a Deployment should have next.

use std::cmp::Reverse;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::revision::{DESIRED_REPLICAS, MAX_REPLICAS};
use crate::percent::{self, Round};

/// A ReplicaSet and the size it should get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) name: String,
    pub(crate) from: i32,
    pub(crate) to: i32,
}

/// The limits of a rolling update, resolved to numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) surge: i32,
    pub(crate) unavailable: i32,
}

/// The replicas that the Deployment asks for.
pub(crate) fn wanted(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// Whether all old Pods go before a new one comes.
pub(crate) fn is_recreate(deployment: &Deployment) -> bool {
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}

/// The limits of the rolling update; none for Recreate.
pub(crate) fn limits(deployment: &Deployment) -> Limits {
    let replicas = wanted(deployment);
    if is_recreate(deployment) || replicas == 0 {
        return Limits { surge: 0, unavailable: 0 };
    }
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.clone()).unwrap_or_default();
    let quarter = || IntOrString::String("25%".to_owned());
    let surge = percent::of(&rolling.max_surge.unwrap_or_else(quarter), replicas, Round::Up);
    let unavailable = percent::of(&rolling.max_unavailable.unwrap_or_else(quarter), replicas, Round::Down);
    // Both may round to zero; something has to be allowed to move.
    let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
    Limits { surge, unavailable: unavailable.min(replicas) }
}

/// The replicas that a ReplicaSet asks for.
pub(crate) fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// The available Pods of a ReplicaSet.
pub(crate) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}

/// Records on a ReplicaSet for which size of the Deployment it was scaled.
pub(crate) fn annotate(deployment: &Deployment, set: &mut ReplicaSet) {
    let replicas = wanted(deployment);
    let annotations = set.annotations_mut();
    annotations.insert(DESIRED_REPLICAS.to_owned(), replicas.to_string());
    annotations.insert(MAX_REPLICAS.to_owned(), (replicas + limits(deployment).surge).to_string());
}

/// The size of the new ReplicaSet, now `size`, among the `others`: as large as the surge permits.
pub(crate) fn new_set_replicas(deployment: &Deployment, size_now: i32, others: &[&ReplicaSet]) -> i32 {
    let wanted = wanted(deployment);
    if is_recreate(deployment) {
        return wanted;
    }
    let total = size_now + others.iter().map(|set| size(set)).sum::<i32>();
    let room = wanted + limits(deployment).surge - total;
    if room <= 0 {
        return size_now;
    }
    size_now + room.min(wanted - size_now)
}

/// The next step of a rolling update.
pub(crate) fn rolling(deployment: &Deployment, new: &ReplicaSet, old: &[&ReplicaSet]) -> Vec<Scale> {
    let wanted = wanted(deployment);
    let target = if size(new) > wanted { wanted } else { new_set_replicas(deployment, size(new), old) };
    if target != size(new) {
        return vec![to(new, target)];
    }
    let total = size(new) + old.iter().map(|set| size(set)).sum::<i32>();
    let available_min = wanted - limits(deployment).unavailable;
    let removable = total - available_min - (size(new) - available(new));
    if removable <= 0 {
        return vec![];
    }
    shrink_old(new, old, available_min, removable)
}

/// Takes Pods from the old ReplicaSets: first those that do not serve anyway, then serving ones within the limit.
fn shrink_old(new: &ReplicaSet, old: &[&ReplicaSet], available_min: i32, removable: i32) -> Vec<Scale> {
    let mut old: Vec<&ReplicaSet> = old.iter().copied().filter(|set| size(set) > 0).collect();
    old.sort_by_key(|set| (set.creation_timestamp(), set.name_any()));
    let mut sizes: Vec<i32> = old.iter().map(|set| size(set)).collect();
    let mut unhealthy_left = removable;
    for (set, size) in old.iter().zip(&mut sizes) {
        let unhealthy = (*size - available(set)).clamp(0, unhealthy_left);
        *size -= unhealthy;
        unhealthy_left -= unhealthy;
    }
    let available_total = available(new) + old.iter().map(|set| available(set)).sum::<i32>();
    let mut healthy_left = (available_total - available_min).max(0);
    for size in &mut sizes {
        let healthy = (*size).min(healthy_left);
        *size -= healthy;
        healthy_left -= healthy;
    }
    old.iter().zip(sizes).filter(|(set, target)| size(set) != *target).map(|(set, target)| to(set, target)).collect()
}

/// Sizes after the replicas of the Deployment changed, or while it is paused: the sizes keep their proportion.
pub(crate) fn proportional(deployment: &Deployment, new: Option<&ReplicaSet>, old: &[&ReplicaSet]) -> Vec<Scale> {
    let wanted = wanted(deployment);
    if let Some(only) = only_active(new, old) {
        // The annotation is put right even where the size is: it is how a resize is noticed.
        let is_right = size(only) == wanted && annotation(only, DESIRED_REPLICAS) == Some(wanted);
        return if is_right { vec![] } else { vec![to(only, wanted)] };
    }
    let active: Vec<&ReplicaSet> = old.iter().copied().chain(new).filter(|set| size(set) > 0).collect();
    if new.is_some_and(|new| is_saturated(deployment, new)) {
        let active_old = old.iter().filter(|set| size(set) > 0);
        return active_old.map(|set| to(set, 0)).collect();
    }
    if is_recreate(deployment) {
        return vec![];
    }
    let allowed = if wanted > 0 { wanted + limits(deployment).surge } else { 0 };
    let difference = allowed - active.iter().map(|set| size(set)).sum::<i32>();
    spread(deployment, active, difference)
}

fn spread(deployment: &Deployment, mut active: Vec<&ReplicaSet>, difference: i32) -> Vec<Scale> {
    // Growth favours the newer of equal sets, shrinking the older.
    active.sort_by_key(|set| set.creation_timestamp());
    if difference > 0 {
        active.reverse();
    }
    active.sort_by_key(|set| Reverse(size(set)));
    let mut added = 0;
    let mut sizes = Vec::with_capacity(active.len());
    for set in &active {
        let share = if difference == 0 { 0 } else { share(deployment, set, difference, added) };
        sizes.push(size(set) + share);
        added += share;
    }
    if let Some(first) = sizes.first_mut() {
        *first = (*first + difference - added).max(0);
    }
    // A set that keeps its size still gets the annotations of the new total, or the next event would look like another.
    active.iter().zip(sizes).map(|(set, target)| to(set, target)).collect()
}

fn share(deployment: &Deployment, set: &ReplicaSet, difference: i32, added: i32) -> i32 {
    let wanted = wanted(deployment);
    let size = size(set);
    if wanted == 0 {
        return -size;
    }
    let status_replicas = deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or(0);
    let before = annotation(set, MAX_REPLICAS).unwrap_or(status_replicas);
    if size == 0 || before <= 0 {
        return 0;
    }
    let after = f64::from(size) * f64::from(wanted + limits(deployment).surge) / f64::from(before);
    #[expect(clippy::cast_possible_truncation, reason = "replica counts are far below the limit of i32")]
    let fraction = after.round() as i32 - size;
    let left = difference - added;
    if difference > 0 { fraction.min(left) } else { fraction.max(left) }
}

/// The ReplicaSet that takes the whole size: the only active one or, if none is active, the new or the latest.
fn only_active<'a>(new: Option<&'a ReplicaSet>, old: &[&'a ReplicaSet]) -> Option<&'a ReplicaSet> {
    let all: Vec<&ReplicaSet> = old.iter().copied().chain(new).collect();
    let active: Vec<&ReplicaSet> = all.iter().copied().filter(|set| size(set) > 0).collect();
    match active.as_slice() {
        [] => new.or_else(|| old.iter().copied().max_by_key(|set| set.creation_timestamp())),
        [only] => Some(only),
        _ => None,
    }
}

/// Whether the replicas of the Deployment changed since its ReplicaSets were scaled.
pub(crate) fn was_resized(deployment: &Deployment, sets: &[&ReplicaSet]) -> bool {
    let wanted = wanted(deployment);
    sets.iter()
        .filter(|set| size(set) > 0)
        .any(|set| annotation(set, DESIRED_REPLICAS).is_some_and(|desired| desired != wanted))
}

fn is_saturated(deployment: &Deployment, new: &ReplicaSet) -> bool {
    let wanted = wanted(deployment);
    size(new) == wanted && annotation(new, DESIRED_REPLICAS) == Some(wanted) && available(new) == wanted
}

fn annotation(set: &ReplicaSet, key: &str) -> Option<i32> {
    set.annotations().get(key)?.parse().ok()
}

fn to(set: &ReplicaSet, target: i32) -> Scale {
    Scale { name: set.name_any(), from: size(set), to: target }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(replicas: i32, surge: &str, unavailable: &str) -> Deployment {
        let number = |text: &str| text.parse::<i32>().map_or_else(|_| json!(text), |number| json!(number));
        serde_json::from_value(json!({"metadata": {"name": "d"}, "spec": {
            "replicas": replicas, "selector": {}, "template": {},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": number(surge), "maxUnavailable": number(unavailable)}}}}))
        .unwrap()
    }

    /// A set `name`, created at second `name`, with its size, available Pods and the total it was scaled for.
    fn set(name: u8, size: i32, available: i32, max: i32) -> ReplicaSet {
        serde_json::from_value(json!({
            "metadata": {"name": name.to_string(), "creationTimestamp": format!("2026-01-01T00:00:0{name}Z"),
                "annotations": {MAX_REPLICAS: max.to_string(), DESIRED_REPLICAS: max.to_string()}},
            "spec": {"replicas": size, "selector": {}}, "status": {"replicas": size, "availableReplicas": available}}))
        .unwrap()
    }

    fn told(scales: &[Scale]) -> String {
        let told = scales.iter().filter(|scale| scale.from != scale.to);
        told.map(|scale| format!("{}: {}>{}", scale.name, scale.from, scale.to)).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_rolling_update_stays_within_its_limits() {
        let check = |(surge, unavailable), new: ReplicaSet, old: &[ReplicaSet], expect: &str| {
            let old: Vec<&ReplicaSet> = old.iter().collect();
            assert_eq!(told(&rolling(&deployment(10, surge, unavailable), &new, &old)), expect);
        };
        // Grow by the surge, shrink by what may be unavailable, and wait in between.
        check(("3", "2"), set(2, 0, 0, 10), &[set(1, 10, 10, 10)], "2: 0>3");
        check(("3", "2"), set(2, 3, 0, 10), &[set(1, 10, 10, 10)], "1: 10>8");
        check(("3", "2"), set(2, 3, 0, 10), &[set(1, 8, 8, 10)], "2: 3>5");
        check(("3", "2"), set(2, 5, 0, 10), &[set(1, 8, 8, 10)], "");
        check(("3", "2"), set(2, 5, 5, 10), &[set(1, 8, 8, 10)], "1: 8>3");
        check(("0", "2"), set(2, 0, 0, 10), &[set(1, 10, 10, 10)], "1: 10>8");
        check(("3", "0"), set(2, 3, 0, 10), &[set(1, 10, 10, 10)], "");
        check(("3", "0"), set(2, 3, 1, 10), &[set(1, 10, 10, 10)], "1: 10>9");
        // Old Pods that do not serve go first, and the new set never exceeds the wanted size.
        check(("0", "2"), set(2, 0, 0, 10), &[set(1, 10, 5, 10)], "1: 10>8");
        check(("3", "2"), set(2, 12, 12, 10), &[], "2: 12>10");
        check(("3", "2"), set(3, 10, 10, 10), &[set(1, 1, 1, 10), set(2, 2, 2, 10)], "1: 1>0, 2: 2>0");
    }

    #[test]
    fn a_resize_during_a_rollout_is_shared() {
        let check = |replicas, new: ReplicaSet, old: &[ReplicaSet], expect: &str| {
            let old: Vec<&ReplicaSet> = old.iter().collect();
            assert_eq!(told(&proportional(&deployment(replicas, "0", "1"), Some(&new), &old)), expect);
        };
        check(12, set(2, 10, 10, 10), &[set(1, 0, 0, 10)], "2: 10>12");
        check(20, set(2, 5, 5, 10), &[set(1, 5, 5, 10)], "2: 5>10, 1: 5>10");
        check(5, set(2, 5, 5, 10), &[set(1, 5, 5, 10)], "1: 5>2, 2: 5>3");
        check(0, set(2, 5, 5, 10), &[set(1, 5, 5, 10)], "1: 5>0, 2: 5>0");
        check(10, set(2, 10, 10, 10), &[set(1, 2, 2, 10)], "1: 2>0");
    }

    #[test]
    fn percentages_never_stop_a_rollout() {
        let check = |replicas, surge, unavailable, expect| {
            let limits = limits(&deployment(replicas, surge, unavailable));
            assert_eq!((limits.surge, limits.unavailable), expect, "{replicas} {surge} {unavailable}");
        };
        check(10, "25%", "25%", (3, 2));
        check(1, "25%", "25%", (1, 0));
        check(1, "0%", "10%", (0, 1));
        check(0, "25%", "25%", (0, 0));
    }

    #[test]
    fn a_resize_is_noticed_by_the_annotation() {
        let sets = [set(1, 3, 3, 3), set(2, 0, 0, 9)];
        let sets: Vec<&ReplicaSet> = sets.iter().collect();
        assert!(!was_resized(&deployment(3, "1", "1"), &sets));
        assert!(was_resized(&deployment(4, "1", "1"), &sets));
    }
}
