//! A cluster in a process of its own, which can be killed: the program of the tests, started with another word.

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use kube::Client;
use windlass_cluster::{Cluster, ClusterConfig};

use crate::ground::{Test, begin, config, eventually, run_tests};

/// What a program of tests does; it is also the sandbox process and the cluster to kill.
pub(crate) fn run(tests: &[Test]) {
    let (runtime, arguments) = begin();
    if let [role, directory, seconds] = arguments.as_slice()
        && role == "cluster"
    {
        let survival = Duration::from_secs(seconds.parse().unwrap());
        return runtime.block_on(serve(ClusterConfig { survival, ..config(Path::new(directory)) }));
    }
    run_tests(&runtime, tests, &arguments);
}

async fn serve(config: ClusterConfig) {
    let mut cluster = Cluster::start(config).await.unwrap();
    let failure = cluster.failure().await;
    panic!("{failure}");
}

/// Starts a cluster in a process of its own.
pub(crate) fn spawn(directory: &Path) -> Child {
    spawn_surviving(directory, 0)
}

/// Starts a cluster in a process of its own, whose Pods wait so many seconds for the next one.
pub(crate) fn spawn_surviving(directory: &Path, seconds: u64) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new(program).arg("cluster").arg(directory).arg(seconds.to_string()).spawn().unwrap()
}

/// A client of that cluster, once it answers.
pub(crate) async fn connect(directory: &Path) -> Client {
    let path = directory.join("kubeconfig");
    eventually(async || {
        let kubeconfig = kube::config::Kubeconfig::read_from(&path).ok()?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.ok()?;
        let client = Client::try_from(config).ok()?;
        client.apiserver_version().await.ok().map(|_| client)
    })
    .await
}
