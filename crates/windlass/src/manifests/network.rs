//! How others come to the operator: metrics, webhooks, and nothing else.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Secret, Service, ServicePort, ServiceSpec};
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;
use windlass_runtime::webhook::Webhooks;

use super::{Extra, Maker, service_name, value};

/// The label of namespaces whose Pods may read metrics.
const METRICS_READERS: (&str, &str) = ("metrics", "enabled");

impl Maker<'_> {
    /// The Service of metrics and the policy.
    pub(super) fn network(&self) -> Vec<Value> {
        let mut all = Vec::new();
        if self.has(Extra::Metrics) {
            let name = format!("{}-metrics", self.name);
            all.push(value(&self.service(name, ("metrics", 8080), None)));
        }
        if self.has(Extra::NetworkPolicy) {
            all.push(value(&self.policy()));
        }
        all
    }

    /// A Service, an empty Secret for the keys, and the configurations that point to the Service.
    pub(super) fn webhooks(&self) -> Vec<Value> {
        if self.registration.is_empty() {
            return Vec::new();
        }
        let reach = self.reach();
        // An operator is ready when it has seen its resources, which may have to be converted by it first.
        let service = self.service(service_name(self.name), ("webhooks", 443), Some(true));
        let mut all = vec![value(&self.secret()), value(&service)];
        let labels = self.meta(None).labels;
        all.extend(self.registration.mutating(&reach, None).map(|mut configuration| {
            configuration.metadata.labels = labels.clone();
            value(&configuration)
        }));
        all.extend(self.registration.validating(&reach, None).map(|mut configuration| {
            configuration.metadata.labels = labels;
            value(&configuration)
        }));
        all
    }

    /// The place for the keys of webhooks, empty.
    pub(super) fn secret(&self) -> Secret {
        let name = Webhooks::secret_name(self.name);
        Secret { metadata: self.meta_of(name, Some(&self.options.namespace)), ..Secret::default() }
    }

    fn service(&self, name: String, (port, number): (&str, i32), publish_not_ready: Option<bool>) -> Service {
        let port = ServicePort {
            name: Some(port.into()),
            port: number,
            target_port: Some(IntOrString::String(port.into())),
            ..ServicePort::default()
        };
        Service {
            metadata: self.meta_of(name, Some(&self.options.namespace)),
            spec: Some(ServiceSpec {
                selector: Some(self.selector()),
                ports: Some(vec![port]),
                publish_not_ready_addresses: publish_not_ready,
                ..ServiceSpec::default()
            }),
            ..Service::default()
        }
    }

    /// Metrics from namespaces that say so, webhooks from anywhere: the API server has no labels. Probes come from the node,
    /// which policies do not bind; what the operator itself calls is not narrowed, since nobody knows the API server's address.
    fn policy(&self) -> NetworkPolicy {
        let to = |port: &str| NetworkPolicyPort {
            port: Some(IntOrString::String(port.into())),
            protocol: Some("TCP".into()),
            ..NetworkPolicyPort::default()
        };
        let (label, word) = METRICS_READERS;
        let readers = LabelSelector {
            match_labels: Some(BTreeMap::from([(label.to_owned(), word.to_owned())])),
            ..LabelSelector::default()
        };
        let reader = NetworkPolicyPeer { namespace_selector: Some(readers), ..NetworkPolicyPeer::default() };
        let metrics = NetworkPolicyIngressRule { from: Some(vec![reader]), ports: Some(vec![to("metrics")]) };
        let mut ingress = vec![metrics];
        if !self.registration.is_empty() {
            ingress.push(NetworkPolicyIngressRule { from: None, ports: Some(vec![to("webhooks")]) });
        }
        NetworkPolicy {
            metadata: self.meta(Some(&self.options.namespace)),
            spec: Some(NetworkPolicySpec {
                pod_selector: Some(self.label_selector()),
                policy_types: Some(vec!["Ingress".into()]),
                ingress: Some(ingress),
                ..NetworkPolicySpec::default()
            }),
        }
    }
}
