//! Upstream's own samples of every stable kind, as JSON and as protobuf.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::discovery::Kind;
use super::source::Source;

/// The directories with samples: `GROUP.VERSION.KIND.json` beside `.pb`.
const DIRECTORIES: [(&str, &str); 2] =
    [("k8s.io/api", "testdata/HEAD"), ("k8s.io/apiextensions-apiserver", "pkg/apis/testdata/HEAD")];

/// One line for each sample: the kind's file name, the JSON, the protobuf bytes in hexadecimal, separated by tabs.
pub(super) fn bundle(source: &Source, kinds: &[Kind]) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    for (module, directory) in DIRECTORIES {
        let directory = source.module(module).join(directory);
        for entry in std::fs::read_dir(&directory).context("listing the samples")? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(name) = name.strip_suffix(".pb").filter(|name| is_served(name, kinds)) {
                lines.push(sample(&directory, name)?);
            }
        }
    }
    lines.sort();
    Ok(lines.concat())
}

/// Whether a sample's group version is one of the served ones: subresource and list kinds count, too.
fn is_served(name: &str, kinds: &[Kind]) -> bool {
    let Some((group_version, kind)) = name.rsplit_once('.') else { return false };
    // A watch event is no object: its sample names no kind.
    kind != "WatchEvent"
        && kinds.iter().any(|kind| {
            let group = if kind.group.is_empty() { "core" } else { &kind.group };
            group_version == format!("{group}.{}", kind.version)
        })
}

fn sample(directory: &Path, name: &str) -> anyhow::Result<String> {
    let json: Value = serde_json::from_slice(&std::fs::read(directory.join(format!("{name}.json")))?)?;
    let bytes = std::fs::read(directory.join(format!("{name}.pb")))?;
    let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{name}\t{json}\t{hexadecimal}\n"))
}
