//! How long it takes from sending a write to reading its event.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::bodies::Kind;
use crate::connection::{Connection, Target};
use crate::events::Events;
use crate::measure::percentiles;

/// How many watches share a connection.
const PER_CONNECTION: usize = 10;
/// How long the last event may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// What is watched.
    #[arg(long, value_enum, default_value = "widget")]
    kind: Kind,
    /// How many watch.
    #[arg(long)]
    watchers: usize,
    /// How many objects are made.
    #[arg(long, default_value_t = 300)]
    count: usize,
    /// How many are made per second.
    #[arg(long, default_value_t = 100)]
    rate: u32,
    /// The beginning of the names of the objects.
    #[arg(long, default_value = "watched")]
    prefix: String,
}

type Sent = Arc<Mutex<HashMap<String, Instant>>>;

pub(crate) async fn run(target: &Target, options: &Options) -> Result<Value> {
    let writer = target.connect().await?;
    let path = options.kind.path();
    let list: Value = serde_json::from_slice(&writer.get(&format!("{path}?limit=1")).await?)?;
    let version = list["metadata"]["resourceVersion"].as_str().context("a list has a version")?.to_owned();
    let sent = Sent::default();
    let mut watchers = JoinSet::new();
    let mut connection = target.connect().await?;
    for index in 0..options.watchers {
        if index % PER_CONNECTION == 0 {
            connection = target.connect().await?;
        }
        let events = Events::open(&connection, path, &version).await?;
        watchers.spawn(follow(events, Arc::clone(&sent), options.prefix.clone(), options.count));
    }
    write(&writer, options, &sent).await?;
    let mut times = Vec::new();
    while let Some(done) = watchers.join_next().await {
        times.extend(done??);
    }
    Ok(percentiles(times))
}

async fn write(writer: &Connection, options: &Options, sent: &Sent) -> Result<()> {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / options.rate.max(1));
    let (mut requests, template) = (JoinSet::new(), options.kind.template());
    for index in 0..options.count {
        ticks.tick().await;
        let name = format!("{}-{index}", options.prefix);
        let body = template.body(&name, 1);
        sent.lock().unwrap_or_else(PoisonError::into_inner).insert(name, Instant::now());
        let (writer, path) = (writer.clone(), options.kind.path());
        requests.spawn(async move { writer.post(path, body).await });
    }
    while let Some(done) = requests.join_next().await {
        done??;
    }
    Ok(())
}

/// Reads events until those of all `count` objects came.
async fn follow(mut events: Events, sent: Sent, prefix: String, count: usize) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(count);
    while times.len() < count {
        let seen = times.len();
        let line = events.line(PATIENCE).await.with_context(|| format!("after {seen} of {count} events"))?;
        let now = Instant::now();
        let sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
        times.extend(name(&line, &prefix).and_then(|name| sent.get(&name)).map(|sent| now - *sent));
    }
    Ok(times)
}

/// The name of the object of an event, looked for as text: reading the object is not the server's time.
fn name(line: &[u8], prefix: &str) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?;
    let (_, rest) = text.split_once(&format!("\"name\":\"{prefix}-"))?;
    Some(format!("{prefix}-{}", rest.split('"').next()?))
}
