//! The operator as people install it: plain, with kustomize, as a chart, as a bundle; read by the real programs and taken
//! by an API server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use memcached_operator::app;
use windlass::kube::Api;
use windlass::prelude::*;
use windlass::rbac::Recording;
use windlass::serde_json::{Value, json};
use windlass::{ManifestOptions, Program};
use windlass_testkit::{Profile, TestCluster};

const NAME: &str = "memcached-operator";
const NAMESPACE: &str = "memcached-system";

fn operator(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_memcached-operator")).args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn success(output: Output) -> String {
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// A program of the pinned release, as `cargo xtask tools` builds it.
fn tool(name: &str) -> PathBuf {
    if let Some(kubectl) = std::env::var_os("WINDLASS_TEST_KUBECTL").filter(|_| name.starts_with("kubectl")) {
        return PathBuf::from(kubectl);
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
    let path = cache.join("windlass/tools").join(name);
    assert!(path.is_file(), "no {name}: run `cargo xtask tools` first");
    path
}

fn helm(chart: &Path, args: &[&str]) -> Output {
    let words = ["template", NAME, chart.to_str().unwrap(), "--namespace", NAMESPACE];
    // It must not look for settings of whoever runs the test.
    let home = chart.join("no-home");
    Command::new(tool("helm-3.21.4"))
        .args(words)
        .args(args)
        .env("HOME", home)
        .env_remove("KUBECONFIG")
        .output()
        .unwrap()
}

/// The objects of a text, by kind, namespace and name.
fn objects(text: &str) -> BTreeMap<String, Value> {
    let documents = text.split("\n---").map(|it| it.trim_start_matches("---")).filter(|it| it.contains("kind:"));
    let read = |document: &str| -> Value {
        serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{error}:\n{document}"))
    };
    documents.map(read).map(|object| (title(&object), object)).collect()
}

fn title(object: &Value) -> String {
    format!("{} {} {}", object["kind"], object["metadata"]["namespace"], object["metadata"]["name"])
}

/// What `manifests` prints for `args`, without the Namespace, which Helm makes itself.
fn plain(args: &[&str]) -> BTreeMap<String, Value> {
    let mut plain = objects(&success(operator(&[&["manifests"], args].concat())));
    plain.retain(|_, object| object["kind"] != "Namespace");
    plain
}

/// What a chart renders to, without what only Helm knows.
fn rendered(chart: &Path, args: &[&str]) -> BTreeMap<String, Value> {
    let mut rendered = objects(&success(helm(chart, args)));
    for object in rendered.values_mut() {
        let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        let kept = annotations.and_then(|annotations| annotations.remove("helm.sh/resource-policy"));
        if kept.is_some() {
            object["metadata"].as_object_mut().unwrap().remove("annotations");
        }
    }
    rendered
}

#[track_caller]
fn assert_same(found: &BTreeMap<String, Value>, expected: &BTreeMap<String, Value>) {
    let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected));
    for (name, object) in expected {
        assert_eq!(&found[name], object, "{name} differs");
    }
}

#[test]
fn the_chart_renders_to_what_the_manifests_are() {
    let dir = tempfile::tempdir().unwrap();
    let chart = dir.path().join("chart");
    let image = ["--image", "registry.example.com/memcached-operator:1.0"];
    let output = ["manifests", "--format", "helm", "-o", chart.to_str().unwrap()];
    success(operator(&[&output[..], &image].concat()));
    // Again, into the same folder: it is the command's own.
    success(operator(&[&output[..], &image].concat()));
    let with = |args: &[&'static str]| [&image[..], args].concat();
    assert_same(&rendered(&chart, &[]), &plain(&with(&[])));
    assert_same(&rendered(&chart, &["--set", "replicas=2"]), &plain(&with(&["--replicas", "2"])));
    assert_same(&rendered(&chart, &["--set", "shards=4"]), &plain(&with(&["--shards", "4"])));
    let namespaces = with(&["--watch-namespace", "a,b", "--labels", "team=blue"]);
    assert_same(&rendered(&chart, &["--set", "watchNamespaces={a,b},labels.team=blue"]), &plain(&namespaces));
    let fewer = with(&["--without", "metrics,network-policy,kind-roles"]);
    let off = "metrics.service=false,networkPolicy.enabled=false,kindRoles.enabled=false";
    assert_same(&rendered(&chart, &["--set", off]), &plain(&fewer));
    let narrow = with(&["--watch-namespace", "a"]);
    success(operator(&[&output[..], &narrow].concat()));
    assert_same(&rendered(&chart, &[]), &plain(&narrow));
}

#[test]
fn values_of_a_chart_change_what_they_say_and_unknown_ones_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let chart = dir.path();
    success(operator(&["manifests", "--format", "helm", "-o", chart.to_str().unwrap(), "--version", "2.0.0-rc.1"]));
    let values = [
        "image.digest=sha256:0,image.pullPolicy=Always,extraArgs={--log-format=json},webhooks.enabled=false,crds.install=false",
        "podAnnotations.a=b,nodeSelector.disk=fast,serviceAccount.annotations.role=x,resources.limits.memory=1Gi",
    ];
    let found = rendered(chart, &["--set", values[0], "--set", values[1]]);
    let pod = &found[&format!("\"Deployment\" \"{NAMESPACE}\" \"{NAME}\"")]["spec"]["template"];
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["image"], "memcached-operator@sha256:0");
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["args"], json!(["run", "--leader-elect", "--log-format=json"]));
    assert_eq!(container["ports"].as_array().unwrap().len(), 2);
    assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
    assert_eq!(pod["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(pod["spec"]["nodeSelector"], json!({"disk": "fast"}));
    let is_gone = |kind: &str| !found.keys().any(|name| name.contains(kind));
    assert!(is_gone("Webhook") && is_gone("CustomResourceDefinition") && is_gone("webhook"), "{:?}", found.keys());
    assert_eq!(
        found[&format!("\"ServiceAccount\" \"{NAMESPACE}\" \"{NAME}\"")]["metadata"]["annotations"]["role"],
        "x"
    );
    let refused = helm(chart, &["--set", "replica=2"]);
    assert!(!refused.status.success() && said(&refused).contains("replica"), "{}", said(&refused));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_form_is_taken_by_an_api_server_that_knows_every_field() {
    let cluster = TestCluster::builder().profile(Profile::Workloads).start().await;
    let dir = tempfile::tempdir().unwrap();
    let folder = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for name in ["a", "b"] {
        cluster.namespace(name).await;
    }
    let more = ["--watch-namespace", "a,b", "--replicas", "2"];
    let in_order = |objects: BTreeMap<String, Value>| {
        let mut objects: Vec<Value> = objects.into_values().collect();
        // Where a namespace is made, what is in it comes later.
        objects.sort_by_key(|object| object["kind"] != "Namespace");
        objects
    };
    cluster.apply(in_order(objects(&success(operator(&[&["manifests"], &more[..]].concat()))))).await;

    let kustomize = folder("kustomize");
    success(operator(&[&["manifests", "--format", "kustomize", "-o", &kustomize], &more[..]].concat()));
    let built = |path: &str| {
        success(
            Command::new(tool("kubectl-1.36.3")).args(["kustomize", &format!("{kustomize}/{path}")]).output().unwrap(),
        )
    };
    assert_same(&objects(&built("base")), &objects(&success(operator(&[&["manifests"], &more[..]].concat()))));
    cluster.apply(in_order(objects(&built("overlays/example")))).await;

    let chart = folder("chart");
    success(operator(&[&["manifests", "--format", "helm", "-o", &chart], &more[..]].concat()));
    cluster.apply(in_order(objects(&success(helm(Path::new(&chart), &[]))))).await;

    // Nodes that only seem to run Pods run the operator, too: the Deployment is whole.
    let deployments: Api<Deployment> = Api::namespaced(cluster.client(), NAMESPACE);
    let is_available = |all: &[Deployment]| {
        all.iter().any(|it| it.status.as_ref().is_some_and(|status| status.available_replicas == Some(2)))
    };
    windlass_testkit::until(deployments, is_available).await;
    cluster.stop().await;
}

#[test]
fn a_bundle_is_the_same_wherever_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, archive) = (dir.path().join("bundle"), dir.path().join("bundle.tar"));
    let write = |path: &Path| success(operator(&["bundle", "-o", path.to_str().unwrap(), "--replaces", "0.0.9"]));
    let line = write(&folder);
    assert_eq!(line, write(&archive));
    assert!(line.starts_with(&format!("{NAME} {} sha256:", env!("CARGO_PKG_VERSION"))), "{line}");
    let bundle = windlass::bundle::Bundle::read(&archive).unwrap();
    let app = app();
    let options = ManifestOptions { replicas: 2, ..ManifestOptions::of(&app) };
    assert_eq!(bundle.manifests().unwrap(), app.manifests(&options));
    let rows = [
        (vec!["--version", "one"], "\"one\" is not a version"),
        (vec!["--replaces", "0.1.0"], "cannot take over from 0.1.0, which is not older"),
        (vec!["--skip-range", "~1"], "is not a range of versions"),
        (vec!["--channels", "A b"], "is not a name for a channel"),
    ];
    for (args, words) in rows {
        let output = operator(&[&["bundle", "-o", archive.to_str().unwrap()], &args[..]].concat());
        assert!(!output.status.success() && said(&output).contains(words), "{args:?}: {}", said(&output));
    }
}

#[test]
fn the_level_of_a_bundle_is_printed_with_its_reasons() {
    let dir = tempfile::tempdir().unwrap();
    let output = operator(&["bundle", "-o", dir.path().join("bundle.tar").to_str().unwrap()]);
    let printed = said(&output);
    let page = include_str!("../../../docs/packaging.md");
    let shown = page.split("```text\ncapability level").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    for line in format!("capability level{shown}").lines().filter(|line| line.trim() != "…") {
        assert!(printed.contains(line), "the page says {line:?}, but this was printed:\n{printed}");
    }
}

#[test]
fn what_tests_recorded_is_added_to_the_role_and_told_apart_from_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let nothing = operator(&["rbac", "--recorded", path]);
    assert!(said(&nothing).contains("has no recording of memcached-operator"), "{}", said(&nothing));
    let rights = json!([
        {"group": "", "resource": "secrets", "verb": "get", "places": [{"namespace": "shop", "name": "password"}]},
        {"group": "", "resource": "nodes", "verb": "list", "places": [{}]},
        {"group": "", "resource": "configmaps", "verb": "get", "places": [{"namespace": NAMESPACE, "name": "settings"}]},
        {"group": "apps", "resource": "deployments", "verb": "patch", "places": [{"namespace": "shop", "name": "cache"}]},
    ]);
    let rights = windlass::serde_json::from_value(rights).unwrap();
    Recording { operator: NAME.into(), test: "a_password_is_read".into(), rights }.save_in(dir.path()).unwrap();

    let mut command = Command::new(env!("CARGO_BIN_EXE_memcached-operator"));
    let differences = command.args(["rbac", "--recorded", "--diff"]).env("WINDLASS_RECORDINGS", path).output().unwrap();
    assert!(!differences.status.success(), "something is missing");
    let text = String::from_utf8_lossy(&differences.stdout).into_owned();
    assert!(text.contains("missing: get secrets (shop/password), used by a_password_is_read\n"), "{text}");
    assert!(
        text.contains("unused: delete services, declared because children that are no longer wanted are removed\n")
    );
    assert!(!text.contains("patch deployments.apps"), "it is declared and used: {text}");

    let roles = objects(&success(operator(&["rbac", "--recorded", path, "--watch-namespace", "shop"])));
    let has = |title: &str, rule: Value| {
        let rules = roles[title]["rules"].as_array().unwrap();
        assert!(rules.contains(&rule), "{title} lacks {rule}: {rules:?}");
    };
    has(
        "\"Role\" \"shop\" \"memcached-operator\"",
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}),
    );
    has(
        "\"ClusterRole\" null \"memcached-operator\"",
        json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}),
    );
    has(
        &format!("\"Role\" \"{NAMESPACE}\" \"memcached-operator\""),
        json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["settings"], "verbs": ["get"]}),
    );
}
