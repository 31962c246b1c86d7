//! The shipped program over HTTPS, written and read by many clients at once and killed in the middle: all of them see one
//! order, and nothing that was acknowledged is lost.
//!
//! `WINDLASS_ROUNDS` says how often it is killed; `cargo xtask soak linearizability` asks for many more.

mod support;

use std::process::Command;
use std::time::Duration;

use kube::{Client, Config, config::Kubeconfig};
use support::TestCluster;
use windlass_testkit::linearizability::{Outcome, Workload, check};

const ROUNDS_DEFAULT: u32 = 2;
const CLIENTS: usize = 64;
/// Operations of each client; a soak has ten times as many.
const OPERATIONS: usize = 60;
/// Objects that they share: fewer make more conflicts, more make more writes.
const OBJECTS: usize = 32;
/// How long clients work between two kills.
const BETWEEN: Duration = Duration::from_secs(3);

async fn connect(cluster: &TestCluster) -> Client {
    let kubeconfig = Kubeconfig::read_from(cluster.state().join("kubeconfig")).expect("up wrote a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.expect("a kubeconfig");
    Client::try_from(config).expect("the kubeconfig can be used")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_clients_see_one_order_over_kills() {
    let rounds = std::env::var("WINDLASS_ROUNDS").ok().and_then(|text| text.parse().ok());
    let operations = if rounds.is_some() { OPERATIONS * 10 } else { OPERATIONS };
    let rounds = rounds.unwrap_or(ROUNDS_DEFAULT);
    let cluster = TestCluster::new();
    let arguments = ["--profile", "bare", "--no-operators"];
    cluster.start(&arguments);
    let client = connect(&cluster).await;
    let workload = Workload { clients: CLIENTS, operations, objects: OBJECTS, ..Workload::default() };
    let working = tokio::spawn(async move { workload.run(&client).await });
    let mut kills = 0;
    while kills < rounds && !working.is_finished() {
        tokio::time::sleep(BETWEEN).await;
        let process = cluster.server_pid().to_string();
        assert!(Command::new("kill").args(["-9", &process]).status().expect("kill runs").success());
        kills += 1;
        cluster.start(&arguments);
    }
    let history = working.await.expect("no client panics");
    check(&history).unwrap_or_else(|violation| panic!("{violation}"));
    let all = history.operations();
    let count = |is: fn(&Outcome) -> bool| all.iter().filter(|operation| is(&operation.outcome)).count();
    let written = count(|outcome| matches!(outcome, Outcome::Written(_)));
    let unknown = count(|outcome| matches!(outcome, Outcome::Unknown));
    println!(
        "{} operations of {CLIENTS} clients, {written} written, {unknown} without an answer, {kills} kills",
        all.len()
    );
    assert!(written > 100, "too little happened");
}
