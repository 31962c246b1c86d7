//! When objects of each kind are ready, as tables.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn check<K>(object: Value, expected: &str)
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
{
    let object: K = serde_json::from_value(object).unwrap();
    let text = match Readiness::of(&object) {
        Readiness::Ready => "ready".to_owned(),
        Readiness::NotYet(why) => why,
        Readiness::Failed(why) => format!("failed: {why}"),
    };
    assert_eq!(text, expected);
}

fn generation(generation: i64, spec: Value, status: Value) -> Value {
    json!({"metadata": {"name": "n", "generation": generation}, "spec": spec, "status": status})
}

#[test]
fn a_deployment_is_ready_when_it_is_rolled_out() {
    let spec = json!({"replicas": 3, "selector": {}, "template": {}});
    let row = |status: Value, expected| check::<Deployment>(generation(2, spec.clone(), status), expected);
    row(json!({}), "its change is not taken up yet");
    row(json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3}), "its change is not taken up yet");
    row(json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1}), "1 of 3 Pods are updated");
    row(json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 3}), "1 old Pods are still there");
    let rolled = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 2});
    row(rolled, "2 of 3 Pods are ready");
    let ready = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3});
    row(ready, "ready");
    let late =
        json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"}]);
    row(json!({"observedGeneration": 2, "conditions": late}), "failed: late");
}

#[test]
fn a_stateful_set_is_ready_when_the_pods_that_are_to_be_updated_are() {
    let row = |strategy: Value, status: Value, expected| {
        let spec = json!({
            "replicas": 3, "selector": {}, "serviceName": "", "template": {}, "updateStrategy": strategy,
        });
        let mut full = json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 3});
        full.as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
        check::<StatefulSet>(generation(2, spec, full), expected);
    };
    let (rolling, moving) = (json!({"type": "RollingUpdate"}), json!({"currentRevision": "a", "updateRevision": "b"}));
    row(rolling.clone(), json!({"observedGeneration": 1}), "its change is not taken up yet");
    row(rolling.clone(), json!({"readyReplicas": 1}), "1 of 3 Pods are ready");
    row(rolling.clone(), json!({}), "ready");
    row(rolling, moving.clone(), "0 of 3 Pods are updated");
    row(json!({"type": "OnDelete"}), moving.clone(), "ready");
    let canary = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    row(canary.clone(), moving, "2 of 3 Pods are updated");
    row(canary, json!({"currentRevision": "a", "updateRevision": "b", "updatedReplicas": 1}), "ready");
}

#[test]
fn daemons_and_replicas_are_ready_when_as_many_pods_as_are_wanted() {
    let spec = json!({"selector": {}, "template": {}});
    let row = |updated: i32, available: i32, expected| {
        let status = json!({
            "observedGeneration": 1, "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberMisscheduled": 0,
            "numberReady": 2, "updatedNumberScheduled": updated, "numberAvailable": available,
        });
        check::<DaemonSet>(generation(1, spec.clone(), status), expected);
    };
    row(1, 2, "1 of 2 Pods are updated");
    row(2, 1, "1 of 2 Pods are ready");
    row(2, 2, "ready");
    let status = json!({"observedGeneration": 1, "replicas": 1, "availableReplicas": 1});
    check::<ReplicaSet>(generation(1, json!({"selector": {}}), status), "ready");
}

#[test]
fn a_job_is_ready_when_it_is_complete_and_may_fail() {
    let row = |spec: Value, status: Value, expected| check::<Job>(generation(1, spec, status), expected);
    let spec = json!({"template": {}, "completions": 2});
    row(spec.clone(), json!({"succeeded": 1}), "1 of 2 Pods are complete");
    row(json!({"template": {}, "suspend": true}), json!({}), "it is suspended");
    row(spec.clone(), json!({"conditions": [{"type": "Complete", "status": "True"}]}), "ready");
    let failed =
        json!([{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}]);
    row(spec, json!({"conditions": failed}), "failed: BackoffLimitExceeded: too often");
    check::<CronJob>(json!({"metadata": {}}), "ready");
}

#[test]
fn pods_claims_services_and_definitions_have_rules_of_their_own() {
    let status = |status: Value| json!({"metadata": {}, "spec": {"containers": []}, "status": status});
    check::<Pod>(status(json!({})), "it is Pending");
    check::<Pod>(status(json!({"phase": "Running"})), "it is Running");
    check::<Pod>(status(json!({"conditions": [{"type": "Ready", "status": "True"}]})), "ready");
    check::<Pod>(status(json!({"phase": "Succeeded"})), "ready");
    check::<Pod>(status(json!({"phase": "Failed", "message": "evicted"})), "failed: evicted");
    check::<PersistentVolumeClaim>(json!({"metadata": {}}), "it is not bound to a volume");
    check::<PersistentVolumeClaim>(json!({"metadata": {}, "status": {"phase": "Bound"}}), "ready");
    check::<PersistentVolumeClaim>(json!({"metadata": {}, "status": {"phase": "Lost"}}), "failed: its volume is lost");
    check::<Service>(json!({"metadata": {}, "spec": {}}), "it has no address");
    check::<Service>(json!({"metadata": {}, "spec": {"clusterIP": "None"}}), "ready");
    check::<Service>(json!({"metadata": {}, "spec": {"type": "ExternalName"}}), "ready");
    let balanced = json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"});
    check::<Service>(json!({"metadata": {}, "spec": balanced}), "it has no address of a load balancer");
    let address = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    check::<Service>(json!({"metadata": {}, "spec": balanced, "status": address}), "ready");
    let names = json!({"kind": "A", "plural": "as"});
    let definition = |conditions: Value| {
        let spec = json!({"group": "g", "names": names, "scope": "Namespaced", "versions": []});
        json!({"metadata": {}, "spec": spec, "status": {"conditions": conditions}})
    };
    check::<CustomResourceDefinition>(definition(json!([])), "it is not served");
    check::<CustomResourceDefinition>(definition(json!([{"type": "Established", "status": "True"}])), "ready");
    let taken = json!([{"type": "NamesAccepted", "status": "False", "message": "taken"}]);
    check::<CustomResourceDefinition>(definition(taken), "failed: taken");
}

#[test]
fn what_has_no_readiness_is_ready_unless_it_goes() {
    check::<ConfigMap>(json!({"metadata": {}}), "ready");
    check::<ConfigMap>(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), "it is being deleted");
}

#[test]
fn a_kind_of_ones_own_is_ready_when_it_says_so_of_its_present_generation() {
    let row = |status: Value, expected: &str| {
        let object = json!({"metadata": {"generation": 2}, "status": status});
        let text = match objects::custom(&object) {
            Readiness::Ready => "ready".to_owned(),
            Readiness::NotYet(why) => why,
            Readiness::Failed(why) => format!("failed: {why}"),
        };
        assert_eq!(text, expected);
    };
    row(json!(null), "it has no condition Ready");
    row(json!({"conditions": [{"type": "Ready", "status": "True"}]}), "ready");
    row(json!({"conditions": [{"type": "Ready", "status": "False", "message": "soon"}]}), "soon");
    let old = json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]});
    row(old, "its change is not taken up yet");
    let own = json!([{"type": "Ready", "status": "True", "observedGeneration": 1}]);
    row(json!({"observedGeneration": 2, "conditions": own}), "its change is not taken up yet");
    row(json!({"conditions": [{"type": "Stalled", "status": "True", "message": "no disk"}]}), "failed: no disk");
}
