// SPDX-License-Identifier: Apache-2.0
//! User and capabilities of the process. Begin with [`Privileges::give_up`].

use super::error::SandboxError;
use super::thread_kind::ThreadKind;
use config::Config;
use nix::unistd::{Uid, User, initgroups, setresgid, setresuid};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
};
use std::ffi::CString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::Path;

/// Mode of the folder of a control socket, which clients must be able to enter.
const SOCKET_FOLDER: u32 = 0o755;
/// Mode of the folder of a store.
const STORE_FOLDER: u32 = 0o700;

/// What the process gives up at the start.
pub struct Privileges<'a> {
    /// User that the process becomes, if any.
    pub user: Option<&'a str>,
    /// Whether the process has DPDK ports. Their drivers may need any capability while they start.
    pub has_dpdk: bool,
}

impl Privileges<'_> {
    /// Gives up the user, and the capabilities that neither the start nor a thread needs. A program that the
    /// process executes gets no more privileges than the process has.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such user, or if the system refuses a step.
    pub fn give_up(&self, configs: &[Config]) -> Result<(), SandboxError> {
        let failed = |error: rustix::io::Errno| SandboxError::Privileges(error.into());
        let user = self.user.map(find_user).transpose()?;
        let keeps = self.of_start(user.is_some());
        if !self.has_dpdk {
            drop_from_bounding_set(keeps);
        }
        if let Some(user) = &user {
            make_folders(configs, user)?;
            become_user(user)?;
        }
        if !self.has_dpdk {
            keep(keeps).map_err(SandboxError::Privileges)?;
        }
        clear_ambient_capability_set().map_err(failed)?;
        set_no_new_privs(true).map_err(failed)
    }

    /// Returns the capabilities that are needed until all threads have started.
    fn of_start(&self, has_user: bool) -> CapabilitySet {
        let all = ThreadKind::ALL.into_iter().map(|kind| kind.capabilities(has_user));
        let of_threads = all.fold(CapabilitySet::empty(), |all, of_kind| all | of_kind);
        // Control sockets get another owner and group.
        let sockets = CapabilitySet::CHOWN | CapabilitySet::FOWNER;
        // Root expects to use the files of other users: flow files, certificates and folders.
        let files = CapabilitySet::DAC_OVERRIDE;
        // The limits on descriptors and locked memory are raised.
        let limits = CapabilitySet::SYS_RESOURCE;
        of_threads | sockets | limits | if has_user { CapabilitySet::empty() } else { files }
    }
}

/// Returns the user with this name or number.
///
/// # Errors
///
/// Returns an error if there is no such user. A user with a number must exist, too.
pub fn find_user(name: &str) -> Result<User, SandboxError> {
    let found = match name.parse() {
        Ok(number) => User::from_uid(Uid::from_raw(number)),
        Err(_) => User::from_name(name),
    };
    let failed = |error: nix::Error| SandboxError::LookUp { name: name.to_owned(), source: error.into() };
    found.map_err(failed)?.ok_or_else(|| SandboxError::NoUser(name.to_owned()))
}

/// Drops all capabilities of the calling thread but those in `wanted`.
///
/// # Errors
///
/// Returns the error of the system.
pub fn keep(wanted: CapabilitySet) -> io::Result<()> {
    let has = capabilities(None)?;
    let kept = has.permitted & wanted;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}

/// Removes all capabilities but `wanted` from those that the process could ever get. Without CAP_SETPCAP,
/// they stay, but [`set_no_new_privs`] has the same effect.
fn drop_from_bounding_set(wanted: CapabilitySet) {
    for one in CapabilitySet::all().iter().filter(|one| !wanted.contains(*one)) {
        let _ = remove_capability_from_bounding_set(one);
    }
}

/// Creates missing folders of control sockets and stores for the user, which may not create folders there.
fn make_folders(configs: &[Config], user: &User) -> Result<(), SandboxError> {
    for config in configs {
        let sockets = config.control.parent().filter(|folder| !folder.as_os_str().is_empty());
        let store = config.datapath.kept_rules.as_ref().map(|kept| kept.path.as_path());
        for (folder, mode) in
            [sockets.map(|path| (path, SOCKET_FOLDER)), store.map(|path| (path, STORE_FOLDER))]
                .into_iter()
                .flatten()
        {
            make_folder(folder, mode, user).map_err(|source| SandboxError::Folder {
                path: folder.into(),
                name: user.name.clone(),
                source,
            })?;
        }
    }
    Ok(())
}

/// Creates a folder for the user, if it does not exist.
fn make_folder(folder: &Path, mode: u32, user: &User) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
    }
    DirBuilder::new().mode(mode).create(folder)?;
    chown(folder, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
}

/// Becomes the user with its groups, but keeps the capabilities that are permitted.
fn become_user(user: &User) -> Result<(), SandboxError> {
    if user.uid == nix::unistd::geteuid() {
        return Ok(());
    }
    let change = || -> io::Result<()> {
        set_keep_capabilities(true)?;
        let name = CString::new(user.name.as_str())?;
        initgroups(&name, user.gid)?;
        setresgid(user.gid, user.gid, user.gid)?;
        setresuid(user.uid, user.uid, user.uid)?;
        set_keep_capabilities(false)?;
        // The capabilities are only permitted now.
        let permitted = capabilities(None)?.permitted;
        keep(permitted)?;
        // Otherwise, /proc/self would belong to root, and metrics could not read it.
        set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        Ok(())
    };
    change().map_err(|source| SandboxError::Become { name: user.name.clone(), source })
}
