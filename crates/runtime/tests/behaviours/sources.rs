//! What holds of the world outside: streams, timers and requests wake resources.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use crate::notes::{Note, NoteSpec, Running, app, eventually};
use futures::channel::mpsc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass::Program;
use windlass::prelude::*;
use windlass_runtime::{Bytes, Manager, ManagerConfig, Namespaces, http};
use windlass_testkit::{TestClock, TestCluster};

/// Counts how often it is asked.
struct Counter(Arc<AtomicU32>);

impl Operator for Counter {
    type Resource = Note;

    fn desired(&self, _: &Note, _: &World) -> Outcome<NoStatus> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Desired::new().settled()
    }
}

struct Fixture {
    cluster: TestCluster,
    asked: Arc<AtomicU32>,
    events: mpsc::UnboundedSender<ObjectKey>,
    clock: TestClock,
    running: Running,
    port: SocketAddr,
}

fn key() -> ObjectKey {
    ObjectKey::namespaced("default", "n")
}

/// Which note a request is about.
fn read(request: &http::Request<Bytes>) -> Result<Vec<ObjectKey>, String> {
    if request.headers().get("x-token").is_none_or(|token| token != "let me in") {
        return Err("say the word in x-token".into());
    }
    let name = std::str::from_utf8(request.body()).map_err(|_| "the body is the name of a note".to_owned())?;
    Ok(vec![ObjectKey::namespaced("default", name)])
}

impl Fixture {
    async fn start() -> Self {
        let (cluster, clock) = (TestCluster::start().await, TestClock::default());
        cluster.define(app().crds()).await;
        let asked = Arc::new(AtomicU32::new(0));
        let (events, stream) = mpsc::unbounded();
        let stream = Mutex::new(Some(stream));
        let app = windlass::operator(Counter(asked.clone()))
            .stream("messages", move || stream.lock().unwrap().take().unwrap())
            .every(Duration::from_secs(3600), || [key()])
            .endpoint("/notes/changed", read);
        // A port that was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = ManagerConfig { clock: clock.clock(), events: Some(port), ..ManagerConfig::new("notes") };
        let mut manager = Manager::new(cluster.client(), config);
        app.install(&mut manager, Namespaces::all());
        let running = Running::start(manager);
        let spec = NoteSpec { text: String::new(), secret: false, appendix: None };
        crate::notes::write(&cluster.api(), Note::new("n", spec)).await;
        crate::notes::settled(&cluster.api(), "n").await;
        let fixture = Self { cluster, asked, events, clock, running, port };
        fixture.quiet().await;
        fixture
    }

    /// Waits until nothing is in line: each status write is followed by one more look.
    async fn quiet(&self) {
        let idle = || {
            self.running.metric(r#"workqueue_depth{name="note",controller="note"}"#) == Some(0.0)
                && self.running.metric(r#"controller_runtime_active_workers{controller="note"}"#) == Some(0.0)
        };
        let mut last = None;
        while last != Some(self.asked.load(Ordering::SeqCst)) {
            last = Some(self.asked.load(Ordering::SeqCst));
            tokio::time::sleep(Duration::from_millis(50)).await;
            eventually("nothing is in line", idle).await;
        }
    }

    async fn post(&self, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.port).await.unwrap();
        let length = body.len();
        let request = format!(
            "POST /notes/changed HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Does something, and waits until the operator was asked once more.
    async fn wakes(&self, what: &str, act: impl AsyncFnOnce()) {
        let before = self.asked.load(Ordering::SeqCst);
        act().await;
        eventually(what, || self.asked.load(Ordering::SeqCst) == before + 1).await;
        self.quiet().await;
        assert_eq!(self.asked.load(Ordering::SeqCst), before + 1, "{what} wakes once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_a_timer_and_a_request_wake_a_resource() {
    let fixture = Fixture::start().await;
    fixture.wakes("a message", async || fixture.events.unbounded_send(key()).unwrap()).await;
    fixture.wakes("time", async || fixture.clock.advance(Duration::from_secs(4000))).await;
    fixture
        .wakes("a request", async || {
            let answer = fixture.post("x-token: let me in\r\n", "n").await;
            assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        })
        .await;
    let refused = fixture.post("", "n").await;
    assert!(refused.starts_with("HTTP/1.1 400") && refused.contains("say the word"), "{refused}");
    let long = fixture.post("x-token: let me in\r\n", &"n".repeat(2 << 20)).await;
    assert!(long.is_empty() || long.starts_with("HTTP/1.1 413"), "{long}");

    fixture.running.reports("source messages", None).await;
    fixture.events.close_channel();
    fixture.running.reports("source messages", Some("has ended")).await;
    fixture.running.end().await;
    fixture.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_resource_is_looked_at_again_after_the_resync_time_each_at_its_own_moment() {
    let (cluster, clock) = (TestCluster::start().await, TestClock::default());
    cluster.define(app().crds()).await;
    let asked = Arc::new(AtomicU32::new(0));
    let app = windlass::operator(Counter(asked.clone())).resync(Duration::from_secs(1000));
    let mut manager =
        Manager::new(cluster.client(), ManagerConfig { clock: clock.clock(), ..ManagerConfig::new("notes") });
    app.install(&mut manager, Namespaces::all());
    let activity = manager.activity();
    let running = Running::start(manager);
    let notes = cluster.api::<Note>();
    for index in 0..20 {
        crate::notes::write(&notes, crate::notes::note(&format!("n-{index}"), "")).await;
        crate::notes::settled(&notes, &format!("n-{index}")).await;
    }
    // Each was asked for once, and once more for its status unless the two came together.
    eventually("all that happened was looked at", || activity.is_quiet()).await;
    let before = asked.load(Ordering::SeqCst);
    let seen = || asked.load(Ordering::SeqCst) - before;
    clock.advance(Duration::from_secs(1000));
    let mut spread = Vec::new();
    // A look that comes late begins its time anew, so it may take longer than twice the time.
    while seen() < 20 && spread.len() < 1000 {
        clock.advance(Duration::from_secs(100));
        tokio::time::sleep(Duration::from_millis(30)).await;
        spread.push(seen());
    }
    assert!(seen() >= 20, "all are looked at: {spread:?}");
    assert!(spread.len() > 2, "not all at once: {spread:?}");
    running.end().await;
}
