// SPDX-License-Identifier: Apache-2.0
//! The daemon's log on stderr. It may lose lines, but it never blocks, panics or ends the process.
//!
//! Threads put finished lines into a bounded queue without waiting. One thread writes the lines. That thread
//! may block forever on a pipe that nobody reads, so the process waits for it at most [`FLUSH_LIMIT`] before
//! it exits, or twice this limit after a failure.
//!
//! Lost lines are counted and reported as soon as the log can be written again. Workers log nothing per
//! packet.
//!
//! Limits: [`queue::LINES`] waiting lines of at most [`queue::LINE_BYTES`] each, and
//! [`rate::LINES_PER_SECOND`]. Begin with [`start`].

mod format;
mod levels;
mod queue;
mod rate;
mod writer;

pub use levels::{LogModuleRow, LogReport, report, set_level};
pub use queue::LogCounts;

use crate::sandbox::{self, ThreadKind};
use config::{LogFormat, LogSettings};
use format::LineFormat;
use queue::{LINE_BYTES, LogQueue};
use rate::RateLimit;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, reload};

/// Longest time that one [`flush`] waits.
const FLUSH_LIMIT: Duration = Duration::from_millis(500);

/// Maximum number of lines of a backtrace that are logged.
const BACKTRACE_LINES: usize = 100;

static QUEUE: OnceLock<LogQueue> = OnceLock::new();

/// Starts the log on stderr as text. The environment variable `RUST_LOG` sets the levels; the default is
/// warnings and errors. Panics of all threads are logged too.
///
/// # Errors
///
/// Returns an error if the writing thread cannot be started.
pub fn start() -> io::Result<()> {
    if QUEUE.get().is_some() {
        return Ok(());
    }
    let (queue, lines) = LogQueue::new();
    let tally = queue.tally();
    thread::Builder::new().name("log".into()).spawn(move || {
        sandbox::enter(ThreadKind::Log);
        writer::run(&io::stderr(), &lines, &tally);
    })?;
    let queue = QUEUE.get_or_init(|| queue);
    let (filter, handle) = reload::Layer::new(levels::filter(&[]));
    // By default, the layer would print its own errors directly to stderr, and panic if that fails.
    let lines = fmt::layer()
        .log_internal_errors(false)
        .event_format(LineFormat::default())
        .with_writer(|| QueueWriter(queue));
    let log = tracing_subscriber::registry().with(lines).with(filter).with(RateLimit::new(queue.tally()));
    // The call fails only if a log was already set up, which then stays active.
    if log.try_init().is_ok() {
        levels::started(handle);
    }
    // The default hook writes directly to stderr, which could block the panicking thread.
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Sets the form of the lines and the levels of the modules.
pub fn configure(settings: &LogSettings) {
    format::set(settings.format);
    settings.levels.iter().for_each(|(module, level)| set_level(*module, *level));
}

/// Writes one or more lines to the log, regardless of the log level. Before the log is started, the lines go
/// to stderr.
pub fn say(text: &str) {
    match QUEUE.get() {
        Some(queue) => text.lines().for_each(|line| queue.put(format::said(line).as_bytes())),
        // If stderr fails, the error cannot be reported anywhere.
        None => drop(writeln!(io::stderr(), "{text}")),
    }
}

/// Waits until the queued lines are written or lost, but at most [`FLUSH_LIMIT`].
pub fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(FLUSH_LIMIT);
    }
}

/// Returns the number of lines written, and the number of lines lost for each reason.
#[must_use]
pub fn counts() -> LogCounts {
    QUEUE.get().map(LogQueue::counts).unwrap_or_default()
}

/// Counts a line that was suppressed by a limit outside this module. The code of that limit reports the loss.
pub(crate) fn count_left_out() {
    if let Some(queue) = QUEUE.get() {
        queue.tally().left_out();
    }
}

fn log_panic(info: &PanicHookInfo<'_>) {
    let thread = thread::current();
    let name = thread.name().unwrap_or("without a name");
    let payload = info.payload();
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    let message = owned.or(payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    match info.location() {
        Some(place) => say(&format!("shunt: thread {name} panicked at {place}: {message}")),
        None => say(&format!("shunt: thread {name} panicked: {message}")),
    }
    // A backtrace reads the program's file, which would end the process before the line above is written.
    if !sandbox::may_read_files() {
        return;
    }
    let backtrace = std::backtrace::Backtrace::capture();
    if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
        backtrace.to_string().lines().take(BACKTRACE_LINES).for_each(say);
    }
}

/// Writer of the formatter. Each call writes one line, and never fails.
struct QueueWriter<'a>(&'a LogQueue);

impl Write for QueueWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match format::current() {
            LogFormat::Json if line.len() > LINE_BYTES => self.0.put(format::cut(line).as_bytes()),
            _ => self.0.put(line),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
