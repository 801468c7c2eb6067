// SPDX-License-Identifier: Apache-2.0
//! Bounded queue between the threads that log and the thread that writes, with counters of the lines.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Capacity of the queue in lines.
pub const LINES: usize = 128;

/// Maximum length of a line in bytes. Longer lines are cut.
pub const LINE_BYTES: usize = 4_096;

/// Mark at the end of a line that was cut.
const CUT: &[u8] = b" [cut]";

/// Pause between two checks whether all lines are written.
const FLUSH_STEP: Duration = Duration::from_millis(1);

/// A line with its line feed.
pub type Line = Box<[u8]>;

/// Number of log lines by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Number of lines written.
    pub written: u64,
    /// Number of lines lost because the queue was full.
    pub no_room: u64,
    /// Number of lines that stderr refused, for example because the disk was full or the pipe was closed.
    pub refused: u64,
    /// Number of lines suppressed because the limit of lines per second was reached.
    pub over_rate: u64,
}

impl LogCounts {
    /// Returns the numbers of lost lines by reason.
    #[must_use]
    pub fn lost_by_name(self) -> BTreeMap<String, u64> {
        let Self { written: _, no_room, refused, over_rate } = self;
        [("log_no_room", no_room), ("log_refused", refused), ("log_over_rate", over_rate)]
            .map(|(name, count)| (name.to_owned(), count))
            .into()
    }
}

/// Counters of the log, advanced by the thread that writes or drops the line.
#[derive(Debug, Default)]
pub struct LogCounters {
    queued: AtomicU64,
    written: AtomicU64,
    refused: AtomicU64,
    no_room: AtomicU64,
    over_rate: AtomicU64,
    /// Number of suppressed lines whose loss is reported by another limit.
    reported_elsewhere: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl LogCounters {
    pub fn written(&self) {
        self.written.fetch_add(1, Ordering::Release);
    }

    pub fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Release);
    }

    pub fn over_rate(&self) {
        count(&self.over_rate);
    }

    pub fn left_out(&self) {
        count(&self.over_rate);
        count(&self.reported_elsewhere);
    }

    pub fn counts(&self) -> LogCounts {
        LogCounts {
            written: self.written.load(Ordering::Acquire),
            no_room: self.no_room.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Acquire),
            over_rate: self.over_rate.load(Ordering::Relaxed),
        }
    }

    /// Returns the number of lost lines that the log must report itself.
    pub fn lost(&self) -> u64 {
        let counts = self.counts();
        let lost = counts.no_room + counts.refused + counts.over_rate;
        lost.saturating_sub(self.reported_elsewhere.load(Ordering::Relaxed))
    }

    /// Returns whether no line is waiting or being written.
    fn is_settled(&self) -> bool {
        let counts = self.counts();
        counts.written + counts.refused >= self.queued.load(Ordering::Relaxed)
    }
}

/// Sending end of the queue.
#[derive(Debug)]
pub struct LogQueue {
    sender: SyncSender<Line>,
    tally: Arc<LogCounters>,
}

impl LogQueue {
    pub fn new() -> (Self, Receiver<Line>) {
        let (sender, lines) = sync_channel(LINES);
        (Self { sender, tally: Arc::default() }, lines)
    }

    pub fn tally(&self) -> Arc<LogCounters> {
        Arc::clone(&self.tally)
    }

    pub fn counts(&self) -> LogCounts {
        self.tally.counts()
    }

    /// Queues a line without waiting, or counts the line as lost if the queue is full.
    pub fn put(&self, text: &[u8]) {
        // Count the line before it can be written; otherwise `is_settled` could be true too early.
        count(&self.tally.queued);
        if self.sender.try_send(line(text)).is_err() {
            self.tally.queued.fetch_sub(1, Ordering::Relaxed);
            count(&self.tally.no_room);
        }
    }

    /// Waits at most `limit` until all lines are written or refused.
    pub fn flush(&self, limit: Duration) {
        let start = Instant::now();
        while !self.tally.is_settled() && start.elapsed() < limit {
            thread::sleep(FLUSH_STEP);
        }
    }
}

/// Returns the line, cut to its maximum length and with one line feed at its end.
fn line(text: &[u8]) -> Line {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let (kept, mark) = match text.get(..LINE_BYTES - CUT.len() - 1) {
        Some(kept) => (kept, CUT),
        None => (text, &b""[..]),
    };
    [kept, mark, b"\n"].concat().into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_loses_the_latest_lines_and_counts_them() {
        let (queue, lines) = LogQueue::new();
        for n in 0..LINES + 7 {
            queue.put(format!("{n}").as_bytes());
        }
        assert_eq!(queue.counts(), LogCounts { no_room: 7, ..LogCounts::default() });
        let kept: Vec<Line> = lines.try_iter().collect();
        assert_eq!((kept.len(), &*kept[0], &*kept[LINES - 1]), (LINES, &b"0\n"[..], &b"127\n"[..]));
        queue.put(b"again");
        assert_eq!(&*lines.try_recv().unwrap(), b"again\n");
    }

    #[test]
    fn a_queue_without_a_writer_counts_lost_lines() {
        let (queue, lines) = LogQueue::new();
        drop(lines);
        queue.put(b"nobody");
        assert_eq!((queue.counts().no_room, queue.tally().lost()), (1, 1));
        assert!(queue.tally.is_settled());
    }

    #[test]
    fn a_long_line_is_cut() {
        assert_eq!(&*line(b"short\n"), b"short\n");
        let fits = vec![b'x'; LINE_BYTES - CUT.len() - 2];
        assert_eq!(line(&fits).len(), fits.len() + 1);
        let long = line(&vec![b'x'; 100_000]);
        assert_eq!(long.len(), LINE_BYTES);
        assert!(long.ends_with(b"x [cut]\n"));
    }

    #[test]
    fn waiting_for_a_writer_that_hangs_ends_at_the_limit() {
        let (queue, _lines) = LogQueue::new();
        queue.put(b"never written");
        queue.flush(Duration::from_millis(20));
        assert!(!queue.tally.is_settled());
        queue.tally.written();
        assert!(queue.tally.is_settled());
    }
}
