//! `windlass why` on a cluster with an operator that runs as a Pod.

mod support;

use serde_json::Value;
use support::console::{Example, examples};
use support::{TestCluster, eventually, example, success};

const BROKEN: &str = r#"
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: broken, namespace: default}
spec: {size: 2, image: "nowhere.invalid/memcached:0"}
"#;

/// Asks until the answer has all these words in it.
fn until_said(cluster: &TestCluster, words: &[&str]) -> String {
    eventually(&format!("an answer with {words:?}"), || {
        let said = success(cluster.windlass().args(["why", "memcached/broken"]));
        let missing = words.iter().find(|word| !said.contains(**word));
        missing.map_or(Ok(said.clone()), |word| Err(format!("no {word:?} in\n{said}")))
    })
}

#[test]
fn the_cause_comes_first_and_the_operator_tells_its_part() {
    let cluster = TestCluster::up(&[]);
    let file = cluster.state().with_extension("yaml");
    std::fs::write(&file, BROKEN).expect("the folder of a test can be written to");
    success(cluster.windlass().args(["apply", "-f"]).arg(&file));
    // Objects and the operator's journal are read one after the other: what is awaited is all of it together.
    let not_ready = "Memcached broken in default is not ready: 0 of 2 Pods are ready";
    let cause = "(and 1 other): the image nowhere.invalid/memcached:0 of container memcached cannot be had";
    let of_operator = ["memcached-operator (", "decided  to wait (InProgress)", "because  "];
    let said = until_said(&cluster, &[&[not_ready, cause], &of_operator[..]].concat());
    let first = said.lines().skip_while(|line| *line != "Why").nth(1).unwrap_or_default();
    assert!(first.contains(cause) && said.starts_with(not_ready), "{said}");

    // The same of a part, and for programs: the Deployment's operator is that of its owner.
    let json = success(cluster.windlass().args(["why", "deployment", "broken", "-o", "json"]));
    let value: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&value["ready"], &value["owners"][0]), (&false.into(), &"Memcached broken".into()));
    assert_eq!(value["operator"]["history"]["history"]["object"]["kind"], "Memcached");

    cluster.kubectl(&["annotate", "memcached", "broken", "windlass.dev/paused=true"]);
    let advice = "what to do: kubectl annotate memcached broken windlass.dev/paused-";
    until_said(&cluster, &["decided  nothing: it is paused", advice]);

    // Without an operator the rest is still told.
    cluster.kubectl(&["-n", "windlass-system", "scale", "deployment", "--all", "--replicas=0"]);
    until_said(&cluster, &["no Pod of an operator is there", "cannot be had"]);
}

/// Runs the command of a page until it prints what the page says.
fn shows(cluster: &TestCluster, page: &str) {
    let check = |example: &Example| {
        let arguments: Vec<&str> = example.command.split(' ').skip(1).collect();
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let printed = success(cluster.windlass().args(arguments).current_dir(root));
        example.missing(&printed).map_or(Ok(()), |line| Err(format!("no {line:?} in its place in\n{printed}")))
    };
    let all = examples(page);
    assert!(!all.is_empty(), "the page has lost its example");
    all.iter().for_each(|example| eventually(&example.command, || check(example)));
}

#[test]
fn pages_of_the_book_show_what_is_printed() {
    let cluster = TestCluster::up(&[]);
    shows(&cluster, include_str!("../../../docs/plan.md"));
    let sample = std::fs::read_to_string(example()).expect("the example is there");
    let file = cluster.state().with_extension("yaml");
    std::fs::write(&file, sample + "  image: memcached:nope\n").expect("the folder of a test can be written to");
    success(cluster.windlass().args(["apply", "-f"]).arg(&file));
    shows(&cluster, include_str!("../../../docs/why.md"));
}
