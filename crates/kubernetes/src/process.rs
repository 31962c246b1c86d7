//! A process that ends with the value.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::PlaneError;

/// A process that ends with the value.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts a program that says what it has to say in a file.
    ///
    /// # Errors
    /// If it cannot be started, or the file cannot be made.
    pub fn start(command: &mut Command, log: &Path) -> Result<Self, PlaneError> {
        let log = open(log)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let started =
            command.spawn().map_err(|source| PlaneError::Start { program: command.get_program().into(), source });
        Ok(Self(started?))
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has ended by itself.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Lets it live on without this value.
    pub fn release(self) -> u32 {
        let id = self.id();
        std::mem::forget(self);
        id
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).ok();
    }
}

fn open(log: &Path) -> Result<File, PlaneError> {
    OpenOptions::new().create(true).append(true).open(log).map_err(PlaneError::file(log))
}
