//! The binding subresource: a scheduler gives a Pod its node.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};

use super::{
    scope::Scope,
    update::{self, Changed},
};
use crate::{
    ApiError, Subject,
    admission::Operation,
    codec::{Body, document, read, respond},
    object::Object,
    strategy::Part,
};

/// Answers a POST to `pods/NAME/binding`.
pub(crate) async fn bind(scope: &Scope, request: Request<Body>) -> Result<Response<Body>, ApiError> {
    let body = read(request.into_body()).await?;
    let binding = scope.admit(Operation::Create, read_binding(scope, &body)?).await?;
    bind_pod(scope, &binding).await
}

/// Answers a POST to `bindings`, the older form, where the binding has the name of the Pod.
pub(crate) async fn bind_named(scope: &Scope, request: Request<Body>) -> Result<Response<Body>, ApiError> {
    let body = read(request.into_body()).await?;
    let binding = scope.admit(Operation::Create, read_binding(scope, &body)?).await?;
    let pods = scope.api.registry().lookup("", "v1", "pods").ok_or_else(ApiError::no_such_path)?;
    let scope = scope.to_object(pods, binding.name());
    bind_pod(&scope, &binding).await
}

fn read_binding(scope: &Scope, body: &Bytes) -> Result<Value, ApiError> {
    let binding = document(&scope.headers, body)?.value;
    let unreadable =
        |why| ApiError::bad_request(format!("Binding in version \"v1\" cannot be handled as a Binding: {why}"));
    Ok(windlass_schema::conform("io.k8s.api.core.v1.Binding", binding).map_err(unreadable)?.object)
}

async fn bind_pod(scope: &Scope, binding: &Value) -> Result<Response<Body>, ApiError> {
    let node = binding.pointer("/target/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if node.is_empty() {
        // Kubernetes does not make a 422 of it.
        return Err(ApiError::unsorted("target.name: Required value"));
    }
    let transform = |live: Option<&Value>| {
        let live = live.ok_or_else(|| ApiError::not_found(scope.subject(), &scope.request.name))?;
        bound(live, binding, &node, &scope.now()).map(|object| Changed { object, owned: false })
    };
    update::update(scope, Part::Binding, false, &transform).await?;
    let success = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Ok(respond(StatusCode::CREATED, &success, &scope.accept))
}

/// The Pod on its node.
fn bound(live: &Value, binding: &Value, node: &str, now: &str) -> Result<Value, ApiError> {
    let conflict =
        |why: String| Err(ApiError::conflict(Subject { group: "", resource: "pods/binding" }, live.name(), why));
    if live.is_deleting() {
        return conflict(format!("pod {} is being deleted, cannot be assigned to a host", live.name()));
    }
    if let Some(current) = live.pointer("/spec/nodeName").and_then(Value::as_str).filter(|name| !name.is_empty()) {
        return conflict(format!("pod {} is already assigned to node {current:?}", live.name()));
    }
    if live.pointer("/spec/schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty()) {
        return conflict(format!("pod {} has non-empty .spec.schedulingGates", live.name()));
    }
    if !binding.uid().is_empty() && binding.uid() != live.uid() {
        return conflict(format!("the UID in the binding ({}) does not match ({})", binding.uid(), live.uid()));
    }
    let mut object = live.clone();
    object["spec"]["nodeName"] = node.into();
    let condition =
        json!({ "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now });
    let status = object.as_object_mut().expect("a Pod is a map").entry("status").or_insert_with(|| json!({}));
    let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let others = conditions.filter(|condition| condition["type"] != "PodScheduled").cloned();
    status["conditions"] = others.chain([condition]).collect();
    // The place that was kept for it is its own now, or of no more use.
    status.as_object_mut().expect("a status is a map").remove("nominatedNodeName");
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_bound_once() {
        let pod = json!({"metadata": {"name": "p", "uid": "1"}, "spec": {}, "status": {"nominatedNodeName": "n", "conditions": [
            {"type": "PodScheduled", "status": "False"}, {"type": "Ready", "status": "False"}]}});
        let once = bound(&pod, &json!({}), "n", "").unwrap();
        assert_eq!(once["spec"]["nodeName"], "n");
        assert!(once["status"]["nominatedNodeName"].is_null());
        let conditions = once["status"]["conditions"].as_array().unwrap();
        assert_eq!(conditions.len(), 2);
        assert_eq!((&conditions[1]["type"], &conditions[1]["status"]), (&json!("PodScheduled"), &json!("True")));
        assert_eq!(bound(&once, &json!({}), "m", "").unwrap_err().code, 409);
        assert_eq!(bound(&pod, &json!({"metadata": {"uid": "2"}}), "n", "").unwrap_err().code, 409);
    }
}
