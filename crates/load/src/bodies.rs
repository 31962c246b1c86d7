//! The objects of the load: a custom resource of about 1.4 KB, as operators have them.

use clap::ValueEnum;
use serde_json::{Value, json};

/// What is written and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A custom resource with a small schema.
    Widget,
    /// A ConfigMap.
    ConfigMap,
}

impl Kind {
    /// The path of the collection.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Widget => "/apis/load.example.com/v1/namespaces/default/widgets",
            Self::ConfigMap => "/api/v1/namespaces/default/configmaps",
        }
    }

    /// The text of the objects, so that to write one takes no time of the processor that the server shares.
    pub(crate) fn template(self) -> Template {
        Template(self.object(NAME, ROUND).to_string())
    }

    fn object(self, name: &str, round: usize) -> Value {
        let labels = json!({"app.kubernetes.io/name": "load", "app.kubernetes.io/instance": name});
        let annotations = json!({"load.example.com/note": filler(200)});
        let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
        match self {
            Self::Widget => json!({
                "apiVersion": "load.example.com/v1", "kind": "Widget", "metadata": metadata,
                "spec": {
                    "size": round, "image": "registry.example.com/load/widget:1.2.3",
                    "items": (0..8).map(|index| json!({"name": format!("item-{index}"), "text": filler(60)})).collect::<Vec<_>>(),
                },
            }),
            Self::ConfigMap => json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                "data": {"round": round.to_string(), "text": filler(800)},
            }),
        }
    }
}

/// What stands for the name and the round in a template.
const NAME: &str = "@name@";
const ROUND: usize = 918_273_645;

/// The text of an object, but for its name and round.
pub(crate) struct Template(String);

impl Template {
    /// The object `name`; `round` is all that changes between updates.
    pub(crate) fn body(&self, name: &str, round: usize) -> String {
        self.0.replace(NAME, name).replace(&ROUND.to_string(), &round.to_string())
    }
}

/// The definition of the custom kind `plural`.
pub(crate) fn definition(group: &str, plural: &str, kind: &str) -> Value {
    let text = json!({"type": "string", "maxLength": 4096});
    let item = json!({"type": "object", "required": ["name"], "properties": {"name": text, "text": text}});
    let spec = json!({
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 0}, "image": text,
            "items": {"type": "array", "maxItems": 100, "items": item,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

fn filler(length: usize) -> String {
    "the quick brown fox jumps over the lazy dog ".chars().cycle().take(length).collect()
}
