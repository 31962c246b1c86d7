//! What is wrong with where Pods run, what they hold, and how they find names.

use serde_json::{Value, json};

use super::tests::{DEPLOYMENT, JOB, POD, check, deployment, pod, with_selector};

/// A Pod with this in its spec, and what is said of it, without `spec.` ahead.
fn spec(part: Value, expect: &[&str]) {
    let mut whole = json!({"containers": [{"name": "a", "image": "a"}]});
    for (name, value) in part.as_object().unwrap() {
        whole[name] = value.clone();
    }
    let expect: Vec<String> = expect.iter().map(|text| format!("spec.{text}")).collect();
    check(POD, pod(whole), &expect.iter().map(String::as_str).collect::<Vec<_>>());
}

/// A Pod with a volume of this source, and what is said of it, without `spec.volumes[0].` ahead.
fn volume(source: Value, expect: &[&str]) {
    let mut one = json!({"name": "v"});
    for (name, value) in source.as_object().unwrap() {
        one[name] = value.clone();
    }
    let expect: Vec<String> = expect.iter().map(|text| format!("volumes[0].{text}")).collect();
    spec(json!({"volumes": [one]}), &expect.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_volume_has_one_source_that_can_be_used() {
    volume(json!({"emptyDir": {"sizeLimit": "1Gi"}}), &[]);
    volume(json!({"emptyDir": {}, "nfs": {}}), &["nfs: Forbidden: may not specify more than 1 volume type"]);
    volume(
        json!({"emptyDir": {"sizeLimit": "-1"}}),
        &["emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"],
    );
    volume(
        json!({"hostPath": {"path": "/a/.."}}),
        &[r#"hostPath.path: Invalid value: "/a/..": must not contain '..'"#],
    );
    volume(
        json!({"hostPath": {"path": "/a", "type": "Tape"}}),
        &[
            r#"hostPath.type: Unsupported value: "Tape": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket""#,
        ],
    );
    volume(json!({"secret": {}}), &["secret.secretName: Required value"]);
    volume(
        json!({"configMap": {"name": "c", "defaultMode": 512, "items": [{"key": "k", "path": "..a"}]}}),
        &[
            "configMap.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
            r#"configMap.items[0].path: Invalid value: "..a": must not start with '..'"#,
        ],
    );
    volume(
        json!({"nfs": {"server": "s"}}),
        &["nfs.path: Required value", r#"nfs.path: Invalid value: "": must be an absolute path"#],
    );
    volume(json!({"persistentVolumeClaim": {}}), &["persistentVolumeClaim.claimName: Required value"]);
    volume(json!({"image": {"pullPolicy": "Never"}}), &["image.reference: Required value"]);
    volume(
        json!({"csi": {"nodePublishSecretRef": {}}}),
        &["csi.driver: Required value", "csi.nodePublishSecretRef.name: Required value"],
    );
    volume(
        json!({"ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "x"}, "spec": {"accessModes": ["ReadWriteOnce"]}}}}),
        &[
            "ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set",
            "ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
        ],
    );
    spec(
        json!({"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]}),
        &[r#"volumes[1].name: Duplicate value: "v""#],
    );
}

#[test]
fn files_of_several_sources_do_not_meet() {
    let file = |path: &str| json!({"name": "s", "items": [{"key": "k", "path": path}]});
    volume(json!({"projected": {"sources": [{"secret": file("a")}, {"configMap": file("b")}]}}), &[]);
    volume(
        json!({"projected": {"sources": [{"secret": file("a"), "configMap": file("a")}]}}),
        &[
            r#"projected: Invalid value: "s": conflicting duplicate paths"#,
            "projected.sources[0]: Forbidden: may not specify more than 1 volume type per source",
        ],
    );
    volume(
        json!({"projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 60}}]}}),
        &[
            "projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes",
            "projected.path: Required value",
            "projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
        ],
    );
    volume(
        json!({"downwardAPI": {"items": [{"path": "/a", "fieldRef": {"fieldPath": "status.podIP"}}, {"path": "b"}]}}),
        &[
            r#"downwardAPI.path: Invalid value: "/a": must be a relative path"#,
            r#"downwardAPI.fieldRef.fieldPath: Unsupported value: "status.podIP": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid""#,
            "downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
        ],
    );
}

#[test]
fn places_are_named_by_labels() {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    spec(
        json!({"affinity": {"nodeAffinity": {required: {}, preferred: [{"weight": 101, "preference": {"matchExpressions": [{"key": "k", "operator": "Near"}]}}]}}}),
        &[
            &format!(
                "affinity.nodeAffinity.{required}.nodeSelectorTerms: Required value: must have at least one node selector term"
            ),
            &format!("affinity.nodeAffinity.{preferred}[0].weight: Invalid value: 101: must be in the range 1-100"),
            &format!(
                r#"affinity.nodeAffinity.{preferred}[0].preference.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator"#
            ),
        ],
    );
    let key = "name part must be non-empty";
    let form = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    spec(
        json!({"affinity": {"podAntiAffinity": {required: [{}]}}}),
        &[
            &format!("affinity.podAntiAffinity.{required}[0].topologyKey: Required value: can not be empty"),
            &format!(r#"affinity.podAntiAffinity.{required}[0].topologyKey: Invalid value: "": {key}"#),
            &format!(r#"affinity.podAntiAffinity.{required}[0].topologyKey: Invalid value: "": {form}"#),
        ],
    );
    let constraint = json!({"topologyKey": "z", "whenUnsatisfiable": "Wait", "minDomains": 1});
    spec(
        json!({"topologySpreadConstraints": [constraint]}),
        &[
            "topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
            r#"topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Wait": supported values: "DoNotSchedule", "ScheduleAnyway""#,
            "topologySpreadConstraints[0].minDomains: Invalid value: 1: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not Wait",
        ],
    );
}

#[test]
fn names_are_found_somewhere() {
    spec(
        json!({"dnsPolicy": "None"}),
        &["dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
    );
    spec(json!({"dnsConfig": {"searches": ["_tcp.example.com.", "."], "nameservers": ["1.2.3.4"]}}), &[]);
    spec(
        json!({"dnsConfig": {"nameservers": ["x"], "options": [{"value": "1"}]}, "hostAliases": [{"ip": "y"}]}),
        &[
            r#"dnsConfig.nameservers[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#,
            "dnsConfig.options[0]: Required value: must not be empty",
            r#"hostAliases[0].ip: Invalid value: "y": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#,
        ],
    );
    spec(
        json!({"hostnameOverride": "a", "setHostnameAsFQDN": true}),
        &["hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true"],
    );
}

#[test]
fn a_pod_at_a_gate_has_no_node() {
    spec(
        json!({"schedulingGates": [{"name": "g"}, {"name": "g"}], "nodeName": "n"}),
        &[
            r#"schedulingGates[1]: Duplicate value: "g""#,
            "nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ],
    );
    let mut noted = deployment(json!({"app": "a"}));
    noted["spec"]["template"]["metadata"]["annotations"] = json!({"controller.kubernetes.io/pod-deletion-cost": "01"});
    let expect = r#"spec.template.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "01": must be a 32bit integer"#;
    check(DEPLOYMENT, noted, &[expect]);
}

#[test]
fn jobs_say_when_they_are_done() {
    let job = |part: Value, expect: &[&str]| {
        let mut job = json!({"metadata": {"name": "a", "namespace": "a"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}}});
        for (name, value) in part.as_object().unwrap() {
            job["spec"][name] = value.clone();
        }
        let expect: Vec<String> = expect.iter().map(|text| format!("spec.{text}")).collect();
        check(JOB, with_selector(job, "1"), &expect.iter().map(String::as_str).collect::<Vec<_>>());
    };
    let indexed =
        |rules: Value| json!({"completionMode": "Indexed", "completions": 3, "successPolicy": {"rules": rules}});
    job(indexed(json!([{"succeededIndexes": "0-1", "succeededCount": 2}])), &[]);
    job(
        indexed(json!([{"succeededIndexes": "1-5"}])),
        &[
            r#"successPolicy.rules[0].succeededIndexes: Invalid value: "1-5": error parsing succeededIndexes: too large index: "5""#,
        ],
    );
    job(
        json!({"backoffLimitPerIndex": 1}),
        &["backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
    );
    job(
        json!({"podReplacementPolicy": "Soon"}),
        &[r#"podReplacementPolicy: Unsupported value: "Soon": supported values: "Failed", "TerminatingOrFailed""#],
    );
    job(
        json!({"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2, 1, 0]}}, {"action": "Ignore"}]}}),
        &[
            "podFailurePolicy.rules[0].onExitCodes.values[2]: Invalid value: 0: must not be 0 for the In operator",
            "podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,1,0]: must be ordered",
            "podFailurePolicy.rules[1]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
        ],
    );
    job(
        json!({"managedBy": "me"}),
        &[r#"managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")"#],
    );
}
