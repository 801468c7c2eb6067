// SPDX-License-Identifier: Apache-2.0
//! The signal SIGSYS, which the kernel sends to a thread that makes a forbidden system call. The handler
//! writes a line to stderr, and ends the process.
#![allow(unsafe_code)]

use super::thread_kind::{KIND, ThreadKind};
use signal_hook::consts::SIGSYS;
use std::io::{self, Write};

/// Maximum length of the line, in bytes.
const LINE_BYTES: usize = 200;

/// Start of `siginfo_t` for SIGSYS (signal(7), asm-generic/siginfo.h), which libc does not define.
#[repr(C)]
struct ForbiddenCall {
    signal: libc::c_int,
    errno: libc::c_int,
    code: libc::c_int,
    padding: libc::c_int,
    address: *const libc::c_void,
    number: libc::c_int,
}

/// Catches SIGSYS. The action stays for the life of the process.
///
/// # Errors
///
/// Returns the error of the system.
pub fn catch() -> io::Result<()> {
    let action = |info: &libc::siginfo_t| {
        // SAFETY: `siginfo_t` is larger than `ForbiddenCall`, has its alignment, and begins with its fields
        // when the signal is SIGSYS. All fields are integers or a pointer, which is not dereferenced.
        let call = unsafe { &*(&raw const *info).cast::<ForbiddenCall>() };
        write_line(call.number);
        // This ends the process by SIGSYS. If the thread may not change signal handlers, that is a forbidden
        // call in the handler, which ends the process by SIGSYS, too.
        let _ = signal_hook::low_level::emulate_default_handler(SIGSYS);
    };
    // SAFETY: the action is safe in a signal handler. It does not allocate, lock or panic: it formats
    // integers into a buffer on the stack, reads a constant-initialized thread-local value without a
    // destructor, and calls write(2), sigaction(2) and raise(3).
    unsafe { signal_hook_registry::register_sigaction(SIGSYS, action) }.map(drop)
}

/// Writes the line about a forbidden call with one write(2). The log cannot be used in a signal handler.
fn write_line(number: libc::c_int) {
    let mut line = [0; LINE_BYTES];
    let mut rest = &mut line[..];
    let kind = KIND.get().map_or("unknown", ThreadKind::name);
    // The buffer is longer than the line, and an error would leave a shorter line.
    let _ = writeln!(
        rest,
        "shunt: a thread of kind {kind} made the system call {number}, which it may not make \
         (docs/security.md); the switch ends"
    );
    let left = rest.len();
    let _ = rustix::io::write(rustix::stdio::stderr(), &line[..LINE_BYTES - left]);
}
