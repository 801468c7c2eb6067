// SPDX-License-Identifier: Apache-2.0
//! The thread that reads a store at the start. It decodes flow entries, with a second thread if there are
//! many, while the model restores the entries before them.

use crate::LoadReport;
use crate::clock::StoreClock;
use crate::decode;
use crate::error::StoreError;
use crate::folder::Folder;
use crate::format;
use crate::load::{self, Findings, Images, LastChange};
use crate::pages::SequencePage;
use crate::state::{EntryItem, FileTime};
use flow::Nanos;
use model::{KeptState, RestoredEntries, RestoredPart};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum number of decoded parts of each of the two threads that wait for the model.
const PARTS_QUEUED: usize = 32;

/// Minimum number of parts for which a second thread is worthwhile.
const SHARED_PARTS_MIN: usize = 8;

/// A store to read.
#[derive(Debug)]
pub struct StoreReader {
    pub folder: Folder,
    pub clock: StoreClock,
    pub datapath_id: u64,
    /// ID of the machine's current boot.
    pub boot_id: [u8; 16],
    /// Checksum of the configuration with which the datapath starts.
    pub base_mark: u32,
}

/// What was read.
#[derive(Debug)]
pub struct Found {
    pub folder: Folder,
    /// The newest whole state, or `None` if there is none.
    pub state: Option<KeptState>,
    pub report: LoadReport,
    /// Whether a file is damaged, so that a new snapshot should soon replace it.
    pub is_damaged: bool,
}

/// A thread that reads a store.
#[derive(Debug)]
pub struct RunningReader {
    path: PathBuf,
    found: Receiver<io::Result<Found>>,
    parts: Parts,
}

impl RunningReader {
    /// Waits until everything except the flow entries is decoded.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn finish(self) -> Result<Found, StoreError> {
        let Self { path, found, parts } = self;
        // The panic hook has logged a panic.
        let ended = |_| Err(io::Error::other("the thread that reads the store has ended"));
        let mut found: Found =
            found.recv().unwrap_or_else(ended).map_err(|source| StoreError::Folder { path, source })?;
        if let Some(state) = &mut found.state {
            state.entries.parts = Box::new(parts);
        }
        Ok(found)
    }
}

/// The newest whole state, whose flow entries are not decoded yet.
struct Loaded<'a> {
    state: KeptState,
    entries: Vec<(u64, EntryItem<'a>)>,
    /// Present time by the clock with which the times of addition were read.
    now: i64,
}

impl StoreReader {
    /// Starts the thread. It ends when the entries have been taken or are dropped.
    ///
    /// # Errors
    /// Returns an error if the system refuses the thread.
    pub fn start(self) -> Result<RunningReader, StoreError> {
        let path = self.folder.path().to_owned();
        let (report, found) = sync_channel(1);
        let [(even, even_parts), (odd, odd_parts)] = [sync_channel(PARTS_QUEUED), sync_channel(PARTS_QUEUED)];
        let thread = std::thread::Builder::new()
            .name("store-reader".into())
            .spawn(move || self.run(&report, [even, odd]))
            .map_err(StoreError::Thread)?;
        Ok(RunningReader {
            path,
            found,
            parts: Parts { parts: vec![even_parts, odd_parts].into(), thread: Some(thread) },
        })
    }

    fn run(self, report: &SyncSender<io::Result<Found>>, parts: [SyncSender<RestoredPart>; 2]) {
        let clock = self.clock;
        let mut findings = Findings::default();
        let images = match load::read(&self.folder, self.datapath_id, &mut findings) {
            Ok(images) => images,
            Err(error) => {
                // Without a receiver, the start has failed for another reason.
                let _ = report.send(Err(error));
                return;
            }
        };
        let (found, loaded) = self.load(&images, findings);
        let (state, rest) = match loaded {
            Some(Loaded { state, entries, now }) => (Some(state), Some((entries, now))),
            None => (None, None),
        };
        if report.send(Ok(Found { state, ..found })).is_err() {
            return;
        }
        if let Some((entries, now)) = rest {
            let created = |at: i64| clock.before(now.saturating_sub(at));
            decode_all(&entries, &created, parts);
        }
    }

    /// Finds the newest whole state. It is not part of the returned [`Found`].
    fn load(self, images: &Images, mut findings: Findings) -> (Found, Option<Loaded<'_>>) {
        let Self { folder, clock, boot_id, base_mark, .. } = self;
        let recorded = SequencePage::read(&folder.sequence());
        let mut report = LoadReport::default();
        let is_new = images.logs.is_empty() && images.snapshots.is_empty() && findings.problems.is_empty();
        let loaded = load::load(images, &folder, &mut findings).map(|mut loaded| {
            let LastChange { sequence, time, boot_id: then } = loaded.last;
            report.last = sequence;
            report.last_age = age_of(time, then == boot_id, clock);
            report.is_same_base = loaded.base_mark == base_mark;
            // After a restart of the machine, the time since the last change is unknown and does not count.
            let now = if then == boot_id { clock.set_up() } else { time.monotonic };
            let entries = loaded.state.take_entries();
            let (mut state, undecodable) = decode::decode(&loaded.state);
            state.entries = RestoredEntries { count: entries.len(), ..RestoredEntries::default() };
            report.undecodable = undecodable;
            if !report.is_same_base {
                state.stateless = None;
            }
            Loaded { state, entries, now }
        });
        report.lost = match recorded {
            Some(recorded) => Some(recorded.saturating_sub(report.last)),
            None => is_new.then_some(0),
        };
        if let Err(error) = remove_unusable(&folder, report.last) {
            findings.problems.push(format!("{}: {error}", folder.path().display()));
        }
        report.problems = std::mem::take(&mut findings.problems);
        (Found { folder, state: None, report, is_damaged: findings.is_damaged }, loaded)
    }
}

/// Decodes flow entries, on two threads if there are many. Sends even parts to the first sender, and odd
/// parts to the second one.
fn decode_all(
    entries: &[(u64, EntryItem<'_>)],
    created: &(dyn Fn(i64) -> Nanos + Sync),
    [even, odd]: [SyncSender<RestoredPart>; 2],
) {
    // Each thread owns its sender, so that the receiver does not wait for a thread that has panicked.
    let decode_half = |half: usize, sender: SyncSender<RestoredPart>| {
        let parts = decode::parts(entries).skip(half).step_by(2);
        decode::decode_parts(half, parts, created, |part| sender.send(part).is_ok());
    };
    std::thread::scope(|scope| {
        let is_worthwhile = decode::parts(entries).len() >= SHARED_PARTS_MIN;
        let thread = std::thread::Builder::new().name("store-decoder".into());
        let of_thread = odd.clone();
        if is_worthwhile && thread.spawn_scoped(scope, move || decode_half(1, of_thread)).is_ok() {
            drop(odd);
            return decode_half(0, even);
        }
        let mut turns = [even, odd].into_iter().cycle();
        let mut send = |part| turns.next().is_some_and(|sender| sender.send(part).is_ok());
        decode::decode_parts(0, decode::parts(entries), created, &mut send);
    });
}

/// Returns the time since a change, which was made in this boot of the machine or in an earlier one.
fn age_of(time: FileTime, is_same_boot: bool, clock: StoreClock) -> Option<Duration> {
    if time == FileTime::default() {
        return None;
    }
    if is_same_boot {
        let age = clock.set_up().saturating_sub(time.monotonic).max(0);
        return Some(Duration::from_nanos(age.unsigned_abs()));
    }
    clock.wall_ms().checked_sub(time.wall_ms).map(Duration::from_millis)
}

/// Removes snapshots that were never completed, and files that do not continue the loaded state. If a file
/// has content, it is kept under another name.
fn remove_unusable(folder: &Folder, last: u64) -> io::Result<()> {
    folder.remove_unfinished()?;
    let snapshots = folder.snapshots()?.into_iter().filter(|file| file.number > last + 1);
    let logs = folder.logs()?.into_iter().filter(|file| file.number > last);
    for file in snapshots.chain(logs) {
        let is_empty = std::fs::metadata(&file.path)?.len() <= format::HEADER_BYTES as u64;
        if !is_empty {
            folder.keep_aside(&file.path)?;
        }
        std::fs::remove_file(&file.path)?;
    }
    Ok(())
}

/// Parts of the decoded entries. When it is dropped, it waits for the end of the thread, which has all
/// capabilities of the start.
#[derive(Debug)]
struct Parts {
    /// The receiver of the next part comes first.
    parts: VecDeque<Receiver<RestoredPart>>,
    thread: Option<JoinHandle<()>>,
}

impl Iterator for Parts {
    type Item = RestoredPart;

    fn next(&mut self) -> Option<Self::Item> {
        let part = self.parts.front()?.recv().ok();
        self.parts.rotate_left(1);
        part
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // The threads end when they have no receivers.
        self.parts.clear();
        // The panic hook has logged a panic. Its entries count as undecodable.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_an_earlier_boot_has_no_age_if_the_clock_was_set_back() {
        let clock = StoreClock::at(Nanos(0));
        let at = |monotonic, wall_ms| FileTime { monotonic, wall_ms };
        let up = clock.set_up();
        assert_eq!(age_of(at(up - 5, 1), true, clock), Some(Duration::from_nanos(5)));
        assert!(age_of(at(1, clock.wall_ms() - 5), false, clock).is_some_and(|age| age.as_millis() >= 5));
        assert_eq!(age_of(at(1, u64::MAX), false, clock), None);
        assert_eq!(age_of(FileTime::default(), true, clock), None);
    }

    /// Decodes copies of an entry with different serial numbers. Returns what the model gets. Times are
    /// numbers of entries, and decoding the entry with number `panicking` panics.
    fn decoded(entries: u64, panicking: Option<i64>) -> Vec<u64> {
        let message = encoded();
        let item = |serial: u64| EntryItem { created: serial as i64, is_learned: false, message: &message };
        let items: Vec<(u64, EntryItem<'_>)> = (0..entries).map(|serial| (serial, item(serial))).collect();
        let created = |at: i64| {
            assert!(Some(at) != panicking, "planted");
            Nanos(0)
        };
        let [(even, even_parts), (odd, odd_parts)] = [sync_channel(PARTS_QUEUED), sync_channel(PARTS_QUEUED)];
        std::thread::scope(|scope| {
            let decoder = scope.spawn(|| decode_all(&items, &created, [even, odd]));
            let mut parts = Parts { parts: vec![even_parts, odd_parts].into(), thread: None };
            let serials =
                parts.by_ref().flat_map(|part| part.entries).map(|entry| entry.origin.serial).collect();
            drop(parts);
            assert_eq!(decoder.join().is_err(), panicking.is_some());
            serials
        })
    }

    fn encoded() -> Vec<u8> {
        let flow = flow::FlowMod { table: Some(flow::TableId(3)), ..flow::FlowMod::default() };
        let mut bytes = Vec::new();
        let message = openflow::flow_mod::FlowModMessage { flow, buffer_id: None };
        openflow::encode(&openflow::Message::FlowMod(message), 0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn entries_arrive_in_order_from_one_thread_and_from_two() {
        for entries in [0, 1, 513, 7 * 512, 8 * 512, 8 * 512 + 1, 200 * 512 - 1] {
            assert!(decoded(entries, None).into_iter().eq(0..entries), "{entries} entries");
        }
    }

    #[test]
    fn entries_before_a_panic_of_any_thread_arrive() {
        for part in [0, 1, 2, 33, 100, 101] {
            for entries in [part * 512 + 1, 300 * 512] {
                let arrived = decoded(entries, Some(part as i64 * 512));
                assert!(arrived.into_iter().eq(0..part * 512), "part {part}");
            }
        }
    }
}
