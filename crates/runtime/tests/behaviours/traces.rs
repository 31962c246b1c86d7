//! What holds of traces: a span for each run and each of its calls reaches the collector, and the API server hears of it.

use std::sync::{Arc, Mutex};

use crate::notes::{Note, Running, app, eventually, note, settled, write};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windlass::Program;
use windlass::prelude::*;
use windlass::serde_json::{self, Value};
use windlass_runtime::trace::TraceSettings;
use windlass_runtime::{Manager, ManagerConfig, Namespaces};
use windlass_testkit::TestCluster;

/// A collector that reads what OTLP says: the head and the spans of each request.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<(String, Value)>>>);

impl Collector {
    async fn start() -> (Self, String) {
        let (collector, listener) = (Self::default(), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = format!("http://{}", listener.local_addr().unwrap());
        let taking = collector.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(taking.clone().converse(stream));
            }
        });
        (collector, address)
    }

    /// The first request is refused as a busy collector refuses: it has to come again.
    async fn converse(self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        loop {
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
            let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.unwrap().trim().parse().unwrap();
            if bytes.len() < end + 4 + length {
                continue;
            }
            let body = serde_json::from_slice(&bytes[end + 4..end + 4 + length]).unwrap();
            bytes.drain(..end + 4 + length);
            let answer = format!("HTTP/1.1 {}\r\nContent-Length: 2\r\n\r\n{{}}", self.take(head, body));
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }

    fn take(&self, head: String, body: Value) -> &'static str {
        let mut taken = self.0.lock().unwrap();
        taken.push((head, body));
        if taken.len() == 1 { "503 Service Unavailable" } else { "200 OK" }
    }

    fn spans(&self) -> Vec<Value> {
        let taken = self.0.lock().unwrap();
        let accepted = taken.iter().skip(1).flat_map(|(_, body)| {
            body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default()
        });
        accepted.collect()
    }
}

fn attribute(span: &Value, key: &str) -> Value {
    let found = span["attributes"].as_array().unwrap().iter().find(|pair| pair["key"] == key);
    found.map_or(Value::Null, |pair| pair["value"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_and_its_calls_are_one_trace_that_goes_to_the_collector() {
    let (collector, address) = Collector::start().await;
    let cluster = TestCluster::start().await;
    cluster.define(app().crds()).await;
    let settings = TraceSettings {
        endpoint: format!("{address}/v1/traces").parse().unwrap(),
        headers: vec![("api-key".parse().unwrap(), "let-me-in".parse().unwrap())],
        timeout: Duration::from_secs(10),
        resource: vec![("service.name".into(), "note-operator".into())],
        ratio: 1.0,
    };
    let config = ManagerConfig { traces: Some(settings), ..ManagerConfig::new("note-operator") };
    let mut manager = Manager::new(cluster.client(), config);
    app().install(&mut manager, Namespaces::all());
    let (tap, parents) = (manager.tap().clone(), Arc::new(Mutex::new(Vec::new())));
    let seen = parents.clone();
    tap.intercept(Some(Arc::new(move |call, request, next| {
        if let Some(parent) = request.headers().get("traceparent") {
            seen.lock().unwrap().push((call.resource.clone(), parent.to_str().unwrap().to_owned()));
        }
        next(request)
    })));
    let running = Running::start(manager);
    write(&cluster.api(), note("n", "hunter2")).await;
    settled(&cluster.api::<Note>(), "n").await;
    let is_made = |span: &Value| span["name"] == "patch configmaps";
    eventually("the spans have come", || collector.spans().iter().any(is_made)).await;
    // What is left is sent at the end.
    running.end().await;

    let spans = collector.spans();
    let call = spans.iter().find(|span| is_made(span)).unwrap();
    let run = spans.iter().find(|span| span["spanId"] == call["parentSpanId"]).unwrap();
    assert_eq!((&run["traceId"], &run["name"]), (&call["traceId"], &"reconcile note".into()));
    assert_eq!(attribute(call, "http.response.status_code")["intValue"], "201");
    assert_eq!((&call["kind"], &run["kind"]), (&3.into(), &1.into()));
    for (key, expected) in [
        ("windlass.controller", "note"),
        ("windlass.outcome", "settled"),
        ("k8s.object.kind", "Note"),
        ("k8s.namespace.name", "default"),
        ("k8s.object.name", "n"),
    ] {
        assert_eq!(attribute(run, key)["stringValue"], expected, "{key}");
    }
    let trigger = attribute(run, "windlass.trigger")["stringValue"].as_str().unwrap().to_owned();
    assert!(trigger.starts_with("Note n "), "{trigger}");
    let expected = format!("00-{}-{}-01", call["traceId"].as_str().unwrap(), call["spanId"].as_str().unwrap());
    assert!(parents.lock().unwrap().contains(&("configmaps".to_owned(), expected)));

    let taken = collector.0.lock().unwrap();
    let (head, body) = &taken[0];
    assert!(head.starts_with("post /v1/traces ") && head.contains("api-key: let-me-in"), "{head}");
    assert_eq!(body["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"], "note-operator");
    assert!(!taken.iter().any(|(_, body)| body.to_string().contains("hunter2")));
}
