//! `windlass why`: what keeps an object from being ready, and what to do about it.

use std::time::Duration;

use clap::Args;
use tokio::net::TcpStream;

use super::dev::JOURNAL;
use crate::arguments::Target;
use crate::connection::{connect, dir};
use crate::failure::Failure;
use crate::resource::Catalog;
use crate::view::output::{say, show};
use crate::why::{as_json, as_text, diagnose, gather};

/// An operator of this machine answers at once, or does not run.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(1);

/// How to print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WhyOutput {
    /// JSON.
    Json,
}

#[derive(Args)]
pub(crate) struct WhyOptions {
    /// An object: `memcached/x`, or `memcached x`.
    #[arg(required = true, num_args = 1..=2)]
    object: Vec<String>,
    /// The form of output.
    #[arg(short, long, value_enum)]
    output: Option<WhyOutput>,
    /// Ask the operator at this address, such as http://127.0.0.1:8081, instead of those that run in the cluster.
    #[arg(long, value_name = "URL")]
    journal: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(options: &WhyOptions, target: &Target) -> Result<(), Failure> {
    let connection = connect(target).await?;
    let catalog = Catalog::of(&connection.client).await?;
    let selections = catalog.resolve(&options.object)?;
    let (resource, name) = match selections.as_slice() {
        [one] if one.names.len() == 1 => (&one.resource, one.names[0].as_str()),
        _ => return Err(Failure::new("say which object: `windlass why KIND/NAME`")),
    };
    let place = (resource, connection.namespace.as_str(), name);
    let journal = match &options.journal {
        Some(address) => Some(address.clone()),
        None => of_dev(target).await,
    };
    let facts = gather(&connection.client, &catalog, place, journal.as_deref()).await?;
    let findings = diagnose(&facts);
    match options.output {
        Some(WhyOutput::Json) => say!("{:#}", as_json(&facts, &findings)),
        None => show!("{}", as_text(&facts, &findings)),
    }
    Ok(())
}

/// Where the operator of a `windlass dev` in this folder answers, if one runs.
async fn of_dev(target: &Target) -> Option<String> {
    if target.kubeconfig.is_some() {
        return None;
    }
    let address = std::fs::read_to_string(dir(target).join(JOURNAL)).ok()?;
    let connect = TcpStream::connect(address.strip_prefix("http://")?);
    tokio::time::timeout(CONNECT_TIME_MAX, connect).await.ok()?.ok()?;
    Some(address)
}
