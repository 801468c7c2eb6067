// SPDX-License-Identifier: Apache-2.0
//! Paths of the unix sockets that a configuration names. The crate `switch` opens the sockets.

use rustix::fs::Access;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Purpose of a socket, for error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketPurpose {
    /// Control socket, for commands of `shunt`.
    Control,
    /// OpenFlow socket, for controllers and tools.
    OpenFlow,
    /// POF socket, for controllers.
    Pof,
}

impl SocketPurpose {
    /// Returns the configuration key of the socket's path.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::OpenFlow => "datapath.openflow.listen",
            Self::Pof => "datapath.pof.listen",
        }
    }
}

impl std::fmt::Display for SocketPurpose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Control => "control socket",
            Self::OpenFlow => "OpenFlow socket",
            Self::Pof => "POF socket",
        })
    }
}

/// Error of a socket's path.
#[derive(Debug, thiserror::Error)]
pub enum SocketPathError {
    /// The path exists and is not a socket.
    #[error(
        "{}: exists already and is not a socket; move it, or use another `{}` path",
        path.display(), purpose.key()
    )]
    NoSocket {
        /// Path of the socket.
        path: PathBuf,
        /// Purpose of the socket.
        purpose: SocketPurpose,
    },
    /// The system refused an operation.
    #[error("{}: cannot {what} the {purpose}: {source}", path.display())]
    Io {
        /// Path of the socket, or of its directory.
        path: PathBuf,
        /// Purpose of the socket.
        purpose: SocketPurpose,
        /// Operation that failed.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

/// Checks whether a socket can be created at this path, without creating anything.
///
/// # Errors
///
/// Returns an error if the path exists and is not a socket, or if its directory is not writable.
pub fn check_socket_path(path: &Path, purpose: SocketPurpose) -> Result<(), SocketPathError> {
    match fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() => {
            return Err(SocketPathError::NoSocket { path: path.into(), purpose });
        }
        _ => {}
    }
    let named = |folder: &&Path| !folder.as_os_str().is_empty();
    let parents = path.ancestors().skip(1).filter(named);
    let folder = parents.into_iter().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let source: io::Error = if !folder.is_dir() {
        ErrorKind::NotADirectory.into()
    } else if let Err(error) = rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        error.into()
    } else {
        return Ok(());
    };
    Err(SocketPathError::Io { path: path.into(), purpose, what: "write to the folder of", source })
}
