//! Bindings, certificates, admission, API services.

use serde_json::Value;

use super::{
    age,
    view::{NONE, UNSET, View, at, selector, text},
};

/// The cells of a RoleBinding or ClusterRoleBinding.
pub(super) fn binding(view: &View<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let of_kind = view.list("subjects").iter().filter(|subject| text(subject, "kind") == kind);
        let named = of_kind.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, "namespace"), text(subject, "name")),
            _ => text(subject, "name").to_owned(),
        });
        Value::from(named.collect::<Vec<_>>().join(", "))
    };
    vec![
        view.name().into(),
        format!("{}/{}", view.text("roleRef.kind"), view.text("roleRef.name")).into(),
        view.age().into(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

/// The cells of a CertificateSigningRequest.
pub(super) fn signing_request(view: &View<'_>) -> Vec<Value> {
    let has = |kind: &str| view.condition(kind).is_some();
    let mut status = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !view.text("status.certificate").is_empty() {
        status.push_str(",Issued");
    }
    let duration = view.at("spec.expirationSeconds").as_i64().map_or_else(|| NONE.to_owned(), age::short);
    vec![
        view.name().into(),
        view.age().into(),
        view.text_or("spec.signerName", NONE).into(),
        view.text("spec.username").into(),
        duration.into(),
        status.into(),
    ]
}

/// The cells of a webhook configuration.
pub(super) fn webhooks(view: &View<'_>) -> Vec<Value> {
    vec![view.name().into(), view.count("webhooks").into(), view.age().into()]
}

/// The cells of a ValidatingAdmissionPolicy.
pub(super) fn validating_policy(view: &View<'_>) -> Vec<Value> {
    policy(view, "spec.validations")
}

/// The cells of a MutatingAdmissionPolicy.
pub(super) fn mutating_policy(view: &View<'_>) -> Vec<Value> {
    policy(view, "spec.mutations")
}

fn policy(view: &View<'_>, counted: &str) -> Vec<Value> {
    let kind = view.at("spec.paramKind");
    let shown =
        if kind.is_null() { UNSET.to_owned() } else { format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")) };
    vec![view.name().into(), view.count(counted).into(), shown.into(), view.age().into()]
}

/// The cells of a binding of an admission policy.
pub(super) fn policy_binding(view: &View<'_>) -> Vec<Value> {
    let parameter = view.at("spec.paramRef");
    let (namespace, name) = (text(parameter, "namespace"), text(parameter, "name"));
    let shown = match (name, namespace) {
        ("", _) if at(parameter, "selector").is_null() => UNSET.to_owned(),
        ("", _) => selector(at(parameter, "selector")),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    };
    vec![view.name().into(), view.text("spec.policyName").into(), shown.into(), view.age().into()]
}

/// The cells of an APIService.
pub(super) fn api_service(view: &View<'_>) -> Vec<Value> {
    let service = view.at("spec.service");
    let service = if service.is_null() {
        "Local".to_owned()
    } else {
        format!("{}/{}", text(service, "namespace"), text(service, "name"))
    };
    let available = view.condition("Available").map_or_else(
        || "Unknown".to_owned(),
        |condition| match (text(condition, "status"), text(condition, "reason")) {
            ("True", _) => "True".to_owned(),
            (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    );
    vec![view.name().into(), service.into(), available.into(), view.age().into()]
}
