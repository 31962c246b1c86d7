//! What tests on real Pods share: a cluster in this process, Pods of a shell script, and the machine's processes.
#![expect(dead_code, reason = "each test program uses a part of this")]

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Event, Pod, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use windlass_clock::Clock;
use windlass_cluster::{Cluster, ClusterConfig, Listen, Profile};
use windlass_controllers::{Name, Set};

/// The longest that one test may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(10);

/// A test by name.
pub(crate) type Test = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

/// What a program of tests does; it is also the sandbox process.
pub(crate) fn run(tests: &[Test]) {
    let (runtime, arguments) = begin();
    run_tests(&runtime, tests, &arguments);
}

/// Where the program begins unless it is the sandbox process: what to run tests with, and the arguments.
pub(crate) fn begin() -> (Runtime, Vec<String>) {
    windlass_node::sandbox_entry();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    (runtime, std::env::args().skip(1).collect())
}

/// Runs the tests whose names have the word that the arguments may have.
pub(crate) fn run_tests(runtime: &Runtime, tests: &[Test], arguments: &[String]) {
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
        let begun = Instant::now();
        runtime.block_on(async { tokio::time::timeout(LIMIT, test()).await }).expect(name);
        println!("test {name} ... ok ({:.1} s)", begun.elapsed().as_secs_f32());
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

/// Runs a test on a cluster and ends it in order.
pub(crate) async fn on_cluster(test: impl AsyncFnOnce(Client, &Path)) {
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(config(directory.path())).await.unwrap();
    test(cluster.client(), directory.path()).await;
    cluster.shutdown().await;
}

/// Runs a test on a cluster whose controllers have a clock that begins at `start` and can be moved.
pub(crate) async fn on_clock(start: &str, test: impl AsyncFnOnce(Client, &Clock, &Path)) {
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::running(start.parse().unwrap());
    // The node lives in the machine's time: its signs of life are not those of a clock that jumps.
    let controllers = Set::node().without(Name::NodeLifecycle).without(Name::TaintEviction);
    let settings = ClusterConfig { clock: clock.clone(), controllers: Some(controllers), ..config(directory.path()) };
    let cluster = Cluster::start(settings).await.unwrap();
    let client = cluster.client();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    await_condition(accounts, "default", |account: Option<&_>| account.is_some()).await.unwrap();
    test(client, &clock, directory.path()).await;
    cluster.shutdown().await;
}

/// A Pod that runs a script with the machine's own shell.
pub(crate) fn shell(name: &str, script: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [
        {"name": "c", "image": "host", "command": ["/bin/sh", "-c", script]}]}})
}

/// The same, started once.
pub(crate) fn once(name: &str, script: &str) -> Value {
    let mut pod = shell(name, script);
    pod["spec"]["restartPolicy"] = json!("Never");
    pod
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

/// Waits until the first container of a Pod is as wanted.
pub(crate) async fn until(pods: &Api<Pod>, name: &str, holds: impl Fn(&ContainerStatus) -> bool) -> Pod {
    let condition = |pod: Option<&Pod>| {
        let statuses = pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref());
        statuses.and_then(|statuses| statuses.first()).is_some_and(&holds)
    };
    await_condition(pods.clone(), name, condition).await.unwrap().unwrap()
}

/// How the program of a Pod that is started once ended.
pub(crate) async fn ended(pods: &Api<Pod>, name: &str) -> ContainerStateTerminated {
    let how = |status: &ContainerStatus| status.state.as_ref().and_then(|state| state.terminated.clone());
    let pod = until(pods, name, |status| how(status).is_some()).await;
    how(&pod.status.unwrap().container_statuses.unwrap()[0]).unwrap()
}

/// Deletes a Pod and waits until it is gone.
pub(crate) async fn delete(pods: &Api<Pod>, name: &str) {
    pods.delete(name, &DeleteParams::default()).await.unwrap();
    await_condition(pods.clone(), name, |pod: Option<&Pod>| pod.is_none()).await.unwrap();
}

/// Waits for an event about a Pod whose message has a text.
pub(crate) async fn told(client: &Client, name: &str, reason: &str, text: &str) {
    let events: Api<Event> = Api::default_namespaced(client.clone());
    let about = ListParams::default().fields(&format!("involvedObject.name={name},reason={reason}"));
    eventually(async || {
        let mut messages = events.list(&about).await.unwrap().items.into_iter().filter_map(|event| event.message);
        messages.find(|message| message.contains(text))
    })
    .await;
}

/// Looks for what nothing tells of, until it is there; the limit of a test is the limit of this, too.
pub(crate) async fn eventually<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Processes of this machine that were started with a word as one of their arguments.
pub(crate) fn processes_with(word: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let id = |entry: std::fs::DirEntry| -> Option<i32> {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let found = line.split(|byte| *byte == 0).any(|part| part == word.as_bytes());
        found.then(|| entry.file_name().to_str()?.parse().ok()).flatten()
    };
    entries.filter_map(id).collect()
}

/// Those of them that are `sleep`.
pub(crate) fn processes(word: &str) -> Vec<i32> {
    let is_sleep = |process: &i32| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).next() == Some(b"sleep")
    };
    processes_with(word).into_iter().filter(is_sleep).collect()
}

pub(crate) async fn until_processes(word: &str, expect: usize) -> Vec<i32> {
    let begun = Instant::now();
    eventually(async || {
        let found = processes(word);
        assert!(begun.elapsed() < LIMIT, "{found:?} run, not {expect}");
        (found.len() == expect).then_some(found)
    })
    .await
}

/// A number of seconds that nobody else sleeps.
pub(crate) fn unique() -> String {
    format!("{}.5", 100_000_000 + rand::random::<u32>() % 900_000_000)
}

/// The directory of a Pod on this machine.
pub(crate) fn directory_of(cluster: &Path, pod: &Pod) -> std::path::PathBuf {
    cluster.join("node/pods").join(pod.uid().unwrap())
}
