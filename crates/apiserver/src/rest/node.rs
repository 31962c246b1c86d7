//! Streams to a node: logs now; exec, attach and port-forward take the same way.

use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use serde_json::{Value, json};

use super::{get, scope::Scope};
use crate::{ApiError, admission::Operation, codec::Body, object::Object};

/// Passes requests to the agent of a node, in the kubelet's own paths.
pub trait NodeProxy: Send + Sync {
    /// Sends `request` to the agent of `node`.
    fn call<'a>(
        &'a self,
        node: &'a str,
        request: Request<Body>,
    ) -> BoxFuture<'a, Result<Response<Body>, NodeProxyError>>;
}

/// Why a node did not answer.
#[derive(Debug, thiserror::Error)]
pub enum NodeProxyError {
    /// There is no such node here.
    #[error("node {0:?} is not reachable from this API server")]
    UnknownNode(String),
    /// The agent failed.
    #[error("the node agent failed: {0}")]
    Failed(String),
}

/// Answers a request on a subresource that the node serves.
pub(crate) async fn connect(
    scope: &Scope,
    subresource: &str,
    request: Request<Body>,
) -> Result<Response<Body>, ApiError> {
    let object = get::live(scope, &scope.request.name).await?;
    let path = match scope.kind.plural.as_str() {
        "pods" => pod_path(scope, subresource, &object)?,
        _ => return Err(ApiError::method_not_allowed(scope.subject(), subresource)),
    };
    let node = object.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    if node.is_empty() {
        return Err(ApiError::bad_request(format!("pod {} does not have a host assigned", object.name())));
    }
    if subresource != "log" {
        scope.admit(Operation::Connect, connect_options(scope, subresource)).await?;
    }
    let proxy = scope.api.node_proxy().ok_or_else(|| ApiError::unavailable("this API server has no nodes"))?;
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    let uri: Uri = format!("{path}{query}").parse().map_err(ApiError::internal)?;
    let (mut parts, body) = request.into_parts();
    parts.uri = uri;
    proxy.call(node, Request::from_parts(parts, body)).await.map_err(|error| ApiError::unavailable(error.to_string()))
}

/// What the client wants of the stream, as the object that admission knows it by.
fn connect_options(scope: &Scope, subresource: &str) -> Value {
    let kind = match subresource {
        "attach" => "PodAttachOptions",
        "portforward" => "PodPortForwardOptions",
        "proxy" => "PodProxyOptions",
        _ => "PodExecOptions",
    };
    let mut options = json!({ "kind": kind, "apiVersion": "v1" });
    for switch in ["stdin", "stdout", "stderr", "tty"].into_iter().filter(|switch| scope.query.flag(switch)) {
        options[switch] = true.into();
    }
    if let Some(container) = scope.query.get("container") {
        options["container"] = container.into();
    }
    let command: Vec<&str> = scope.query.all("command").collect();
    if !command.is_empty() {
        options["command"] = command.into();
    }
    let ports: Vec<i64> = scope.query.all("ports").filter_map(|port| port.parse().ok()).collect();
    if !ports.is_empty() {
        options["ports"] = ports.into();
    }
    options
}

/// The kubelet's path for a subresource of a Pod.
fn pod_path(scope: &Scope, subresource: &str, pod: &Value) -> Result<String, ApiError> {
    let place = format!("{}/{}", scope.namespace(), pod.name());
    if subresource == "portforward" {
        return Ok(format!("/portForward/{place}"));
    }
    let verb = match subresource {
        "log" => "containerLogs",
        "exec" => "exec",
        "attach" => "attach",
        _ => return Err(ApiError::method_not_allowed(scope.subject(), subresource)),
    };
    Ok(format!("/{verb}/{place}/{}", container(scope, pod)?))
}

/// The container that the client names, or the only one.
fn container(scope: &Scope, pod: &Value) -> Result<String, ApiError> {
    let names = |list: &str| -> Vec<&str> {
        let containers = pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array).into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).collect()
    };
    let (containers, init) = (names("containers"), names("initContainers"));
    let known: Vec<&str> = [containers.clone(), init, names("ephemeralContainers")].concat();
    if let Some(wanted) = scope.query.get("container") {
        let found = known.contains(&wanted);
        let why = || ApiError::bad_request(format!("container {wanted} is not valid for pod {}", pod.name()));
        return if found { Ok(wanted.to_owned()) } else { Err(why()) };
    }
    if let Some(default) = pod.annotation("kubectl.kubernetes.io/default-container").filter(|name| known.contains(name))
    {
        return Ok(default.to_owned());
    }
    match &containers[..] {
        [only] => Ok((*only).to_owned()),
        _ => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {}, choose one of: [{}]",
            pod.name(),
            containers.join(" ")
        ))),
    }
}
