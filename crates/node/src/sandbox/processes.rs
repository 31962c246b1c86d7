//! The processes of a container, as the machine sees them.

use std::fs;

use crate::usage::children;

/// A container with more processes than this is not looked at to its end.
const PROCESSES_MAX: usize = 100_000;

/// The processes that the container's first one, or one of those, has started.
pub(super) fn below(init: i32) -> Vec<i32> {
    let mut found = children(init);
    let mut next = 0;
    while next < found.len() && found.len() < PROCESSES_MAX {
        found.extend(children(found[next]));
        next += 1;
    }
    found
}

/// The processes that a supervisor answers for: those of a container, or of a program that is run in one.
pub(super) fn of(child: i32, is_container: bool) -> Vec<i32> {
    if is_container { all(child) } else { below(child).into_iter().chain([child]).collect() }
}

/// All processes in the container: also those that somebody else runs in it.
fn all(init: i32) -> Vec<i32> {
    let space = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    let Some(own) = space(&init.to_string()) else { return Vec::new() };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str().map(str::to_owned));
    let numbers = numbers.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    numbers.filter(|name| space(name).as_ref() == Some(&own)).filter_map(|name| name.parse().ok()).collect()
}
