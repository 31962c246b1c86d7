//! The last words of a container: what it left in its termination file, or at the end of its log.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use k8s_openapi::api::core::v1::Container;
use k8s_openapi::jiff::Timestamp;

use super::spec::termination_file;
use crate::log;

/// What of a termination file is kept: its end, as kubelet does.
const FILE_BYTES_MAX: u64 = 4096;
/// What of a log takes the place of an empty one.
const LOG_BYTES_MAX: u64 = 2048;
const LOG_LINES_MAX: usize = 80;
/// How much of the end of a log is looked at: times and names of streams stand before each line.
const LOG_END_BYTES: u64 = 16 << 10;

/// What a container that ended with `code` says of it; `run` is the directory of the run, `log` its log.
pub(super) fn message(container: &Container, code: i32, run: &Path, log: &Path) -> Option<String> {
    let text = end_of(&termination_file(run), FILE_BYTES_MAX).unwrap_or_default();
    let falls_back = container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError") && code != 0;
    let text = match text.is_empty() && falls_back {
        true => last_lines(&end_of(log, LOG_END_BYTES).unwrap_or_default()),
        false => text,
    };
    Some(String::from_utf8_lossy(&text).into_owned()).filter(|text| !text.is_empty())
}

/// The end of a file, which its writer may have made larger than memory.
fn end_of(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    let mut text = Vec::new();
    file.take(bytes).read_to_end(&mut text)?;
    Ok(text)
}

fn last_lines(log: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let mut text = Vec::new();
    for line in &lines[lines.len().saturating_sub(LOG_LINES_MAX)..] {
        // The first one may be the rest of a line.
        let Some(line) = log::parse(line).filter(|line| line.time.parse::<Timestamp>().is_ok()) else { continue };
        text.extend_from_slice(line.text);
        if line.complete {
            text.push(b'\n');
        }
    }
    let start = text.len().saturating_sub(usize::try_from(LOG_BYTES_MAX).unwrap_or(usize::MAX));
    text.split_off(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(policy: &str, code: i32, file: &[u8], log: &str) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(termination_file(dir.path()), file).unwrap();
        std::fs::write(dir.path().join("log"), log).unwrap();
        let container = Container { termination_message_policy: Some(policy.to_owned()), ..Container::default() };
        message(&container, code, dir.path(), &dir.path().join("log"))
    }

    #[test]
    fn the_file_comes_first_and_the_log_only_after_a_failure() {
        let log = "2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:00Z stderr F two\n";
        assert_eq!(said("File", 1, b"", log), None);
        assert_eq!(said("FallbackToLogsOnError", 0, b"", log), None);
        assert_eq!(said("FallbackToLogsOnError", 1, b"", log).as_deref(), Some("one\ntwo\n"));
        assert_eq!(said("FallbackToLogsOnError", 1, b"why", log).as_deref(), Some("why"));
    }

    #[test]
    fn a_file_without_end_costs_no_more_than_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let file = File::create(termination_file(dir.path())).unwrap();
        file.set_len(1 << 40).unwrap();
        let text = message(&Container::default(), 1, dir.path(), dir.path()).unwrap();
        assert_eq!(text.len() as u64, FILE_BYTES_MAX);
    }
}
