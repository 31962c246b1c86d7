//! Quotas are charged with the objects that use them.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use futures::future::join_all;
use serde_json::{Value, json};
use world::World;

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A quota that a controller has counted.
async fn quota(world: &World, hard: Value) {
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    let mut quota = world.post(QUOTAS, &quota).await.expect(201);
    let used = hard.as_object().unwrap().keys().map(|name| (name.clone(), json!("0"))).collect::<Value>();
    quota["status"] = json!({"hard": hard, "used": used});
    world.put(&format!("{QUOTAS}/q/status"), &quota).await.expect(200);
}

async fn used(world: &World) -> Value {
    world.get(&format!("{QUOTAS}/q")).await.expect(200)["status"]["used"].clone()
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_never_get_more_than_there_is() {
    let world = World::new().await;
    quota(&world, json!({"configmaps": "10", "count/configmaps": "12"})).await;
    let names: Vec<String> = (0..40).map(|number| format!("m{number}")).collect();
    let maps: Vec<Value> = names.iter().map(|name| map(name)).collect();
    let answers = join_all(maps.iter().map(|map| world.post(MAPS, map))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 10);
    let refused = answers.into_iter().find(|answer| answer.status != 201).unwrap().expect(403);
    assert_eq!(refused["reason"], "Forbidden");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.ends_with(
            "is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=10, limited: configmaps=10"
        ),
        "{message}"
    );
    assert_eq!(used(&world).await, json!({"configmaps": "10", "count/configmaps": "10"}));
    let stored = world.get(MAPS).await.expect(200)["items"].as_array().unwrap().len();
    assert_eq!(stored, 10);
}

#[tokio::test]
async fn what_is_not_stored_costs_nothing() {
    let world = World::new().await;
    quota(&world, json!({"configmaps": "2"})).await;
    world.post(&format!("{MAPS}?dryRun=All"), &map("a")).await.expect(201);
    assert_eq!(used(&world).await["configmaps"], "0");
    world.post(MAPS, &map("a")).await.expect(201);
    world.post(MAPS, &map("a")).await.expect(409);
    assert_eq!(used(&world).await["configmaps"], "1");
    world.post(MAPS, &map("b")).await.expect(201);
    world.post(&format!("{MAPS}?dryRun=All"), &map("c")).await.expect(403);
    world.put(&format!("{MAPS}/a"), &json!({"metadata": {"name": "a"}, "data": {"x": "y"}})).await.expect(200);
    assert_eq!(used(&world).await["configmaps"], "2");
}

#[tokio::test]
async fn an_update_is_charged_for_what_it_adds() {
    let world = World::new().await;
    quota(&world, json!({"services": "2", "services.nodeports": "1"})).await;
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}], "selector": {"a": "b"}}});
    world.post(services, &service).await.expect(201);
    assert_eq!(used(&world).await, json!({"services": "1", "services.nodeports": "0"}));
    let open = json!({"spec": {"type": "NodePort"}});
    world.patch(&format!("{services}/s"), "merge-patch+json", &open).await.expect(200);
    assert_eq!(used(&world).await, json!({"services": "1", "services.nodeports": "1"}));
    let more = json!({"spec": {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}});
    world.patch(&format!("{services}/s"), "merge-patch+json", &more).await.expect(403);
}

#[tokio::test]
async fn a_quota_that_nobody_has_counted_is_not_in_force() {
    let world = World::new().await;
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}});
    world.post(QUOTAS, &quota).await.expect(201);
    world.post(MAPS, &map("a")).await.expect(201);
}
