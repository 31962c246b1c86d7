//! How long a cluster takes to start in this process, in milliseconds: one line per start, the first with everything cold.

use std::time::Instant;

use k8s_openapi::api::core::v1::Namespace;
use windlass_testkit::{Profile, TestCluster};

#[tokio::main]
async fn main() {
    for _ in 0..10 {
        let started = Instant::now();
        let cluster = TestCluster::builder().profile(Profile::Bare).start().await;
        let namespaces: kube::Api<Namespace> = kube::Api::all(cluster.client());
        let found = namespaces.get_opt("default").await;
        let elapsed = started.elapsed();
        assert!(matches!(found, Ok(Some(_))), "a cluster that started answers");
        println!("{:.3}", elapsed.as_secs_f64() * 1000.0);
        cluster.stop().await;
    }
}
