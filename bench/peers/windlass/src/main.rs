//! Keeps a ConfigMap and a Deployment for each Widget, on Windlass's SDK.

use std::collections::BTreeMap;
use std::process::ExitCode;

use windlass::prelude::*;

/// A text, and programs that would use it.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "bench.example.com", version = "v1", kind = "Widget", status = WidgetStatus)]
pub struct WidgetSpec {
    /// The text.
    #[schema(max_length = 4096)]
    pub text: String,
    /// How many programs.
    #[schema(min = 0, default = 1)]
    pub replicas: i32,
}

/// What is known of a Widget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default)]
pub struct WidgetStatus {
    /// Whether everything is as declared.
    pub ready: bool,
}

struct Widgets;

impl Operator for Widgets {
    type Resource = Widget;

    fn desired(&self, widget: &Widget, _: &World) -> Outcome<WidgetStatus> {
        Desired::new()
            .child(config_map(widget))
            .child(deployment(widget))
            .status(WidgetStatus { ready: true })
            .settled()
    }
}

fn config_map(widget: &Widget) -> ConfigMap {
    let data = BTreeMap::from([("text".to_owned(), widget.spec.text.clone())]);
    ConfigMap { metadata: named(widget.name_any()), data: Some(data), ..ConfigMap::default() }
}

fn deployment(widget: &Widget) -> Deployment {
    let labels = BTreeMap::from([("widget".to_owned(), widget.name_any())]);
    let container = Container {
        name: "main".into(),
        image: Some("registry.example.com/bench/program:1.2.3".into()),
        ports: Some(vec![ContainerPort { name: Some("http".into()), container_port: 8080, ..ContainerPort::default() }]),
        ..Container::default()
    };
    let spec = DeploymentSpec {
        replicas: Some(widget.spec.replicas),
        selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
        template: PodTemplateSpec {
            metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
            spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
        },
        ..DeploymentSpec::default()
    };
    Deployment { metadata: named(widget.name_any()), spec: Some(spec), ..Deployment::default() }
}

fn main() -> ExitCode {
    windlass::operator(Widgets).owns::<ConfigMap>().owns::<Deployment>().main()
}
