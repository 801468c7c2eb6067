// SPDX-License-Identifier: Apache-2.0
//! A listening unix socket, to which only its owner may connect, or those that the configuration names. A
//! socket of a live process is never replaced. The socket file is removed on drop.

use crate::access::{AccessError, ResolvedAccess};
use config::SocketAccess;
use config::socket::{SocketPathError, SocketPurpose};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum time for which another process may hold the lock of the socket's directory.
const LOCK_LIMIT: Duration = Duration::from_secs(2);

/// Error of [`Listener::bind`] or of a TCP endpoint.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process listens on the socket.
    #[error(
        "{}: another {} answers on this {purpose}; stop it first, or give this one another `{}` path",
        path.display(), if *purpose == SocketPurpose::Control { "switch" } else { "process" }, purpose.key()
    )]
    InUse {
        /// Path of the socket.
        path: PathBuf,
        /// Purpose of the socket.
        purpose: SocketPurpose,
    },
    /// Another process holds the lock of the directory.
    #[error(
        "{}: another process has locked this folder of the {purpose} for {} s; find the process with `fuser -v`, or use \
         another `{}` path", path.display(), LOCK_LIMIT.as_secs(), purpose.key()
    )]
    Locked {
        /// Path of the directory.
        path: PathBuf,
        /// Purpose of the socket.
        purpose: SocketPurpose,
    },
    /// The path is a file of another kind, or the system refused an operation on a unix socket.
    #[error(transparent)]
    Path(#[from] SocketPathError),
    /// The socket cannot have the owner, the group or the mode of the configuration.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The files of TLS connections cannot be used, for this reason.
    #[error("{0}")]
    Tls(String),
    /// The system refused to listen on a TCP address.
    #[error(
        "cannot listen on {address} for OpenFlow: {source}; give datapath.openflow.listen another address"
    )]
    Tcp {
        /// IP address and TCP port.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
}

/// Listening unix socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket file, to recognize the file before it is removed. `None` if the file is
    /// left to another process.
    identity: Option<(u64, u64)>,
}

impl Listener {
    /// Creates the socket and its directory. A socket file that nobody listens on is replaced. At most
    /// `backlog` clients wait to be accepted.
    pub fn bind(
        path: &Path,
        purpose: SocketPurpose,
        access: &SocketAccess,
        backlog: i32,
    ) -> Result<Self, ListenError> {
        let io = |what| failed(path, purpose, what);
        let access = ResolvedAccess::find(access)?;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(io("create the folder of"))?;
        // Check and bind under a lock, so that neither of two daemons that start together takes the other's
        // socket.
        let _turn = take_turn(folder, purpose)?;
        remove_stale(path, purpose)?;
        let address = SocketAddrUnix::new(path).map_err(|e| io("name")(e.into()))?;
        let socket = socket().map_err(io("make"))?;
        rustix::net::bind(&socket, &address).map_err(|e| io("bind")(e.into()))?;
        let made = fs::metadata(path).map_err(io("inspect"))?;
        // From here on, the file is removed after an error.
        let bound =
            Self { socket: socket.into(), path: path.into(), identity: Some((made.dev(), made.ino())) };
        // Clients cannot connect before `listen`, so other users never have access.
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(io("set the mode of"))?;
        access.apply(path)?;
        rustix::net::listen(&bound.socket, backlog).map_err(|e| io("listen on")(e.into()))?;
        Ok(bound)
    }

    /// Uses the socket of an earlier process, which listens already.
    pub fn inherited(path: &Path, purpose: SocketPurpose, socket: OwnedFd) -> Result<Self, ListenError> {
        let made = fs::metadata(path).map_err(failed(path, purpose, "inspect"))?;
        Ok(Self { socket: socket.into(), path: path.into(), identity: Some((made.dev(), made.ino())) })
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the socket file to another process.
    pub fn leave(&mut self) {
        self.identity = None;
    }

    /// Accepts a waiting client, if any. Does not block.
    pub fn accept(&self) -> io::Result<Option<UnixStream>> {
        match self.socket.accept() {
            Ok((stream, _)) => stream.set_nonblocking(true).map(|()| Some(stream)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|m| Some((m.dev(), m.ino())) == self.identity);
        if ours {
            // A failure is harmless: the next start replaces the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns a function that adds the path and the failed operation to an error of the system.
fn failed(path: &Path, purpose: SocketPurpose, what: &'static str) -> impl FnOnce(io::Error) -> ListenError {
    move |source| SocketPathError::Io { path: path.into(), purpose, what, source }.into()
}

/// Creates a non-blocking stream socket.
fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Locks the directory until the returned file is dropped.
fn take_turn(folder: &Path, purpose: SocketPurpose) -> Result<File, ListenError> {
    let io = |what| failed(folder, purpose, what);
    let file = File::open(folder).map_err(io("open the folder of"))?;
    let end = Instant::now() + LOCK_LIMIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(io("lock the folder of")(error)),
            Err(TryLockError::WouldBlock) if Instant::now() >= end => {
                return Err(ListenError::Locked { path: folder.into(), purpose });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn remove_stale(path: &Path, purpose: SocketPurpose) -> Result<(), ListenError> {
    let io = |what| failed(path, purpose, what);
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io("inspect")(error)),
        Ok(there) if !there.file_type().is_socket() => {
            return Err(SocketPathError::NoSocket { path: path.into(), purpose }.into());
        }
        Ok(_) => {}
    }
    // Connect without blocking, because a listener that never accepts would block this process.
    let connected = SocketAddrUnix::new(path)
        .map_err(io::Error::from)
        .and_then(|address| Ok(rustix::net::connect(socket()?, &address)?));
    match connected {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(io("remove the stale file of"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() != ErrorKind::WouldBlock => {
            Err(io("check whether a process listens on")(error))
        }
        // The connection was accepted, or the listener's queue is full.
        _ => Err(ListenError::InUse { path: path.into(), purpose }),
    }
}
