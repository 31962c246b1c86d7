//! Random requests to Windlass and to a real kube-apiserver, and whether the two say the same.

mod allowed;
mod call;
mod collection;
mod control_plane;
mod live;
mod mutate;
mod normal;
mod past;
mod recorder;
mod report;
mod story;
mod teller;
mod watch;
mod words;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::{Value, json};

use call::Call;
use control_plane::{ControlPlane, Programs};
use report::Report;
use story::{Kind, Theme};
use teller::{Pair, remember, tell};

const KINDS: &str = include_str!("kinds.yaml");
const DEFINITION: &str = include_str!("definition.yaml");
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
    ///
    /// With several, each gets all the requests.
    #[arg(long, default_values_t = [1])]
    seed: Vec<u64>,
    /// Only this resource, such as `deployments`.
    #[arg(long)]
    only: Option<String>,
    /// Only stories about Pods and templates of them.
    #[arg(long)]
    pods: bool,
    /// Print every request.
    #[arg(long)]
    trace: bool,
    /// Compare nothing: ask the real kube-apiserver about the CEL expressions of the fixtures in this folder, and write down
    /// what it says.
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// How many of the differences to print.
    #[arg(long, default_value_t = 40)]
    show: usize,
}

/// Compares, and fails if the servers differ.
#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    if let Some(folder) = &options.record {
        return recorder::record(&control_plane::kubernetes(&options.programs).await?, folder).await;
    }
    let report = compare_all(&options).await?;
    report.print(options.show);
    if report.differences() > 0 {
        bail!("the servers differ in {} of {} requests", report.differences(), report.requests);
    }
    Ok(())
}

async fn compare_all(options: &Options) -> Result<Report> {
    let kinds: Vec<Kind> = serde_saphyr::from_str(KINDS).context("kinds.yaml")?;
    let chosen = |kind: &Kind| {
        options.only.as_deref().is_none_or(|only| kind.resource() == only) && (!options.pods || kind.has_pods())
    };
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
    for &seed in &options.seed {
        let (before, different) = (report.requests, report.differences());
        let mut story = seed;
        while report.requests - before < options.requests {
            let kind = &kinds[usize::try_from(story % kinds.len() as u64)?];
            if !options.pods || Theme::of(story) == Theme::Pods {
                tell(&pair, kind, story, &mut report).await;
            }
            story += 1;
        }
        let (requests, different) = (report.requests - before, report.differences() - different);
        println!("seed {seed}: {requests} requests, {different} different");
    }
    let forgetful: Vec<&Kind> = kinds.iter().filter(|kind| kind.forgets).collect();
    if !forgetful.is_empty() {
        past::forget(&pair.kubernetes, &pair.windlass).await?;
    }
    for kind in forgetful {
        remember(&pair, kind, &mut report).await;
    }
    Ok(report)
}

/// The namespace and the custom kind that stories are about.
async fn prepare(plane: &ControlPlane) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "diff"}});
    let definition: Value = serde_saphyr::from_str(DEFINITION)?;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (path, object) in [("/api/v1/namespaces", namespace), (definitions, definition)] {
        let answer = Call::new("create", "POST", path.to_owned(), Some(object)).send(&plane.client).await;
        if answer.code != 201 {
            bail!("{path}: {} {}", answer.code, answer.body["message"]);
        }
    }
    let deadline = Instant::now() + SERVED_MAX;
    let widgets = Call::new("list", "GET", "/apis/diff.example.com/v1/namespaces/diff/widgets".to_owned(), None);
    while widgets.send(&plane.client).await.code != 200 {
        if Instant::now() > deadline {
            bail!("the custom kind is not served");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
