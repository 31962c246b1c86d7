//! A cluster in a process of its own, which can be killed: the program of the tests, started with another word.
#![expect(dead_code, reason = "each test program uses a part of this")]

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use kube::Client;
use windlass_cluster::{Cluster, ClusterConfig, Isolation};

use crate::ground::{LIMIT, Test, begin, config, eventually, run_tests};

/// What a program of tests does; it is also the sandbox process and the cluster to kill.
pub(crate) fn run(tests: &[Test]) {
    let (runtime, arguments) = begin();
    if let [role, directory, seconds] = arguments.as_slice()
        && let Some(isolation) = isolation_of(role)
    {
        let survival = Duration::from_secs(seconds.parse().unwrap());
        return runtime.block_on(serve(ClusterConfig { isolation, survival, ..config(Path::new(directory)) }));
    }
    run_tests(&runtime, tests, &arguments);
}

/// How Pods are kept apart in a cluster of its own, by the word that its process is started with.
fn isolation_of(role: &str) -> Option<Option<Isolation>> {
    match role {
        "cluster" => Some(None),
        "cluster-sandbox" => Some(Some(Isolation::Sandbox)),
        "cluster-namespaces" => Some(Some(Isolation::Namespaces)),
        "cluster-runc" => Some(Some(Isolation::Runc)),
        _ => None,
    }
}

async fn serve(config: ClusterConfig) {
    let mut cluster = Cluster::start(config).await.unwrap();
    let failure = cluster.failure().await;
    panic!("{failure}");
}

/// A cluster in a process of its own, which does not outlive a test that fails.
pub(crate) struct Victim(Child);

impl Victim {
    fn spawn(role: &str, directory: &Path, seconds: u64) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self(command.arg(role).arg(directory).arg(seconds.to_string()).spawn().unwrap())
    }

    /// Kills it without a word.
    pub(crate) fn kill(self) {}
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Starts a cluster in a process of its own.
pub(crate) fn spawn(directory: &Path) -> Victim {
    spawn_surviving(directory, 0)
}

/// Starts a cluster in a process of its own, whose Pods wait so many seconds for the next one.
pub(crate) fn spawn_surviving(directory: &Path, seconds: u64) -> Victim {
    Victim::spawn("cluster", directory, seconds)
}

/// Starts a cluster whose Pods wait for the next one, in a process of its own.
pub(crate) fn spawn_with(directory: &Path, isolation: Isolation) -> Victim {
    let role = match isolation {
        Isolation::Sandbox => "cluster-sandbox",
        Isolation::Namespaces => "cluster-namespaces",
        Isolation::Runc => "cluster-runc",
    };
    Victim::spawn(role, directory, LIMIT.as_secs())
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
