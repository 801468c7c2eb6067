// SPDX-License-Identifier: Apache-2.0
//! Limits what the process may do: its user, the capabilities of each thread, and the system calls that each
//! thread may make (docs/security.md, docs/adr/0065).
//!
//! [`prepare_c_library`] and [`begin`] are called once, before devices are open. Each thread calls [`enter`]
//! when it starts. Without [`begin`], as in tests, [`enter`] has no effect.

pub mod calls;
mod error;
mod filter;
mod privileges;
mod thread_kind;
mod trap;

pub use error::SandboxError;
pub use privileges::find_user;
pub use thread_kind::ThreadKind;

use config::{Config, SeccompMode};
use filter::ThreadFilter;
use privileges::Privileges;
use std::io;
use std::sync::OnceLock;
use std::thread::Builder;
use thread_kind::KIND;

/// Limits of the process's threads.
struct Sandbox {
    has_user: bool,
    /// Filters by kind of thread, in the order of [`ThreadKind::ALL`]. `None` for kinds without a filter.
    filters: [Option<ThreadFilter>; ThreadKind::ALL.len()],
}

static SANDBOX: OnceLock<Sandbox> = OnceLock::new();

/// Becomes the configured user, drops the capabilities that no thread needs, and prepares the filters of
/// system calls. The process must have no other thread yet. Returns a line for the log, if some threads are
/// not limited.
///
/// # Errors
///
/// Returns an error if the user does not exist, or if the system refuses one of the steps.
pub fn begin(configs: &[Config]) -> Result<Option<&'static str>, SandboxError> {
    let Some(first) = configs.first() else { return Ok(None) };
    let settings = &first.process.security;
    let ports = || configs.iter().flat_map(|config| &config.datapath.ports);
    let has_dpdk = cfg!(feature = "dpdk") && ports().any(|port| port.driver == port::dpdk::NAME);
    let privileges = Privileges { user: settings.user.as_deref(), has_dpdk };
    privileges.give_up(configs)?;
    let mut filters = [const { None }; ThreadKind::ALL.len()];
    for (kind, filter) in ThreadKind::ALL.into_iter().zip(&mut filters) {
        if !(has_dpdk && runs_drivers(kind)) {
            *filter = ThreadFilter::compile(kind, settings.seccomp)?;
        }
    }
    if settings.seccomp != SeccompMode::Off {
        trap::catch().map_err(SandboxError::Signal)?;
        try_filter(filters.iter().flatten().next_back())?;
    }
    let sandbox = Sandbox { has_user: settings.user.is_some(), filters };
    // A second call would be a mistake of the caller; the first settings stay.
    let _ = SANDBOX.set(sandbox);
    let is_partial = has_dpdk && settings.seccomp != SeccompMode::Off;
    Ok(is_partial.then_some(
        "workers and control threads may make all system calls, because drivers of DPDK make calls of their own",
    ))
}

/// Triggers the C library's one-time initializations that need system calls which the filters forbid. Must be
/// called before the process frees large blocks of memory, because malloc then keeps more memory before it
/// returns any to the kernel.
///
/// # Errors
///
/// Returns an error if the system refuses a thread.
pub fn prepare_c_library() -> Result<(), SandboxError> {
    // The first call of `clock_gettime` looks up the kernel's clock functions.
    let _ = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // malloc reads /proc/sys/vm/overcommit_memory when a thread returns heap memory to the kernel for the
    // first time.
    in_thread(Builder::new(), grow_and_shrink_heap)
}

/// Runs a function in a new thread, and waits until the thread ends.
fn in_thread<T: Send + 'static>(
    builder: Builder,
    function: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SandboxError> {
    let thread = builder.spawn(function).map_err(SandboxError::Thread)?;
    thread.join().map_err(|_| SandboxError::Thread(io::Error::other("the thread panicked")))
}

/// Allocates and frees 1 MB on the calling thread's heap, so that malloc returns memory to the kernel. Larger
/// blocks would get mappings of their own instead.
fn grow_and_shrink_heap() {
    let blocks: Vec<Vec<u8>> = (0..10).map(|_| Vec::with_capacity(100_000)).collect();
    drop(std::hint::black_box(blocks));
}

/// Returns whether threads of this kind run code of drivers.
fn runs_drivers(kind: ThreadKind) -> bool {
    matches!(kind, ThreadKind::Worker | ThreadKind::Control)
}

/// Installs a filter for a thread that ends at once, to learn whether the kernel supports filters.
fn try_filter(filter: Option<&ThreadFilter>) -> Result<(), SandboxError> {
    let Some(filter) = filter.cloned() else { return Ok(()) };
    let install = move || filter.install().map_err(|error| SandboxError::Kernel(error.to_string()));
    in_thread(Builder::new(), install)?
}

/// Drops the capabilities that a thread of this kind does not need, and limits the system calls of the
/// calling thread. The limits stay until the thread ends, and apply to threads that it starts, too.
pub fn enter(kind: ThreadKind) {
    KIND.set(Some(kind));
    let Some(sandbox) = SANDBOX.get() else { return };
    if let Err(error) = privileges::keep(kind.capabilities(sandbox.has_user)) {
        tracing::error!("a thread of kind {kind} keeps all capabilities: {error}");
    }
    let filters = ThreadKind::ALL.into_iter().zip(&sandbox.filters);
    let filter =
        filters.into_iter().find(|(other, _)| *other == kind).and_then(|(_, filter)| filter.as_ref());
    if let Some(Err(error)) = filter.map(ThreadFilter::install) {
        // `begin` has installed a filter, so the kernel supports them.
        tracing::error!("a thread of kind {kind} may make all system calls: {error}");
    }
}

/// Returns whether the system calls of the calling thread are limited.
pub fn is_limited() -> bool {
    let Some((sandbox, kind)) = SANDBOX.get().zip(KIND.get()) else { return false };
    let position = ThreadKind::ALL.iter().position(|other| *other == kind);
    position.and_then(|at| sandbox.filters.get(at)).is_some_and(Option::is_some)
}

/// Returns whether the calling thread may open files to read them.
pub fn may_read_files() -> bool {
    let Some(kind) = KIND.get().filter(|_| is_limited()) else { return true };
    calls::CALLS.iter().any(|call| call.name == "openat" && call.threads.contains(&kind))
}

#[cfg(test)]
mod tests;
