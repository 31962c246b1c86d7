//! Finds out what this kernel lets this user do, by doing it in a process made for that.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::filter::{Asks, Filter};
use super::identity;
use super::root;
use super::spec::Identity;
use super::wire::Lines;
use crate::sys;

const NAMESPACES: u8 = 1;
const OVERLAY: u8 = 2;
const CONFINEMENT: u8 = 4;

/// What the kernel lets the node do for Pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Capabilities {
    /// User, mount and pid namespaces: without them no Pod can run.
    pub namespaces: bool,
    /// A writable layer over an image: without it containers cannot change their root.
    pub writable_root: bool,
    /// Confinement of sockets to the Pod's address: without it two Pods cannot listen on the same port.
    pub confinement: bool,
    /// Containers can use any user id, not just one.
    pub all_users: bool,
}

impl Capabilities {
    /// What is missing, one sentence for each, with what can be done.
    pub fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if !self.namespaces {
            missing.push(
                "this kernel forbids unprivileged user namespaces, so Pods cannot run: allow them with `sysctl \
                 kernel.unprivileged_userns_clone=1`, `sysctl kernel.apparmor_restrict_unprivileged_userns=0` or \
                 `sysctl user.max_user_namespaces=10000` (whichever exists), or run Windlass as root",
            );
            return missing;
        }
        if !self.writable_root {
            missing.push("overlay mounts are not allowed here: containers cannot write outside of their volumes");
        }
        if !self.confinement {
            missing.push(
                "seccomp notification is not available: programs that listen on all addresses clash between Pods",
            );
        }
        missing
    }
}

/// Tries everything in the directory that the node names, and reports.
pub(crate) fn run(mut control: Lines) -> io::Result<()> {
    let directory: PathBuf = super::first_message(&mut control)?;
    let scratch = directory.join(format!(".probe-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let found = try_all(&scratch);
    let _ = fs::set_permissions(scratch.join("work/work"), std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let _ = fs::remove_dir_all(&scratch);
    control.send(&found?)
}

fn try_all(scratch: &Path) -> io::Result<Capabilities> {
    let (mut ours, mut theirs) = UnixStream::pair()?;
    let spaces = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID;
    let mut found = Capabilities { namespaces: false, writable_root: false, confinement: false, all_users: false };
    let child = match sys::fork_into(spaces) {
        Ok(Some(child)) => child,
        Ok(None) => {
            drop(ours);
            let mut go = [0];
            if theirs.read_exact(&mut go).is_ok() {
                let _ = theirs.write_all(&[try_inside(scratch)]);
            }
            sys::exit_now(0)
        }
        Err(_) => return Ok(found),
    };
    drop(theirs);
    let Ok(mapping) = identity::map(child.pid, &Identity::default(), identity::Mapping::Full) else { return Ok(found) };
    ours.write_all(&[mapping.to_byte()])?;
    let mut result = [0];
    if ours.read_exact(&mut result).is_ok() {
        found.namespaces = result[0] & NAMESPACES != 0;
        found.writable_root = result[0] & OVERLAY != 0;
        found.confinement = result[0] & CONFINEMENT != 0;
        found.all_users = mapping == identity::Mapping::Full;
    }
    Ok(found)
}

fn try_inside(scratch: &Path) -> u8 {
    let mut result = 0;
    if root::try_private_mounts(scratch).is_ok() {
        result |= NAMESPACES;
    }
    if root::try_overlay(scratch).is_ok() {
        result |= OVERLAY;
    }
    let program = Filter { asks: Asks::Sockets, pretend_identity: false }.program();
    let listens = rustix::thread::set_no_new_privs(true).is_ok()
        && program.is_some_and(|p| sys::install_filter(&p, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER).is_ok());
    if listens {
        result |= CONFINEMENT;
    }
    result
}
