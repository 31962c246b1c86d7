//! A cluster with this node, to try it with kubectl: `cargo run -p windlass-node --example cluster -- DIR`.

use windlass_cluster::{Cluster, ClusterConfig, Profile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    windlass_node::sandbox_entry();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: cluster DIR")?;
    let mut cluster = Cluster::start(ClusterConfig::in_directory(&directory, Profile::Node)).await?;
    println!("{:?}\nexport KUBECONFIG={directory}/kubeconfig", cluster.capabilities());
    tokio::select! {
        failure = cluster.failure() => eprintln!("{failure}"),
        _ = tokio::signal::ctrl_c() => {}
    }
    cluster.shutdown().await;
    Ok(())
}
