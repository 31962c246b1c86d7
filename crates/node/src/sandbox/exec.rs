//! Runs a further program inside a container that runs already: exec probes, lifecycle hooks, and what people ask for.

use std::io;
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use super::contained;
use super::filter::Asks;
use super::link::Link;
use super::namespace::{self, Neighbour};
use super::process::{self, Standard, Terms};
use super::spec::{ExecSpec, Report};
use super::supervisor::Supervisor;
use super::wire::{self, Lines};
use crate::cgroup::Group;
use crate::sys;

/// Joins the container that the node names on `control` and runs the program to its end.
pub(crate) fn run(mut control: Lines) -> io::Result<()> {
    let spec: ExecSpec = super::first_message(&mut control)?;
    let standard = Standard::of(spec.input, &mut control)?;
    // Once in the container it cannot be seen where its group is.
    let door = match spec.group.as_ref().map(Group::door).transpose() {
        Ok(door) => door,
        Err(error) => return control.send(&Report::Failed(format!("find its control group: {error}"))),
    };
    if let Some(contained) = &spec.contained {
        return match contained::exec(&spec, contained, standard) {
            Ok(child) => Supervisor::new(Link::only(control), child, None, None).run(),
            Err(why) => control.send(&Report::Failed(why)),
        };
    }
    if let Err(error) = spec.network.as_deref().map_or(Ok(()), |path| namespace::enter_network(path, &[])) {
        return control.send(&Report::Failed(format!("enter the network of its Pod: {error}")));
    }
    let neighbour = Neighbour { init: spec.init, supervisor: spec.supervisor, is_contained: false };
    let mapping = match namespace::join(neighbour, namespace::ALL) {
        Ok(mapping) => mapping,
        Err(error) => return control.send(&Report::Failed(format!("enter the container: {error}"))),
    };
    let (ours, theirs) = UnixStream::pair()?;
    match sys::fork_into(0) {
        Ok(Some(child)) => {
            drop((theirs, standard));
            Supervisor::new(Link::only(control), child, Some(ours), spec.address).suffering(spec.faults).run()
        }
        Ok(None) => {
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            drop((control, ours));
            if let Err(error) = door.iter().try_for_each(|door| door.let_in(0)) {
                wire::send_failure(&theirs, &format!("enter its control group: {error}"));
                sys::exit_now(1);
            }
            drop(door);
            let asks = if spec.address.is_some() { Asks::Sockets } else { Asks::Nothing };
            let terms = Terms { asks, mapping, standard, nice: 0 };
            process::become_program(&spec.process, terms, &theirs)
        }
        Err(error) => control.send(&Report::Failed(format!("fork: {error}"))),
    }
}
