// SPDX-License-Identifier: Apache-2.0
//! SIGHUP: the switch reads its configuration again.

use super::reload::Reloader;
use crate::sandbox::{self, ThreadKind};
use signal_hook::consts::SIGHUP;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;

/// Caught signals.
pub struct Hangups(UnixStream);

impl Hangups {
    /// Catches SIGHUP from now on.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn catch() -> io::Result<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGHUP, sender)?;
        Ok(Self(receiver))
    }

    /// Starts a thread that makes the reloader read the file after each signal. The thread ends with the
    /// process.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn start(mut self, reloader: Reloader) -> io::Result<()> {
        let run = move || {
            sandbox::enter(ThreadKind::Task);
            let mut signals = [0; 64];
            while let Ok(1..) = self.0.read(&mut signals) {
                reloader.request_signalled();
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(run).map(drop)
    }
}
