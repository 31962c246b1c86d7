//! From ended spans to the collector: a bounded queue, batches, and a few attempts for each.

use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Request, StatusCode, Uri, header};
use kube::client::Body;
use kube::{Client, Config};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::otlp::encode;
use super::settings::TraceSettings;
use super::span::{Context, Span};
use crate::metrics::Metrics;

/// How many spans may wait to be sent; more are dropped and counted.
const WAITING_MAX: usize = 4096;
/// How many spans are sent at once.
const BATCH_MAX: usize = 512;
/// How long a span waits for others.
const BATCH_TIME: Duration = Duration::from_secs(2);
/// How often a batch is sent that the collector cannot take now.
const ATTEMPTS_MAX: u32 = 4;
/// The pause before the second attempt; it doubles.
const PAUSE_FIRST: Duration = Duration::from_millis(500);

/// Makes traces and takes in spans; clones are the same.
#[derive(Clone)]
pub(crate) struct Tracer {
    spans: mpsc::Sender<Span>,
    ratio: f64,
    metrics: Metrics,
}

/// The task that sends, until it is told to end.
pub(crate) struct Exporting {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Tracer {
    /// Begins to send to where `settings` say. Must be called inside a tokio runtime.
    pub(crate) fn start(settings: TraceSettings, metrics: Metrics) -> Result<(Self, Exporting), kube::Error> {
        let mut config = Config::new(base(&settings.endpoint));
        config.connect_timeout = Some(settings.timeout);
        config.read_timeout = Some(settings.timeout);
        let client = Client::try_from(config)?;
        let (sender, spans) = mpsc::channel(WAITING_MAX);
        let (stop, ratio) = (CancellationToken::new(), settings.ratio);
        let exporter = Exporter { client, settings, metrics: metrics.clone() };
        let task = tokio::spawn(exporter.run(spans, stop.clone()));
        Ok((Self { spans: sender, ratio, metrics }, Exporting { stop, task }))
    }

    /// A new trace.
    pub(crate) fn root(&self) -> Context {
        Context::root(self.ratio >= 1.0 || rand::random::<f64>() < self.ratio)
    }

    /// Takes in a span that has ended.
    pub(crate) fn send(&self, span: Span) {
        if span.context.sampled && self.spans.try_send(span).is_err() {
            self.metrics.spans_dropped(1);
        }
    }
}

impl Exporting {
    /// Sends what is there, then ends.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}

struct Exporter {
    client: Client,
    settings: TraceSettings,
    metrics: Metrics,
}

/// What became of a batch.
enum Sent {
    Taken,
    /// The collector may take it later.
    Later(String),
    /// It never will.
    Refused(String),
}

impl Exporter {
    async fn run(self, mut spans: mpsc::Receiver<Span>, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            tokio::select! {
                count = spans.recv_many(&mut batch, BATCH_MAX) => if count == 0 { return },
                () = stop.cancelled() => break,
            }
            // Others that end at about the same time go with it.
            let gather = async { while batch.len() < BATCH_MAX && spans.recv_many(&mut batch, BATCH_MAX).await > 0 {} };
            tokio::select! {
                _ = tokio::time::timeout(BATCH_TIME, gather) => {}
                () = stop.cancelled() => break,
            }
            self.deliver(&batch, &stop).await;
            batch.clear();
        }
        while let Ok(span) = spans.try_recv() {
            batch.push(span);
        }
        for batch in batch.chunks(BATCH_MAX) {
            self.deliver(batch, &stop).await;
        }
    }

    async fn deliver(&self, batch: &[Span], stop: &CancellationToken) {
        let body = encode(&self.settings.resource, batch);
        let mut pause = PAUSE_FIRST;
        for attempt in 1.. {
            match self.post(body.clone()).await {
                Sent::Taken => return,
                // At the end there is no time for a second attempt.
                Sent::Later(_) if attempt < ATTEMPTS_MAX && !stop.is_cancelled() => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Sent::Later(why) | Sent::Refused(why) => {
                    tracing::warn!(
                        spans = batch.len(),
                        error = why,
                        "Spans are lost: the collector does not take them"
                    );
                    return self.metrics.spans_dropped(batch.len() as u64);
                }
            }
        }
    }

    async fn post(&self, body: Vec<u8>) -> Sent {
        let target = self.settings.endpoint.path_and_query().map_or("/", |target| target.as_str());
        let mut request = Request::post(target).header(header::CONTENT_TYPE, "application/json");
        for (name, value) in &self.settings.headers {
            request = request.header(name, value);
        }
        let request = match request.body(Body::from(body)) {
            Ok(request) => request,
            Err(error) => return Sent::Refused(error.to_string()),
        };
        match tokio::time::timeout(self.settings.timeout, self.client.send(request)).await {
            Ok(Ok(answer)) => judge(answer.status()),
            Ok(Err(error)) => Sent::Later(error.to_string()),
            Err(_) => Sent::Later("no answer in time".to_owned()),
        }
    }
}

/// The address without its path.
fn base(endpoint: &Uri) -> Uri {
    let mut parts = endpoint.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::from_static("/"));
    Uri::from_parts(parts).expect("an address with another path is an address")
}

/// Which refusals pass is said by the standard.
fn judge(status: StatusCode) -> Sent {
    match status.as_u16() {
        200..300 => Sent::Taken,
        429 | 502 | 503 | 504 => Sent::Later(status.to_string()),
        _ => Sent::Refused(status.to_string()),
    }
}
