// SPDX-License-Identifier: Apache-2.0
//! The thread that writes the log. Only this thread may wait for stderr.

use super::queue::{Line, LogCounters};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Minimum time between two reports of lost lines, and the longest wait for a line.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// Longest sleep before a non-blocking descriptor is tried again.
const RETRY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Writes lines until the sending end of the queue is dropped.
pub fn run(descriptor: &impl AsFd, lines: &Receiver<Line>, tally: &LogCounters) {
    let mut output = Output { descriptor, is_torn: false };
    let mut reports = Reports { reported: 0, last: None };
    loop {
        let line = match lines.recv_timeout(REPORT_PERIOD) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return reports.report_rest(&mut output, tally),
        };
        // Report lost lines first, because they came before this line.
        reports.report(&mut output, tally);
        if let Some(line) = line {
            match output.write(&line) {
                Ok(()) => tally.written(),
                Err(_) => tally.refused(),
            }
        }
    }
}

/// Number of lost lines that the log has reported.
struct Reports {
    reported: u64,
    last: Option<Instant>,
}

impl Reports {
    /// Reports lost lines, unless the last report was too recent.
    fn report(&mut self, output: &mut Output<'_, impl AsFd>, tally: &LogCounters) {
        if self.last.is_none_or(|last| last.elapsed() >= REPORT_PERIOD) {
            self.report_rest(output, tally);
        }
    }

    /// Reports the lost lines that no report contains yet.
    fn report_rest(&mut self, output: &mut Output<'_, impl AsFd>, tally: &LogCounters) {
        let lost = tally.lost();
        if lost == self.reported {
            return;
        }
        let text = format!("shunt: {} log lines lost, {lost} since the start\n", lost - self.reported);
        if output.write(text.as_bytes()).is_ok() {
            *self = Self { reported: lost, last: Some(Instant::now()) };
        }
    }
}

struct Output<'a, D> {
    descriptor: &'a D,
    /// Whether the last line was written only in part, so that the next line needs a line feed first.
    is_torn: bool,
}

impl<D: AsFd> Output<'_, D> {
    /// Writes a whole line. Waits while the descriptor accepts nothing.
    fn write(&mut self, line: &[u8]) -> Result<(), Errno> {
        if self.is_torn {
            self.write_bytes(b"\n")?;
            self.is_torn = false;
        }
        let mut rest = line;
        while !rest.is_empty() {
            match self.write_bytes(rest) {
                Ok(len) => rest = rest.get(len..).unwrap_or_default(),
                Err(error) => {
                    self.is_torn = rest.len() < line.len();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn write_bytes(&self, bytes: &[u8]) -> Result<usize, Errno> {
        loop {
            match write(self.descriptor, bytes) {
                Ok(0) => return Err(Errno::IO),
                Err(Errno::INTR) => {}
                // Another process that uses the same descriptor has made it non-blocking.
                Err(Errno::AGAIN) => {
                    let mut set = [PollFd::new(self.descriptor, PollFlags::OUT)];
                    match poll(&mut set, Some(&RETRY)) {
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => return Err(error),
                    }
                }
                done => return done,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::{LINES, LogCounts, LogQueue};
    use super::*;
    use std::fs::File;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;

    const LIMIT: Duration = Duration::from_secs(60);

    fn counts(written: u64, no_room: u64, refused: u64) -> LogCounts {
        LogCounts { written, no_room, refused, over_rate: 0 }
    }

    /// Waits until the counters are as expected.
    fn until(queue: &LogQueue, expected: LogCounts) {
        let start = Instant::now();
        while queue.counts() != expected {
            assert!(start.elapsed() < LIMIT, "{:?}, not {expected:?}", queue.counts());
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn started(descriptor: impl AsFd + Send + 'static) -> (LogQueue, thread::JoinHandle<()>) {
        let (queue, lines) = LogQueue::new();
        let tally = queue.tally();
        (queue, thread::spawn(move || run(&descriptor, &lines, &tally)))
    }

    #[test]
    fn lines_come_out_in_order() {
        let (out, input) = UnixStream::pair().unwrap();
        let (queue, thread) = started(out);
        (0..100).for_each(|n| queue.put(format!("line {n}").as_bytes()));
        queue.flush(LIMIT);
        assert_eq!(queue.counts(), counts(100, 0, 0));
        drop(queue);
        thread.join().unwrap();
        let lines: Vec<String> = BufReader::new(input).lines().map(Result::unwrap).collect();
        assert_eq!(lines, (0..100).map(|n| format!("line {n}")).collect::<Vec<_>>());
    }

    #[test]
    fn lines_refused_by_a_full_disk_or_a_closed_pipe_are_counted() {
        let (gone, reader) = UnixStream::pair().unwrap();
        drop(reader);
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (queue, _) = started(gone);
        (0..10).for_each(|_| queue.put(b"to nobody"));
        until(&queue, counts(0, 0, 10));
        let (queue, _) = started(full);
        (0..10).for_each(|_| queue.put(b"to a full disk"));
        until(&queue, counts(0, 0, 10));
    }

    #[test]
    fn lines_lost_to_a_stalled_reader_are_reported() {
        for nonblocking in [false, true] {
            let (out, mut input) = UnixStream::pair().unwrap();
            out.set_nonblocking(true).unwrap();
            while (&out).write(b"nothing more fits into the socket\n").is_ok() {}
            out.set_nonblocking(nonblocking).unwrap();
            let (queue, thread) = started(out);
            for n in 0..LINES * 8 {
                queue.put(format!("line {n}").as_bytes());
            }
            let lost = queue.counts().no_room;
            // The writer may already have taken one line from the queue.
            assert!((LINES as u64 * 7 - 1..=LINES as u64 * 7).contains(&lost), "{lost}");
            let reader = thread::spawn(move || {
                let mut text = String::new();
                input.read_to_string(&mut text).map(|_| text)
            });
            queue.flush(LIMIT);
            queue.put(b"the last");
            queue.flush(LIMIT);
            assert_eq!(queue.counts().written + lost, LINES as u64 * 8 + 1);
            drop(queue);
            thread.join().unwrap();
            let text = reader.join().unwrap().unwrap();
            // The writer may have begun its first report while lines were still being lost.
            let reports: Vec<&str> = text.lines().filter(|line| line.contains("log lines lost")).collect();
            assert!((1..=2).contains(&reports.len()), "{reports:?}");
            assert!(
                reports.concat().ends_with(&format!(" {lost} since the start")),
                "{reports:?}, not {lost}"
            );
            assert!(text.contains("\nthe last\n"));
        }
    }

    #[test]
    fn a_line_written_in_part_does_not_run_into_the_next() {
        // A real partial write would need a device with little space left, so the test sets `is_torn`
        // instead.
        let (out, input) = UnixStream::pair().unwrap();
        let mut output = Output { descriptor: &out, is_torn: true };
        output.write(b"next\n").unwrap();
        assert!(!output.is_torn);
        drop(out);
        let lines: Vec<String> = BufReader::new(input).lines().map(Result::unwrap).collect();
        assert_eq!(lines, ["", "next"]);
    }
}
