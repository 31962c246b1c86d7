//! What users write against what the API server stores.

use serde_json::{Value, json};

use super::defaults;
use crate::{builtin, conform};

fn check((group, version, kind): (&str, &str, &str), given: Value, expect: Value) {
    let kind = builtin().by_kind(group, version, kind).unwrap();
    let mut object = conform(&kind.definition, given).unwrap().object;
    defaults(kind, &mut object);
    assert_eq!(object, expect, "\n{object:#}");
    let again = object.clone();
    defaults(kind, &mut object);
    assert_eq!(object, again, "defaults are idempotent");
}

#[test]
fn a_pod_gets_its_defaults() {
    check(
        ("", "v1", "Pod"),
        json!({"metadata": {"name": "a"}, "spec": {
            "containers": [{
                "name": "a", "image": "nginx:1.27", "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
                "livenessProbe": {"httpGet": {"port": 80}, "timeoutSeconds": 5},
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
            }],
            "volumes": [{"name": "scratch"}, {"name": "config", "configMap": {"name": "c"}}, {"name": "host", "hostPath": {"path": "/"}}]
        }}),
        json!({"metadata": {"name": "a"}, "spec": {
            "containers": [{
                "name": "a", "image": "nginx:1.27", "imagePullPolicy": "IfNotPresent",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}},
                "livenessProbe": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 5,
                                  "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"
            }],
            "volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "config", "configMap": {"name": "c", "defaultMode": 420}},
                        {"name": "host", "hostPath": {"path": "/", "type": ""}}],
            "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "restartPolicy": "Always",
            "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30
        }, "status": {}}),
    );
}

#[test]
fn a_deployment_gets_its_defaults() {
    check(
        ("apps", "v1", "Deployment"),
        json!({"metadata": {"name": "a"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "nginx"}]}}
        }}),
        json!({"metadata": {"name": "a"}, "spec": {
            "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                "containers": [{"name": "a", "image": "nginx", "imagePullPolicy": "Always", "resources": {},
                                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}],
                "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
                "securityContext": {}, "terminationGracePeriodSeconds": 30
            }}
        }, "status": {}}),
    );
}

#[test]
fn a_service_gets_its_defaults() {
    check(
        ("", "v1", "Service"),
        json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}, {"port": 81, "targetPort": "http", "protocol": "UDP"}]}}),
        json!({"metadata": {"name": "a"}, "spec": {
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}, {"port": 81, "protocol": "UDP", "targetPort": "http"}],
            "sessionAffinity": "None", "type": "ClusterIP", "internalTrafficPolicy": "Cluster"
        }, "status": {"loadBalancer": {}}}),
    );
}

#[test]
fn a_stateful_set_gets_its_defaults() {
    check(
        ("apps", "v1", "StatefulSet"),
        json!({"spec": {"serviceName": "a", "selector": {}, "template": {"spec": {"containers": []}},
                        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]}}),
        json!({"metadata": {}, "spec": {
            "serviceName": "a", "selector": {}, "replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "template": {"metadata": {}, "spec": {"containers": [], "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
                "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30}},
            "volumeClaimTemplates": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data"}, "status": {"phase": "Pending"},
                "spec": {"volumeMode": "Filesystem", "resources": {"requests": {"storage": "1Gi"}}}}]
        }, "status": {"replicas": 0, "availableReplicas": 0}}),
    );
}

#[test]
fn a_cron_job_gets_its_defaults() {
    check(
        ("batch", "v1", "CronJob"),
        json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {"containers": null, "restartPolicy": "Never"}}}}}}),
        json!({"metadata": {}, "spec": {
            "schedule": "* * * * *", "concurrencyPolicy": "Allow", "suspend": false,
            "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
            "jobTemplate": {"metadata": {}, "spec": {"template": {"metadata": {}, "spec": {
                "containers": null, "dnsPolicy": "ClusterFirst", "restartPolicy": "Never", "schedulerName": "default-scheduler",
                "securityContext": {}, "terminationGracePeriodSeconds": 30}}}}
        }, "status": {}}),
    );
}

#[test]
fn a_job_gets_its_defaults() {
    let kind = builtin().by_kind("batch", "v1", "Job").unwrap();
    let mut job = json!({"metadata": {}, "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {}}}});
    defaults(kind, &mut job);
    assert_eq!(job["metadata"]["labels"], json!({"a": "b"}));
    let mut spec = job["spec"].clone();
    spec.as_object_mut().unwrap().remove("template");
    let expect = json!({"completions": 1, "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed",
                        "suspend": false, "manualSelector": false, "podReplacementPolicy": "TerminatingOrFailed"});
    assert_eq!(spec, expect);
}

#[test]
fn other_kinds_get_their_defaults() {
    check(
        ("", "v1", "Secret"),
        json!({"metadata": {"name": "a"}}),
        json!({"metadata": {"name": "a"}, "type": "Opaque"}),
    );
    check(
        ("", "v1", "Namespace"),
        json!({"metadata": {"name": "a"}}),
        json!({"metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "a"}}, "spec": {}, "status": {"phase": "Active"}}),
    );
    check(
        ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
        json!({"subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}], "roleRef": {"kind": "Role", "name": "r"}}),
        json!({"metadata": {}, "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "ServiceAccount", "name": "s"}],
               "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}}),
    );
    check(
        ("networking.k8s.io", "v1", "NetworkPolicy"),
        json!({"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}}),
        json!({"metadata": {}, "spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53, "protocol": "TCP"}]}], "policyTypes": ["Ingress", "Egress"]}}),
    );
    check(
        ("storage.k8s.io", "v1", "StorageClass"),
        json!({"provisioner": "p"}),
        json!({"metadata": {}, "provisioner": "p", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
    );
}

#[test]
fn a_custom_resource_definition_gets_its_defaults() {
    check(
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        json!({"spec": {"group": "g", "scope": "Namespaced", "names": {"plural": "caches", "kind": "Cache"},
                        "versions": [{"name": "v1", "served": true, "storage": true}]}}),
        json!({"metadata": {}, "spec": {"group": "g", "scope": "Namespaced", "conversion": {"strategy": "None"},
                        "names": {"plural": "caches", "kind": "Cache", "singular": "cache", "listKind": "CacheList"},
                        "versions": [{"name": "v1", "served": true, "storage": true}]},
               "status": {"conditions": null, "storedVersions": ["v1"], "acceptedNames": {"plural": "", "kind": ""}}}),
    );
}
