//! Runs a further program inside a container that runs already: exec probes, lifecycle hooks, and what people ask for.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::ThreadNameSpaceType;

use super::identity::Mapping;
use super::link::Link;
use super::process::{self, Standard, Terms};
use super::spec::{ExecSpec, Report};
use super::supervisor::Supervisor;
use super::wire::Lines;
use crate::sys;

/// Joins the container that the node names on `control` and runs the program to its end.
pub(crate) fn run(mut control: Lines) -> io::Result<()> {
    let spec: ExecSpec = super::first_message(&mut control)?;
    let standard = Standard::of(spec.input, &mut control)?;
    let mapping = match join(&spec) {
        Ok(mapping) => mapping,
        Err(error) => return control.send(&Report::Failed(format!("enter the container: {error}"))),
    };
    let (ours, theirs) = UnixStream::pair()?;
    match sys::fork_into(0) {
        Ok(Some(child)) => {
            drop((theirs, standard));
            Supervisor::new(Link::only(control), child, Some(ours), spec.address).run()
        }
        Ok(None) => {
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            drop((control, ours));
            let terms = Terms { confine: spec.address.is_some(), mapping, standard };
            process::become_program(&spec.process, terms, &theirs)
        }
        Err(error) => control.send(&Report::Failed(format!("fork: {error}"))),
    }
}

fn join(spec: &ExecSpec) -> io::Result<Mapping> {
    let init = Pid::from_raw(spec.init).ok_or(io::ErrorKind::InvalidInput)?;
    let container = rustix::process::pidfd_open(init, PidfdFlags::empty())?;
    // Read after the descriptor was taken: its parent proves that it is still the same process.
    let status = fs::read_to_string(format!("/proc/{}/status", spec.init))?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim);
    if parent != Some(spec.supervisor.to_string().as_str()) {
        return Err(io::Error::other("it has ended"));
    }
    let users = fs::read_to_string(format!("/proc/{}/uid_map", spec.init))?;
    let mapped: u64 = users.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).sum();
    let namespaces = ThreadNameSpaceType::USER
        | ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::PROCESS_ID
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME;
    rustix::thread::move_into_thread_name_spaces(container.as_fd(), namespaces)?;
    Ok(if mapped > 1 { Mapping::Full } else { Mapping::Single })
}
