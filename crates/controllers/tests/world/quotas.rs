//! ResourceQuotas.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota, Secret};
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use super::world::workloads;

fn uses(quota: &ResourceQuota, wanted: &Value) -> bool {
    let used = quota.status.as_ref().and_then(|status| status.used.as_ref());
    used.is_some_and(|used| {
        wanted.as_object().unwrap().iter().all(|(name, amount)| used.get(name).is_some_and(|used| used.0 == *amount))
    })
}

fn pod(name: &str, cpu: &str) -> Value {
    let resources = json!({"requests": {"cpu": cpu, "memory": "252Mi"}});
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x", "resources": resources}]}})
}

#[tokio::test]
async fn a_quota_follows_the_life_of_what_it_counts() {
    let world = workloads().await;
    let hard = json!({"pods": "2", "cpu": "1", "memory": "500Mi", "secrets": "3", "count/configmaps": "10",
        "count/replicasets.apps": "5"});
    world.create::<ResourceQuota>(json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).await;
    let zero = json!({"pods": "0", "cpu": "0", "secrets": "0", "count/replicasets.apps": "0"});
    world.until("q", |quota| uses(quota, &zero)).await;

    world.create::<Pod>(pod("one", "500m")).await;
    world.until("q", |quota| uses(quota, &json!({"pods": "1", "cpu": "500m", "memory": "252Mi"}))).await;
    let too_much: Pod = serde_json::from_value(pod("two", "600m")).unwrap();
    let refused = world.api::<Pod>().create(&PostParams::default(), &too_much).await.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 403 && status.message.contains("exceeded quota: q")),
        "{refused:?}"
    );

    world.create::<Secret>(json!({"metadata": {"name": "s"}})).await;
    world.until("q", |quota| uses(quota, &json!({"secrets": "1"}))).await;
    world.api::<Secret>().delete("s", &DeleteParams::default()).await.unwrap();
    world.until("q", |quota| uses(quota, &json!({"secrets": "0"}))).await;
    world.api::<Pod>().delete("one", &DeleteParams::default().grace_period(0)).await.unwrap();
    world.until("q", |quota| uses(quota, &json!({"pods": "0", "cpu": "0", "memory": "0"}))).await;
    world.stop().await;
}

#[tokio::test]
async fn a_changed_limit_is_soon_in_force() {
    let world = workloads().await;
    world
        .create::<ResourceQuota>(json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "1"}}}))
        .await;
    // The namespace has one already: the certificate authority.
    world.until("q", |quota| uses(quota, &json!({"count/configmaps": "1"}))).await;
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "m"}})).unwrap();
    world.api::<ConfigMap>().create(&PostParams::default(), &map).await.unwrap_err();
    world.patch::<ResourceQuota>("q", json!({"spec": {"hard": {"count/configmaps": "2"}}})).await;
    world
        .until("q", |quota: &ResourceQuota| {
            let hard = quota.status.as_ref().and_then(|status| status.hard.as_ref());
            hard.is_some_and(|hard| hard["count/configmaps"].0 == "2")
        })
        .await;
    world.api::<ConfigMap>().create(&PostParams::default(), &map).await.unwrap();
    world.stop().await;
}
