//! The memcached operator on `kube::runtime::Controller`: `crd` prints the definition of its kind, without it it runs.

mod children;
mod controller;
mod resource;

use kube::{Client, CustomResourceExt};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("crd") {
        print!("{}", serde_saphyr::to_string(&resource::Memcached::crd())?);
        return Ok(());
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    controller::run(Client::try_default().await?).await;
    Ok(())
}
