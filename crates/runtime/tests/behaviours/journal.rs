//! What holds of the journal: why, what was seen, decided and done, and nothing of what is in objects.

use std::net::SocketAddr;

use crate::notes::{Note, NoteSpec, Running, app, edit, eventually, note, says, settled, write};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass::kube::api::DeleteParams;
use windlass::prelude::*;
use windlass::serde_json::{self, json};
use windlass::{App, Program};
use windlass_runtime::journal::{History, Page, Question, Run, Runs, Trigger, Turn};
use windlass_runtime::{Manager, ManagerConfig, Namespaces};
use windlass_testkit::TestCluster;

struct Fixture {
    cluster: TestCluster,
    running: Running,
    runs: Runs,
    port: SocketAddr,
}

impl Fixture {
    async fn start<O: Operator>(app: App<O>) -> Self {
        let cluster = TestCluster::start().await;
        cluster.define(app.crds()).await;
        // A port that was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = ManagerConfig { probes: Some(port), ..ManagerConfig::new(app.name()) };
        let mut manager = Manager::new(cluster.client(), config);
        app.install(&mut manager, Namespaces::all());
        let runs = manager.runs().unwrap();
        Self { cluster, running: Running::start(manager), runs, port }
    }

    fn history(&self, name: &str) -> History {
        let question = Question { name: Some(name.into()), ..Question::default() };
        self.runs.find(&question, 1).0.into_iter().next().unwrap_or_default()
    }

    /// Waits for a run that is as said.
    async fn run(&self, name: &str, what: &str, is_it: impl Fn(&Run) -> bool) -> Run {
        eventually(what, || self.history(name).runs.iter().any(&is_it)).await;
        self.history(name).runs.into_iter().find(|run| is_it(run)).unwrap()
    }

    async fn get(&self, target: &str) -> String {
        let mut stream = TcpStream::connect(self.port).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

fn is_woken_by(run: &Run, kind: &str) -> bool {
    run.triggers.iter().any(|trigger| matches!(trigger, Trigger::Object { kind: woke, .. } if woke == kind))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_told_with_what_woke_it_what_it_saw_decided_and_did() {
    let fixture = Fixture::start(app()).await;
    let notes = fixture.cluster.api::<Note>();
    let secret = NoteSpec { text: "hunter2".into(), secret: true, appendix: None };
    write(&notes, Note::new("n", secret)).await;
    settled(&notes, "n").await;
    let first = fixture.run("n", "the first run", |run| run.calls.iter().any(|call| call.resource == "secrets")).await;
    assert!(is_woken_by(&first, "Note"), "{first:?}");
    assert_eq!((first.turn, first.reason.as_str(), first.controller.as_str()), (Turn::Settled, "Settled", "note"));
    let saw: Vec<_> = first.saw.iter().map(|seen| (seen.kind.as_str(), seen.version.is_empty())).collect();
    assert_eq!(saw, [("Note", false), ("ConfigMap", true), ("Secret", true)]);
    let did: Vec<_> =
        first.calls.iter().map(|call| (call.resource.as_str(), call.subresource.as_str(), call.code)).collect();
    assert_eq!(did, [("configmaps", "", Some(201)), ("secrets", "", Some(201)), ("notes", "status", Some(200))]);

    // Drift wakes its owner, and what is put right is told by its path.
    fixture.cluster.patch::<ConfigMap>("n", json!({"data": {"text": "drifted"}})).await;
    let is_repair = |run: &Run| run.calls.iter().any(|call| call.resource == "configmaps" && call.code == Some(200));
    let second = fixture.run("n", "a run because of drift", is_repair).await;
    assert!(is_woken_by(&second, "ConfigMap"), "{second:?}");
    let repair = second.calls.iter().find(|call| call.resource == "configmaps").unwrap();
    assert_eq!(repair.fields, ["data.text"], "{second:?}");
    assert_ne!(first.reconcile_id, second.reconcile_id);

    // The same over HTTP, without a word of what is in the objects.
    let answer = fixture.get("/journal?kind=note&namespace=default&name=n").await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/json"), "{head}");
    let page: Page = serde_json::from_str(body).unwrap();
    assert_eq!((page.objects.len(), page.more, page.replica.works), (1, 0, true));
    assert_eq!((page.replica.operator.as_str(), page.replica.serves[0].kind.as_str()), ("note-operator", "Note"));
    assert!(page.objects[0].runs.iter().any(|run| run.reconcile_id == second.reconcile_id));
    assert!(!body.contains("hunter2") && !body.contains("drifted"), "{body}");
    assert!(fixture.get("/journal?name=other").await.ends_with(r#""objects":[],"more":0}"#));

    notes.delete("n", &DeleteParams::default()).await.unwrap();
    fixture.run("n", "a run that finds nothing", |run| run.turn == Turn::Gone).await;
    fixture.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_pauses_and_failures_are_told_with_when_comes_the_next_try() {
    let fixture = Fixture::start(app()).await;
    let notes = fixture.cluster.api::<Note>();
    let mut waiting = note("waits", "x");
    waiting.spec.appendix = Some("missing".into());
    write(&notes, waiting).await;
    let run = fixture.run("waits", "a wait", |run| run.turn == Turn::Waiting).await;
    assert_eq!((run.reason.as_str(), run.message.as_str()), ("AppendixMissing", "there is no ConfigMap missing"));
    assert_eq!((run.next, run.failures), (None, 0));

    write(&notes, note("crashes", "panic")).await;
    let run = fixture.run("crashes", "a crash", |run| run.turn == Turn::Crashed && run.failures > 1).await;
    assert_eq!((run.reason.as_str(), run.message.as_str()), ("ReconcilePanicked", "panic: the note says so"));
    assert!(run.next.as_ref().is_some_and(|next| next.retry), "{run:?}");
    let retry = fixture.run("crashes", "a retry", |run| run.triggers.contains(&Trigger::Retry)).await;
    assert_eq!(retry.turn, Turn::Crashed);

    write(&notes, note("paused", "x")).await;
    settled(&notes, "paused").await;
    edit(&notes, "paused", json!({"metadata": {"annotations": {"windlass.dev/paused": "true"}}})).await;
    fixture.run("paused", "a pause", |run| run.turn == Turn::Paused).await;

    // A ConfigMap that is not the operator's is left alone, and a person has to decide.
    fixture.cluster.create::<ConfigMap>(json!({"metadata": {"name": "taken"}})).await;
    write(&notes, note("taken", "x")).await;
    says(&notes, "taken", "Ready", "ChildRefused").await;
    let run = fixture.run("taken", "a refusal", |run| run.turn == Turn::Refused).await;
    assert!(run.message.starts_with("ConfigMap taken exists and was not made by note-operator"), "{}", run.message);
    assert!(run.next.is_some_and(|next| !next.retry));
    fixture.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_check_can_be_asked_for_and_the_end_of_the_process_is_told_before_it_comes() {
    let fixture = Fixture::start(app()).await;
    fixture.running.reports("watch notes.notes.example.com", None).await;
    let rows = [
        ("/readyz/watch-notes.notes.example.com", "200"),
        ("/readyz/shutdown", "200"),
        ("/readyz/nothing", "404"),
        ("/healthz", "200"),
        ("/healthz/ping", "200"),
    ];
    for (target, code) in rows {
        let answer = fixture.get(target).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{target}: {answer}");
    }
    fixture.running.end().await;
}
