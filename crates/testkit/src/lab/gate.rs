//! The gate: what stands between the operator and the API server, where calls go wrong.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use kube::client::Body as ClientBody;
use serde_json::{Value, json};
use tower::Service;
use windlass::runtime::journal;
use windlass::runtime::tap::Call;
use windlass_apiserver::{Body, BoxError, full, server::Local};
use windlass_store::Revision;

use super::events;
use super::plan::CallFault;
use super::session::{HELD, STALLED, Session};
use super::{roles, world};

/// How far clocks go wrong.
const HOUR: Duration = Duration::from_secs(3600);
/// What somebody else writes, and the operator must leave alone.
pub(crate) const FOREIGN: &str = "example.com/somebody-else";

/// One life of the operator, as it reaches the API server.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) session: Arc<Session>,
    pub(crate) life: usize,
    /// The API as the operator has it.
    pub(crate) api: Local,
    /// The API as everybody else has it.
    pub(crate) master: Local,
}

#[derive(Debug, thiserror::Error)]
#[error("the connection is gone")]
struct Gone;

impl Service<Request<ClientBody>> for Gate {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ClientBody>) -> Self::Future {
        Box::pin(self.clone().pass(request))
    }
}

impl Gate {
    async fn pass(self, request: Request<ClientBody>) -> Result<Response<Body>, BoxError> {
        let uri = request.uri();
        let call = Call::parse(request.method(), uri.path(), uri.query());
        // Whoever is on the way to the API may log what is asked for.
        self.session.log.add(format!("{} {uri}", request.method()));
        if !self.session.lives(self.life) {
            return Err(Gone.into());
        }
        // A process that stands still does nothing at all.
        let stalled = self.session.stalled(self.life);
        if !stalled.is_zero() {
            tokio::time::sleep(stalled).await;
            if call.verb != "watch" {
                // It was on its way when the lead was lost: no client can call it back.
                return self.send(&call, request).await;
            }
        }
        if is_outside(&call) {
            return self.send(&call, request).await;
        }
        if call.verb == "watch" {
            return self.watch(&call, request).await;
        }
        self.look_at(&call);
        let in_run = journal::is_recorded();
        let Some(number) = self.session.begin(self.life, &call, in_run) else {
            // It has had its share: it gets no answer any more.
            return std::future::pending().await;
        };
        let request = if in_run { request } else { self.past(request) };
        match self.session.plan.at_call(number) {
            Some(fault) => self.fail(fault, number, &call, request).await,
            None => self.ask(number, &call, request).await,
        }
    }

    /// Whether the call stays where it belongs.
    fn look_at(&self, call: &Call) {
        let trespass = journal::subject().and_then(|subject| self.session.borders.trespass(&subject, call));
        if let Some(what) = trespass {
            self.session.violate(what);
        }
    }

    /// Asks the API server, and notes what came of it.
    async fn ask(&self, number: usize, call: &Call, request: Request<ClientBody>) -> Result<Response<Body>, BoxError> {
        let before = self.session.store.revision();
        let response = self.send(call, request).await?;
        let code = response.status().as_u16();
        if !call.is_write() {
            self.session.end(number, Some(code), false);
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let changed = parts.status.is_success() && self.note(call, code, &bytes, before);
        self.session.end(number, Some(code), changed);
        Ok(Response::from_parts(parts, full(bytes)))
    }

    /// Whether a write changed something; what it made is remembered.
    fn note(&self, call: &Call, code: u16, answer: &Bytes, before: Revision) -> bool {
        let object: Value = serde_json::from_slice(answer).unwrap_or_default();
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let namespace = text("namespace");
        if code == 201 && call.subresource.is_empty() {
            let key = world::key(&call.group, &call.resource, &namespace, &text("name"));
            *self.session.lock().made.entry(key).or_default() += 1;
        }
        match call.verb {
            "update" | "patch" => text("resourceVersion").parse().is_ok_and(|revision: u64| revision > before.0),
            _ => true,
        }
    }

    async fn fail(
        &self,
        fault: CallFault,
        number: usize,
        call: &Call,
        request: Request<ClientBody>,
    ) -> Result<Response<Body>, BoxError> {
        let session = &self.session;
        match fault {
            CallFault::CrashBefore => {
                session.crash();
                std::future::pending().await
            }
            CallFault::CrashAfter => {
                let _ = self.ask(number, call, request).await;
                session.crash();
                std::future::pending().await
            }
            CallFault::Lost => {
                let _ = self.ask(number, call, request).await;
                Err(Gone.into())
            }
            CallFault::Timeout => {
                tokio::time::sleep(HELD).await;
                Err(Gone.into())
            }
            CallFault::Conflict => Ok(self.refuse(number, StatusCode::CONFLICT, "Conflict")),
            CallFault::TooMany => Ok(self.refuse(number, StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")),
            CallFault::Failed => Ok(self.refuse(number, StatusCode::INTERNAL_SERVER_ERROR, "InternalError")),
            CallFault::User => {
                session.let_user_act().await;
                self.ask(number, call, request).await
            }
            CallFault::Meddle => {
                self.meddle(call, request.uri()).await;
                self.ask(number, call, request).await
            }
            CallFault::Jump => {
                session.clock().advance(HOUR);
                self.ask(number, call, request).await
            }
            CallFault::Back => {
                session.clock().turn_back(HOUR);
                self.ask(number, call, request).await
            }
            CallFault::Deposed => {
                let answer = self.ask(number, call, request).await;
                session.depose();
                tokio::time::sleep(STALLED).await;
                answer
            }
        }
    }

    fn refuse(&self, number: usize, code: StatusCode, reason: &str) -> Response<Body> {
        self.session.end(number, Some(code.as_u16()), false);
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(), "reason": reason,
            "message": "made to fail by the exploration",
        });
        let mut response = Response::new(full(status.to_string()));
        *response.status_mut() = code;
        if code == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert("Retry-After", http::HeaderValue::from_static("1"));
        }
        response
    }

    /// Writes an annotation to the object of `call` in somebody else's name.
    async fn meddle(&self, call: &Call, uri: &Uri) {
        let Some(name) = &call.name else { return };
        let path = match call.subresource.as_str() {
            "" => uri.path().to_owned(),
            subresource => uri.path().trim_end_matches(subresource).trim_end_matches('/').to_owned(),
        };
        let body = json!({"metadata": {"annotations": {FOREIGN: "stays"}}}).to_string();
        let request = Request::patch(format!("{path}?fieldManager=somebody-else"))
            .header("Content-Type", "application/merge-patch+json")
            .body(ClientBody::from(body.into_bytes()));
        let Ok(request) = request else { return };
        let Ok(response) = self.master.clone().call(request).await;
        if !response.status().is_success() {
            return;
        }
        let Ok(body) = response.into_body().collect().await else { return };
        let object: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let key = world::key(&call.group, &call.resource, call.namespace.as_deref().unwrap_or_default(), name);
        self.session.lock().meddled.insert(key, uid);
    }

    /// The request, asking for the past if caches are to see that.
    fn past(&self, mut request: Request<ClientBody>) -> Request<ClientBody> {
        if let Some((_, revision)) = self.session.view() {
            let mark = if request.uri().query().is_some() { '&' } else { '?' };
            let asked = format!("{}{mark}resourceVersion={revision}&resourceVersionMatch=Exact", request.uri());
            if let Ok(uri) = asked.parse() {
                *request.uri_mut() = uri;
            }
        }
        request
    }

    async fn watch(&self, call: &Call, request: Request<ClientBody>) -> Result<Response<Body>, BoxError> {
        let response = self.send(call, request).await?;
        Ok(if response.status().is_success() {
            response.map(|body| events::through(body, self.session.clone(), self.life, call.resource.clone()))
        } else {
            response
        })
    }

    async fn send(&self, call: &Call, request: Request<ClientBody>) -> Result<Response<Body>, BoxError> {
        let Ok(response) = self.api.clone().call(request).await;
        let code = response.status();
        self.session.took(call, code.as_u16());
        if code == StatusCode::FORBIDDEN {
            self.session.violate(roles::forbidden(call));
        }
        Ok(response)
    }
}

/// Whether a call does not count: events are for people, leases for replicas, and other paths describe the API.
fn is_outside(call: &Call) -> bool {
    call.resource.is_empty()
        || call.resource == "events"
        || (call.group == "coordination.k8s.io" && call.resource == "leases")
}
