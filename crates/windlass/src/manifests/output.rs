//! Where manifests go: to the terminal, or into the files of a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Where in the folder.
    pub(crate) path: String,
    /// What is in it.
    pub(crate) text: String,
    /// Whether it is a person's once it is there: then it is left alone.
    pub(crate) is_example: bool,
}

/// Why nothing could be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputError {
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} is there and was not made by this command: give another folder with -o, or remove it", path = path.display())]
    Foreign { path: PathBuf },
    #[error("cannot write as YAML: {0}")]
    Yaml(#[from] serde_saphyr::SerializeError),
}

impl File {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into(), is_example: false }
    }

    pub(crate) fn example(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { is_example: true, ..Self::new(path, text) }
    }
}

/// Objects as one text.
pub(crate) fn yaml(objects: &[Value]) -> Result<String, OutputError> {
    let documents = objects.iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("{}\n", documents.join("---\n").trim_end()))
}

/// Writes `files` into `folder`. The part of it called `own` belongs to this command: what it left there before and would
/// not write again is removed. It is known by `mark` near the top of every file.
pub(crate) fn write(folder: &Path, own: &str, mark: &str, files: &[File]) -> Result<(), OutputError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| OutputError::Write { path, source }
    };
    let is_marked = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().take(3).any(|line| line.contains(mark))
    };
    for file in files {
        let path = folder.join(&file.path);
        if path.exists() && !file.is_example && file.text.contains(mark) && !is_marked(&path) {
            return Err(OutputError::Foreign { path });
        }
    }
    let own = folder.join(own);
    for entry in fs::read_dir(&own).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_file() && is_marked(&path) && !files.iter().any(|file| folder.join(&file.path) == path) {
            fs::remove_file(&path).map_err(failed(&path))?;
        }
    }
    for file in files {
        let path = folder.join(&file.path);
        if file.is_example && path.exists() {
            continue;
        }
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(failed(parent))?;
        fs::write(&path, &file.text).map_err(failed(&path))?;
    }
    Ok(())
}
