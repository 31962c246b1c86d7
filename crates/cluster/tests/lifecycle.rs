//! A cluster over TLS: started, used by clients that were not written for it, stopped, started again.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ComponentStatus, ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use windlass_cluster::{Cluster, ClusterConfig, Listen, Profile, StartError, holder};

fn settings(dir: &Path) -> ClusterConfig {
    ClusterConfig { listen: Listen::Port(0), ..ClusterConfig::in_directory(dir, Profile::Gc) }
}

/// A client as any program has it: by the kubeconfig on disk, over TLS.
async fn client_of_file(dir: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(dir.join("kubeconfig")).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// A client that trusts the cluster, with a token or without any credentials.
async fn client_with(dir: &Path, token: Option<&str>) -> Client {
    let mut kubeconfig = Kubeconfig::read_from(dir.join("kubeconfig")).unwrap();
    let auth = AuthInfo { token: token.map(|token| token.to_owned().into()), ..AuthInfo::default() };
    kubeconfig.auth_infos[0].auth_info = Some(auth);
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("key".to_owned(), "value".to_owned())])),
        ..ConfigMap::default()
    }
}

async fn get(client: &Client, path: &str) -> Result<String, u16> {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    client.request_text(request).await.map_err(|error| match error {
        kube::Error::Api(status) => status.code,
        other => panic!("{path}: {other}"),
    })
}

#[tokio::test]
async fn a_restart_keeps_objects_and_their_identity() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("cluster");
    let cluster = Cluster::start(settings(&dir)).await.unwrap();
    let client = client_of_file(&dir).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let made = maps.create(&PostParams::default(), &config_map("kept")).await.unwrap();
    cluster.shutdown().await;

    let cluster = Cluster::start(settings(&dir)).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client_of_file(&dir).await, "default");
    let found = maps.get("kept").await.unwrap();
    assert_eq!(found.uid(), made.uid());
    assert_eq!(found.resource_version(), made.resource_version());
    assert_eq!(found.data, made.data);
    cluster.shutdown().await;
}

#[tokio::test]
async fn only_the_owner_reads_what_a_cluster_keeps() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("cluster");
    Cluster::start(settings(&dir)).await.unwrap().shutdown().await;
    let mut directories = vec![dir];
    while let Some(path) = directories.pop() {
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700, "{}", path.display());
        for entry in std::fs::read_dir(path).unwrap() {
            let entry = entry.unwrap().path();
            match entry.is_dir() {
                true => directories.push(entry),
                false => assert_eq!(mode(&entry), 0o600, "{}", entry.display()),
            }
        }
    }
}

#[tokio::test]
async fn a_directory_belongs_to_one_cluster() {
    let outer = tempfile::tempdir().unwrap();
    let first = Cluster::start(settings(outer.path())).await.unwrap();
    assert_eq!(holder(outer.path()), Some(std::process::id()));
    let error = Cluster::start(settings(outer.path())).await.unwrap_err();
    assert!(matches!(error, StartError::InUse { .. }), "{error}");
    first.shutdown().await;
    assert_eq!(holder(outer.path()), None);
    Cluster::start(settings(outer.path())).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let outer = tempfile::tempdir().unwrap();
    Cluster::start(settings(outer.path())).await.unwrap().shutdown().await;
    let range = std::fs::read_to_string(outer.path().join("address")).unwrap();
    let address = range.trim().replace(".0.0/16", ".0.1");
    let taken = std::net::TcpListener::bind((address.as_str(), 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = ClusterConfig { listen: Listen::Port(port), ..settings(outer.path()) };
    let error = Cluster::start(config).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{address}:{port} is in use by another process; stop it, or choose another port with --port")
    );
}

#[tokio::test]
async fn strangers_see_health_and_version_and_nothing_else() {
    let outer = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(settings(outer.path())).await.unwrap();
    let anonymous = client_with(outer.path(), None).await;
    assert_eq!(get(&anonymous, "/healthz").await.as_deref(), Ok("ok"));
    assert!(get(&anonymous, "/readyz?verbose").await.unwrap().ends_with("readyz check passed\n"));
    let version: serde_json::Value = serde_json::from_str(&get(&anonymous, "/version").await.unwrap()).unwrap();
    assert_eq!(version["minor"], "36");
    assert_eq!(get(&anonymous, "/api/v1/namespaces/default/configmaps").await, Err(403));
    assert_eq!(get(&anonymous, "/metrics").await, Err(403));
    let impostor = client_with(outer.path(), Some("no-such-token")).await;
    assert_eq!(get(&impostor, "/version").await, Err(401));
    let admin = client_of_file(outer.path()).await;
    assert!(get(&admin, "/metrics").await.unwrap().contains("apiserver_request_total"));
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_service_account_has_the_rights_that_were_bound_to_it() {
    let outer = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(settings(outer.path())).await.unwrap();
    let admin = client_of_file(outer.path()).await;
    let post = PostParams::default();
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), "default");
    let account = ServiceAccount {
        metadata: ObjectMeta { name: Some("robot".to_owned()), ..ObjectMeta::default() },
        ..ServiceAccount::default()
    };
    accounts.create(&post, &account).await.unwrap();
    let request = TokenRequest {
        metadata: ObjectMeta::default(),
        spec: Some(TokenRequestSpec { expiration_seconds: Some(600), ..TokenRequestSpec::default() }),
        status: None,
    };
    let token = accounts.create_token_request("robot", &post, &request).await.unwrap().status.unwrap().token.unwrap();
    let robot = client_with(outer.path(), Some(&token)).await;
    assert_eq!(get(&robot, "/api/v1/namespaces/default/configmaps").await, Err(403));

    let role: ClusterRole = Api::all(admin.clone()).get("view").await.unwrap();
    assert!(!role.rules.unwrap_or_default().is_empty(), "view is the sum of its parts");
    let binding: RoleBinding = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
    }))
    .unwrap();
    Api::<RoleBinding>::namespaced(admin.clone(), "default").create(&post, &binding).await.unwrap();
    assert!(get(&robot, "/api/v1/namespaces/default/configmaps").await.is_ok());
    assert_eq!(get(&robot, "/api/v1/namespaces/default/secrets").await, Err(403));
    assert_eq!(get(&robot, "/api/v1/namespaces/kube-system/configmaps").await, Err(403));

    cluster.shutdown().await;
    let cluster = Cluster::start(settings(outer.path())).await.unwrap();
    let robot = client_with(outer.path(), Some(&token)).await;
    assert!(get(&robot, "/api/v1/namespaces/default/configmaps").await.is_ok(), "a token outlives a restart");
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_cluster_in_memory_needs_neither_disk_nor_port() {
    let cluster = Cluster::start(ClusterConfig::in_memory(Profile::Bare)).await.unwrap();
    assert!(cluster.kubeconfig().is_none());
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    let names: Vec<String> =
        namespaces.list(&Default::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    cluster.shutdown().await;
}

#[tokio::test]
async fn shutdown_ends_open_watches() {
    let outer = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(settings(outer.path())).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client_of_file(outer.path()).await, "default");
    let watch = maps.watch(&Default::default(), "0").await.unwrap();
    let drained = tokio::spawn(async move {
        futures::pin_mut!(watch);
        while futures::StreamExt::next(&mut watch).await.is_some_and(|event| event.is_ok()) {}
    });
    tokio::time::timeout(Duration::from_secs(60), cluster.shutdown()).await.unwrap();
    tokio::time::timeout(Duration::from_secs(60), drained).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_parts_that_a_profile_runs_are_healthy() {
    for (profile, expected) in [
        (Profile::Bare, vec!["etcd-0"]),
        (Profile::Gc, vec!["controller-manager", "etcd-0"]),
        (Profile::Workloads, vec!["controller-manager", "scheduler", "etcd-0"]),
    ] {
        let cluster = Cluster::start(ClusterConfig::in_memory(profile)).await.unwrap();
        let parts: Api<ComponentStatus> = Api::all(cluster.client());
        let all = parts.list(&ListParams::default()).await.unwrap().items;
        assert_eq!(all.len(), 3);
        let is_healthy = |part: &&ComponentStatus| part.conditions.iter().flatten().any(|found| found.status == "True");
        let healthy: Vec<String> = all.iter().filter(is_healthy).map(ResourceExt::name_any).collect();
        assert_eq!(healthy, expected, "{profile:?}");
        cluster.shutdown().await;
    }
}
