//! What is wrong with Pods, and what is said of it.

use serde_json::{Value, json};

use super::tests::{DEPLOYMENT, POD, check, deployment, pod};

/// A Pod with this in its spec, and what is said of it, without `spec.` ahead.
fn spec(part: Value, expect: &[&str]) {
    let mut whole = json!({"containers": [{"name": "a", "image": "a"}]});
    for (name, value) in part.as_object().unwrap() {
        whole[name] = value.clone();
    }
    let expect: Vec<String> = expect.iter().map(|text| format!("spec.{text}")).collect();
    check(POD, pod(whole), &expect.iter().map(String::as_str).collect::<Vec<_>>());
}

/// A Pod with this in its only container, and what is said of it, without `spec.containers[0].` ahead.
fn container(part: Value, expect: &[&str]) {
    let mut one = json!({"name": "a", "image": "a"});
    for (name, value) in part.as_object().unwrap() {
        one[name] = value.clone();
    }
    let expect: Vec<String> = expect.iter().map(|text| format!("containers[0].{text}")).collect();
    spec(
        json!({"containers": [one], "volumes": [{"name": "v", "emptyDir": {}}]}),
        &expect.iter().map(String::as_str).collect::<Vec<_>>(),
    );
}

#[test]
fn variables_come_from_somewhere() {
    let from = |source: Value, expect: &[&str]| {
        let expect: Vec<String> = expect.iter().map(|text| format!("env[0].valueFrom{text}")).collect();
        let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
        container(json!({"env": [{"name": "A", "valueFrom": source}]}), &expect);
    };
    from(json!({"fieldRef": {"fieldPath": "metadata.labels['a.b/c']"}}), &[]);
    from(json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}), &[]);
    from(
        json!({}),
        &[
            r#": Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"#,
        ],
    );
    from(
        json!({"fieldRef": {"fieldPath": "status.phase"}}),
        &[
            r#".fieldRef.fieldPath: Unsupported value: "status.phase": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs""#,
        ],
    );
    from(
        json!({"fieldRef": {"fieldPath": "spec.x"}}),
        &[
            r#".fieldRef.fieldPath: Invalid value: "spec.x": error converting fieldPath: field label not supported: spec.x"#,
        ],
    );
    from(
        json!({"resourceFieldRef": {"resource": "limits.memory", "divisor": "2Mi"}}),
        &[
            r#".resourceFieldRef.divisor: Invalid value: "limits.memory": only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource"#,
        ],
    );
    from(json!({"secretKeyRef": {"name": "s"}}), &[".secretKeyRef.key: Required value"]);
    container(
        json!({"envFrom": [{}, {"secretRef": {}}], "env": [{"name": "A=B"}]}),
        &[
            r#"env[0].name: Invalid value: "A=B": a valid environment variable name must consist only of printable ASCII characters other than '='"#,
            r#"envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`"#,
            "envFrom[1].secretRef.name: Required value",
        ],
    );
}

#[test]
fn volumes_are_mounted_where_they_can_be() {
    container(json!({"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a/b"}]}), &[]);
    container(
        json!({"volumeMounts": [
            {"name": "v", "mountPath": "/v", "subPath": "../b", "subPathExpr": "/c"},
            {"name": "w", "mountPath": "/v", "mountPropagation": "Bidirectional", "recursiveReadOnly": "Enabled"},
        ]}),
        &[
            r#"volumeMounts.subPath: Invalid value: "../b": must not contain '..'"#,
            r#"volumeMounts[0].subPathExpr: Invalid value: "/c": subPathExpr and subPath are mutually exclusive"#,
            r#"volumeMounts.subPathExpr: Invalid value: "/c": must be a relative path"#,
            r#"volumeMounts[1].name: Not found: "w""#,
            r#"volumeMounts[1].mountPath: Invalid value: "/v": must be unique"#,
            "volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers",
            "volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true",
            "volumeMounts.recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified",
        ],
    );
    container(
        json!({"volumeDevices": [{"name": "v", "devicePath": "/dev/../a"}]}),
        &[
            r#"volumeDevices[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"#,
            r#"volumeDevices[0].devicePath: Invalid value: "/dev/../a": can not contain backsteps ('..')"#,
        ],
    );
}

#[test]
fn containers_are_looked_at_in_one_way() {
    container(json!({"readinessProbe": {"grpc": {"port": 1}, "successThreshold": 2}}), &[]);
    container(
        json!({"livenessProbe": {
            "httpGet": {"port": "A!", "scheme": "FTP", "httpHeaders": [{"name": "a b", "value": ""}]},
            "exec": {"command": ["x"]}, "successThreshold": 2, "terminationGracePeriodSeconds": 0,
        }}),
        &[
            "livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type",
            "livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
            "livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ],
    );
    container(
        json!({"readinessProbe": {"tcpSocket": {"port": 0}, "terminationGracePeriodSeconds": 1}}),
        &[
            "readinessProbe.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive",
            "readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes",
        ],
    );
    container(
        json!({"lifecycle": {"preStop": {"sleep": {"seconds": 31}}, "postStart": {}}}),
        &[
            "lifecycle.postStart: Required value: must specify a handler type",
            "lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)",
        ],
    );
}

#[test]
fn containers_run_as_somebody() {
    container(
        json!({"securityContext": {"runAsUser": -1, "allowPrivilegeEscalation": false, "capabilities": {"add": ["NET_ADMIN"]},
            "seccompProfile": {"type": "Localhost"}, "appArmorProfile": {"type": "Own"}, "procMount": "Unmasked"}}),
        &[
            "securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            r#"securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`"#,
            "securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
            r#"securityContext.appArmorProfile.type: Unsupported value: "Own": supported values: "Localhost", "RuntimeDefault", "Unconfined""#,
        ],
    );
    spec(
        json!({"securityContext": {"fsGroup": 4294967296_i64, "fsGroupChangePolicy": "Sometimes", "supplementalGroups": [-1]}}),
        &[
            "securityContext.fsGroup: Invalid value: 4294967296: must be between 0 and 2147483647, inclusive",
            "securityContext.supplementalGroups[0]: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            r#"securityContext.fsGroupChangePolicy: Unsupported value: "Sometimes": supported values: "Always", "OnRootMismatch""#,
        ],
    );
    spec(
        json!({"os": {"name": "windows"}, "hostPID": true, "securityContext": {"runAsUser": 1}}),
        &[
            "securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
            "hostPID: Forbidden: cannot be set for a windows pod",
        ],
    );
}

#[test]
fn init_containers_end_unless_they_stay() {
    let init = |part: Value, expect: &[&str]| {
        let mut one = json!({"name": "i", "image": "i", "readinessProbe": {"tcpSocket": {"port": 1}}});
        for (name, value) in part.as_object().unwrap() {
            one[name] = value.clone();
        }
        spec(json!({"initContainers": [one]}), expect);
    };
    init(json!({"restartPolicy": "Always"}), &[]);
    init(
        json!({"name": "a"}),
        &[
            r#"initContainers[0].name: Duplicate value: "a""#,
            "initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
        ],
    );
    container(
        json!({"restartPolicyRules": [{"action": "Restart"}]}),
        &[
            "restartPolicy: Required value: must specify restartPolicy when restart rules are used",
            "restartPolicyRules[0].exitCodes: Required value: must be specified",
        ],
    );
}

#[test]
fn ports_of_the_host_are_given_once() {
    let ports = |ports: Value| json!({"containers": [{"name": "a", "image": "a", "ports": ports}]});
    spec(
        ports(json!([{"containerPort": 1, "hostPort": 1}, {"containerPort": 2, "hostPort": 1, "hostIP": "127.0.0.1"}])),
        &[],
    );
    spec(
        ports(json!([{"containerPort": 1, "hostPort": 1}, {"containerPort": 2, "hostPort": 1}])),
        &[r#"containers[0].ports[1].hostPort: Duplicate value: "TCP//1""#],
    );
    let mut whole = ports(json!([{"containerPort": 1, "hostPort": 2}]));
    whole["hostNetwork"] = true.into();
    let expect =
        "containers[0].ports[0].hostPort: Invalid value: 2: must match `containerPort` when `hostNetwork` is true";
    spec(whole, &[expect]);
}

#[test]
fn only_pods_have_what_comes_later() {
    let late = json!([{"name": "d", "image": "d", "ports": [{"containerPort": 1}], "targetContainerName": "x"}]);
    spec(
        json!({"ephemeralContainers": late}),
        &[
            r#"ephemeralContainers[0].targetContainerName: Not found: "x""#,
            "ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
            "ephemeralContainers: Forbidden: cannot be set on create",
        ],
    );
    let mut template = deployment(json!({"app": "a"}));
    template["spec"]["template"]["spec"]["ephemeralContainers"] = json!([{"name": "d", "image": "d"}]);
    let expect = "spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template";
    check(DEPLOYMENT, template, &[expect]);
}

#[test]
fn claims_to_devices_and_amounts_make_sense() {
    container(
        json!({"resources": {"requests": {"example.com/gpu": "1", "gpu": "1"}, "limits": {"hugepages-2Mi": "3Mi"}, "claims": [{"name": "g"}]}}),
        &[
            r#"resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified"#,
            r#"resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers"#,
            r#"resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi"#,
            r#"resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi"#,
            "resources.limits: Required value: Limit must be set for non overcommitable resources",
            "resources: Forbidden: HugePages require cpu or memory",
            r#"resources.claims[0]: Not found: "g": must be one of the names in pod.spec.resourceClaims which is empty"#,
        ],
    );
}
