// SPDX-License-Identifier: Apache-2.0
//! A socket in the file system: made for its owner only, never taken from a living process, removed at the end.

use rustix::fs::Access;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long another process may hold the folder of the socket.
const LOCK_LIMIT: Duration = Duration::from_secs(2);

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Commands of `shunt`.
    Control,
    /// Controllers and tools.
    OpenFlow,
}

impl Purpose {
    /// The key of the configuration that holds its path.
    fn key(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::OpenFlow => "datapath.openflow.listen",
        }
    }

    /// Clients that may wait to be accepted.
    fn backlog(self) -> i32 {
        match self {
            Self::Control => 64,
            Self::OpenFlow => crate::openflow::CONNECTIONS as i32,
        }
    }
}

impl std::fmt::Display for Purpose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Control => "control socket",
            Self::OpenFlow => "OpenFlow socket",
        })
    }
}

/// Why there is no socket to be reached by.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process answers there.
    #[error(
        "{}: another {} answers on this {purpose}; stop it first, or give this one another `{}` path",
        path.display(), if *purpose == Purpose::Control { "switch" } else { "process" }, purpose.key()
    )]
    InUse {
        /// The path.
        path: PathBuf,
        /// What the socket was to be for.
        purpose: Purpose,
    },
    /// Something that is no socket is there.
    #[error(
        "{}: is there already and is no socket; move it away, or use another `{}` path",
        path.display(), purpose.key()
    )]
    NoSocket {
        /// The path.
        path: PathBuf,
        /// What the socket was to be for.
        purpose: Purpose,
    },
    /// Another process holds the folder's lock.
    #[error(
        "{}: another process has locked this folder of the {purpose} for {} s; look who (`fuser -v`), or use \
         another `{}` path", path.display(), LOCK_LIMIT.as_secs(), purpose.key()
    )]
    Locked {
        /// The folder.
        path: PathBuf,
        /// What the socket was to be for.
        purpose: Purpose,
    },
    /// The system refused a socket in the file system.
    #[error("{}: can not {what} the {purpose}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What the socket was to be for.
        purpose: Purpose,
        /// What was attempted.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// The system refused an address for OpenFlow connections.
    #[error(
        "can not listen on {address} for OpenFlow: {source}; give datapath.openflow.listen another address"
    )]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
}

/// The socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode, by which the file is known as ours.
    identity: (u64, u64),
}

impl Listener {
    /// Makes the socket and its folder. A socket file that nobody listens on is replaced.
    pub fn bind(path: &Path, purpose: Purpose) -> Result<Self, ListenError> {
        let io = |what| move |source: io::Error| ListenError::Io { path: path.into(), purpose, what, source };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(io("make the folder of"))?;
        // Two daemons that start at once must not take the socket from each other: one looks and binds at a time.
        let _turn = take_turn(folder, purpose)?;
        remove_stale(path, purpose)?;
        let address = SocketAddrUnix::new(path).map_err(|e| io("name")(e.into()))?;
        let socket = socket().map_err(io("make"))?;
        rustix::net::bind(&socket, &address).map_err(|e| io("bind")(e.into()))?;
        // Nobody can connect before `listen`, so there is no moment in which others may.
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(io("set the mode of"))?;
        rustix::net::listen(&socket, purpose.backlog()).map_err(|e| io("listen on")(e.into()))?;
        let made = fs::metadata(path).map_err(io("look at"))?;
        Ok(Self { socket: socket.into(), path: path.into(), identity: (made.dev(), made.ino()) })
    }

    /// Whether a socket could be made there, as far as that can be told without making anything.
    pub fn check(path: &Path, purpose: Purpose) -> Result<(), ListenError> {
        match fs::symlink_metadata(path) {
            Ok(there) if !there.file_type().is_socket() => {
                return Err(ListenError::NoSocket { path: path.into(), purpose });
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
        Err(ListenError::Io { path: path.into(), purpose, what: "write to the folder of", source })
    }

    /// A client that waits, if any; it does not block.
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
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|m| (m.dev(), m.ino()) == self.identity);
        if ours {
            // Nothing depends on it: a file that stays is stale and replaced at the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A stream socket that does not block.
fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Locks the folder until the file is dropped. Who holds it needs milliseconds, unless it is no switch.
fn take_turn(folder: &Path, purpose: Purpose) -> Result<File, ListenError> {
    let io = |what| move |source: io::Error| ListenError::Io { path: folder.into(), purpose, what, source };
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

fn remove_stale(path: &Path, purpose: Purpose) -> Result<(), ListenError> {
    let io = |what| move |source: io::Error| ListenError::Io { path: path.into(), purpose, what, source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io("look at")(error)),
        Ok(there) if !there.file_type().is_socket() => {
            return Err(ListenError::NoSocket { path: path.into(), purpose });
        }
        Ok(_) => {}
    }
    // Without waiting: whoever listens there may accept nobody.
    let connected = SocketAddrUnix::new(path)
        .map_err(io::Error::from)
        .and_then(|address| Ok(rustix::net::connect(socket()?, &address)?));
    match connected {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(io("remove the stale file of"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(io("try what is there instead of")(error)),
        // Answered, or so busy that its queue is full.
        _ => Err(ListenError::InUse { path: path.into(), purpose }),
    }
}
