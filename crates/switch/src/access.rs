// SPDX-License-Identifier: Apache-2.0
//! Owner, group and mode of a control socket. Begin with [`ResolvedAccess::find`].

use crate::sandbox;
use config::SocketAccess;
use nix::unistd::{Group, User};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// File with the names and numbers of users.
const USERS: &str = "/etc/passwd";
/// File with the names and numbers of groups.
const GROUPS: &str = "/etc/group";

/// Reason why a control socket cannot have the configured owner, group and mode.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The system has no such user.
    #[error("control.owner: there is no user \"{0}\"; create the user, or name another")]
    NoUser(String),
    /// The system has no such group.
    #[error(
        "control.group: there is no group \"{0}\"; create it with `addgroup --system {0}`, or name another"
    )]
    NoGroup(String),
    /// The name is not in the file of names, and a thread with limits asks nobody else: libraries that look
    /// up names make system calls of their own.
    #[error(
        "{key}: \"{name}\" is not in {file}, and a running switch looks nowhere else; use another name or a number, \
         or restart the switch"
    )]
    NotInFile {
        /// Key in the configuration.
        key: &'static str,
        /// Name.
        name: String,
        /// Path of the file.
        file: &'static str,
    },
    /// The list of users or groups cannot be read.
    #[error("{key}: cannot look up \"{name}\": {source}")]
    LookUp {
        /// Key in the configuration.
        key: &'static str,
        /// Name or number.
        name: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The process may not change the socket.
    #[error(
        "{}: cannot give this control socket {access}: {source}{}", path.display(),
        if source.kind() == ErrorKind::PermissionDenied {
            "; the switch needs CAP_CHOWN, or must be a member of the group"
        } else { "" }
    )]
    Change {
        /// Path of the socket.
        path: PathBuf,
        /// Owner, group and mode in the configuration.
        access: SocketAccess,
        /// Error of the system.
        source: io::Error,
    },
}

/// Owner, group and mode of a control socket, with the numbers of the system.
#[derive(Clone, Debug)]
pub struct ResolvedAccess {
    access: SocketAccess,
    owner: u32,
    group: u32,
}

impl ResolvedAccess {
    /// Looks up the owner and the group.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such user or group.
    pub fn find(access: &SocketAccess) -> Result<Self, AccessError> {
        let owner = access.owner.as_deref().map(owner_number).transpose()?;
        let owner = owner.unwrap_or_else(|| nix::unistd::geteuid().as_raw());
        let group = access.group.as_deref().map(group_number).transpose()?;
        let group = group.unwrap_or_else(|| nix::unistd::getegid().as_raw());
        Ok(Self { access: access.clone(), owner, group })
    }

    /// Gives a socket the owner, the group and the mode. If this fails, the socket is as it was.
    ///
    /// # Errors
    ///
    /// Returns an error if the process may not change the socket.
    pub fn apply(&self, path: &Path) -> Result<(), AccessError> {
        let Self { access, owner, group } = self;
        let change = || {
            let there = fs::symlink_metadata(path)?;
            // The mode changes first if it gets narrower: a new group must not have the old mode.
            let narrowed = there.mode() & access.mode & 0o777;
            fs::set_permissions(path, Permissions::from_mode(narrowed))?;
            let changed = if (there.uid(), there.gid()) == (*owner, *group) {
                Ok(())
            } else {
                chown(path, Some(*owner), Some(*group))
            };
            changed.and_then(|()| fs::set_permissions(path, Permissions::from_mode(access.mode))).inspect_err(
                // The caller gets the first error.
                |_| drop(fs::set_permissions(path, Permissions::from_mode(there.mode() & 0o777))),
            )
        };
        change().map_err(|source| AccessError::Change { path: path.into(), access: access.clone(), source })
    }
}

/// Returns the number of the user with this name or number.
fn owner_number(name: &str) -> Result<u32, AccessError> {
    const KEY: &str = "control.owner";
    if let Some(number) = number_in(USERS, KEY, name)? {
        return Ok(number);
    }
    let failed =
        |error: nix::Error| AccessError::LookUp { key: KEY, name: name.to_owned(), source: error.into() };
    let found = User::from_name(name).map_err(failed)?;
    Ok(found.ok_or_else(|| AccessError::NoUser(name.to_owned()))?.uid.as_raw())
}

/// Returns the number of the group with this name or number.
fn group_number(name: &str) -> Result<u32, AccessError> {
    const KEY: &str = "control.group";
    if let Some(number) = number_in(GROUPS, KEY, name)? {
        return Ok(number);
    }
    let failed =
        |error: nix::Error| AccessError::LookUp { key: KEY, name: name.to_owned(), source: error.into() };
    let found = Group::from_name(name).map_err(failed)?;
    Ok(found.ok_or_else(|| AccessError::NoGroup(name.to_owned()))?.gid.as_raw())
}

/// Returns the number of a user or group in a file. A name that is a number is the number. Returns `None` if
/// the file does not have the name, but the thread may ask the system's other lists.
fn number_in(file: &'static str, key: &'static str, name: &str) -> Result<Option<u32>, AccessError> {
    if let Ok(number) = name.parse() {
        return Ok(Some(number));
    }
    let text = fs::read_to_string(file).unwrap_or_default();
    // NAME:PASSWORD:NUMBER, and more.
    let number = text.lines().find_map(|line| {
        let mut fields = line.split(':');
        fields.next().filter(|first| *first == name)?;
        fields.nth(1)?.parse().ok()
    });
    match number {
        None if sandbox::is_limited() => Err(AccessError::NotInFile { key, name: name.to_owned(), file }),
        number => Ok(number),
    }
}

/// Returns what a user can do to connect to a socket that refused the user.
pub fn advice(path: &Path) -> String {
    const CONFIGURE: &str = "or allow a group with control.group in the configuration";
    let Ok(there) = fs::metadata(path) else {
        return format!("its folder is closed to you; run as the user of the switch, {CONFIGURE}");
    };
    let owner = User::from_uid(nix::unistd::Uid::from_raw(there.uid())).ok().flatten();
    let owner = owner.map_or_else(|| there.uid().to_string(), |user| user.name);
    if there.mode() & 0o020 == 0 {
        return format!("run as the user {owner}, {CONFIGURE}");
    }
    let group = Group::from_gid(nix::unistd::Gid::from_raw(there.gid())).ok().flatten();
    let group = group.map_or_else(|| there.gid().to_string(), |group| group.name);
    format!(
        "it is for the user {owner} and the group {group}; `adduser USER {group}` and a new login add a user"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(owner: Option<&str>, group: Option<&str>, mode: u32) -> SocketAccess {
        SocketAccess { owner: owner.map(str::to_owned), group: group.map(str::to_owned), mode }
    }

    #[test]
    fn a_file_gets_the_owner_the_group_and_the_mode() {
        let path = std::env::temp_dir().join(format!("shunt-access-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let seen = || {
            let there = fs::metadata(&path).unwrap();
            (there.uid(), there.gid(), there.mode() & 0o777)
        };
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let (own, own_group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        for mode in [0o660, 0o600, 0o640] {
            ResolvedAccess::find(&access(None, None, mode)).unwrap().apply(&path).unwrap();
            assert_eq!(seen(), (own, own_group, mode));
        }
        if own == 0 {
            let other = ResolvedAccess::find(&access(Some("daemon"), Some("12345"), 0o660)).unwrap();
            other.apply(&path).unwrap();
            assert_eq!(seen(), (owner_number("daemon").unwrap(), 12345, 0o660));
        }
        fs::remove_file(&path).unwrap();
        let message = ResolvedAccess::find(&SocketAccess::default()).unwrap().apply(&path).unwrap_err();
        assert!(message.to_string().contains("cannot give this control socket the owner"), "{message}");
    }

    #[test]
    fn unknown_users_and_groups_are_named() {
        for (access, expected) in [
            (access(Some("shunt-nobody-here"), None, 0o600), "control.owner: there is no user"),
            (access(None, Some("shunt-nobody-here"), 0o660), "control.group: there is no group"),
        ] {
            let found = ResolvedAccess::find(&access).unwrap_err().to_string();
            assert!(found.contains(expected) && found.contains("shunt-nobody-here"), "{found}");
        }
    }
}
