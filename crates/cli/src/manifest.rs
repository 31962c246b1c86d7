//! Objects in files: YAML or JSON, several in one file, folders, standard input.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Failure;

/// A file larger than this is not a manifest.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// One object and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) object: Value,
    pub(crate) origin: String,
}

impl Manifest {
    /// `metadata.name`.
    pub(crate) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// `metadata.namespace`, where written.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.object["metadata"]["namespace"].as_str()
    }

    /// `apiVersion` and `kind`.
    pub(crate) fn api_version_and_kind(&self) -> (&str, &str) {
        (self.object["apiVersion"].as_str().unwrap_or_default(), self.object["kind"].as_str().unwrap_or_default())
    }
}

/// Reads every object of the files, in order.
pub(crate) fn read(files: &[PathBuf]) -> Result<Vec<Manifest>, Failure> {
    let mut manifests = Vec::new();
    for file in files {
        if file.as_os_str() == "-" {
            manifests.extend(parse(&read_limited(std::io::stdin().lock(), "standard input")?, "standard input")?);
        } else if file.is_dir() {
            for inner in manifests_in(file)? {
                manifests.extend(read_file(&inner)?);
            }
        } else {
            manifests.extend(read_file(file)?);
        }
    }
    Ok(manifests)
}

/// Whether a folder is not there, or has no file that could be a manifest.
pub(crate) fn is_without_manifests(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|entries| entries.flatten().all(|entry| !is_manifest(&entry.path())))
        || !dir.exists()
}

fn is_manifest(file: &Path) -> bool {
    file.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known))
}

fn manifests_in(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(dir).map_err(|error| Failure::new(format!("{}: {error}", dir.display())))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| is_manifest(file));
    files.sort();
    if files.is_empty() {
        return Err(Failure::new(format!("{}: no .yaml, .yml or .json file in this folder", dir.display())));
    }
    Ok(files)
}

fn read_file(file: &Path) -> Result<Vec<Manifest>, Failure> {
    let name = file.display().to_string();
    let opened = std::fs::File::open(file).map_err(|error| {
        Failure::new(format!("{name}: {error}")).advice("nothing was changed; check the path given with -f")
    })?;
    parse(&read_limited(opened, &name)?, &name)
}

fn read_limited(source: impl Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = source.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    let length = read.map_err(|error| Failure::new(format!("{name}: {error}")))?;
    if length as u64 > FILE_BYTES_MAX {
        return Err(Failure::new(format!("{name}: larger than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    Ok(text)
}

/// Reads every object of a text.
pub(crate) fn parse(text: &str, origin: &str) -> Result<Vec<Manifest>, Failure> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        Failure::new(format!("{origin}: not valid YAML: {}", error.to_string().trim_end()))
            .advice("nothing was changed; correct the file and try again")
    })?;
    let mut manifests = Vec::new();
    for document in documents {
        match document {
            Value::Null => {}
            Value::Object(ref fields) if fields.get("kind").is_some_and(|kind| kind == "List") => {
                let items = fields.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
                manifests.extend(items.into_iter().map(|object| Manifest { object, origin: origin.to_owned() }));
            }
            object => manifests.push(Manifest { object, origin: origin.to_owned() }),
        }
    }
    manifests.iter().try_for_each(check)?;
    Ok(manifests)
}

/// An object without these cannot be sent anywhere.
fn check(manifest: &Manifest) -> Result<(), Failure> {
    let (api_version, kind) = manifest.api_version_and_kind();
    let missing = match (api_version, kind, manifest.name()) {
        ("", _, _) => "apiVersion",
        (_, "", _) => "kind",
        (_, _, "") if manifest.object["metadata"]["generateName"].is_null() => "metadata.name",
        _ => return Ok(()),
    };
    Err(Failure::new(format!("{}: an object has no {missing}", manifest.origin))
        .advice("nothing was changed; correct the file and try again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_documents_and_lists_become_objects_in_order() {
        let text = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: B, metadata: {name: b}}\n";
        let names: Vec<String> = parse(text, "x").unwrap().iter().map(|m| m.name().to_owned()).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn what_cannot_be_sent_is_refused_before_anything_is_changed() {
        for (text, expect) in [
            ("a: [", "not valid YAML"),
            ("kind: A\nmetadata: {name: a}", "no apiVersion"),
            ("apiVersion: v1\nmetadata: {name: a}", "no kind"),
            ("apiVersion: v1\nkind: A", "no metadata.name"),
            ("apiVersion: v1\nkind: A\nkind: B\nmetadata: {name: a}", "not valid YAML"),
        ] {
            let failure = parse(text, "x.yaml").unwrap_err();
            assert!(failure.message().contains(expect), "{text}: {}", failure.message());
        }
    }
}
