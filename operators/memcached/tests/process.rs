//! The operator's binary, with the permissions of its manifests and no more.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::process::Stdio;

use memcached_operator::{Memcached, MemcachedSpec, app};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};
use windlass::k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use windlass::k8s_openapi::api::coordination::v1::Lease;
use windlass::k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use windlass::kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use windlass::kube::core::{ApiResource, GroupVersionKind};
use windlass::kube::runtime::wait::{await_condition, conditions};
use windlass::kube::{Api, Client};
use windlass::prelude::*;
use windlass::serde_json::{Value, from_value};
use windlass::{ManifestOptions, Program};
use windlass_testkit::{PATIENCE, Profile, TestCluster};

const NAME: &str = "memcached-operator";
const NAMESPACE: &str = "memcached-system";

struct Installed {
    cluster: TestCluster,
    client: Client,
    _dir: tempfile::TempDir,
    kubeconfig: PathBuf,
}

impl Installed {
    /// A cluster with the operator's manifests applied, except for the Deployment; `change` may alter them.
    async fn start(change: impl Fn(&mut Value)) -> Self {
        let cluster = TestCluster::builder().profile(Profile::Workloads).start().await;
        let client = cluster.client();
        let app = app();
        for mut manifest in app.manifests(&ManifestOptions::of(&app)) {
            change(&mut manifest);
            if manifest["kind"] != "Deployment" {
                apply(&client, manifest).await;
            }
        }
        let definition =
            await_condition(Api::all(client.clone()), "memcacheds.cache.example.com", conditions::is_crd_established());
        tokio::time::timeout(PATIENCE, definition).await.unwrap().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let kubeconfig = dir.path().join("kubeconfig");
        let (reached, authority) = (cluster.kubeconfig(), dir.path().join("ca.crt"));
        std::fs::write(&authority, &reached.authority).unwrap();
        let text = kubeconfig_of(&reached.server, authority.to_str().unwrap(), &token(&client).await);
        std::fs::write(&kubeconfig, text).unwrap();
        Self { cluster, client, _dir: dir, kubeconfig }
    }

    fn run(&self, probes: u16) -> Running {
        let mut child = Command::new(env!("CARGO_BIN_EXE_memcached-operator"))
            .args(["run", "--leader-elect", "--leader-election-namespace", NAMESPACE, "--metrics-bind-address=0"])
            .args(["--webhooks=cluster", "--webhook-bind-address=127.0.0.1:0", "--webhook-namespace", NAMESPACE])
            .arg(format!("--health-probe-bind-address=127.0.0.1:{probes}"))
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .env("NO_COLOR", "1")
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Running { child, log }
    }
}

struct Running {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl Running {
    /// Reads the log until a line has `words`.
    async fn says(&mut self, words: &str) -> String {
        let mut seen = Vec::new();
        let line = async {
            while let Some(line) = self.log.next_line().await.unwrap() {
                if line.contains(words) {
                    return Some(line);
                }
                seen.push(line);
            }
            None
        };
        let line = tokio::time::timeout(PATIENCE, line).await.ok().flatten();
        line.unwrap_or_else(|| panic!("{words:?} was not said, but\n{}", seen.join("\n")))
    }
}

async fn apply(client: &Client, manifest: Value) {
    let object: DynamicObject = from_value(manifest).unwrap();
    let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.patch(&object.name_any(), &PatchParams::apply("test"), &Patch::Apply(&object)).await.unwrap();
}

async fn token(client: &Client) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let answer = accounts.create_token_request(NAME, &PostParams::default(), &request).await.unwrap();
    answer.status.unwrap().token.unwrap()
}

fn kubeconfig_of(server: &str, authority: &str, token: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{{"name": "it", "cluster": {{"server": "{server}", "certificate-authority": "{authority}"}}}}],
            "users": [{{"name": "it", "user": {{"token": "{token}"}}}}],
            "contexts": [{{"name": "it", "context": {{"cluster": "it", "user": "it"}}}}]}}"#
    )
}

async fn free_port() -> u16 {
    tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

async fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: probe\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn is_ready(memcached: Option<&Memcached>) -> bool {
    let status = memcached.and_then(|memcached| memcached.status.as_ref());
    status.is_some_and(|status| windlass::condition::is_true(&status.conditions, "Ready"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_permissions_of_the_manifests_are_enough_and_the_lease_is_given_back() {
    let installed = Installed::start(|_| ()).await;
    let port = free_port().await;
    let mut running = installed.run(port);
    running.says("The API server was told whom to trust").await;
    running.says("Permissions are complete").await;

    let memcacheds: Api<Memcached> = Api::namespaced(installed.client.clone(), "default");
    let memcached = Memcached::new("cache", MemcachedSpec { size: 1, image: None, arguments: Vec::new() });
    memcacheds.create(&PostParams::default(), &memcached).await.unwrap();
    tokio::time::timeout(PATIENCE, await_condition(memcacheds, "cache", is_ready)).await.unwrap().unwrap();
    let readiness = get(port, "/readyz").await;
    assert!(readiness.starts_with("HTTP/1.1 200") && readiness.contains("[+]watch deployments.apps ok"), "{readiness}");
    assert!(readiness.contains("[+]webhooks ok"), "{readiness}");

    // A right that is taken away shows when it is missed.
    let bindings: Api<ClusterRoleBinding> = Api::all(installed.client.clone());
    bindings.delete(NAME, &DeleteParams::default()).await.unwrap();
    let more = windlass::serde_json::json!({"spec": {"size": 2}});
    let memcacheds: Api<Memcached> = Api::namespaced(installed.client.clone(), "default");
    memcacheds.patch("cache", &PatchParams::default(), &Patch::Merge(&more)).await.unwrap();
    let line = running.says("Permissions were taken away").await;
    let command = "or run: memcached-operator rbac --namespace memcached-system | kubectl apply -f -";
    assert!(
        line.contains("add to the rules of ClusterRole memcached-operator: {") && line.ends_with(command),
        "{line}"
    );
    assert!(get(port, "/readyz").await.contains("[-]permissions failed: add to the rules of ClusterRole"));

    let leases: Api<Lease> = Api::namespaced(installed.client.clone(), NAMESPACE);
    let holder = |lease: Lease| lease.spec.and_then(|spec| spec.holder_identity);
    assert!(holder(leases.get(NAME).await.unwrap()).is_some());
    let pid = running.child.id().unwrap().to_string();
    Command::new("kill").args(["-TERM", &pid]).status().await.unwrap();
    let status = tokio::time::timeout(PATIENCE, running.child.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(holder(leases.get(NAME).await.unwrap()), None);
    installed.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_named_with_the_rule_to_add() {
    let installed = Installed::start(|manifest| {
        if manifest["kind"] == "ClusterRole" {
            let rules = manifest["rules"].as_array_mut().unwrap();
            rules.retain(|rule| rule["apiGroups"][0] != "apps");
        }
    })
    .await;
    let port = free_port().await;
    let mut running = installed.run(port);
    let line = running.says("Permissions are missing").await;
    let rule = r#"{apiGroups: ["apps"], resources: ["controllerrevisions", "deployments"], verbs: ["get", "list", "watch", "create", "patch", "delete"]}"#;
    assert!(line.contains(rule), "{line}");
    let readiness = get(port, "/readyz").await;
    assert!(readiness.starts_with("HTTP/1.1 503") && readiness.contains("[-]permissions failed: add"), "{readiness}");
    installed.cluster.stop().await;
}
