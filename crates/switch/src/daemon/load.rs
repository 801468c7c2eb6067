// SPDX-License-Identifier: Apache-2.0
//! Loads or checks the flow file that the switch starts with.

use super::clock::MonotonicClock;
use super::{DaemonError, Stop};
use crate::plane::Plane;
use config::flow_file::{FlowFile, port_names};
use model::{Changed, Model};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;

/// Loads a flow file. Returns `None` if the daemon was stopped first.
pub fn load(
    model: &mut Model<Plane>,
    clock: MonotonicClock,
    path: &Path,
    stop: Option<&Stop>,
) -> Result<Option<Changed>, DaemonError> {
    let Some(file) = read(model, path, stop)? else { return Ok(None) };
    match file.apply(model, clock.now()) {
        Ok(_) if stop.is_some_and(Stop::is_requested) => Ok(None),
        Ok(changed) => Ok(Some(changed)),
        Err(mistakes) => Err(DaemonError::Flows { path: path.into(), mistakes }),
    }
}

/// Loads a flow file into a separate model, and reports every mistake.
pub fn check(model: &mut Model<Plane>, clock: MonotonicClock, path: &Path) -> Result<Changed, DaemonError> {
    let file = read(model, path, None)?.unwrap_or_default();
    file.check(model, clock.now()).map_err(|mistakes| DaemonError::Flows { path: path.into(), mistakes })
}

/// Reads a flow file. Returns `None` if the daemon was stopped first.
fn read(model: &Model<Plane>, path: &Path, stop: Option<&Stop>) -> Result<Option<FlowFile>, DaemonError> {
    let mut file = FlowFile::new(port_names(model));
    let limit = model.config().limits.entries;
    let read = Stoppable::open(path, stop).and_then(|opened| file.read(BufReader::new(opened), limit));
    if stop.is_some_and(Stop::is_requested) {
        return Ok(None);
    }
    read.map_err(|source| DaemonError::ReadFlows { path: path.into(), source })?;
    Ok(Some(file))
}

/// A file or a pipe. A read ends when the daemon is stopped, even if no data ever arrives.
struct Stoppable<'a> {
    file: File,
    stop: Option<&'a Stop>,
}

impl<'a> Stoppable<'a> {
    fn open(path: &Path, stop: Option<&'a Stop>) -> io::Result<Self> {
        // Without NONBLOCK, opening a pipe would block until its other end is open.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(Self { file: File::from(rustix::fs::open(path, flags, Mode::empty())?), stop })
    }
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let file = PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN);
            let polled = match self.stop {
                Some(stop) => {
                    poll(&mut [file, PollFd::from_borrowed_fd(stop.descriptor(), PollFlags::IN)], None)
                }
                None => poll(&mut [file], None),
            };
            match polled {
                // Do not return `Interrupted`, because callers would retry the read.
                Ok(_) if self.stop.is_some_and(Stop::is_requested) => return Err(ErrorKind::Other.into()),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}
