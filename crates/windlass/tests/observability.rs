//! What is seen of an operator from outside: every metric that its dashboard, its alerts and those of others ask for exists.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;
use windlass::observe::{Scope, alerts, dashboard};
use windlass::prelude::*;
use windlass::runtime::webhook::{Way, Webhooks};
use windlass::runtime::{Health, LeaderConfig, Manager, ManagerConfig, Namespaces};
use windlass::serde_json::{self, Value, json};
use windlass::{App, Program};
use windlass_testkit::TestCluster;

/// A thing.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "things.example.com", version = "v1", kind = "Thing")]
pub struct ThingSpec {}

struct Things;

impl Operator for Things {
    type Resource = Thing;

    fn desired(&self, thing: &Thing, _: &World) -> Outcome<NoStatus> {
        Desired::new().child(ConfigMap { metadata: named(thing.name_any()), ..Default::default() }).settled()
    }
}

fn app() -> App<Things> {
    windlass::operator(Things).owns::<ConfigMap>().validating(|_, _| Verdict::allow())
}

/// What a dashboard of kubebuilder's plugin asks for, word for word.
const KUBEBUILDER: [&str; 11] = [
    "controller_runtime_active_workers",
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_errors_total",
    "workqueue_depth",
    "workqueue_adds_total",
    "workqueue_queue_duration_seconds_bucket",
    "workqueue_work_duration_seconds_bucket",
    "workqueue_unfinished_work_seconds",
    "workqueue_retries_total",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
];

/// What else operators of others have.
const OTHERS: [&str; 21] = [
    "controller_runtime_terminal_reconcile_errors_total",
    "controller_runtime_reconcile_panics_total",
    "controller_runtime_reconcile_timeouts_total",
    "controller_runtime_reconcile_time_seconds_bucket",
    "controller_runtime_max_concurrent_reconciles",
    "workqueue_longest_running_processor_seconds",
    "rest_client_requests_total",
    "rest_client_request_duration_seconds_bucket",
    "leader_election_master_status",
    "leader_election_slowpath_total",
    "certwatcher_read_certificate_total",
    "certwatcher_read_certificate_errors_total",
    "controller_runtime_webhook_latency_seconds_bucket",
    "controller_runtime_webhook_requests_total",
    "controller_runtime_webhook_requests_in_flight",
    "controller_runtime_webhook_panics_total",
    "controller_runtime_conversion_webhook_panics_total",
    "process_virtual_memory_bytes",
    "process_open_fds",
    "process_max_fds",
    "process_start_time_seconds",
];

/// Families that have no series before something happens; the tests of the runtime let it happen, and name them.
const EVENTFUL: [&str; 4] =
    ["operator_hot_loops_total", "operator_switches_total", "operator_paused_resources", "operator_shards"];

/// The names of metrics in a question.
fn names(expression: &str) -> BTreeSet<String> {
    const WORDS: [&str; 7] = ["by", "and", "or", "unless", "sum", "min", "max"];
    let mut names = BTreeSet::new();
    let (mut word, mut depth, mut is_quoted, mut lists_labels) = (String::new(), 0, false, false);
    for letter in expression.chars().chain([' ']) {
        if is_quoted {
            is_quoted = letter != '"';
            continue;
        }
        if letter.is_ascii_alphanumeric() || letter == '_' || letter == '$' {
            word.push(letter);
            continue;
        }
        let ended = std::mem::take(&mut word);
        // A word before a bracket is a function; in braces, and after `by`, there are labels.
        let is_name = ended.starts_with(|first: char| first.is_ascii_alphabetic()) && letter != '(' && ended != "by";
        if is_name && depth == 0 && !lists_labels && !WORDS.contains(&ended.as_str()) {
            names.insert(ended.clone());
        }
        match letter {
            '"' => is_quoted = true,
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ')' => lists_labels = false,
            _ => lists_labels = lists_labels || ended == "by",
        }
    }
    names
}

#[test]
fn names_are_found_in_questions() {
    let rows = [
        (
            r#"sum by (a, b) (rate(x_total{job=~"$job", c="by y"}[5m])) / sum by (le) (y_bucket) > 0.2"#,
            vec!["x_total", "y_bucket"],
        ),
        ("absent(z{}) and on_call == 0", vec!["on_call", "z"]),
    ];
    for (expression, expected) in rows {
        assert_eq!(names(expression).into_iter().collect::<Vec<_>>(), expected, "{expression}");
    }
}

/// All questions in a dashboard or in rules.
fn questions(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, value)| match value.as_str().filter(|_| key == "expr") {
                Some(text) => vec![text.to_owned()],
                None => questions(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(questions).collect(),
        _ => Vec::new(),
    }
}

/// The names of the series in a scrape.
fn exported(text: &str) -> BTreeSet<String> {
    let series = text.lines().filter(|line| !line.starts_with('#'));
    series.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_that_is_asked_for_is_exported() {
    let (app, cluster) = (app(), TestCluster::start().await);
    let stop = CancellationToken::new();
    let config =
        ManagerConfig { leader: Some(LeaderConfig::new("default", app.name())), ..ManagerConfig::new(app.name()) };
    let mut manager = Manager::new(cluster.client(), config);
    let webhooks = Webhooks {
        registration: app.registration(Vec::new()),
        address: "127.0.0.1:0".parse().unwrap(),
        way: Way::Address { namespace: "default".into() },
    };
    let check = Health::default().check("webhooks", "are not served yet");
    let mut serving = webhooks.start(&manager.handle(), check, stop.clone()).await.unwrap();
    serving.ready().await;
    app.install(&mut manager, Namespaces::all());
    let metrics = manager.metrics().clone();
    let running = tokio::spawn(manager.run(stop.clone()));
    let thing = json!({"metadata": {"name": "t"}, "spec": {}});
    cluster.create::<Thing>(thing).await;
    cluster.until("t", |_: &ConfigMap| true).await;

    let text = metrics.render();
    let exported = exported(&text);
    let scope = Scope::of(&app, None);
    let rules = serde_json::to_value(alerts(&scope)).unwrap();
    let drawn = dashboard(&scope);
    let asked = questions(&rules).into_iter().chain(questions(&drawn));
    let mut asked: BTreeSet<String> = asked.flat_map(|question| names(&question)).collect();
    assert!(asked.len() > 25, "{asked:?}");
    asked.extend(KUBEBUILDER.into_iter().chain(OTHERS).map(str::to_owned));
    asked.retain(|name| !EVENTFUL.contains(&name.as_str()));
    let missing: Vec<_> = asked.difference(&exported).collect();
    assert!(missing.is_empty(), "{missing:?} are not in\n{text}");
    // The admission of the thing was counted.
    let webhook =
        r#"controller_runtime_webhook_requests_total{webhook="/validate-things-example-com-v1-thing",code="200"} "#;
    let counted = text.lines().find_map(|line| line.strip_prefix(webhook));
    assert!(counted.is_some_and(|count| count != "0"), "{text}");
    stop.cancel();
    running.await.unwrap().unwrap();
    serving.ended().await;
}

#[test]
fn the_dashboard_and_the_alerts_are_those_of_the_operator() {
    let scope = Scope::of(&app(), None);
    let (drawn, rules) = (dashboard(&scope), alerts(&scope));
    assert_eq!((&drawn["title"], &drawn["uid"]), (&json!("thing-operator"), &json!("thing-operator")));
    let panels = drawn["panels"].as_array().unwrap();
    let places: BTreeSet<String> = panels.iter().map(|panel| panel["gridPos"].to_string()).collect();
    assert_eq!(places.len(), panels.len(), "no panel lies on another");
    let group = &rules.groups[0];
    assert_eq!(group.name, "thing-operator");
    let unique: BTreeSet<&str> = group.rules.iter().map(|rule| rule.alert.as_str()).collect();
    assert_eq!(unique.len(), group.rules.len());
    let absent = group.rules.iter().find(|rule| rule.alert == "OperatorAbsent").unwrap();
    assert_eq!(absent.expr, r#"absent(controller_runtime_active_workers{controller=~"(thing)(@.+)?"})"#);
    let object = rules.in_kubernetes("thing-operator", "monitoring");
    assert_eq!((&object["kind"], &object["metadata"]["namespace"]), (&json!("PrometheusRule"), &json!("monitoring")));
    assert_eq!(object["spec"]["groups"][0]["name"], "thing-operator");
    assert!(Scope::of(&app(), Some("mine")).job == "mine");
}
