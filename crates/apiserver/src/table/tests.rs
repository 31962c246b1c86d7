//! Rows as kubectl prints them.

use serde_json::{Value, json};

use super::*;

fn options() -> TableOptions {
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    TableOptions { include: IncludeObject::None, version: TableVersion::V1, now }
}

fn check(group: &str, resource: &str, mut object: Value, expected: Value) {
    object["metadata"] = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    object["metadata"]["name"] = "x".into();
    object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    let tabler = Tabler::builtin(group, resource);
    let table = tabler.table(&[object], &json!({"resourceVersion": "7"}), options());
    assert_eq!(table["rows"][0]["cells"], expected, "{resource}");
    let columns = table["columnDefinitions"].as_array().unwrap();
    assert_eq!(columns.len(), expected.as_array().unwrap().len(), "{resource}: a cell for every column");
    assert_eq!(table["metadata"], json!({"resourceVersion": "7"}));
}

#[test]
fn where_there_is_nothing_kinds_without_columns_have_no_rows() {
    let rows = |group: &str, resource: &str| Tabler::builtin(group, resource).rows(&[], options())["rows"].take();
    assert_eq!(rows("rbac.authorization.k8s.io", "clusterroles"), Value::Null);
    assert_eq!(rows("", "pods"), json!([]));
    assert_eq!(Tabler::custom(&[]).rows(&[], options())["rows"], json!([]));
}

#[test]
fn pods_sum_up_their_containers() {
    let running = json!({"ready": true, "restartCount": 0, "state": {"running": {}}});
    let check = |spec: Value, status: Value, metadata: Value, expected: [&str; 3]| {
        let object = json!({"metadata": metadata, "spec": spec, "status": status});
        let none = "<none>";
        check("", "pods", object, json!(["x", expected[0], expected[1], expected[2], "60m", none, none, none, none]));
    };
    let one = json!({"containers": [{"name": "a"}]});
    check(one.clone(), json!({"phase": "Pending"}), json!({}), ["0/1", "Pending", "0"]);
    check(one.clone(), json!({"phase": "Running", "containerStatuses": [running]}), json!({}), ["1/1", "Running", "0"]);
    let crashed = json!({
        "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"finishedAt": "2026-01-01T00:55:00Z"}},
    });
    check(
        one.clone(),
        json!({"phase": "Running", "containerStatuses": [crashed]}),
        json!({}),
        ["0/1", "CrashLoopBackOff", "3 (5m ago)"],
    );
    let deleting = json!({"deletionTimestamp": "2026-01-01T00:59:00Z"});
    check(one.clone(), json!({"phase": "Running"}), deleting, ["0/1", "Terminating", "0"]);
    let done = json!({"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}]});
    check(one, done, json!({}), ["0/1", "Completed", "0"]);
    let init = json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}, {"name": "j"}]});
    let status = json!({"phase": "Pending", "initContainerStatuses": [
        {"name": "i", "state": {"terminated": {"exitCode": 0}}}, {"name": "j", "state": {"running": {}}},
    ]});
    check(init, status, json!({}), ["0/1", "Init:1/2", "0"]);
}

#[test]
fn workloads_show_their_replicas() {
    let template = json!({"spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "j:2"}]}});
    let selector = json!({"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "t", "operator": "In", "values": ["b", "a"]}]});
    check(
        "apps",
        "deployments",
        json!({"spec": {"replicas": 3, "template": template, "selector": selector},
               "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2}}),
        json!(["x", "2/3", 3, 2, "60m", "a,b", "i:1,j:2", "app=x,t in (a,b)"]),
    );
    check("apps", "replicasets", json!({"spec": {"replicas": 1}}), json!(["x", 1, 0, 0, "60m", "", "", "<none>"]));
    check(
        "batch",
        "jobs",
        json!({"spec": {"completions": 2}, "status": {"succeeded": 1, "startTime": "2026-01-01T00:59:00Z"}}),
        json!(["x", "Running", "1/2", "60s", "60m", "", "", "<none>"]),
    );
    check(
        "batch",
        "cronjobs",
        json!({"spec": {"schedule": "* * * * *", "suspend": false}}),
        json!(["x", "* * * * *", "<none>", "False", 0, "<none>", "60m", "", "", "<none>"]),
    );
}

#[test]
fn services_and_endpoints_show_addresses() {
    check(
        "",
        "services",
        json!({"spec": {"type": "ClusterIP", "clusterIPs": ["127.70.0.9"], "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "nodePort": 30053}], "selector": {"b": "2", "a": "1"}}}),
        json!(["x", "ClusterIP", "127.70.0.9", "<none>", "80/TCP,53:30053/UDP", "60m", "a=1,b=2"]),
    );
    let address = |ip: &str| json!({"ip": ip});
    check(
        "",
        "endpoints",
        json!({"subsets": [{"addresses": [address("1.1.1.1"), address("1.1.1.2"), address("1.1.1.3"), address("1.1.1.4")], "ports": [{"port": 80}]}]}),
        json!(["x", "1.1.1.1:80,1.1.1.2:80,1.1.1.3:80 + 1 more...", "60m"]),
    );
    check("", "endpoints", json!({}), json!(["x", "<none>", "60m"]));
    check(
        "discovery.k8s.io",
        "endpointslices",
        json!({"addressType": "IPv4"}),
        json!(["x", "IPv4", "<unset>", "<unset>", "60m"]),
    );
}

#[test]
fn nodes_events_and_the_rest() {
    check(
        "",
        "nodes",
        json!({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}, "spec": {"unschedulable": true},
               "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.36.3", "kernelVersion": "6.1", "architecture": "amd64"},
                          "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}}),
        json!([
            "x",
            "Ready,SchedulingDisabled",
            "control-plane",
            "60m",
            "v1.36.3",
            "127.0.0.1",
            "<none>",
            "<unknown>",
            "6.1 (amd64)",
            "<unknown>"
        ]),
    );
    check(
        "",
        "events",
        json!({"type": "Normal", "reason": "Started", "message": " started \n", "involvedObject": {"kind": "Pod", "name": "p"},
               "firstTimestamp": "2026-01-01T00:50:00Z", "lastTimestamp": "2026-01-01T00:59:30Z", "count": 2, "source": {"component": "kubelet", "host": "n"}}),
        json!(["30s", "Normal", "Started", "pod/p", "", "kubelet, n", "started", "10m", 2, "x"]),
    );
    check("rbac.authorization.k8s.io", "roles", json!({}), json!(["x", "2026-01-01T00:00:00Z"]));
    check("", "secrets", json!({"type": "Opaque", "data": {"a": "", "b": ""}}), json!(["x", "Opaque", 2, "60m"]));
    check(
        "rbac.authorization.k8s.io",
        "rolebindings",
        json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "namespace": "n", "name": "s"}]}),
        json!(["x", "Role/r", "60m", "u", "", "n/s"]),
    );
    check(
        "",
        "persistentvolumeclaims",
        json!({"spec": {"storageClassName": "local"}, "status": {"phase": "Pending"}}),
        json!(["x", "Pending", "", "", "", "local", "<unset>", "60m", "<unset>"]),
    );
}

#[test]
fn custom_columns_follow_their_paths() {
    let raw = [
        json!({"name": "Size", "type": "integer", "jsonPath": ".spec.size"}),
        json!({"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status", "priority": 1}),
        json!({"name": "Nodes", "type": "string", "jsonPath": ".status.nodes"}),
        json!({"name": "Missing", "type": "string", "jsonPath": ".status.missing"}),
        json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}),
    ];
    let columns: Vec<CustomColumn> = raw.iter().map(|raw| CustomColumn::parse(raw).unwrap()).collect();
    let object = json!({
        "metadata": {"name": "m", "creationTimestamp": "2026-01-01T00:58:00Z"},
        "spec": {"size": 3}, "status": {"nodes": ["a", "b"], "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let table = Tabler::custom(&columns).table(&[object], &json!({}), options());
    assert_eq!(table["rows"][0]["cells"], json!(["m", 3, "True", "[\"a\",\"b\"]", null, "2m"]));
    assert_eq!(table["columnDefinitions"][2]["priority"], 1);
    assert_eq!(table["columnDefinitions"][0]["format"], "name");
}

#[test]
fn rows_carry_what_was_asked_for() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "resourceVersion": "5"}, "data": {"a": "b"}});
    let tabler = Tabler::builtin("", "configmaps");
    let with = |include, version| {
        let options = TableOptions { include, version, ..options() };
        tabler.rows(std::slice::from_ref(&object), options)
    };
    assert_eq!(with(IncludeObject::None, TableVersion::V1)["rows"][0]["object"], Value::Null);
    assert_eq!(with(IncludeObject::Object, TableVersion::V1)["rows"][0]["object"], object);
    let partial = with(IncludeObject::Metadata, TableVersion::V1beta1);
    assert_eq!(partial["apiVersion"], "meta.k8s.io/v1beta1");
    assert_eq!(partial["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(partial["rows"][0]["object"]["metadata"]["name"], "c");
    assert_eq!(partial["columnDefinitions"], Value::Null);
    assert_eq!(partial["metadata"]["resourceVersion"], "5");
}
