//! Which Pods count: those that are ready, those that are not yet, those that nothing is known of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;

use super::reading::Readings;
use crate::pods;
use crate::quantity::Amount;

/// How long after its start a Pod may use the processor to get ready.
const CPU_INITIALIZATION: SignedDuration = SignedDuration::from_mins(5);
/// How long after its start a Pod that became unready has never been ready.
const INITIAL_READINESS_DELAY: SignedDuration = SignedDuration::from_secs(30);

/// The Pods of a target by what is known of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Groups {
    /// How many count with what they use.
    pub(super) ready: usize,
    pub(super) unready: BTreeSet<String>,
    pub(super) missing: BTreeSet<String>,
    pub(super) ignored: BTreeSet<String>,
}

/// Sorts Pods; `resource` is what the readings are of, if they are of a resource.
pub(super) fn group(pods: &[Arc<Pod>], readings: &Readings, resource: Option<&str>, now: Timestamp) -> Groups {
    let mut groups = Groups::default();
    for pod in pods {
        let name = pod.name_any();
        if pods::is_terminating(pod) || pods::phase(pod) == "Failed" {
            groups.ignored.insert(name);
        } else if pods::phase(pod) == "Pending" {
            groups.unready.insert(name);
        } else if !readings.contains_key(&name) {
            groups.missing.insert(name);
        } else if resource == Some("cpu") && starts(pod, readings, now) {
            groups.unready.insert(name);
        } else {
            groups.ready += 1;
        }
    }
    groups
}

/// Whether what the Pod uses is still the work of its start.
fn starts(pod: &Pod, readings: &Readings, now: Timestamp) -> bool {
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref()).map(|time| time.0);
    let (Some(ready), Some(started)) = (pods::condition(pod, "Ready"), started) else { return true };
    let since = ready.last_transition_time.as_ref().map_or(Timestamp::MIN, |time| time.0);
    let is_unready = ready.status == "False";
    if after(started, CPU_INITIALIZATION) > now {
        let reading = &readings[&pod.name_any()];
        return is_unready || reading.at < after(since, reading.window);
    }
    is_unready && after(started, INITIAL_READINESS_DELAY) > since
}

fn after(moment: Timestamp, duration: SignedDuration) -> Timestamp {
    moment.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// How many Pods run and are ready.
pub(super) fn ready_count(pods: &[Arc<Pod>]) -> usize {
    pods.iter().filter(|pod| pods::phase(pod) == "Running" && pods::is_ready(pod)).count()
}

/// What each Pod, or one container of each, asks for of a resource, in thousandths.
///
/// # Errors
/// If one asks for nothing: there is nothing to compare its use with.
pub(super) fn requests(
    pods: &[Arc<Pod>],
    container: Option<&str>,
    resource: &str,
) -> Result<BTreeMap<String, i64>, String> {
    pods.iter().map(|pod| Ok((pod.name_any(), request(pod, container, resource)?))).collect()
}

fn request(pod: &Pod, container: Option<&str>, resource: &str) -> Result<i64, String> {
    let (name, spec) = (pod.name_any(), pod.spec.clone().unwrap_or_default());
    let of_pod = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    if let Some(requests) = of_pod.filter(|requests| container.is_none() && !requests.is_empty()) {
        let request = requests.get(resource).map(|quantity| Amount::from(quantity).millis());
        return request.ok_or_else(|| format!("missing pod-level request for {resource} in Pod {name}"));
    }
    let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
    let mut wanted =
        spec.containers.iter().chain(sidecars).filter(|it| container.is_none_or(|wanted| wanted == it.name)).peekable();
    if let Some(container) = container.filter(|_| wanted.peek().is_none()) {
        return Err(format!("container {container} not found in Pod {name}"));
    }
    let of = |it: &Container| {
        let requests = it.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let request = requests.and_then(|requests| requests.get(resource));
        let missing = || format!("missing request for {resource} in container {} of Pod {name}", it.name);
        request.map(|quantity| Amount::from(quantity).millis()).ok_or_else(missing)
    };
    wanted.map(of).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::reading::Reading;
    use super::*;

    fn pod(status: Value, containers: Value) -> Arc<Pod> {
        Arc::new(
            serde_json::from_value(
                json!({"metadata": {"name": "p"}, "spec": {"containers": containers}, "status": status}),
            )
            .unwrap(),
        )
    }

    /// Where a Pod belongs that started at second 0 and became ready, or unready, at `since`, looked at at `now`.
    fn check(ready: &str, since: i64, now: i64, expect: &str) {
        let second = |second: i64| Timestamp::from_second(second).unwrap();
        let status = json!({"phase": "Running", "startTime": second(0).to_string(), "conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": second(since).to_string()}]});
        let reading = Reading { value: 1, at: second(now), window: SignedDuration::from_secs(15) };
        let readings = Readings::from([("p".to_owned(), reading)]);
        let groups = group(&[pod(status, json!([]))], &readings, Some("cpu"), second(now));
        let group = if groups.ready == 1 { "ready" } else { "unready" };
        assert_eq!(group, expect, "{ready} since {since}, now {now}");
    }

    #[test]
    fn the_work_of_a_start_does_not_count() {
        check("True", 10, 20, "unready");
        check("True", 10, 25, "ready");
        check("False", 10, 100, "unready");
        check("False", 20, 1000, "unready");
        check("False", 40, 1000, "ready");
        check("True", 990, 1000, "ready");
    }

    #[test]
    fn pods_without_figures_are_told_from_those_that_wait() {
        let of = |status: Value| group(&[pod(status, json!([]))], &Readings::new(), None, Timestamp::UNIX_EPOCH);
        assert_eq!(of(json!({"phase": "Pending"})).unready.len(), 1);
        assert_eq!(of(json!({"phase": "Failed"})).ignored.len(), 1);
        assert_eq!(of(json!({"phase": "Running"})).missing.len(), 1);
    }

    #[test]
    fn requests_are_those_of_all_containers_or_of_one() {
        let containers = json!([{"name": "a", "resources": {"requests": {"cpu": "250m"}}},
            {"name": "b", "resources": {"requests": {"cpu": "1"}}}]);
        let pods = [pod(json!({}), containers)];
        assert_eq!(requests(&pods, None, "cpu").unwrap()["p"], 1250);
        assert_eq!(requests(&pods, Some("a"), "cpu").unwrap()["p"], 250);
        let missing = requests(&pods, None, "memory").unwrap_err();
        assert_eq!(missing, "missing request for memory in container a of Pod p");
        assert_eq!(requests(&pods, Some("c"), "cpu").unwrap_err(), "container c not found in Pod p");
    }
}
