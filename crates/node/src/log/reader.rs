//! Reads logs back: from the start or the end, since a time, as long as the container goes on.

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use k8s_openapi::jiff::Timestamp;
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::{mpsc, watch};

use super::line;

/// Pieces of a log that wait for a slow reader.
const QUEUE_MAX: usize = 16;
/// Output is sent in pieces of about this size.
const PIECE_BYTES: usize = 32 << 10;

/// What of a log is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the query parameters of the API")]
pub(crate) struct LogOptions {
    pub(crate) follow: bool,
    pub(crate) previous: bool,
    pub(crate) timestamps: bool,
    pub(crate) tail_lines: Option<usize>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) limit_bytes: Option<usize>,
}

/// Reads a run's log; `growth` tells when the file grows and ends with the run. The pieces end with the log.
pub(crate) fn read(
    files: Vec<PathBuf>,
    options: LogOptions,
    growth: Option<watch::Receiver<u64>>,
) -> mpsc::Receiver<io::Result<Bytes>> {
    let (sender, pieces) = mpsc::channel(QUEUE_MAX);
    tokio::spawn(async move {
        let growth = growth.filter(|_| options.follow);
        let mut output = Output { sender, piece: Vec::new(), left: options.limit_bytes, continued: false };
        if let Err(error) = copy(files, &options, growth, &mut output).await {
            let _ = output.sender.send(Err(error)).await;
        }
    });
    pieces
}

/// Ends the copying when the reader has gone or has enough.
struct Done;

struct Output {
    sender: mpsc::Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
    left: Option<usize>,
    /// Whether the last line goes on in the next one, which then has no time of its own.
    continued: bool,
}

impl Output {
    async fn line(&mut self, line: &[u8], timestamps: bool) -> Result<(), Done> {
        let Some(line) = line::parse(line) else { return Ok(()) };
        let start = self.piece.len();
        if timestamps && !self.continued {
            self.piece.extend_from_slice(line.time.as_bytes());
            self.piece.push(b' ');
        }
        self.piece.extend_from_slice(line.text);
        if line.complete {
            self.piece.push(b'\n');
        }
        self.continued = !line.complete && !line.text.is_empty();
        if let Some(left) = &mut self.left {
            let take = (self.piece.len() - start).min(*left);
            self.piece.truncate(start + take);
            *left -= take;
            if *left == 0 {
                let _ = self.flush().await;
                return Err(Done);
            }
        }
        if self.piece.len() >= PIECE_BYTES { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<(), Done> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        self.sender.send(Ok(piece)).await.map_err(|_| Done)
    }
}

async fn copy(
    mut files: Vec<PathBuf>,
    options: &LogOptions,
    growth: Option<watch::Receiver<u64>>,
    output: &mut Output,
) -> io::Result<()> {
    let Some(current) = files.pop() else { return Ok(()) };
    let mut kept: VecDeque<Vec<u8>> = VecDeque::new();
    let mut reader = BufReader::new(File::open(&current).await?);
    for file in files {
        let Ok(file) = File::open(file).await else { continue };
        let mut old = BufReader::new(file);
        while let Some(line) = next_line(&mut old, options).await? {
            if keep_or_send(line, options, &mut kept, output).await.is_err() {
                return Ok(());
            }
        }
    }
    while let Some(line) = next_line(&mut reader, options).await? {
        if keep_or_send(line, options, &mut kept, output).await.is_err() {
            return Ok(());
        }
    }
    for line in kept {
        if output.line(&line, options.timestamps).await.is_err() {
            return Ok(());
        }
    }
    if output.flush().await.is_ok()
        && let Some(growth) = growth
    {
        follow(reader, &current, options, (growth, output)).await?;
    }
    Ok(())
}

async fn keep_or_send(
    line: Vec<u8>,
    options: &LogOptions,
    kept: &mut VecDeque<Vec<u8>>,
    output: &mut Output,
) -> Result<(), Done> {
    let Some(limit) = options.tail_lines else { return output.line(&line, options.timestamps).await };
    kept.push_back(line);
    if kept.len() > limit {
        kept.pop_front();
    }
    Ok(())
}

async fn follow(
    mut reader: BufReader<File>,
    path: &Path,
    options: &LogOptions,
    (mut growth, output): (watch::Receiver<u64>, &mut Output),
) -> io::Result<()> {
    loop {
        let ended = tokio::select! {
            changed = growth.changed() => changed.is_err(),
            () = output.sender.closed() => return Ok(()),
        };
        loop {
            while let Some(line) = next_line(&mut reader, options).await? {
                if output.line(&line, options.timestamps).await.is_err() {
                    return Ok(());
                }
            }
            // A rotated file has been read to its end: go on with its successor.
            let open = reader.get_ref().metadata().await?.ino();
            match tokio::fs::metadata(path).await {
                Ok(now) if now.ino() != open => reader = BufReader::new(File::open(path).await?),
                _ => break,
            }
        }
        if output.flush().await.is_err() || ended {
            return Ok(());
        }
    }
}

/// The next line that is not too old; whole lines are written at once, so there is never half a line at the end.
async fn next_line(reader: &mut BufReader<File>, options: &LogOptions) -> io::Result<Option<Vec<u8>>> {
    loop {
        let mut line = Vec::new();
        if reader.read_until(b'\n', &mut line).await? == 0 {
            return Ok(None);
        }
        let time = line::parse(&line).and_then(|line| line.time.parse::<Timestamp>().ok());
        if options.since.is_none_or(|since| time.is_some_and(|time| time >= since)) {
            return Ok(Some(line));
        }
    }
}
