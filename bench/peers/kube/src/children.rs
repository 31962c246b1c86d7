//! What a Widget has below it.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Container, ContainerPort, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};

use crate::Widget;

pub(crate) fn config_map(widget: &Widget) -> ConfigMap {
    let data = [("text".to_owned(), widget.spec.text.clone())].into();
    ConfigMap { metadata: metadata(widget), data: Some(data), ..ConfigMap::default() }
}

pub(crate) fn deployment(widget: &Widget) -> Deployment {
    let labels = [("widget".to_owned(), widget.name_any())];
    let container = Container {
        name: "main".into(),
        image: Some("registry.example.com/bench/program:1.2.3".into()),
        ports: Some(vec![ContainerPort { name: Some("http".into()), container_port: 8080, ..ContainerPort::default() }]),
        ..Container::default()
    };
    let spec = DeploymentSpec {
        replicas: Some(widget.spec.replicas),
        selector: LabelSelector { match_labels: Some(labels.clone().into()), ..LabelSelector::default() },
        template: PodTemplateSpec {
            metadata: Some(ObjectMeta { labels: Some(labels.into()), ..ObjectMeta::default() }),
            spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
        },
        ..DeploymentSpec::default()
    };
    Deployment { metadata: metadata(widget), spec: Some(spec), ..Deployment::default() }
}

fn metadata(widget: &Widget) -> ObjectMeta {
    ObjectMeta {
        name: Some(widget.name_any()),
        namespace: widget.namespace(),
        owner_references: widget.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}
