//! A control plane of the real Kubernetes for one test, instead of the embedded cluster.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::config::{KubeConfigOptions, Kubeconfig as File};
use kube::{Api, Client, Config};
use tokio::runtime::Handle;
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_cluster::{Identity, Kubeconfig};
use windlass_controllers::{Controllers, Name, Set};
use windlass_kubernetes::{ControlPlane, Plan, Programs};

use crate::wait;

/// Names the folder with etcd, kube-apiserver, kube-controller-manager and kube-scheduler. When it is set, tests run on
/// those.
pub const KUBERNETES: &str = "WINDLASS_TEST_KUBERNETES";

/// The folder with the programs of a real control plane, if tests are to run on one.
pub(crate) fn programs() -> Option<PathBuf> {
    std::env::var_os(KUBERNETES).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// A real control plane, which ends with this value.
pub(crate) struct Kubernetes {
    config: Config,
    client: Client,
    pub(crate) kubeconfig: Kubeconfig,
    /// Nodes that only seem to run Pods; they end first.
    _nodes: Option<DropGuard>,
    plane: ControlPlane,
    _folder: tempfile::TempDir,
}

impl std::fmt::Debug for Kubernetes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Kubernetes").field("plane", &self.plane).finish_non_exhaustive()
    }
}

impl Kubernetes {
    /// Starts what corresponds to `controllers`: nothing, garbage collection, or everything with nodes that pretend.
    ///
    /// # Panics
    /// If it cannot start.
    pub(crate) async fn start(programs: PathBuf, controllers: &Set, nodes: usize) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let plan = Plan { controllers: wanted(controllers), ..Plan::default() };
        let (path, handle) = (folder.path().to_owned(), Handle::current());
        let begin = move || {
            let programs = Programs::in_folder(&programs)?;
            let is_ready = |kubeconfig: &Path| handle.block_on(async { is_ready(kubeconfig).await.is_some() });
            ControlPlane::start(&programs, &path, &plan, &is_ready)
        };
        let plane = match tokio::task::spawn_blocking(begin).await.expect("starting does not panic") {
            Ok(plane) => plane,
            Err(error) => {
                // The logs are there to be read.
                panic!("Kubernetes does not start: {error}; see {}", folder.keep().display())
            }
        };
        let config = config(&plane.kubeconfig()).await.expect("the kubeconfig was read before");
        let client = Client::try_from(config.clone()).expect("the configuration was used before");
        if *controllers != Set::none() {
            let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
            wait::until(accounts, |accounts: &[ServiceAccount]| !accounts.is_empty()).await;
        }
        let has_nodes = controllers.has(Name::FakeNode);
        let _nodes = has_nodes.then(|| pretend(client.clone(), nodes));
        let kubeconfig = kubeconfig(&plane);
        Self { config, client, kubeconfig, _nodes, plane, _folder: folder }
    }

    /// A client with every right.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client of the user `name`.
    pub(crate) fn client_as(&self, name: &str, groups: &[&str]) -> Client {
        let mut config = self.config.clone();
        config.auth_info.impersonate = Some(name.to_owned());
        config.auth_info.impersonate_groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
        Client::try_from(config).expect("the configuration was used before")
    }

    /// Ends it and waits for that.
    pub(crate) async fn stop(self) {
        let Self { _nodes, plane, .. } = self;
        drop(_nodes);
        let _ = tokio::task::spawn_blocking(move || drop(plane)).await;
    }
}

/// The real controllers that do what those of a set do.
fn wanted(controllers: &Set) -> windlass_kubernetes::Controllers {
    if *controllers == Set::none() {
        windlass_kubernetes::Controllers::None
    } else if controllers.has(Name::ReplicaSet) {
        windlass_kubernetes::Controllers::All
    } else {
        windlass_kubernetes::Controllers::Garbage
    }
}

fn pretend(client: Client, nodes: usize) -> DropGuard {
    let stop = CancellationToken::new();
    let controllers = Controllers::new(client, Set::none().with(Name::FakeNode)).fake_nodes(nodes);
    tokio::spawn(controllers.run(stop.clone()));
    stop.drop_guard()
}

/// Something, once the API server answers and has what is there from the start.
async fn is_ready(kubeconfig: &Path) -> Option<()> {
    let client = Client::try_from(config(kubeconfig).await?).ok()?;
    let request = http::Request::get("/readyz").body(Vec::new()).ok()?;
    client.request_text(request).await.ok()?;
    let namespaces: Api<Namespace> = Api::all(client);
    namespaces.get("default").await.ok().map(drop)
}

async fn config(kubeconfig: &Path) -> Option<Config> {
    let file = File::read_from(kubeconfig).ok()?;
    Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.ok()
}

fn kubeconfig(plane: &ControlPlane) -> Kubeconfig {
    let read = |name: &str| std::fs::read_to_string(plane.keys().file(name)).expect("the keys were just made");
    let identity = Identity { certificate: read("admin.crt"), key: read("admin.key") };
    Kubeconfig { server: plane.place().server(), authority: read("ca.crt"), identity }
}
