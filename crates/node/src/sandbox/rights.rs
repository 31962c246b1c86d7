//! What a program may do beyond what its user may.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The kernel's capabilities; the place of each is its number.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// What container engines leave a program by default.
const USUAL: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SYS_CHROOT",
    "MKNOD",
    "AUDIT_WRITE",
    "SETFCAP",
];

/// A right that root can have or lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Capability(u8);

impl Capability {
    /// All that are known.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..NAMES.len()).filter_map(|number| u8::try_from(number).ok()).map(Self)
    }

    /// The capability of a name, with or without `CAP_`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        let name = name.strip_prefix("CAP_").unwrap_or(&name);
        Self::all().find(|capability| NAMES[usize::from(capability.0)] == name)
    }

    /// The kernel's number of it.
    pub fn number(self) -> u32 {
        self.0.into()
    }

    /// Its name as runtimes write it.
    pub fn name(self) -> String {
        format!("CAP_{}", NAMES[usize::from(self.0)])
    }
}

/// How much of the kernel a program is kept from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Guard {
    /// From what only the machine's administrator needs.
    #[default]
    Usual,
    /// And from system calls that few programs need.
    Strict,
    /// From nothing.
    Absent,
}

/// What a program may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// What it may do where it is root.
    pub capabilities: BTreeSet<Capability>,
    /// Whether programs that it starts may get rights that it does not have.
    pub escalation: bool,
    /// What it is kept from.
    pub guard: Guard,
}

impl Default for Rights {
    fn default() -> Self {
        let capabilities = USUAL.iter().filter_map(|name| Capability::from_name(name)).collect();
        Self { capabilities, escalation: true, guard: Guard::Usual }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_kernels_numbers() {
        let check = |name: &str, expect: Option<u32>| {
            assert_eq!(Capability::from_name(name).map(Capability::number), expect, "{name}");
        };
        check("CHOWN", Some(0));
        check("cap_net_admin", Some(12));
        check("SYS_ADMIN", Some(21));
        check("SETFCAP", Some(31));
        check("CHECKPOINT_RESTORE", Some(40));
        check("ALL", None);
        let usual: Vec<u32> = Rights::default().capabilities.into_iter().map(Capability::number).collect();
        assert_eq!(usual, [0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31]);
    }
}
