//! Webhooks in a `registry+v1` bundle: the manager makes the Service, the certificate and the configurations, and mounts the
//! certificate where operators of this form look for it.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhook, ValidatingWebhook};
use serde_json::{Value, json};
use windlass_core::Chain;
use windlass_runtime::webhook::Reach;

use crate::app::Program;
use crate::manifests::value;

/// Where managers of this form mount `tls.crt` and `tls.key`.
const CERTIFICATES: &str = "/tmp/k8s-webhook-server/serving-certs";
/// Where the manager's Service is reached, and where the operator listens.
const PORTS: (i32, i32) = (443, 9443);

/// Whether kinds of the operator are converted.
pub(super) fn converts(program: &dyn Program) -> bool {
    program.registration(Vec::new()).chains.iter().any(Chain::converts)
}

/// Lets the operator serve with the manager's certificates instead of its own.
pub(super) fn take_certificates(args: &mut [Value]) {
    for arg in args.iter_mut().filter(|arg| **arg == "--webhooks=cluster") {
        *arg = format!("--webhook-cert-path={CERTIFICATES}").into();
    }
}

/// Every webhook, as the manager is to make it known.
pub(super) fn definitions(program: &dyn Program) -> Vec<Value> {
    let registration = program.registration(Vec::new());
    // Only the paths are taken from it.
    let reach = Reach::Service { namespace: String::new(), name: String::new() };
    let mutating = registration.mutating(&reach, None).and_then(|it| it.webhooks).unwrap_or_default();
    let validating = registration.validating(&reach, None).and_then(|it| it.webhooks).unwrap_or_default();
    let mut all: Vec<Value> =
        mutating.iter().map(|hook: &MutatingWebhook| admission("Mutating", &value(hook))).collect();
    all.extend(validating.iter().map(|hook: &ValidatingWebhook| admission("Validating", &value(hook))));
    for definition in registration.definitions(&reach, None) {
        let definition = value(&definition);
        let webhook = &definition["spec"]["conversion"]["webhook"];
        if webhook.is_object() {
            let name = &definition["metadata"]["name"];
            let of = json!({
                "generateName": format!("convert.{}", name.as_str().unwrap_or_default()),
                "conversionCRDs": [name],
                "admissionReviewVersions": webhook["conversionReviewVersions"],
                "sideEffects": "None",
            });
            all.push(described("ConversionWebhook", &webhook["clientConfig"], of));
        }
    }
    for it in &mut all {
        it["deploymentName"] = program.name().into();
    }
    all
}

fn admission(sort: &str, hook: &Value) -> Value {
    let kept = ["rules", "failurePolicy", "matchPolicy", "sideEffects", "timeoutSeconds", "admissionReviewVersions"];
    let mut of = json!({"generateName": hook["name"]});
    for field in kept.into_iter().filter(|field| !hook[*field].is_null()) {
        of[field] = hook[field].clone();
    }
    described(&format!("{sort}AdmissionWebhook"), &hook["clientConfig"], of)
}

fn described(sort: &str, client: &Value, mut of: Value) -> Value {
    of["type"] = sort.into();
    of["webhookPath"] = client["service"]["path"].clone();
    (of["containerPort"], of["targetPort"]) = (PORTS.0.into(), PORTS.1.into());
    of
}
