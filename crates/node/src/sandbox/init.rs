//! The first process of a container: builds the root, starts the program, passes signals on, reaps, and takes every
//! process of the container with it when it ends.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::Signal;

use super::filter::Asks;
use super::identity::Mapping;
use super::process::{self, Standard, Terms};
use super::root;
use super::spec::ContainerSpec;
use super::wire;
use crate::sys;

/// Runs as process 1 of the container's namespaces.
pub(crate) fn run(spec: &ContainerSpec, standard: Standard, mut channel: UnixStream) -> ! {
    // The kernel ends this process with its supervisor; the supervisor's death before this line ends the read below.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let mut go = [0];
    let mapping = match channel.read_exact(&mut go) {
        Ok(()) => Mapping::from_byte(go[0]),
        Err(_) => None,
    };
    let Some(mapping) = mapping else { sys::exit_now(1) };
    if let Err(error) = root::build(spec) {
        fail(&channel, &error.to_string());
    }
    for (name, value) in spec.own_settings() {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        if let Err(error) = std::fs::write(&path, value) {
            fail(&channel, &format!("set {name} to {value:?}: {error}"));
        }
    }
    let _ = rustix::system::sethostname(spec.hostname.as_bytes());
    let signals = sys::block_signals();
    match sys::fork_into(0) {
        Err(error) => fail(&channel, &format!("fork: {error}")),
        Ok(None) => {
            let asks = match (spec.address, spec.ask_of_files) {
                (None, _) => Asks::Nothing,
                (Some(_), false) => Asks::Sockets,
                (Some(_), true) => Asks::SocketsAndFiles,
            };
            let terms = Terms { asks, mapping, standard, nice: spec.nice };
            process::become_program(&spec.process, terms, &channel)
        }
        Ok(Some(program)) => {
            let pid = program.pid;
            // Nothing may be held open here: the supervisor takes the end of the channel for the start of the program.
            std::mem::forget((program, channel, standard));
            sys::close_from(0);
            tend(pid, &signals)
        }
    }
}

fn tend(program: i32, signals: &sys::SignalSet) -> ! {
    loop {
        let number = sys::wait_signal(signals);
        if number != libc::SIGCHLD {
            sys::signal(program, number);
            continue;
        }
        while let Some((pid, code)) = sys::reap() {
            if pid == program {
                sys::exit_now(code);
            }
        }
    }
}

fn fail(channel: &UnixStream, text: &str) -> ! {
    wire::send_failure(channel, text);
    sys::exit_now(1)
}
