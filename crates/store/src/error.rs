// SPDX-License-Identifier: Apache-2.0
//! Errors that prevent a start.

use std::io;
use std::path::PathBuf;

/// An error for which a datapath with a store does not start.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder cannot be used.
    #[error("{}: cannot use the folder of the store: {source}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Another process uses the folder.
    #[error("{}: another datapath or process uses this store; give each datapath a folder of its own", .0.display())]
    InUse(PathBuf),
    /// A thread that reads or writes the store cannot be started.
    #[error("cannot start a thread of the store: {0}")]
    Thread(io::Error),
}
