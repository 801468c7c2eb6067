// SPDX-License-Identifier: Apache-2.0
//! A process that starts new programs. It is started before the switch gives up its privileges, because a
//! program that the switch itself started would have none.
//!
//! It starts only programs that nobody except root, or the user who started the switch, can change.

use super::protocol::{LinkError, UpgradeLink};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

/// Environment variable of a new program, whose standard input is the way to the old one.
pub(super) const SUCCESSOR: &str = "SHUNT_UPGRADE";
/// Longest time in which a program is started.
const START_LIMIT: Duration = Duration::from_secs(10);
/// Time between two looks for programs that have ended.
const REAP: Duration = Duration::from_secs(3_600);

/// Why no program was started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The launcher is not reached.
    #[error("the process that starts new programs is not reached: {0}")]
    Link(#[from] LinkError),
    /// The launcher refused.
    #[error("{0}")]
    Refused(String),
}

#[derive(Debug, Serialize, Deserialize)]
enum LaunchRequest {
    /// Starts a program.
    Start(PathBuf),
    /// Ends a started program, if it still runs, and waits for its end.
    End(u32),
}

/// Process ID of the started program, or the reason why it was not started.
type Launched = Result<u32, String>;

/// The way to the process that starts new programs.
#[derive(Debug)]
pub struct Launcher {
    link: UpgradeLink,
    program: PathBuf,
}

/// A started program.
#[derive(Debug)]
pub(super) struct Started {
    pub link: UpgradeLink,
    pub pid: u32,
    pub program: PathBuf,
}

impl Launcher {
    /// Starts the process. It ends when this process has ended.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn start() -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let (ours, theirs) = pair()?;
        Command::new(&program)
            .arg("launcher")
            .args(std::env::args_os().skip(1))
            .env_remove(SUCCESSOR)
            .stdin(Stdio::from(theirs))
            .spawn()?;
        Ok(Self { link: UpgradeLink::new(ours), program })
    }

    /// Starts a program with the arguments of this process: `program`, or what is installed at the path of
    /// this process's program.
    pub(super) fn launch(&self, program: Option<&Path>) -> Result<Started, LaunchError> {
        let program = program.map_or_else(|| installed(&self.program), Path::to_owned);
        self.link.send(&LaunchRequest::Start(program.clone()), &[])?;
        let (launched, mut sockets) = self.link.receive::<Launched>(START_LIMIT)?;
        let pid = launched.map_err(LaunchError::Refused)?;
        let socket = sockets.pop().ok_or(LinkError::Ended)?;
        Ok(Started { link: UpgradeLink::new(socket), pid, program })
    }
}

impl Launcher {
    /// Ends a started program, and waits for its end. Returns whether it has ended.
    pub(super) fn end(&self, pid: u32) -> bool {
        let ended = self.link.send(&LaunchRequest::End(pid), &[]);
        let ended = ended.and_then(|()| self.link.receive::<Launched>(START_LIMIT).map(drop));
        if let Err(error) = &ended {
            tracing::error!("process {pid} of the failed upgrade may still run: {error}");
        }
        ended.is_ok()
    }
}

/// Returns the path of the program without the note of the kernel that the file was replaced.
fn installed(program: &Path) -> PathBuf {
    let text = program.to_string_lossy();
    text.strip_suffix(" (deleted)").map_or_else(|| program.to_owned(), PathBuf::from)
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Runs the launcher: starts programs with these arguments on request, until the switch has ended. Its
/// standard input is the way to the switch.
#[must_use]
pub fn serve(arguments: &[OsString]) -> ExitCode {
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
    let link = UpgradeLink::new(socket);
    let mut children: Vec<Child> = Vec::new();
    loop {
        let request = link.receive::<LaunchRequest>(REAP);
        children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let request = match request {
            Ok((request, _)) => request,
            Err(LinkError::Late(_)) => continue,
            Err(LinkError::Ended) => return ExitCode::SUCCESS,
            Err(_) => return ExitCode::FAILURE,
        };
        let program = match request {
            LaunchRequest::Start(program) => program,
            LaunchRequest::End(pid) => {
                children.iter_mut().filter(|child| child.id() == pid).for_each(end);
                if link.send(&Launched::Ok(pid), &[]).is_err() {
                    return ExitCode::FAILURE;
                }
                continue;
            }
        };
        let sent = match spawn(&program, arguments) {
            Ok((child, socket)) => {
                let sent = link.send(&Launched::Ok(child.id()), &[socket.as_fd()]);
                children.push(child);
                sent
            }
            Err(reason) => link.send(&Launched::Err(reason), &[]),
        };
        if sent.is_err() {
            return ExitCode::FAILURE;
        }
    }
}

fn end(child: &mut Child) {
    // A child that has ended cannot be killed.
    let _ = child.kill();
    let _ = child.wait();
}

/// Starts a program. Returns it with the way to it.
fn spawn(program: &Path, arguments: &[OsString]) -> Result<(Child, OwnedFd), String> {
    let refused = |reason: String| format!("{} is not started: {reason}", program.display());
    check(program).map_err(refused)?;
    let (ours, theirs) = pair().map_err(|error| refused(error.to_string()))?;
    let child = Command::new(program)
        .args(arguments)
        .env(SUCCESSOR, "1")
        // The new process is another main process of the service.
        .env_remove("WATCHDOG_PID")
        .stdin(Stdio::from(theirs))
        .spawn()
        .map_err(|error| refused(error.to_string()))?;
    Ok((child, ours))
}

/// Checks that only root, or the user of this process, can change a program.
fn check(program: &Path) -> Result<(), String> {
    let metadata = std::fs::metadata(program).map_err(|error| error.to_string())?;
    let user = rustix::process::geteuid().as_raw();
    if !program.is_absolute() || !metadata.is_file() {
        return Err("it is not a file with an absolute path".into());
    }
    if ![0, user].contains(&metadata.uid()) || metadata.mode() & 0o022 != 0 {
        return Err(
            "other users may change the file; it must belong to root and be writable by no other".into()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn programs_that_others_may_change_are_refused() {
        let path = std::env::temp_dir().join(format!("shunt-launcher-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        check(&path).unwrap();
        for mode in [0o775, 0o757] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(check(&path).unwrap_err().contains("other users"), "{mode:o}");
        }
        fs::remove_file(&path).unwrap();
        assert!(check(&path).unwrap_err().contains("No such file"));
        assert!(check(Path::new("/")).unwrap_err().contains("not a file"));
        assert_eq!(installed(Path::new("/usr/bin/shunt (deleted)")), Path::new("/usr/bin/shunt"));
    }
}
