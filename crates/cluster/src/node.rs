//! The node of the cluster, and the way of the API server to it.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Client, CustomResourceExt, ResourceExt};
use tokio::net::TcpStream;
use windlass_apiserver::{Body, NodeProxy, NodeProxyError, PodPlace};
use windlass_clock::Clock;
use windlass_controllers::FakeUsage;
use windlass_node::chaos::Chaos;
use windlass_node::{Node, NodeConfig};
use windlass_schema::kubelet::SUMMARY_PATH;

use crate::{ClusterConfig, ClusterRange, PODS_MAX};

/// How long the kind of chaos may take to be served.
const INSTALL_LIMIT: Duration = Duration::from_secs(10);

/// The way to a node that is known only after the API server is there, and to those that only seem to run Pods.
pub(crate) struct NodeDoor {
    name: String,
    node: OnceLock<Arc<Node>>,
    fakes: FakeNodes,
}

/// The nodes that only seem to run Pods: all that they answer is what those seem to use.
struct FakeNodes {
    count: usize,
    usage: FakeUsage,
    clock: Clock,
}

impl NodeDoor {
    pub(crate) fn new(config: &ClusterConfig) -> Self {
        let count = if config.controllers().has(windlass_controllers::Name::FakeNode) { config.fake_nodes } else { 0 };
        let fakes = FakeNodes { count, usage: FakeUsage::default(), clock: config.clock.clone() };
        NodeDoor { name: config.node_name.clone(), node: OnceLock::new(), fakes }
    }

    /// Where the nodes that only seem to run Pods say what those seem to use.
    pub(crate) fn fake_usage(&self) -> FakeUsage {
        self.fakes.usage.clone()
    }

    /// Lets requests through to `node`.
    pub(crate) fn open(&self, node: Arc<Node>) {
        // There is one node per cluster; a second would be a mistake of this crate.
        assert!(self.node.set(node).is_ok(), "the node is set once");
    }

    fn agent(&self, node: &str) -> Result<&Arc<Node>, NodeProxyError> {
        let known = self.node.get().filter(|_| node == self.name);
        known.ok_or_else(|| NodeProxyError::UnknownNode(node.to_owned()))
    }
}

impl NodeProxy for NodeDoor {
    fn call<'a>(
        &'a self,
        node: &'a str,
        request: Request<Body>,
    ) -> BoxFuture<'a, Result<Response<Body>, NodeProxyError>> {
        Box::pin(async move {
            if let Some(answer) = self.fakes.answer(node, request.uri().path()) {
                return answer;
            }
            let response = self.agent(node)?.serve(request).await;
            Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
        })
    }

    fn dial<'a>(&'a self, place: PodPlace<'a>, port: u16) -> BoxFuture<'a, Result<TcpStream, NodeProxyError>> {
        Box::pin(async move {
            let agent = self.agent(place.node)?;
            agent.dial(place.namespace, place.pod, port).await.map_err(NodeProxyError::Refused)
        })
    }
}

impl FakeNodes {
    /// Answers for one of them; `None` if it is another node, or asked for something else.
    fn answer(&self, node: &str, path: &str) -> Option<Result<Response<Body>, NodeProxyError>> {
        let summary = self.usage.summary(self.count, node, self.clock.now()).filter(|_| path == SUMMARY_PATH)?;
        let text = serde_json::to_vec(&summary).map_err(|error| NodeProxyError::Failed(error.to_string()));
        let body = |text: Vec<u8>| Full::from(text).map_err(|never: Infallible| match never {}).boxed_unsync();
        Some(text.map(|text| Response::new(body(text))))
    }
}

/// Ends the containers that a killed cluster at `dir` left waiting for its next start; how many those were.
pub fn end_survivors(dir: &Path) -> usize {
    let pods = std::fs::read_dir(dir.join("node").join("pods")).into_iter().flatten().flatten();
    let ended = pods.map(|pod| windlass_node::sandbox::end_below(&pod.path())).sum();
    // By the path that the node knew its directory by.
    let node = dir.join("node").canonicalize().unwrap_or_else(|_| dir.join("node"));
    windlass_node::runc::clear(&node);
    windlass_node::cgroup::clear(&node);
    windlass_node::network::clear(&node);
    windlass_node::sweep_remains();
    ended
}

/// Makes the kind `Chaos` known, which the node carries out. Pods run as well without it.
pub(crate) async fn install_chaos(client: &Client) {
    let definition = Chaos::crd();
    let name = definition.name_any();
    let all: Api<CustomResourceDefinition> = Api::all(client.clone());
    let apply = PatchParams::apply("windlass").force();
    let served = async {
        all.patch(&name, &apply, &Patch::Apply(&definition)).await.map_err(|error| error.to_string())?;
        let established = await_condition(all.clone(), &name, is_crd_established());
        established.await.map(drop).map_err(|error| error.to_string())
    };
    match tokio::time::timeout(INSTALL_LIMIT, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the kind Chaos is not there"),
        Err(_) => tracing::warn!("the kind Chaos is not served yet"),
    }
}

/// What the node is told.
pub(crate) fn node_config(
    config: &ClusterConfig,
    dir: PathBuf,
    range: ClusterRange,
    port: u16,
    client: kube::Client,
) -> NodeConfig {
    let node_range = |(network, prefix)| windlass_node::AddressRange { network, prefix };
    NodeConfig {
        client,
        name: config.node_name.clone(),
        dir,
        images: config.images.clone(),
        address: range.api(),
        port: None,
        api: (range.api(), port),
        pod_range: node_range(range.pods()),
        service_range: node_range(range.services()),
        survival: config.survival,
        cgroups: config.cgroups,
        network: None,
        runc: None,
        pods_max: config.pods_max.min(PODS_MAX),
        cluster_domain: "cluster.local".to_owned(),
    }
}
