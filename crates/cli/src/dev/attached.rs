//! A program that ends with the one that started it, however that one ends.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// The word that turns this program into another that is attached to its parent.
const COMMAND: &str = "attached";

/// The command that runs `program` attached to this process.
pub(crate) fn command(program: &Path) -> std::io::Result<tokio::process::Command> {
    let mut command = tokio::process::Command::new(std::env::current_exe()?);
    command.arg(COMMAND).arg(std::process::id().to_string()).arg(program);
    Ok(command)
}

/// Becomes the program of `windlass attached PARENT PROGRAM …`, if that was asked for.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()?.to_str() != Some(COMMAND) {
        return None;
    }
    let (Some(parent), Some(program)) = (words.next(), words.next()) else {
        eprintln!("error: write `windlass attached PARENT PROGRAM …`");
        return Some(ExitCode::from(2));
    };
    // The signal stays set when the program is replaced by another.
    let attached = set_parent_process_death_signal(Some(Signal::TERM));
    let is_there = getppid().is_some_and(|pid| parent.to_str() == Some(&pid.as_raw_nonzero().to_string()));
    if attached.is_err() || !is_there {
        return Some(ExitCode::FAILURE); // The parent ended before the signal was set.
    }
    let error = Command::new(&program).args(words).exec();
    eprintln!("error: cannot start {}: {error}", program.display());
    Some(ExitCode::FAILURE)
}
