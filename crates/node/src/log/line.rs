//! One line of a log file: `TIME STREAM FLAGS TEXT`, where a flag tells whether the line goes on in the next one.

use std::io::Write;

use k8s_openapi::jiff::Timestamp;

/// The longest piece of output in one line; longer lines are split.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 10;

/// Where a program wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// Writes one piece of output.
pub(crate) fn format(stream: Stream, at: Timestamp, text: &[u8], complete: bool) -> Vec<u8> {
    let mut line = Vec::with_capacity(text.len() + 48);
    let stream = match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    };
    let flag = if complete { "F" } else { "P" };
    write!(line, "{at:.9} {stream} {flag} ").expect("memory can be written to");
    line.extend_from_slice(text);
    line.push(b'\n');
    line
}

/// A line read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) time: &'a str,
    pub(crate) complete: bool,
    pub(crate) text: &'a [u8],
}

/// Reads what [`format`] wrote, with or without its newline; none if it is something else.
pub(crate) fn parse(line: &[u8]) -> Option<Line<'_>> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut parts = line.splitn(4, |&byte| byte == b' ');
    let time = std::str::from_utf8(parts.next()?).ok()?;
    parts.next()?;
    let complete = parts.next()? == b"F";
    Some(Line { time, complete, text: parts.next().unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let at: Timestamp = "2026-01-02T03:04:05.5Z".parse().unwrap();
        let written = format(Stream::Stderr, at, b"hello world", true);
        assert_eq!(written, b"2026-01-02T03:04:05.500000000Z stderr F hello world\n");
        let line = parse(&written).unwrap();
        assert_eq!(
            (line.time, line.complete, line.text),
            ("2026-01-02T03:04:05.500000000Z", true, &b"hello world"[..])
        );
        assert_eq!(parse(b"broken"), None);
    }
}
