//! What every container of runc has of the kernel's own files, and what is hidden of them.

use std::path::PathBuf;

use super::bundle::MountPoint;

/// Files that tell of the machine or change it.
pub(super) const MASKED: [&str; 10] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/firmware",
];

/// Files of the machine that can be read.
pub(super) const READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// What is mounted in every container, in this order; `writable` for those that may change the machine.
pub(super) fn mounts(writable: bool) -> Vec<MountPoint> {
    let mount = |destination: &str, kind: &'static str, options: &[&str]| MountPoint {
        destination: PathBuf::from(destination),
        kind,
        source: PathBuf::from(kind),
        options: options.iter().map(|&option| option.to_owned()).collect(),
    };
    let access = if writable { "rw" } else { "ro" };
    vec![
        mount("/proc", "proc", &["nosuid", "noexec", "nodev"]),
        mount("/dev", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
        mount("/dev/pts", "devpts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]),
        mount("/dev/mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
        mount("/dev/shm", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777"]),
        mount("/sys", "sysfs", &["nosuid", "noexec", "nodev", access]),
        mount("/sys/fs/cgroup", "cgroup", &["nosuid", "noexec", "nodev", "relatime", access]),
    ]
}
