//! What is told of objects that are valid and unwise.

use serde_json::{Value, json};

use super::{builtin_status_warnings, builtin_warnings};
use crate::builtin;

#[track_caller]
fn check((group, version, kind): (&str, &str, &str), object: Value, expect: &[&str]) {
    let kind = builtin().by_kind(group, version, kind).unwrap();
    assert_eq!(builtin_warnings(kind, &object, None), expect);
}

#[track_caller]
fn check_pod(spec: Value, expect: &[&str]) {
    check(("", "v1", "Pod"), json!({"metadata": {"name": "a"}, "spec": spec}), expect);
}

#[test]
fn deprecated_volumes_and_labels_are_told() {
    check_pod(
        json!({
            "nodeSelector": {"beta.kubernetes.io/os": "linux", "kubernetes.io/os": "linux"},
            "volumes": [{"name": "a", "gitRepo": {}}, {"name": "b", "storageos": {}}, {"name": "c", "emptyDir": {}}],
            "topologySpreadConstraints": [{"topologyKey": "failure-domain.beta.kubernetes.io/zone"}],
        }),
        &[
            r#"spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead"#,
            r#"spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#,
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
            "spec.volumes[1].storageOS: deprecated in v1.22, non-functional in v1.25+",
        ],
    );
}

#[test]
fn what_hides_something_else_is_told() {
    check_pod(
        json!({
            "containers": [{
                "name": "a",
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A", "value": "3"}],
                "ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}],
                "resources": {"limits": {"memory": "1500m"}},
            }, {
                "name": "b",
                "ports": [
                    {"containerPort": 80, "protocol": "TCP", "name": "web"},
                    {"containerPort": 80, "protocol": "TCP", "hostPort": 80},
                    {"containerPort": 81, "protocol": "TCP", "hostIP": "10.0.0.1"},
                ],
            }],
            "imagePullSecrets": [{"name": "x"}, {"name": "x"}, {}],
            "terminationGracePeriodSeconds": -1,
        }),
        &[
            r#"spec.imagePullSecrets[1].name: duplicate name "x""#,
            r#"spec.imagePullSecrets[2].name: invalid empty name """#,
            r#"spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer"#,
            r#"spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply"#,
            "spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]",
            "spec.containers[1].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
            "spec.containers[1].ports[1]: overlapping port definition with spec.containers[1].ports[0]",
            "spec.containers[1].ports[2]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:81 Protocol:TCP HostIP:10.0.0.1}",
            r#"spec.containers[1].ports[0]: duplicate port name "web" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]"#,
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        ],
    );
}

#[test]
fn files_in_the_same_place_are_told() {
    check_pod(
        json!({"volumes": [
            {"name": "v", "configMap": {"name": "c", "items": [{"path": "a/"}, {"path": "a/b"}, {"path": "ab"}]}},
            {"name": "p", "projected": {"sources": [
                {"secret": {"name": "s", "items": [{"path": "token"}]}}, {"serviceAccountToken": {"path": "token"}}, {},
            ]}},
        ]}),
        &[
            r#"volume "v" (ConfigMap "c"): overlapping paths: "a/b" with "a""#,
            r#"volume "p" (Projected) has no sources provided"#,
            r#"volume "p" (Projected): overlapping paths: "token" (ServiceAccountToken) with "token" (Secret "s")"#,
        ],
    );
}

#[test]
fn a_template_is_told_of_when_something_wanted_changed() {
    let kind = builtin().by_kind("apps", "v1", "Deployment").unwrap();
    let deployment = |generation: i64| {
        json!({"metadata": {"name": "a.b", "generation": generation},
               "spec": {"template": {"spec": {"volumes": [{"name": "a", "rbd": {}}]}}}})
    };
    let rbd = "spec.template.spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+";
    let created = builtin_warnings(kind, &deployment(1), None);
    assert!(created[0].starts_with("metadata.name: this is used in Pod names and hostnames"), "{created:?}");
    assert_eq!(created[1..], [rbd]);
    assert_eq!(builtin_warnings(kind, &deployment(2), Some(&deployment(1))), [rbd]);
    assert_eq!(builtin_warnings(kind, &deployment(1), Some(&deployment(1))), [""; 0]);
}

#[test]
fn addresses_are_told_in_their_one_form() {
    let service = json!({"spec": {
        "type": "ClusterIP", "clusterIP": "None", "sessionAffinity": "ClientIP", "externalIPs": ["2001:DB8::1"],
        "loadBalancerSourceRanges": ["10.0.0.0/8", "2001:db8:0::/48"],
    }});
    check(
        ("", "v1", "Service"),
        service,
        &[
            "spec.externalIPs is ignored for headless services",
            "spec.SessionAffinity is ignored for headless services",
            r#"spec.externalIPs[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")"#,
            r#"spec.loadBalancerSourceRanges[1]: IPv6 CIDR value "2001:db8:0::/48" should be in RFC 5952 canonical format ("2001:db8::/48")"#,
        ],
    );
}

#[test]
fn addresses_in_a_status_are_told() {
    let kind = builtin().by_kind("", "v1", "Service").unwrap();
    let service = json!({"status": {"loadBalancer": {"ingress": [{"hostname": "h"}, {"ip": "::FFFF"}]}}});
    assert_eq!(
        builtin_status_warnings(kind, &service),
        [r#"status.loadBalancer.ingress[1]: IPv6 address "::FFFF" should be in RFC 5952 canonical format ("::ffff")"#]
    );
}

#[test]
fn pairs_that_are_none_are_told() {
    use base64::Engine;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let pem = |label: &str| encode(&format!("-----BEGIN {label}-----\nAA==\n-----END {label}-----\n"));
    let secret = |certificate: String, key: String| json!({"type": "kubernetes.io/tls", "data": {"tls.crt": certificate, "tls.key": key}});
    let kind = ("", "v1", "Secret");
    check(kind, secret(pem("CERTIFICATE"), pem("EC PRIVATE KEY")), &[]);
    check(kind, secret(encode("x"), pem("EC PRIVATE KEY")), &["tls: failed to find any PEM data in certificate input"]);
    check(
        kind,
        secret(pem("CERTIFICATE"), pem("CERTIFICATE")),
        &["tls: found a certificate rather than a key in the PEM for the private key"],
    );
}

#[test]
fn a_quota_for_less_than_is_asked_is_told() {
    check(
        ("", "v1", "ResourceQuota"),
        json!({"spec": {"hard": {"cpu": "2", "limits.cpu": "1500m", "requests.memory": "1Gi", "limits.memory": "1Gi"}}}),
        &["ResourceQuota cpu (2) should be less than limits.cpu (1500m)"],
    );
}
