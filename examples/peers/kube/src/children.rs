//! What a Memcached is made of.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, PodSpec, PodTemplateSpec, Probe, Service, ServicePort, ServiceSpec, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{Resource, ResourceExt};

use crate::resource::Memcached;

pub const NAME_LABEL: &str = "app.kubernetes.io/name";
pub const OWNER_LABEL: &str = "app.kubernetes.io/instance";
const PORT: i32 = 11211;
const DEFAULT_IMAGE: &str = "memcached:1.6";

pub fn deployment(memcached: &Memcached) -> Deployment {
    let container = Container {
        name: "memcached".into(),
        image: Some(memcached.spec.image.clone().unwrap_or_else(|| DEFAULT_IMAGE.into())),
        ports: Some(vec![ContainerPort {
            name: Some("memcached".into()),
            container_port: PORT,
            ..ContainerPort::default()
        }]),
        readiness_probe: Some(Probe {
            tcp_socket: Some(TCPSocketAction { port: IntOrString::Int(PORT), host: None }),
            initial_delay_seconds: Some(1),
            period_seconds: Some(2),
            ..Probe::default()
        }),
        ..Container::default()
    };
    let spec = DeploymentSpec {
        replicas: Some(memcached.spec.size),
        selector: LabelSelector { match_labels: Some(labels(memcached)), ..LabelSelector::default() },
        template: PodTemplateSpec {
            metadata: Some(ObjectMeta { labels: Some(labels(memcached)), ..ObjectMeta::default() }),
            spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
        },
        ..DeploymentSpec::default()
    };
    Deployment { metadata: metadata(memcached), spec: Some(spec), ..Deployment::default() }
}

/// Headless: a client of memcached spreads its keys over all nodes, so it has to see each of them.
pub fn service(memcached: &Memcached) -> Service {
    let port = ServicePort { name: Some("memcached".into()), port: PORT, ..ServicePort::default() };
    let spec = ServiceSpec {
        cluster_ip: Some("None".into()),
        selector: Some(labels(memcached)),
        ports: Some(vec![port]),
        ..ServiceSpec::default()
    };
    Service { metadata: metadata(memcached), spec: Some(spec), ..Service::default() }
}

fn metadata(memcached: &Memcached) -> ObjectMeta {
    ObjectMeta {
        name: Some(memcached.name_any()),
        namespace: memcached.namespace(),
        labels: Some(labels(memcached)),
        owner_references: Some(memcached.controller_owner_ref(&()).into_iter().collect()),
        ..ObjectMeta::default()
    }
}

pub fn labels(memcached: &Memcached) -> BTreeMap<String, String> {
    BTreeMap::from([
        (NAME_LABEL.to_owned(), "memcached".to_owned()),
        (OWNER_LABEL.to_owned(), memcached.name_any()),
    ])
}

pub fn selector(memcached: &Memcached) -> String {
    labels(memcached).iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}
