// SPDX-License-Identifier: Apache-2.0
//! The mirrors of a running datapath, and the threads that write their files (docs/adr/0064).
//!
//! Begin with [`prepare`], which opens the file of a mirror, then read [`Mirrors::change`]. The workers copy
//! the frames; see the module `mirror` of the crate `worker`.

mod capture;

pub use capture::{MirrorError, WrittenFile};

use crate::daemon::MonotonicClock;
use capture::MirrorCapture;
use config::{ConfigChange, ConfiguredMirror, ConfiguredPort, MirrorOutput};
use flow::{Nanos, PortNo};
use std::thread::JoinHandle;
use worker::{MirrorId, MirrorSetup, MirrorTarget, capture_rings};

/// Bytes of the ring from each worker to the thread that writes a file.
const RING_BYTES: usize = 4 << 20;

/// Longest time that a change waits until the files of removed mirrors are complete.
const COMPLETE_NS: Nanos = Nanos(2_000_000_000);

/// A mirror that can be added without a failure.
pub struct PreparedMirror {
    config: ConfiguredMirror,
    /// Where the workers send copies. `None` if the file could not be opened.
    target: Option<MirrorTarget>,
    capture: Option<MirrorCapture>,
}

/// Prepares a mirror for this number of workers: opens its file and starts the thread that writes it.
///
/// # Errors
/// Returns an error if the file cannot be used.
pub fn prepare(
    config: &ConfiguredMirror,
    ports: &[ConfiguredPort],
    workers: usize,
    clock: MonotonicClock,
) -> Result<PreparedMirror, MirrorError> {
    let mut prepared = prepare_later(config, ports, workers, clock);
    prepared.capture.iter_mut().try_for_each(|capture| capture.begin(&[]))?;
    Ok(prepared)
}

/// Prepares a mirror whose file [`Mirrors::continue_files`] opens.
fn prepare_later(
    config: &ConfiguredMirror,
    ports: &[ConfiguredPort],
    workers: usize,
    clock: MonotonicClock,
) -> PreparedMirror {
    let (target, capture) = match &config.output {
        MirrorOutput::Port { port, .. } => (MirrorTarget::Port(*port), None),
        MirrorOutput::File(file) => {
            let (inlets, outlet) = capture_rings(workers, RING_BYTES, file.snap_bytes);
            let capture = MirrorCapture::new(&config.name, file, sources(config, ports), outlet, clock);
            (MirrorTarget::Capture(inlets), Some(capture))
        }
    };
    PreparedMirror { config: config.clone(), target: Some(target), capture }
}

/// Prepares the mirrors of a datapath that starts. If a file cannot be used, only its mirror ends, and this
/// is logged.
pub fn prepare_all(
    configs: &[ConfiguredMirror],
    ports: &[ConfiguredPort],
    workers: usize,
    clock: MonotonicClock,
) -> Vec<PreparedMirror> {
    let one = |config: &ConfiguredMirror| {
        prepare(config, ports, workers, clock).unwrap_or_else(|error| {
            let reason = error.to_string();
            tracing::warn!("mirror {} has ended: {reason}", config.name);
            PreparedMirror {
                config: config.clone(),
                target: None,
                capture: Some(MirrorCapture::failed(reason)),
            }
        })
    };
    configs.iter().map(one).collect()
}

/// Prepares the mirrors of a datapath that an earlier process still serves. [`Mirrors::continue_files`] must
/// follow.
pub fn prepare_all_later(
    configs: &[ConfiguredMirror],
    ports: &[ConfiguredPort],
    workers: usize,
    clock: MonotonicClock,
) -> Vec<PreparedMirror> {
    configs.iter().map(|config| prepare_later(config, ports, workers, clock)).collect()
}

/// Returns the numbers and names of the ports whose frames a mirror copies.
fn sources(config: &ConfiguredMirror, ports: &[ConfiguredPort]) -> Vec<(PortNo, String)> {
    let is_source = |port: &&ConfiguredPort| {
        config.selection.ingress.contains(&port.number) || config.selection.egress.contains(&port.number)
    };
    ports.iter().filter(is_source).map(|port| (port.number, port.name.clone())).collect()
}

/// A mirror of a running datapath.
pub struct RunningMirror {
    /// Number of the mirror in the workers.
    pub id: MirrorId,
    pub config: ConfiguredMirror,
    /// Its file, if it writes one.
    pub capture: Option<MirrorCapture>,
}

/// The mirrors of a running datapath.
#[derive(Default)]
pub struct Mirrors {
    /// Number of the last mirror.
    last: u64,
    running: Vec<RunningMirror>,
    /// Threads of removed mirrors that may still write.
    ending: Vec<JoinHandle<()>>,
}

/// A change of the workers' mirrors.
#[derive(Default)]
pub struct MirrorsUpdate {
    pub removed: Vec<MirrorId>,
    pub added: Vec<MirrorSetup>,
}

impl Mirrors {
    /// Returns the mirrors in the order of their addition.
    pub fn running(&self) -> &[RunningMirror] {
        &self.running
    }

    /// Makes the changes of mirrors in `changes`. `prepared` has the mirrors to add. Returns the change for
    /// the workers.
    pub fn change(&mut self, changes: &[ConfigChange], prepared: Vec<PreparedMirror>) -> MirrorsUpdate {
        let mut update = MirrorsUpdate::default();
        for change in changes {
            let name = match change {
                ConfigChange::RemoveMirror(name) => name,
                ConfigChange::ChangeMirror(mirror) => &mirror.name,
                _ => continue,
            };
            let Some(at) = self.running.iter().position(|mirror| mirror.config.name == *name) else {
                continue;
            };
            let mirror = self.running.remove(at);
            update.removed.push(mirror.id);
            // The thread ends when the workers have given up the mirror.
            self.ending.extend(mirror.capture.and_then(MirrorCapture::into_thread));
        }
        for PreparedMirror { config, target, capture } in prepared {
            self.last += 1;
            let id = MirrorId(self.last);
            let selection = config.selection.clone();
            update.added.extend(target.map(|target| MirrorSetup { id, selection, target }));
            self.running.push(RunningMirror { id, config, capture });
        }
        update
    }

    /// Returns whether the files of removed mirrors are complete, or the change that began at `begun` has
    /// waited long enough for them.
    pub fn has_ended(&mut self, begun: Nanos, now: Nanos) -> bool {
        self.ending.retain(|thread| !thread.is_finished());
        self.ending.is_empty() || now.saturating_sub(begun) >= COMPLETE_NS
    }

    /// Opens the files that wait for the end of an earlier process. `before` has the files that it has
    /// written. If a file cannot be used, only its mirror ends, and this is logged.
    pub fn continue_files(&mut self, before: &[WrittenFile]) {
        for mirror in &mut self.running {
            if let Some(Err(error)) = mirror.capture.as_mut().map(|capture| capture.begin(before)) {
                tracing::warn!("mirror {} has ended: {error}", mirror.config.name);
            }
        }
    }

    /// Completes all files, and returns them. Called when no worker forwards any longer.
    pub fn finish(&mut self) -> Vec<WrittenFile> {
        let captures = self.running.iter_mut().filter_map(|mirror| {
            let MirrorOutput::File(file) = &mirror.config.output else { return None };
            Some((mirror.capture.as_mut()?, file))
        });
        let finish = |(capture, file): (&mut MirrorCapture, &config::MirrorFile)| {
            capture.finish();
            capture.written(&file.path)
        };
        captures.map(finish).collect()
    }
}
