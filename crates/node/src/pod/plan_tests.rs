//! What is decided for a Pod, as tables.

use serde_json::json;

use super::super::observed::Ended;
use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn pod(policy: &str, init: &[&str], containers: &[&str]) -> Pod {
    let list = |names: &[&str]| -> Vec<serde_json::Value> {
        let one = |name: &&str| match name.strip_prefix("side:") {
            Some(name) => json!({"name": name, "restartPolicy": "Always"}),
            None => json!({"name": name}),
        };
        names.iter().map(one).collect()
    };
    serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {"restartPolicy": policy, "initContainers": list(init), "containers": list(containers)}
    }))
    .unwrap()
}

fn ended(code: i32, crashes: u32) -> Observation {
    let ended = Ended { code, reason: String::new(), message: None, started: Some(NOW), finished: NOW };
    Observation { state: State::Ended(ended), crashes, ..Observation::default() }
}

fn running() -> Observation {
    Observation { state: State::Running { since: NOW }, started: true, ..Observation::default() }
}

fn observed(containers: &[(&str, Observation)]) -> Observed {
    let containers = containers.iter().map(|(name, observation)| ((*name).to_owned(), observation.clone()));
    Observed { prepared: true, containers: containers.collect(), ..Observed::default() }
}

#[track_caller]
fn check(pod: &Pod, observed: &Observed, phase_expected: Phase, expect: &[&str]) {
    let text = |action: &Action| match action {
        Action::Start(name) => format!("start {name}"),
        Action::Stop(name) => format!("stop {name}"),
        other => format!("{other:?}").to_lowercase(),
    };
    let actions: Vec<String> = plan(pod, observed, NOW).actions.iter().map(text).collect();
    assert_eq!(actions, expect);
    assert_eq!(phase(pod, observed), phase_expected);
}

#[test]
fn a_new_pod_is_prepared_then_all_containers_start() {
    let pod = pod("Always", &[], &["a", "b"]);
    check(&pod, &Observed::default(), Phase::Pending, &["prepare"]);
    check(&pod, &observed(&[]), Phase::Pending, &["start a", "start b"]);
    check(&pod, &observed(&[("a", running())]), Phase::Pending, &["start b"]);
    check(&pod, &observed(&[("a", running()), ("b", running())]), Phase::Running, &[]);
}

#[test]
fn ephemeral_containers_run_once_beside_the_others() {
    let pod: Pod = serde_json::from_value(serde_json::json!({"spec": {"containers": [{"name": "c"}],
        "ephemeralContainers": [{"name": "e"}]}}))
    .unwrap();
    let now = Timestamp::UNIX_EPOCH;
    let mut observed = Observed { prepared: true, ..Observed::default() };
    let starts = |observed: &Observed| -> Vec<String> {
        let actions = plan(&pod, observed, now).actions.into_iter();
        actions.filter_map(|action| if let Action::Start(name) = action { Some(name) } else { None }).collect()
    };
    assert_eq!(starts(&observed), ["c", "e"]);
    let ended = Ended { code: 1, reason: String::new(), message: None, started: None, finished: now };
    observed.containers.entry("e".to_owned()).or_default().end(ended);
    assert_eq!(starts(&observed), ["c"]);
}

#[test]
fn init_containers_run_one_after_the_other() {
    let pod = pod("Always", &["i", "j"], &["a"]);
    check(&pod, &observed(&[]), Phase::Pending, &["start i"]);
    check(&pod, &observed(&[("i", running())]), Phase::Pending, &[]);
    check(&pod, &observed(&[("i", ended(0, 1))]), Phase::Pending, &["start j"]);
    check(&pod, &observed(&[("i", ended(0, 1)), ("j", ended(0, 1))]), Phase::Pending, &["start a"]);
    check(&pod, &observed(&[("i", ended(1, 1))]), Phase::Pending, &["start i"]);
}

#[test]
fn a_failed_init_container_fails_a_pod_that_never_restarts() {
    check(&pod("Never", &["i"], &["a"]), &observed(&[("i", ended(1, 1))]), Phase::Failed, &[]);
}

#[test]
fn a_sidecar_holds_up_the_rest_only_until_it_has_started() {
    let pod = pod("Never", &["side:s"], &["a"]);
    let starting = Observation { started: false, ..running() };
    check(&pod, &observed(&[("s", starting)]), Phase::Pending, &[]);
    check(&pod, &observed(&[("s", running())]), Phase::Pending, &["start a"]);
    check(&pod, &observed(&[("s", ended(1, 1)), ("a", running())]), Phase::Running, &["start s"]);
    check(&pod, &observed(&[("s", running()), ("a", ended(0, 1))]), Phase::Succeeded, &["stop s"]);
}

#[test]
fn restart_policies() {
    let one = |policy: &str| pod(policy, &[], &["a"]);
    check(&one("Always"), &observed(&[("a", ended(0, 1))]), Phase::Running, &["start a"]);
    check(&one("OnFailure"), &observed(&[("a", ended(1, 1))]), Phase::Running, &["start a"]);
    check(&one("OnFailure"), &observed(&[("a", ended(0, 1))]), Phase::Succeeded, &[]);
    check(&one("Never"), &observed(&[("a", ended(1, 1))]), Phase::Failed, &[]);
    check(&one("Never"), &observed(&[("a", ended(0, 1))]), Phase::Succeeded, &[]);
}

#[test]
fn a_second_crash_waits() {
    let pod = pod("Always", &[], &["a"]);
    let observed = observed(&[("a", ended(1, 2))]);
    check(&pod, &observed, Phase::Running, &[]);
    assert_eq!(plan(&pod, &observed, NOW).wake, Some(NOW + SignedDuration::from_secs(10)));
    let later = plan(&pod, &observed, NOW + SignedDuration::from_secs(10));
    assert_eq!(later.actions, [Action::Start("a".to_owned())]);
}

#[test]
fn a_deleted_pod_stops_then_goes() {
    let mut pod = pod("Always", &[], &["a", "b"]);
    pod.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW));
    let stopping = Observation { state: State::Stopping { since: NOW }, ..running() };
    check(&pod, &observed(&[("a", running()), ("b", ended(0, 1))]), Phase::Running, &["stop a"]);
    check(&pod, &observed(&[("a", stopping), ("b", ended(0, 1))]), Phase::Running, &[]);
    check(&pod, &observed(&[("a", ended(0, 1)), ("b", ended(0, 1))]), Phase::Running, &["remove"]);
    check(&pod, &Observed::default(), Phase::Pending, &["remove"]);
}

#[test]
fn a_pod_past_its_deadline_expires() {
    let mut pod = pod("Always", &[], &["a"]);
    pod.spec.as_mut().unwrap().active_deadline_seconds = Some(5);
    pod.status = serde_json::from_value(json!({"startTime": "1970-01-01T00:00:00Z"})).unwrap();
    let observed = observed(&[("a", running())]);
    assert_eq!(plan(&pod, &observed, NOW).wake, Some(NOW + SignedDuration::from_secs(5)));
    assert_eq!(plan(&pod, &observed, NOW + SignedDuration::from_secs(5)).actions, [Action::Expire]);
}

#[test]
fn containers_beside_the_others_end_after_them_the_last_one_first() {
    let mut pod = pod("Always", &["side:s", "side:a"], &["m"]);
    pod.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW));
    let stopping = || Observation { state: State::Stopping { since: NOW }, ..running() };
    let all = |m, a, s| observed(&[("m", m), ("a", a), ("s", s)]);
    check(&pod, &all(running(), running(), running()), Phase::Running, &["stop m"]);
    check(&pod, &all(stopping(), running(), running()), Phase::Running, &[]);
    check(&pod, &all(ended(0, 1), running(), running()), Phase::Running, &["stop a"]);
    check(&pod, &all(ended(0, 1), stopping(), running()), Phase::Running, &[]);
    check(&pod, &all(ended(0, 1), ended(0, 1), running()), Phase::Running, &["stop s"]);
    check(&pod, &all(ended(0, 1), ended(0, 1), ended(0, 1)), Phase::Running, &["remove"]);
}
