//! From the path to the verb: which code answers a request on a resource.

mod component;

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, ready};
use http::{HeaderMap, HeaderValue, Request, Response, header::WARNING};

use super::{
    binding, collection, create, delete, eviction, get, list, metrics, node, options::WriteOptions, patch, scale,
    scope::Scope, token, update, watch,
};
use crate::{
    Api, ApiError,
    auth::User,
    codec::{Accept, Body},
    proxy,
    query::Query,
    request::{RequestInfo, ResourceRequest, Verb},
    reviews,
    strategy::Part,
};

/// Built-in kinds that have a successor, and what is said to those who use them.
const DEPRECATED: [(&str, &str, &str); 2] = [
    ("", "componentstatuses", "v1 ComponentStatus is deprecated in v1.19+"),
    ("", "endpoints", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
];

/// Answers a request inside of the resource tree.
pub(crate) async fn handle(
    api: &Api,
    user: User,
    info: &RequestInfo,
    request: Request<Body>,
) -> Result<Response<Body>, ApiError> {
    let resource = info.resource.clone().expect("the caller looked");
    let kind = api.registry().lookup(&resource.group, &resource.version, &resource.resource);
    let kind = kind.ok_or_else(ApiError::no_such_path)?;
    // What is passed on has parameters, forms and patches of its own.
    let passes = resource.subresource == "proxy";
    if resource.verb == Verb::Patch && kind.has_verb("patch") && !passes {
        patch::check_type(&kind, request.headers())?;
    }
    let negotiate = if kind.custom().is_some() { Accept::of_custom } else { Accept::new };
    let (verb, no_options) = (resource.verb, Query::parse(None));
    let scope = Scope {
        api: api.clone(),
        kind,
        user,
        request: resource,
        query: info.query.clone(),
        headers: request.headers().clone(),
        accept: if passes { Accept::JSON } else { negotiate(request.headers(), &info.query)? },
        options: WriteOptions::new(if passes { &no_options } else { &info.query }, verb)?,
        warnings: Mutex::default(),
    };
    check_namespace(&scope)?;
    if let Some((_, _, warning)) = DEPRECATED.iter().find(|(group, plural, _)| {
        scope.kind.is_builtin() && scope.kind.group == *group && scope.kind.plural == *plural
    }) {
        scope.warn(*warning);
    }
    if let Some(warning) = scope.kind.custom().and_then(|custom| custom.warning.as_ref()) {
        scope.warn(warning);
    }
    let scope = Arc::new(scope);
    let answered = dispatch(&scope, request).await;
    let warnings = std::mem::take(&mut *scope.warnings.lock().unwrap_or_else(PoisonError::into_inner));
    match answered {
        Ok(mut response) => {
            add_warnings(&warnings, response.headers_mut());
            Ok(response)
        }
        Err(error) => Err(ApiError { warnings, ..error }),
    }
}

/// A namespaced kind is only reached through a namespace, except to look at all namespaces at once.
fn check_namespace(scope: &Scope) -> Result<(), ApiError> {
    let ResourceRequest { namespace, resource, verb, .. } = &scope.request;
    let all = matches!(verb, Verb::List | Verb::Watch);
    let reachable = match (scope.kind.namespaced, namespace.is_empty()) {
        (true, true) if !all && scope.request.name.is_empty() => {
            return Err(ApiError::method_not_allowed(scope.subject(), verb.as_str()));
        }
        (true, true) => all,
        (false, false) => resource == "namespaces",
        _ => true,
    };
    if reachable { Ok(()) } else { Err(ApiError::no_such_path()) }
}

type Answer<'a> = BoxFuture<'a, Result<Response<Body>, ApiError>>;

fn dispatch(scope: &Arc<Scope>, request: Request<Body>) -> Answer<'_> {
    let subresource = scope.request.subresource.as_str();
    if !subresource.is_empty() {
        return dispatch_subresource(scope, subresource, request);
    }
    if reviews::is_review(&scope.kind.group, &scope.kind.plural) {
        return Box::pin(create::review(scope, request));
    }
    let verb = scope.request.verb;
    if !scope.kind.has_verb(verb.as_str()) {
        return refuse(scope);
    }
    if scope.kind.plural == "bindings" && scope.kind.group.is_empty() {
        return Box::pin(binding::bind_named(scope, request));
    }
    let is_component_status = component::is_component_status(&scope.kind.group, &scope.kind.plural);
    match verb {
        Verb::Get if is_component_status => Box::pin(component::get(scope)),
        Verb::List if is_component_status => Box::pin(component::list(scope)),
        Verb::Get if metrics::is_metrics(&scope.kind) => Box::pin(metrics::get(scope)),
        Verb::List if metrics::is_metrics(&scope.kind) => Box::pin(metrics::list(scope)),
        Verb::Get => Box::pin(get::get(scope)),
        Verb::List => Box::pin(list::list(scope)),
        Verb::Watch => Box::pin(watch::watch(scope)),
        Verb::Create if scope.request.name.is_empty() => Box::pin(create::create(scope, request)),
        Verb::Update => Box::pin(update::replace(scope, Part::Object, request)),
        Verb::Patch => Box::pin(patch::patch(scope, Part::Object, request)),
        Verb::Delete => Box::pin(delete::delete(scope, request)),
        Verb::DeleteCollection => Box::pin(collection::delete(scope, request)),
        Verb::Create | Verb::Other => refuse(scope),
    }
}

fn dispatch_subresource<'a>(scope: &'a Arc<Scope>, name: &'a str, request: Request<Body>) -> Answer<'a> {
    let Some(offered) = scope.kind.subresource(name) else {
        return Box::pin(ready(Err(ApiError::no_such_path())));
    };
    let verb = scope.request.verb;
    let connects = matches!(name, "log" | "exec" | "attach" | "portforward" | "proxy");
    if !connects && !offered.verbs.iter().any(|known| known == verb.as_str()) {
        return refuse(scope);
    }
    match (name, Part::of(name), verb) {
        ("scale", ..) => Box::pin(scale::handle(scope, request)),
        ("eviction", ..) => Box::pin(eviction::evict(scope, request)),
        ("binding", ..) => Box::pin(binding::bind(scope, request)),
        ("token", ..) => Box::pin(token::token(scope, request)),
        ("proxy", ..) => Box::pin(proxy::proxy(scope, request)),
        _ if connects => Box::pin(node::connect(scope, name, request)),
        (_, Some(_), Verb::Get) => Box::pin(get::get(scope)),
        (_, Some(part), Verb::Update) => Box::pin(update::replace(scope, part, request)),
        (_, Some(part), Verb::Patch) => Box::pin(patch::patch(scope, part, request)),
        (_, Some(_), _) => refuse(scope),
        (_, None, _) => Box::pin(ready(Err(ApiError::no_such_path()))),
    }
}

/// The kind does not offer the verb.
fn refuse(scope: &Scope) -> Answer<'_> {
    Box::pin(ready(Err(ApiError::method_not_allowed(scope.subject(), scope.request.verb.as_str()))))
}

/// How many warnings an answer carries at most.
const WARNINGS_MAX: usize = 64;

/// Writes the sentences into `Warning` headers, each once.
pub(crate) fn add_warnings(warnings: &[String], headers: &mut HeaderMap) {
    let mut seen = std::collections::HashSet::new();
    for warning in warnings.iter().filter(|warning| seen.insert(*warning)).take(WARNINGS_MAX) {
        let text: String = warning.chars().filter(|character| !character.is_control()).collect();
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            headers.append(WARNING, value);
        }
    }
}
