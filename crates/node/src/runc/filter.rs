//! The filter of system calls for containers that want one (`seccompProfile: RuntimeDefault`).
//!
//! It refuses what changes the machine rather than the container, and what has been a way out of containers. Everything else is left to the kernel, so that no program breaks for a call that is
//! newer than this list.

use serde::Serialize;

/// Refused with `EPERM`.
const REFUSED: [&str; 60] = [
    "acct",
    "add_key",
    "bpf",
    "clock_adjtime",
    "clock_settime",
    "create_module",
    "delete_module",
    "fanotify_init",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "get_kernel_syms",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "name_to_handle_at",
    "nfsservctl",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pivot_root",
    "process_madvise",
    "query_module",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "request_key",
    "set_mempolicy",
    "setdomainname",
    "sethostname",
    "setns",
    "settimeofday",
    "stime",
    "swapoff",
    "swapon",
    "_sysctl",
    "sysfs",
    "umount",
    "umount2",
    "unshare",
    "uselib",
    "userfaultfd",
    "ustat",
    "vhangup",
    "vm86",
    "vm86old",
];
/// Refused as if the kernel did not know it: what it does cannot be told from its arguments, and programs fall back on `clone`.
const UNKNOWN: [&str; 1] = ["clone3"];
/// `clone` with one of these makes namespaces: all `CLONE_NEW` but that of time, which no `clone` can make.
const NAMESPACES: u64 = 0x7e02_0000;
const PERMISSION: u32 = libc::EPERM as u32;
const NOT_THERE: u32 = libc::ENOSYS as u32;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURES: &[&str] = &["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"];
#[cfg(target_arch = "aarch64")]
const ARCHITECTURES: &[&str] = &["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"];

/// A filter as runtimes read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Filter {
    default_action: &'static str,
    architectures: &'static [&'static str],
    syscalls: Vec<Rule>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    names: &'static [&'static str],
    action: &'static str,
    errno_ret: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<[Argument; 1]>,
}

/// What an argument is under a mask (`value`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Argument {
    index: u32,
    value: u64,
    value_two: u64,
    op: &'static str,
}

/// The filter.
pub(super) fn filter() -> Filter {
    let refuse =
        |names: &'static [&'static str], errno_ret| Rule { names, action: "SCMP_ACT_ERRNO", errno_ret, args: None };
    // One rule for each flag: a rule can only ask whether all of some bits are set.
    let flags = (0..64).map(|bit| 1_u64 << bit).filter(|flag| NAMESPACES & flag != 0);
    let namespaces = flags.map(|flag| Rule {
        args: Some([Argument { index: 0, value: flag, value_two: flag, op: "SCMP_CMP_MASKED_EQ" }]),
        ..refuse(&["clone"], PERMISSION)
    });
    let syscalls = [refuse(&REFUSED, PERMISSION), refuse(&UNKNOWN, NOT_THERE)].into_iter().chain(namespaces);
    Filter { default_action: "SCMP_ACT_ALLOW", architectures: ARCHITECTURES, syscalls: syscalls.collect() }
}
