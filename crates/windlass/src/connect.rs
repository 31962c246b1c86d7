//! The way to the cluster.

use std::path::PathBuf;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

/// Which cluster.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Connection {
    /// The kubeconfig to use; else $KUBECONFIG, ~/.kube/config, or the service account of the Pod
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, global = true)]
    context: Option<String>,
}

/// Why there is no way to the cluster.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("cannot read the kubeconfig: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    #[error("there is no cluster to talk to: {0}; give --kubeconfig, or run inside a cluster")]
    Infer(#[from] kube::config::InferConfigError),
    #[error("cannot make a client: {0}")]
    Client(#[from] kube::Error),
}

impl Connection {
    pub(crate) async fn client(&self) -> Result<Client, ConnectError> {
        self.connect(self.context.as_deref()).await
    }

    /// A client of the cluster of another context.
    pub(crate) async fn client_of(&self, context: &str) -> Result<Client, ConnectError> {
        self.connect(Some(context)).await
    }

    async fn connect(&self, context: Option<&str>) -> Result<Client, ConnectError> {
        let options = KubeConfigOptions { context: context.map(Into::into), ..KubeConfigOptions::default() };
        let config = match &self.kubeconfig {
            Some(path) => Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?,
            None if context.is_some() => Config::from_kubeconfig(&options).await?,
            None => Config::infer().await?,
        };
        Ok(Client::try_from(config)?)
    }
}
