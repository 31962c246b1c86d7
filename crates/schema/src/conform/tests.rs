//! Objects as clients send them against what the API server makes of them.

use serde_json::json;

use super::*;

const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const POD: &str = "io.k8s.api.core.v1.Pod";

#[test]
fn wrong_types_are_worded_as_go_words_them() {
    let check = |definition: &str, object: Value, expect: &str| {
        assert_eq!(conform(definition, object).unwrap_err().to_string(), expect);
    };
    check(
        DEPLOYMENT,
        json!({"spec": {"replicas": "3"}}),
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    );
    check(
        DEPLOYMENT,
        json!({"spec": {"replicas": 1.5}}),
        "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
    );
    check(
        DEPLOYMENT,
        json!({"metadata": {"labels": {"a": 1}}}),
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
    );
    check(
        DEPLOYMENT,
        json!({"spec": {"template": {"spec": {"containers": [{"name": 1}]}}}}),
        "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.name of type string",
    );
    check(
        POD,
        json!({"spec": {"containers": {"name": "a"}}}),
        "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
    );
    check(POD, json!({"spec": "x"}), "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec");
    check(
        POD,
        json!({"spec": {"volumes": [{"name": "v", "nfs": {"server": 1}}]}}),
        "json: cannot unmarshal number into Go struct field NFSVolumeSource.spec.volumes.VolumeSource.nfs.server of type string",
    );
}

#[test]
fn of_several_errors_the_one_is_told_that_go_tells() {
    let check = |definition: &str, object: Value, expect: &str| {
        assert_eq!(conform(definition, object).unwrap_err().to_string(), expect);
    };
    // The first by name, whatever the order of the fields in the struct is.
    check(
        DEPLOYMENT,
        json!({"spec": {"minReadySeconds": "1", "replicas": "3", "template": {"spec": {"containers": [{"args": [true]}]}}}}),
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.minReadySeconds of type int32",
    );
    // A type that decodes itself ends the decoding, and is told instead of what was noted before.
    check(
        POD,
        json!({"metadata": {"labels": {"a": 1}}, "spec": {"containers": [{"resources": {"limits": {"cpu": true}}}]}}),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
    check(
        "io.k8s.api.policy.v1.PodDisruptionBudget",
        json!({"spec": {"minAvailable": []}}),
        "json: cannot unmarshal array into Go struct field PodDisruptionBudgetSpec.spec.minAvailable of type int32",
    );
}

#[test]
fn bytes_may_be_numbers_or_nothing() {
    const SECRET: &str = "io.k8s.api.core.v1.Secret";
    let mut object = conform(SECRET, json!({"data": {"a": [1, 2], "b": [], "c": null, "d": "eA=="}})).unwrap().object;
    assert_eq!(object["data"], json!({"a": "AQI=", "b": "", "c": null, "d": "eA=="}));
    settle(SECRET, &mut object);
    assert_eq!(object["data"], json!({"a": "AQI=", "b": "", "c": "", "d": "eA=="}), "as it is read from the store");
    let wrong = conform(SECRET, json!({"data": {"a": 7}})).unwrap_err().to_string();
    assert_eq!(wrong, "json: cannot unmarshal number into Go struct field Secret.data of type []uint8");
}

#[test]
fn an_empty_list_is_nothing_unless_json_is_stored() {
    let check = |definition: &str, expect: Value| {
        let mut object = conform(definition, json!({"rules": [], "status": {"storedVersions": []}})).unwrap().object;
        settle(definition, &mut object);
        let found = object.get("rules").or_else(|| object.pointer("/status/storedVersions"));
        assert_eq!(found, Some(&expect), "{definition}");
    };
    check("io.k8s.api.rbac.v1.Role", Value::Null);
    check("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", json!([]));
}

#[test]
fn unknown_fields_are_named_with_their_index() {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "nonsense": 1,
        "metadata": {"name": "a", "labelz": {}},
        "spec": {"containers": [{"name": "a", "bar": true}], "volumes": [{"name": "v", "emptyDir": {"x": 1}}]}
    });
    let mut conformed = conform(POD, object).unwrap();
    conformed.unknown.sort();
    let expect = ["metadata.labelz", "nonsense", "spec.containers[0].bar", "spec.volumes[0].emptyDir.x"];
    assert_eq!(conformed.unknown, expect);
    assert_eq!(conformed.object["spec"]["volumes"][0], json!({"name": "v", "emptyDir": {}}));
}

#[test]
fn objects_take_the_form_that_go_writes() {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "creationTimestamp": null, "labels": {}},
        "spec": {"containers": [{
            "name": "a", "image": "", "command": [],
            "resources": {"limits": {"memory": "1024Mi", "cpu": 0.5}},
            "livenessProbe": {"httpGet": {"port": "http"}},
        }], "nodeName": "", "terminationGracePeriodSeconds": 0}
    });
    let expect = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{
            "name": "a",
            "resources": {"limits": {"memory": "1Gi", "cpu": "500m"}},
            "livenessProbe": {"httpGet": {"port": "http"}},
        }], "terminationGracePeriodSeconds": 0},
        "status": {}
    });
    assert_eq!(conform(POD, object).unwrap().object, expect);
}

#[test]
fn nil_lists_that_are_always_written_are_null() {
    let conformed = conform("io.k8s.api.rbac.v1.ClusterRole", json!({"metadata": {"name": "a"}})).unwrap();
    assert_eq!(conformed.object, json!({"metadata": {"name": "a"}, "rules": null}));
}

#[test]
fn times_have_their_own_precision() {
    let lease = json!({"spec": {"renewTime": "2026-01-02T03:04:05Z"}, "metadata": {"creationTimestamp": "2026-01-02T03:04:05.9+01:00"}});
    let conformed = conform("io.k8s.api.coordination.v1.Lease", lease).unwrap().object;
    assert_eq!(conformed["spec"]["renewTime"], "2026-01-02T03:04:05.000000Z");
    assert_eq!(conformed["metadata"]["creationTimestamp"], "2026-01-02T02:04:05Z");
}

#[test]
fn bytes_must_be_base64() {
    let error = conform("io.k8s.api.core.v1.Secret", json!({"data": {"a": "a b="}})).unwrap_err();
    assert_eq!(error.to_string(), "illegal base64 data at input byte 1");
}

#[test]
fn not_all_of_many_unknown_fields_are_named() {
    let many: Map<String, Value> = (0..1000).map(|number| (format!("x{number}"), Value::Null)).collect();
    let conformed = conform("io.k8s.api.core.v1.ConfigMap", Value::Object(many)).unwrap();
    assert_eq!(conformed.unknown.len(), UNKNOWN_MAX);
    assert_eq!(conformed.object, json!({"metadata": {}}));
}
