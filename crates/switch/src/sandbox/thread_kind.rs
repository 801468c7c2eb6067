// SPDX-License-Identifier: Apache-2.0
//! Kinds of threads by what they may do.

use rustix::thread::CapabilitySet;
use std::cell::Cell;
use std::fmt;

thread_local! {
    /// Kind of the thread, for the line about a forbidden call.
    pub(super) static KIND: Cell<Option<ThreadKind>> = const { Cell::new(None) };
}

/// Kind of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadKind {
    /// Changes the models of datapaths, and serves controllers and clients.
    Control,
    /// Forwards packets, or searches paths for the port cache.
    Worker,
    /// Changes the configuration: opens devices and binds addresses.
    Reload,
    /// Writes rules to the disk.
    Store,
    /// Serves metrics.
    Metrics,
    /// Writes the log to stderr.
    Log,
    /// Computes, writes mirrored frames to a file, or waits for links and signals.
    Task,
}

impl ThreadKind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Control, Self::Worker, Self::Reload, Self::Store, Self::Metrics, Self::Log, Self::Task];

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Worker => "worker",
            Self::Reload => "reload",
            Self::Store => "store",
            Self::Metrics => "metrics",
            Self::Log => "log",
            Self::Task => "task",
        }
    }

    /// Returns the capabilities that a thread of this kind keeps. `has_user` states whether the process runs
    /// as a configured user, and not as the user that started it.
    #[must_use]
    pub fn capabilities(self, has_user: bool) -> CapabilitySet {
        // A worker opens a device again that was removed. The control thread does so for a worker that
        // sleeps.
        let devices =
            CapabilitySet::NET_RAW | CapabilitySet::NET_ADMIN | CapabilitySet::BPF | CapabilitySet::IPC_LOCK;
        match self {
            Self::Control | Self::Worker => devices,
            Self::Reload => {
                let sockets = CapabilitySet::NET_BIND_SERVICE;
                // Without a configured user, the process is root, which expects to read every file.
                let files = CapabilitySet::CHOWN | CapabilitySet::DAC_READ_SEARCH;
                devices | sockets | if has_user { CapabilitySet::empty() } else { files }
            }
            Self::Store | Self::Metrics | Self::Log | Self::Task => CapabilitySet::empty(),
        }
    }
}

impl fmt::Display for ThreadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
