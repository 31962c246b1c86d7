//! What a cluster needs to run an operator, as values.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, HTTPGetAction, Namespace, PodSecurityContext, PodSpec, PodTemplateSpec,
    Probe, ResourceRequirements, SeccompProfile, Secret, SecurityContext, Service, ServiceAccount, ServicePort,
    ServiceSpec,
};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;
use serde_json::Value;
use windlass_core::names;
use windlass_runtime::webhook::{Reach, Registration, Webhooks};

use crate::app::Program;
use crate::rbac::{leader_rules, secret_rules, trust_rules, visitor_rules};

/// Longer than runs in progress may take to end, so that the lease is given back before the process is killed.
const TERMINATION_GRACE_SECONDS: i64 = 40;

/// How an operator is to be run on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestOptions {
    /// The namespace of the operator itself.
    pub namespace: String,
    /// The image to run.
    pub image: String,
    /// The command in the image; the image's own if it is empty.
    pub command: Vec<String>,
    /// The one namespace whose resources are served; all if it is not said.
    pub watch_namespace: Option<String>,
}

impl ManifestOptions {
    /// A namespace called after the operator, with `-system`, and an image of the operator's name.
    pub fn of(program: &dyn Program) -> Self {
        let stem = program.name().trim_end_matches("-operator");
        Self {
            namespace: format!("{stem}-system"),
            image: format!("{}:latest", program.name()),
            command: Vec::new(),
            watch_namespace: None,
        }
    }
}

/// The name of the Service by which the API server comes to the webhooks of an operator.
pub(crate) fn service_name(operator: &str) -> String {
    format!("{operator}-webhook")
}

/// Namespace, definitions, permissions, Deployment and webhooks, in the order in which to apply them.
pub(crate) fn all(program: &dyn Program, options: &ManifestOptions) -> Vec<Value> {
    let maker = Maker::new(program, options);
    let mut all = vec![value(&maker.namespace())];
    all.extend(maker.registration.definitions(&maker.reach(), None).iter().map(value));
    all.push(value(&ServiceAccount { metadata: maker.meta(Some(&options.namespace)), ..ServiceAccount::default() }));
    all.extend(maker.permissions(program.rules()));
    all.push(value(&maker.deployment()));
    all.extend(maker.webhooks());
    all
}

/// The definitions of the kinds, as a cluster that the operator runs in knows them.
pub(crate) fn definitions(program: &dyn Program) -> Vec<CustomResourceDefinition> {
    let options = ManifestOptions::of(program);
    let maker = Maker::new(program, &options);
    maker.registration.definitions(&maker.reach(), None)
}

/// What a cluster needs for an operator that runs outside of it: definitions, an account and its permissions, and a place
/// for the keys of webhooks. The operator itself says where its webhooks are (`run --webhooks=local`).
pub(crate) fn visiting(program: &dyn Program, options: &ManifestOptions) -> Vec<Value> {
    let maker = Maker::new(program, options);
    let mut all = vec![value(&maker.namespace())];
    all.extend(maker.registration.chains.iter().map(|chain| value(&chain.definition())));
    all.push(value(&ServiceAccount { metadata: maker.meta(Some(&options.namespace)), ..ServiceAccount::default() }));
    all.extend(maker.permissions(program.rules()));
    if !maker.registration.is_empty() {
        let name = format!("{}-visiting", program.name());
        all.extend(maker.cluster_role(&name, visitor_rules(&maker.registration)));
        all.push(value(&maker.secret()));
    }
    all
}

/// The permissions alone.
pub(crate) fn permissions(program: &dyn Program, options: &ManifestOptions) -> Vec<Value> {
    Maker::new(program, options).permissions(program.rules())
}

struct Maker<'a> {
    name: &'a str,
    options: &'a ManifestOptions,
    registration: Registration,
}

impl<'a> Maker<'a> {
    fn new(program: &'a dyn Program, options: &'a ManifestOptions) -> Self {
        Self {
            name: program.name(),
            options,
            registration: program.registration(options.watch_namespace.iter().cloned().collect()),
        }
    }

    fn reach(&self) -> Reach {
        Reach::Service { namespace: self.options.namespace.clone(), name: service_name(self.name) }
    }

    /// A Service, an empty Secret for the keys, and the configurations that point to the Service.
    fn webhooks(&self) -> Vec<Value> {
        if self.registration.is_empty() {
            return Vec::new();
        }
        let (namespace, reach) = (Some(self.options.namespace.as_str()), self.reach());
        let port = ServicePort {
            name: Some("webhooks".into()),
            port: 443,
            target_port: Some(IntOrString::String("webhooks".into())),
            ..ServicePort::default()
        };
        let service = Service {
            metadata: self.meta_of(service_name(self.name), namespace),
            spec: Some(ServiceSpec {
                selector: Some(self.labels()),
                ports: Some(vec![port]),
                // An operator is ready when it has seen its resources, which may have to be converted by it first.
                publish_not_ready_addresses: Some(true),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        };
        let mut all = vec![value(&self.secret()), value(&service)];
        all.extend(self.registration.mutating(&reach, None).map(|mut configuration| {
            configuration.metadata.labels = Some(self.labels());
            value(&configuration)
        }));
        all.extend(self.registration.validating(&reach, None).map(|mut configuration| {
            configuration.metadata.labels = Some(self.labels());
            value(&configuration)
        }));
        all
    }

    /// The place for the keys of webhooks, empty.
    fn secret(&self) -> Secret {
        let name = Webhooks::secret_name(self.name);
        Secret { metadata: self.meta_of(name, Some(&self.options.namespace)), ..Secret::default() }
    }

    fn meta(&self, namespace: Option<&str>) -> ObjectMeta {
        self.meta_of(self.name.to_owned(), namespace)
    }

    fn meta_of(&self, name: String, namespace: Option<&str>) -> ObjectMeta {
        let namespace = namespace.map(Into::into);
        ObjectMeta { name: Some(name), namespace, labels: Some(self.labels()), ..ObjectMeta::default() }
    }

    fn labels(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(names::APP_NAME.to_owned(), self.name.to_owned())])
    }

    /// By the second label `windlass why` finds the Pods of operators.
    fn pod_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.labels();
        labels.insert(names::OPERATOR.to_owned(), self.name.to_owned());
        labels
    }

    fn namespace(&self) -> Namespace {
        Namespace { metadata: self.meta_of(self.options.namespace.clone(), None), ..Namespace::default() }
    }

    fn permissions(&self, rules: Vec<PolicyRule>) -> Vec<Value> {
        let own_namespace = self.options.namespace.as_str();
        let mut all = match &self.options.watch_namespace {
            Some(namespace) => self.role(self.name, namespace, rules),
            None => self.cluster_role(self.name, rules),
        };
        all.extend(self.role(&format!("{}-leader", self.name), own_namespace, leader_rules()));
        if !self.registration.is_empty() {
            let name = format!("{}-webhooks", self.name);
            all.extend(self.role(&name, own_namespace, secret_rules(&Webhooks::secret_name(self.name))));
            all.extend(self.cluster_role(&name, trust_rules(&self.registration)));
        }
        all
    }

    fn cluster_role(&self, name: &str, rules: Vec<PolicyRule>) -> Vec<Value> {
        let metadata = self.meta_of(name.to_owned(), None);
        let role = ClusterRole { metadata: metadata.clone(), rules: Some(rules), ..ClusterRole::default() };
        let binding = ClusterRoleBinding {
            metadata,
            role_ref: role_ref("ClusterRole", name),
            subjects: Some(vec![self.subject()]),
        };
        vec![value(&role), value(&binding)]
    }

    fn role(&self, name: &str, namespace: &str, rules: Vec<PolicyRule>) -> Vec<Value> {
        let metadata = self.meta_of(name.to_owned(), Some(namespace));
        let role = Role { metadata: metadata.clone(), rules: Some(rules) };
        let binding = RoleBinding { metadata, role_ref: role_ref("Role", name), subjects: Some(vec![self.subject()]) };
        vec![value(&role), value(&binding)]
    }

    fn subject(&self) -> Subject {
        Subject {
            kind: "ServiceAccount".into(),
            name: self.name.into(),
            namespace: Some(self.options.namespace.clone()),
            api_group: None,
        }
    }

    fn deployment(&self) -> Deployment {
        let template = PodTemplateSpec {
            metadata: Some(ObjectMeta { labels: Some(self.pod_labels()), ..ObjectMeta::default() }),
            spec: Some(PodSpec {
                service_account_name: Some(self.name.into()),
                containers: vec![self.container()],
                termination_grace_period_seconds: Some(TERMINATION_GRACE_SECONDS),
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
                replicas: Some(1),
                selector: LabelSelector { match_labels: Some(self.labels()), ..LabelSelector::default() },
                template,
                ..DeploymentSpec::default()
            }),
            ..Deployment::default()
        }
    }

    fn container(&self) -> Container {
        let mut args = vec!["run".to_owned(), "--leader-elect".to_owned()];
        args.extend(self.options.watch_namespace.iter().map(|namespace| format!("--watch-namespace={namespace}")));
        let mut ports = vec![port("metrics", 8080), port("probes", 8081)];
        if !self.registration.is_empty() {
            args.push("--webhooks=cluster".into());
            ports.push(port("webhooks", 9443));
        }
        let resources = |cpu: &str, memory: &str| {
            BTreeMap::from([("cpu".to_owned(), Quantity(cpu.into())), ("memory".to_owned(), Quantity(memory.into()))])
        };
        Container {
            name: "operator".into(),
            image: Some(self.options.image.clone()),
            command: (!self.options.command.is_empty()).then(|| self.options.command.clone()),
            args: Some(args),
            ports: Some(ports),
            liveness_probe: Some(probe("/healthz")),
            readiness_probe: Some(probe("/readyz")),
            resources: Some(ResourceRequirements {
                requests: Some(resources("10m", "32Mi")),
                limits: Some(BTreeMap::from([("memory".to_owned(), Quantity("256Mi".into()))])),
                ..ResourceRequirements::default()
            }),
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

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: Some("rbac.authorization.k8s.io".into()), kind: kind.into(), name: name.into() }
}

pub(crate) fn value<T: Serialize>(object: &T) -> Value {
    let mut value = serde_json::to_value(object).expect("objects of the API can be written as JSON");
    drop_zero_fractions(&mut value);
    value
}

/// The limits of a schema are floats; people write `16`, not `16.0`.
fn drop_zero_fractions(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(drop_zero_fractions),
        Value::Array(items) => items.iter_mut().for_each(drop_zero_fractions),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() < f64::from(u32::MAX) {
                *value = Value::from(float as i64);
            }
        }
        _ => {}
    }
}
