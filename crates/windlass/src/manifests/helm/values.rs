//! What of a chart can be said otherwise, and what it says of itself.

use serde_json::{Value, json};

use super::super::{Extra, Maker, ManifestOptions, value};
use super::yaml::emit;
use super::{digest, split_image};
use crate::app::Program;

/// `Chart.yaml`.
pub(super) fn chart(program: &dyn Program, version: &str) -> String {
    let kinds: Vec<String> = program.crds().into_iter().map(|definition| definition.spec.names.kind).collect();
    emit(&json!({
        "apiVersion": "v2",
        "name": program.name(),
        "description": format!("The operator of {}.", kinds.join(", ")),
        "type": "application",
        "version": version,
        "appVersion": program.version().unwrap_or(version),
    }))
}

/// `values.yaml`: each value with what it means.
pub(super) fn values(program: &dyn Program, options: &ManifestOptions) -> String {
    let (repository, tag) = split_image(&options.image);
    let deployment = value(&Maker::new(program, options).deployment());
    let resources = &deployment["spec"]["template"]["spec"]["containers"][0]["resources"];
    let has = |extra: Extra| options.extras.contains(&extra);
    let image =
        json!({"image": {"repository": repository, "tag": tag, "digest": digest(&options.image), "pullPolicy": ""}});
    let has_webhooks = !program.registration(Vec::new()).is_empty();
    let entries: [(&str, Value); 16] = [
        ("The image to run; a digest stands instead of the tag.", image),
        ("Names of Secrets to pull it with, each as {name: …}.", json!({"imagePullSecrets": []})),
        ("How many replicas run: one works, the others stand by.", json!({"replicas": options.replicas})),
        (
            "Divides the work into this many parts, for all replicas to share; 0 is: one works.",
            json!({"shards": options.shards.unwrap_or(0)}),
        ),
        (
            "The namespaces whose resources are served; all if there are none. The operator has roles in these alone.",
            json!({"watchNamespaces": options.watch_namespaces}),
        ),
        ("What the container asks for and may use.", json!({"resources": resources})),
        ("Labels for every object.", json!({"labels": options.labels})),
        ("Where Pods may run, and what they carry.", json!({"nodeSelector": {}, "tolerations": [], "affinity": {}})),
        ("Annotations of the Pods.", json!({"podAnnotations": {}})),
        ("Further arguments of `run`.", json!({"extraArgs": []})),
        ("Annotations of the service account.", json!({"serviceAccount": {"annotations": {}}})),
        (
            "Definitions come with the release and change with it; they stay when it goes, with all resources.",
            json!({"crds": {"install": true, "keep": true}}),
        ),
        ("Functions that the API server asks.", json!({"webhooks": {"enabled": has_webhooks}})),
        ("The Service by which metrics are found.", json!({"metrics": {"service": has(Extra::Metrics)}})),
        (
            "Lets nothing reach the operator but webhooks, and readers of metrics in namespaces labelled metrics=enabled.",
            json!({"networkPolicy": {"enabled": has(Extra::NetworkPolicy)}}),
        ),
        (
            "Roles for people: who may view or edit a namespace may so the kinds in it.",
            json!({"kindRoles": {"enabled": has(Extra::KindRoles)}}),
        ),
    ];
    entries.iter().map(|(comment, value)| format!("# {comment}\n{}", emit(value))).collect()
}

/// `values.schema.json`: a value that does not exist is refused instead of passed over.
pub(super) fn schema(made: &str) -> String {
    let text = json!({"type": "string"});
    let flag = json!({"type": "boolean"});
    let (map, list) = (json!({"type": "object"}), json!({"type": "array"}));
    let texts = json!({"type": "array", "items": text});
    let of = |fields: Value| json!({"type": "object", "additionalProperties": false, "properties": fields});
    let schema = json!({
        "$comment": made,
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "image": of(json!({"repository": text, "tag": text, "digest": text,
                               "pullPolicy": {"enum": ["", "Always", "IfNotPresent", "Never"]}})),
            "imagePullSecrets": list,
            "replicas": {"type": "integer", "minimum": 0},
            "shards": {"type": "integer", "minimum": 0, "maximum": 256},
            "watchNamespaces": texts,
            "resources": map,
            "labels": {"type": "object", "additionalProperties": text},
            "nodeSelector": map, "tolerations": list, "affinity": map,
            "podAnnotations": map,
            "extraArgs": texts,
            "serviceAccount": of(json!({"annotations": map})),
            "crds": of(json!({"install": flag, "keep": flag})),
            "webhooks": of(json!({"enabled": flag})),
            "metrics": of(json!({"service": flag})),
            "networkPolicy": of(json!({"enabled": flag})),
            "kindRoles": of(json!({"enabled": flag})),
            "global": map,
        },
    });
    format!("{schema:#}\n")
}

/// What is said after an installation.
pub(super) fn notes(program: &dyn Program) -> String {
    let name = program.name();
    let kinds: Vec<String> = program.crds().into_iter().map(|definition| definition.spec.names.plural).collect();
    format!(
        "{name} is installed.\n\n  kubectl -n {{{{ $.Release.Namespace }}}} rollout status deployment/{name}\n  kubectl get {} -A\n",
        kinds.join(",")
    )
}
