//! The part of a bundle that catalogs and managers of others read: `registry+v1`.

use serde_json::{Value, json};

use super::description::{Api, provided, required};
use super::{Standing, webhooks};
use crate::app::Program;
use crate::capability::capability;
use crate::manifests::{self, File, Maker, ManifestOptions, OutputError, yaml};
use crate::rbac::{self, Part, Scope, rules};

const ANNOTATION: &str = "operators.operatorframework.io.bundle.";
/// The oldest Kubernetes whose API has all that is used: rules in definitions are stable from this one on.
const KUBERNETES_MIN: &str = "1.29.0";

/// Why an operator cannot be in a bundle of this form, if so.
pub(super) fn why_not(program: &dyn Program) -> Option<String> {
    let conditional = program.registration(Vec::new()).hooks.into_iter().find(|hook| !hook.match_conditions.is_empty());
    conditional.map(|hook| {
        format!(
            "the webhook {} is asked under a condition (`Hook::when`), for which this form has no place",
            hook.path()
        )
    })
}

/// The files of `manifests` and `metadata`.
pub(super) fn files(
    program: &dyn Program,
    options: &ManifestOptions,
    standing: &Standing,
) -> Result<Vec<File>, OutputError> {
    let mut files = Vec::new();
    for (definition, mut value) in program.crds().iter().zip(Maker::new(program, options).definitions()) {
        let name = definition.metadata.name.as_deref().unwrap_or_default();
        // The manager says where the conversion is: see `webhooks`.
        if let Some(spec) = value["spec"].as_object_mut() {
            spec.remove("conversion");
        }
        files.push(File::new(format!("manifests/{name}.crd.yaml"), yaml(&[value])?));
    }
    let version = cluster_service_version(program, options, standing);
    files.push(File::new(format!("manifests/{}.clusterserviceversion.yaml", program.name()), yaml(&[version])?));
    let default = standing.channels.first().cloned().unwrap_or_default();
    let keys = [
        ("mediatype.v1", "registry+v1"),
        ("manifests.v1", "manifests/"),
        ("metadata.v1", "metadata/"),
        ("package.v1", program.name()),
        ("channels.v1", &standing.channels.join(",")),
        ("channel.default.v1", &default),
    ];
    let annotations: serde_json::Map<String, Value> =
        keys.iter().map(|(key, value)| (format!("{ANNOTATION}{key}"), Value::from(*value))).collect();
    files.push(File::new("metadata/annotations.yaml", yaml(&[json!({"annotations": annotations})])?));
    let dependencies: Vec<Value> =
        required(program).iter().map(|api| json!({"type": "olm.gvk", "value": value(api)})).collect();
    if !dependencies.is_empty() {
        files.push(File::new("metadata/dependencies.yaml", yaml(&[json!({"dependencies": dependencies})])?));
    }
    Ok(files)
}

fn value(api: &Api) -> Value {
    json!({"group": api.group, "kind": api.kind, "version": api.version})
}

fn cluster_service_version(program: &dyn Program, options: &ManifestOptions, standing: &Standing) -> Value {
    let name = |version: &String| format!("{}.v{version}", program.name());
    let kinds: Vec<String> = program.crds().into_iter().map(|it| it.spec.names.kind).collect();
    let mut annotations = json!({
        "capabilities": capability(program).name,
        "operatorframework.io/suggested-namespace": options.namespace,
    });
    if let Some(range) = &standing.upgrades.skip_range {
        annotations["olm.skipRange"] = range.as_str().into();
    }
    let mut spec = json!({
        "displayName": program.name(),
        "description": format!("Keeps {} as declared.", kinds.join(", ")),
        "version": standing.version,
        "maturity": "alpha",
        "minKubeVersion": KUBERNETES_MIN,
        "provider": {"name": program.name()},
        "keywords": kinds,
        "installModes": install_modes(webhooks::converts(program)),
        "install": {"strategy": "deployment", "spec": install(program, options)},
        "customresourcedefinitions": {"owned": owned(program)},
        "relatedImages": [{"name": "operator", "image": options.image}],
    });
    let definitions = webhooks::definitions(program);
    if !definitions.is_empty() {
        spec["webhookdefinitions"] = definitions.into();
    }
    let required: Vec<Value> = required(program).iter().map(required_definition).collect();
    if !required.is_empty() {
        spec["customresourcedefinitions"]["required"] = required.into();
    }
    if let Some(replaces) = &standing.upgrades.replaces {
        spec["replaces"] = name(replaces).into();
    }
    if !standing.upgrades.skips.is_empty() {
        spec["skips"] = standing.upgrades.skips.iter().map(name).collect();
    }
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": name(&standing.version), "annotations": annotations},
        "spec": spec,
    })
}

/// In all namespaces, or in its own. Roles for others would leave it without a right to its lease in its own; and a kind is
/// converted for all namespaces or for none.
fn install_modes(converts: bool) -> Value {
    let mode = |name: &str, supported: bool| json!({"type": name, "supported": supported});
    json!([
        mode("OwnNamespace", !converts),
        mode("SingleNamespace", false),
        mode("MultiNamespace", false),
        mode("AllNamespaces", true),
    ])
}

/// The Deployment and what its account may do. The manager says by an annotation which namespaces are served.
fn install(program: &dyn Program, options: &ManifestOptions) -> Value {
    let options = ManifestOptions { watch_namespaces: Vec::new(), ..options.clone() };
    let mut deployment = manifests::value(&Maker::new(program, &options).deployment());
    let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
    if let Some(args) = container["args"].as_array_mut() {
        webhooks::take_certificates(args);
    }
    container["env"] = json!([{
        "name": "WATCH_NAMESPACE",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}},
    }]);
    // Certificates, and the trust in them, are the manager's.
    let mut needs = manifests::needs(program, &options);
    needs.retain(|need| need.part != Part::Webhooks);
    needs.extend(rbac::moves(&program.registration(Vec::new())));
    let of = |is_cluster: bool| rules(needs.iter().filter(|need| (need.scope == Scope::Cluster) == is_cluster));
    let account = program.name();
    let granted = |is_cluster: bool| match of(is_cluster) {
        rules if rules.is_empty() => json!([]),
        rules => json!([{"serviceAccountName": account, "rules": rules}]),
    };
    json!({
        "deployments": [{"name": account, "label": deployment["metadata"]["labels"], "spec": deployment["spec"]}],
        "permissions": granted(false),
        "clusterPermissions": granted(true),
    })
}

fn owned(program: &dyn Program) -> Vec<Value> {
    let names: Vec<(String, String)> = program
        .crds()
        .into_iter()
        .map(|it| (it.spec.names.kind.clone(), it.metadata.name.unwrap_or_default()))
        .collect();
    let of = |api: &Api| {
        let name = names.iter().find(|(kind, _)| *kind == api.kind).map(|(_, name)| name.clone()).unwrap_or_default();
        json!({"name": name, "version": api.version, "kind": api.kind, "displayName": api.kind})
    };
    provided(program).iter().map(of).collect()
}

fn required_definition(api: &Api) -> Value {
    let resource =
        kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(&api.group, &api.version, &api.kind));
    let name = format!("{}.{}", resource.plural, api.group);
    json!({"name": name, "version": api.version, "kind": api.kind, "displayName": api.kind})
}
