//! The seccomp program of a container: which socket calls ask the supervisor, which are answered in the kernel.

use libc::sock_filter;

/// Offsets into `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;
/// The halves of the fifth argument, which for `sendto` is where to.
const DESTINATION: [u32; 2] = [48, 52];

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xC000_00B7;

const NOTIFY: u32 = libc::SECCOMP_RET_USER_NOTIF;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

/// Calls that change identity or ownership. Where only one user is mapped they can only fail, while programs that
/// call them as root take failure for fatal; succeeding without effect is what they can live with.
const IDENTITY: [libc::c_long; 11] = [
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_fchown,
    libc::SYS_fchownat,
];
/// Older forms of the same, which only older architectures have.
#[cfg(target_arch = "x86_64")]
const IDENTITY_OLD: &[libc::c_long] = &[libc::SYS_chown, libc::SYS_lchown];
#[cfg(target_arch = "aarch64")]
const IDENTITY_OLD: &[libc::c_long] = &[];

/// What a filter asks its supervisor about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Nothing.
    Nothing,
    /// `bind`, `connect` and `sendto` somewhere; IPv6 is hidden, which has no range of loopback addresses to confine to.
    Sockets,
    /// Writes to files as well, so that they can be made to fail.
    SocketsAndFiles,
}

/// What a container's filter has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filter {
    /// What it asks about.
    pub(crate) asks: Asks,
    /// Let changes of identity succeed without effect.
    pub(crate) pretend_identity: bool,
}

/// Calls that write to a file, with the argument that says to which.
pub(super) const WRITES: [(libc::c_long, usize); 8] = [
    (libc::SYS_write, 0),
    (libc::SYS_pwrite64, 0),
    (libc::SYS_writev, 0),
    (libc::SYS_pwritev, 0),
    (libc::SYS_pwritev2, 0),
    (libc::SYS_fallocate, 0),
    (libc::SYS_sendfile, 0),
    (libc::SYS_copy_file_range, 2),
];
/// Calls that wait until a file is on the disk.
pub(super) const FLUSHES: [(libc::c_long, usize); 2] = [(libc::SYS_fsync, 0), (libc::SYS_fdatasync, 0)];

impl Filter {
    /// The program, or none when there is nothing to do.
    pub(crate) fn program(self) -> Option<Vec<sock_filter>> {
        let confine = self.asks != Asks::Nothing;
        if !confine && !self.pretend_identity {
            return None;
        }
        let mut rules = Vec::new();
        if confine {
            rules.push((libc::SYS_bind, NOTIFY));
            rules.push((libc::SYS_connect, NOTIFY));
            // io_uring can bind and connect behind the filter's back; container engines refuse it as well.
            rules.push((libc::SYS_io_uring_setup, errno(libc::ENOSYS)));
        }
        if self.asks == Asks::SocketsAndFiles {
            rules.extend(WRITES.iter().chain(&FLUSHES).map(|(number, _)| (*number, NOTIFY)));
        }
        if self.pretend_identity {
            rules.extend(IDENTITY.iter().chain(IDENTITY_OLD).map(|&number| (number, errno(0))));
        }
        let mut program = vec![load(ARCH), jump_if(NATIVE, 1, 0), give(ALLOW), load(NUMBER)];
        for (number, action) in rules {
            program.push(jump_if(number as u32, 0, 1));
            program.push(give(action));
        }
        if confine {
            // Without a destination it is only another way to write.
            let [low, high] = DESTINATION;
            program.push(jump_if(libc::SYS_sendto as u32, 0, 6));
            program.extend([load(low), jump_if(0, 0, 3), load(high), jump_if(0, 0, 1), give(ALLOW), give(NOTIFY)]);
            program.push(jump_if(libc::SYS_socket as u32, 0, 3));
            program.push(load(FIRST_ARGUMENT));
            program.push(jump_if(libc::AF_INET6 as u32, 0, 1));
            program.push(give(errno(libc::EAFNOSUPPORT)));
        }
        program.push(give(ALLOW));
        Some(program)
    }
}

fn errno(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | number as u32
}

pub(super) fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

pub(super) fn jump_if(value: u32, equal: u8, other: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, equal, other, value)
}

pub(super) fn give(action: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, action)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}
