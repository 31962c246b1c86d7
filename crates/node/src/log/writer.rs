//! Writes what containers say, one file per run of a container, rotated by size.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use k8s_openapi::jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

use super::line::{self, Stream, TEXT_BYTES_MAX};
use crate::pod::Console;

/// A file is rotated at this size, and so many old ones are kept: kubelet's defaults.
const FILE_BYTES_MAX: u64 = 10 << 20;
const FILES_MAX: u32 = 5;

/// The logs of a node.
#[derive(Debug, Clone)]
pub(crate) struct Logs {
    directory: PathBuf,
    live: Arc<Mutex<HashMap<PathBuf, watch::Receiver<u64>>>>,
}

impl Logs {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, live: Arc::default() }
    }

    /// The directory of one Pod's logs.
    pub(crate) fn pod(&self, namespace: &str, pod: &str, uid: &str) -> PathBuf {
        self.directory.join(format!("{namespace}_{pod}_{uid}"))
    }

    /// Directories of all Pods that have logs.
    pub(crate) fn pods(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }

    /// Starts the log of run `number` of a container; only the run before it is kept besides.
    pub(crate) fn begin(&self, container: PathBuf, number: i32) -> io::Result<Log> {
        fs::create_dir_all(&container)?;
        for (old, path) in files(&container) {
            if old < number - 1 {
                let _ = fs::remove_file(path);
            }
        }
        let path = container.join(format!("{number}.log"));
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let bytes = file.metadata()?.len();
        let (changed, receiver) = watch::channel(0);
        let mut live = self.live.lock().expect("the lock is never held across a panic");
        live.retain(|_, receiver| receiver.has_changed().is_ok());
        live.insert(path.clone(), receiver);
        let rotations = rotations(&path);
        Ok(Log { path, file, bytes, rotations, changed })
    }

    /// Tells when a file grows; none if nothing writes to it any more.
    pub(crate) fn follow(&self, path: &Path) -> Option<watch::Receiver<u64>> {
        let live = self.live.lock().expect("the lock is never held across a panic");
        live.get(path).filter(|receiver| receiver.has_changed().is_ok()).cloned()
    }
}

/// The current files of a container's runs, by number.
pub(crate) fn files(container: &Path) -> Vec<(i32, PathBuf)> {
    let entries = fs::read_dir(container).into_iter().flatten().flatten();
    let numbered = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let (number, _) = name.split_once(".log")?;
        Some((number.parse().ok()?, entry.path()))
    };
    entries.filter_map(numbered).collect()
}

/// How often a file was rotated before.
fn rotations(path: &Path) -> u32 {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return 0;
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix(name)?.strip_prefix('.')?.parse().ok();
    entries.filter_map(number).max().unwrap_or(0)
}

/// The log of one run of a container.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    bytes: u64,
    rotations: u32,
    changed: watch::Sender<u64>,
}

impl Log {
    /// The file that is written to now.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.bytes + lines.len() as u64 > FILE_BYTES_MAX && self.bytes > 0 {
            self.rotate()?;
        }
        self.file.write_all(lines)?;
        self.bytes += lines.len() as u64;
        self.changed.send_modify(|version| *version += 1);
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.rotations += 1;
        let old = |number: u32| PathBuf::from(format!("{}.{number:06}", self.path.display()));
        fs::rename(&self.path, old(self.rotations))?;
        if let Some(oldest) = self.rotations.checked_sub(FILES_MAX - 1) {
            let _ = fs::remove_file(old(oldest));
        }
        self.file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

/// Copies the output of a program into its log until both streams end, and shows it on the console.
pub(crate) async fn collect(
    stdout: impl AsyncRead + Unpin,
    stderr: impl AsyncRead + Unpin,
    log: Log,
    console: Arc<Console>,
) {
    let log = Mutex::new(log);
    tokio::join!(
        collect_one(stdout, Stream::Stdout, &log, &console),
        collect_one(stderr, Stream::Stderr, &log, &console)
    );
}

async fn collect_one(mut output: impl AsyncRead + Unpin, stream: Stream, log: &Mutex<Log>, console: &Console) {
    let mut pending: Vec<u8> = Vec::new();
    let mut chunk = vec![0; TEXT_BYTES_MAX];
    loop {
        let read = output.read(&mut chunk).await.unwrap_or(0);
        pending.extend_from_slice(&chunk[..read]);
        let lines = take_lines(&mut pending, stream, Timestamp::now(), read == 0);
        if !lines.is_empty() {
            let mut log = log.lock().expect("the lock is never held across a panic");
            if let Err(error) = log.append(&lines) {
                tracing::warn!(%error, path = %log.path.display(), "output of a container is lost");
            }
        }
        if read == 0 {
            return;
        }
        console.show(stream, &chunk[..read]).await;
    }
}

/// The file of a container that says these pieces.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn written(pieces: &[&[u8]]) -> Vec<u8> {
    let (mut pending, mut lines) = (Vec::new(), Vec::new());
    for piece in pieces.iter().filter(|piece| !piece.is_empty()).chain([&&b""[..]]) {
        pending.extend_from_slice(piece);
        lines.extend(take_lines(&mut pending, Stream::Stdout, Timestamp::UNIX_EPOCH, piece.is_empty()));
    }
    lines
}

/// Moves what can be written out of `pending`: whole lines, pieces of very long ones, and at the end the rest.
fn take_lines(pending: &mut Vec<u8>, stream: Stream, at: Timestamp, end: bool) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut rest = pending.as_slice();
    loop {
        let newline = rest.iter().position(|&byte| byte == b'\n');
        match newline {
            Some(length) if length <= TEXT_BYTES_MAX => {
                lines.extend(line::format(stream, at, &rest[..length], true));
                rest = &rest[length + 1..];
            }
            _ if rest.len() > TEXT_BYTES_MAX => {
                lines.extend(line::format(stream, at, &rest[..TEXT_BYTES_MAX], false));
                rest = &rest[TEXT_BYTES_MAX..];
            }
            _ => break,
        }
    }
    if end && !rest.is_empty() {
        lines.extend(line::format(stream, at, rest, false));
        rest = &[];
    }
    let keep = rest.len();
    pending.drain(..pending.len() - keep);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_newlines_and_at_the_limit() {
        let at = Timestamp::UNIX_EPOCH;
        let mut pending = b"one\ntwo\nthr".to_vec();
        let lines = String::from_utf8(take_lines(&mut pending, Stream::Stdout, at, false)).unwrap();
        assert_eq!(lines.lines().count(), 2);
        assert_eq!(pending, b"thr");
        let lines = String::from_utf8(take_lines(&mut pending, Stream::Stdout, at, true)).unwrap();
        assert!(lines.ends_with(" P thr\n"), "a line that does not end is not ended");
        let mut pending = vec![b'x'; TEXT_BYTES_MAX + 1];
        pending.push(b'\n');
        let lines = String::from_utf8(take_lines(&mut pending, Stream::Stdout, at, false)).unwrap();
        let flags: Vec<&str> = lines.lines().map(|line| line.split(' ').nth(2).unwrap()).collect();
        assert_eq!(flags, ["P", "F"]);
    }

    #[test]
    fn a_full_file_is_rotated_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let logs = Logs::new(dir.path().to_owned());
        let container = dir.path().join("c");
        let mut log = logs.begin(container.clone(), 0).unwrap();
        let block = vec![b'x'; FILE_BYTES_MAX as usize];
        for _ in 0..8 {
            log.append(&block).unwrap();
        }
        assert_eq!(files(&container).len(), FILES_MAX as usize);
        drop(log);
        let mut again = logs.begin(container.clone(), 0).unwrap();
        again.append(&block).unwrap();
        assert_eq!(files(&container).len(), FILES_MAX as usize, "it goes on where it was");
    }
}
