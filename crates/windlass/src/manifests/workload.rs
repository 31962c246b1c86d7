//! The operator's own Pods.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EnvVar, HTTPGetAction, PodSecurityContext, PodSpec, PodTemplateSpec, Probe,
    ResourceRequirements, SeccompProfile, SecurityContext, TopologySpreadConstraint,
};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use windlass_core::names;

use super::{Maker, labels};

/// Longer than runs in progress may take to end, so that the lease is given back before the process is killed.
const TERMINATION_GRACE_SECONDS: i64 = 40;

impl Maker<'_> {
    pub(crate) fn deployment(&self) -> Deployment {
        let template = PodTemplateSpec {
            metadata: Some(ObjectMeta { labels: Some(self.pod_labels()), ..ObjectMeta::default() }),
            spec: Some(PodSpec {
                service_account_name: Some(self.name.into()),
                containers: vec![self.container()],
                termination_grace_period_seconds: Some(TERMINATION_GRACE_SECONDS),
                topology_spread_constraints: (self.options.replicas > 1).then(|| vec![self.spread()]),
                security_context: Some(PodSecurityContext {
                    run_as_non_root: Some(true),
                    seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".into(), localhost_profile: None }),
                    ..PodSecurityContext::default()
                }),
                ..PodSpec::default()
            }),
        };
        Deployment {
            metadata: self.meta(Some(&self.options.namespace)),
            spec: Some(DeploymentSpec {
                replicas: i32::try_from(self.options.replicas).ok(),
                selector: self.label_selector(),
                template,
                ..DeploymentSpec::default()
            }),
            ..Deployment::default()
        }
    }

    /// By the label of its own `windlass why` finds the Pods of operators.
    fn pod_labels(&self) -> BTreeMap<String, String> {
        let mut labels = labels(self.name, self.options);
        labels.insert(names::OPERATOR.to_owned(), self.name.to_owned());
        labels
    }

    /// With several replicas one at a time may be taken away.
    pub(super) fn disruption_budget(&self) -> Option<PodDisruptionBudget> {
        (self.options.replicas > 1).then(|| PodDisruptionBudget {
            metadata: self.meta(Some(&self.options.namespace)),
            spec: Some(PodDisruptionBudgetSpec {
                max_unavailable: Some(IntOrString::Int(1)),
                selector: Some(self.label_selector()),
                ..PodDisruptionBudgetSpec::default()
            }),
            ..PodDisruptionBudget::default()
        })
    }

    pub(super) fn label_selector(&self) -> LabelSelector {
        LabelSelector { match_labels: Some(self.selector()), ..LabelSelector::default() }
    }

    /// Replicas on one node would go together.
    fn spread(&self) -> TopologySpreadConstraint {
        TopologySpreadConstraint {
            max_skew: 1,
            topology_key: "kubernetes.io/hostname".into(),
            when_unsatisfiable: "ScheduleAnyway".into(),
            label_selector: Some(self.label_selector()),
            ..TopologySpreadConstraint::default()
        }
    }

    fn container(&self) -> Container {
        let mut args = vec!["run".to_owned()];
        args.push(self.options.shards.map_or("--leader-elect".to_owned(), |count| format!("--shards={count}")));
        if !self.options.watch_namespaces.is_empty() {
            args.push(format!("--watch-namespace={}", self.options.watch_namespaces.join(",")));
        }
        let mut ports = vec![port("metrics", 8080), port("probes", 8081)];
        if !self.registration.is_empty() {
            args.push("--webhooks=cluster".into());
            ports.push(port("webhooks", 9443));
        }
        Container {
            name: "operator".into(),
            image: Some(self.options.image.clone()),
            command: (!self.options.command.is_empty()).then(|| self.options.command.clone()),
            args: Some(args),
            env: self.image_name().map(|variable| vec![variable]),
            ports: Some(ports),
            liveness_probe: Some(probe("/healthz")),
            readiness_probe: Some(probe("/readyz")),
            resources: Some(resources()),
            security_context: Some(SecurityContext {
                allow_privilege_escalation: Some(false),
                read_only_root_filesystem: Some(true),
                capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add: None }),
                ..SecurityContext::default()
            }),
            ..Container::default()
        }
    }
}

impl Maker<'_> {
    /// An operator that carries a command into Pods of its own making has to know its image. `host` is none.
    fn image_name(&self) -> Option<EnvVar> {
        (self.carries && self.options.image != "host").then(|| EnvVar {
            name: "WINDLASS_OPERATOR_IMAGE".into(),
            value: Some(self.options.image.clone()),
            ..EnvVar::default()
        })
    }
}

fn resources() -> ResourceRequirements {
    let of = |name: &str, quantity: &str| (name.to_owned(), Quantity(quantity.into()));
    ResourceRequirements {
        requests: Some(BTreeMap::from([of("cpu", "10m"), of("memory", "32Mi")])),
        limits: Some(BTreeMap::from([of("memory", "256Mi")])),
        ..ResourceRequirements::default()
    }
}

fn port(name: &str, number: i32) -> ContainerPort {
    ContainerPort { name: Some(name.into()), container_port: number, ..ContainerPort::default() }
}

fn probe(path: &str) -> Probe {
    let http_get = HTTPGetAction {
        path: Some(path.into()),
        port: IntOrString::String("probes".into()),
        ..HTTPGetAction::default()
    };
    Probe { http_get: Some(http_get), period_seconds: Some(5), ..Probe::default() }
}
