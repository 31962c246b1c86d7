//! Objects as JSON.

use serde_json::{Value, json};

/// The template of a Pod with the label `app`, running `image`.
pub(crate) fn template(app: &str, image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": image, "ports": [{"name": "http", "containerPort": 8080}]}]},
    })
}

/// A Deployment of that template.
pub(crate) fn deployment(name: &str, replicas: i32, image: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template(name, image)},
    })
}
