//! Random requests to Windlass and to a real kube-apiserver, and whether the two say the same.

mod call;
mod control_plane;
mod mutate;
mod normal;
mod report;
mod story;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use call::{Answer, Call};
use control_plane::{ControlPlane, Programs};
use normal::compare;
use report::Report;
use story::Kind;

const KINDS: &str = include_str!("kinds.yaml");
const DEFINITION: &str = include_str!("definition.yaml");
/// Requests in one story, at most.
const STEPS_MAX: usize = 12;
/// How long the definition of the custom kind may take to be served.
const SERVED_MAX: Duration = Duration::from_secs(20);

/// Sends random requests to Windlass and to a real kube-apiserver and compares the answers.
///
/// `cargo xtask conformance differential` builds the programs and runs this with them.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    programs: Programs,
    /// How many requests to send to each server.
    #[arg(long, default_value_t = 5_000)]
    requests: usize,
    /// The first of the numbers that the stories are made from; the same number, the same stories.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this resource, such as `deployments`.
    #[arg(long)]
    only: Option<String>,
    /// Print every request.
    #[arg(long)]
    trace: bool,
    /// How many of the differences to print.
    #[arg(long, default_value_t = 40)]
    show: usize,
}

/// The two servers.
struct Pair {
    kubernetes: ControlPlane,
    windlass: ControlPlane,
}

/// Compares, and fails if the servers differ.
#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let report = compare_all(&options).await?;
    report.print(options.show);
    if report.differences() > 0 {
        bail!("the servers differ in {} of {} requests", report.differences(), report.requests);
    }
    Ok(())
}

async fn compare_all(options: &Options) -> Result<Report> {
    let kinds: Vec<Kind> = serde_saphyr::from_str(KINDS).context("kinds.yaml")?;
    let chosen = |kind: &Kind| options.only.as_deref().is_none_or(|only| kind.resource() == only);
    let kinds: Vec<Kind> = kinds.into_iter().filter(chosen).collect();
    if kinds.is_empty() {
        bail!("no such resource: look in crates/differential/src/kinds.yaml");
    }
    let programs = &options.programs;
    let windlass = control_plane::windlass(programs).await?;
    let pair = Pair { windlass, kubernetes: control_plane::kubernetes(programs).await? };
    for plane in [&pair.kubernetes, &pair.windlass] {
        prepare(plane).await.with_context(|| plane.name)?;
    }
    let mut report = Report::new(options.trace);
    let mut seed = options.seed;
    while report.requests < options.requests {
        let kind = &kinds[usize::try_from(seed % kinds.len() as u64)?];
        tell(&pair, kind, seed, &mut report).await?;
        seed += 1;
    }
    Ok(report)
}

/// Tells one story to both servers, up to the first difference.
async fn tell(pair: &Pair, kind: &Kind, seed: u64, report: &mut Report) -> Result<()> {
    let name = format!("story-{seed}");
    let steps = StdRng::seed_from_u64(seed).random_range(3..=STEPS_MAX);
    let (mut there, mut here) = (None, None);
    for step in 0..steps {
        let choices = StdRng::seed_from_u64(seed.wrapping_mul(1_000) + step as u64);
        let left = story::next(kind, &name, step, there.as_ref(), &mut choices.clone());
        let right = story::next(kind, &name, step, here.as_ref(), &mut choices.clone());
        if !same(pair, kind, (&left, &right), seed, report).await?.1 {
            break;
        }
        let read = Call::new("get", "GET", format!("{}/{name}", kind.path), None);
        let ((left, right), equal) = same(pair, kind, (&read, &read), seed, report).await?;
        if !equal {
            break;
        }
        there = (left.code == 200).then_some(left.body);
        here = (right.code == 200).then_some(right.body);
    }
    for call in story::last(kind, &name) {
        call.send(&pair.kubernetes.client).await?;
        call.send(&pair.windlass.client).await?;
    }
    Ok(())
}

async fn same(
    pair: &Pair,
    kind: &Kind,
    (left, right): (&Call, &Call),
    seed: u64,
    report: &mut Report,
) -> Result<((Answer, Answer), bool)> {
    let answers = (left.send(&pair.kubernetes.client).await?, right.send(&pair.windlass.client).await?);
    let difference = compare(&answers.0, &answers.1);
    let equal = difference.is_none();
    report.add(kind.resource(), left, seed, difference);
    Ok((answers, equal))
}

/// The namespace and the custom kind that stories are about.
async fn prepare(plane: &ControlPlane) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "diff"}});
    let definition: Value = serde_saphyr::from_str(DEFINITION)?;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (path, object) in [("/api/v1/namespaces", namespace), (definitions, definition)] {
        let answer = Call::new("create", "POST", path.to_owned(), Some(object)).send(&plane.client).await?;
        if answer.code != 201 {
            bail!("{path}: {} {}", answer.code, answer.body["message"]);
        }
    }
    let deadline = Instant::now() + SERVED_MAX;
    let widgets = Call::new("list", "GET", "/apis/diff.example.com/v1/namespaces/diff/widgets".to_owned(), None);
    while widgets.send(&plane.client).await?.code != 200 {
        if Instant::now() > deadline {
            bail!("the custom kind is not served");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
