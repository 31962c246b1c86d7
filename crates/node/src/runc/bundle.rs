//! What runc is told of a container and of programs in it, in the words of the OCI runtime specification.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::filter::{self, Filter};
use super::system;
use crate::sandbox::{Capability, ContainerSpec, Guard, Input, Process};

const VERSION: &str = "1.0.2";

/// A container.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Config {
    oci_version: &'static str,
    process: Program,
    root: Root,
    hostname: String,
    mounts: Vec<MountPoint>,
    linux: Linux,
}

/// A program.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Program {
    terminal: bool,
    user: User,
    args: Vec<String>,
    env: Vec<String>,
    cwd: PathBuf,
    capabilities: Capabilities,
    no_new_privileges: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct User {
    uid: u32,
    gid: u32,
    additional_gids: Vec<u32>,
}

/// Rights that a program begins with. None is inheritable or ambient: one that is not root has none.
#[derive(Debug, Serialize)]
struct Capabilities {
    bounding: Vec<String>,
    effective: Vec<String>,
    permitted: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Root {
    path: PathBuf,
    readonly: bool,
}

/// Something mounted into the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct MountPoint {
    pub(super) destination: PathBuf,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) source: PathBuf,
    pub(super) options: Vec<String>,
}

impl MountPoint {
    /// What is mounted at `source` already, with what is below it.
    pub(crate) fn bind(source: PathBuf, destination: &Path, read_only: bool) -> Self {
        let options = ["rbind", if read_only { "ro" } else { "rw" }].map(str::to_owned).to_vec();
        Self { destination: destination.to_owned(), kind: "bind", source, options }
    }

    /// Fresh memory.
    pub(crate) fn memory(size: Option<u64>, destination: &Path) -> Self {
        let size = size.map(|size| format!("size={size}"));
        let options =
            ["nosuid".to_owned(), "nodev".to_owned(), "mode=0777".to_owned()].into_iter().chain(size).collect();
        Self { destination: destination.to_owned(), kind: "tmpfs", source: "tmpfs".into(), options }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Linux {
    namespaces: Vec<Namespace>,
    sysctl: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroups_path: Option<PathBuf>,
    resources: Resources,
    #[serde(skip_serializing_if = "Option::is_none")]
    seccomp: Option<Filter>,
    masked_paths: &'static [&'static str],
    readonly_paths: &'static [&'static str],
}

#[derive(Debug, Serialize)]
struct Namespace {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Resources {
    devices: [Devices; 1],
}

/// What is true of devices that nothing else is said of.
#[derive(Debug, Serialize)]
struct Devices {
    allow: bool,
    access: &'static str,
}

impl Program {
    /// Describes a program.
    pub(crate) fn of(process: &Process, input: Input) -> Self {
        let rights = &process.rights;
        let names: Vec<String> = rights.capabilities.iter().map(|capability| capability.name()).collect();
        Self {
            terminal: input == Input::Terminal,
            user: User { uid: process.user.uid, gid: process.user.gid, additional_gids: process.user.groups.clone() },
            args: process.argv.clone(),
            env: process.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            cwd: process.workdir.clone(),
            capabilities: Capabilities { bounding: names.clone(), effective: names.clone(), permitted: names },
            no_new_privileges: !rights.escalation,
        }
    }
}

impl Config {
    /// Describes a container whose files are at `root`, with `mounts` in the order in which they are made.
    pub(crate) fn of(spec: &ContainerSpec, root: PathBuf, mounts: Vec<MountPoint>) -> Self {
        let guard = spec.process.rights.guard;
        let is_open = guard == Guard::Absent;
        Self {
            oci_version: VERSION,
            process: Program::of(&spec.process, spec.input),
            root: Root { path: root, readonly: spec.read_only_root },
            hostname: spec.hostname.clone(),
            mounts: system::mounts(is_open).into_iter().chain(mounts).collect(),
            linux: Linux {
                namespaces: namespaces(spec),
                sysctl: spec.own_settings().into_iter().cloned().collect(),
                cgroups_path: spec.group.as_ref().and_then(crate::cgroup::Group::path),
                resources: Resources { devices: [Devices { allow: is_open, access: "rwm" }] },
                seccomp: is_filtered(spec).then(filter::filter),
                masked_paths: if is_open { &[] } else { &system::MASKED },
                readonly_paths: if is_open { &[] } else { &system::READ_ONLY },
            },
        }
    }
}

/// Who may administer the system is not kept from doing so.
fn is_filtered(spec: &ContainerSpec) -> bool {
    let rights = &spec.process.rights;
    let administers = Capability::from_name("SYS_ADMIN").is_some_and(|admin| rights.capabilities.contains(&admin));
    rights.guard == Guard::Strict && !administers
}

fn namespaces(spec: &ContainerSpec) -> Vec<Namespace> {
    let own = |kind| Namespace { kind, path: None };
    let mut namespaces = vec![own("mount"), own("ipc"), own("uts"), own("cgroup")];
    let shared = spec.neighbour.map(|neighbour| PathBuf::from(format!("/proc/{}/ns/pid", neighbour.init)));
    namespaces.push(Namespace { kind: "pid", path: shared });
    // Without one the Pod is in the network of the machine.
    namespaces.extend(spec.network.clone().map(|path| Namespace { kind: "network", path: Some(path) }));
    namespaces
}
