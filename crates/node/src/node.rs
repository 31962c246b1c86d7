//! The node agent as a whole.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use tokio_util::sync::CancellationToken;

use crate::config::NodeConfig;
use crate::event::Recorder;
use crate::registration;
use crate::sandbox::{Capabilities, Launcher};

/// The body of what [`Node::serve`] answers; it may go on as long as a log is followed.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

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
    /// The API server did not accept the node.
    #[error("cannot register the node: {0}")]
    Register(#[source] kube::Error),
}

/// The node agent.
pub struct Node {
    config: Arc<NodeConfig>,
    capabilities: Capabilities,
}

impl Node {
    /// Prepares the directory and finds out what the kernel allows; nothing runs yet.
    pub async fn new(config: NodeConfig) -> Result<Self, NodeError> {
        let directory = |source| NodeError::Directory { path: config.dir.display().to_string(), source };
        std::fs::create_dir_all(&config.dir).map_err(directory)?;
        let capabilities = Launcher::default().probe(&config.dir).await.map_err(NodeError::Probe)?;
        Ok(Self { config: Arc::new(config), capabilities })
    }

    /// What the kernel lets this node do.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Registers the node and runs Pods until told to stop; then ends every process of every Pod.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), NodeError> {
        let node = registration::register(&self.config, self.capabilities).await.map_err(NodeError::Register)?;
        let recorder = Recorder::start(self.config.client.clone(), self.config.name.clone());
        let lease = tokio::spawn(registration::keep_lease(self.config.client.clone(), node, stop.clone()));
        stop.cancelled().await;
        drop(recorder);
        let _ = lease.await;
        Ok(())
    }

    /// Answers kubelet paths: `/containerLogs/{namespace}/{pod}/{container}`.
    pub async fn serve<B>(&self, request: Request<B>) -> Response<Body> {
        let body = Full::new(Bytes::from(format!("no such path: {}", request.uri().path())));
        let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    }
}
