//! Output of containers, as it is written to a log and read back.

use std::path::Path;
use std::sync::LazyLock;

use k8s_openapi::jiff::Timestamp;
use tempfile::TempDir;
use tokio::runtime::{self, Runtime};

use super::line;
use crate::log::{LogOptions, read, written};
use crate::serve::log_options;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built"));

/// A query on the first line, then either a log file after a line `file`, or what a container says in pieces that a NUL
/// ends: what is said can be read back, and every option gives the part that it names.
pub(super) fn log(bytes: &[u8]) {
    let (query, rest) = line(bytes);
    let Ok(query) = std::str::from_utf8(query) else { return };
    let Ok(asked) = log_options(query, Timestamp::UNIX_EPOCH) else { return };
    let folder = TempDir::new().expect("a directory can be made");
    let path = folder.path().join("0.log");
    let everything = LogOptions::default();
    match line(rest) {
        (b"file", file) => std::fs::write(&path, file).expect("a file can be written"),
        _ => {
            let pieces: Vec<&[u8]> = rest.split(|byte| *byte == 0).collect();
            std::fs::write(&path, written(&pieces)).expect("a file can be written");
            assert!(text(&path, &everything) == pieces.concat(), "what was said can be read back");
        }
    }
    part(&path, &LogOptions { follow: false, ..asked });
}

/// What is left out by one option is left out at the end where it belongs, and nothing else is.
fn part(path: &Path, asked: &LogOptions) {
    let given = text(path, asked);
    assert!(given == text(path, asked), "a log says the same every time");
    let whole = text(path, &LogOptions { limit_bytes: None, ..asked.clone() });
    assert!(given == whole[..given.len()], "a limit cuts the end off");
    assert!(given.len() == asked.limit_bytes.unwrap_or(usize::MAX).min(whole.len()), "a limit is reached");
    let all = text(path, &LogOptions { limit_bytes: None, tail_lines: None, ..asked.clone() });
    if !asked.timestamps {
        assert!(all.ends_with(&whole), "the last lines are the last lines");
    }
    if asked.tail_lines == Some(0) || asked.limit_bytes == Some(0) {
        assert!(given.is_empty(), "nothing is nothing");
    }
}

fn text(path: &Path, options: &LogOptions) -> Vec<u8> {
    RUNTIME.block_on(async {
        let mut pieces = read(vec![path.to_owned()], options.clone(), None);
        let mut text = Vec::new();
        while let Some(piece) = pieces.recv().await {
            text.extend_from_slice(&piece.expect("a file can be read"));
        }
        text
    })
}
