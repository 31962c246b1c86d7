//! Kinds with behaviour of their own.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use serde_json::{Value, json};
use world::World;

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

async fn world_with_account() -> World {
    let world = World::new().await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    world.post("/api/v1/namespaces/default/serviceaccounts", &account).await.expect(201);
    world
}

#[tokio::test]
async fn a_pod_is_bound_once_and_ends_with_grace() {
    let world = world_with_account().await;
    let created = world.post(PODS, &pod("p")).await.expect(201);
    assert_eq!(
        (&created["status"]["phase"], &created["status"]["qosClass"]),
        (&json!("Pending"), &json!("BestEffort"))
    );
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    world.post(&format!("{PODS}/p/binding"), &binding).await.expect(201);
    assert_eq!(world.get(&format!("{PODS}/p")).await.expect(200)["metadata"]["generation"], 1);
    world.post(&format!("{PODS}/p/binding"), &binding).await.expect(409);
    let bound = world.get(&format!("{PODS}/p")).await.expect(200);
    assert_eq!(bound["spec"]["nodeName"], "n");
    let ending = world.delete(&format!("{PODS}/p"), &Value::Null).await.expect(200);
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 30);
    world.delete(&format!("{PODS}/p"), &json!({"gracePeriodSeconds": 0})).await.expect(200);
    world.get(&format!("{PODS}/p")).await.expect(404);
}

#[tokio::test]
async fn a_delete_that_is_not_done_says_so_to_those_who_asked_in_the_older_form() {
    let world = world_with_account().await;
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "finalizers": ["example.com/hold"]}});
    world.post("/api/v1/namespaces/default/configmaps", &map).await.expect(201);
    let path = "/api/v1/namespaces/default/configmaps/m";
    world.delete(path, &json!({"propagationPolicy": "Background"})).await.expect(200);
    world.delete(path, &json!({"orphanDependents": false})).await.expect(202);
    world.delete(path, &json!({"orphanDependents": true})).await.expect(200);
}

#[tokio::test]
async fn a_service_is_made_by_its_status_like_by_itself() {
    let world = world_with_account().await;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "10.1.2.3"}]}}});
    let path = format!("{SERVICES}/s/status?fieldManager=m");
    let bare = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}});
    let refused = world.patch(&path, "apply-patch+yaml", &bare).await.expect(422);
    assert_eq!(refused["message"], "Service \"s\" is invalid: spec.ports: Required value");
    let made = world.put(&path, &service).await.expect(201);
    assert_eq!(made["status"], json!({"loadBalancer": {}}), "a new Service has no status");
    world.put(&format!("{DEPLOYMENTS}/d/status"), &deployment()).await.expect(404);
}

#[tokio::test]
async fn status_is_written_through_its_own_path() {
    let world = world_with_account().await;
    let mut with_status = deployment();
    with_status["status"] = json!({"replicas": 9});
    let created = world.post(DEPLOYMENTS, &with_status).await.expect(201);
    assert!(created["status"].get("replicas").is_none(), "{}", created["status"]);
    let path = format!("{DEPLOYMENTS}/d");
    let patch = json!({"spec": {"replicas": 7}, "status": {"replicas": 2}, "metadata": {"labels": {"x": "y"}}});
    let status = world.patch(&format!("{path}/status"), "merge-patch+json", &patch).await.expect(200);
    assert_eq!((&status["spec"]["replicas"], &status["status"]["replicas"]), (&json!(2), &json!(2)));
    assert_eq!(status["metadata"]["generation"], 1);
    assert!(status["metadata"].get("labels").is_none());
    let object = world.patch(&path, "merge-patch+json", &patch).await.expect(200);
    assert_eq!((&object["spec"]["replicas"], &object["status"]["replicas"]), (&json!(7), &json!(2)));
    assert_eq!(object["metadata"]["generation"], 2);
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["subresource"] == "status"));
}

#[tokio::test]
async fn annotations_of_a_deployment_count_as_a_change_of_it() {
    let world = world_with_account().await;
    let path = format!("{DEPLOYMENTS}/d");
    world.post(DEPLOYMENTS, &deployment()).await.expect(201);
    let generation = async |path: &str, metadata: Value| {
        let patched = world.patch(path, "merge-patch+json", &json!({"metadata": metadata})).await.expect(200);
        patched["metadata"]["generation"].clone()
    };
    assert_eq!(generation(&path, json!({"labels": {"x": "y"}})).await, 1);
    assert_eq!(generation(&path, json!({"annotations": {"x": "y"}})).await, 2);
    assert_eq!(generation(&path, json!({"annotations": {"x": "y"}})).await, 2);
    assert_eq!(generation(&format!("{path}/status"), json!({"annotations": {"x": "z"}})).await, 2);
    assert_eq!(generation(&path, json!({"annotations": null})).await, 3);
}

#[tokio::test]
async fn a_scale_is_a_view_of_the_replicas() {
    let world = world_with_account().await;
    world.post(DEPLOYMENTS, &deployment()).await.expect(201);
    let path = format!("{DEPLOYMENTS}/d/scale");
    let mut scale = world.get(&path).await.expect(200);
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["selector"]), (&json!(2), &json!("app=web")));
    scale["spec"]["replicas"] = 5.into();
    assert_eq!(world.put(&path, &scale).await.expect(200)["spec"]["replicas"], 5);
    world.put(&path, &scale).await.expect(409);
    world.patch(&path, "merge-patch+json", &json!({"spec": {"replicas": 6}})).await.expect(200);
    assert_eq!(world.get(&format!("{DEPLOYMENTS}/d")).await.expect(200)["spec"]["replicas"], 6);
    world.patch(&path, "merge-patch+json", &json!({"spec": {"replicas": -1}})).await.expect(422);
}

#[tokio::test]
async fn services_get_addresses_that_nobody_else_has() {
    let world = World::new().await;
    let service = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
    let ports = json!([{"port": 80}]);
    let (first, second) =
        (service("a", json!({"ports": ports})), service("b", json!({"ports": ports, "type": "NodePort"})));
    let (first, second) = tokio::join!(world.post(SERVICES, &first), world.post(SERVICES, &second));
    let (first, second) = (first.expect(201), second.expect(201));
    assert_ne!(first["spec"]["clusterIP"], second["spec"]["clusterIP"]);
    assert!(second["spec"]["ports"][0]["nodePort"].as_u64().is_some_and(|port| (30_000..=32_767).contains(&port)));
    let again = service("c", json!({"ports": ports, "clusterIP": first["spec"]["clusterIP"]}));
    let refused = world.post(SERVICES, &again).await.expect(422);
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.clusterIPs");
    let replaced =
        world.put(&format!("{SERVICES}/a"), &service("a", json!({"ports": [{"port": 81}]}))).await.expect(200);
    assert_eq!(replaced["spec"]["clusterIP"], first["spec"]["clusterIP"], "an update keeps the address");
    world.put(&format!("{SERVICES}/new"), &service("new", json!({"ports": ports}))).await.expect(201);
}

#[tokio::test]
async fn a_namespace_ends_when_it_is_finalized() {
    let world = World::new().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let created = world.post("/api/v1/namespaces", &namespace).await.expect(201);
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], "n");
    let mut ending = world.delete("/api/v1/namespaces/n", &Value::Null).await.expect(200);
    assert_eq!(ending["status"]["phase"], "Terminating");
    let late = world.post("/api/v1/namespaces/n/configmaps", &json!({"metadata": {"name": "c"}})).await.expect(403);
    assert_eq!(late["details"]["causes"][0]["reason"], "NamespaceTerminating");
    ending["spec"]["finalizers"] = json!([]);
    world.put("/api/v1/namespaces/n/finalize", &ending).await.expect(200);
    world.get("/api/v1/namespaces/n").await.expect(404);
}

#[tokio::test]
async fn an_eviction_respects_the_budget() {
    let world = world_with_account().await;
    world.post(PODS, &pod("p")).await.expect(201);
    world
        .patch(&format!("{PODS}/p/status"), "merge-patch+json", &json!({"status": {"phase": "Running"}}))
        .await
        .expect(200);
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    world.post(budgets, &budget).await.expect(201);
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let refused = world.post(&format!("{PODS}/p/eviction"), &eviction).await.expect(429);
    assert_eq!(refused["details"]["causes"][0]["reason"], "DisruptionBudget");
    let status = json!({"status": {"disruptionsAllowed": 1, "observedGeneration": 1}});
    world.patch(&format!("{budgets}/b/status"), "merge-patch+json", &status).await.expect(200);
    world.post(&format!("{PODS}/p/eviction"), &eviction).await.expect(201);
    world.get(&format!("{PODS}/p")).await.expect(404);
    assert_eq!(world.get(&format!("{budgets}/b")).await.expect(200)["status"]["disruptionsAllowed"], 0);
}

#[tokio::test]
async fn both_groups_of_events_show_the_same_events() {
    let world = World::new().await;
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "hello",
        "regarding": {"kind": "Pod", "name": "p"}, "reason": "R", "type": "Normal", "action": "a",
        "reportingController": "c", "reportingInstance": "i", "eventTime": "2026-01-01T00:00:00.000000Z"});
    world.post("/apis/events.k8s.io/v1/namespaces/default/events", &event).await.expect(201);
    let core = world.get("/api/v1/namespaces/default/events/e").await.expect(200);
    assert_eq!((&core["message"], &core["involvedObject"]["name"]), (&json!("hello"), &json!("p")));
    let selected =
        world.get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dp").await.expect(200);
    assert_eq!(selected["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn foreground_and_orphan_deletes_wait_for_the_collector() {
    let world = world_with_account().await;
    for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        world.post(DEPLOYMENTS, &deployment()).await.expect(201);
        let path = format!("{DEPLOYMENTS}/d");
        let marked = world.delete(&path, &json!({"propagationPolicy": policy})).await.expect(200);
        assert_eq!(marked["metadata"]["finalizers"], json!([finalizer]));
        world.patch(&path, "merge-patch+json", &json!({"metadata": {"finalizers": []}})).await.expect(200);
        world.get(&path).await.expect(404);
    }
}

#[tokio::test]
async fn a_lease_needs_a_version_and_a_config_map_does_not() {
    let world = World::new().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    world.put(&format!("{leases}/l"), &lease).await.expect(201);
    world.put(&format!("{leases}/l"), &lease).await.expect(422);
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}});
    let path = "/api/v1/namespaces/default/configmaps";
    world.put(&format!("{path}/c"), &config_map).await.expect(404);
    world.post(path, &config_map).await.expect(201);
    world.put(&format!("{path}/c"), &config_map).await.expect(200);
}

#[tokio::test]
async fn the_older_binding_names_its_pod() {
    let world = world_with_account().await;
    world.post(PODS, &pod("p")).await.expect(201);
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    world.post("/api/v1/namespaces/default/bindings", &binding).await.expect(201);
    assert_eq!(world.get(&format!("{PODS}/p")).await.expect(200)["spec"]["nodeName"], "n");
}

#[tokio::test]
async fn an_apply_without_news_does_not_count_as_a_generation() {
    let world = world_with_account().await;
    let path = |manager: &str| format!("{DEPLOYMENTS}/d?fieldManager={manager}");
    let made = world.patch(&path("a"), "apply-patch+yaml", &deployment()).await.expect(201);
    assert_eq!(made["spec"]["progressDeadlineSeconds"], 600, "defaults are filled in");
    let again = world.patch(&path("a"), "apply-patch+yaml", &deployment()).await.expect(200);
    assert_eq!(again, made);
    let shared = world.patch(&path("b"), "apply-patch+yaml", &deployment()).await.expect(200);
    assert_eq!(shared["metadata"]["generation"], 1);
    assert_ne!(shared["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    let mut more = deployment();
    more["spec"]["replicas"] = 3.into();
    world.patch(&path("b"), "apply-patch+yaml", &more).await.expect(409);
    let forced = world.patch(&format!("{}&force=true", path("b")), "apply-patch+yaml", &more).await.expect(200);
    assert_eq!(forced["metadata"]["generation"], 2);
}

#[tokio::test]
async fn an_autoscaler_is_shown_in_both_versions() {
    let world = World::new().await;
    let old = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "targetCPUUtilizationPercentage": 50}});
    let created =
        world.post("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", &old).await.expect(201);
    assert_eq!(created["spec"]["targetCPUUtilizationPercentage"], 50);
    let new = world.get("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/h").await.expect(200);
    assert_eq!(new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50);
}

#[tokio::test]
async fn changes_by_wrong_types_are_refused_as_upstream_words_them() {
    let world = world_with_account().await;
    world.post(DEPLOYMENTS, &deployment()).await.expect(201);
    let patch = json!({"spec": {"replicas": "three"}});
    let refused = world.patch(&format!("{DEPLOYMENTS}/d"), "merge-patch+json", &patch).await.expect(422);
    assert_eq!(refused["details"]["causes"][0]["field"], "patch");
    let why = "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32";
    assert!(refused["message"].as_str().unwrap().ends_with(why), "{refused}");
    let mut other = deployment();
    other["spec"]["selector"]["matchLabels"]["app"] = "other".into();
    other["spec"]["template"]["metadata"]["labels"]["app"] = "other".into();
    let refused = world.put(&format!("{DEPLOYMENTS}/d"), &other).await.expect(422);
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.selector");
}

#[tokio::test]
async fn a_scale_is_applied_with_its_owner() {
    let world = World::new().await;
    world.post(DEPLOYMENTS, &deployment()).await.expect(201);
    let path = format!("{DEPLOYMENTS}/d/scale?fieldManager=ann&force=true");
    let config = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 7}});
    let scale = world.patch(&path, "apply-patch+yaml", &config).await.expect(200);
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(7)));
    let live = world.get(&format!("{DEPLOYMENTS}/d")).await.expect(200);
    assert_eq!(live["spec"]["replicas"], 7);
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    let own = entries.iter().find(|entry| entry["manager"] == "ann").unwrap();
    assert_eq!((&own["operation"], &own["subresource"]), (&json!("Apply"), &json!("scale")));
    assert_eq!(own["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    let wrong = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 7}});
    world.patch(&path, "apply-patch+yaml", &wrong).await.expect(400);
}

#[tokio::test]
async fn annotations_go_with_the_status_of_a_deployment_and_labels_do_not() {
    let world = World::new().await;
    world.post(DEPLOYMENTS, &deployment()).await.expect(201);
    let change = json!({"metadata": {"labels": {"new": "1"}, "annotations": {"new": "1"}}, "spec": {"paused": true}});
    let path = format!("{DEPLOYMENTS}/d/status");
    let patched = world.patch(&path, "merge-patch+json", &change).await.expect(200);
    assert_eq!(patched["metadata"]["annotations"]["new"], "1");
    assert!(patched["metadata"]["labels"].get("new").is_none() && patched["spec"].get("paused").is_none());
}

#[tokio::test]
async fn what_nobody_wrote_is_free_for_the_first_who_applies() {
    let world = World::new().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"}});
    world.post(roles, &role).await.expect(201);
    let forget = json!({"metadata": {"managedFields": [{}]}});
    let forgotten = world.patch(&format!("{roles}/a"), "merge-patch+json", &forget).await.expect(200);
    assert_eq!(forgotten["metadata"]["managedFields"], Value::Null);
    let mut config = role.clone();
    config["rules"] = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let applied = world.patch(&format!("{roles}/a?fieldManager=alpha"), "apply-patch+yaml", &config).await.expect(200);
    assert_eq!(applied["metadata"]["managedFields"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn who_writes_null_for_no_bytes_owns_it_and_it_is_read_as_no_bytes() {
    let world = World::new().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret =
        |value: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": value}});
    world.post(&format!("{secrets}?fieldManager=ann"), &secret(json!(""))).await.expect(201);
    let written = world.put(&format!("{secrets}/s?fieldManager=bob"), &secret(Value::Null)).await.expect(200);
    assert_eq!(written["data"], json!({"a": ""}));
    let owns = |name: &str| {
        let entries = written["metadata"]["managedFields"].as_array().unwrap();
        let own = entries.iter().find(|entry| entry["manager"] == name);
        own.is_some_and(|entry| entry["fieldsV1"].pointer("/f:data/f:a").is_some())
    };
    assert_eq!((owns("ann"), owns("bob")), (false, true));
}
