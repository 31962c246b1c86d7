//! Counting lines: those that are neither blank nor a comment, the same way for every language.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Files, and their lines that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) files: usize,
    pub(super) lines: usize,
}

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Go,
    Python,
    Rust,
    Toml,
    Yaml,
}

impl Language {
    /// By the name of the file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "go" | "mod" => Some(Self::Go),
            "py" => Some(Self::Python),
            "rs" => Some(Self::Rust),
            "toml" => Some(Self::Toml),
            "yaml" => Some(Self::Yaml),
            _ => None,
        }
    }

    fn is_comment(self, line: &str) -> bool {
        match self {
            // Markers have the form of comments, but they are read by a generator: a person has to write them.
            Self::Go => line.starts_with("//") && !line.starts_with("// +") && !line.starts_with("//go:"),
            Self::Rust => line.starts_with("//"),
            Self::Python | Self::Toml | Self::Yaml => line.starts_with('#'),
        }
    }
}

/// Counts all of `paths`.
pub(super) fn files(paths: &[PathBuf]) -> Result<Lines> {
    let mut all = Lines { files: paths.len(), lines: 0 };
    for path in paths {
        all.lines += code(path)?.len();
    }
    Ok(all)
}

/// Lines about permissions: those of manifests that are about nothing else, and markers.
pub(super) fn rbac(paths: &[PathBuf]) -> Result<usize> {
    let mut all = 0;
    for path in paths {
        let lines = code(path)?;
        let is_manifest = Language::of(path) == Some(Language::Yaml);
        all += lines.iter().filter(|line| is_manifest || line.contains("+kubebuilder:rbac:")).count();
    }
    Ok(all)
}

/// The lines of a file that count.
pub(super) fn code(path: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(path).with_context(|| format!("no {}", path.display()))?;
    // Files without a language of their own, such as lists of requirements, have comments of the shell's form.
    let language = Language::of(path).unwrap_or(Language::Toml);
    Ok(lines(&text, language))
}

fn lines(text: &str, language: Language) -> Vec<String> {
    // Tests are not counted in any language.
    let text = text.split("\n#[cfg(test)]\n").next().unwrap_or_default();
    let mut counted = Vec::new();
    let mut in_docstring = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let marks = if language == Language::Python { line.matches("\"\"\"").count() } else { 0 };
        let begins = !in_docstring && line.starts_with("\"\"\"");
        if in_docstring || begins {
            in_docstring = (in_docstring && marks == 0) || (begins && marks == 1);
        } else if !language.is_comment(line) {
            counted.push(line.to_owned());
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_machine_reads_is_counted() {
        let rows = [
            (Language::Rust, "//! Doc.\n\nuse x;\n/// Doc.\nfn f() {} // why\n\n#[cfg(test)]\nmod tests {}\n", 2),
            (
                Language::Go,
                "// Package x.\npackage x\n\n// +kubebuilder:rbac:groups=a\n//go:generate it\nvar x = 1\n",
                4,
            ),
            (
                Language::Python,
                "\"\"\"Doc.\"\"\"\nimport x\n\ndef f():\n    \"\"\"Two\n    lines.\n    \"\"\"\n    # why\n    return x\n",
                3,
            ),
            (Language::Yaml, "# why\na: 1\n---\nb: 2\n", 3),
        ];
        for (language, text, expected) in rows {
            assert_eq!(lines(text, language).len(), expected, "{language:?}");
        }
    }
}
