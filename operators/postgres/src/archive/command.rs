//! The command `archive`: run by servers for each file of their log, and by Pods that take a base backup.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};
use windlass::backup::{
    BackupOrder, ORDER_VARIABLE, Storage, StorageError, TERMINATION_FILE, VerificationRecord, open,
};
use windlass::runtime::Clock;

use super::base::{self, From};
use super::layout::Layout;
use super::segment;
use crate::instance::restore_once;

/// The word that turns the operator's program into this command.
pub(crate) const COMMAND: &str = "archive";
/// A server takes the end of `restore_command` for the end of the log, unless its code is above 125.
const ABSENT: u8 = 1;
const BROKEN: u8 = 200;

/// Works on an archive.
#[derive(Debug, Parser)]
#[command(name = COMMAND, about = "Works on the archive of a PostgreSQL cluster")]
struct Options {
    /// Where the storage, or the credentials to it, are
    #[arg(long)]
    storage: PathBuf,
    /// The archive in it
    #[arg(long)]
    archive: String,
    #[command(subcommand)]
    work: Work,
}

#[derive(Debug, Subcommand)]
enum Work {
    /// Archives a file of the log
    Push {
        /// Where it is
        path: PathBuf,
    },
    /// Brings a file of the log back
    Fetch {
        /// Its name
        name: String,
        /// Where it is wanted
        to: PathBuf,
    },
    /// Takes a base backup
    Backup {
        #[command(flatten)]
        from: From,
        /// Where it is made, if the storage is not a folder
        #[arg(long, default_value = "/scratch")]
        scratch: PathBuf,
    },
    /// Restores a backup into a folder that is thrown away, to see that it can be
    Verify {
        /// What it is called
        id: String,
        /// Where it is restored
        scratch: PathBuf,
    },
}

/// Runs the command; `arguments` begin with its name.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::try_parse_from(arguments) {
        Ok(options) => options,
        Err(error) => error.exit(),
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).with_target(false).init();
    let (storage, layout) = match open(&options.storage) {
        Ok(storage) => (storage, Layout::at(&options.archive)),
        Err(error) => return unusable(&options.work, &error),
    };
    match options.work {
        Work::Push { path } => match segment::push(&*storage, &layout, &path) {
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => refused(&error),
        },
        Work::Fetch { name, to } => match segment::fetch(&*storage, &layout, &name, &to) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(ABSENT),
            Err(error) => broken(&error),
        },
        Work::Backup { from, scratch } => backup(&*storage, &scratch, &layout, &from),
        Work::Verify { id, scratch } => verify(&options.storage, &layout, &id, &scratch),
    }
}

/// The storage cannot be opened. A Job says so in its last words, too.
fn unusable(work: &Work, error: &StorageError) -> ExitCode {
    if matches!(work, Work::Backup { .. } | Work::Verify { .. }) {
        let _ = fs::write(TERMINATION_FILE, error.to_string());
    }
    if matches!(work, Work::Push { .. }) { refused(error) } else { broken(error) }
}

/// A file of the log was not archived. With a code above 125 the server would end its archiver, and not count that it failed.
fn refused(error: &dyn std::error::Error) -> ExitCode {
    tracing::error!(%error, "The log was not archived");
    ExitCode::FAILURE
}

fn broken(error: &dyn std::error::Error) -> ExitCode {
    tracing::error!(%error, "The archive cannot be used");
    ExitCode::from(BROKEN)
}

/// The archive is read as a restore would read it, as far as it goes.
fn verify(storage: &Path, layout: &Layout, id: &str, scratch: &Path) -> ExitCode {
    let begun = Instant::now();
    let restored = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Into::into);
    let restored = restored.and_then(|runtime| runtime.block_on(restore_once(storage, &layout.base(id), scratch)));
    if let Err(error) = restored {
        let _ = fs::write(TERMINATION_FILE, error.to_string());
        tracing::error!(%error, "The backup cannot be restored");
        return ExitCode::FAILURE;
    }
    let record = VerificationRecord {
        id: id.to_owned(),
        verified_at: Clock::system().now(),
        recovery_seconds: begun.elapsed().as_millis() as f64 / 1000.0,
    };
    match fs::write(TERMINATION_FILE, record.last_words()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => broken(&error),
    }
}

fn backup(storage: &dyn Storage, scratch: &Path, layout: &Layout, from: &From) -> ExitCode {
    let order = std::env::var(ORDER_VARIABLE).ok().and_then(|text| serde_json::from_str::<BackupOrder>(&text).ok());
    let Some(order) = order else {
        tracing::error!("There is no order in {ORDER_VARIABLE}");
        return ExitCode::FAILURE;
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return broken(&error),
    };
    let record = match runtime.block_on(base::take(storage, scratch, layout, from, &order)) {
        Ok(record) => record,
        Err(error) => {
            let _ = fs::write(TERMINATION_FILE, error.to_string());
            return broken(&error);
        }
    };
    // The backup is there, whatever comes of the rest.
    if let Err(error) = base::thin_out(storage, layout, &order) {
        tracing::warn!(%error, "What is not kept was not removed");
    }
    match fs::write(TERMINATION_FILE, record.last_words()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => broken(&error),
    }
}
