//! Objects of built-in kinds that break a rule are refused with its text, and nothing of them is stored.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use serde_json::{Value, json};
use world::World;

const CORE: &str = "/api/v1/namespaces/default";
const APPS: &str = "/apis/apps/v1/namespaces/default";
const BATCH: &str = "/apis/batch/v1/namespaces/default";

async fn world_with_account() -> World {
    let world = World::new().await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    world.post(&format!("{CORE}/serviceaccounts"), &account).await.expect(201);
    world
}

fn deployment() -> Value {
    json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
        "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

/// The refusal must name these fields, and leave nothing behind.
async fn refused(world: &World, path: &str, object: &Value, fields: &[&str]) {
    let before = world.get(path).await.expect(200)["items"].clone();
    let status = world.post(path, object).await.expect(422);
    assert_eq!(causes(&status), fields, "{status}");
    assert_eq!(world.get(path).await.expect(200)["items"], before);
}

/// A change of what is there must be refused for these fields.
async fn kept(world: &World, path: &str, change: Value, fields: &[&str]) {
    let before = world.get(path).await.expect(200);
    let status = world.patch(path, "merge-patch+json", &change).await.expect(422);
    assert_eq!(status["reason"], "Invalid");
    assert_eq!(causes(&status), fields, "{status}");
    assert_eq!(world.get(path).await.expect(200), before);
}

fn causes(status: &Value) -> Vec<&str> {
    let causes = status["details"]["causes"].as_array().unwrap();
    causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn bad_objects_are_not_stored() {
    let world = world_with_account().await;
    let changed = |pointer: &str, value: Value| {
        let mut object = deployment();
        *object.pointer_mut(pointer).unwrap() = value;
        object
    };
    let deployments = format!("{APPS}/deployments");
    let policies = json!({"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Sometimes"});
    let policy = "spec.template.spec.restartPolicy";
    for (object, fields) in [
        (changed("/spec/template/metadata/labels/app", "db".into()), vec!["spec.template.metadata.labels"]),
        (changed("/spec/template/spec/containers/0/image", "".into()), vec!["spec.template.spec.containers[0].image"]),
        (changed("/metadata/name", "Bad_Name".into()), vec!["metadata.name"]),
        (changed("/spec/template/spec", policies), vec![policy, policy]),
    ] {
        refused(&world, &deployments, &object, &fields).await;
    }
    let service = |ports: Value| json!({"metadata": {"name": "s"}, "spec": {"ports": ports}});
    let services = format!("{CORE}/services");
    refused(&world, &services, &service(json!([{"port": 0, "targetPort": 1}])), &["spec.ports[0].port"]).await;
    let twins = service(json!([{"name": "a", "port": 1}, {"name": "a", "port": 2}]));
    refused(&world, &services, &twins, &["spec.ports[1].name"]).await;
    let config_map = |labels: Value, data: Value| json!({"metadata": {"name": "c", "labels": labels}, "data": data});
    let config_maps = format!("{CORE}/configmaps");
    refused(&world, &config_maps, &config_map(json!({}), json!({"a/b": ""})), &["data[a/b]"]).await;
    refused(&world, &config_maps, &config_map(json!({"a": "b c"}), json!({})), &["metadata.labels"]).await;
}

#[tokio::test]
async fn what_is_immutable_stays() {
    let world = world_with_account().await;
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let pod = json!({"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"});
    for (path, object) in [
        (format!("{APPS}/deployments"), deployment()),
        (format!("{CORE}/services"), json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})),
        (format!("{CORE}/secrets"), json!({"metadata": {"name": "s"}, "immutable": true, "stringData": {"a": "1"}})),
        (format!("{CORE}/configmaps"), json!({"metadata": {"name": "c"}, "immutable": true, "data": {"a": "1"}})),
        (format!("{CORE}/persistentvolumeclaims"), json!({"metadata": {"name": "p"}, "spec": claim})),
        (format!("{BATCH}/jobs"), json!({"metadata": {"name": "j"}, "spec": {"template": {"spec": pod}}})),
        (format!("{CORE}/pods"), json!({"metadata": {"name": "p"}, "spec": pod})),
    ] {
        world.post(&path, &object).await.expect(201);
    }
    let relabel = json!({"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}}}});
    kept(&world, &format!("{APPS}/deployments/d"), relabel, &["spec.selector"]).await;
    let move_on = json!({"spec": {"clusterIP": "10.96.7.7", "clusterIPs": null}});
    kept(&world, &format!("{CORE}/services/s"), move_on, &["spec.clusterIPs[0]"]).await;
    kept(&world, &format!("{CORE}/secrets/s"), json!({"type": "other", "data": null}), &["type", "data"]).await;
    kept(&world, &format!("{CORE}/configmaps/c"), json!({"data": {"a": "2"}}), &["data"]).await;
    let grow = json!({"spec": {"accessModes": ["ReadOnlyMany"]}});
    kept(&world, &format!("{CORE}/persistentvolumeclaims/p"), grow, &["spec"]).await;
    let other = json!({"spec": {"template": {"spec": {"hostNetwork": true}}}});
    kept(&world, &format!("{BATCH}/jobs/j"), other, &["spec.template"]).await;
    kept(&world, &format!("{CORE}/pods/p"), json!({"spec": {"hostNetwork": true}}), &["spec"]).await;
}

#[tokio::test]
async fn containers_that_join_a_pod_follow_the_rules_of_containers() {
    let world = world_with_account().await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    world.post(&format!("{CORE}/pods"), &pod).await.expect(201);
    let path = format!("{CORE}/pods/p/ephemeralcontainers");
    let join = |container: Value| json!({"spec": {"ephemeralContainers": [container]}});
    let status = world.patch(&path, "merge-patch+json", &join(json!({"name": "c", "image": "i"}))).await.expect(422);
    assert_eq!(causes(&status), ["spec.ephemeralContainers[0].name"]);
    world.patch(&path, "merge-patch+json", &join(json!({"name": "e", "image": "i"}))).await.expect(200);
}

#[tokio::test]
async fn what_is_allowed_and_unwise_is_told() {
    let world = world_with_account().await;
    let mut odd = deployment();
    odd["spec"]["template"]["spec"]["nodeSelector"] = json!({"beta.kubernetes.io/os": "linux"});
    let told = world.post(&format!("{APPS}/deployments"), &odd).await;
    let warning = r#"299 - "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead""#;
    assert_eq!(told.header("warning"), Some(warning));
    told.expect(201);
    let again = world
        .patch(&format!("{APPS}/deployments/d"), "merge-patch+json", &json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    assert_eq!(again.header("warning"), None, "nothing that is wanted has changed");
}

#[tokio::test]
async fn an_owner_is_named_once() {
    let world = world_with_account().await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"});
    let object = json!({"metadata": {"name": "c", "ownerReferences": [owner, owner]}});
    let told = world.post(&format!("{CORE}/configmaps"), &object).await;
    assert!(told.header("warning").is_some_and(|warning| warning.ends_with("duplicate UID(s) observed: u\"")));
    assert_eq!(told.expect(201)["metadata"]["ownerReferences"], json!([owner]));
}

#[tokio::test]
async fn a_profile_in_an_annotation_becomes_a_field() {
    let world = world_with_account().await;
    let key = "container.apparmor.security.beta.kubernetes.io/c";
    let pod = json!({"metadata": {"name": "p", "annotations": {key: "localhost/mine"}},
                     "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let told = world.post(&format!("{CORE}/pods"), &pod).await;
    assert!(told.header("warning").is_some_and(|warning| warning.contains("deprecated since v1.30")));
    let container = &told.expect(201)["spec"]["containers"][0];
    let profile = json!({"type": "Localhost", "localhostProfile": "mine"});
    assert_eq!(container["securityContext"]["appArmorProfile"], profile);
}
