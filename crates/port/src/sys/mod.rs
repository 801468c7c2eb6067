// SPDX-License-Identifier: Apache-2.0
//! The system calls of the drivers, each wrapped in a safe function. This module and the DPDK shim contain
//! all `unsafe` code of the crate.
#![allow(unsafe_code)]

mod bpf;
mod device;
mod message;
mod monitor;
mod poll;
mod ring;
mod xsk;

pub(crate) use bpf::{Attached, Redirect};
pub(crate) use device::index_of;
pub(crate) use device::{Interface, NAME_BYTES};
pub(crate) use message::{SEND_BATCH, SendBatch, VNET_BYTES, VnetBytes, receive_copy};
pub(crate) use monitor::{Change, Monitor};
pub(crate) use poll::{MAX_DESCRIPTORS, clear_event, event, poll, raise_event};
pub(crate) use ring::{Ring, Slot};
pub(crate) use xsk::{Refused, UmemKind, XSK_FRAME_BYTES, Xsk};

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Types of socket options: integers, or structures of integers.
///
/// # Safety
/// Every bit pattern must be a valid value, and no byte may be padding.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: an integer.
unsafe impl Plain for libc::c_int {}
// SAFETY: repr(C) structure of four unsigned ints, without padding.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: repr(C) structure of an int, two u16 and eight bytes, without padding.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: repr(C) structure of two unsigned ints, without padding.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: repr(C) structure of two u64 and four u32, without padding.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: repr(C) structure of u64 only, without padding.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: repr(C) structure of u64 only, without padding.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: repr(C) structure of one u32, without padding.
unsafe impl Plain for libc::xdp_options {}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Opens a non-blocking raw AF_PACKET socket, which receives nothing until it is bound.
pub(crate) fn packet_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes no pointers. On success it returns a new descriptor that nothing else owns.
    unsafe { check(libc::socket(libc::AF_PACKET, kind, 0)).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// Binds a packet socket to all protocols of an interface.
pub(crate) fn bind(socket: BorrowedFd<'_>, ifindex: i32) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` consists of integers, for which all zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = ifindex;
    // SAFETY: the address lives until the call returns, and its true size is given.
    unsafe {
        check(libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        ))?;
    }
    Ok(())
}

/// Returns the index of the interface to which a packet socket is bound; -1 if the interface is gone.
pub(crate) fn bound_index(socket: BorrowedFd<'_>) -> io::Result<i32> {
    // SAFETY: `sockaddr_ll` consists of integers, for which all zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of `address`, which lives until the call
    // returns.
    unsafe { check(libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut len))? };
    Ok(address.sll_ifindex)
}

pub(crate) fn set_option<T: Plain>(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the value lives until the call returns, and its true size is given.
    unsafe {
        check(libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const *value).cast(),
            size_of::<T>() as libc::socklen_t,
        ))?;
    }
    Ok(())
}

pub(crate) fn option<T: Plain>(socket: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of `value`. Zeroed or written, every bit
    // pattern is a valid value of a `Plain` type.
    unsafe {
        check(libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut len))?;
        Ok(value.assume_init())
    }
}

/// Returns the kernel's count of bytes that a socket has sent and its device has not freed yet, including the
/// overhead per buffer.
pub(crate) fn outstanding_bytes(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes one int, which lives until the call returns.
    unsafe { check(libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes))? };
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Makes a socket refuse every packet until [`accept_all`] is called.
pub(crate) fn refuse_all(socket: BorrowedFd<'_>) -> io::Result<()> {
    // The instruction "return 0 bytes".
    let mut program = [libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0 }];
    set_program(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &mut program)
}

/// Sets the program that selects the member of a packet socket's fan-out group for each packet. When the
/// call returns, no packet is on its way to a member that the previous program has selected.
pub(crate) fn set_fanout_program(socket: BorrowedFd<'_>, code: &mut [libc::sock_filter]) -> io::Result<()> {
    set_program(socket, libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, code)
}

/// Sets a socket option whose value is a program in classic BPF.
fn set_program(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    code: &mut [libc::sock_filter],
) -> io::Result<()> {
    let len = u16::try_from(code.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog { len, filter: code.as_mut_ptr() };
    // SAFETY: structure and code live until the call returns, their true lengths are given, and the kernel
    // copies both.
    unsafe {
        check(libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        ))?;
    }
    Ok(())
}

/// Removes the filter of [`refuse_all`].
pub(crate) fn accept_all(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0)
}

/// Makes the descriptor `number` refer to `file`, and closes the file to which it referred before. This is
/// one step, so no other file can get the number while another thread polls it.
pub(crate) fn replace(number: &OwnedFd, file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call takes no pointers. Both descriptors are open. Afterwards `number` still owns its
    // number, and `file` is open as before.
    unsafe { check(libc::dup3(file.as_raw_fd(), number.as_raw_fd(), libc::O_CLOEXEC))? };
    Ok(())
}

/// Creates a file of zeros in memory. Its size can never change.
fn memory_file(bytes: usize) -> io::Result<OwnedFd> {
    // SAFETY: the name is a string with a final zero byte. On success the call returns a new descriptor that
    // nothing else owns.
    let file = unsafe {
        let fd = libc::memfd_create(c"umem".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        check(fd).map(|fd| OwnedFd::from_raw_fd(fd))?
    };
    // SAFETY: the calls take no pointers.
    unsafe {
        check(libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t))?;
        check(libc::fcntl(
            file.as_raw_fd(),
            libc::F_ADD_SEALS,
            libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL,
        ))?;
    }
    Ok(file)
}

/// Returns the size of a file in bytes. Returns an error if the file could shrink.
fn file_bytes(file: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: the call takes no pointers.
    let seals = unsafe { check(libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS))? };
    if seals & libc::F_SEAL_SHRINK == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its memory can shrink"));
    }
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `status` has space for the structure, which the call fills if it succeeds.
    let status = unsafe {
        check(libc::fstat(file.as_raw_fd(), status.as_mut_ptr()))?;
        status.assume_init()
    };
    Ok(status.st_size as u64)
}

/// Clears a socket's pending error, which would wake a waiting thread again.
pub(crate) fn take_error(socket: BorrowedFd<'_>) {
    // Reading the error clears it. If its cause persists, the next system call reports the error again.
    let _ = option::<libc::c_int>(socket, libc::SOL_SOCKET, libc::SO_ERROR);
}
