//! Groups as the kernel of this machine has them; where it has none, the test says so and passes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use super::group::{self, Controller, Part, Version};
use super::tree::{Cgroups, clear, take_unified};
use super::{Group, Limits};

fn sleeper() -> Child {
    Command::new("sleep").arg("1000").spawn().unwrap()
}

fn limits() -> Limits {
    Limits { memory: Some(64 << 20), cpu: Some(500), share: 250 }
}

/// Ends as a process does that was killed.
fn killed(mut child: Child) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()) == Some(libc::SIGKILL)
}

#[test]
fn a_group_takes_processes_in_and_ends_them() {
    let node = tempfile::tempdir().unwrap();
    let cgroups = match Cgroups::begin(node.path(), false) {
        Ok(cgroups) => cgroups,
        Err(why) => return println!("skipped: {why}"),
    };
    let group = cgroups.make(("uid", "c", 0), &limits(), &limits()).unwrap();
    let child = sleeper();
    group.door().unwrap().let_in(i32::try_from(child.id()).unwrap()).unwrap();
    if let Some(usage) = group.usage() {
        assert_eq!(usage.processes, 1);
        assert!(usage.memory < 64 << 20);
    }
    assert_eq!(group.memory_kills(), 0);
    group.change(&Limits { memory: Some(128 << 20), ..limits() }).unwrap();
    group.change(&Limits { memory: Some(32 << 20), ..limits() }).unwrap();
    cgroups.change_pod("uid", &Limits { memory: Some(96 << 20), ..limits() }).unwrap();
    let list = fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap();
    assert!(list.contains("/uid/c.0"), "{list}");
    let next = cgroups.make(("uid", "c", 1), &limits(), &limits()).unwrap();
    assert!(killed(child), "a new run ends what is left of the last");
    assert!(group.door().is_err() && next.remove());
    cgroups.end();
}

#[test]
fn groups_of_a_killed_node_are_found_and_removed() {
    let node = tempfile::tempdir().unwrap();
    let cgroups = match Cgroups::begin(node.path(), false) {
        Ok(cgroups) => cgroups,
        Err(why) => return println!("skipped: {why}"),
    };
    let [dead, alive] = ["dead", "alive"].map(|uid| cgroups.make((uid, "c", 0), &limits(), &limits()).unwrap());
    let children = [&dead, &alive].map(|group| {
        let child = sleeper();
        group.door().unwrap().let_in(i32::try_from(child.id()).unwrap()).unwrap();
        child
    });
    let next = Cgroups::begin(node.path(), false).unwrap();
    next.sweep(&|uid| uid == "alive");
    let [of_dead, of_alive] = children;
    assert!(killed(of_dead));
    assert!(dead.door().is_err(), "its group is gone");
    assert!(alive.door().is_ok(), "the other is found again");
    clear(node.path());
    assert!(killed(of_alive) && alive.door().is_err());
}

#[test]
fn the_kernel_ends_a_group_of_version_2_at_once() {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point = mounts.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|line| line.split(' ').nth(4));
    let Some(point) = point.map(Path::new) else { return println!("skipped: there is no version 2 here") };
    let directory = point.join(format!("windlass-test-{}", std::process::id()));
    let parts = vec![Part { directory: directory.clone(), controllers: Vec::new() }];
    let group = match Group::make(Version::V2, parts, &limits()) {
        Ok(group) => group,
        Err(why) => return println!("skipped: {why}"),
    };
    let child = sleeper();
    group.door().unwrap().let_in(i32::try_from(child.id()).unwrap()).unwrap();
    assert!(group::remove(&directory) && killed(child));
    assert!(!directory.exists());
}

/// What the kernel would see, in a directory that stands in for a hierarchy with controllers.
#[test]
fn controllers_of_version_2_are_handed_down() {
    let top = tempfile::tempdir().unwrap();
    fs::write(top.path().join("cgroup.controllers"), "cpuset cpu io memory pids\n").unwrap();
    fs::write(top.path().join("cgroup.subtree_control"), "memory\n").unwrap();
    let below = top.path().join("windlass-1");
    fs::create_dir(&below).unwrap();
    fs::write(below.join("cgroup.subtree_control"), "").unwrap();
    let root = take_unified(top.path(), "windlass-1").unwrap();
    assert_eq!(root.controllers, [Controller::Cpu, Controller::Memory, Controller::Processes]);
    assert_eq!(fs::read_to_string(top.path().join("cgroup.subtree_control")).unwrap(), "+cpu +pids");
    assert_eq!(fs::read_to_string(below.join("cgroup.subtree_control")).unwrap(), "+cpu +memory +pids");

    let directory = below.join("uid.c.0");
    let parts = vec![Part { directory: directory.clone(), controllers: root.controllers }];
    let group = Group::make(Version::V2, parts, &limits()).unwrap();
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    assert_eq!([read("memory.max"), read("cpu.max"), read("pids.max")], ["67108864", "50000 100000", "16384"]);
    fs::write(directory.join("memory.events"), "low 0\noom 3\noom_kill 2\noom_group_kill 1\n").unwrap();
    fs::write(directory.join("memory.current"), "5000\n").unwrap();
    fs::write(directory.join("memory.stat"), "anon 1\ninactive_file 2000\n").unwrap();
    fs::write(directory.join("cpu.stat"), "usage_usec 7000\nuser_usec 1\n").unwrap();
    fs::write(directory.join("cgroup.procs"), "1\n2\n").unwrap();
    assert_eq!(group.memory_kills(), 2);
    let usage = group.usage().unwrap();
    assert_eq!((usage.memory, usage.cpu.as_millis(), usage.processes), (3000, 7, 2));
}
