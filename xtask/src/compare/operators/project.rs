//! The implementations, and what is known of each: a small file of data beside its sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::count::{self, Language, Lines};
use super::symbols;
use crate::workspace::root;

/// The implementations, with their folders in the workspace.
pub(super) const PROJECTS: [(&str, &str); 4] = [
    ("windlass", "operators/memcached"),
    ("kubebuilder", "examples/peers/kubebuilder"),
    ("kopf", "examples/peers/kopf"),
    ("kube", "examples/peers/kube"),
];
/// Where the data is; that of our own operator lies with the others.
const DATA: &str = "examples/peers";

/// The data beside an implementation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    title: String,
    release: Release,
    written: Vec<String>,
    #[serde(default)]
    scaffolded: Vec<String>,
    #[serde(default)]
    generated: Vec<String>,
    rbac: Vec<String>,
    concepts: Vec<String>,
    #[serde(default)]
    words: BTreeMap<String, String>,
}

/// Where it is written which release of the toolkit is used: the first line of a file that has all these words.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    file: String,
    line: String,
}

/// An implementation, counted.
pub(super) struct Project {
    pub(super) name: &'static str,
    pub(super) title: String,
    pub(super) release: String,
    pub(super) written: Lines,
    pub(super) scaffolded: Lines,
    pub(super) generated: Lines,
    /// Lines about permissions that a person writes.
    pub(super) rbac: usize,
    /// Lines of manifests that a person writes, those about permissions among them.
    pub(super) manifests: usize,
    /// Names of the toolkit and of the Kubernetes types that the code uses.
    pub(super) symbols: usize,
    pub(super) concepts: Vec<String>,
    words: BTreeMap<String, String>,
}

impl Project {
    /// Reads and counts what lies in `folder`.
    pub(super) fn read(name: &'static str, folder: &str) -> Result<Self> {
        let path = root().join(DATA).join(format!("{name}.json"));
        let text = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
        let data: Data =
            serde_json::from_str(&text).with_context(|| format!("{} is not as it should be", path.display()))?;
        let place = |file: &String| root().join(folder).join(file);
        let all = |files: &[String]| files.iter().map(place).collect::<Vec<PathBuf>>();
        let written = count::files(&all(&data.written))?;
        let by_hand = all(&data.written);
        let manifests = by_hand.iter().filter(|path| Language::of(path) == Some(Language::Yaml));
        Ok(Self {
            name,
            title: data.title,
            release: release(&place(&data.release.file), &data.release.line)?,
            scaffolded: count::files(&all(&data.scaffolded))?,
            generated: count::files(&all(&data.generated))?,
            rbac: count::rbac(&all(&data.rbac))?,
            manifests: count::files(&manifests.cloned().collect::<Vec<_>>())?.lines,
            symbols: symbols::of(&by_hand)?.len(),
            written,
            concepts: data.concepts,
            words: data.words,
        })
    }

    /// What is to be said of a behaviour, if there is something.
    pub(super) fn words(&self, behaviour: &str) -> Option<&str> {
        self.words.get(behaviour).map(String::as_str)
    }
}

/// The release, as the line that pins it says it.
fn release(path: &std::path::Path, words: &str) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("no {}", path.display()))?;
    let line = text.lines().find(|line| line.trim_start().starts_with(words));
    let line = line.with_context(|| format!("no line of {} begins with {words:?}", path.display()))?;
    let digits = line.trim_start()[words.len()..].trim_start_matches(|letter: char| !letter.is_ascii_digit());
    Ok(digits
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.')
        .next()
        .unwrap_or_default()
        .to_owned())
}
