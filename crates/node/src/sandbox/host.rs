//! The host's own files as the root of a container: readable, and below a writable layer where the kernel allows it.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::MountFlags;

use super::point;
use super::root::{Layers, RootError, Step, move_to, open_path, open_tree, overlay};
use super::spec::ContainerSpec;
use crate::sys;

/// What a container may write below the directory that holds the node's own.
const MEMORY_LAYER: &CStr = c"mode=0755,size=256m";
/// Directories that are for what runs: where one cannot be a layer, a container gets its own, in memory. Others can then only
/// be read. On most machines something is mounted below `/run`, and every Pod has its token there.
const OWN: [(&str, &CStr); 2] = [("/tmp", c"mode=1777,size=256m"), ("/run", c"mode=0755,size=64m")];
/// Directories that every container gets anew.
const SYSTEM: [&str; 3] = ["proc", "sys", "dev"];

/// Puts the host's top-level directories together in a new root.
pub(crate) fn build(layers: &Layers, spec: &ContainerSpec) -> Result<(), RootError> {
    let host = Host {
        // Read before anything is mounted here.
        mounts: fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(),
        scratch: &spec.scratch,
        memory: spec.scratch.join("memory"),
        program: Path::new(spec.process.argv.first().map_or("", String::as_str)),
    };
    mount_memory(&layers.root, c"mode=0755")?;
    fs::create_dir_all(&host.memory).step(|| format!("create {}", host.memory.display()))?;
    mount_memory(&host.memory, MEMORY_LAYER)?;
    for entry in fs::read_dir("/").step(|| "read /".to_owned())?.flatten() {
        let (name, source) = (entry.file_name(), entry.path());
        let Ok(kind) = entry.file_type() else { continue };
        let target = layers.root.join(&name);
        if kind.is_symlink() {
            let to = fs::read_link(&source).step(|| format!("read {}", source.display()))?;
            std::os::unix::fs::symlink(to, target).step(|| format!("link {}", source.display()))?;
        } else if kind.is_dir() && !SYSTEM.iter().any(|system| name == *system) {
            fs::create_dir(&target).step(|| format!("create {}", target.display()))?;
            host.show(&name, &source, &target)?;
        }
    }
    Ok(())
}

struct Host<'a> {
    mounts: String,
    scratch: &'a Path,
    memory: PathBuf,
    program: &'a Path,
}

impl Host<'_> {
    fn show(&self, name: &OsStr, source: &Path, target: &Path) -> Result<(), RootError> {
        // A layer cannot lie inside what it covers: for that one tree it is kept in memory.
        let base = if self.scratch.starts_with(source) { &self.memory } else { self.scratch };
        let (upper, work) = (base.join("upper").join(name), base.join("work").join(name));
        if !has_mounts_below(&self.mounts, source) && layer(source, &upper, &work, target).is_ok() {
            return Ok(());
        }
        match OWN.iter().find(|(own, _)| source == Path::new(own)) {
            Some((_, options)) => self.own(source, target, options),
            None => bind_read_only(source, target),
        }
    }

    /// A directory of the container's own; what the program itself needs of the host's is shown in it.
    fn own(&self, source: &Path, target: &Path, options: &CStr) -> Result<(), RootError> {
        mount_memory(target, options)?;
        let Ok(inside) = self.program.strip_prefix(source) else { return Ok(()) };
        let Some(first) = inside.components().next() else { return Ok(()) };
        let (source, place) = (source.join(first), target.join(first));
        let made = if source.is_dir() { fs::create_dir(&place) } else { fs::write(&place, "") };
        made.step(|| format!("create {}", place.display()))?;
        bind_read_only(&source, &place)
    }
}

fn layer(source: &Path, upper: &Path, work: &Path, target: &Path) -> Result<(), RootError> {
    for directory in [upper, work] {
        fs::create_dir_all(directory).step(|| format!("create {}", directory.display()))?;
    }
    if source == Path::new("/var") {
        point::scratch_directory(&upper.join("tmp"))?;
    }
    if source == Path::new("/tmp") {
        point::scratch_directory(upper)?;
    }
    overlay(source, upper, work, target)
}

/// Tells from `/proc/self/mountinfo` whether something is mounted below a directory: such a tree cannot be a layer.
fn has_mounts_below(mountinfo: &str, directory: &Path) -> bool {
    let points = mountinfo.lines().filter_map(|line| line.split(' ').nth(4));
    points.map(Path::new).any(|point| point.starts_with(directory) && point != directory)
}

fn bind_read_only(source: &Path, target: &Path) -> Result<(), RootError> {
    let tree = open_tree(source)?;
    sys::mount_read_only(&tree, true).step(|| format!("make {} read-only", source.display()))?;
    move_to(&tree, &open_path(target)?).step(|| format!("mount {}", source.display()))
}

fn mount_memory(target: &Path, options: &CStr) -> Result<(), RootError> {
    rustix::mount::mount("tmpfs", target, "tmpfs", MountFlags::empty(), Some(options))
        .step(|| format!("mount {}", target.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_with_mounts_below_is_no_layer() {
        let info = "22 1 254:0 / / rw - ext4 /dev/vda rw\n23 22 0:5 / /run/lock rw - tmpfs x rw\n24 22 0:6 / /tmp rw - tmpfs x rw\n";
        assert!(has_mounts_below(info, Path::new("/run")));
        assert!(!has_mounts_below(info, Path::new("/tmp")));
        assert!(!has_mounts_below(info, Path::new("/usr")));
    }
}
