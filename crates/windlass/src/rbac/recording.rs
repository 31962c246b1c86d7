//! What an operator was seen to do in one test, kept in a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windlass_runtime::tap::Rights;

use crate::app::Program;

/// Where recordings are saved, if it is not said.
const DIRECTORY_VARIABLE: &str = "WINDLASS_RECORDINGS";
/// The folder for them in cargo's target directory.
const FOLDER: &str = "windlass-recordings";
/// What marks cargo's target directory.
const TARGET_MARK: &str = "CACHEDIR.TAG";
/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 8 << 20;
/// The most files that are read.
const FILES_MAX: usize = 4096;

/// The rights that an operator took in one test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The operator's name.
    pub operator: String,
    /// The test's name.
    pub test: String,
    /// The rights.
    pub rights: Rights,
}

/// Why recordings cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A file or folder.
    #[error("cannot {verb} {path}: {source}", path = path.display())]
    File {
        /// What was tried.
        verb: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// Something else than a recording.
    #[error("{path} is not a recording of an operator's calls: {source}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// More than any test writes.
    #[error("{0} is larger than any recording: at most {max} MiB, and at most {FILES_MAX} files", max = FILE_BYTES_MAX >> 20)]
    TooLarge(PathBuf),
    /// There is nothing to go by.
    #[error("{path} has no recording of {operator}: run its tests, and let them call `Recording::save`", path = path.display())]
    Empty {
        /// Where they should be.
        path: PathBuf,
        /// Whose.
        operator: String,
    },
}

impl Recording {
    /// What `program` took in the test that calls this.
    pub fn of(program: &dyn Program, rights: Rights) -> Self {
        // The thread of a test is called after it.
        let test = std::thread::current().name().unwrap_or("test").to_owned();
        Self { operator: program.name().to_owned(), test, rights }
    }

    /// Saves it where `rbac --recorded` of the operator looks by default: in `$WINDLASS_RECORDINGS`, or else in
    /// `windlass-recordings` of cargo's target directory. A recording of the same test is replaced.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self) -> Result<PathBuf, RecordingError> {
        self.save_in(&Self::directory())
    }

    /// Saves it in a folder.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save_in(&self, folder: &Path) -> Result<PathBuf, RecordingError> {
        let folder = folder.join(file_name(&self.operator));
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| RecordingError::File { verb: "write", path, source }
        };
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let path = folder.join(format!("{}.json", file_name(&self.test)));
        // Tests of other processes may read it at the same time.
        let partial = path.with_extension(format!("{}.partial", std::process::id()));
        let text = serde_json::to_string_pretty(self).expect("a recording can be written as JSON");
        fs::write(&partial, text).map_err(failed(&partial))?;
        fs::rename(&partial, &path).map_err(failed(&path))?;
        Ok(path)
    }

    /// Where recordings are, if it is not said.
    pub fn directory() -> PathBuf {
        if let Some(directory) = std::env::var_os(DIRECTORY_VARIABLE).filter(|it| !it.is_empty()) {
            return PathBuf::from(directory);
        }
        let program = std::env::current_exe().unwrap_or_default();
        let target = program.ancestors().find(|folder| folder.join(TARGET_MARK).is_file());
        target.map_or_else(std::env::temp_dir, Path::to_path_buf).join(FOLDER)
    }

    /// The recordings of `operator` in a file, or in a folder and those below it.
    ///
    /// # Errors
    /// When one cannot be read, and when there is none.
    pub fn read(path: &Path, operator: &str) -> Result<Vec<Self>, RecordingError> {
        let mut recordings = Vec::new();
        for file in files(path)? {
            let recording = read_file(&file)?;
            if recording.operator == operator {
                recordings.push(recording);
            }
        }
        if recordings.is_empty() {
            return Err(RecordingError::Empty { path: path.to_owned(), operator: operator.to_owned() });
        }
        Ok(recordings)
    }
}

fn read_file(path: &Path) -> Result<Recording, RecordingError> {
    let failed = |source| RecordingError::File { verb: "read", path: path.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.len() > FILE_BYTES_MAX {
        return Err(RecordingError::TooLarge(path.to_owned()));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    serde_json::from_str(&text).map_err(|source| RecordingError::Content { path: path.to_owned(), source })
}

/// The file itself, or all files of a folder that end in `.json`, in order.
fn files(path: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    let (mut pending, mut found) = (vec![path.to_owned()], Vec::new());
    while let Some(next) = pending.pop() {
        let failed = |source| RecordingError::File { verb: "read", path: next.clone(), source };
        if !fs::metadata(&next).map_err(failed)?.is_dir() {
            found.push(next);
        } else {
            for entry in fs::read_dir(&next).map_err(failed)? {
                let entry = entry.map_err(failed)?.path();
                if entry.is_dir() || entry.extension().is_some_and(|extension| extension == "json") {
                    pending.push(entry);
                }
            }
        }
        if pending.len() + found.len() > FILES_MAX {
            return Err(RecordingError::TooLarge(path.to_owned()));
        }
    }
    found.sort();
    Ok(found)
}

/// A name that is safe in a path.
fn file_name(name: &str) -> String {
    let is_safe = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    name.replace("::", ".").chars().map(|it| if is_safe(it) || it == '.' { it } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tests_stay_in_their_folder() {
        for (name, expected) in [("cluster::a_test", "cluster.a_test"), ("../x y", ".._x_y"), ("a/b", "a_b")] {
            assert_eq!(file_name(name), expected);
        }
    }

    #[test]
    fn recordings_come_back_and_those_of_others_do_not() {
        let folder = std::env::temp_dir().join(format!("windlass-recordings-{}", std::process::id()));
        let recording = |operator: &str, test: &str| Recording {
            operator: operator.into(),
            test: test.into(),
            rights: Rights::default(),
        };
        let (one, two, other) = (recording("a", "one"), recording("a", "m::two"), recording("b", "one"));
        for it in [&one, &two, &other] {
            it.save_in(&folder).unwrap();
        }
        assert_eq!(Recording::read(&folder, "a").unwrap(), [two.clone(), one]);
        assert_eq!(Recording::read(&folder.join("a/m.two.json"), "a").unwrap(), [two]);
        let said = Recording::read(&folder, "c").unwrap_err().to_string();
        assert!(said.contains("has no recording of c: run its tests"), "{said}");
        fs::write(folder.join("a/bad.json"), "{}").unwrap();
        let said = Recording::read(&folder, "a").unwrap_err().to_string();
        assert!(said.contains("bad.json is not a recording"), "{said}");
        fs::remove_dir_all(folder).unwrap();
    }
}
