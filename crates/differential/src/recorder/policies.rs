//! What becomes of expressions of policies.

use anyhow::Result;
use serde_json::{Value, json};

use super::{causes, create, detail};
use crate::control_plane::ControlPlane;

/// Records the policies: beside each the fields that are refused, and why.
pub(super) async fn record(plane: &ControlPlane, fixture: &mut Value) -> Result<()> {
    let Some(rows) = fixture["policies"].as_array_mut() else { return Ok(()) };
    for row in rows {
        let (kind, spec) = (row[0].as_str().unwrap_or_default().to_owned(), row[1].clone());
        let resource = if kind.starts_with('M') { "mutatingadmissionpolicies" } else { "validatingadmissionpolicies" };
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "a"}, "spec": spec});
        let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}");
        let answer = create(plane, &path, object, true).await;
        let refused = causes(&answer).into_iter().map(|(field, message)| json!([field, detail(&message)]));
        row[2] = if answer.code == 201 { json!([]) } else { refused.collect() };
        if answer.code != 201 && row[2] == json!([]) {
            anyhow::bail!("{} {}", answer.code, answer.body["message"]);
        }
    }
    Ok(())
}
