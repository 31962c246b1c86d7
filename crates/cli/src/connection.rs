//! The way to the cluster that is meant.

use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::arguments::Target;
use crate::failure::Failure;

/// The folder that holds an embedded cluster's state unless another is named.
const DEFAULT_DIR: &str = ".windlass";

/// A client and the namespace that commands work in.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

/// The folder of the embedded cluster.
pub(crate) fn dir(target: &Target) -> PathBuf {
    target.dir.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_DIR))
}

/// Connects: `--kubeconfig`, then the embedded cluster of the folder, then what kubectl would take.
pub(crate) async fn connect(target: &Target) -> Result<Connection, Failure> {
    let config = config(target).await?;
    let namespace = target.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = Client::try_from(config)?;
    Ok(Connection { client, namespace })
}

/// The way to the cluster that is meant, in the order of [`connect`].
pub(crate) async fn config(target: &Target) -> Result<Config, Failure> {
    let options = KubeConfigOptions { context: target.context.clone(), ..KubeConfigOptions::default() };
    let embedded = dir(target).join("kubeconfig");
    match &target.kubeconfig {
        Some(file) => from_file(file, &options).await,
        None if embedded.is_file() => from_file(&embedded, &options).await,
        None if target.dir.is_some() => Err(nothing_in(&dir(target))),
        None => from_environment(&options).await,
    }
}

async fn from_file(file: &Path, options: &KubeConfigOptions) -> Result<Config, Failure> {
    let fail = |error: kube::config::KubeconfigError| Failure::new(format!("{}: {error}", file.display()));
    let kubeconfig = Kubeconfig::read_from(file).map_err(fail)?;
    Config::from_custom_kubeconfig(kubeconfig, options).await.map_err(fail)
}

async fn from_environment(options: &KubeConfigOptions) -> Result<Config, Failure> {
    Config::from_kubeconfig(options).await.map_err(|error| {
        Failure::no_cluster(format!("no cluster here: there is no {DEFAULT_DIR}/kubeconfig, and {error}"))
            .advice("start one with `windlass up`, or name one with --dir or --kubeconfig")
    })
}

fn nothing_in(dir: &Path) -> Failure {
    Failure::no_cluster(format!("no cluster in {}", dir.display()))
        .advice(format!("start one there with `windlass up --dir {}`", dir.display()))
}
