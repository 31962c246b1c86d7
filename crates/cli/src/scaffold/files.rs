//! Writing what was decided: new files only, formatted if the formatter is there.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::File;
use crate::failure::Failure;

/// Writes files that must not be there yet: all of them, or none.
pub(crate) fn write_new(root: &Path, files: &[File]) -> Result<(), Failure> {
    let taken: Vec<&str> =
        files.iter().filter(|file| root.join(&file.path).exists()).map(|file| file.path.as_str()).collect();
    if !taken.is_empty() {
        return Err(Failure::new(format!("already there: {}", taken.join(", ")))
            .advice("nothing was changed: choose another name, or move what is there away"));
    }
    for file in files {
        let path = root.join(&file.path);
        let wrong = |error: std::io::Error| Failure::new(format!("{}: {error}", path.display()));
        std::fs::create_dir_all(path.parent().unwrap_or(root)).map_err(wrong)?;
        std::fs::write(&path, &file.text).map_err(wrong)?;
    }
    Ok(())
}

/// Lays code out as the formatter of the project has it; without a formatter it stays as the templates have it.
pub(crate) fn format_all(root: &Path, files: Vec<File>) -> Vec<File> {
    let format_one = |file: File| match file.path.ends_with(".rs").then(|| formatted(root, &file.text)).flatten() {
        Some(text) => File { text, ..file },
        None => file,
    };
    files.into_iter().map(format_one).collect()
}

fn formatted(root: &Path, text: &str) -> Option<String> {
    let mut command = Command::new("rustfmt");
    command.args(["--edition", "2024"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if root.is_dir() {
        command.current_dir(root); // A rustfmt.toml there counts.
    }
    let mut child = command.spawn().ok()?;
    let mut input = child.stdin.take()?;
    let text = text.to_owned();
    // Written from beside: the formatter may answer before it has read all.
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().ok()?;
    let is_written = writer.join().is_ok_and(|written| written.is_ok());
    (is_written && output.status.success()).then_some(String::from_utf8(output.stdout).ok()?)
}
