//! {{Kind}} at work, on a cluster inside each test.

{{#conversion}}
use {{crate}}::{{kind}}::{{older}};
{{/conversion}}
use {{crate}}::{{kind}}::{{{Kind}}, {{Kind}}Spec, app};
use windlass::condition;
use windlass::kube::api::PostParams;
use windlass::prelude::*;
use windlass::serde_json::json;
use windlass_testkit::{Profile, TestCluster};

fn {{kind}}(name: &str, replicas: u32, image: &str) -> {{Kind}} {
    {{Kind}}::new(name, {{Kind}}Spec { replicas, image: image.into() })
}

fn is_ready({{kind}}: &{{Kind}}) -> bool {
    let status = {{kind}}.status.as_ref();
    status.is_some_and(|status| condition::is_true(&status.conditions, "Ready"))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_becomes_ready_heals_and_goes() {
    let cluster = TestCluster::builder().profile(Profile::Workloads).start().await;
    let operator = cluster.run(&app()).await;
    let api = cluster.api::<{{Kind}}>();
    api.create(&PostParams::default(), &{{kind}}("sample", 2, "memcached:1.6")).await.unwrap();
    cluster.until("sample", is_ready).await;

    // Whoever changes the Deployment by hand finds it as it was.
    cluster.patch::<Deployment>("sample", json!({"spec": {"replicas": 5}})).await;
    let replicas = |deployment: &Deployment| deployment.spec.as_ref().and_then(|spec| spec.replicas);
    cluster.until("sample", |deployment: &Deployment| replicas(deployment) == Some(2)).await;

    api.delete("sample", &Default::default()).await.unwrap();
    cluster.until_gone::<Deployment>("sample").await;
    operator.stop().await;
}
{{#webhook}}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_refuses_what_the_operator_refuses() {
    let cluster = TestCluster::start().await;
    let operator = cluster.run(&app()).await;
    let refused = {{kind}}("sample", 1, "memcached");
    let refusal = cluster.api().create(&PostParams::default(), &refused).await.unwrap_err();
    assert!(refusal.to_string().contains("name a version"), "{refusal}");
    operator.stop().await;
}
{{/webhook}}
{{#conversion}}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_{{older}}_are_served() {
    let cluster = TestCluster::start().await;
    let operator = cluster.run(&app()).await;
    cluster.api().create(&PostParams::default(), &{{kind}}("sample", 2, "memcached:1.5")).await.unwrap();
    cluster.patch::<{{older}}::{{Kind}}>("sample", json!({"spec": {"size": 3}})).await;
    let after = cluster.until("sample", |it: &{{Kind}}| it.spec.replicas == 3).await;
    assert_eq!(after.spec.image, "memcached:1.5", "what {{older}} does not know is kept");
    operator.stop().await;
}
{{/conversion}}
