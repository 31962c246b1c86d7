//! The node's own groups, below which those of its containers are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::group::{self, Controller, Group, Part, Version};
use super::limits::Limits;
use super::place::{self, Place, Places};
use crate::tag;

const AVAILABLE: &str = "cgroup.controllers";
const ENABLED: &str = "cgroup.subtree_control";
const MEMBERS: &str = "cgroup.procs";
/// What the names of nodes' groups begin with.
const NAME_PREFIX: &str = "windlass-";
/// What the name of the group ends with that the node itself is in.
const ASIDE: &str = ".node";
/// The file of the node's directory that says where its groups are.
const REMEMBERED: &str = "cgroups";

/// Why there are no groups.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    /// The kernel has none, or does not show them.
    #[error("no hierarchy of control groups is mounted here")]
    None,
    /// They are somebody else's.
    #[error(
        "the control group {path} is not this user's ({source}); one that is comes from `systemd-run --user --scope -p \
         Delegate=yes windlass up`"
    )]
    NotOurs { path: String, source: io::Error },
    /// Controllers are not handed out from a group with processes of its own.
    #[error(
        "the control group {path} has processes besides Windlass; one of its own comes from `systemd-run --user --scope -p \
         Delegate=yes windlass up`"
    )]
    Occupied { path: String },
    /// Nothing can be limited there.
    #[error("the control group {path} may not limit memory, processors or processes")]
    NoControllers { path: String },
    /// The node was told so.
    #[error("the node was told to use no control groups")]
    Unwanted,
}

/// The node's groups.
#[derive(Debug)]
pub(crate) struct Cgroups {
    version: Version,
    roots: Vec<Part>,
    /// Where groups of an earlier life of the node may be.
    former: Vec<PathBuf>,
    /// What runc makes of them in hierarchies that the node does not use itself.
    shadows: Vec<PathBuf>,
}

impl Cgroups {
    /// Makes the groups of the node whose directory is `node`; with `same_path` they have one path in all hierarchies.
    pub(crate) fn begin(node: &Path, same_path: bool) -> Result<Self, Unavailable> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut places = place::places(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
        if same_path {
            // Where this process is may be another path in each of them; the top is the same.
            places.legacy.iter_mut().for_each(|place| place.own = place.top.clone());
        }
        let (version, roots) = take(&places, &format!("{NAME_PREFIX}{}", tag::of(node)))?;
        let shadows = roots.first().filter(|_| same_path).map(|root| elsewhere(&root.directory));
        let groups = Self::remembering(version, roots, &node.join(REMEMBERED));
        Ok(Self { shadows: shadows.unwrap_or_default(), ..groups })
    }

    fn remembering(version: Version, roots: Vec<Part>, file: &Path) -> Self {
        let before = fs::read_to_string(file).unwrap_or_default();
        let is_now = |path: &PathBuf| roots.iter().any(|root| root.directory == *path);
        let former: Vec<PathBuf> =
            before.lines().map(PathBuf::from).filter(|path| is_group(path) && !is_now(path)).collect();
        let all = roots.iter().map(|root| &root.directory).chain(&former);
        let text: String = all.map(|path| format!("{}\n", path.display())).collect();
        // Without the file groups of a node that was killed and started elsewhere would stay; no Pod depends on it.
        if let Err(error) = fs::write(file, text) {
            tracing::warn!(%error, "where the control groups are was not written down");
        }
        Self { version, roots, former, shadows: Vec::new() }
    }

    /// Makes the group of a run of a container in that of its Pod; what an earlier run left goes.
    pub(crate) fn make(
        &self,
        (pod, container, number): (&str, &str, i32),
        limits: &Limits,
        of_pod: &Limits,
    ) -> io::Result<Group> {
        let prefix = format!("{container}.");
        for root in &self.roots {
            self.make_pod(&self.pod(root, pod), of_pod)?;
            remove_below(&root.directory.join(pod), |name| name.starts_with(&prefix));
        }
        let part = |root: &Part| Part {
            directory: root.directory.join(pod).join(format!("{prefix}{number}")),
            controllers: root.controllers.clone(),
        };
        Group::make(self.version, self.roots.iter().map(part).collect(), limits)
    }

    /// Removes the group of a run of a container, with what is in it.
    pub(crate) fn remove(&self, (pod, container, number): (&str, &str, i32)) {
        for root in self.all() {
            group::remove(&root.join(pod).join(format!("{container}.{number}")));
        }
    }

    /// Holds a Pod to other limits from now on; one without a group yet gets them with it.
    ///
    /// # Errors
    /// If the kernel refuses one of them.
    pub(crate) fn change_pod(&self, pod: &str, limits: &Limits) -> io::Result<()> {
        let parts = self.roots.iter().map(|root| self.pod(root, pod)).filter(|part| part.directory.is_dir());
        parts.into_iter().try_for_each(|part| part.change(|controller| limits.shared(self.version, controller)))
    }

    fn pod(&self, root: &Part, pod: &str) -> Part {
        Part { directory: root.directory.join(pod), controllers: root.controllers.clone() }
    }

    /// Makes the group of a Pod, unless one of its containers had it made before.
    fn make_pod(&self, part: &Part, limits: &Limits) -> io::Result<()> {
        if part.directory.is_dir() {
            return Ok(());
        }
        make(&part.directory)?;
        if self.version == Version::V2 {
            enable(&part.directory, &part.controllers)?;
        }
        part.write(|controller| limits.shared(self.version, controller))
    }

    /// Removes the groups of a Pod, with what is in them.
    pub(crate) fn remove_pod(&self, pod: &str) {
        self.remove_where(|name| uid(name) == pod);
    }

    /// Removes the groups of Pods that are no more.
    pub(crate) fn sweep(&self, is_alive: &dyn Fn(&str) -> bool) {
        self.remove_where(|name| !is_alive(uid(name)));
        for former in &self.former {
            // As long as it has groups of living Pods it stays.
            let _ = fs::remove_dir(former);
        }
    }

    /// Removes all of it, with what is left in it.
    pub(crate) fn end(&self) {
        self.sweep(&|_| false);
        for root in self.roots.iter().map(|root| &root.directory).chain(&self.shadows) {
            group::remove(root);
        }
    }

    /// Where all of it is.
    pub(crate) fn places(&self) -> Vec<PathBuf> {
        self.all().cloned().collect()
    }

    /// Which mechanism this is, for people.
    pub(crate) fn describe(&self) -> String {
        let names: Vec<&str> = Controller::ALL
            .into_iter()
            .filter(|controller| *controller != Controller::Accounting && self.has(*controller))
            .map(Controller::name)
            .collect();
        let version = if self.version == Version::V1 { 1 } else { 2 };
        format!("control groups, version {version}: {}", names.join(", "))
    }

    /// Whether the kernel controls this of containers.
    pub(crate) fn has(&self, controller: Controller) -> bool {
        self.roots.iter().any(|root| root.controllers.contains(&controller))
    }

    fn remove_where(&self, is_meant: impl Fn(&str) -> bool) {
        for root in self.all() {
            remove_below(root, &is_meant);
        }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.roots.iter().map(|root| &root.directory).chain(&self.former).chain(&self.shadows)
    }
}

/// Removes all groups of the node whose directory is `node`, with what is in them.
pub fn clear(node: &Path) {
    let file = node.join(REMEMBERED);
    let remembered = fs::read_to_string(&file).unwrap_or_default();
    for root in remembered.lines().map(PathBuf::from).filter(|path| is_group(path)) {
        remove_below(&root, |_| true);
        group::remove(&root);
        remove_elsewhere(&root);
    }
    let _ = fs::remove_file(file);
}

/// Where a group at the top of its hierarchy is in the others.
fn elsewhere(root: &Path) -> Vec<PathBuf> {
    let (Some(name), Some(all)) = (root.file_name(), root.parent().and_then(Path::parent)) else { return Vec::new() };
    let hierarchies = fs::read_dir(all).into_iter().flatten().flatten();
    hierarchies.map(|hierarchy| hierarchy.path().join(name)).filter(|path| path != root).collect()
}

fn remove_elsewhere(root: &Path) {
    for group in elsewhere(root).iter().filter(|group| is_group(group)) {
        remove_below(group, |_| true);
        group::remove(group);
    }
}

/// Removes a node's group, with all that is in it and the one that the node itself was in.
pub(crate) fn remove_root(root: &Path) {
    if !is_group(root) {
        return;
    }
    remove_below(root, |_| true);
    group::remove(root);
    remove_elsewhere(root);
    let mut aside = root.as_os_str().to_owned();
    aside.push(ASIDE);
    let _ = fs::remove_dir(Path::new(&aside));
}

fn remove_below(root: &Path, is_meant: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_group = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_group && entry.file_name().to_str().is_some_and(&is_meant) {
            remove_all(&entry.path());
        }
    }
}

/// Removes the group of a Pod with those of its containers, or that of a container.
fn remove_all(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            group::remove(&entry.path());
        }
    }
    group::remove(directory);
}

/// Whether a path is one of a node's group, which a file may say that somebody changed.
fn is_group(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(NAME_PREFIX)) && path.join(MEMBERS).exists()
}

/// The Pod that a group belongs to, which earlier releases named after its container as well.
fn uid(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The node's groups in the hierarchies that it has a place in.
fn take(places: &Places, name: &str) -> Result<(Version, Vec<Part>), Unavailable> {
    if let Some(unified) = places.unified.as_ref().filter(|place| !offered(&place.top).is_empty()) {
        let own = take_unified(&unified.own, name);
        // Groups of the whole machine are root's to give, as kubelet takes them.
        let taken = own.or_else(|error| match rustix::process::geteuid().is_root() && unified.own != unified.top {
            true => take_unified(&unified.top, name),
            false => Err(error),
        });
        return taken.map(|part| (Version::V2, vec![part]));
    }
    let mut refused = Unavailable::None;
    let mut parts = Vec::new();
    for place in &places.legacy {
        match take_legacy(place, name) {
            Ok(part) => parts.push(part),
            Err(error) => refused = error,
        }
    }
    if parts.is_empty() { Err(refused) } else { Ok((Version::V1, parts)) }
}

fn take_legacy(place: &Place, name: &str) -> Result<Part, Unavailable> {
    let directory = place.own.join(name);
    make(&directory).map_err(|source| Unavailable::NotOurs { path: place.own.display().to_string(), source })?;
    Ok(Part { directory, controllers: place.controllers.clone() })
}

pub(super) fn take_unified(own: &Path, name: &str) -> Result<Part, Unavailable> {
    let path = || own.display().to_string();
    let not_ours = |source| Unavailable::NotOurs { path: path(), source };
    let controllers = offered(own);
    if controllers.is_empty() {
        return Err(Unavailable::NoControllers { path: path() });
    }
    let directory = own.join(name);
    make(&directory).map_err(not_ours)?;
    let enabled = match enable(own, &controllers) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => step_aside(own, name, &controllers),
        other => other,
    };
    let enabled = enabled.and_then(|()| enable(&directory, &controllers));
    if let Err(error) = enabled {
        let _ = fs::remove_dir(&directory);
        return Err(match error.raw_os_error() {
            Some(libc::EBUSY) => Unavailable::Occupied { path: path() },
            _ => not_ours(error),
        });
    }
    Ok(Part { directory, controllers })
}

/// Moves this process into a group of its own, as one that hands out controllers has no processes itself.
fn step_aside(own: &Path, name: &str, controllers: &[Controller]) -> io::Result<()> {
    let aside = own.join(format!("{name}{ASIDE}"));
    let pid = std::process::id().to_string();
    make(&aside)?;
    let moved = fs::write(aside.join(MEMBERS), &pid).and_then(|()| enable(own, controllers));
    if moved.is_err() {
        let _ = fs::write(own.join(MEMBERS), &pid);
        let _ = fs::remove_dir(&aside);
    }
    moved
}

fn make(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// The controllers that a group of version 2 may hand out, of those that are of use.
fn offered(directory: &Path) -> Vec<Controller> {
    let names = fs::read_to_string(directory.join(AVAILABLE)).unwrap_or_default();
    names.split_whitespace().filter_map(Controller::from_name).collect()
}

/// Hands controllers out to the groups below; those that are, are left alone.
fn enable(directory: &Path, controllers: &[Controller]) -> io::Result<()> {
    let file = directory.join(ENABLED);
    let enabled = fs::read_to_string(&file)?;
    let missing = controllers.iter().filter(|controller| !enabled.split_whitespace().any(|n| n == controller.name()));
    let words: Vec<String> = missing.map(|controller| format!("+{}", controller.name())).collect();
    if words.is_empty() { Ok(()) } else { fs::write(file, words.join(" ")) }
}
