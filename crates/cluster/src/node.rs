//! The node of the cluster, and the way of the API server to it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use windlass_apiserver::{Body, NodeProxy, NodeProxyError};
use windlass_node::{Node, NodeConfig};

use crate::{ClusterConfig, LoopbackRange, PODS_MAX};

/// The way to a node that is known only after the API server is there.
#[derive(Default)]
pub(crate) struct NodeDoor {
    name: String,
    node: OnceLock<Arc<Node>>,
}

impl NodeDoor {
    pub(crate) fn new(name: &str) -> Self {
        NodeDoor { name: name.to_owned(), node: OnceLock::new() }
    }

    /// Lets requests through to `node`.
    pub(crate) fn open(&self, node: Arc<Node>) {
        // There is one node per cluster; a second would be a mistake of this crate.
        assert!(self.node.set(node).is_ok(), "the node is set once");
    }
}

impl NodeProxy for NodeDoor {
    fn call<'a>(
        &'a self,
        node: &'a str,
        request: Request<Body>,
    ) -> BoxFuture<'a, Result<Response<Body>, NodeProxyError>> {
        Box::pin(async move {
            let known = self.node.get().filter(|_| node == self.name);
            let agent = known.ok_or_else(|| NodeProxyError::UnknownNode(node.to_owned()))?;
            let response = agent.serve(request).await;
            Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
        })
    }
}

/// Ends the containers that a killed cluster at `dir` left waiting for its next start; how many those were.
pub fn end_survivors(dir: &Path) -> usize {
    let pods = std::fs::read_dir(dir.join("node").join("pods")).into_iter().flatten().flatten();
    let ended = pods.map(|pod| windlass_node::sandbox::end_below(&pod.path())).sum();
    windlass_node::cgroup::clear(&dir.join("node"));
    ended
}

/// What the node is told.
pub(crate) fn node_config(
    config: &ClusterConfig,
    dir: PathBuf,
    range: LoopbackRange,
    port: u16,
    client: kube::Client,
) -> NodeConfig {
    let node_range = |(network, prefix)| windlass_node::AddressRange { network, prefix };
    NodeConfig {
        client,
        name: config.node_name.clone(),
        dir,
        images: config.images.clone(),
        api_host: range.api(),
        api_port: port,
        pod_range: node_range(range.pods()),
        service_range: node_range(range.services()),
        survival: config.survival,
        cgroups: config.cgroups,
        pods_max: config.pods_max.min(PODS_MAX),
        cluster_domain: "cluster.local".to_owned(),
    }
}
