// SPDX-License-Identifier: Apache-2.0
//! Reads the newest whole state from the files of a store.
//!
//! The state is a snapshot with the transactions of the logs that follow it without a gap, up to the first
//! frame that is not whole. A snapshot is written while the rules change, so it may include transactions up
//! to the number in its last frame. It is used only if the logs are whole up to this transaction. Otherwise
//! the snapshot before it is used, whose logs are kept as long as this one's.

use crate::folder::{Folder, NumberedFile};
use crate::format::{
    BadHeader, ByteFields, FileHeader, FileKind, Frames, HEADER_BYTES, NextFrame, StoreFrame,
};
use crate::state::{FileState, FileTime, RawItem, next_item, time_of};
use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A file of the store, which is read when it is needed.
#[derive(Debug)]
pub struct FileImage {
    pub number: u64,
    pub path: PathBuf,
    pub header: FileHeader,
    content: OnceCell<Vec<u8>>,
}

impl FileImage {
    /// Returns the content of the file. A file that cannot be read is empty, and so it is not whole.
    fn bytes(&self) -> &[u8] {
        self.content.get_or_init(|| std::fs::read(&self.path).unwrap_or_default())
    }
}

/// The readable files of a store.
#[derive(Debug, Default)]
pub struct Images {
    pub logs: Vec<FileImage>,
    pub snapshots: Vec<FileImage>,
}

/// What happened while a store was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// One sentence for each problem.
    pub problems: Vec<String>,
    /// Whether a file is damaged, so that a new snapshot should soon replace it.
    pub is_damaged: bool,
}

impl Findings {
    /// Reports a damaged file and gives it a second name. Returns whether the file has one.
    fn damaged(&mut self, folder: &Folder, file: &Path, what: &str) -> bool {
        self.is_damaged = true;
        let aside = folder.keep_aside(file);
        let is_kept = aside.is_ok();
        let kept = match aside {
            Ok(name) => format!("it is kept as {name}"),
            Err(error) => format!("it cannot be kept under another name: {error}"),
        };
        self.problems.push(format!("{}: {what}; {kept}", file.display()));
        is_kept
    }

    /// Reports a file that must not be used again, and removes its first name.
    fn unusable(&mut self, folder: &Folder, file: &Path, what: &str) {
        if self.damaged(folder, file, what) {
            // If this fails, the next start finds the file again.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// The last transaction of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastChange {
    /// Number of the transaction.
    pub sequence: u64,
    /// Time of the transaction. If the state is a snapshot without later transactions, the snapshot's time.
    pub time: FileTime,
    /// The boot within which the time was read.
    pub boot_id: [u8; 16],
}

/// A state, with the number of its last transaction.
#[derive(Debug)]
pub struct LoadedFiles<'a> {
    pub state: FileState<'a>,
    pub last: LastChange,
    /// Checksum of the configuration with which the last process started.
    pub base_mark: u32,
}

/// Reads all files of a datapath. Files of other datapaths, versions and programs are renamed.
///
/// # Errors
/// Returns an error if the folder cannot be read.
pub fn read(folder: &Folder, datapath_id: u64, findings: &mut Findings) -> io::Result<Images> {
    Ok(Images {
        logs: read_kind(folder, folder.logs()?, FileKind::Log, datapath_id, findings),
        snapshots: read_kind(folder, folder.snapshots()?, FileKind::Snapshot, datapath_id, findings),
    })
}

fn read_kind(
    folder: &Folder,
    files: Vec<NumberedFile>,
    kind: FileKind,
    datapath_id: u64,
    findings: &mut Findings,
) -> Vec<FileImage> {
    let mut images = Vec::with_capacity(files.len());
    for NumberedFile { number, path } in files {
        let start = File::open(&path).and_then(|file| {
            let mut start = Vec::new();
            file.take(HEADER_BYTES as u64).read_to_end(&mut start).map(|_| start)
        });
        let start = match start {
            Ok(start) => start,
            Err(error) => {
                findings.is_damaged = true;
                findings.problems.push(format!("{}: cannot be read: {error}", path.display()));
                continue;
            }
        };
        let problem = match FileHeader::decode(&start) {
            Ok(header) if header.kind == kind && header.first == number => {
                if header.datapath_id == datapath_id {
                    images.push(FileImage { number, path, header, content: OnceCell::new() });
                    continue;
                }
                format!("it belongs to the datapath with ID {:#x}", header.datapath_id)
            }
            // The process was killed when it began the file.
            Err(BadHeader::Short) if kind == FileKind::Log => continue,
            Err(BadHeader::Newer(version)) => format!("a newer shunt has written it (version {version})"),
            _ => "its header is damaged".to_owned(),
        };
        findings.unusable(folder, &path, &problem);
    }
    images
}

/// Returns the newest whole state, or `None` if there is none.
pub fn load<'a>(images: &'a Images, folder: &Folder, findings: &mut Findings) -> Option<LoadedFiles<'a>> {
    for snapshot in images.snapshots.iter().rev() {
        let Some(base) = read_snapshot(snapshot) else {
            findings.unusable(folder, &snapshot.path, "the snapshot is damaged");
            continue;
        };
        let mut problems = Findings::default();
        let loaded = replay(images, &snapshot.header, base.state, base.time, folder, &mut problems);
        let reached = loaded.last.sequence;
        if reached >= base.end {
            findings.problems.extend(problems.problems);
            findings.is_damaged |= problems.is_damaged;
            return Some(loaded);
        }
        let what =
            format!("it needs the changes up to {}, but the logs are whole only up to {reached}", base.end);
        findings.unusable(folder, &snapshot.path, &what);
    }
    // Before its first snapshot, a store begins with the empty state. The first change is the state with
    // which the datapath started, so without a change nothing is known.
    let first = images.logs.first().filter(|log| log.number == 1)?;
    let loaded = replay(images, &first.header, FileState::default(), FileTime::default(), folder, findings);
    (loaded.last.sequence > 0).then_some(loaded)
}

/// A snapshot.
struct Base<'a> {
    state: FileState<'a>,
    time: FileTime,
    /// Number of the last transaction that the snapshot may include.
    end: u64,
}

/// Reads a snapshot. Returns `None` if it is not whole.
fn read_snapshot(image: &FileImage) -> Option<Base<'_>> {
    read_base(image.bytes(), &image.header)
}

/// Reads the state in the bytes of a snapshot. Returns `None` if it is not whole.
pub fn read_state<'a>(bytes: &'a [u8], header: &FileHeader) -> Option<FileState<'a>> {
    read_base(bytes, header).map(|base| base.state)
}

fn read_base<'a>(bytes: &'a [u8], header: &FileHeader) -> Option<Base<'a>> {
    let mut frames = Frames::new(bytes, header);
    let mut state = FileState::default();
    state.reserve(bytes.len());
    let mut transaction = Transaction::default();
    loop {
        let NextFrame::Frame(frame) = frames.next_frame() else { return None };
        if frame.kind.is_end {
            let whole = frames.next_frame() == NextFrame::End;
            return whole.then_some(Base { state, time: transaction.time, end: frame.sequence });
        }
        if transaction.add(&frame)? {
            transaction.items.drain(..).for_each(|item| state.apply(item));
        }
    }
}

/// A transaction of which some frames have been read.
#[derive(Debug, Default)]
struct Transaction<'a> {
    time: FileTime,
    items: Vec<RawItem<'a>>,
    /// Number of the transaction, if its first frame has been read but not its last one.
    open: Option<u64>,
}

impl<'a> Transaction<'a> {
    /// Adds a frame. Returns whether the transaction is complete, or `None` if the frame does not fit.
    fn add(&mut self, frame: &StoreFrame<'a>) -> Option<bool> {
        let mut fields = ByteFields(frame.payload);
        if frame.kind.is_first {
            self.items.clear();
            self.time = time_of(&mut fields)?;
        }
        let fits = match self.open {
            None => frame.kind.is_first,
            Some(open) => !frame.kind.is_first && open == frame.sequence,
        };
        if !fits {
            return None;
        }
        while let Some(item) = next_item(&mut fields)? {
            self.items.push(item);
        }
        self.open = (!frame.kind.is_last).then_some(frame.sequence);
        Some(frame.kind.is_last)
    }
}

/// Applies the transactions of the logs to the state of a file with the header `base`, up to the first
/// transaction that is not whole. There may be no log: a start removes a log without transactions before it
/// begins another one, and may be killed in between.
fn replay<'a>(
    images: &'a Images,
    base: &FileHeader,
    state: FileState<'a>,
    time: FileTime,
    folder: &Folder,
    findings: &mut Findings,
) -> LoadedFiles<'a> {
    let last = LastChange { sequence: base.first - 1, time, boot_id: base.boot_id };
    let mut loaded = LoadedFiles { state, last, base_mark: base.base_mark };
    for log in images.logs.iter().filter(|log| log.number >= base.first) {
        if log.number != loaded.last.sequence + 1 {
            findings.is_damaged = true;
            findings.problems.push(format!(
                "{}: changes {} to {} are missing before it, so it is not used",
                log.path.display(),
                loaded.last.sequence + 1,
                log.number - 1
            ));
            break;
        }
        loaded.base_mark = log.header.base_mark;
        replay_log(log, &mut loaded, folder, findings);
    }
    loaded
}

fn replay_log<'a>(
    log: &'a FileImage,
    loaded: &mut LoadedFiles<'a>,
    folder: &Folder,
    findings: &mut Findings,
) {
    let mut frames = Frames::new(log.bytes(), &log.header);
    loaded.state.reserve(log.bytes().len());
    let mut transaction = Transaction::default();
    loop {
        let before = frames.remaining();
        match frames.next_frame() {
            NextFrame::End if transaction.open.is_none() => return,
            NextFrame::End | NextFrame::Torn => {
                let text = format!("{}: the last change was not written to its end", log.path.display());
                findings.problems.push(text);
                return;
            }
            NextFrame::Frame(frame) if frame.sequence == loaded.last.sequence + 1 => {
                match transaction.add(&frame) {
                    Some(false) => continue,
                    Some(true) => {
                        let (time, boot_id) = (transaction.time, log.header.boot_id);
                        let LoadedFiles { state, last, .. } = &mut *loaded;
                        if boot_id != last.boot_id {
                            // The time between the two changes is unknown and does not count.
                            state.shift_times(time.monotonic.saturating_sub(last.time.monotonic));
                        }
                        transaction.items.drain(..).for_each(|item| state.apply(item));
                        loaded.last = LastChange { sequence: frame.sequence, time, boot_id };
                        continue;
                    }
                    None => {}
                }
            }
            NextFrame::Frame(_) | NextFrame::Damaged => {}
        }
        let what = format!("change {} is damaged, {before} bytes before the end", loaded.last.sequence + 1);
        findings.damaged(folder, &log.path, &what);
        return;
    }
}
