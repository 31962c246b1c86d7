//! Definitions that are accepted and definitions that are not.

use serde_json::json;

use super::*;
use crate::crd::strategy;

fn definition() -> Value {
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "memcacheds.cache.example.com"},
        "spec": {
            "group": "cache.example.com", "scope": "Namespaced",
            "names": {"plural": "memcacheds", "kind": "Memcached"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                }}},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
            }],
        },
    });
    strategy::prepare_create(&mut definition);
    definition
}

fn check(change: impl FnOnce(&mut Value), expected: &[&str]) {
    let mut definition = definition();
    change(&mut definition);
    let paths: Vec<String> = create(&definition).into_iter().map(|error| error.path).collect();
    assert_eq!(paths, expected);
}

#[test]
fn a_usual_definition_is_accepted() {
    check(|_| {}, &[]);
}

#[test]
fn names_and_scope_are_checked() {
    check(|it| it["metadata"]["name"] = "other".into(), &["metadata.name"]);
    check(|it| it["metadata"]["generateName"] = "other-".into(), &["metadata.generateName"]);
    check(|it| it["spec"]["versions"] = json!(null), &["spec.versions", "status.storedVersions[0]"]);
    check(|it| it["spec"]["scope"] = "Galactic".into(), &["spec.scope"]);
    check(|it| it["spec"]["group"] = "nodot".into(), &["metadata.name", "spec.group"]);
    check(|it| it["spec"]["names"]["kind"] = "Not A Kind".into(), &["spec.names.kind"]);
    check(|it| it["spec"]["names"]["listKind"] = "Memcached".into(), &["spec.names.listKind"]);
    check(|it| it["spec"]["names"]["shortNames"] = json!(["mc", "M C"]), &["spec.names.shortNames[1]"]);
}

#[test]
fn one_version_is_stored() {
    check(|it| it["spec"]["versions"][0]["storage"] = false.into(), &["spec.versions"]);
    check(
        |it| {
            let version = it["spec"]["versions"][0].clone();
            it["spec"]["versions"].as_array_mut().unwrap().push(version);
        },
        &["spec.versions", "spec.versions"],
    );
    check(|it| it["status"]["storedVersions"] = json!(["v1alpha1", "v0"]), &["status.storedVersions[1]"]);
}

#[test]
fn paths_are_checked() {
    let set = |path: &'static str, value: Value| move |it: &mut Value| *it.pointer_mut(path).unwrap() = value;
    check(
        set("/spec/versions/0/subresources/scale/specReplicasPath", json!(".status.size")),
        &["spec.subresources.scale.specReplicasPath"],
    );
    check(
        set("/spec/versions/0/subresources/scale/statusReplicasPath", json!(".status.list[0]")),
        &["spec.subresources.scale.statusReplicasPath"],
    );
    check(
        set("/spec/versions/0/additionalPrinterColumns/0", json!({"name": "", "type": "x", "jsonPath": "size"})),
        &[
            "spec.additionalPrinterColumns[0].name",
            "spec.additionalPrinterColumns[0].type",
            "spec.additionalPrinterColumns[0].jsonPath",
        ],
    );
    check(
        |it| {
            it["spec"]["versions"][0]["selectableFields"] =
                json!([{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.absent"}, {"jsonPath": ".metadata.name"}])
        },
        &["spec.selectableFields[1].jsonPath", "spec.selectableFields[2].jsonPath"],
    );
}

#[test]
fn rules_are_compiled() {
    check(
        |it| {
            it["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
                json!([{"rule": "self.size >"}]);
        },
        &["spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"],
    );
}

#[test]
fn what_is_established_stays() {
    let mut old = definition();
    old["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    let mut new = old.clone();
    new["spec"]["scope"] = "Cluster".into();
    new["spec"]["names"]["kind"] = "Other".into();
    let paths: Vec<String> = update(&new, &old).into_iter().map(|error| error.path).collect();
    assert_eq!(paths, ["spec.scope", "spec.names.kind"]);
}

#[test]
fn groups_of_kubernetes_need_an_approval() {
    check(
        |it| {
            it["spec"]["group"] = "x.k8s.io".into();
            it["metadata"]["name"] = "memcacheds.x.k8s.io".into();
        },
        &["metadata.annotations[api-approved.kubernetes.io]"],
    );
}

#[test]
fn a_changed_schema_is_checked_again() {
    let old = definition();
    let mut new = old.clone();
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "self.size >"}]);
    assert_eq!(update(&new, &old).len(), 1);
    assert_eq!(update(&old, &old), vec![]);
}
