//! Resources that an operator keeps: made, changed and disturbed, and how soon the operator has settled them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::{Args, ValueEnum};
use futures::StreamExt;
use http::Method;
use serde_json::{Value, json};

use crate::connection::{Connection, Target};
use crate::events::Events;
use crate::measure::percentiles;

const WIDGETS: &str = "/apis/bench.example.com/v1/namespaces/default/widgets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MERGE: &str = "application/merge-patch+json";
/// How long nothing may happen.
const PATIENCE: Duration = Duration::from_secs(300);
/// Requests at the same time when resources are made.
const IN_FLIGHT: usize = 16;

#[derive(Args)]
pub(crate) struct Options {
    /// What is done.
    #[arg(long, value_enum)]
    step: Step,
    /// How many resources there are, or are changed.
    #[arg(long)]
    count: usize,
    /// How many changes are made in a second.
    #[arg(long, default_value_t = 20)]
    rate: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// Make resources.
    Create,
    /// Wait until all are settled.
    Settle,
    /// Change resources, and time each until it is settled.
    Update,
    /// Make one more, and time it until it is settled.
    Another,
    /// Change what belongs to the operator, and time each until it is as it was.
    Drift,
}

/// Takes the step.
pub(crate) async fn run(target: &Target, options: &Options) -> Result<Value> {
    let connection = target.connect().await?;
    match options.step {
        Step::Create => create(&connection, options.count).await,
        Step::Settle => settle(&connection, options.count).await,
        Step::Update => update(&connection, options).await,
        Step::Another => another(&connection).await,
        Step::Drift => drift(&connection, options).await,
    }
}

async fn create(connection: &Connection, count: usize) -> Result<Value> {
    let made = futures::stream::iter(0..count).map(|index| post(connection, name(index)));
    let mut made = std::pin::pin!(made.buffer_unordered(IN_FLIGHT));
    while let Some(outcome) = made.next().await {
        outcome?;
    }
    Ok(json!({"created": count}))
}

async fn post(connection: &Connection, name: String) -> Result<()> {
    let widget = json!({
        "apiVersion": "bench.example.com/v1", "kind": "Widget", "metadata": {"name": name},
        "spec": {"text": text(0), "replicas": 2},
    });
    connection.post(WIDGETS, widget.to_string()).await.map(drop)
}

async fn settle(connection: &Connection, count: usize) -> Result<Value> {
    let begin = Instant::now();
    let (items, mut events) = Events::list(connection, WIDGETS).await?;
    let mut settled: HashMap<String, bool> = items.iter().map(|widget| (name_of(widget), is_settled(widget))).collect();
    while settled.values().filter(|it| **it).count() < count {
        let widget = events.object(PATIENCE).await.context("resources are not settled")?;
        settled.insert(name_of(&widget), is_settled(&widget));
    }
    Ok(json!({"settled_s": begin.elapsed().as_secs_f64()}))
}

async fn update(connection: &Connection, options: &Options) -> Result<Value> {
    let (_, events) = Events::list(connection, WIDGETS).await?;
    let change = |round: usize| json!({"spec": {"text": text(round)}});
    let is_done = |widget: &Value| is_settled(widget) && widget["spec"]["text"] != text(0);
    timed(connection, events, options, (WIDGETS, &change, &is_done)).await
}

async fn drift(connection: &Connection, options: &Options) -> Result<Value> {
    let (_, events) = Events::list(connection, CONFIG_MAPS).await?;
    let change = |_: usize| json!({"data": {"text": "changed by hand"}});
    let is_done = |map: &Value| map["data"]["text"] != "changed by hand";
    timed(connection, events, options, (CONFIG_MAPS, &change, &is_done)).await
}

async fn another(connection: &Connection) -> Result<Value> {
    let (_, mut events) = Events::list(connection, WIDGETS).await?;
    let begin = Instant::now();
    post(connection, "another".to_owned()).await?;
    loop {
        let widget = events.object(PATIENCE).await?;
        if name_of(&widget) == "another" && is_settled(&widget) {
            return Ok(json!({"another_ms": begin.elapsed().as_secs_f64() * 1e3}));
        }
    }
}

/// Where, with what, and how it is known that the operator is done.
type Change<'a> = (&'a str, &'a dyn Fn(usize) -> Value, &'a dyn Fn(&Value) -> bool);

/// Makes changes at a steady pace, and times each until the operator is done with it.
async fn timed(
    connection: &Connection,
    mut events: Events,
    options: &Options,
    (path, change, is_done): Change<'_>,
) -> Result<Value> {
    let (mut sent, mut times) = (HashMap::new(), Vec::with_capacity(options.count));
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / u32::try_from(options.rate.max(1))?);
    let mut index = 0;
    while times.len() < options.count {
        tokio::select! {
            _ = ticks.tick(), if index < options.count => {
                let name = name(index);
                index += 1;
                sent.insert(name.clone(), (Instant::now(), false));
                let body = Bytes::from(change(index).to_string());
                connection.send(Method::PATCH, &format!("{path}/{name}"), MERGE, body).await?;
            }
            object = events.object(PATIENCE) => {
                let object = object.with_context(|| format!("{} of {} are settled", times.len(), options.count))?;
                let name = name_of(&object);
                let Some((begin, was_changed)) = sent.get_mut(&name) else { continue };
                // An event from before the change arrived must not be taken for the operator's.
                *was_changed |= !is_done(&object);
                if *was_changed && is_done(&object) {
                    times.push(begin.elapsed());
                    sent.remove(&name);
                }
            }
        }
    }
    if times.is_empty() {
        bail!("nothing was changed");
    }
    Ok(percentiles(times))
}

fn is_settled(widget: &Value) -> bool {
    let status = &widget["status"];
    status["ready"] == true && status["observedGeneration"] == widget["metadata"]["generation"]
}

fn name(index: usize) -> String {
    format!("widget-{index}")
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// A text of about a kilobyte; the round is all that changes.
fn text(round: usize) -> String {
    format!("round {round} {}", "of a text that is as long as the settings of a program ".repeat(16))
}
