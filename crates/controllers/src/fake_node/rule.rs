//! What a container would do if it ran: told by annotations of its Pod, else guessed from image and command.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;

use super::script;
use super::usage::Usage;
use crate::owners;
use crate::quantity::Amount;

/// What the annotations begin with. `….NAME` at their end makes one hold for the container NAME only.
const PREFIX: &str = "windlass.dev/fake-";

/// Words in the names of images whose programs serve until they are stopped, if nothing else is to be run.
const SERVERS: [&str; 13] = [
    "pause",
    "agnhost",
    "nginx",
    "httpd",
    "redis",
    "memcached",
    "postgres",
    "mysql",
    "mariadb",
    "mongo",
    "kafka",
    "rabbitmq",
    "etcd",
];

/// Words in the names of images that nobody means to exist.
const ABSENT: [&str; 3] = ["non-existent", "nonexistent", "does-not-exist"];

/// A word in the names of images whose programs end as soon as they are started, and fail.
const BROKEN: &str = "exits-at-once";

/// What becomes of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rule {
    /// How long it takes to start.
    pub(super) start: SignedDuration,
    /// How long after its start it is ready; `None` for never.
    pub(super) ready: Option<SignedDuration>,
    /// When and how it ends; `None` if it runs until it is stopped.
    pub(super) end: Option<End>,
    /// Why it never starts.
    pub(super) waiting: Option<String>,
    /// What it uses; `None` if nobody can tell.
    pub(super) usage: Option<Usage>,
}

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// How long it runs before.
    pub(super) after: SignedDuration,
    pub(super) exit_code: i32,
}

/// An annotation that says nothing of use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("annotation {key} is {value:?}; it takes {wanted}")]
pub(super) struct RuleError {
    key: String,
    value: String,
    wanted: &'static str,
}

/// The rule for a container of a Pod.
///
/// # Errors
/// If an annotation cannot be understood.
pub(super) fn of(pod: &Pod, container: &Container) -> Result<Rule, RuleError> {
    let seconds =
        |word| number(pod, container, word, "a number of seconds").map(|it| it.map(SignedDuration::from_secs));
    let (run, code) = (seconds("run-seconds")?, number(pod, container, "exit-code", "an exit code")?);
    let end = match (run, code) {
        (None, None) if is_named(container, &[BROKEN]) => Some(End { after: SignedDuration::ZERO, exit_code: 1 }),
        (None, None) => guess(pod, container),
        (run, code) => Some(End { after: run.unwrap_or_default(), exit_code: code.unwrap_or(0) as i32 }),
    };
    let ready = match annotation(pod, container, "ready-seconds") {
        Some((_, "never")) => None,
        _ => Some(seconds("ready-seconds")?.unwrap_or_default()),
    };
    let waiting = annotation(pod, container, "waiting").map(|(_, reason)| reason.to_owned());
    let waiting = waiting.or_else(|| is_named(container, &ABSENT).then(|| "ImagePullBackOff".to_owned()));
    let usage = usage(pod, container)?;
    Ok(Rule { start: seconds("start-seconds")?.unwrap_or_default(), ready, end, waiting, usage })
}

/// What the container is said to use, which is nothing unless something is said; `none` makes it unknown.
fn usage(pod: &Pod, container: &Container) -> Result<Option<Usage>, RuleError> {
    let mut amounts = [Amount::default(); 2];
    for (word, amount) in ["cpu", "memory"].into_iter().zip(&mut amounts) {
        let Some((key, value)) = annotation(pod, container, word) else { continue };
        if value == "none" {
            return Ok(None);
        }
        let wanted = "a quantity, or none";
        *amount = Amount::parse(value).ok_or_else(|| RuleError { key, value: value.to_owned(), wanted })?;
    }
    let [cpu, memory] = amounts;
    Ok(Some(Usage { cpu, memory }))
}

/// How long a Pod takes to stop.
///
/// # Errors
/// If the annotation cannot be understood.
pub(super) fn stop(pod: &Pod) -> Result<SignedDuration, RuleError> {
    let seconds = number(pod, &Container::default(), "stop-seconds", "a number of seconds")?;
    Ok(SignedDuration::from_secs(seconds.unwrap_or(0)))
}

/// Scripts that can be followed end as they say. Of the others, those of Jobs are taken to do their work at once, and
/// everything else to serve.
fn guess(pod: &Pod, container: &Container) -> Option<End> {
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    if !matches!(policy, Some("Never" | "OnFailure")) {
        return None;
    }
    let words: Vec<&str> = container.command.iter().chain(&container.args).flatten().map(String::as_str).collect();
    match script::follow(&words) {
        Some(script::Course::Ends(end)) => return Some(end),
        Some(script::Course::Serves) => return None,
        None => {}
    }
    let is_server = container.command.is_none() && SERVERS.iter().any(|word| image(container).contains(word));
    let of_job = owners::controller(&pod.metadata).is_some_and(|owner| owner.kind == "Job");
    (of_job && !is_server).then_some(End { after: SignedDuration::ZERO, exit_code: 0 })
}

/// Whether the image says one of these words of itself.
fn is_named(container: &Container, words: &[&str]) -> bool {
    container.image.as_deref().is_some_and(|image| words.iter().any(|word| image.contains(word)))
}

/// The last part of the image's name.
fn image(container: &Container) -> &str {
    let image = container.image.as_deref().unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or_default();
    name.split([':', '@']).next().unwrap_or_default()
}

fn number(pod: &Pod, container: &Container, word: &str, wanted: &'static str) -> Result<Option<i64>, RuleError> {
    let Some((key, value)) = annotation(pod, container, word) else { return Ok(None) };
    let number: Option<u32> = value.parse().ok().filter(|number| i32::try_from(*number).is_ok());
    match number {
        Some(number) => Ok(Some(number.into())),
        None => Err(RuleError { key, value: value.to_owned(), wanted }),
    }
}

fn annotation<'a>(pod: &'a Pod, container: &Container, word: &str) -> Option<(String, &'a str)> {
    let keys = [format!("{PREFIX}{word}.{}", container.name), format!("{PREFIX}{word}")];
    keys.into_iter().find_map(|key| pod.annotations().get(&key).map(|value| (key, value.as_str())))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(kind: &str, policy: &str, annotations: Value, container: Value) -> Pod {
        let mut container = container;
        container["name"] = json!("c");
        serde_json::from_value(json!({
            "metadata": {"name": "p", "annotations": annotations, "ownerReferences": [
                {"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": true}]},
            "spec": {"restartPolicy": policy, "containers": [container]},
        }))
        .unwrap()
    }

    fn rule(pod: &Pod) -> Result<Rule, RuleError> {
        of(pod, &pod.spec.as_ref().unwrap().containers[0])
    }

    #[test]
    fn pods_of_jobs_end_unless_they_would_not() {
        let check = |container: Value, expect: Option<(i64, i32)>| {
            let end = rule(&pod("Job", "Never", json!({}), container.clone())).unwrap().end;
            assert_eq!(end.map(|end| (end.after.as_secs(), end.exit_code)), expect, "{container}");
        };
        check(json!({"image": "worker"}), Some((0, 0)));
        check(json!({"command": ["/bin/true"]}), Some((0, 0)));
        check(json!({"command": ["sleep", "300"]}), Some((300, 0)));
        check(json!({"command": ["sh", "-c", "sleep 5s; exit 3"]}), Some((5, 3)));
        check(json!({"image": "registry.k8s.io/pause:3.10"}), None);
        check(json!({"image": "registry.k8s.io/e2e-test-images/agnhost:2.63.0", "args": ["pause"]}), None);
        check(json!({"image": "nginx"}), None);
        check(json!({"image": "nginx", "command": ["nginx", "-t"]}), Some((0, 0)));
    }

    #[test]
    fn other_pods_run_unless_they_are_told_to_end() {
        let end = |policy: &str, annotations: Value, command: Value| {
            let end = rule(&pod("ReplicaSet", policy, annotations, json!({"command": command}))).unwrap().end;
            end.map(|end| (end.after.as_secs(), end.exit_code))
        };
        assert_eq!(end("Always", json!({}), json!(["sleep", "5"])), None);
        assert_eq!(end("Never", json!({}), json!(["sleep", "5"])), Some((5, 0)));
        assert_eq!(end("Never", json!({}), json!(["server"])), None);
        assert_eq!(end("Always", json!({"windlass.dev/fake-exit-code": "2"}), json!([])), Some((0, 2)));
        let both = json!({"windlass.dev/fake-run-seconds": "7", "windlass.dev/fake-exit-code.c": "9",
            "windlass.dev/fake-exit-code": "1"});
        assert_eq!(end("Always", both, json!([])), Some((7, 9)));
    }

    #[test]
    fn annotations_are_checked() {
        let with = |key: &str, value: &str| rule(&pod("Job", "Never", json!({ key: value }), json!({})));
        assert_eq!(with("windlass.dev/fake-ready-seconds", "never").unwrap().ready, None);
        assert_eq!(with("windlass.dev/fake-waiting", "ErrImagePull").unwrap().waiting.as_deref(), Some("ErrImagePull"));
        let absent = rule(&pod("Job", "Never", json!({}), json!({"image": "foo:non-existent"}))).unwrap();
        assert_eq!(absent.waiting.as_deref(), Some("ImagePullBackOff"));
        let broken = rule(&pod("ReplicaSet", "Always", json!({}), json!({"image": "foo:exits-at-once"}))).unwrap();
        assert_eq!(broken.end.map(|end| end.exit_code), Some(1));
        let usage = with("windlass.dev/fake-cpu", "250m").unwrap().usage.unwrap();
        assert_eq!((usage.cpu, usage.memory), (Amount::parse("0.25").unwrap(), Amount::default()));
        assert_eq!(with("windlass.dev/fake-memory", "none").unwrap().usage, None);
        assert!(with("windlass.dev/fake-cpu", "much").is_err());
        let error = with("windlass.dev/fake-run-seconds", "-1").unwrap_err().to_string();
        assert_eq!(error, "annotation windlass.dev/fake-run-seconds is \"-1\"; it takes a number of seconds");
    }
}
