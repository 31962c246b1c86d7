//! The supervisor of one server: the first process of a member's container.
//!
//! It observes (`observe`), decides (`decide`, pure) and acts (`act`), again and again. Beside it run: the keeper of the
//! lease, the guard that ends the server when the lease is over, the questions to other members, and the port that answers theirs.

mod act;
mod candidate;
mod config;
mod decide;
#[cfg(test)]
mod decide_tests;
mod fence;
mod keeper;
mod maintain;
mod member;
mod observe;
mod observed;
mod peers;
mod postgres;
mod publish;
mod quorum;
mod recover;
mod sql;
mod status;
mod volume;

pub(crate) use config::SOCKETS;
pub(crate) use postgres::{ToolError, run as run_tool};

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use windlass::kube::{Client, Config};

use crate::wire::Origin;

/// The word that turns the operator's program into the supervisor.
pub(crate) const COMMAND: &str = "instance";

/// An API that does not take a connection by then is away.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// Restores a backup, with all of the log that follows it, into a folder of nobody's, to see that it can be.
pub(crate) async fn restore_once(storage: &Path, path: &str, scratch: &Path) -> Result<(), AnyError> {
    let postgres = postgres::Postgres::new(volume::Volume::at(scratch));
    let origin = Origin { path: path.to_owned(), time: None };
    Ok(recover::recover(&postgres, storage, &origin).await?)
}

/// Which member this is.
#[derive(Clone, Debug, Parser)]
#[command(name = COMMAND, about = "Runs one server of a PostgreSQL cluster, inside of its Pod")]
pub(crate) struct Identity {
    /// The cluster
    #[arg(long)]
    pub(crate) cluster: String,
    /// The member of it
    #[arg(long)]
    pub(crate) member: String,
    /// The namespace
    #[arg(long)]
    pub(crate) namespace: String,
    /// Where the member's volume is
    #[arg(long, default_value = "/data")]
    pub(crate) volume: PathBuf,
    /// Where the passwords are
    #[arg(long, default_value = "/credentials")]
    pub(crate) credentials: PathBuf,
}

/// Runs the supervisor; `arguments` begin with its name.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    let identity = match Identity::try_parse_from(arguments) {
        Ok(identity) => identity,
        Err(error) => error.exit(),
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).with_target(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let result = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run(identity)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "The supervisor ends");
            ExitCode::FAILURE
        }
    }
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

async fn run(identity: Identity) -> Result<(), AnyError> {
    let mut config = Config::infer().await?;
    config.connect_timeout = Some(CONNECT_MAX);
    let client = Client::try_from(config)?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    tracing::info!(member = %identity.member, cluster = %identity.cluster, "Supervising");
    member::run(identity, client, stop).await
}
