//! Where this process is in the hierarchies of control groups, as the kernel's own tables tell it.

use std::path::{Path, PathBuf};

use super::group::Controller;

/// A place in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The group that this process is in.
    pub(super) own: PathBuf,
    /// The first group of the hierarchy that can be seen.
    pub(super) top: PathBuf,
    /// What is controlled here; for version 2 the groups themselves tell.
    pub(super) controllers: Vec<Controller>,
}

/// The places of this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) unified: Option<Place>,
    pub(super) legacy: Vec<Place>,
}

/// Reads `/proc/self/cgroup` and `/proc/self/mountinfo`.
pub(super) fn places(cgroup: &str, mountinfo: &str) -> Places {
    let mut places = Places::default();
    for mount in mountinfo.lines().filter_map(Mount::read) {
        let controllers: Vec<Controller> = mount.options.split(',').filter_map(Controller::from_name).collect();
        let own = match (mount.kind, controllers.first()) {
            ("cgroup2", _) => path_of(cgroup, ""),
            ("cgroup", Some(first)) => path_of(cgroup, first.name()),
            _ => continue,
        };
        let Some(below) = own.and_then(|own| Path::new(own).strip_prefix(mount.root).ok()) else { continue };
        let place = Place { own: mount.point.join(below), top: mount.point, controllers };
        let known = |place: &Place| places.legacy.iter().any(|other| other.controllers == place.controllers);
        if mount.kind == "cgroup2" {
            places.unified.get_or_insert(place);
        } else if !known(&place) {
            places.legacy.push(place);
        }
    }
    places
}

/// A line of `/proc/self/mountinfo`.
struct Mount<'a> {
    root: &'a str,
    point: PathBuf,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let mut after = after.split(' ');
        let (root, point) = (before.next()?, before.next()?);
        let (kind, _device, options) = (after.next()?, after.next()?, after.next()?);
        Some(Self { root, point: PathBuf::from(point.replace("\\040", " ")), kind, options })
    }
}

/// The path of this process in the hierarchy of a controller; of version 2 for no name.
fn path_of<'a>(cgroup: &'a str, controller: &str) -> Option<&'a str> {
    cgroup.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_is_one_place() {
        let cgroup = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-7.scope\n";
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let found = places(cgroup, mounts);
        let unified = found.unified.unwrap();
        let own = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/run-7.scope";
        assert_eq!((unified.own.as_path(), unified.top.as_path()), (Path::new(own), Path::new("/sys/fs/cgroup")));
        assert!(found.legacy.is_empty());
    }

    #[test]
    fn version_1_has_a_place_for_each_controller() {
        let cgroup = "5:cpu,cpuacct:/\n4:memory:/docker/x/inner\n9:name=systemd:/\n0::/\n";
        let mounts = "40 30 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            41 30 0:31 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            42 30 0:32 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
            43 30 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
            44 30 0:30 / /elsewhere rw - cgroup cgroup rw,cpu,cpuacct\n";
        let found = places(cgroup, mounts);
        let own: Vec<&Path> = found.legacy.iter().map(|place| place.own.as_path()).collect();
        assert_eq!(own, [Path::new("/sys/fs/cgroup/cpu,cpuacct"), Path::new("/sys/fs/cgroup/memory/inner")]);
        assert_eq!(found.legacy[0].controllers, [Controller::Cpu, Controller::Accounting]);
        assert_eq!(found.unified.unwrap().own, Path::new("/sys/fs/cgroup/unified"));
    }

    #[test]
    fn a_group_outside_of_what_is_mounted_is_no_place() {
        let mounts = "41 30 0:31 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(places("0::/elsewhere\n", mounts), Places::default());
    }
}
