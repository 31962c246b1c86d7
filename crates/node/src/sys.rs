//! Safe wrappers of the few kernel calls that neither std nor rustix offers safely; the only home of `unsafe` in Windlass.
#![expect(unsafe_code, reason = "raw system calls; every block states why it is sound")]

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use tokio::io::unix::AsyncFd;

/// A process that [`fork_into`] made.
#[derive(Debug)]
pub(crate) struct Forked {
    /// Its id as the caller sees it.
    pub(crate) pid: i32,
    /// Becomes readable when the process ends; immune to reuse of the id.
    pub(crate) pidfd: OwnedFd,
}

/// Forks into new namespaces (`CLONE_NEW*` flags); `None` in the child.
///
/// Must be called while the process has a single thread.
pub(crate) fn fork_into(namespaces: i32) -> io::Result<Option<Forked>> {
    let mut pidfd: RawFd = -1;
    let flags = i64::from(namespaces | libc::CLONE_PIDFD | libc::SIGCHLD);
    // SAFETY: without CLONE_VM this is fork; the kernel writes the pidfd to a live local; other arguments are null.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, &raw mut pidfd, 0_usize, 0_usize) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        // SAFETY: the kernel stored a new descriptor that nobody else owns.
        _ => Ok(Some(Forked { pid: pid as i32, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })),
    }
}

/// Gives this process mounts of its own, which begin as those of its parent.
pub(crate) fn leave_mounts() -> io::Result<()> {
    // SAFETY: takes a number; no other process shares what this one gives up.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) }.into()).map(drop)
}

/// Ends the process at once, without running destructors of the image it was forked from.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes any code and does not return.
    unsafe { libc::_exit(code) }
}

/// How a child ended, as a shell would say it: its exit code, or 128 + the signal.
pub(crate) fn exit_code(status: i32) -> i32 {
    if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) }
}

/// Reaps one ended child, if there is one: its id and [`exit_code`].
pub(crate) fn reap() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: the kernel writes to a live local.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then(|| (pid, exit_code(status)))
}

/// Sends a signal; a process that has ended already is no error.
pub(crate) fn signal(pid: i32, signal: i32) {
    // SAFETY: kill takes any numbers.
    unsafe { libc::kill(pid, signal) };
}

/// The signals that [`wait_signal`] takes in a container's first process.
#[derive(Clone, Copy)]
pub(crate) struct SignalSet(libc::sigset_t);

/// Blocks every signal and returns the set to wait for.
pub(crate) fn block_signals() -> SignalSet {
    // SAFETY: sigset_t is plain data; both calls only touch the local.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        SignalSet(set)
    }
}

/// Waits for the next blocked signal.
pub(crate) fn wait_signal(set: &SignalSet) -> i32 {
    let mut number = 0;
    // SAFETY: both pointers are to live data.
    unsafe { libc::sigwait(&raw const set.0, &raw mut number) };
    number
}

/// Gives a program about to be executed the signal state that it expects: all default, none blocked.
pub(crate) fn default_signals() {
    // SAFETY: SIG_DFL is a valid disposition; failure for SIGKILL and SIGSTOP is harmless.
    unsafe {
        for number in 1..=64 {
            libc::signal(number, libc::SIG_DFL);
        }
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Replaces the process by a program; returns only on failure.
pub(crate) fn exec(path: &CString, argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|s| s.as_ptr()).chain(std::iter::once(std::ptr::null())).collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both arrays are null-terminated and their strings outlive the call.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Makes `fd` the given standard descriptor (0, 1 or 2).
pub(crate) fn become_standard(fd: impl AsFd, number: RawFd) -> io::Result<()> {
    // SAFETY: dup2 takes any numbers; `fd` is open.
    check(unsafe { libc::dup2(fd.as_fd().as_raw_fd(), number) }.into()).map(drop)
}

/// Closes every descriptor from `first` on. Only for a process whose Rust owners of those never run again.
pub(crate) fn close_from(first: RawFd) {
    // SAFETY: the caller is a forked process that uses none of these descriptors afterwards.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
}

/// Marks every descriptor from `first` on close-on-exec.
pub(crate) fn cloexec_from(first: RawFd) {
    // SAFETY: changes flags only.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Sets user, group and supplementary groups of this process.
pub(crate) fn become_user(uid: u32, gid: u32, groups: &[u32]) -> io::Result<()> {
    // SAFETY: the slice is valid for its length; the others take plain numbers.
    unsafe {
        check(libc::setgroups(groups.len(), groups.as_ptr()).into())?;
        check(libc::setresgid(gid, gid, gid).into())?;
        check(libc::setresuid(uid, uid, uid).into())?;
    }
    Ok(())
}

/// Drops a capability from the bounding set; one that the kernel does not know is no error.
pub(crate) fn drop_bounding(capability: u32) {
    // SAFETY: plain numbers.
    unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(capability), 0, 0, 0) };
}

/// The user and group that this process acts as.
pub(crate) fn effective_ids() -> (u32, u32) {
    // SAFETY: cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Makes a mount (with everything below it, if `recursive`) read-only.
pub(crate) fn mount_read_only(mount: impl AsFd, recursive: bool) -> io::Result<()> {
    let attr = MountAttr { set: libc::MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, userns: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: an empty C string and a live struct of the size given.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    check(done).map(drop)
}

/// Installs a seccomp filter on this thread and returns the descriptor of its notifications.
pub(crate) fn install_filter(program: &[libc::sock_filter], flags: u64) -> io::Result<Option<OwnedFd>> {
    let program = libc::sock_fprog { len: program.len() as libc::c_ushort, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel only reads the program, which outlives the call.
    let fd =
        check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) })?;
    let listens = flags & libc::SECCOMP_FILTER_FLAG_NEW_LISTENER != 0;
    // SAFETY: with NEW_LISTENER the result is a new descriptor that nobody else owns.
    Ok(listens.then(|| unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
}

/// Lets a filter decide which packets a socket gets; one that it had goes.
pub(crate) fn filter_packets(socket: impl AsFd, program: &[libc::sock_filter]) -> io::Result<()> {
    // The kernel reads the program, which outlives the call.
    let program = libc::sock_fprog { len: program.len() as libc::c_ushort, filter: program.as_ptr().cast_mut() };
    set_option(socket, (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER), &program)
}

/// Lets a socket have all of its packets again; one without a filter is no error.
pub(crate) fn pass_packets(socket: impl AsFd) {
    let _ = set_option(socket, (libc::SOL_SOCKET, libc::SO_DETACH_FILTER), &0_i32);
}

/// One system call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notification {
    /// Names the waiting call.
    pub(crate) id: u64,
    /// The thread that waits.
    pub(crate) pid: u32,
    /// The number of the call.
    pub(crate) number: i32,
    /// Its arguments.
    pub(crate) args: [u64; 6],
}

/// Receives the next notification of a filter.
pub(crate) fn receive(listener: impl AsFd) -> io::Result<Notification> {
    // SAFETY: the kernel asks for a zeroed struct and fills it.
    let raw = unsafe {
        let mut raw: libc::seccomp_notif = zeroed();
        check(libc::ioctl(listener.as_fd().as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut raw).into())?;
        raw
    };
    Ok(Notification { id: raw.id, pid: raw.pid, number: raw.data.nr, args: raw.data.args })
}

/// True while the call of a notification still waits, so that its process id still means the same process.
pub(crate) fn still_waits(listener: impl AsFd, id: u64) -> bool {
    // SAFETY: the kernel reads a live u64.
    unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
}

/// What a waiting call is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Its result is this errno (0: success).
    Errno(i32),
    /// It did so much of what it was to do.
    Done(usize),
    /// The kernel goes on with the call as it was made.
    Continue,
}

/// Answers a notification; a caller that is gone is no error.
pub(crate) fn answer(listener: impl AsFd, id: u64, answer: Answer) {
    let (val, error, flags) = match answer {
        Answer::Errno(errno) => (0, -errno, 0),
        Answer::Done(count) => (count as i64, 0, 0),
        Answer::Continue => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
    };
    let response = libc::seccomp_notif_resp { id, val, error, flags };
    // SAFETY: the kernel reads a live struct.
    unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
}

/// Copies memory of another process.
pub(crate) fn read_memory(pid: u32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the local vector is the exclusive buffer; the remote one is checked by the kernel.
    let read = unsafe { libc::process_vm_readv(pid as i32, &raw const local, 1, &raw const remote, 1, 0) };
    check(read as i64).map(|read| read as usize)
}

/// Lets a socket have a local address while its port is chosen at connect, so that ports are not used up.
pub(crate) fn choose_port_at_connect(socket: impl AsFd) -> io::Result<()> {
    set_option(socket, (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT), &1_i32)
}

/// Sets an option of a socket to what the kernel reads as such.
fn set_option<T>(socket: impl AsFd, (level, option): (libc::c_int, libc::c_int), value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads a live value of the size given.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(done.into()).map(drop)
}

/// A descriptor whose readiness the runtime watches.
pub(crate) fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor for as long as it lives.
    unsafe { AsyncFd::register(descriptor) }.map_err(Into::into)
}

fn check(result: i64) -> io::Result<i64> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
