//! One kind of request, as fast as the server answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use clap::ValueEnum;
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::bodies::{Kind, Template};
use crate::connection::{Connection, Target};
use crate::measure::percentiles;

/// How many requests share a connection.
const PER_CONNECTION: usize = 16;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Verb {
    /// POST of new objects.
    Create,
    /// Merge patch of objects that are there: a PUT of a custom object would need the version of each.
    Update,
    /// Server-side apply to objects that are there.
    Apply,
    /// GET of single objects.
    Get,
}

#[derive(clap::Args)]
pub(crate) struct Options {
    /// What is sent.
    #[arg(long, value_enum)]
    verb: Verb,
    /// What it is about.
    #[arg(long, value_enum, default_value = "widget")]
    kind: Kind,
    /// How many requests are sent.
    #[arg(long)]
    count: usize,
    /// How many are in flight.
    #[arg(long, default_value_t = 16)]
    in_flight: usize,
    /// The beginning of the names of the objects.
    #[arg(long, default_value = "load")]
    prefix: String,
    /// How many objects of that name there are, for requests about objects that are there.
    #[arg(long, default_value_t = 0)]
    objects: usize,
    /// What is in the objects, so that an update changes them.
    #[arg(long, default_value_t = 1)]
    round: usize,
}

struct Work {
    verb: Verb,
    kind: Kind,
    template: Template,
    prefix: String,
    objects: usize,
    round: usize,
    count: usize,
    next: AtomicUsize,
}

pub(crate) async fn run(target: &Target, options: &Options) -> Result<Value> {
    let work = Arc::new(Work {
        verb: options.verb,
        kind: options.kind,
        template: options.kind.template(),
        prefix: options.prefix.clone(),
        objects: options.objects,
        round: options.round,
        count: options.count,
        next: AtomicUsize::new(0),
    });
    let mut connections = Vec::new();
    for _ in 0..options.in_flight.div_ceil(PER_CONNECTION) {
        connections.push(target.connect().await?);
    }
    let begin = Instant::now();
    let mut workers = JoinSet::new();
    for index in 0..options.in_flight {
        workers.spawn(drain(Arc::clone(&work), connections[index % connections.len()].clone()));
    }
    let mut times = Vec::with_capacity(options.count);
    while let Some(done) = workers.join_next().await {
        times.extend(done??);
    }
    let wall = begin.elapsed().as_secs_f64();
    let mut result = percentiles(times);
    result["per_s"] = json!(options.count as f64 / wall);
    result["wall_s"] = json!(wall);
    Ok(result)
}

async fn drain(work: Arc<Work>, connection: Connection) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    loop {
        let index = work.next.fetch_add(1, Ordering::Relaxed);
        if index >= work.count {
            return Ok(times);
        }
        let (method, path, kind, body) = work.request(index);
        let begin = Instant::now();
        connection.send(method, &path, kind, body).await?;
        times.push(begin.elapsed());
    }
}

impl Work {
    fn request(&self, index: usize) -> (Method, String, &'static str, Bytes) {
        const JSON: &str = "application/json";
        // Far apart, so that two requests in flight are not about one object.
        let object = if self.objects == 0 { index } else { (index * 7919) % self.objects };
        let name = format!("{}-{object}", self.prefix);
        let collection = self.kind.path();
        let body = || Bytes::from(self.template.body(&name, self.round + index / self.objects.max(1)));
        let path = format!("{collection}/{name}");
        match self.verb {
            Verb::Create => (Method::POST, collection.to_owned(), JSON, body()),
            Verb::Update => (Method::PATCH, path, "application/merge-patch+json", body()),
            Verb::Get => (Method::GET, path, JSON, Bytes::new()),
            Verb::Apply => {
                let path = format!("{path}?fieldManager=load-apply&force=true");
                (Method::PATCH, path, "application/apply-patch+yaml", body())
            }
        }
    }
}
