//! The API server in this process, written and read by many at once, is linearizable.

use windlass_testkit::linearizability::{Action, Outcome, Workload, check};
use windlass_testkit::{Profile, TestCluster};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_clients_see_one_order() {
    let cluster = TestCluster::builder().profile(Profile::Bare).start().await;
    let workload = Workload { clients: 64, operations: 60, ..Workload::default() };
    let history = workload.run(&cluster.client()).await;
    check(&history).unwrap_or_else(|violation| panic!("{violation}"));
    let operations = history.operations();
    let count = |is: fn(&Outcome) -> bool| operations.iter().filter(|operation| is(&operation.outcome)).count();
    let written = count(|outcome| matches!(outcome, Outcome::Written(_)));
    let deleted = count(|outcome| matches!(outcome, Outcome::Deleted));
    let refused = count(|outcome| matches!(outcome, Outcome::Refused));
    let listed = operations.iter().filter(|operation| operation.action == Action::List).count();
    println!(
        "{} operations: {written} written, {deleted} deleted, {refused} refused, {listed} lists",
        operations.len()
    );
    // Clients that never met would prove nothing.
    assert!(written > 100 && deleted > 5 && refused > 50 && listed > 50, "too little happened");
    assert_eq!(count(|outcome| matches!(outcome, Outcome::Unknown)), 0, "everything was answered");
}
