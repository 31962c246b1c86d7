//! The tap: the one way to the API, where every call is seen.

mod call;
mod calls;
mod rights;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tower::{BoxError, Service};

pub use call::Call;
pub use calls::{Entry, JOURNAL_MAX, Journal};
pub use rights::{PLACES_MAX, Place, RIGHTS_MAX, Right, Rights, Uses};

use crate::metrics::Metrics;
use crate::object::Known;
use crate::{journal, shards, trace};
use windlass_clock::Clock;

/// An answer of the API, or none.
pub type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;
/// The rest of the way to the API.
pub type Next = Box<dyn FnOnce(Request<Body>) -> Answer + Send>;
/// Stands in the way of calls: may answer by itself, change, delay, refuse, or pass them on.
pub type Intercept = Arc<dyn Fn(&Call, Request<Body>, Next) -> Answer + Send + Sync>;
/// Learns of every successful write, of what the API answered, and of what was known before, where somebody asks for that.
pub(crate) type OnWrite = Box<dyn Fn(&Call, &[u8], Option<Known>) + Send + Sync>;
/// Finds what is known of the object that a call changes.
pub(crate) type Ask = Box<dyn Fn(&Call) -> Option<Known> + Send + Sync>;

/// The tap; clones are the same tap.
#[derive(Clone)]
pub struct Tap(Arc<Inner>);

struct Inner {
    clock: Clock,
    metrics: Metrics,
    journal: Arc<Journal>,
    rights: Arc<Mutex<Rights>>,
    refused: watch::Sender<u64>,
    fence: Arc<Fence>,
    intercept: RwLock<Option<Intercept>>,
    on_write: RwLock<Vec<OnWrite>>,
    known: RwLock<Option<Ask>>,
}

/// What keeps a process from writing when it must not.
#[derive(Debug, Default)]
struct Fence {
    /// Set when this process must not change anything any more.
    closed: AtomicBool,
    /// Until when it may, by the clock, if it must renew a lease for that.
    write_until: RwLock<Option<Duration>>,
}

impl Tap {
    /// A tap that records into `metrics` and a journal of its own.
    pub fn new(clock: Clock, metrics: Metrics) -> Self {
        Self(Arc::new(Inner {
            clock,
            metrics,
            journal: Arc::default(),
            rights: Arc::default(),
            refused: watch::Sender::new(0),
            fence: Arc::default(),
            intercept: RwLock::default(),
            on_write: RwLock::default(),
            known: RwLock::default(),
        }))
    }

    /// A tap for another cluster, with the same journal and the same fence.
    pub(crate) fn sibling(&self) -> Self {
        Self(Arc::new(Inner {
            clock: self.0.clock.clone(),
            metrics: self.0.metrics.clone(),
            journal: self.0.journal.clone(),
            rights: self.0.rights.clone(),
            refused: watch::Sender::new(0),
            fence: self.0.fence.clone(),
            intercept: RwLock::default(),
            on_write: RwLock::default(),
            known: RwLock::default(),
        }))
    }

    /// A client whose calls pass this tap. Must be called inside a tokio runtime.
    pub fn client(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        Client::new(Tapped { tap: self.clone(), client }, namespace)
    }

    /// The record of calls.
    pub fn journal(&self) -> &Journal {
        &self.0.journal
    }

    /// The rights that all calls until now took.
    pub fn rights(&self) -> Rights {
        self.0.rights.lock().expect("no code that can panic runs under this lock").clone()
    }

    /// How many calls the API has refused for want of permission, as it changes.
    pub fn refused(&self) -> watch::Receiver<u64> {
        self.0.refused.subscribe()
    }

    /// Puts something in the way of all later calls, or takes it away.
    pub fn intercept(&self, intercept: Option<Intercept>) {
        *self.0.intercept.write().expect("no code that can panic runs under this lock") = intercept;
    }

    /// Refuses all later writes: another process leads, and what this one still wants is out of date.
    pub fn fence(&self) {
        self.0.fence.closed.store(true, Ordering::SeqCst);
    }

    /// Refuses writes from `elapsed` of the clock on, until it is told a later time.
    pub(crate) fn write_until(&self, elapsed: Duration) {
        *self.0.fence.write_until.write().expect("no code that can panic runs under this lock") = Some(elapsed);
    }

    /// Whether this process may write now. The lease itself is how it comes to be allowed.
    fn may_write(&self, call: &Call) -> bool {
        if self.0.fence.closed.load(Ordering::SeqCst) {
            return false;
        }
        if call.group == "coordination.k8s.io" && call.resource == "leases" {
            return true;
        }
        let until = *self.0.fence.write_until.read().expect("no code that can panic runs under this lock");
        let now = self.0.clock.elapsed();
        until.is_none_or(|until| now < until) && shards::may_write(now)
    }

    pub(crate) fn on_write(&self, listener: OnWrite) {
        self.0.on_write.write().expect("no code that can panic runs under this lock").push(listener);
    }

    /// Lets `known` be asked, before a write of a recorded run, what is known of its object: the watch may tell of the write
    /// before its answer comes, and then nothing of it seems to be new.
    pub(crate) fn ask(&self, known: Ask) {
        *self.0.known.write().expect("no code that can panic runs under this lock") = Some(known);
    }

    fn known(&self, call: &Call) -> Option<Known> {
        let known = self.0.known.read().expect("asking does not panic");
        known.as_ref().filter(|_| journal::is_recorded()).and_then(|known| known(call))
    }

    async fn call(self, client: Client, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let trace = mark(&mut request);
        let uri = request.uri();
        let call = Call::parse(request.method(), uri.path(), uri.query());
        if call.is_write() && !self.may_write(&call) {
            journal::called(&call, None, Duration::ZERO);
            return Err(Fenced.into());
        }
        let method = request.method().to_string();
        let host = uri.host().unwrap_or_default().to_owned();
        let is_dry_run = uri.query().is_some_and(|query| query.contains("dryRun="));
        let (at, started) = (self.0.clock.now(), tokio::time::Instant::now());

        let before = if call.is_write() && !is_dry_run { self.known(&call) } else { None };
        let next: Next = Box::new(move |request| Box::pin(async move { Ok(client.send(request).await?) }));
        let intercept = self.0.intercept.read().expect("no code that can panic runs under this lock").clone();
        let answer = match intercept {
            Some(intercept) => intercept(&call, request, next).await,
            None => next(request).await,
        };

        let code = answer.as_ref().ok().map(|response| response.status().as_u16());
        let took = started.elapsed();
        self.0.metrics.request(&method, code, &host);
        self.0.metrics.request_took(call.verb, &host, took);
        self.0.rights.lock().expect("no code that can panic runs under this lock").record(&call, code);
        if code == Some(403) {
            self.0.refused.send_modify(|count| *count += 1);
        }
        self.0.journal.record(Entry { at, call: call.clone(), code, took });
        journal::called(&call, code, took);
        if let Some((tracer, contexts)) = trace {
            tracer.send(trace::of_call(&call, code, contexts, (at, at + took)));
        }
        match answer {
            Ok(response) if call.is_write() && !is_dry_run && response.status().is_success() => {
                self.announce(&call, response, before).await
            }
            answer => answer,
        }
    }

    /// Reads the answer to a write before its caller does, so that caches know it when the caller goes on.
    async fn announce(
        &self,
        call: &Call,
        response: Response<Body>,
        before: Option<Known>,
    ) -> Result<Response<Body>, BoxError> {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        if call.name.is_none() && journal::is_recorded() {
            journal::named(call, name_in(&bytes).unwrap_or_default());
        }
        for listener in self.0.on_write.read().expect("listeners do not panic").iter() {
            listener(call, &bytes, before.clone());
        }
        Ok(Response::from_parts(parts, Body::from(bytes)))
    }
}

/// Lets the callee go on with the trace of the present run: the new span, and that of the run.
fn mark(request: &mut Request<Body>) -> Option<(trace::Tracer, (trace::Context, trace::Context))> {
    let (tracer, parent) = journal::trace()?;
    let context = parent.child();
    if let Ok(header) = context.traceparent().parse() {
        request.headers_mut().insert("traceparent", header);
    }
    Some((tracer, (context, parent)))
}

/// The name of the object in an answer.
fn name_in(answer: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        metadata: Metadata,
    }
    #[derive(serde::Deserialize)]
    struct Metadata {
        name: Option<String>,
    }
    serde_json::from_slice::<Named>(answer).ok()?.metadata.name
}

/// Why a write was refused on this side.
#[derive(Debug, thiserror::Error)]
#[error("this process no longer leads: nothing is written")]
struct Fenced;

struct Tapped {
    tap: Tap,
    client: Client,
}

impl Service<Request<Body>> for Tapped {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        Box::pin(self.tap.clone().call(self.client.clone(), request))
    }
}

#[cfg(test)]
mod tests;
