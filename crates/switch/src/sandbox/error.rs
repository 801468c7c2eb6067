// SPDX-License-Identifier: Apache-2.0
//! Reasons why the process cannot limit itself.

use std::io;
use std::path::PathBuf;

/// Reason why the process cannot limit itself.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The user of the configuration does not exist.
    #[error(
        "security.user: there is no user \"{0}\"; create it with `adduser --system --group {0}`, or name another"
    )]
    NoUser(String),
    /// The list of users cannot be read.
    #[error("security.user: cannot look up \"{name}\": {source}")]
    LookUp {
        /// Name or number.
        name: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The process may not change its user.
    #[error(
        "security.user: this process cannot become the user {name}: {source}; start it as root, or omit the key"
    )]
    Become {
        /// Name of the user.
        name: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A folder cannot be given to the user.
    #[error("{}: cannot create this folder for the user {name}: {source}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// Name of the user.
        name: String,
        /// Error of the system.
        source: io::Error,
    },
    /// Capabilities cannot be dropped.
    #[error("cannot give up privileges: {0}")]
    Privileges(io::Error),
    /// The filters of system calls cannot be compiled.
    #[error("cannot limit system calls on this machine: {0}; use security.seccomp = \"off\"")]
    Filter(#[from] seccompiler::BackendError),
    /// The kernel refuses filters of system calls.
    #[error("the kernel does not limit system calls: {0}; use security.seccomp = \"off\"")]
    Kernel(String),
    /// A thread that ends at once cannot be started, or it panicked.
    #[error(
        "cannot run a thread that prepares the limits of system calls: {0}; the system may allow this user too few \
         processes (`ulimit -u`, or TasksMax in a systemd unit)"
    )]
    Thread(io::Error),
    /// SIGSYS cannot be caught.
    #[error("cannot catch SIGSYS: {0}")]
    Signal(io::Error),
}
