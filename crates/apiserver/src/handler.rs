//! The way of a request: who asks, may they, what do they want; and every failure as a `Status`.

use std::time::Instant;

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header::RETRY_AFTER};
use serde_json::json;

use crate::{
    Api, ApiError, Body, Subject,
    audit::{self, AUDIT_ID, AuditLog, AuditedRequest, Level, Outcome},
    auth::{Peer, User},
    codec::{Accept, Transform, full, respond},
    request::{RequestInfo, Verb},
    rest,
    system::Observation,
};

/// Answers one request.
pub(crate) async fn handle(api: Api, request: Request<Body>, peer: Peer) -> Response<Body> {
    let started = Instant::now();
    let _in_flight = api.system().metrics.begin(request.method());
    let info = RequestInfo::new(request.method(), request.uri());
    let seen = AuditedRequest::new(&request);
    let mut response = match &api.config().audit {
        Some(audit) => audited(&api, audit, &seen, request, (&peer, &info)).await,
        None => answered(&api, request, &peer, &info, &mut User::anonymous()).await,
    };
    observe(&api, &info, &response, started);
    if let Ok(id) = HeaderValue::from_str(&seen.id) {
        response.headers_mut().insert(AUDIT_ID, id);
    }
    response
}

/// What streams, and has no body to be kept.
const STREAMS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

fn is_stream(info: &RequestInfo) -> bool {
    info.resource.as_ref().is_some_and(|resource| STREAMS.contains(&resource.subresource.as_str()))
}

/// Answers a request and logs it.
async fn audited(
    api: &Api,
    audit: &AuditLog,
    seen: &AuditedRequest,
    request: Request<Body>,
    (peer, info): (&Peer, &RequestInfo),
) -> Response<Body> {
    let headers = request.headers().clone();
    let mut user = User::anonymous();
    let kept = match audit.logs_bodies() && !is_stream(info) {
        true => audit::of_request(request).await,
        false => Ok((request, bytes::Bytes::new())),
    };
    let (request, sent) = match kept {
        Ok(kept) => kept,
        Err(error) => return failure(&error, &headers, info),
    };
    let (response, notes) = audit::noted(answered(api, request, peer, info, &mut user)).await;
    let level = audit.level(&user, info);
    let watches = info.resource.as_ref().is_some_and(|resource| resource.verb == Verb::Watch);
    let streams = watches || is_stream(info);
    let (response, answer) = if level == Level::RequestResponse && !streams {
        let (response, body) = audit::of_response(response).await;
        let answer = (response.headers().clone(), body);
        (response, Some(answer))
    } else {
        (response, None)
    };
    let status = response.status();
    audit.record(&Outcome { request: seen, info, user: &user, level, notes, status, sent, answer });
    response
}

async fn answered(
    api: &Api,
    request: Request<Body>,
    peer: &Peer,
    info: &RequestInfo,
    user: &mut User,
) -> Response<Body> {
    let headers = request.headers().clone();
    match answer(api, request, peer, info, user).await {
        Ok(response) => response,
        Err(error) => failure(&error, &headers, info),
    }
}

async fn answer(
    api: &Api,
    request: Request<Body>,
    peer: &Peer,
    info: &RequestInfo,
    asks: &mut User,
) -> Result<Response<Body>, ApiError> {
    let user = api.auth().authenticate(peer, request.headers())?;
    asks.clone_from(&user);
    let method = request.method().as_str().to_ascii_lowercase();
    // What streams takes no seat, and waits for none.
    let flow = if is_stream(info) { None } else { api.flows().classify(&user, &info.attributes(&method)) };
    let Some(flow) = flow else { return authorized(api, user, info, request).await };
    let headers = request.headers().clone();
    // Held until the answer begins: watches and logs go on without a seat.
    let answered = match flow.seat().await {
        Ok(_seat) => authorized(api, user, info, request).await,
        Err(full) => Err(full),
    };
    let mut response = answered.unwrap_or_else(|error| failure(&error, &headers, info));
    flow.mark(response.headers_mut());
    Ok(response)
}

async fn authorized(
    api: &Api,
    user: User,
    info: &RequestInfo,
    request: Request<Body>,
) -> Result<Response<Body>, ApiError> {
    let method = request.method().as_str().to_ascii_lowercase();
    let allowed = api.auth().authorize(&user, &info.attributes(&method));
    audit::annotate("authorization.k8s.io/decision", if allowed.is_ok() { "allow" } else { "forbid" });
    audit::annotate("authorization.k8s.io/reason", "");
    allowed?;
    if let Some(remote) = api.remotes().of_path(&info.path).or_else(|| api.remotes().of_document(&info.path)) {
        return api.extensions().forward(&remote, &user, request).await;
    }
    match info.resource {
        Some(_) => rest::handle(api, user, info, request).await,
        None => outside(api, info, request.headers()),
    }
}

/// Answers a path outside of the resource tree.
fn outside(api: &Api, info: &RequestInfo, headers: &HeaderMap) -> Result<Response<Body>, ApiError> {
    if !matches!(info.method, Method::GET | Method::HEAD) {
        return Err(ApiError::method_not_allowed(Subject { group: "", resource: &info.path }, info.method.as_str()));
    }
    if let Some(response) = api.system().respond(&info.path, &info.query, api.auth(), api.store()) {
        return Ok(response.map(full));
    }
    let (catalog, remotes) = (api.registry().catalog(), api.remotes().all());
    if let Some(result) = api.discovery().respond(&info.path, headers, (&catalog, &remotes), api.config()) {
        return result;
    }
    if let Some(result) = api.openapi().respond(&info.path, &info.query, headers, (&catalog, &remotes)) {
        return result;
    }
    match info.path.as_str() {
        "/" => Ok(respond(StatusCode::OK, &json!({ "paths": PATHS }), &Accept::JSON)),
        _ => Err(ApiError::no_such_path()),
    }
}

const PATHS: [&str; 9] =
    ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version"];

/// The answer to a request that hit a bug: it costs this request, not the server.
pub(crate) fn panicked() -> Response<Body> {
    let error = ApiError::internal("the request hit a bug; the log of the server has more");
    respond(error.code, &error.status(), &Accept::JSON)
}

/// The answer that tells of a failure.
fn failure(error: &ApiError, headers: &HeaderMap, info: &RequestInfo) -> Response<Body> {
    if error.code.is_server_error() {
        tracing::warn!(path = info.path, code = error.code.as_u16(), message = error.message, "a request failed");
    }
    let accept = Accept::new(headers, &info.query).unwrap_or(Accept::JSON);
    let accept = Accept { transform: Transform::None, ..accept };
    let mut response = respond(error.code, &error.status(), &accept);
    if let Some(seconds) = error.details.as_ref().and_then(|details| details.retry_after_seconds) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    rest::add_warnings(&error.warnings, response.headers_mut());
    response
}

fn observe(api: &Api, info: &RequestInfo, response: &Response<Body>, started: Instant) {
    let Some(request) = &info.resource else { return };
    // The time of a watch says how long its client cared, not how fast the server is.
    let duration = (request.verb != Verb::Watch).then(|| started.elapsed());
    api.system().metrics.observe(&Observation {
        verb: request.verb.as_str(),
        group: &request.group,
        version: &request.version,
        scope: match (request.name.is_empty(), request.namespace.is_empty()) {
            (false, _) => "resource",
            (true, false) => "namespace",
            (true, true) => "cluster",
        },
        resource: &request.resource,
        subresource: &request.subresource,
        code: response.status().as_u16(),
        duration,
    });
}
