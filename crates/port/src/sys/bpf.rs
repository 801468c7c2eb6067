// SPDX-License-Identifier: Apache-2.0
//! The XDP program that redirects an interface's packets to AF_XDP sockets, loaded by bpf(2). Layout:
//! linux/bpf.h, `union bpf_attr`.

use super::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// Attach mode: in the kernel's generic receive path, for drivers without XDP support.
const GENERIC_MODE: u32 = 1 << 1;
/// Attach mode: in the device driver.
const DRIVER_MODE: u32 = 1 << 2;

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log: [u64; 2],
    version: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    ifindex: u32,
    attach: u32,
    flags: u32,
}

/// Encodes an eBPF instruction. From the lowest bit: 8 bits of code, two registers of 4 bits, 16 bits of
/// offset, 32 bits of immediate value.
const fn instruction(code: u8, registers: u8, offset: u16, immediate: u32) -> u64 {
    code as u64 | (registers as u64) << 8 | (offset as u64) << 16 | (immediate as u64) << 32
}

/// Returns the program `return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS)`. If a packet's
/// queue has no socket, the packet passes to the network stack.
fn code(map: BorrowedFd<'_>) -> [u64; 6] {
    const XDP_PASS: u32 = 2;
    const REDIRECT_MAP: u32 = 51;
    const QUEUE_INDEX_AT: u16 = 16;
    [
        instruction(0x61, 0x12, QUEUE_INDEX_AT, 0), // r2 = *(u32 *)(r1 + 16)
        instruction(0x18, 0x11, 0, map.as_raw_fd() as u32), // r1 = map, 64 bits
        instruction(0, 0, 0, 0),
        instruction(0xb7, 0x03, 0, XDP_PASS),  // r3 = XDP_PASS
        instruction(0x85, 0, 0, REDIRECT_MAP), // call
        instruction(0x95, 0, 0, 0),            // exit
    ]
}

/// The loaded program with its map of sockets.
pub(crate) struct Redirect {
    pub(crate) map: OwnedFd,
    pub(crate) program: OwnedFd,
}

/// A program attached to an interface, which is detached on drop or when the process ends.
pub(crate) struct Attached(pub(crate) OwnedFd);

impl Redirect {
    /// Loads the program for sockets of the hardware queues 0 to `queues` - 1.
    pub(crate) fn new(queues: u32) -> io::Result<Self> {
        let map = MapCreate { kind: MAP_OF_SOCKETS, key_bytes: 4, value_bytes: 4, entries: queues };
        let map = descriptor(MAP_CREATE, &map)?;
        let code = code(map.as_fd());
        let program = ProgramLoad {
            kind: PROGRAM_XDP,
            instructions: code.len() as u32,
            code: code.as_ptr() as u64,
            license: c"Apache-2.0".as_ptr() as u64,
            log: [0; 2],
            version: 0,
            flags: 0,
            name: *b"shunt_redirect\0\0",
        };
        let program = descriptor(PROGRAM_LOAD, &program)?;
        Ok(Self { map, program })
    }

    /// Redirects the packets of a hardware queue to a socket bound to it, until the socket is closed.
    pub(crate) fn set(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let socket = socket.as_raw_fd();
        let update = MapUpdate {
            map: self.map.as_raw_fd() as u32,
            padding: 0,
            key: (&raw const queue) as u64,
            value: (&raw const socket) as u64,
            flags: 0,
        };
        call(MAP_UPDATE, &update).map(|_| ())
    }

    /// Attaches the program to an interface: in the driver, or in the generic receive path if the driver has
    /// no XDP support.
    pub(crate) fn attach(&self, ifindex: i32) -> io::Result<Attached> {
        let attach = |flags| {
            let program = self.program.as_raw_fd() as u32;
            let link = LinkCreate { program, ifindex: ifindex as u32, attach: ATTACH_XDP, flags };
            descriptor(LINK_CREATE, &link).map(Attached)
        };
        attach(DRIVER_MODE).or_else(|error| match error.raw_os_error() {
            Some(libc::EOPNOTSUPP) => attach(GENERIC_MODE),
            _ => Err(error),
        })
    }
}

fn descriptor<T>(command: libc::c_int, argument: &T) -> io::Result<OwnedFd> {
    // SAFETY: on success the commands for which this is called return a new descriptor that nothing else
    // owns.
    call(command, argument).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

fn call<T>(command: libc::c_int, argument: &T) -> io::Result<libc::c_int> {
    // SAFETY: `argument` is the first `size_of::<T>()` bytes of the command's part of `union bpf_attr`; the
    // kernel takes the rest as zeros. The caller keeps it, and the memory it points to (code, license, key,
    // value), alive during the call. The kernel only reads them.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *argument, size_of::<T>()) };
    check(result as libc::c_int)
}
