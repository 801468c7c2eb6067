// SPDX-License-Identifier: Apache-2.0
//! The upgrade of a running switch: a new program takes over the packets, the rules and the sockets of the
//! old one without a lost packet (docs/adr/0067).
//!
//! [`Launcher`] starts the new program. [`Predecessor`] is the old process, [`Successor`] the new one. They
//! speak [`protocol`] over a socket pair. Begin with `predecessor.rs`, which has the order of all steps.

mod counters;
mod launcher;
mod predecessor;
pub mod protocol;
mod successor;

pub(crate) use counters::{FinalCounters, InheritedCounters};
pub use launcher::{LaunchError, Launcher, serve as serve_launcher};
pub(crate) use predecessor::{FrozenDatapath, PortAccess, Predecessor, UpgradeCommand, UpgradeWay};
pub(crate) use successor::InheritedDatapath;
pub use successor::{Successor, SuccessorError};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// How an upgrade begins and continues in this process.
#[derive(Debug, Default)]
pub struct Upgrade {
    /// The process that starts new programs, if upgrades are enabled.
    pub launcher: Option<Launcher>,
    /// The way to the old process, if this process continues one.
    pub successor: Option<Arc<Successor>>,
}

/// Writes bytes to a file in memory that nobody can change afterwards.
fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("upgrade", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(bytes)?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file.into())
}

/// Reads a file of [`sealed`].
fn unsealed(file: OwnedFd) -> io::Result<Vec<u8>> {
    let mut file = File::from(file);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
