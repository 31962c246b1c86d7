//! Servers that a suite left: one that runs into its time limit ends without stopping them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

/// Ends every process that was started from a program in `folder`; how many those were.
pub(super) fn end(folder: &Path) -> Result<usize> {
    let mut ended = 0;
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        // A process that is no longer there needs no end.
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let program = line.split(|byte| *byte == 0).next().unwrap_or_default();
        if Path::new(OsStr::from_bytes(program)).parent() == Some(folder) {
            Command::new("kill").arg("-9").arg(entry.file_name()).status()?;
            ended += 1;
        }
    }
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Child, Stdio};

    use super::*;

    /// `cat` that runs: it gave back a line. A process has no command line yet while the kernel
    /// still loads its program, which is when `spawn` returns.
    fn running(program: &Path) -> Child {
        let mut cat = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat starts");
        cat.stdin.as_mut().expect("an input").write_all(b"\n").expect("cat reads");
        cat.stdout.as_mut().expect("an output").read_exact(&mut [0]).expect("cat answers");
        cat
    }

    #[test]
    fn only_programs_of_the_folder_are_ended() {
        let folder = std::env::temp_dir().join(format!("windlass-leftover-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let program = folder.join("cat");
        std::os::unix::fs::symlink("/bin/cat", &program).expect("a link");
        let mut left = running(&program);
        let mut other = running(Path::new("/bin/cat"));
        assert_eq!(end(&folder).expect("processes are listed"), 1);
        assert!(!left.wait().expect("it ended").success());
        assert!(other.try_wait().expect("it is a child").is_none());
        other.kill().and_then(|()| other.wait()).expect("it ends");
        fs::remove_dir_all(&folder).expect("the folder goes");
    }
}
