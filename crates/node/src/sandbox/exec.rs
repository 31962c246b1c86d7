//! Runs a further program inside a container that runs already: exec probes, lifecycle hooks, and what people ask for.

use std::io;
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use super::link::Link;
use super::namespace::{self, Neighbour};
use super::process::{self, Standard, Terms};
use super::spec::{ExecSpec, Report};
use super::supervisor::Supervisor;
use super::wire::Lines;
use crate::sys;

/// Joins the container that the node names on `control` and runs the program to its end.
pub(crate) fn run(mut control: Lines) -> io::Result<()> {
    let spec: ExecSpec = super::first_message(&mut control)?;
    let standard = Standard::of(spec.input, &mut control)?;
    let neighbour = Neighbour { init: spec.init, supervisor: spec.supervisor };
    let mapping = match namespace::join(neighbour, namespace::ALL) {
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
