//! What an operator keeps is neither changed nor pruned; what it drops goes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use windlass::kube::Api;
use windlass::kube::api::{Patch, PatchParams};
use windlass::prelude::*;
use windlass::serde_json::json;
use windlass_testkit::TestCluster;

/// A safe, with a code that is made once.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "vault.example.com", version = "v1", kind = "Safe")]
pub struct SafeSpec {
    /// What a new code would be.
    pub code: String,
    /// Whether there is a code at all.
    pub locked: bool,
}

struct Safes;

impl Operator for Safes {
    type Resource = Safe;

    fn desired(&self, safe: &Safe, world: &World) -> Outcome<NoStatus> {
        let map = |name: String| {
            let data = [("code".to_owned(), safe.spec.code.clone())].into();
            ConfigMap { metadata: named(name), data: Some(data), ..ConfigMap::default() }
        };
        let code = format!("{}-code", safe.name_any());
        let desired = Desired::new().child(map(safe.name_any()));
        match world.child::<ConfigMap>(safe, &code) {
            _ if !safe.spec.locked => desired,
            Some(_) => desired.keep::<ConfigMap>(code),
            None => desired.child(map(code)),
        }
        .settled()
    }
}

fn code(map: &ConfigMap) -> &str {
    &map.data.as_ref().unwrap()["code"]
}

#[tokio::test]
async fn what_is_kept_stays_as_it_is_until_it_is_dropped() {
    let cluster = TestCluster::start().await;
    let operator = cluster.run(&windlass::operator(Safes).owns::<ConfigMap>()).await;
    cluster.create::<Safe>(json!({"metadata": {"name": "s"}, "spec": {"code": "1", "locked": true}})).await;
    cluster.until("s-code", |map: &ConfigMap| code(map) == "1").await;

    let edit = async |spec| {
        let safes: Api<Safe> = cluster.api();
        safes.patch("s", &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await.unwrap();
    };
    edit(json!({"code": "2"})).await;
    cluster.until("s", |map: &ConfigMap| code(map) == "2").await;
    assert_eq!(code(&cluster.until("s-code", |_: &ConfigMap| true).await), "1", "it is kept");
    edit(json!({"locked": false})).await;
    cluster.until_gone::<ConfigMap>("s-code").await;
    operator.stop().await;
}
