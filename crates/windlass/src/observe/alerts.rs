//! The alerts of an operator, for Prometheus.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;
use windlass_core::names;

use super::Scope;
use crate::manifests;

/// A file of rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AlertRules {
    /// The groups of rules.
    pub groups: Vec<AlertGroup>,
}

/// Rules that are looked at together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AlertGroup {
    /// The name.
    pub name: String,
    /// The rules.
    pub rules: Vec<Alert>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alert {
    /// The name.
    pub alert: String,
    /// When it holds.
    pub expr: String,
    /// For how long, before it is told.
    #[serde(rename = "for")]
    pub hold: &'static str,
    /// How bad it is.
    pub labels: BTreeMap<&'static str, String>,
    /// What it means, and what to do.
    pub annotations: BTreeMap<&'static str, String>,
}

/// The same as an object of the Prometheus operator.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PrometheusRule<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: ObjectMeta,
    spec: &'a AlertRules,
}

impl AlertRules {
    /// The same as a PrometheusRule of `operator` in `namespace`.
    pub fn in_kubernetes(&self, operator: &str, namespace: &str) -> Value {
        let labels = [(names::APP_NAME.to_owned(), operator.to_owned())].into();
        manifests::value(&PrometheusRule {
            api_version: "monitoring.coreos.com/v1",
            kind: "PrometheusRule",
            metadata: ObjectMeta {
                name: Some(operator.to_owned()),
                namespace: Some(namespace.to_owned()),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            spec: self,
        })
    }
}

/// What a rule is made of.
struct Rule {
    name: &'static str,
    expr: String,
    hold: &'static str,
    severity: &'static str,
    summary: &'static str,
    advice: &'static str,
}

/// The alerts of an operator.
pub fn alerts(scope: &Scope) -> AlertRules {
    let (loops, process) = (format!(r#"controller=~"{}""#, scope.controllers()), format!(r#"job=~"{}""#, scope.job));
    let mut rules = of_the_loop(&loops);
    rules.extend(of_the_queue(&loops));
    rules.extend(of_the_process(&process, &scope.operator));
    if scope.has_webhooks {
        rules.push(of_webhooks(&process));
    }
    let alert = |rule: Rule| Alert {
        alert: rule.name.to_owned(),
        expr: rule.expr,
        hold: rule.hold,
        labels: BTreeMap::from([("severity", rule.severity.to_owned()), ("operator", scope.operator.clone())]),
        annotations: BTreeMap::from([
            ("summary", format!("{}: {}", scope.operator, rule.summary)),
            ("description", rule.advice.to_owned()),
        ]),
    };
    AlertRules {
        groups: vec![AlertGroup { name: scope.operator.clone(), rules: rules.into_iter().map(alert).collect() }],
    }
}

fn of_the_loop(loops: &str) -> Vec<Rule> {
    let by = "sum by (controller, namespace)";
    vec![
        Rule {
            name: "OperatorAbsent",
            expr: format!("absent(controller_runtime_active_workers{{{loops}}})"),
            hold: "10m",
            severity: "critical",
            summary: "nobody looks after its resources",
            advice: "No process of the operator is scraped. Look at its Pods, then at the scraper.",
        },
        Rule {
            name: "OperatorReconcileErrors",
            expr: format!(
                "{by} (rate(controller_runtime_reconcile_errors_total{{{loops}}}[10m])) \
                 / {by} (rate(controller_runtime_reconcile_total{{{loops}}}[10m])) > 0.2"
            ),
            hold: "15m",
            severity: "warning",
            summary: "one run of five fails",
            advice: "`windlass why KIND/NAME` of a resource that is not ready says what fails; so does the operator's log.",
        },
        Rule {
            name: "OperatorReconcilePanics",
            expr: format!("{by} (increase(controller_runtime_reconcile_panics_total{{{loops}}}[15m])) > 0"),
            hold: "0m",
            severity: "warning",
            summary: "a run panicked",
            advice: "A defect of the operator. The resource has a condition with the reason ReconcilePanicked.",
        },
        Rule {
            name: "OperatorReconcileTimeouts",
            expr: format!("{by} (increase(controller_runtime_reconcile_timeouts_total{{{loops}}}[15m])) > 0"),
            hold: "0m",
            severity: "warning",
            summary: "a run was ended at its deadline",
            advice: "Something that the operator waits for does not answer. The resource has a condition with the reason ReconcileTimedOut.",
        },
    ]
}

fn of_the_queue(loops: &str) -> Vec<Rule> {
    let by = "sum by (controller, namespace)";
    vec![
        Rule {
            name: "OperatorRunStuck",
            expr: format!(
                "max by (controller, namespace, pod) (workqueue_longest_running_processor_seconds{{{loops}}}) > 240"
            ),
            hold: "5m",
            severity: "warning",
            summary: "a run goes on for minutes",
            advice: "One worker is lost to the others while it lasts.",
        },
        Rule {
            name: "OperatorQueueSlow",
            expr: format!(
                "histogram_quantile(0.9, sum by (le, controller, namespace) \
                 (rate(workqueue_queue_duration_seconds_bucket{{{loops}}}[10m]))) > 60"
            ),
            hold: "15m",
            severity: "warning",
            summary: "resources wait for more than a minute",
            advice: "More comes into line than the workers can do: more workers, shards, or fewer changes.",
        },
        Rule {
            name: "OperatorResourcesPaused",
            expr: format!("{by} (operator_paused_resources{{{loops}}}) > 0"),
            hold: "24h",
            severity: "info",
            summary: "resources are paused for a day",
            advice: "Nothing is done about them. Take the annotation windlass.dev/paused away when the reason for it is gone.",
        },
    ]
}

fn of_the_process(process: &str, operator: &str) -> Vec<Rule> {
    vec![
        Rule {
            name: "OperatorWatchDown",
            expr: format!("min by (watch, namespace, pod) (operator_watch_up{{{process}}}) == 0"),
            hold: "5m",
            severity: "critical",
            summary: "a watch is down, so changes are not seen",
            advice: "/readyz of the operator says why, and which permission to add if that is it.",
        },
        Rule {
            name: "OperatorHotLoop",
            expr: format!("sum by (kind, namespace) (increase(operator_hot_loops_total{{{process}}}[15m])) > 0"),
            hold: "0m",
            severity: "warning",
            summary: "a field is changed to and fro",
            advice: "The resource has the condition Degraded with the reason HotLoop and the field. Let only one of the two set it.",
        },
        Rule {
            name: "OperatorNoLeader",
            expr: format!(r#"max by (name, namespace) (leader_election_master_status{{name="{operator}"}}) == 0"#),
            hold: "2m",
            severity: "critical",
            summary: "no replica leads",
            advice: "Replicas run, but none has the lease: look at the Lease and at the permission to change it.",
        },
        Rule {
            name: "OperatorApiErrors",
            expr: format!(
                r#"sum by (namespace, pod) (rate(rest_client_requests_total{{{process}, code=~"5..|<error>"}}[10m])) / sum by (namespace, pod) (rate(rest_client_requests_total{{{process}}}[10m])) > 0.05"#
            ),
            hold: "10m",
            severity: "warning",
            summary: "one call of twenty to the API fails",
            advice: "The API server, or the way to it, is in trouble.",
        },
    ]
}

fn of_webhooks(process: &str) -> Rule {
    Rule {
        name: "OperatorWebhookErrors",
        expr: format!(
            r#"sum by (webhook, namespace) (rate(controller_runtime_webhook_requests_total{{{process}, code=~"5.."}}[10m])) > 0"#
        ),
        hold: "5m",
        severity: "warning",
        summary: "a webhook fails",
        advice: "What it guards cannot be changed while it does, unless its failures are ignored. The operator's log says why.",
    }
}
