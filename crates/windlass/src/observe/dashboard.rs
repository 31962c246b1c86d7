//! The dashboard of an operator, for Grafana.

use serde_json::Value;

use super::Scope;
use super::grafana::{Dashboard, Picture, Variable};

/// What can be chosen at the top, as a part of each question.
const LOOP: &str = r#"job=~"$job", namespace=~"$namespace", controller=~"$controller""#;
const PROCESS: &str = r#"job=~"$job", namespace=~"$namespace""#;

/// The dashboard of an operator.
pub fn dashboard(scope: &Scope) -> Value {
    let kinds = scope.kinds.join(", ");
    let description =
        format!("The operator {} of {kinds}: its loop, its queue, its calls, its process.", scope.operator);
    let mut pictures = the_loop();
    pictures.extend(the_queue());
    pictures.extend(the_cluster());
    pictures.extend(the_resources());
    if scope.has_webhooks {
        pictures.extend(the_webhooks());
    }
    pictures.extend(the_process());
    let dashboard = Dashboard::new(scope.operator.clone(), description, variables(scope), pictures);
    serde_json::to_value(dashboard).expect("texts and numbers can be written as JSON")
}

fn variables(scope: &Scope) -> Vec<Variable> {
    let metric = "controller_runtime_reconcile_total";
    let job = format!("label_values({metric}, job)");
    let namespace = format!(r#"label_values({metric}{{job=~"$job"}}, namespace)"#);
    let controller = format!(r#"label_values({metric}{{job=~"$job"}}, controller)"#);
    vec![
        Variable::source(),
        Variable::label("job", "Job", job, Some(format!("/{}/", scope.job))),
        Variable::label("namespace", "Namespace", namespace, None),
        Variable::label("controller", "Controller", controller, None),
    ]
}

fn picture(
    title: &'static str,
    about: &'static str,
    unit: &'static str,
    questions: impl IntoIterator<Item = (String, &'static str)>,
) -> Picture {
    Picture { title, about, unit, questions: questions.into_iter().collect() }
}

fn rate(metric: &str, by: &str, labels: &str) -> String {
    format!("sum by ({by}) (rate({metric}{{{labels}}}[$__rate_interval]))")
}

fn quantile(quantile: &str, metric: &str, by: &str, labels: &str) -> String {
    format!("histogram_quantile({quantile}, sum by (le, {by}) (rate({metric}_bucket{{{labels}}}[$__rate_interval])))")
}

fn the_loop() -> Vec<Picture> {
    let time = "controller_runtime_reconcile_time_seconds";
    vec![
        picture(
            "Runs",
            "Looks at resources, by how they ended.",
            "ops",
            [(rate("controller_runtime_reconcile_total", "controller, result", LOOP), "{{controller}} {{result}}")],
        ),
        picture(
            "Runs that failed",
            "Failures, those that wait for a change, panics, and runs over their deadline.",
            "ops",
            [
                (rate("controller_runtime_reconcile_errors_total", "controller", LOOP), "{{controller}} failed"),
                (
                    rate("controller_runtime_terminal_reconcile_errors_total", "controller", LOOP),
                    "{{controller}} invalid",
                ),
                (rate("controller_runtime_reconcile_panics_total", "controller", LOOP), "{{controller}} panicked"),
                (rate("controller_runtime_reconcile_timeouts_total", "controller", LOOP), "{{controller}} timed out"),
            ],
        ),
        picture(
            "Time of a run",
            "The median, and what one of a hundred runs exceeds.",
            "s",
            [
                (quantile("0.5", time, "controller", LOOP), "{{controller}} p50"),
                (quantile("0.99", time, "controller", LOOP), "{{controller}} p99"),
            ],
        ),
        picture(
            "Workers",
            "How many are at work, and how many there are.",
            "short",
            [
                (
                    format!("sum by (controller) (controller_runtime_active_workers{{{LOOP}}})"),
                    "{{controller}} at work",
                ),
                (
                    format!("sum by (controller) (controller_runtime_max_concurrent_reconciles{{{LOOP}}})"),
                    "{{controller}} all",
                ),
            ],
        ),
    ]
}

fn the_queue() -> Vec<Picture> {
    vec![
        picture(
            "In line",
            "Resources that wait for a worker.",
            "short",
            [(format!("sum by (controller) (workqueue_depth{{{LOOP}}})"), "{{controller}}")],
        ),
        picture(
            "Added and tried again",
            "What comes into line, and what comes there because it failed.",
            "ops",
            [
                (rate("workqueue_adds_total", "controller", LOOP), "{{controller}} added"),
                (rate("workqueue_retries_total", "controller", LOOP), "{{controller}} again"),
            ],
        ),
        picture(
            "Time in line and at work",
            "What one of a hundred exceeds.",
            "s",
            [
                (quantile("0.99", "workqueue_queue_duration_seconds", "controller", LOOP), "{{controller}} in line"),
                (quantile("0.99", "workqueue_work_duration_seconds", "controller", LOOP), "{{controller}} at work"),
            ],
        ),
        picture(
            "Work in progress",
            "How long the longest run goes on, and all of them together.",
            "s",
            [
                (
                    format!("max by (controller) (workqueue_longest_running_processor_seconds{{{LOOP}}})"),
                    "{{controller}} longest",
                ),
                (format!("sum by (controller) (workqueue_unfinished_work_seconds{{{LOOP}}})"), "{{controller}} all"),
            ],
        ),
    ]
}

fn the_cluster() -> Vec<Picture> {
    vec![
        picture(
            "Calls to the API",
            "By the code of the answer.",
            "reqps",
            [(rate("rest_client_requests_total", "code, method", PROCESS), "{{method}} {{code}}")],
        ),
        picture(
            "Time of calls",
            "What one of a hundred exceeds, by verb.",
            "s",
            [(quantile("0.99", "rest_client_request_duration_seconds", "verb", PROCESS), "{{verb}}")],
        ),
        picture(
            "Watches that fail",
            "What is not up, and how often watches fail.",
            "short",
            [
                (format!("operator_watch_up{{{PROCESS}}} == 0"), "{{watch}} is down"),
                (rate("operator_watch_errors_total", "watch", PROCESS), "{{watch}} failures"),
            ],
        ),
        picture(
            "Replicas",
            "Who leads, and who has how many shards.",
            "short",
            [
                (format!("leader_election_master_status{{{PROCESS}}}"), "{{pod}} leads"),
                (format!("operator_shards{{{PROCESS}}}"), "{{pod}} shards"),
            ],
        ),
    ]
}

fn the_resources() -> Vec<Picture> {
    vec![
        picture(
            "Paused resources",
            "Those that nothing is done about.",
            "short",
            [(format!("sum by (controller) (operator_paused_resources{{{LOOP}}})"), "{{controller}}")],
        ),
        picture(
            "Loops and switches",
            "Fields that two writers fight over, and people who force or restart.",
            "short",
            [
                (
                    format!("sum by (kind) (increase(operator_hot_loops_total{{{PROCESS}}}[$__rate_interval]))"),
                    "loop over {{kind}}",
                ),
                (
                    format!(
                        "sum by (controller, switch) (increase(operator_switches_total{{{LOOP}}}[$__rate_interval]))"
                    ),
                    "{{controller}} {{switch}}",
                ),
            ],
        ),
    ]
}

fn the_webhooks() -> Vec<Picture> {
    vec![
        picture(
            "Webhooks",
            "Requests by code, and panics.",
            "reqps",
            [
                (rate("controller_runtime_webhook_requests_total", "webhook, code", PROCESS), "{{webhook}} {{code}}"),
                (rate("controller_runtime_webhook_panics_total", "job", PROCESS), "panics"),
            ],
        ),
        picture(
            "Time of webhooks",
            "What one of a hundred exceeds; the API server waits for them.",
            "s",
            [(quantile("0.99", "controller_runtime_webhook_latency_seconds", "webhook", PROCESS), "{{webhook}}")],
        ),
    ]
}

fn the_process() -> Vec<Picture> {
    vec![
        picture(
            "Processor",
            "In cores.",
            "short",
            [(format!("rate(process_cpu_seconds_total{{{PROCESS}}}[$__rate_interval])"), "{{pod}}")],
        ),
        picture("Memory", "Resident.", "bytes", [(format!("process_resident_memory_bytes{{{PROCESS}}}"), "{{pod}}")]),
        picture(
            "Open files",
            "Files and connections.",
            "short",
            [(format!("process_open_fds{{{PROCESS}}}"), "{{pod}}")],
        ),
    ]
}
