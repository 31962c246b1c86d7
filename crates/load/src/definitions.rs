//! Custom kinds: one for the other scenarios, or many.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::bodies::{Kind, definition};
use crate::connection::{Connection, Target};

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// How long a kind may take until it is served.
const PATIENCE: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(5);
/// How many kinds a group has, as the large providers of clouds have them.
const PER_GROUP: usize = 20;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many kinds.
    #[arg(long)]
    count: usize,
}

/// Defines the custom kind of the other scenarios.
pub(crate) async fn define_widgets(target: &Target) -> Result<Value> {
    let connection = target.connect().await?;
    connection.post(PATH, definition("load.example.com", "widgets", "Widget").to_string()).await?;
    served(&connection, Kind::Widget.path()).await?;
    Ok(json!({}))
}

pub(crate) async fn run(target: &Target, options: &Options) -> Result<Value> {
    let connection = target.connect().await?;
    let begin = Instant::now();
    for index in 0..options.count {
        let (group, plural) = (group(index), format!("things{index}"));
        connection.post(PATH, definition(&group, &plural, &format!("Thing{index}")).to_string()).await?;
    }
    for index in 0..options.count {
        let path = format!("/apis/{}/v1/namespaces/default/things{index}", group(index));
        served(&connection, &path).await?;
    }
    let served = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let groups = discovered(&connection, options.count).await?;
    Ok(json!({"served_s": served, "discovery_ms": begin.elapsed().as_secs_f64() * 1000.0, "groups": groups}))
}

fn group(index: usize) -> String {
    format!("g{}.load.example.com", index / PER_GROUP)
}

async fn served(connection: &Connection, path: &str) -> Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let (status, _) = connection.exchange(Method::GET, path, "application/json", Bytes::new()).await?;
        if status == StatusCode::OK {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    bail!("{path} is not served after {PATIENCE:?}")
}

/// Reads discovery as clients without aggregation do: the groups, then each of them.
async fn discovered(connection: &Connection, count: usize) -> Result<usize> {
    let list: Value = serde_json::from_slice(&connection.get("/apis").await?)?;
    let groups = list["groups"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut kinds = 0;
    for group in groups {
        let version = group["preferredVersion"]["groupVersion"].as_str().unwrap_or_default();
        let resources: Value = serde_json::from_slice(&connection.get(&format!("/apis/{version}")).await?)?;
        let names = resources["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
        kinds += names.iter().filter(|it| it["kind"].as_str().unwrap_or_default().starts_with("Thing")).count();
    }
    // Each has its status, too.
    ensure!(kinds == 2 * count, "discovery has {kinds} resources instead of {}", 2 * count);
    Ok(groups.len())
}
