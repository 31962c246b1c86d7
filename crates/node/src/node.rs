//! The node agent as a whole.

use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::account::Account;
use crate::address::AddressPool;
use crate::cache::Cache;
use crate::cgroup::{Cgroups, Unavailable};
use crate::chaos::{self, Board, Cuts};
use crate::config::NodeConfig;
use crate::context::Context;
use crate::event::Recorder;
use crate::image::ImageStore;
use crate::log::Logs;
use crate::names;
use crate::pod::{Live, LiveContainers};
use crate::pods::Pods;
use crate::proxy::{self, Directory, Leaving};
use crate::registration;
use crate::remains::{self, Claim};
use crate::room::Room;
use crate::sandbox::{self, Capabilities, Launcher};
use crate::serve::{self, Body};
use crate::stats::Stats;
use crate::stream::{self, Destination, Door};
use crate::tree;

/// Why a node cannot start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Its directory cannot be used.
    #[error("cannot use the node's directory {path}: {source}")]
    Directory {
        /// The directory.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// The kernel could not be asked what it allows.
    #[error("cannot start a sandbox process: {0}")]
    Probe(#[source] io::Error),
    /// runc has no control groups to put containers into.
    #[error("--isolation runc needs control groups: {0}")]
    RuncGroups(String),
    /// The API server did not accept the node.
    #[error("cannot register the node: {0}")]
    Register(#[source] kube::Error),
}

/// The node agent.
pub struct Node {
    context: Arc<Context>,
    pods: Pods,
    door: Door,
    stats: Arc<Stats>,
    /// What it has outside of its directory.
    claim: Mutex<Option<Claim>>,
}

impl Node {
    /// Prepares the directory and finds out what the kernel allows; no Pod runs yet.
    pub async fn new(config: NodeConfig) -> Result<Self, NodeError> {
        let directory = |path: &Path, source| NodeError::Directory { path: path.display().to_string(), source };
        std::fs::create_dir_all(&config.dir).map_err(|error| directory(&config.dir, error))?;
        let dir = config.dir.canonicalize().map_err(|error| directory(&config.dir, error))?;
        let config = NodeConfig { dir, ..config };
        let launcher = Launcher::default();
        let capabilities = launcher.probe(&config.dir).await.map_err(NodeError::Probe)?;
        remains::sweep();
        // Without it everything works; only what a killed node left would stay longer.
        let claim = Claim::make(&config.dir).map_err(|error| tracing::warn!(%error, "no folder in memory")).ok();
        let cgroups = begin_groups(&config)?;
        if let (Some(claim), Ok(cgroups)) = (&claim, &cgroups)
            && let Err(error) = claim.note(&cgroups.places())
        {
            tracing::warn!(%error, "where the control groups are was not noted");
        }
        let addresses = AddressPool::new(config.pod_range);
        let gateway = config.network.as_ref().and_then(|network| addresses.take_again(network.gateway()));
        let context = Context {
            capabilities,
            launcher,
            cgroups,
            images: ImageStore::new(config.images.clone()),
            events: Recorder::start(config.client.clone(), config.name.clone()),
            cache: Cache::new(config.client.clone()),
            logs: Logs::new(config.dir.join("logs")),
            live: LiveContainers::default(),
            addresses,
            gateway,
            directory: Directory::new(config.api, config.cluster_domain.clone()),
            room: Room::new(registration::capacity()),
            leaving: Leaving::default(),
            board: Board::default(),
            cuts: Cuts::default(),
            name_server: OnceLock::new(),
            config,
        };
        let context = Arc::new(context);
        let (pods, claim) = (Pods::new(Arc::clone(&context)), Mutex::new(claim));
        Ok(Self { pods, context, door: Door::default(), stats: Arc::default(), claim })
    }

    /// What the kernel lets this node do.
    pub fn capabilities(&self) -> Capabilities {
        self.context.capabilities
    }

    /// The image store of this node.
    pub fn images(&self) -> &ImageStore {
        &self.context.images
    }

    /// Registers the node and runs Pods until told to stop; then ends every process of every Pod.
    ///
    /// # Errors
    /// Only at the start: afterwards the node outlives every failure of the API server.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), NodeError> {
        let context = &self.context;
        let node = registration::register(context).await.map_err(NodeError::Register)?;
        for missing in context.capabilities.missing() {
            context.events.warning(&node, None, "KernelForbids", missing.to_owned());
        }
        if context.cgroups.is_err() {
            context.events.normal(&node, None, "LimitsByNode", context.limits());
        }
        context.events.normal(&node, None, "Starting", format!("Node {} runs Pods", node.name_any()));
        if let Some(server) = names::begin(context, stop.clone()).await {
            let _ = context.name_server.set(server);
        }
        tokio::join!(
            registration::keep_lease(context, node, stop.clone()),
            proxy::run(Arc::clone(context), stop.clone()),
            Arc::clone(&self.stats).run(context.live.clone(), stop.clone()),
            chaos::run(context, &self.pods, stop.clone()),
            self.pods.run(stop),
        );
        let ending = Arc::clone(context);
        let claim = self.claim.lock().unwrap_or_else(PoisonError::into_inner).take();
        let end = move || {
            let _ = ending.config.runc.as_ref().map(|runc| runc.sweep(&|_| false));
            let _ = ending.cgroups.as_ref().map(Cgroups::end);
            let _ = ending.config.network.as_ref().map(|network| network.sweep(&|_| false));
            claim.map(Claim::release)
        };
        let _ = tokio::task::spawn_blocking(end).await;
        Ok(())
    }

    /// Answers kubelet's paths: `/containerLogs/{namespace}/{pod}/{container}?follow=true&tailLines=…`,
    /// `/exec/{namespace}/{pod}/{container}?command=…&input=1&output=1&error=1&tty=1`, `/attach/…`,
    /// `/portForward/{namespace}/{pod}`, and `/healthz`, `/pods`, `/metrics`, `/stats/summary`.
    pub async fn serve<B>(&self, request: Request<B>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let missing = |why| serve::failure(StatusCode::NOT_FOUND, why);
        match parts.as_slice() {
            ["exec", namespace, pod, container] => {
                return self
                    .live(namespace, pod, container)
                    .map_or_else(missing, |live| self.door.exec(request, &live));
            }
            ["attach", namespace, pod, container] => {
                let live = self.live(namespace, pod, container);
                return live.map_or_else(missing, |live| self.door.attach(request, &live));
            }
            ["portForward", namespace, pod] => {
                return self.destination(namespace, pod).map_or_else(missing, |to| self.door.forward(request, to));
            }
            ["stats", "summary"] => {
                return serve::json(&self.stats.summary(&self.context.config.name, &self.pods.all()));
            }
            _ => {}
        }
        let account =
            Account { node: &self.context.config.name, pods: self.pods.all(), containers: self.context.live.count() };
        if let Some(answer) = account.answer(request.method(), &path) {
            return answer;
        }
        let find = |namespace: &str, name: &str| -> Option<(PathBuf, Arc<Pod>)> {
            self.pods.find(namespace, name).map(|pod| (self.context.log_directory(&*pod), pod))
        };
        let answer = serve::serve(request.uri(), &self.context.logs, &find);
        self.door.view(request, answer)
    }

    /// Opens a connection to a port of a Pod of this node.
    ///
    /// # Errors
    /// Why there is none: the Pod is not here, or nothing listens there.
    pub async fn dial(&self, namespace: &str, pod: &str, port: u16) -> Result<TcpStream, String> {
        let to = self.destination(namespace, pod)?;
        if self.context.cuts.is_cut_from_api(to.address, self.context.config.api) {
            return Err("it is cut off from the API server".to_owned());
        }
        stream::connect((to.address, port).into()).await
    }

    fn destination(&self, namespace: &str, name: &str) -> Result<Destination, String> {
        let (pod, ended) = self.pods.find_running(namespace, name).ok_or_else(|| "pod does not exist".to_owned())?;
        let shares_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_ref()?.parse().ok());
        let address = if shares_host { Some(Ipv4Addr::LOCALHOST) } else { address };
        let address = address.ok_or_else(|| format!("pod {name} has no address yet"))?;
        let uid = pod.uid().unwrap_or_default();
        let network = self.context.config.network.as_ref().filter(|_| !shares_host);
        let space = network.map(|network| network.space(&uid));
        Ok(Destination { address, space, pod: name.to_owned(), uid, ended })
    }

    fn live(&self, namespace: &str, pod: &str, container: &str) -> Result<Arc<Live>, String> {
        let found = self.pods.find(namespace, pod).ok_or_else(|| "pod does not exist".to_owned())?;
        let live = self.context.live.find(&found.uid().unwrap_or_default(), container);
        live.ok_or_else(|| format!("container not found ({container:?}): it does not run"))
    }
}

/// The control groups of the node, or why there are none, without which runc cannot do.
fn begin_groups(config: &NodeConfig) -> Result<Result<Cgroups, Unavailable>, NodeError> {
    let groups = match config.cgroups {
        // runc has one path for all hierarchies.
        true => Cgroups::begin(&config.dir, config.runc.is_some()),
        false => Err(Unavailable::Unwanted),
    };
    match (&config.runc, groups) {
        (Some(_), Err(why)) => Err(NodeError::RuncGroups(why.to_string())),
        (_, groups) => Ok(groups),
    }
}

/// Removes what Pods left that are no more.
pub(crate) fn sweep(context: &Context, is_alive: &dyn Fn(&str) -> bool) {
    let pods = std::fs::read_dir(context.config.dir.join("pods")).into_iter().flatten().flatten();
    let memory = std::fs::read_dir(remains::folder(&context.config.dir)).into_iter().flatten().flatten();
    let memory = memory.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    let logs = context.logs.pods().into_iter();
    for path in pods.chain(memory).map(|entry| entry.path()).chain(logs) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let uid = name.rsplit('_').next().unwrap_or(name);
        if is_alive(uid) {
            continue;
        }
        sandbox::end_below(&path);
        if let Err(error) = tree::remove(&path) {
            tracing::warn!(%error, path = %path.display(), "what a Pod left was not removed");
        }
    }
    if let Some(runc) = &context.config.runc {
        runc.sweep(is_alive);
    }
    if let Some(network) = &context.config.network {
        network.sweep(is_alive);
    }
    if let Ok(cgroups) = &context.cgroups {
        cgroups.sweep(is_alive);
    }
}
