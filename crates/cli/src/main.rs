//! The `windlass` command: parse, understand, run.

mod arguments;
mod chaos;
mod commands;
mod connection;
mod dev;
mod envtest;
mod failure;
mod isolation;
mod manifest;
mod operators;
mod owned;
mod resource;
mod scaffold;
mod view;
mod why;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;
use failure::Failure;

fn main() -> ExitCode {
    // Pods are started by running this program again: such a process must act before any thread exists.
    windlass_node::sandbox_entry();
    if let Some(code) = envtest::run_if_called().or_else(operators::run_if_asked).or_else(dev::attached::run_if_asked) {
        return code;
    }
    run_command(Arguments::parse())
}

/// Runs a command to its end.
fn run_command(arguments: Arguments) -> ExitCode {
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    let result = runtime.block_on(dispatch(arguments));
    // A blocked read of standard input must not keep a finished command alive.
    runtime.shutdown_background();
    result
}

async fn dispatch(arguments: Arguments) -> Result<(), Failure> {
    let target = arguments.target;
    match arguments.command {
        Command::Up(options) => commands::up::run(options, &target).await,
        Command::Serve(options) => commands::serve::run(options, &target).await,
        Command::Down(options) => commands::down::run(&options, &target).await,
        Command::Status => commands::status::run(&target).await,
        Command::Get(options) => commands::get::run(&options, &target).await,
        Command::Apply(options) => commands::apply::run(&options, &target).await,
        Command::Delete(options) => commands::delete::run(&options, &target).await,
        Command::Plan(options) => commands::plan::run(&options, &target).await,
        Command::Describe(options) => commands::describe::run(&options, &target).await,
        Command::Why(options) => commands::why::run(&options, &target).await,
        Command::Logs(options) => commands::logs::run(&options, &target).await,
        Command::Wait(options) => commands::wait::run(&options, &target).await,
        Command::Events(options) => commands::events::run(&options, &target).await,
        Command::Chaos(command) => commands::chaos::run(&command, &target).await,
        Command::Image(command) => commands::image::run(&command).await,
        Command::Init(options) => commands::init::run(&options),
        Command::Create(command) => commands::create::run(&command),
        Command::Dev(options) => commands::dev::run(&options, &target).await,
        Command::Node(command) => commands::node::run(&command, &target).await,
        Command::Envtest(options) => commands::envtest::run(&options),
        Command::Completion { shell } => {
            commands::completion::print(shell);
            Ok(())
        }
    }
}
