//! Streams to a node: logs, exec, attach and port-forward, in the kubelet's own paths.

use futures::future::BoxFuture;
use http::{
    HeaderValue, Method, Request, Response,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{get, log_options, scope::Scope};
use crate::{ApiError, admission::Operation, codec::Body, object::Object};

/// Passes requests to the agent of a node, in the kubelet's own paths.
pub trait NodeProxy: Send + Sync {
    /// Sends `request` to the agent of `node`.
    fn call<'a>(
        &'a self,
        node: &'a str,
        request: Request<Body>,
    ) -> BoxFuture<'a, Result<Response<Body>, NodeProxyError>>;

    /// Opens a connection to a port of a Pod.
    fn dial<'a>(&'a self, place: PodPlace<'a>, port: u16) -> BoxFuture<'a, Result<TcpStream, NodeProxyError>>;
}

/// A Pod, and the node that runs it.
#[derive(Clone, Copy, Debug)]
pub struct PodPlace<'a> {
    /// The name of the node.
    pub node: &'a str,
    /// The namespace of the Pod.
    pub namespace: &'a str,
    /// The name of the Pod.
    pub pod: &'a str,
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
    /// The Pod took no connection.
    #[error("{0}")]
    Refused(String),
}

/// The ways to ask for a stream.
const STREAM_METHODS: [Method; 2] = [Method::GET, Method::POST];

/// Answers a request on a subresource that the node serves.
pub(crate) async fn connect(
    scope: &Scope,
    subresource: &str,
    request: Request<Body>,
) -> Result<Response<Body>, ApiError> {
    let refused = || ApiError::method_not_allowed(scope.subject(), scope.request.verb.as_str());
    if scope.kind.plural != "pods" {
        return Err(refused());
    }
    let target = if subresource == "log" {
        if request.method() != Method::GET {
            return Err(refused());
        }
        log_options::check(&scope.query, &scope.request.name)?;
        let pod = get::live(scope, &scope.request.name).await?;
        let container = container(scope.query.get("container"), &pod)?;
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        Target { path: format!("/containerLogs/{}/{container}{query}", place(scope, &pod)), pod }
    } else {
        if !STREAM_METHODS.contains(request.method()) {
            return Err(refused());
        }
        stream(scope, subresource).await?
    };
    let node = target.pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    if node.is_empty() && subresource == "log" {
        return Ok(empty_log());
    }
    if node.is_empty() {
        return Err(ApiError::bad_request(format!("pod {} does not have a host assigned", target.pod.name())));
    }
    let proxy = scope.api.node_proxy().ok_or_else(|| ApiError::unavailable("this API server has no nodes"))?;
    let (mut parts, body) = request.into_parts();
    parts.uri = target.path.parse().map_err(ApiError::internal)?;
    // Whoever asks has been told from others here; what proves it is nobody else's business.
    parts.headers.remove(AUTHORIZATION);
    proxy.call(node, Request::from_parts(parts, body)).await.map_err(|error| ApiError::unavailable(error.to_string()))
}

/// The log of a Pod that is nowhere yet.
fn empty_log() -> Response<Body> {
    let mut response = Response::new(Body::default());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

/// A Pod, and the kubelet's path for what is wanted of it.
struct Target {
    pod: Value,
    path: String,
}

/// What a stream leads to, once admission has seen what it is for.
async fn stream(scope: &Scope, subresource: &str) -> Result<Target, ApiError> {
    let options = scope.admit(Operation::Connect, connect_options(scope, subresource)).await?;
    // A WebSocket begins with GET, and to begin one is more than to get something.
    scope.authorize("create")?;
    let pod = get::live(scope, &scope.request.name).await?;
    let place = place(scope, &pod);
    if subresource == "portforward" {
        return Ok(Target { path: format!("/portForward/{place}?{}", parameters(&options)), pod });
    }
    let container = container(options["container"].as_str(), &pod)?;
    Ok(Target { path: format!("/{subresource}/{place}/{container}?{}", parameters(&options)), pod })
}

fn place(scope: &Scope, pod: &Value) -> String {
    format!("{}/{}", scope.namespace(), pod.name())
}

/// What the client wants of the stream, as the object that admission knows it by.
fn connect_options(scope: &Scope, subresource: &str) -> Value {
    let kind = match subresource {
        "attach" => "PodAttachOptions",
        "portforward" => "PodPortForwardOptions",
        _ => "PodExecOptions",
    };
    let mut options = json!({ "kind": kind, "apiVersion": "v1" });
    let ports: Vec<i64> = scope.query.all("ports").filter_map(|port| port.parse().ok()).collect();
    if subresource == "portforward" {
        if !ports.is_empty() {
            options["ports"] = ports.into();
        }
        return options;
    }
    for (switch, default) in SWITCHES {
        let given = scope.query.all(switch).next().is_some();
        if if given { scope.query.flag(switch) } else { default } {
            options[switch] = true.into();
        }
    }
    if let Some(container) = scope.query.get("container") {
        options["container"] = container.into();
    }
    let command: Vec<&str> = scope.query.all("command").collect();
    if subresource == "exec" && !command.is_empty() {
        options["command"] = command.into();
    }
    options
}

/// The switches of streams, and what they are unless something else is said.
const SWITCHES: [(&str, bool); 4] = [("stdin", false), ("stdout", true), ("stderr", true), ("tty", false)];

/// The options as the kubelet's parameters.
fn parameters(options: &Value) -> String {
    let mut parameters = form_urlencoded::Serializer::new(String::new());
    let names = [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")];
    for (_, name) in names.iter().filter(|(switch, _)| options[switch] == true) {
        parameters.append_pair(name, "1");
    }
    for part in options["command"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        parameters.append_pair("command", part);
    }
    for port in options["ports"].as_array().into_iter().flatten() {
        parameters.append_pair("port", &port.to_string());
    }
    parameters.finish()
}

/// The container that the client names, or the only one.
fn container(wanted: Option<&str>, pod: &Value) -> Result<String, ApiError> {
    let names = |list: &str| -> Vec<&str> {
        let containers = pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array).into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).collect()
    };
    let containers = names("containers");
    let known: Vec<&str> = [names("initContainers"), containers.clone(), names("ephemeralContainers")].concat();
    if let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) {
        let found = known.contains(&wanted);
        let why = || ApiError::bad_request(format!("container {wanted} is not valid for pod {}", pod.name()));
        return if found { Ok(wanted.to_owned()) } else { Err(why()) };
    }
    match &containers[..] {
        [only] => Ok((*only).to_owned()),
        _ => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {}, choose one of: [{}]",
            pod.name(),
            known.join(" ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelet_is_told_in_its_own_words() {
        let options = json!({"stdin": true, "stdout": true, "tty": true, "command": ["sh", "-c", "a & b"]});
        assert_eq!(parameters(&options), "input=1&output=1&tty=1&command=sh&command=-c&command=a+%26+b");
        assert_eq!(parameters(&json!({"ports": [80]})), "port=80");
    }

    #[test]
    fn only_a_single_container_need_not_be_named() {
        let pod = |spec: Value| json!({"metadata": {"name": "p"}, "spec": spec});
        let one = pod(json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}));
        let two = pod(json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}));
        assert_eq!(container(None, &one).unwrap(), "a");
        assert_eq!(container(Some("i"), &one).unwrap(), "i");
        assert_eq!(container(Some("x"), &one).unwrap_err().message, "container x is not valid for pod p");
        let message = container(None, &two).unwrap_err().message;
        assert_eq!(message, "a container name must be specified for pod p, choose one of: [i a b]");
    }
}
