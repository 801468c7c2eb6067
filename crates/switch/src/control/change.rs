// SPDX-License-Identifier: Apache-2.0
//! Requested changes of the configuration, and their results.

use config::edit::{MirrorEdit, PortEdit};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A requested change of the configuration.
#[derive(Clone, Debug)]
pub enum ReloadWork {
    /// The file is read again.
    File,
    /// A new program takes over: this one, or the one at the path of the running one.
    Upgrade {
        /// Path of the program.
        program: Option<PathBuf>,
    },
    /// A port of a datapath is added, removed or changed. The file stays as it is.
    Port {
        /// ID of the datapath.
        datapath: u64,
        /// The change.
        edit: PortEdit,
    },
    /// A mirror of a datapath is added or removed. The file stays as it is.
    Mirror {
        /// ID of the datapath.
        datapath: u64,
        /// The change.
        edit: MirrorEdit,
    },
}

/// Changes that were made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// One sentence for each change.
    pub changes: Vec<String>,
}

/// Result of a requested change: the changes, or the reasons for which nothing was changed, one per line.
pub type ReloadResult = Result<ReloadReport, String>;
