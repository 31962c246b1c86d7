//! The program `runc`, and the containers that it knows.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

const PROGRAM: &str = "runc";
/// The directory of a node in which runc keeps what it knows, and where programs to run are described.
const DIRECTORY: &str = "runc";
const STATES: &str = "states";
/// What the names of directories begin with in which programs are described.
const PROGRAMS: &str = "exec-";
/// Where programs for root are, wherever else `PATH` leads.
const PLACES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Why containers cannot be run by runc.
#[derive(Debug, thiserror::Error)]
pub enum RuncError {
    /// Only root may.
    #[error("--isolation runc needs root; without it, leave the option out")]
    NotRoot,
    /// The program is not there.
    #[error("--isolation runc needs the program `runc`: install it with `apt-get install runc`")]
    Missing,
    /// It does not do what it is to do.
    #[error("`runc --version` failed: {0}")]
    Broken(String),
    /// Its directory cannot be made.
    #[error("cannot use {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// The program, and where it keeps what it knows of the containers of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runc {
    program: PathBuf,
    directory: PathBuf,
}

/// A container that runc knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contained {
    /// Who knows it.
    pub runc: Runc,
    /// Its name there.
    pub id: String,
}

impl Runc {
    /// Finds the program, for the node whose directory is `node`.
    ///
    /// # Errors
    /// If this user may not, or it is not there.
    pub fn find(node: &Path) -> Result<Self, RuncError> {
        if !rustix::process::geteuid().is_root() {
            return Err(RuncError::NotRoot);
        }
        let program = program().ok_or(RuncError::Missing)?;
        let asked = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
        let asked = asked.map_err(|error| RuncError::Broken(error.to_string()))?;
        if !asked.status.success() {
            return Err(RuncError::Broken(String::from_utf8_lossy(&asked.stderr).trim().to_owned()));
        }
        let runc = Self { program, directory: node.join(DIRECTORY) };
        runc.forget_programs();
        let made = fs::create_dir_all(runc.states());
        made.map_err(|source| RuncError::Directory { path: runc.states(), source })?;
        Ok(runc)
    }

    /// A call of the program, to which the words of a command are added.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--root").arg(self.states());
        command
    }

    /// A directory for the description of a program that is to run in a container.
    pub(crate) fn scratch(&self) -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new().prefix(PROGRAMS).tempdir_in(&self.directory)
    }

    /// Removes descriptions that were left by killed processes.
    fn forget_programs(&self) {
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(PROGRAMS)) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    fn states(&self) -> PathBuf {
        self.directory.join(STATES)
    }

    /// The name of a run of a container.
    pub(crate) fn id((pod, container, number): (&str, &str, i32)) -> String {
        format!("{pod}.{container}.{number}")
    }

    /// Ends a container, if it still runs, and forgets it. To be called where it may block.
    pub(crate) fn remove(&self, id: &str) {
        let state = self.states().join(id);
        if !state.exists() {
            return;
        }
        let done = self.command().args(["delete", "--force", id]).stdin(Stdio::null()).output();
        match done {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                tracing::warn!(id, said = %String::from_utf8_lossy(&output.stderr).trim(), "runc kept a container");
            }
            Err(error) => tracing::warn!(id, %error, "runc did not run"),
        }
        // One whose description was cut off is unknown to runc as well.
        let _ = fs::remove_dir_all(state);
    }

    /// Removes the containers of Pods that are no more, by their ids.
    pub(crate) fn sweep(&self, is_alive: &dyn Fn(&str) -> bool) {
        for entry in fs::read_dir(self.states()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(id) = name.to_str() else { continue };
            if !is_alive(id.split('.').next().unwrap_or(id)) {
                self.remove(id);
            }
        }
    }
}

/// Where the program is: processes of the sandbox have no `PATH` to look for it.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(PLACES.map(PathBuf::from));
    places.map(|place| place.join(PROGRAM)).find(|program| program.is_file())
}

/// Ends all containers that runc knows of the node whose directory is `node`.
pub fn clear(node: &Path) {
    let directory = node.join(DIRECTORY);
    let Some(program) = program().filter(|_| directory.exists()) else { return };
    let runc = Runc { program, directory };
    runc.sweep(&|_| false);
    let _ = fs::remove_dir_all(runc.directory);
}
