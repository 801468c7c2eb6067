// SPDX-License-Identifier: Apache-2.0
//! The system calls that each kind of thread may make. docs/security.md has the same table.
//!
//! Calls of the dynamic loader and of the start are missing, because filters are installed afterwards.

use super::thread_kind::ThreadKind::{self, Control, Log, Metrics, Reload, Store, Task, Worker};

/// A system call, the threads that may make it, and the limit on its arguments.
#[derive(Clone, Copy, Debug)]
pub struct AllowedCall {
    /// Name of the call.
    pub name: &'static str,
    /// Number of the call.
    pub number: i64,
    /// Threads that may make the call.
    pub threads: &'static [ThreadKind],
    /// Limit on an argument.
    pub limit: ArgumentLimit,
}

/// Limit on an argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentLimit {
    /// No limit.
    Any,
    /// The argument at this position has one of these values. The names are for people.
    OneOf(u8, &'static [(u64, &'static str)]),
    /// None of these bits is set in the argument at this position. The names are for people.
    Without(u8, u64, &'static str),
    /// All of these bits are set in the argument at this position. The name is for people.
    With(u8, u64, &'static str),
}

use ArgumentLimit::{Any, OneOf, With, Without};

/// Every kind of thread.
const ALL: &[ThreadKind] = &ThreadKind::ALL;
/// Threads that open files for reading only.
const READERS: &[ThreadKind] = &[Control, Metrics];
/// Threads that use files of the store or the configuration.
const FILES: &[ThreadKind] = &[Reload, Store];
/// Threads that serve connections.
const SERVERS: &[ThreadKind] = &[Control, Reload, Metrics];
/// Threads that open devices: workers open a device again that was removed.
const DEVICES: &[ThreadKind] = &[Worker, Control, Reload];
/// Threads that start threads.
const STARTERS: &[ThreadKind] = &[Control, Reload];
/// Threads that wait for descriptors.
const WAITING: &[ThreadKind] = &[Worker, Control, Reload, Metrics, Log, Task];
/// Threads that receive from sockets, or read events.
const RECEIVING: &[ThreadKind] = &[Worker, Control, Reload, Metrics, Task];

const NOT_EXECUTABLE: ArgumentLimit = Without(2, libc::PROT_EXEC as u64, "PROT_EXEC");
const READ_ONLY: ArgumentLimit =
    Without(2, (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) as u64, "writing");
const DEVICE_SOCKETS: ArgumentLimit = OneOf(
    0,
    &[
        (libc::AF_NETLINK as u64, "AF_NETLINK"),
        (libc::AF_PACKET as u64, "AF_PACKET"),
        (libc::AF_XDP as u64, "AF_XDP"),
    ],
);
const SOCKETS: ArgumentLimit = OneOf(
    0,
    &[
        (libc::AF_UNIX as u64, "AF_UNIX"),
        (libc::AF_INET as u64, "AF_INET"),
        (libc::AF_INET6 as u64, "AF_INET6"),
        (libc::AF_NETLINK as u64, "AF_NETLINK"),
        (libc::AF_PACKET as u64, "AF_PACKET"),
        (libc::AF_XDP as u64, "AF_XDP"),
    ],
);
/// Requests about devices, and the bytes that wait in a socket.
const DEVICE_REQUESTS: ArgumentLimit = OneOf(
    1,
    &[
        (libc::TIOCOUTQ, "TIOCOUTQ"),
        (libc::SIOCGIFNAME, "SIOCGIFNAME"),
        (libc::SIOCGIFINDEX, "SIOCGIFINDEX"),
        (libc::SIOCGIFHWADDR, "SIOCGIFHWADDR"),
        (libc::SIOCGIFMTU, "SIOCGIFMTU"),
        (libc::SIOCGIFFLAGS, "SIOCGIFFLAGS"),
        (libc::SIOCSIFFLAGS, "SIOCSIFFLAGS"),
        (0x8946, "SIOCETHTOOL"),
        (libc::FIONBIO, "FIONBIO"),
    ],
);
const SOCKET_REQUESTS: ArgumentLimit = OneOf(1, &[(libc::FIONBIO, "FIONBIO")]);
/// Commands of linux/bpf.h.
const BPF_COMMANDS: ArgumentLimit = OneOf(
    0,
    &[(0, "BPF_MAP_CREATE"), (2, "BPF_MAP_UPDATE_ELEM"), (5, "BPF_PROG_LOAD"), (28, "BPF_LINK_CREATE")],
);
const ONLY_THREADS: ArgumentLimit = With(0, libc::CLONE_THREAD as u64, "CLONE_THREAD");

const OF_THREADS: ArgumentLimit = OneOf(
    0,
    &[(libc::PR_SET_NAME as u64, "PR_SET_NAME"), (libc::PR_SET_NO_NEW_PRIVS as u64, "PR_SET_NO_NEW_PRIVS")],
);

macro_rules! calls {
    ($($number:ident $name:literal $threads:expr, $limit:expr;)*) => {
        &[$(AllowedCall { name: $name, number: libc::$number, threads: $threads, limit: $limit }),*]
    };
}

/// The calls that exist on all machines.
#[rustfmt::skip]
pub const CALLS: &[AllowedCall] = calls! {
    // Memory, locks and the end of a thread.
    SYS_brk "brk" ALL, Any;
    SYS_madvise "madvise" ALL, Any;
    SYS_mmap "mmap" ALL, NOT_EXECUTABLE;
    SYS_mprotect "mprotect" ALL, NOT_EXECUTABLE;
    SYS_mremap "mremap" ALL, Any;
    SYS_munmap "munmap" ALL, Any;
    SYS_futex "futex" ALL, Any;
    SYS_sched_yield "sched_yield" ALL, Any;
    SYS_sched_getaffinity "sched_getaffinity" ALL, Any;
    SYS_exit "exit" ALL, Any;
    SYS_exit_group "exit_group" ALL, Any;
    SYS_getpid "getpid" ALL, Any;
    SYS_gettid "gettid" ALL, Any;
    SYS_tgkill "tgkill" ALL, Any;
    SYS_rt_sigprocmask "rt_sigprocmask" ALL, Any;
    SYS_rt_sigreturn "rt_sigreturn" ALL, Any;
    SYS_sigaltstack "sigaltstack" ALL, Any;
    SYS_restart_syscall "restart_syscall" ALL, Any;
    SYS_getrandom "getrandom" ALL, Any;
    // Time.
    SYS_clock_gettime "clock_gettime" ALL, Any;
    SYS_clock_nanosleep "clock_nanosleep" ALL, Any;
    SYS_nanosleep "nanosleep" ALL, Any;
    // Open descriptors. Signal handlers write to a socket.
    SYS_close "close" ALL, Any;
    SYS_fcntl "fcntl" ALL, Any;
    SYS_write "write" ALL, Any;
    SYS_sendto "sendto" ALL, Any;
    SYS_ppoll "ppoll" WAITING, Any;
    SYS_read "read" &[Worker, Control, Reload, Store, Metrics, Task], Any;
    SYS_recvfrom "recvfrom" RECEIVING, Any;
    SYS_recvmsg "recvmsg" RECEIVING, Any;
    SYS_sendmsg "sendmsg" DEVICES, Any;
    SYS_sendmmsg "sendmmsg" DEVICES, Any;
    SYS_writev "writev" &[Control, Reload, Store, Metrics, Log], Any;
    SYS_readv "readv" &[Control, Reload], Any;
    SYS_getsockopt "getsockopt" RECEIVING, Any;
    SYS_setsockopt "setsockopt" RECEIVING, Any;
    SYS_getsockname "getsockname" RECEIVING, Any;
    SYS_getpeername "getpeername" SERVERS, Any;
    SYS_shutdown "shutdown" SERVERS, Any;
    SYS_accept4 "accept4" SERVERS, Any;
    // New descriptors.
    SYS_socket "socket" &[Worker], DEVICE_SOCKETS;
    SYS_socket "socket" &[Control, Reload], SOCKETS;
    SYS_bind "bind" DEVICES, Any;
    SYS_dup3 "dup3" DEVICES, Any;
    SYS_eventfd2 "eventfd2" DEVICES, Any;
    SYS_ioctl "ioctl" &[Worker, Control, Reload, Task], DEVICE_REQUESTS;
    SYS_ioctl "ioctl" &[Metrics], SOCKET_REQUESTS;
    SYS_bpf "bpf" DEVICES, BPF_COMMANDS;
    SYS_connect "connect" &[Control, Reload], Any;
    SYS_listen "listen" &[Control, Reload], Any;
    // Files.
    SYS_openat "openat" READERS, READ_ONLY;
    SYS_openat "openat" FILES, Any;
    SYS_fstat "fstat" &[Control, Reload, Store, Metrics], Any;
    SYS_newfstatat "newfstatat" &[Control, Reload, Store, Metrics], Any;
    SYS_statx "statx" &[Control, Reload, Store, Metrics], Any;
    SYS_memfd_create "memfd_create" DEVICES, Any;
    SYS_lseek "lseek" &[Control, Reload, Store, Metrics], Any;
    SYS_getdents64 "getdents64" &[Store, Metrics], Any;
    SYS_prlimit64 "prlimit64" &[Control, Metrics], Any;
    SYS_pread64 "pread64" FILES, Any;
    SYS_pwrite64 "pwrite64" &[Store], Any;
    SYS_fsync "fsync" &[Store], Any;
    SYS_fdatasync "fdatasync" &[Store], Any;
    SYS_ftruncate "ftruncate" &[Worker, Control, Reload, Store], Any;
    SYS_renameat2 "renameat2" &[Store], Any;
    SYS_unlinkat "unlinkat" &[Control, Reload, Store], Any;
    SYS_linkat "linkat" &[Store], Any;
    SYS_msync "msync" &[Control, Store], Any;
    SYS_flock "flock" &[Reload], Any;
    SYS_faccessat "faccessat" &[Reload], Any;
    SYS_faccessat2 "faccessat2" &[Reload], Any;
    SYS_mkdirat "mkdirat" &[Reload], Any;
    SYS_fchmodat "fchmodat" &[Reload], Any;
    SYS_fchownat "fchownat" &[Reload], Any;
    SYS_geteuid "geteuid" &[Reload], Any;
    SYS_getegid "getegid" &[Reload], Any;
    // Threads. `clone3` returns ENOSYS, because its arguments cannot be checked; the C library then uses
    // `clone`.
    SYS_clone "clone" STARTERS, ONLY_THREADS;
    SYS_clone3 "clone3" STARTERS, Any;
    SYS_set_robust_list "set_robust_list" STARTERS, Any;
    SYS_rseq "rseq" STARTERS, Any;
    SYS_prctl "prctl" STARTERS, OF_THREADS;
    SYS_seccomp "seccomp" STARTERS, Any;
    SYS_capget "capget" STARTERS, Any;
    SYS_capset "capset" STARTERS, Any;
};

/// The calls that newer machines lack, which have the calls above instead.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
pub const OLDER_CALLS: &[AllowedCall] = calls! {
    SYS_poll "poll" WAITING, Any;
    SYS_rename "rename" &[Store], Any;
    SYS_unlink "unlink" &[Control, Reload, Store], Any;
    SYS_link "link" &[Store], Any;
    SYS_access "access" &[Reload], Any;
    SYS_mkdir "mkdir" &[Reload], Any;
    SYS_chmod "chmod" &[Reload], Any;
    SYS_chown "chown" &[Reload], Any;
};

/// The calls that newer machines lack.
#[cfg(not(target_arch = "x86_64"))]
pub const OLDER_CALLS: &[AllowedCall] = &[];
