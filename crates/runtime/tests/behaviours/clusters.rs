//! What holds of several clusters: one manager serves them, each by itself.

use crate::notes::{Note, Running, app, eventually, note, settled, write};
use windlass::Program;
use windlass::prelude::*;
use windlass_runtime::{Manager, ManagerConfig, Namespaces};
use windlass_testkit::TestCluster;

#[tokio::test(flavor = "multi_thread")]
async fn one_manager_serves_several_clusters_and_one_that_fails_harms_no_other() {
    let (home, east, west) = (TestCluster::start().await, TestCluster::start().await, TestCluster::start().await);
    let mut manager = Manager::new(home.client(), ManagerConfig::new("note-operator"));
    app().install(&mut manager, Namespaces::all());
    for (name, cluster) in [("east", &east), ("west", &west)] {
        let cluster = manager.cluster(name, cluster.client());
        app().install_in(&mut manager, &cluster, Namespaces::all());
    }
    let running = Running::start(manager);
    // The west has no such kind.
    for cluster in [&home, &east] {
        cluster.define(app().crds()).await;
    }
    for (cluster, text) in [(&home, "at home"), (&east, "in the east")] {
        write(&cluster.api(), note("n", text)).await;
        settled(&cluster.api::<Note>(), "n").await;
        let map = cluster.api::<ConfigMap>().get("n").await.unwrap();
        assert_eq!(map.data.unwrap()["text"], text);
    }
    running.reports("watch notes.notes.example.com of east", None).await;
    running.reports("watch notes.notes.example.com of west", Some("apply its definition")).await;
    let worked = r#"controller_runtime_reconcile_total{controller="note@east",result="success"}"#;
    eventually("a run in the east is counted", || running.metric(worked) > Some(0.0)).await;
    running.end().await;
}
