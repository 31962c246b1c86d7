//! Runs `ip`, of iproute2.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// Why Pods cannot have networks of their own.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// Only root may make networks.
    #[error("networks of Pods (--isolation namespaces or runc) need root; without it, leave the option out")]
    NotRoot,
    /// The tool is not there.
    #[error(
        "networks of Pods (--isolation namespaces or runc) need the program `ip`: install it with `apt-get install iproute2` ({0})"
    )]
    NoTool(#[source] io::Error),
    /// The machine has another use for the addresses.
    #[error(
        "{range} overlaps with the route to {route} that this machine has; choose another range with --pod-network"
    )]
    Overlap {
        /// The range that was to be taken.
        range: String,
        /// What has it already.
        route: String,
    },
    /// The kernel said no.
    #[error("`ip {command}` failed: {said}")]
    Refused {
        /// What was tried.
        command: String,
        /// What was said.
        said: String,
    },
}

/// Runs `ip` with some words; what it prints.
pub(super) fn ip(words: &str) -> Result<String, NetworkError> {
    let output = Command::new("ip").args(words.split_whitespace()).stdin(Stdio::null()).output();
    said(words, output)
}

/// Runs `ip` for each of the lines, up to the first that fails; `options` come first.
pub(super) fn batch(options: &str, lines: &[String]) -> Result<(), NetworkError> {
    let run = || -> io::Result<Output> {
        let mut child = Command::new("ip")
            .args(options.split_whitespace())
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(text.as_bytes()));
        let output = child.wait_with_output()?;
        written.map(|()| output)
    };
    said(&lines.join("; "), run()).map(drop)
}

fn said(command: &str, output: io::Result<Output>) -> Result<String, NetworkError> {
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(NetworkError::NoTool(error)),
        Err(error) => return Err(NetworkError::Refused { command: command.to_owned(), said: error.to_string() }),
        Ok(output) => output,
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(NetworkError::Refused { command: command.to_owned(), said })
}
