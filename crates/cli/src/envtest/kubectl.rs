//! kubectl's name when no kubectl was found: the commands that this program shares with it.

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::arguments::{Arguments, Command};

/// Runs `kubectl …` as `windlass …` where the two mean the same.
pub(super) fn run() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) if is_shared(&arguments.command) => crate::run_command(arguments),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => error.exit(),
        Ok(_) => refuse(""),
        Err(error) => refuse(&error.to_string()),
    }
}

fn is_shared(command: &Command) -> bool {
    use Command::{Apply, Delete, Describe, Events, Get, Logs, Wait};
    matches!(command, Get(_) | Apply(_) | Delete(_) | Describe(_) | Logs(_) | Wait(_) | Events(_))
}

fn refuse(why: &str) -> ExitCode {
    eprint!("{why}");
    eprintln!(
        "error: this kubectl is a stand-in by windlass: it knows get, apply, delete, describe, logs, wait, events"
    );
    eprintln!("  put a real kubectl on the PATH and run `windlass envtest` on this folder again");
    ExitCode::from(2)
}
