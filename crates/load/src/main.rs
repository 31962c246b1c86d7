//! A load generator for Kubernetes API servers: one scenario per run, its result as one line of JSON.

mod bodies;
mod connection;
mod definitions;
mod events;
mod kubelets;
mod lists;
mod measure;
mod pods;
mod rates;
mod ready;
mod watches;
mod widgets;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use serde_json::Value;

use connection::{Credentials, Target};

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    credentials: Credentials,
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Subcommand)]
enum Scenario {
    /// Wait until the server says that it is ready.
    Ready,
    /// Define the custom kind that the other scenarios use.
    Define,
    /// Define many kinds, then read discovery.
    Definitions(definitions::Options),
    /// Send one kind of request as fast as the server answers.
    Rate(rates::Options),
    /// Read a collection, whole and in pages.
    List(lists::Options),
    /// Create objects at a steady pace and time their events.
    Watch(watches::Options),
    /// Create Deployments and wait until all their Pods run.
    Pods(pods::Options),
    /// Make, change or disturb what an operator keeps, and time the operator.
    Widgets(widgets::Options),
    /// Be nodes that only seem to run Pods, until ended.
    Kubelets(kubelets::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(result) => {
            println!("{result}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

// One thread: more would wake each other on the cores that the server needs.
#[tokio::main(flavor = "current_thread")]
async fn run(arguments: Arguments) -> Result<Value> {
    let target = Target::new(&arguments.credentials)?;
    let mut result = match arguments.scenario {
        Scenario::Ready => ready::run(&target).await,
        Scenario::Define => definitions::define_widgets(&target).await,
        Scenario::Definitions(options) => definitions::run(&target, &options).await,
        Scenario::Rate(options) => rates::run(&target, &options).await,
        Scenario::List(options) => lists::run(&target, &options).await,
        Scenario::Watch(options) => watches::run(&target, &options).await,
        Scenario::Pods(options) => pods::run(&target, &options).await,
        Scenario::Widgets(options) => widgets::run(&target, &options).await,
        Scenario::Kubelets(options) => kubelets::run(&target, &options).await,
    }?;
    result["generator_cpu_s"] = measure::own_cpu_seconds().into();
    Ok(result)
}
