// SPDX-License-Identifier: Apache-2.0
//! The file of a mirror, and the thread that writes it.
//!
//! A limit or an error of the file ends the mirror. The workers then copy no more frames for it.

use crate::daemon::MonotonicClock;
use crate::sandbox::{self, ThreadKind};
use config::MirrorFile;
use flow::{Passage, PortNo};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wire::capture::{NgPacket, NgWriter};
use worker::{CaptureOutlet, MirroredFrame};

/// Pause after the rings were found empty.
const PAUSE: Duration = Duration::from_millis(2);
/// Longest time that the end of the switch waits until a file is complete.
const FINISH: Duration = Duration::from_secs(5);
/// First bytes of a pcapng file.
const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Bytes that are written at once.
const BUFFER_BYTES: usize = 256 * 1_024;

/// Reason why the file of a mirror cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// The system refused an operation.
    #[error("{}: cannot {what} the file of the mirror: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Operation that failed.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// The header could not be written.
    #[error("{}: {reason}", path.display())]
    Header {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the failure.
        reason: String,
    },
    /// The path leads to something that must not be overwritten.
    #[error("{}: exists and is not a pcapng file, so it is not overwritten; use another file", .0.display())]
    Foreign(PathBuf),
}

/// State that the thread shares with the control thread.
#[derive(Default)]
struct Shared {
    packets: AtomicU64,
    bytes: AtomicU64,
    /// The thread takes what is in the rings and ends.
    stops: AtomicBool,
    /// Why the mirror has ended, if it has.
    end: Mutex<Option<String>>,
}

impl Shared {
    fn set_end(&self, reason: String) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }
}

/// What an earlier process has written to the file of a mirror.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFile {
    path: PathBuf,
    packets: u64,
    /// Why the mirror has ended, if it has.
    end: Option<String>,
}

/// The file of a mirror.
pub struct MirrorCapture {
    shared: Arc<Shared>,
    /// What the thread needs, until [`MirrorCapture::begin`] starts it.
    pending: Option<Pending>,
    thread: Option<JoinHandle<()>>,
}

/// A mirror whose file is not open yet. Its frames wait in the rings.
struct Pending {
    name: String,
    file: MirrorFile,
    /// Numbers and names of the mirrored ports.
    ports: Vec<(PortNo, String)>,
    outlet: CaptureOutlet,
    clock: MonotonicClock,
}

impl Pending {
    /// Opens the file, and writes its header or that of a further section. Returns the length of the file
    /// before.
    fn open(&self, before: Option<&WrittenFile>) -> Result<(NgWriter<BufWriter<File>>, u64), MirrorError> {
        let path = &self.file.path;
        let header = |reason: wire::capture::CaptureError| MirrorError::Header {
            path: path.clone(),
            reason: reason.to_string(),
        };
        let (opened, length) = open(path, before.is_some())?;
        let names: Vec<String> = self.ports.iter().map(|(_, name)| name.clone()).collect();
        let output = BufWriter::with_capacity(BUFFER_BYTES, opened);
        let mut writer = NgWriter::new(output, self.file.snap_bytes, &names).map_err(header)?;
        writer.flush().map_err(header)?;
        Ok((writer, length))
    }
}

impl MirrorCapture {
    /// Prepares the file of a mirror. [`MirrorCapture::begin`] must follow. `ports` has the numbers and names
    /// of the mirrored ports.
    pub fn new(
        name: &str,
        file: &MirrorFile,
        ports: Vec<(PortNo, String)>,
        outlet: CaptureOutlet,
        clock: MonotonicClock,
    ) -> Self {
        let pending = Pending { name: name.to_owned(), file: file.clone(), ports, outlet, clock };
        Self { shared: Arc::default(), pending: Some(pending), thread: None }
    }

    /// Creates the file, and starts the thread that writes it. If an earlier process has written the file,
    /// the new frames follow those in it. The earlier process must have ended.
    ///
    /// # Errors
    /// Returns an error if the file cannot be used or the thread cannot be started. An error ends the mirror.
    pub fn begin(&mut self, before: &[WrittenFile]) -> Result<(), MirrorError> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        let before = before.iter().find(|before| before.path == pending.file.path);
        let packets = before.map_or(0, |before| before.packets);
        self.shared.packets.store(packets, Ordering::Relaxed);
        if let Some(end) = before.and_then(|before| before.end.clone()) {
            pending.outlet.end();
            self.shared.set_end(end);
            return Ok(());
        }
        let opened = pending.open(before).inspect_err(|error| {
            pending.outlet.end();
            self.shared.set_end(error.to_string());
        });
        let (writer, bytes) = opened?;
        self.shared.bytes.store(bytes + writer.bytes(), Ordering::Relaxed);
        let Pending { name, file, ports, outlet, clock } = pending;
        let path = file.path.clone();
        let thread = CaptureThread {
            name,
            file,
            ports: ports.iter().map(|(number, _)| *number).collect(),
            writer,
            before: (packets, bytes),
            outlet,
            clock,
            shared: Arc::clone(&self.shared),
        };
        let spawned = std::thread::Builder::new().name("mirror".into()).spawn(move || thread.run());
        self.thread = Some(spawned.map_err(|source| MirrorError::Io {
            path,
            what: "start the thread that writes",
            source,
        })?);
        Ok(())
    }

    /// Returns the state of a mirror whose file could not be opened.
    pub fn failed(reason: String) -> Self {
        let shared = Shared { end: Mutex::new(Some(reason)), ..Shared::default() };
        Self { shared: Arc::new(shared), pending: None, thread: None }
    }

    /// Returns the number of frames in the file.
    pub fn packets(&self) -> u64 {
        self.shared.packets.load(Ordering::Relaxed)
    }

    /// Returns the size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Returns why the mirror has ended, if it has.
    pub fn end(&self) -> Option<String> {
        self.shared.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns what this process has written to the file, whose path is given.
    pub fn written(&self, path: &Path) -> WrittenFile {
        WrittenFile { path: path.to_owned(), packets: self.packets(), end: self.end() }
    }

    /// Returns the thread, which ends when the workers have given up the mirror.
    pub fn into_thread(self) -> Option<JoinHandle<()>> {
        self.thread
    }

    /// Waits until all mirrored frames are in the file, but not for a disk that does not answer.
    pub fn finish(&mut self) {
        self.shared.stops.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        let begun = Instant::now();
        while !thread.is_finished() {
            if begun.elapsed() > FINISH {
                tracing::warn!("the file of a mirror is incomplete: its disk does not answer");
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Opens a file for writing from its beginning, or from its end with `continues`. Returns the file, and the
/// number of bytes before this position. An existing file is changed only if it is empty or a pcapng file.
fn open(path: &Path, continues: bool) -> Result<(File, u64), MirrorError> {
    let failed = |what| move |source| MirrorError::Io { path: path.to_owned(), what, source };
    let mut options = OpenOptions::new();
    // A pipe without a reader must not block the switch.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(nonblocking);
    let mut file = options.open(path).map_err(failed("open"))?;
    let kind = file.metadata().map_err(failed("examine"))?;
    if !kind.is_file() {
        return Err(MirrorError::Foreign(path.to_owned()));
    }
    let mut magic = [0; 4];
    let is_own = match file.read_exact(&mut magic) {
        Ok(()) => magic == MAGIC,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => kind.len() == 0,
        Err(error) => return Err(failed("read")(error)),
    };
    if !is_own {
        return Err(MirrorError::Foreign(path.to_owned()));
    }
    if continues {
        let length = file.seek(SeekFrom::End(0)).map_err(failed("examine"))?;
        return Ok((file, length));
    }
    file.set_len(0).and_then(|()| file.rewind()).map_err(failed("empty"))?;
    Ok((file, 0))
}

/// State of the thread that writes a file.
struct CaptureThread {
    name: String,
    file: MirrorFile,
    /// Port of each interface of the file.
    ports: Vec<PortNo>,
    writer: NgWriter<BufWriter<File>>,
    /// Number of frames and bytes in the file before the thread began.
    before: (u64, u64),
    outlet: CaptureOutlet,
    clock: MonotonicClock,
    shared: Arc<Shared>,
}

impl CaptureThread {
    /// Writes frames until the workers have given up the mirror, the switch ends, or the mirror ends.
    fn run(mut self) {
        sandbox::enter(ThreadKind::Task);
        loop {
            // Frames that come before the request to stop are written.
            let is_last = self.shared.stops.load(Ordering::Acquire) || self.outlet.is_over();
            let written = self.write_waiting();
            self.shared.packets.store(self.packets(), Ordering::Relaxed);
            self.shared.bytes.store(self.bytes(), Ordering::Relaxed);
            if let Err(reason) = written {
                self.outlet.end();
                tracing::warn!("mirror {} has ended: {reason}", self.name);
                self.shared.set_end(reason);
                return;
            }
            if is_last {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns the number of frames in the file.
    fn packets(&self) -> u64 {
        self.before.0 + self.writer.packets()
    }

    /// Returns the size of the file in bytes.
    fn bytes(&self) -> u64 {
        self.before.1 + self.writer.bytes()
    }

    /// Writes the frames that wait in the rings. The error is the reason for the end of the mirror.
    fn write_waiting(&mut self) -> Result<(), String> {
        let offset = self.epoch_offset();
        let mut is_written = false;
        let mut end = None;
        while let Some(frame) = self.outlet.next_frame() {
            let len = NgWriter::<File>::len_of(frame.bytes.len());
            if self.before.1 + self.writer.bytes() + len > self.file.max_bytes {
                end = Some(format!("its file has reached the limit of {} bytes", self.file.max_bytes));
                break;
            }
            let written = write(&mut self.writer, &self.ports, &frame, offset);
            if let Err(error) = written {
                return Err(format!("{}: {error}", self.file.path.display()));
            }
            is_written = true;
            let packets = self.before.0 + self.writer.packets();
            if self.file.max_packets.is_some_and(|most| packets >= most) {
                end = Some(format!("its file has reached the limit of {packets} frames"));
                break;
            }
        }
        if is_written {
            let flushed = self.writer.flush();
            flushed.map_err(|error| format!("{}: {error}", self.file.path.display()))?;
        }
        end.map_or(Ok(()), Err)
    }

    /// Returns what must be added to a time of the workers' clock for nanoseconds since 1970.
    fn epoch_offset(&self) -> i128 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since_epoch.as_nanos() as i128 - i128::from(self.clock.now().0)
    }
}

/// Writes a frame. A checksum that was left to the device is completed if the whole frame is there.
fn write(
    writer: &mut NgWriter<BufWriter<File>>,
    ports: &[PortNo],
    frame: &MirroredFrame<'_>,
    offset: i128,
) -> Result<(), wire::capture::CaptureError> {
    let Some(interface) = ports.iter().position(|port| *port == frame.port) else { return Ok(()) };
    let timestamp_ns = (i128::from(frame.time.0) + offset).clamp(0, i128::from(u64::MAX)) as u64;
    let is_outbound = frame.passage == Passage::Egress;
    let is_whole = frame.bytes.len() == frame.original_len as usize;
    let packet = NgPacket {
        interface,
        timestamp_ns,
        is_outbound,
        original_len: frame.original_len,
        bytes: frame.bytes,
    };
    let Some(checksum) = frame.checksum.filter(|_| is_whole) else { return writer.write(&packet) };
    let mut bytes = frame.bytes.to_vec();
    // Without the bytes of the checksum, the frame is written as it is.
    let _ = wire::segment::complete_partial(&mut bytes, checksum.start.into(), checksum.offset.into());
    writer.write(&NgPacket { bytes: &bytes, ..packet })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{MirrorSelection, Nanos};
    use port::mem::MemHandle;
    use worker::{MirrorId, MirrorSetup, MirrorTarget, PortQueues, PortsUpdate, Worker, WorkerSet};

    /// A worker whose port is mirrored into a ring.
    struct Lab {
        set: WorkerSet,
        worker: Worker,
        handle: MemHandle,
    }

    impl Lab {
        fn new() -> (Self, CaptureOutlet) {
            let (mut queues, handle) = port::mem::pair(1, 1, 64);
            let queue = Box::new(queues.remove(0)) as Box<dyn port::Queue>;
            let port = PortQueues { number: PortNo(1), queues: vec![(0, queue)], egress: Vec::new() };
            let (mut set, mut workers) = worker::build(&worker::WorkerSetConfig::default(), vec![port]);
            let (inlets, outlet) = worker::capture_rings(1, 1 << 16, 64);
            let selection = MirrorSelection { ingress: vec![PortNo(1)], ..MirrorSelection::default() };
            let setup = MirrorSetup { id: MirrorId(1), selection, target: MirrorTarget::Capture(inlets) };
            set.change_ports(PortsUpdate { mirrors_added: vec![setup], ..PortsUpdate::default() });
            (Self { set, worker: workers.remove(0), handle }, outlet)
        }

        /// Returns how many of five received frames are mirrored.
        fn mirrored(&mut self) -> u64 {
            let counts = |lab: &Self| lab.set.mirror_counts(MirrorId(1)).unwrap_or_default().mirrored;
            let before = counts(self);
            assert!((0..5).all(|_| self.handle.push(0, &[7; 100])));
            self.worker.turn(Nanos(1_000));
            counts(self) - before
        }
    }

    /// Writes five frames to a file. Returns the number of frames in the file, the reason of the mirror's
    /// end, and how many further frames are mirrored.
    fn written(path: &str, max_bytes: u64, max_packets: Option<u64>) -> (u64, Option<String>, u64) {
        let (mut lab, outlet) = Lab::new();
        assert_eq!(lab.mirrored(), 5);
        let output = OpenOptions::new().write(true).create(true).truncate(true).open(path).unwrap();
        let output = BufWriter::with_capacity(BUFFER_BYTES, output);
        let shared = Arc::<Shared>::default();
        shared.stops.store(true, Ordering::Release);
        let thread = CaptureThread {
            name: "span".to_owned(),
            file: MirrorFile { path: path.into(), snap_bytes: 64, max_bytes, max_packets },
            ports: vec![PortNo(1)],
            writer: NgWriter::new(output, 64, &["p1".to_owned()]).unwrap(),
            before: (0, 0),
            outlet,
            clock: MonotonicClock::new(),
            shared: Arc::clone(&shared),
        };
        thread.run();
        let capture = MirrorCapture { shared, pending: None, thread: None };
        (capture.packets(), capture.end(), lab.mirrored())
    }

    #[test]
    fn limits_and_a_full_disk_end_the_mirror() {
        let path = std::env::temp_dir().join(format!("shunt-mirror-{}.pcapng", std::process::id()));
        let file = path.display().to_string();
        assert_eq!(written(&file, 1_000_000, None), (5, None, 5));
        let whole = std::fs::metadata(&path).unwrap().len();
        let (packets, end, more) = written(&file, whole - 1, None);
        assert_eq!((packets, more), (4, 0));
        assert!(end.unwrap().contains(&format!("the limit of {} bytes", whole - 1)));
        assert!(std::fs::metadata(&path).unwrap().len() < whole);
        let (packets, end, more) = written(&file, 1_000_000, Some(3));
        assert_eq!(
            (packets, end.as_deref(), more),
            (3, Some("its file has reached the limit of 3 frames"), 0)
        );
        std::fs::remove_file(&path).unwrap();
        let (_, end, more) = written("/dev/full", 1_000_000, None);
        let end = end.unwrap();
        assert!(end.starts_with("/dev/full: ") && end.contains("No space left on device"), "{end}");
        assert_eq!(more, 0);
    }

    /// Continues a file with five frames. Returns the number of frames and the size of the file, and what it
    /// is for the next process.
    fn continued(file: &MirrorFile, before: &[WrittenFile]) -> (u64, u64, WrittenFile) {
        let (mut lab, outlet) = Lab::new();
        let ports = vec![(PortNo(1), "p1".to_owned())];
        let mut capture = MirrorCapture::new("span", file, ports, outlet, MonotonicClock::new());
        // These frames wait in the ring until the file is open.
        lab.mirrored();
        capture.begin(before).unwrap();
        capture.finish();
        if capture.end().is_some() {
            assert_eq!(lab.mirrored(), 0);
        }
        let length = std::fs::metadata(&file.path).unwrap().len();
        (capture.packets(), length, capture.written(&file.path))
    }

    #[test]
    fn the_file_of_an_earlier_process_goes_on_to_its_limit() {
        let path = std::env::temp_dir().join(format!("shunt-continued-{}.pcapng", std::process::id()));
        let file =
            MirrorFile { path: path.clone(), snap_bytes: 64, max_bytes: 1_000_000, max_packets: Some(8) };
        let (packets, first, written) = continued(&file, &[]);
        assert_eq!((packets, &written.end), (5, &None));
        let (packets, second, written) = continued(&file, &[written]);
        assert_eq!(packets, 8);
        assert!(second > first && written.end.as_ref().is_some_and(|end| end.contains("8 frames")));
        // A mirror that has ended does not begin again.
        let (packets, third, written) = continued(&file, &[written]);
        assert_eq!((packets, third), (8, second));
        assert!(written.end.is_some());
        // The size counts, too.
        let small = MirrorFile { max_bytes: second, max_packets: None, ..file.clone() };
        let (packets, _, written) = continued(&small, &[WrittenFile { end: None, ..written }]);
        assert!(packets == 8 && written.end.is_some_and(|end| end.contains("bytes")));
        // Another file begins again.
        let (packets, last, _) =
            continued(&file, &[WrittenFile { path: "/x".into(), packets: 3, end: None }]);
        assert_eq!((packets, last), (5, first));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn only_empty_files_and_captures_are_overwritten() {
        let folder = std::env::temp_dir().join(format!("shunt-capture-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("span.pcapng");
        for (before, is_taken) in
            [(&b""[..], true), (b"\x0a\x0d\x0d\x0a and more", true), (b"abc", false), (b"a text", false)]
        {
            std::fs::write(&path, before).unwrap();
            assert_eq!(open(&path, false).is_ok(), is_taken, "{before:?}");
            let after = std::fs::read(&path).unwrap();
            assert_eq!(after, if is_taken { b"" } else { before });
        }
        for (path, part) in [
            (folder.join("no/such/folder"), "cannot open the file of the mirror"),
            (folder.clone(), "cannot open the file of the mirror"),
            (PathBuf::from("/dev/null"), "is not a pcapng file"),
        ] {
            let error = open(&path, false).unwrap_err().to_string();
            assert!(error.contains(part) && error.starts_with(&path.display().to_string()), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
