//! Manifests for kustomize: a base that is made anew each time, and an overlay to begin with.

use serde_json::{Value, json};

use super::output::{File, OutputError, yaml};
use super::{ManifestOptions, all};
use crate::app::Program;

/// The first line of what is made anew each time.
pub(super) const MARK: &str = "manifests --format kustomize";
/// The folder that belongs to the command.
pub(super) const BASE: &str = "base";

/// The files of a base and an overlay.
pub(super) fn files(program: &dyn Program, options: &ManifestOptions) -> Result<Vec<File>, OutputError> {
    let header = format!("# Made by `{} {MARK}`, and made anew by it: change overlays, not this.\n", program.name());
    let mut files = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for object in all(program, options) {
        let name = file_name(&object);
        files.push(File::new(format!("{BASE}/{name}"), format!("{header}{}", yaml(&[object])?)));
        names.push(name);
    }
    let base = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": names,
    });
    files.push(File::new(format!("{BASE}/kustomization.yaml"), format!("{header}{}", yaml(&[base])?)));
    files.push(File::example("overlays/example/kustomization.yaml", overlay(program, options)?));
    Ok(files)
}

/// A name that says what is in the file, and that no other object has.
fn file_name(object: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
    let metadata = &object["metadata"];
    let place = match word(&metadata["namespace"]) {
        namespace if namespace.is_empty() => namespace,
        namespace => format!("{namespace}-"),
    };
    format!("{}-{place}{}.yaml", word(&object["kind"]), word(&metadata["name"]))
}

/// What people change first. The namespace is not among it: names of it are in bindings and webhooks, too, where kustomize
/// does not look for them.
fn overlay(program: &dyn Program, options: &ManifestOptions) -> Result<String, OutputError> {
    let (repository, tag) = super::helm::split_image(&options.image);
    let name = program.name();
    let overlay = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [format!("../../{BASE}")],
        "images": [{"name": repository, "newName": repository, "newTag": tag}],
        "replicas": [{"name": name, "count": 2}],
        "patches": [{
            "target": {"kind": "Deployment", "name": name},
            "patch": "- op: replace\n  path: /spec/template/spec/containers/0/resources/limits/memory\n  value: 512Mi\n",
        }],
    });
    Ok(format!(
        "# An example to begin with; it is yours. Apply it with: kubectl apply -k overlays/example\n{}",
        yaml(&[overlay])?
    ))
}
