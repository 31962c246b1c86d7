//! What the node tells a sandbox process to run, and what that process reports.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::fault::Faults;
use super::namespace::Neighbour;
use super::rights::Rights;
use crate::cgroup::Group;
use crate::runc::Contained;

/// One container, complete: nothing else is looked up inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// The host name that the program sees.
    pub hostname: String,
    /// Where its files come from.
    pub root: Root,
    /// A directory of this container run: its writable layer and mount points.
    pub scratch: PathBuf,
    /// Whether the program may not change its root.
    pub read_only_root: bool,
    /// Volumes and files, mounted in order of depth.
    pub mounts: Vec<Mount>,
    /// The program and how it starts.
    pub process: Process,
    /// The address that the program's sockets are confined to; none leaves them alone.
    pub address: Option<Ipv4Addr>,
    /// What the program's standard input is.
    pub input: Input,
    /// How it lives on without the node that started it; none ends it with that.
    pub keep: Option<Keep>,
    /// The container whose users and processes it shares; none for those of its own.
    pub neighbour: Option<Neighbour>,
    /// Settings of the kernel that it has for itself: names with dots, and values.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// The control group that holds it to its limits, where there are such groups.
    #[serde(default)]
    pub group: Option<Group>,
    /// The network namespace of its Pod, where it has one.
    #[serde(default)]
    pub network: Option<PathBuf>,
    /// What runc knows it as, where that runs it.
    #[serde(default)]
    pub contained: Option<Contained>,
    /// By how much its programs give way to others, where no group does that.
    #[serde(default)]
    pub nice: u8,
    /// Whether its writes to files are asked about, so that they can be made to fail.
    #[serde(default)]
    pub ask_of_files: bool,
    /// What it suffers from its start on.
    #[serde(default)]
    pub faults: Faults,
}

impl ContainerSpec {
    /// Those settings of the kernel that belong to the network of the Pod.
    pub(crate) fn network_settings(&self) -> Vec<&(String, String)> {
        self.settings.iter().filter(|(name, _)| is_of_network(name)).collect()
    }

    /// Those settings of the kernel that belong to the container.
    pub(crate) fn own_settings(&self) -> Vec<&(String, String)> {
        self.settings.iter().filter(|(name, _)| !is_of_network(name)).collect()
    }
}

fn is_of_network(setting: &str) -> bool {
    setting.starts_with("net.")
}

/// How a container lives on without a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// How long it waits for the next one.
    pub limit: Duration,
    /// What the next one has to know of it.
    pub origin: Origin,
}

/// What a node knows of a container besides what it told the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its image.
    pub image_id: String,
    /// What tells its program to end.
    pub stop_signal: i32,
}

/// What a supervisor says to a node that did not start it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// How it speaks.
    pub protocol: u32,
    /// The container's first process as the host sees it.
    pub init: i32,
    /// When its program started.
    pub started: SystemTime,
    /// The container.
    pub spec: ContainerSpec,
    /// Whether faults can be ordered; earlier releases know none.
    #[serde(default)]
    pub takes_faults: bool,
}

/// The way in which node and supervisor speak; one that speaks otherwise is of another release.
pub(crate) const PROTOCOL: u32 = 1;

/// What the standard input of a program is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// Nothing: it is at its end from the start.
    #[default]
    Nothing,
    /// A pipe that the node writes to.
    Pipe,
    /// A terminal of its own, which is its output, too.
    Terminal,
}

/// A program with its arguments and surroundings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Program (looked up in `PATH` if it has no slash) and arguments.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// Its working directory.
    pub workdir: PathBuf,
    /// Who it runs as.
    pub user: Identity,
    /// What it may do.
    #[serde(default)]
    pub rights: Rights,
}

/// The numeric user of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// Where the files of a container come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Root {
    /// A directory of the image store, below a writable layer.
    Image(PathBuf),
    /// The host's own files, below a writable layer where the kernel allows it, read-only elsewhere.
    Host,
}

/// Something mounted into the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// What is mounted.
    pub source: Source,
    /// Absolute path inside the container.
    pub target: PathBuf,
    /// Whether writing is refused.
    pub read_only: bool,
}

/// The source of a [`Mount`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// A file or directory of the host.
    Bind(PathBuf),
    /// A file or directory inside of a volume, out of which links in it cannot lead.
    Beneath {
        /// The volume.
        volume: PathBuf,
        /// The path in it.
        path: PathBuf,
    },
    /// Fresh memory, with a size limit in bytes.
    Memory(Option<u64>),
}

/// A program to run inside a container that runs already.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExecSpec {
    /// The container's first process, as the host sees it.
    pub init: i32,
    /// Its parent, the supervisor: proves that the id was not reused.
    pub supervisor: i32,
    /// The program.
    pub process: Process,
    /// As [`ContainerSpec::address`].
    pub address: Option<Ipv4Addr>,
    /// As [`ContainerSpec::input`].
    pub input: Input,
    /// As [`ContainerSpec::group`].
    pub group: Option<Group>,
    /// As [`ContainerSpec::network`].
    pub network: Option<PathBuf>,
    /// As [`ContainerSpec::contained`].
    pub contained: Option<Contained>,
    /// As [`ContainerSpec::faults`].
    pub faults: Faults,
}

/// What the node asks of a running sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Send this signal to the program.
    Signal(i32),
    /// End every process now.
    Kill,
    /// Let the container suffer this from now on, and nothing else.
    Faults(Box<Faults>),
}

/// What a sandbox reports to the node, one JSON line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The program runs. `init` is the container's first process as the host sees it.
    Started {
        /// The container's first process.
        init: i32,
    },
    /// This is the container of an earlier node.
    Attached(Box<Attachment>),
    /// The program did not start: which step failed and why.
    Failed(String),
    /// The program ended with this code (128 + signal when it was killed).
    Exited(i32),
    /// Something a person should know, such as a port that the host refused.
    Notice(String),
    /// The faults that were ordered are there, or why not all of them.
    Suffers {
        /// The number of the order.
        number: u64,
        /// What of it cannot be done.
        problem: Option<String>,
    },
}
