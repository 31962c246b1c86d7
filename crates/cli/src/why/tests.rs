//! Tables of facts and of what follows from them.

use serde_json::{Value, json};
use windlass::runtime::journal::{History, Replica, Run, Served, Subject, Turn};

use super::facts::{Facts, Node, Operators};
use super::finding::diagnose;
use super::show::{as_json, as_text};

const NOW: &str = "2026-01-01T01:00:00Z";

fn object(api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "generation": 1}});
    merge(&mut object, rest);
    object
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, from) => *into = from,
    }
}

fn pod(name: &str, status: Value) -> Value {
    let spec = json!({"containers": [{"name": "c", "image": "img:1", "resources": {"limits": {"memory": "64Mi"}}}], "nodeName": "n"});
    object("v1", "Pod", name, json!({"spec": spec, "status": status}))
}

fn container(state: Value, rest: Value) -> Value {
    let mut status = json!({"name": "c", "ready": false, "restartCount": 0, "state": state});
    merge(&mut status, rest);
    json!({"phase": "Pending", "containerStatuses": [status]})
}

fn event(about: &Value, reason: &str, message: &str) -> Value {
    json!({"involvedObject": {"uid": about["metadata"]["uid"], "kind": about["kind"], "name": about["metadata"]["name"]},
        "type": "Warning", "reason": reason, "message": message, "lastTimestamp": NOW})
}

fn facts(root: Value, below: Vec<Value>, events: Vec<Value>) -> Facts {
    // Each is the child of the one before it.
    let tree = below
        .into_iter()
        .rev()
        .fold(None, |child: Option<Node>, object| Some(Node { object, children: child.into_iter().collect() }));
    let tree = Node { object: root, children: tree.into_iter().collect() };
    Facts { tree, events, now: NOW.parse().unwrap(), ..Facts::default() }
}

/// The first finding begins with `says`, and its advice has `advice` in it.
fn check(facts: &Facts, says: &str, advice: &str) {
    let findings = diagnose(facts);
    let first = findings.first().unwrap_or_else(|| panic!("nothing was found; expected {says}"));
    let text = format!("{} {}", first.object, first.says);
    assert!(text.starts_with(says), "{text}\nexpected {says}");
    let given = first.advice.clone().unwrap_or_default();
    assert!(given.contains(advice), "{given}\nexpected {advice}");
}

fn one(object: Value, says: &str, advice: &str) {
    check(&facts(object, vec![], vec![]), says, advice);
}

#[test]
fn a_pod_that_does_not_run_says_why() {
    let waiting =
        |reason: &str, message: &str| container(json!({"waiting": {"reason": reason, "message": message}}), json!({}));
    one(
        pod("p", waiting("ImagePullBackOff", "not found")),
        "Pod p the image img:1 of container c cannot be had (ImagePullBackOff): not found",
        "windlass image add img:1",
    );
    one(
        pod("p", waiting("CreateContainerConfigError", "secret \"s\" not found")),
        "Pod p container c cannot be set up: secret \"s\"",
        "make the",
    );
    one(
        pod("p", waiting("RunContainerError", "no such file")),
        "Pod p container c cannot be started (RunContainerError)",
        "command",
    );
    let crash = container(
        json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        json!({"restartCount": 4, "lastState": {"terminated": {"exitCode": 3, "message": "a\nno config\n"}}}),
    );
    one(
        pod("p", crash),
        "Pod p container c ends with exit code 3, 4 restarts: no config",
        "windlass logs p -n default -c c --previous",
    );
    let memory = container(
        json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        json!({"restartCount": 1, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}),
    );
    one(
        pod("p", memory),
        "Pod p container c was ended because it used more memory than its limit of 64Mi, 1 restart",
        "limits.memory",
    );
    let scheduled = |reason: &str, message: &str| json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]});
    one(
        pod("p", scheduled("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")),
        "Pod p no node takes it: 0/1",
        "ask for less",
    );
    one(pod("p", scheduled("Unschedulable", "1 node had untolerated taint")), "Pod p no node takes it", "tolerate");
    one(pod("p", scheduled("SchedulingGated", "")), "Pod p is held back by its scheduling gates", "take them away");
    one(
        pod("p", json!({"phase": "Failed", "reason": "Evicted", "message": "low on disk"})),
        "Pod p was evicted: low on disk",
        "room",
    );
    let running = pod("p", container(json!({"running": {}}), json!({})));
    let unhealthy = event(&running, "Unhealthy", "Readiness probe failed: connection refused");
    check(
        &facts(running, vec![], vec![unhealthy]),
        "Pod p container c runs, but is not ready: Readiness probe failed",
        "windlass logs p",
    );
    let mounting = pod("p", container(json!({"waiting": {"reason": "ContainerCreating"}}), json!({})));
    let mount = event(&mounting, "FailedMount", "configmap \"x\" not found");
    check(&facts(mounting, vec![], vec![mount]), "Pod p configmap \"x\" not found", "correct its name");
}

#[test]
fn a_claim_that_is_pending_says_why() {
    let claim = |class: Option<&str>| {
        object(
            "v1",
            "PersistentVolumeClaim",
            "d",
            json!({"spec": {"storageClassName": class}, "status": {"phase": "Pending"}}),
        )
    };
    let mut unknown = facts(claim(Some("fast")), vec![], vec![]);
    unknown.classes = Some(vec!["standard".into()]);
    check(&unknown, "PersistentVolumeClaim d is pending: there is no storage class fast", "there are: standard");
    let failed = event(&claim(None), "FailedBinding", "no storage class is set");
    check(
        &facts(claim(None), vec![], vec![failed]),
        "PersistentVolumeClaim d is pending: no storage class is set",
        "mark one as the default",
    );
    let waits = event(&claim(Some("standard")), "WaitForFirstConsumer", "waiting");
    check(
        &facts(claim(Some("standard")), vec![], vec![waits]),
        "PersistentVolumeClaim d is pending until a Pod",
        "without one, nothing is wrong",
    );
    one(claim(None), "PersistentVolumeClaim d is pending, and nothing says why", "provisioner");
}

#[test]
fn refusals_name_who_refuses() {
    let set = |has: i64| {
        object(
            "apps/v1",
            "ReplicaSet",
            "rs",
            json!({"spec": {"replicas": 3}, "status": {"replicas": has, "observedGeneration": 1}}),
        )
    };
    let row = |message: &str, says: &str, advice: &str| {
        let refused = event(&set(1), "FailedCreate", message);
        check(&facts(set(1), vec![], vec![refused]), &format!("ReplicaSet rs {says}"), advice);
    };
    row(
        "pods \"a\" is forbidden: exceeded quota: small, requested: pods=1",
        "Pods are refused by a quota",
        "raise the quota",
    );
    row(
        "is forbidden: violates PodSecurity \"restricted\"",
        "Pods are refused by the policy of the namespace",
        "security context",
    );
    row("admission webhook \"w\" denied the request", "Pods are refused by a webhook", "ask who runs it");
    row(
        "failed calling webhook \"w\": connection refused",
        "Pods cannot be made because a webhook does not answer",
        "runs",
    );
    row(
        "error looking up service account a/b: serviceaccount \"b\" not found",
        "Pods cannot be made",
        "service account",
    );
    // An old refusal of a set that is complete is no longer one.
    let old = event(&set(3), "FailedCreate", "exceeded quota");
    let mut complete = set(3);
    merge(&mut complete, json!({"status": {"readyReplicas": 3}}));
    assert_eq!(diagnose(&facts(complete, vec![], vec![old])), []);
}

#[test]
fn what_cannot_go_says_who_keeps_it() {
    let deleted = |finalizer: &str, rest: Value| {
        let mut object = object(
            "v1",
            "ConfigMap",
            "m",
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [finalizer]}}),
        );
        merge(&mut object, rest);
        object
    };
    one(
        deleted("kubernetes.io/pvc-protection", json!({})),
        "ConfigMap m is deleted but kept by the finalizer kubernetes.io/pvc-protection: a Pod",
        "delete the Pods",
    );
    one(
        deleted("foregroundDeletion", json!({})),
        "ConfigMap m is deleted but kept by the finalizer foregroundDeletion",
        "below",
    );
    let fields = json!({"metadata": {"managedFields": [{"manager": "bank", "fieldsV1": {"f:metadata": {"f:finalizers": {"v:\"bank.io/vault\"": {}}}}}]}});
    one(
        deleted("bank.io/vault", fields),
        "ConfigMap m is deleted but kept by the finalizer bank.io/vault (set by bank), which nobody seems to serve",
        "kubectl patch configmap m -n default --type=json",
    );
    let blocked = json!({"status": {"conditions": [{"type": "DeletionBlocked", "status": "True", "message": "the bucket is not empty"}]}});
    one(
        deleted("windlass.dev/finalizer", blocked),
        "ConfigMap m is deleted, but the work of windlass.dev/finalizer fails: the bucket",
        "by itself",
    );
    let paused = json!({"metadata": {"annotations": {"windlass.dev/paused": "true"}}});
    let held = diagnose(&facts(deleted("windlass.dev/finalizer", paused), vec![], vec![]));
    assert_eq!(held[0].advice.as_deref(), Some("kubectl annotate configmap m windlass.dev/paused-"));
    assert!(held[1].says.contains("which nobody serves while it is paused"), "{held:?}");
    let namespace = object(
        "v1",
        "Namespace",
        "ns",
        json!({"metadata": {"deletionTimestamp": NOW}, "status": {"phase": "Terminating"}}),
    );
    let stuck = facts(namespace, vec![deleted("bank.io/vault", json!({}))], vec![]);
    let findings = diagnose(&stuck);
    assert!(
        findings[0].object == "ConfigMap m" && findings[1].says.starts_with("does not end while ConfigMap m is kept"),
        "{findings:?}"
    );
}

fn resource(status: Value) -> Value {
    object("cache.example.com/v1", "Cache", "c", json!({"status": status}))
}

fn ready(status: &str, reason: &str, message: &str) -> Value {
    json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": status, "reason": reason, "message": message}]})
}

#[test]
fn a_resource_says_what_its_operator_makes_of_it() {
    let paused = json!({"metadata": {"annotations": {"windlass.dev/paused": "true"}}, "status": ready("False", "InProgress", "0 of 1")});
    one(
        object("cache.example.com/v1", "Cache", "c", paused),
        "Cache c is paused",
        "kubectl annotate cache c windlass.dev/paused-",
    );
    let hot = json!({"observedGeneration": 1, "conditions": [{"type": "Degraded", "status": "True", "reason": "HotLoop", "message": "spec.replicas of D"}]});
    one(resource(hot), "Cache c is in a loop: spec.replicas of D", "only one of the two");
    let stalled = json!({"observedGeneration": 1, "conditions": [{"type": "Stalled", "status": "True", "reason": "Invalid", "message": "size is too large"}]});
    one(resource(stalled), "Cache c cannot get on: size is too large", "do what the message says");
    one(
        resource(ready("False", "ApplyFailed", "cannot apply Service c: exceeded quota: q")),
        "Cache c is not ready: cannot apply Service c",
        "raise the quota",
    );
    one(resource(Value::Null), "Cache c no operator has looked at it yet", "install or start it");
    let mut behind = resource(ready("True", "Settled", "ok"));
    merge(&mut behind, json!({"metadata": {"generation": 2}}));
    one(behind, "Cache c its last change (generation 2) has not been looked at", "no operator for this kind");
    assert_eq!(diagnose(&facts(resource(ready("True", "Settled", "ok")), vec![], vec![])), []);
}

#[test]
fn what_is_below_explains_what_is_above_and_the_same_of_many_is_told_once() {
    let image = |name: &str| {
        pod(name, container(json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}}), json!({})))
    };
    let root = resource(ready("False", "InProgress", "0 of 3 Pods are ready"));
    let set = object(
        "apps/v1",
        "ReplicaSet",
        "rs",
        json!({"spec": {"replicas": 3}, "status": {"replicas": 3, "observedGeneration": 1}}),
    );
    let mut facts = facts(root, vec![set, image("a")], vec![]);
    let node = |name: &str| Node { object: image(name), children: vec![] };
    facts.tree.children[0].children.extend([node("b"), node("d")]);
    let findings = diagnose(&facts);
    assert_eq!((findings[0].object.as_str(), findings[0].others), ("Pod a", 2));
    assert_eq!(findings.last().unwrap().says, "is not ready: 0 of 3 Pods are ready");
}

#[test]
fn an_operator_in_trouble_is_told_of() {
    let operator = pod(
        "op-1",
        container(
            json!({"waiting": {"reason": "CrashLoopBackOff"}}),
            json!({"restartCount": 2, "lastState": {"terminated": {"exitCode": 1}}}),
        ),
    );
    let mut crashed = facts(resource(Value::Null), vec![], vec![]);
    crashed.operators = Operators { pods: vec![operator], ..Operators::default() };
    check(&crashed, "Cache c no operator has looked at it yet", "see whether its operator runs");
    assert!(
        diagnose(&crashed)
            .iter()
            .any(|it| it.object == "Pod op-1" && it.says.starts_with("is the operator, and container c ends"))
    );

    let served = Served { controller: "cache".into(), group: "cache.example.com".into(), kind: "Cache".into() };
    let replica = Replica {
        operator: "cache-operator".into(),
        works: false,
        serves: vec![served],
        trouble: vec!["watch pods: forbidden".into()],
    };
    let mut blind = facts(resource(Value::Null), vec![], vec![]);
    blind.operators.replicas = vec![("op-1".into(), replica)];
    check(&blind, "Cache c no operator has looked at it yet", "does not work yet");
    assert!(diagnose(&blind).iter().any(|it| it.says.ends_with("is not ready: watch pods: forbidden")));
}

#[test]
fn the_text_reads_from_above_and_the_json_has_the_same() {
    let root = resource(ready("False", "InProgress", "0 of 1 Pods are ready"));
    let below =
        pod("a", container(json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}}), json!({})));
    let mut facts = facts(root, vec![below], vec![]);
    let run: Run = serde_json::from_value(json!({
        "reconcileID": "1", "started": "2026-01-01T00:59:50Z", "tookMs": 7, "turn": "waiting", "reason": "InProgress",
        "message": "0 of 1 Pods are ready", "triggers": [{"type": "object", "happened": "changed", "kind": "Pod", "name": "a"}],
        "saw": [{"kind": "Cache", "name": "c", "version": "12", "generation": 1}],
        "calls": [{"verb": "patch", "resource": "caches", "subresource": "status", "name": "c", "code": 200, "fields": ["status.nodes"]}],
    }))
    .unwrap();
    assert_eq!(run.turn, Turn::Waiting);
    let subject = Subject { kind: "Cache".into(), name: "c".into(), ..Subject::default() };
    facts.operators.history = Some(("op-1".into(), History { object: subject, running: None, runs: vec![run] }));
    facts.operators.replicas =
        vec![("op-1".into(), Replica { operator: "cache-operator".into(), works: true, ..Replica::default() })];
    let findings = diagnose(&facts);
    let expected = "\
Cache c in default is not ready: 0 of 1 Pods are ready

Why
  - Pod a: the image img:1 of container c cannot be had (ErrImagePull): no such image
    what to do: correct the image's name, or make it available (here: `windlass image add img:1`)
  - Cache c is not ready: 0 of 1 Pods are ready

Parts
  Cache c   waiting   0 of 1 Pods are ready
    Pod a   waiting   no word yet

Conditions
  Ready=False   InProgress      0 of 1 Pods are ready

Operator
  cache-operator (op-1) of Cache c
  10s ago, 7 ms
    because  Pod a changed
    saw      Cache c generation 1, version 12
    decided  to wait (InProgress): 0 of 1 Pods are ready
    did      patch caches/status c -> 200: status.nodes
  it looks again when something changes
";
    assert_eq!(as_text(&facts, &findings), expected);
    let value = as_json(&facts, &findings);
    assert_eq!((&value["ready"], &value["findings"][0]["object"]), (&json!(false), &json!("Pod a")));
    assert_eq!(value["operator"]["history"]["history"]["runs"][0]["turn"], "waiting");
}
