//! A cluster in this process or in one that can be killed, and Pods on it.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use windlass_cluster::{Cluster, ClusterConfig, Listen, Profile};

pub(crate) const LIMIT: Duration = Duration::from_secs(90);

pub(crate) type Test = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

/// What a program of tests does: it is also the sandbox process, and with the word `cluster` the cluster to kill.
pub(crate) fn run(tests: &[Test]) {
    windlass_node::sandbox_entry();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if let [role, directory] = arguments.as_slice()
        && role == "cluster"
    {
        return runtime.block_on(serve(directory));
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-')).cloned();
    let capabilities =
        runtime.block_on(windlass_node::sandbox::Launcher::default().probe(&std::env::temp_dir())).unwrap();
    if !capabilities.namespaces {
        println!("skipped: {}", capabilities.missing().join("; "));
        return;
    }
    let chosen = tests.iter().filter(|(name, _)| filter.as_ref().is_none_or(|f| name.contains(f.as_str())));
    let mut passed = 0;
    for (name, test) in chosen {
        runtime.block_on(async { tokio::time::timeout(LIMIT, test()).await }).expect(name);
        println!("test {name} ... ok");
        passed += 1;
    }
    println!("test result: ok. {passed} passed");
}

pub(crate) fn config(directory: &Path) -> ClusterConfig {
    ClusterConfig {
        listen: Listen::Port(0),
        images: directory.join("images"),
        ..ClusterConfig::in_directory(directory, Profile::Node)
    }
}

/// The cluster that is killed.
pub(crate) async fn serve(directory: &str) {
    let mut cluster = Cluster::start(config(Path::new(directory))).await.unwrap();
    let failure = cluster.failure().await;
    panic!("{failure}");
}

/// Runs a test on a cluster and ends it in order.
pub(crate) async fn on_cluster(test: impl AsyncFnOnce(Client, &Path)) {
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(config(directory.path())).await.unwrap();
    test(cluster.client(), directory.path()).await;
    cluster.shutdown().await;
}

pub(crate) fn shell(name: &str, script: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [
        {"name": "c", "image": "host", "command": ["/bin/sh", "-c", script]}]}})
}

pub(crate) async fn create(pods: &Api<Pod>, pod: Value) -> Pod {
    let pod: Pod = serde_json::from_value(pod).unwrap();
    // The namespace gets its service account a moment after the start.
    loop {
        match pods.create(&PostParams::default(), &pod).await {
            Ok(pod) => return pod,
            Err(kube::Error::Api(status)) if status.code == 403 => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) async fn until(pods: &Api<Pod>, name: &str, holds: impl Fn(&ContainerStatus) -> bool) -> Pod {
    let condition = |pod: Option<&Pod>| {
        let statuses = pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref());
        statuses.and_then(|statuses| statuses.first()).is_some_and(&holds)
    };
    await_condition(pods.clone(), name, condition).await.unwrap().unwrap()
}

/// Processes of this machine whose command line has a word.
pub(crate) fn processes(word: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let id = |entry: std::fs::DirEntry| -> Option<i32> {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let found = words.first() == Some(&&b"sleep"[..]) && words.contains(&word.as_bytes());
        found.then(|| entry.file_name().to_str()?.parse().ok()).flatten()
    };
    entries.filter_map(id).collect()
}

pub(crate) async fn until_processes(word: &str, expect: usize) -> Vec<i32> {
    let begun = Instant::now();
    loop {
        let found = processes(word);
        if found.len() == expect {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "{found:?} run, not {expect}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn unique() -> String {
    format!("{}.5", 100_000_000 + rand::random::<u32>() % 900_000_000)
}

pub(crate) fn spawn(directory: &Path) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new(program).arg("cluster").arg(directory).spawn().unwrap()
}

pub(crate) async fn connect(directory: &Path) -> Client {
    let path = directory.join("kubeconfig");
    loop {
        let config = async {
            let kubeconfig = kube::config::Kubeconfig::read_from(&path).ok()?;
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.ok()?;
            let client = Client::try_from(config).ok()?;
            client.apiserver_version().await.ok().map(|_| client)
        };
        if let Some(client) = config.await {
            return client;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
