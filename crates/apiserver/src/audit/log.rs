//! The file of the audit log, written by a thread of its own.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use serde_json::Value;
use tokio::sync::mpsc;

use super::{Level, Policy, event::Outcome};
use crate::{auth::User, request::RequestInfo};

/// How many lines wait for the disk; more are lost, and counted.
const QUEUE_MAX: usize = 10_000;
/// How long the file grows before it is set aside as `PATH.1`, in place of the one before.
const FILE_BYTES_MAX: u64 = 100 << 20;

/// Why there can be no audit log.
#[derive(Debug, thiserror::Error)]
#[error("the audit log {} cannot be written: {source}; choose a file that this user may write", path.display())]
pub struct AuditLogError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Where requests are logged. Losing the last handle ends the log after what waits is written.
#[derive(Debug)]
pub struct AuditLog {
    policy: Policy,
    queue: mpsc::Sender<Value>,
    lost: AtomicU64,
}

impl AuditLog {
    /// Logs to the file at `path`, after what it holds already.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path, policy: Policy) -> Result<Self, AuditLogError> {
        let failed = |source| AuditLogError { path: path.to_owned(), source };
        let mut output = Output::open(path).map_err(failed)?;
        let (queue, mut lines) = mpsc::channel::<Value>(QUEUE_MAX);
        let run = move || {
            while let Some(line) = lines.blocking_recv() {
                if let Err(error) = output.write(&line, lines.is_empty()) {
                    tracing::warn!(%error, "a line of the audit log could not be written");
                }
            }
        };
        thread::Builder::new().name("audit-log".into()).spawn(run).map_err(failed)?;
        Ok(Self { policy, queue, lost: AtomicU64::new(0) })
    }

    /// How much of a request is logged.
    pub(crate) fn level(&self, user: &User, info: &RequestInfo) -> Level {
        let method = info.method.as_str().to_ascii_lowercase();
        self.policy.level(user, &info.attributes(&method))
    }

    /// Whether bodies are logged of some requests.
    pub(crate) fn logs_bodies(&self) -> bool {
        self.policy.logs_bodies()
    }

    /// Logs a request that was answered.
    pub(crate) fn record(&self, outcome: &Outcome<'_>) {
        if outcome.level > Level::None && self.queue.try_send(outcome.event()).is_err() {
            let lost = self.lost.fetch_add(1, Ordering::Relaxed);
            if lost == 0 {
                tracing::warn!("the audit log cannot keep up; lines are lost");
            }
        }
    }

    /// How many lines were lost because the disk was too slow.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

struct Output {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
}

impl Output {
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), bytes })
    }

    fn write(&mut self, line: &Value, last: bool) -> io::Result<()> {
        let mut text = line.to_string();
        text.push('\n');
        self.file.write_all(text.as_bytes())?;
        self.bytes += text.len() as u64;
        if last || self.bytes >= FILE_BYTES_MAX {
            self.file.flush()?;
        }
        if self.bytes >= FILE_BYTES_MAX {
            let mut aside = self.path.clone().into_os_string();
            aside.push(".1");
            std::fs::rename(&self.path, aside)?;
            *self = Self::open(&self.path)?;
        }
        Ok(())
    }
}
