//! `metrics.k8s.io`: what nodes and Pods use, asked of the nodes when somebody wants to know.

mod agents;
mod object;

use http::{Response, StatusCode};
use serde_json::{Value, json};
use windlass_schema::Kind;

use super::{options::ListOptions, render, scope::Scope};
use crate::{
    ApiError, Subject,
    codec::{Body, respond},
    object::Object,
};

/// The group that is answered here.
const GROUP: &str = "metrics.k8s.io";

/// Whether a kind is answered here.
pub(super) fn is_metrics(kind: &Kind) -> bool {
    kind.group == GROUP && kind.is_builtin()
}

/// Answers a GET of the figures of one node or Pod.
pub(super) async fn get(scope: &Scope) -> Result<Response<Body>, ApiError> {
    let name = &scope.request.name;
    let options = ListOptions::default();
    let measured = measured(scope, &options, Some(name)).ok_or_else(|| {
        let subject = Subject { group: "", resource: &scope.kind.plural };
        ApiError::not_found(subject, name)
    })?;
    match figures(scope, measured).await.pop() {
        Some(found) => scope.answer(StatusCode::OK, &found),
        None => {
            let (namespace, resource) = (scope.namespace(), scope.kind.kind().kind.to_lowercase());
            let name = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
            Err(ApiError::not_found(Subject { group: GROUP, resource: &resource }, &name))
        }
    }
}

/// Answers a GET of the figures of many: of no revision, without pages.
pub(super) async fn list(scope: &Scope) -> Result<Response<Body>, ApiError> {
    let options = ListOptions::new(&scope.query, false)?;
    options.fields.check(&scope.kind)?;
    let measured = measured(scope, &options, None).unwrap_or_default();
    let found = figures(scope, measured).await;
    Ok(respond(StatusCode::OK, &render::list(scope, found, json!({}))?, &scope.accept))
}

/// The nodes or Pods that figures are asked for, by key; `None` if the one that is named does not exist.
fn measured(scope: &Scope, options: &ListOptions, name: Option<&str>) -> Option<Vec<Value>> {
    let resource = if scope.kind.namespaced { "pods" } else { "nodes" };
    let (namespace, snapshot) = (scope.namespace(), scope.api.store().snapshot());
    let folder = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    let prefix = format!("/core/{resource}/{folder}");
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    if let Some(name) = name {
        return snapshot.get(&format!("{prefix}{name}")).and_then(|entry| read(&entry.value)).map(|it| vec![it]);
    }
    let all = snapshot.range(&prefix, None).filter_map(|(_, entry)| read(&entry.value));
    Some(all.filter(|object| options.labels.matches(object) && options.fields.matches(object)).collect())
}

async fn figures(scope: &Scope, measured: Vec<Value>) -> Vec<Value> {
    let pods = scope.kind.namespaced;
    let node = |object: &Value| match pods {
        true => object.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default().to_owned(),
        false => object.name().to_owned(),
    };
    let summaries = agents::ask(scope.api.node_proxy(), measured.iter().map(node).collect()).await;
    let now = scope.now();
    let show = |object: &Value| {
        let summary = summaries.get(&node(object))?;
        if pods { object::pod(object, summary, &now) } else { object::node(object, summary, &now) }
    };
    measured.iter().filter_map(show).collect()
}
