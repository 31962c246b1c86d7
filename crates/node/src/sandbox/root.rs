//! Builds the file tree of a container in its own mount namespace.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};

use super::beneath;
use super::host;
use super::point;
use super::spec::{ContainerSpec, Mount, Root, Source};
use crate::sys;

/// Device nodes that every program may expect.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// A step that failed while the files of a container were put together.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub(crate) struct RootError {
    step: String,
    source: io::Error,
}

/// Adds the failed step to an error.
pub(crate) trait Step<T> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T, RootError>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T, RootError> {
        self.map_err(|source| RootError { step: step(), source: source.into() })
    }
}

/// Builds the tree that `spec` describes and makes it the root of this process.
pub(crate) fn build(spec: &ContainerSpec) -> Result<(), RootError> {
    let root = open_path(&assemble(spec)?)?;
    system_mounts(&root)?;
    for mount in by_depth(&spec.mounts) {
        attach(&root, mount)?;
    }
    enter(&root, spec.read_only_root)
}

/// Mounts in the order in which they are made: what is below another comes after it.
pub(crate) fn by_depth(mounts: &[Mount]) -> Vec<&Mount> {
    let mut mounts: Vec<&Mount> = mounts.iter().collect();
    mounts.sort_by_key(|mount| mount.target.components().count());
    mounts
}

/// Puts the files of a container together, without what is mounted into them; where they are.
pub(crate) fn assemble(spec: &ContainerSpec) -> Result<PathBuf, RootError> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .step(|| "make mounts private".to_owned())?;
    let layers = Layers::new(&spec.scratch)?;
    match &spec.root {
        Root::Image(lower) => image_root(lower, &layers, &spec.mounts)?,
        Root::Host => host::build(&layers, spec)?,
    }
    Ok(layers.root)
}

/// Tries whether mounts are possible at all, for the capability probe.
pub(crate) fn try_private_mounts(scratch: &Path) -> Result<(), RootError> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .step(|| "make mounts private".to_owned())?;
    let layers = Layers::new(scratch)?;
    rustix::mount::mount("tmpfs", &layers.root, "tmpfs", MountFlags::empty(), None).step(|| "mount".to_owned())
}

/// Tries whether a writable layer is possible in `scratch`, for the capability probe.
pub(crate) fn try_overlay(scratch: &Path) -> Result<(), RootError> {
    let layers = Layers::new(scratch)?;
    let lower = scratch.join("lower");
    fs::create_dir_all(&lower).step(|| "create a directory".to_owned())?;
    overlay(&lower, &layers.upper, &layers.work, &layers.root)
}

/// The directories of one container run.
pub(crate) struct Layers {
    pub(crate) root: PathBuf,
    upper: PathBuf,
    work: PathBuf,
}

impl Layers {
    fn new(scratch: &Path) -> Result<Self, RootError> {
        let layers = Self { root: scratch.join("root"), upper: scratch.join("upper"), work: scratch.join("work") };
        for directory in [&layers.root, &layers.upper, &layers.work] {
            fs::create_dir_all(directory).step(|| format!("create {}", directory.display()))?;
        }
        Ok(layers)
    }
}

fn image_root(lower: &Path, layers: &Layers, mounts: &[Mount]) -> Result<(), RootError> {
    for system in ["/proc", "/sys", "/dev", "/tmp"] {
        point::prepare(lower, &layers.upper, Path::new(system), point::Kind::Directory)?;
    }
    for mount in mounts {
        point::prepare(lower, &layers.upper, &mount.target, point::Kind::of(&mount.source))?;
    }
    let overlaid = overlay(lower, &layers.upper, &layers.work, &layers.root);
    let Err(error) = overlaid else { return Ok(()) };
    // Without overlays the image is shown as it is; a missing mount point is then reported by name.
    tracing::debug!(%error, "no writable layer");
    let tree = open_tree(lower)?;
    sys::mount_read_only(&tree, true).step(|| "make the image read-only".to_owned())?;
    move_to(&tree, &open_path(&layers.root)?).step(|| format!("mount the image {}", lower.display()))
}

/// Paths are given as descriptors, so that no character in them can be taken for an option.
pub(crate) fn overlay(lower: &Path, upper: &Path, work: &Path, target: &Path) -> Result<(), RootError> {
    let [lower, upper, work] = [open_path(lower)?, open_path(upper)?, open_path(work)?];
    let path = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let options = format!("lowerdir={},upperdir={},workdir={},userxattr", path(&lower), path(&upper), path(&work));
    let options = std::ffi::CString::new(options).expect("descriptor paths have no NUL");
    rustix::mount::mount("overlay", target, "overlay", MountFlags::empty(), Some(options.as_c_str()))
        .step(|| format!("mount a writable layer at {}", target.display()))
}

fn system_mounts(root: &OwnedFd) -> Result<(), RootError> {
    let proc_point = point::open(root, Path::new("/proc"), point::Kind::Directory)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    if rustix::mount::mount("proc", descriptor_path(&proc_point), "proc", flags, None).is_err() {
        // Where parts of /proc are hidden (a container engine does that) the kernel refuses a new one.
        move_to(&open_tree(Path::new("/proc"))?, &proc_point).step(|| "mount /proc".to_owned())?;
    }
    let sys_tree = open_tree(Path::new("/sys"))?;
    let _ = sys::mount_read_only(&sys_tree, true);
    move_to(&sys_tree, &point::open(root, Path::new("/sys"), point::Kind::Directory)?)
        .step(|| "mount /sys".to_owned())?;
    devices(root)
}

fn devices(root: &OwnedFd) -> Result<(), RootError> {
    let dev = point::open(root, Path::new("/dev"), point::Kind::Directory)?;
    let flags = MountFlags::NOSUID;
    rustix::mount::mount("tmpfs", descriptor_path(&dev), "tmpfs", flags, Some(c"mode=0755,size=65536k"))
        .step(|| "mount /dev".to_owned())?;
    for name in DEVICES {
        let device = Path::new("/dev").join(name);
        let Ok(tree) = open_tree(&device) else { continue };
        let target = point::open(root, &device, point::Kind::File)?;
        move_to(&tree, &target).step(|| format!("mount {}", device.display()))?;
    }
    let dev = point::open(root, Path::new("/dev"), point::Kind::Directory)?;
    for (to, name) in DEVICE_LINKS {
        rustix::fs::symlinkat(to, &dev, name).step(|| format!("link /dev/{name}"))?;
    }
    let pts = point::open(root, Path::new("/dev/pts"), point::Kind::Directory)?;
    let options = c"newinstance,ptmxmode=0666,mode=0620";
    let _ = rustix::mount::mount("devpts", descriptor_path(&pts), "devpts", flags, Some(options));
    let shm = point::open(root, Path::new("/dev/shm"), point::Kind::Directory)?;
    rustix::mount::mount("tmpfs", descriptor_path(&shm), "tmpfs", flags, Some(c"mode=1777"))
        .step(|| "mount /dev/shm".to_owned())
}

fn attach(root: &OwnedFd, mount: &Mount) -> Result<(), RootError> {
    let target = point::open(root, &mount.target, point::Kind::of(&mount.source))?;
    mount_at(mount, &target)
}

/// Mounts at `place`, which is made, what is later mounted from there.
pub(crate) fn stage(mount: &Mount, place: &Path) -> Result<(), RootError> {
    let made = match point::Kind::of(&mount.source) {
        point::Kind::Directory => fs::create_dir_all(place),
        point::Kind::File => fs::write(place, ""),
    };
    made.step(|| format!("create {}", place.display()))?;
    mount_at(mount, &open_path(place)?)
}

fn mount_at(mount: &Mount, target: &OwnedFd) -> Result<(), RootError> {
    let tree = match &mount.source {
        Source::Bind(source) => open_tree(source)?,
        Source::Beneath { volume, path } => {
            beneath::open_tree(volume, path).step(|| format!("open {} in its volume", path.display()))?
        }
        Source::Memory(size) => return memory(target, *size).step(|| format!("mount {}", mount.target.display())),
    };
    if mount.read_only {
        sys::mount_read_only(&tree, true).step(|| format!("make {} read-only", mount.target.display()))?;
    }
    move_to(&tree, target).step(|| format!("mount {}", mount.target.display()))
}

fn memory(target: &OwnedFd, size: Option<u64>) -> Result<(), Errno> {
    let options = size.map_or_else(|| "mode=0777".to_owned(), |size| format!("mode=0777,size={size}"));
    let options = std::ffi::CString::new(options).expect("numbers have no NUL");
    rustix::mount::mount("tmpfs", descriptor_path(target), "tmpfs", MountFlags::empty(), Some(options.as_c_str()))
}

fn enter(root: &OwnedFd, read_only: bool) -> Result<(), RootError> {
    rustix::process::fchdir(root).step(|| "enter the root".to_owned())?;
    rustix::process::pivot_root(".", ".").step(|| "change the root".to_owned())?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).step(|| "leave the host's root".to_owned())?;
    rustix::process::chdir("/").step(|| "enter the root".to_owned())?;
    if read_only {
        sys::mount_read_only(open_path(Path::new("/"))?, false).step(|| "make the root read-only".to_owned())?;
    }
    Ok(())
}

pub(crate) fn open_path(path: &Path) -> Result<OwnedFd, RootError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).step(|| format!("open {}", path.display()))
}

pub(crate) fn open_tree(path: &Path) -> Result<OwnedFd, RootError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    rustix::mount::open_tree(CWD, path, flags).step(|| format!("open {}", path.display()))
}

pub(crate) fn move_to(tree: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree.as_fd(), "", target.as_fd(), "", flags)
}

/// A path that leads to what a descriptor is open on.
fn descriptor_path(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Opens a path as a program whose root is `root` would see it: links cannot lead outside.
pub(crate) fn open_in_root(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS)
}
