//! What a container's sandbox is told, made from the Pod, the image and the node's files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod, VolumeMount};
use kube::ResourceExt;

use super::downward::Addresses;
use super::environment::expand;
use super::rights::rights;
use crate::chaos;
use crate::image::{Image, find_groups, find_user};
use crate::sandbox::{
    ContainerSpec, Identity, Input, Mount, Neighbour, Process, Root, Source, make_beneath, open_beneath,
};
use crate::sysctl;
use crate::volume;

const TERMINATION_PATH: &str = "/dev/termination-log";
/// The number of the user of a program on the host's own files that must not be root.
const NON_ROOT: u32 = 65532;
const HOSTNAME_BYTES_MAX: usize = 63;

/// Why a container cannot be described.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpecError {
    #[error("no command specified: neither the container nor its image has one")]
    NoCommand,
    #[error("image `host` needs an absolute command: {0:?} is none")]
    RelativeCommand(String),
    #[error("the image has no user {0:?}")]
    User(String),
    #[error("container has runAsNonRoot and image will run as root")]
    Root,
    #[error("there is no capability {0:?}")]
    Capability(String),
    #[error("volumeMount {0:?} names no volume of the Pod")]
    Volume(String),
    #[error("subPath {0:?} is no path inside of a volume")]
    Outside(String),
    #[error("subPathExpr {0:?} names a variable that is not set")]
    Variable(String),
    #[error("failed to prepare subPath for volumeMount \"{mount}\" of container \"{container}\": {path:?}: {source}")]
    SubPath { mount: String, container: String, path: String, source: io::Error },
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
}

/// What a container is made of.
pub(crate) struct Ingredients<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) container: &'a Container,
    pub(crate) image: &'a Image,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) volumes: &'a BTreeMap<String, PathBuf>,
    pub(crate) addresses: Addresses,
    /// Whether its sockets are confined.
    pub(crate) confine: bool,
    /// Whether the Pod has a network of its own.
    pub(crate) has_network: bool,
    /// The directory of the Pod.
    pub(crate) directory: &'a Path,
    /// The directory of this run of the container.
    pub(crate) run: &'a Path,
    /// The container whose processes it wants to see.
    pub(crate) neighbour: Option<Neighbour>,
}

/// Describes a container to its sandbox.
pub(crate) fn container_spec(from: &Ingredients<'_>) -> Result<ContainerSpec, SpecError> {
    let variables: BTreeMap<String, String> = from.environment.iter().cloned().collect();
    let process = Process {
        argv: command(from.container, from.image, &variables)?,
        env: with_defaults(from),
        workdir: workdir(from.container, from.image),
        user: user(from.pod, from.container, from.image)?,
        rights: rights(from.pod, from.container).map_err(SpecError::Capability)?,
    };
    let mut mounts = volume_mounts(from, &variables)?;
    mounts.extend(node_files(from, &mounts)?);
    let context = from.container.security_context.as_ref();
    Ok(ContainerSpec {
        hostname: hostname(from.pod),
        root: from.image.rootfs.clone().map_or(Root::Host, Root::Image),
        scratch: from.run.to_owned(),
        read_only_root: context.and_then(|context| context.read_only_root_filesystem) == Some(true),
        mounts,
        process,
        address: from.confine.then_some(from.addresses.pod),
        input: input(from.container),
        keep: None,
        neighbour: from.neighbour,
        settings: sysctl::own(from.pod, from.has_network),
        group: None,
        network: None,
        contained: None,
        nice: 0,
        ask_of_files: from.pod.annotations().get(chaos::ANNOTATION).is_some_and(|asked| asked == chaos::DISK),
        faults: Default::default(),
    })
}

fn input(container: &Container) -> Input {
    match (container.tty, container.stdin) {
        (Some(true), _) => Input::Terminal,
        (_, Some(true)) => Input::Pipe,
        _ => Input::Nothing,
    }
}

/// The name that the program sees as its machine's.
pub(crate) fn hostname(pod: &Pod) -> String {
    let mut name = pod.spec.as_ref().and_then(|spec| spec.hostname.clone()).unwrap_or_else(|| pod.name_any());
    name.truncate(HOSTNAME_BYTES_MAX);
    name.trim_end_matches(['-', '.']).to_owned()
}

fn command(
    container: &Container,
    image: &Image,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<String>, SpecError> {
    let own = container.command.as_ref().filter(|command| !command.is_empty());
    let arguments = container.args.as_ref().filter(|args| !args.is_empty());
    let program = own.unwrap_or(&image.config.entrypoint);
    let arguments = match (own, arguments) {
        (_, Some(arguments)) => arguments.as_slice(),
        (Some(_), None) => &[],
        (None, None) => &image.config.cmd,
    };
    let argv: Vec<String> = program.iter().chain(arguments).map(|part| expand(part, variables)).collect();
    match argv.first() {
        None => Err(SpecError::NoCommand),
        Some(first) if image.rootfs.is_none() && !first.starts_with('/') => {
            Err(SpecError::RelativeCommand(first.clone()))
        }
        Some(_) => Ok(argv),
    }
}

fn with_defaults(from: &Ingredients<'_>) -> Vec<(String, String)> {
    let mut environment = from.environment.clone();
    let defaults = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        ("HOSTNAME", hostname(from.pod)),
        ("HOME", "/".to_owned()),
    ];
    let terminal = (from.container.tty == Some(true)).then(|| ("TERM", "xterm".to_owned()));
    for (name, value) in defaults.into_iter().chain(terminal) {
        if !environment.iter().any(|(existing, _)| existing == name) {
            environment.push((name.to_owned(), value));
        }
    }
    environment
}

fn workdir(container: &Container, image: &Image) -> PathBuf {
    let own = container.working_dir.as_deref().filter(|workdir| !workdir.is_empty());
    let chosen = own.unwrap_or(&image.config.workdir);
    PathBuf::from(if chosen.is_empty() { "/" } else { chosen })
}

fn user(pod: &Pod, container: &Container, image: &Image) -> Result<Identity, SpecError> {
    let own = container.security_context.as_ref();
    let shared = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let number = |value: Option<i64>| value.and_then(|value| u32::try_from(value).ok());
    let uid = number(own.and_then(|c| c.run_as_user).or_else(|| shared.and_then(|c| c.run_as_user)));
    let gid = number(own.and_then(|c| c.run_as_group).or_else(|| shared.and_then(|c| c.run_as_group)));
    let non_root = own.and_then(|c| c.run_as_non_root).or_else(|| shared.and_then(|c| c.run_as_non_root));
    let mut identity = match (uid, &image.rootfs) {
        (Some(uid), Some(rootfs)) => {
            let known = find_user(rootfs, &uid.to_string()).unwrap_or_default();
            Identity { uid, gid: known.gid, groups: find_groups(rootfs, uid) }
        }
        (Some(uid), None) => Identity { uid, ..Identity::default() },
        (None, Some(rootfs)) if !image.config.user.is_empty() => {
            find_user(rootfs, &image.config.user).ok_or_else(|| SpecError::User(image.config.user.clone()))?
        }
        (None, None) if non_root == Some(true) => Identity { uid: NON_ROOT, gid: NON_ROOT, ..Identity::default() },
        (None, _) => Identity::default(),
    };
    identity.gid = gid.unwrap_or(identity.gid);
    let extra = shared.into_iter().flat_map(|c| c.fs_group.iter().chain(c.supplemental_groups.iter().flatten()));
    identity.groups.extend(extra.filter_map(|group| u32::try_from(*group).ok()));
    if non_root == Some(true) && identity.uid == 0 { Err(SpecError::Root) } else { Ok(identity) }
}

fn volume_mounts(from: &Ingredients<'_>, variables: &BTreeMap<String, String>) -> Result<Vec<Mount>, SpecError> {
    let wanted = from.container.volume_mounts.iter().flatten();
    wanted.map(|wanted| volume_mount(from, wanted, variables)).collect()
}

fn volume_mount(
    from: &Ingredients<'_>,
    wanted: &VolumeMount,
    variables: &BTreeMap<String, String>,
) -> Result<Mount, SpecError> {
    let place = from.volumes.get(&wanted.name).ok_or_else(|| SpecError::Volume(wanted.name.clone()))?;
    let mut volumes = from.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let volume = volumes.find(|volume| volume.name == wanted.name);
    let sub = sub_path(wanted, variables)?;
    let source = if sub.is_empty() {
        Source::Bind(place.clone())
    } else {
        let path = PathBuf::from(sub);
        let is_image = volume.is_some_and(|volume| volume.image.is_some());
        // What others run from is not added to.
        let there = if is_image { open_beneath(place, &path).map(drop) } else { make_beneath(place, &path) };
        there.map_err(|source| SpecError::SubPath {
            mount: wanted.name.clone(),
            container: from.container.name.clone(),
            path: path.display().to_string(),
            source,
        })?;
        Source::Beneath { volume: place.clone(), path }
    };
    let read_only = volume.is_some_and(volume::is_read_only);
    Ok(Mount {
        source,
        target: PathBuf::from(&wanted.mount_path),
        read_only: read_only || wanted.read_only == Some(true),
    })
}

/// The path inside of a volume that is mounted; empty for all of it.
fn sub_path(wanted: &VolumeMount, variables: &BTreeMap<String, String>) -> Result<String, SpecError> {
    let sub = match (&wanted.sub_path_expr, &wanted.sub_path) {
        (Some(expression), _) if !expression.is_empty() => {
            let sub = expand(expression, variables);
            let is_known = |name: &str| variables.contains_key(name);
            let mut named = expression.split("$(").skip(1).filter_map(|rest| rest.split_once(')'));
            if named.any(|(name, _)| !is_known(name)) {
                return Err(SpecError::Variable(expression.clone()));
            }
            sub
        }
        (_, Some(path)) => path.clone(),
        _ => String::new(),
    };
    let is_inside = Path::new(&sub).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if is_inside { Ok(sub) } else { Err(SpecError::Outside(sub)) }
}

/// Files that the node gives every container, unless a volume takes their place.
fn node_files(from: &Ingredients<'_>, taken: &[Mount]) -> Result<Vec<Mount>, SpecError> {
    let termination = from.container.termination_message_path.as_deref().unwrap_or(TERMINATION_PATH);
    let message = termination_file(from.run);
    fs::create_dir_all(from.run)
        .and_then(|()| fs::write(&message, ""))
        .and_then(|()| fs::set_permissions(&message, std::os::unix::fs::PermissionsExt::from_mode(0o666)))
        .map_err(|source| SpecError::Io { path: message.display().to_string(), source })?;
    let mut files = vec![
        (message, termination.to_owned()),
        (from.directory.join("hosts"), "/etc/hosts".to_owned()),
        (from.directory.join("hostname"), "/etc/hostname".to_owned()),
        (from.directory.join("resolv.conf"), "/etc/resolv.conf".to_owned()),
    ];
    files.retain(|(source, target)| source.exists() && !taken.iter().any(|mount| mount.target == Path::new(target)));
    let mount =
        |(source, target)| Mount { source: Source::Bind(source), target: PathBuf::from(target), read_only: false };
    Ok(files.into_iter().map(mount).collect())
}

/// Where a run's termination message is on the host.
pub(crate) fn termination_file(run: &Path) -> PathBuf {
    run.join("termination-log")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::image::ImageConfig;

    fn image(host: bool) -> Image {
        let strings = |parts: &[&str]| parts.iter().map(|&part| part.to_owned()).collect();
        Image {
            id: "i".to_owned(),
            rootfs: (!host).then(|| PathBuf::from("/nowhere")),
            config: ImageConfig { entrypoint: strings(&["entry"]), cmd: strings(&["cmd"]), ..ImageConfig::default() },
        }
    }

    #[test]
    fn command_and_arguments_replace_those_of_the_image() {
        let check = |container: serde_json::Value, expect: &[&str]| {
            let container: Container = serde_json::from_value(container).unwrap();
            let variables = [("V".to_owned(), "1".to_owned())].into();
            assert_eq!(command(&container, &image(false), &variables).unwrap(), expect);
        };
        check(json!({"name": "c"}), &["entry", "cmd"]);
        check(json!({"name": "c", "args": ["-v", "$(V)"]}), &["entry", "-v", "1"]);
        check(json!({"name": "c", "command": ["run"]}), &["run"]);
        check(json!({"name": "c", "command": ["run"], "args": ["x"]}), &["run", "x"]);
    }

    #[test]
    fn the_host_image_needs_an_absolute_command() {
        let container = |command: &str| serde_json::from_value(json!({"name": "c", "command": [command]})).unwrap();
        assert!(command(&container("/bin/true"), &image(true), &BTreeMap::new()).is_ok());
        assert!(matches!(
            command(&container("true"), &image(true), &BTreeMap::new()),
            Err(SpecError::RelativeCommand(_))
        ));
    }

    #[test]
    fn a_path_inside_of_a_volume_stays_there() {
        let check = |mount: serde_json::Value, expect: Option<&str>| {
            let mut mount = mount;
            (mount["name"], mount["mountPath"]) = ("v".into(), "/v".into());
            let mount: VolumeMount = serde_json::from_value(mount).unwrap();
            let variables = [("A".to_owned(), "a".to_owned()), ("ROOT".to_owned(), "/tmp".to_owned())].into();
            assert_eq!(sub_path(&mount, &variables).ok().as_deref(), expect, "{mount:?}");
        };
        check(json!({}), Some(""));
        check(json!({"subPath": "a/b"}), Some("a/b"));
        check(json!({"subPath": "./a"}), Some("./a"));
        check(json!({"subPath": "../a"}), None);
        check(json!({"subPath": "/a"}), None);
        check(json!({"subPathExpr": "x/$(A)"}), Some("x/a"));
        check(json!({"subPathExpr": "$(ROOT)"}), None);
        check(json!({"subPathExpr": "$(B)"}), None);
    }

    #[test]
    fn the_user_is_the_containers_then_the_pods() {
        let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [],
            "securityContext": {"runAsUser": 1000, "runAsGroup": 1001, "fsGroup": 2000}}}))
        .unwrap();
        let container = serde_json::from_value(json!({"name": "c", "securityContext": {"runAsUser": 7}})).unwrap();
        let identity = user(&pod, &container, &image(true)).unwrap();
        assert_eq!(identity, Identity { uid: 7, gid: 1001, groups: vec![2000] });
        let root: Container =
            serde_json::from_value(json!({"name": "c", "securityContext": {"runAsNonRoot": true, "runAsUser": 0}}))
                .unwrap();
        assert!(matches!(user(&pod, &root, &image(true)), Err(SpecError::Root)));
    }
}
