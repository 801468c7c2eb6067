// SPDX-License-Identifier: Apache-2.0
//! The system calls that drivers need, each behind a safe function. Together with its children this is the only
//! module of the crate with `unsafe`.
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
pub(crate) use xsk::{Refused, XSK_FRAME_BYTES, Xsk};

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Integers without padding or pointers inside, such as socket options are made of.
///
/// # Safety
/// Every bit pattern is a value, and no byte is padding.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: integers, and repr(C) structs of integers whose sizes add up without padding.
unsafe impl Plain for libc::c_int {}
// SAFETY: as above; four unsigned ints.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: as above; int, two u16, eight bytes.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: as above; two unsigned ints.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: as above; two u64, four u32.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: as above; u64 only.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above; u64 only.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: as above; one u32.
unsafe impl Plain for libc::xdp_options {}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A raw AF_PACKET socket that does not block and receives nothing until it is bound.
pub(crate) fn packet_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers; a descriptor that is returned is ours alone.
    unsafe { check(libc::socket(libc::AF_PACKET, kind, 0)).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// Binds a packet socket to all protocols of an interface.
pub(crate) fn bind(socket: BorrowedFd<'_>, ifindex: i32) -> io::Result<()> {
    // SAFETY: all zeros is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = ifindex;
    // SAFETY: the address outlives the call and its true size is given.
    unsafe {
        check(libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        ))?;
    }
    Ok(())
}

/// The interface that a packet socket is bound to; -1 once that has vanished.
pub(crate) fn bound_index(socket: BorrowedFd<'_>) -> io::Result<i32> {
    // SAFETY: all zeros is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into the address, which outlives the call.
    unsafe { check(libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut len))? };
    Ok(address.sll_ifindex)
}

/// Sets a socket option.
pub(crate) fn set_option<T: Plain>(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the value outlives the call and its true size is given.
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

/// Reads a socket option.
pub(crate) fn option<T: Plain>(socket: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes; zeroed or written, every bit pattern is a value of a Plain type.
    unsafe {
        check(libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut len))?;
        Ok(value.assume_init())
    }
}

/// Bytes of the packets that a socket has sent and its device has not freed yet, as the kernel counts them: with the
/// buffers' unused room and bookkeeping.
pub(crate) fn outstanding_bytes(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one int, which outlives the call.
    unsafe { check(libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes))? };
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Makes a socket refuse every packet, until [`accept_all`].
pub(crate) fn refuse_all(socket: BorrowedFd<'_>) -> io::Result<()> {
    // "Return 0 bytes" in classic BPF.
    let mut program = [libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0 }];
    let filter = libc::sock_fprog { len: 1, filter: program.as_mut_ptr() };
    // SAFETY: filter and program outlive the call; the kernel copies both.
    unsafe {
        check(libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        ))?;
    }
    Ok(())
}

/// Takes the filter of [`refuse_all`] off.
pub(crate) fn accept_all(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0)
}

/// Makes the descriptor `number` stand for what `file` stands for, in one step: the number is never free in between, so
/// that no other file can get it while another thread polls it. What it stood for before is closed.
pub(crate) fn replace(number: &OwnedFd, file: OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers. Both descriptors are open and owned; afterwards `number` still owns its number, and `file`
    // closes its own.
    unsafe { check(libc::dup3(file.as_raw_fd(), number.as_raw_fd(), libc::O_CLOEXEC))? };
    Ok(())
}

/// Takes the pending error off a socket, so that it does not wake a waiting thread again.
pub(crate) fn take_error(socket: BorrowedFd<'_>) {
    // Reading takes it off. What it was, the next system call that matters tells again.
    let _ = option::<libc::c_int>(socket, libc::SOL_SOCKET, libc::SO_ERROR);
}
