//! Three real nginx servers that are updated while clients ask without pause: no request fails, neither when the new
//! version works nor when it cannot start.

mod support;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use support::{TestCluster, eventually, failure};

/// Clients that ask at the same time.
const CLIENTS: usize = 2;
/// How long one request may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// What of the failed requests is kept to be shown.
const FAILURES_KEPT: usize = 10;

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/nginx.yaml");
    path.to_str().expect("a plain path").to_owned()
}

/// How the requests of one or more clients went.
#[derive(Debug, Default)]
struct Tally {
    /// Good answers, by what they said.
    answers: BTreeMap<String, usize>,
    failures: Vec<String>,
    failed: usize,
}

impl Tally {
    fn count(&mut self, answer: Result<String, String>) {
        match answer {
            Ok(text) => *self.answers.entry(text).or_default() += 1,
            Err(why) => {
                self.failed += 1;
                self.failures.push(why);
                self.failures.truncate(FAILURES_KEPT);
            }
        }
    }
}

/// Clients that ask without pause, each time over a new connection, until they are told to stop.
struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Tally>>,
}

impl Load {
    fn on(address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut tally = Tally::default();
                while !stop.load(Ordering::Relaxed) {
                    tally.count(ask(address));
                }
                tally
            })
        };
        let clients = (0..CLIENTS).map(client).collect();
        Self { stop, clients }
    }

    /// Ends the clients; no request may have failed.
    fn end(self) -> BTreeMap<String, usize> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = BTreeMap::new();
        for client in self.clients {
            let tally = client.join().expect("a client does not panic");
            assert_eq!(tally.failed, 0, "failed requests, of {:?} good ones: {:#?}", tally.answers, tally.failures);
            for (answer, count) in tally.answers {
                *all.entry(answer).or_default() += count;
            }
        }
        println!("requests by answer: {all:?}; none failed");
        all
    }
}

fn ask(address: SocketAddr) -> Result<String, String> {
    let say = |step: &'static str| move |error: std::io::Error| format!("{step}: {error}");
    let mut stream = TcpStream::connect_timeout(&address, REQUEST_LIMIT).map_err(say("connect"))?;
    stream.set_read_timeout(Some(REQUEST_LIMIT)).map_err(say("set a limit"))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n").map_err(say("send"))?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(say("read"))?;
    match text.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.trim().to_owned()),
        _ => Err(format!("answered {text:?}")),
    }
}

fn web(cluster: &TestCluster) -> SocketAddr {
    let service = cluster.object("service", "web").expect("the Service is there");
    let address = service["spec"]["clusterIP"].as_str().expect("it has an address");
    format!("{address}:8080").parse().expect("an address and a port")
}

/// Makes a ConfigMap for another version and lets the servers use it.
fn update(cluster: &TestCluster, version: &str) {
    let name = format!("web-{version}");
    let site = format!(
        "--from-literal=default.conf=server {{ listen 8080; location / {{ return 200 'version {version}'; }} }}"
    );
    cluster.kubectl(&["create", "configmap", &name, &site]);
    let volumes = format!(
        r#"{{"spec": {{"template": {{"spec": {{"volumes": [{{"name": "site", "configMap": {{"name": "{name}"}}}}]}}}}}}}}"#
    );
    cluster.kubectl(&["patch", "deployment", "web", "-p", &volumes]);
}

fn rolled_out(cluster: &TestCluster) {
    let said = cluster.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
    assert!(said.contains("deployment \"web\" successfully rolled out"), "{said}");
    // The old Pods as well: they are asked until they end.
    cluster.wait_for_pods(3);
}

#[test]
fn no_request_fails_while_servers_are_replaced() {
    let cluster = TestCluster::up(&["--no-operators", "-f", &example()]);
    let load = Load::on(web(&cluster));
    update(&cluster, "2");
    rolled_out(&cluster);
    let answers = load.end();
    let total: usize = answers.values().sum();
    assert!(total > 2_000, "only {total} requests: {answers:?}");
    assert_eq!(answers.keys().collect::<Vec<_>>(), ["version 1", "version 2"]);
    assert_eq!(ask(web(&cluster)).as_deref(), Ok("version 2"));
}

/// The Pod of the version that cannot start.
fn broken(cluster: &TestCluster) -> Result<Value, String> {
    let pods = cluster.list(&["pods"]);
    assert!(pods.len() <= 4, "more Pods than maxSurge allows: {}", pods.len());
    let image = |pod: &Value| pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default().to_owned();
    pods.into_iter().find(|pod| image(pod) == BROKEN).ok_or_else(|| "no such Pod".to_owned())
}

const BROKEN: &str = "registry.example.com/none/nginx:9.9";

#[test]
fn a_version_that_cannot_start_is_stopped_reported_and_undone() {
    let cluster = TestCluster::up(&["--no-operators", "-f", &example()]);
    let load = Load::on(web(&cluster));
    cluster.kubectl(&["patch", "deployment", "web", "-p", r#"{"spec": {"progressDeadlineSeconds": 6}}"#]);
    let cause = ["annotate", "deployment/web", "kubernetes.io/change-cause=to a registry that is not there"];
    cluster.kubectl(&["set", "image", "deployment/web", &format!("nginx={BROKEN}")]);
    cluster.kubectl(&cause);

    for (reason, message) in [("ErrImagePull", "does not exist"), ("ImagePullBackOff", "Back-off pulling image")] {
        eventually(reason, || {
            let pod = broken(&cluster)?;
            let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
            let said = waiting["message"].as_str().unwrap_or_default();
            if waiting["reason"] == reason && said.contains(message) { Ok(()) } else { Err(waiting.to_string()) }
        });
    }
    let pod = format!("pod/{}", broken(&cluster).expect("it is there")["metadata"]["name"].as_str().expect("a name"));
    let events = cluster.kubectl(&["events", "--for", &pod]);
    for said in ["Failed to pull image", "Error: ErrImagePull", "Back-off pulling image", "Error: ImagePullBackOff"] {
        assert!(events.contains(said), "no {said:?} in\n{events}");
    }

    let said = failure(cluster.kubectl_command().args(["rollout", "status", "deployment/web", "--timeout=120s"]));
    assert!(said.contains("exceeded its progress deadline"), "{said}");
    let deployment = cluster.object("deployment", "web").expect("it is there");
    let conditions = deployment["status"]["conditions"].to_string();
    assert!(conditions.contains("ProgressDeadlineExceeded"), "{conditions}");
    assert_eq!(deployment["status"]["availableReplicas"], 3, "the old ones serve");
    let history = cluster.kubectl(&["rollout", "history", "deployment/web"]);
    assert!(history.contains("2         to a registry that is not there"), "{history}");
    let detail = cluster.kubectl(&["rollout", "history", "deployment/web", "--revision=2"]);
    assert!(detail.contains(BROKEN), "{detail}");

    let said = cluster.kubectl(&["rollout", "undo", "deployment/web"]);
    assert!(said.contains("deployment.apps/web rolled back"), "{said}");
    rolled_out(&cluster);
    let history = cluster.kubectl(&["rollout", "history", "deployment/web"]);
    let revisions: Vec<&str> = history.lines().skip(2).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(revisions, ["2", "3"], "{history}");
    let answers = load.end();
    assert_eq!(answers.keys().collect::<Vec<_>>(), ["version 1"]);
}
