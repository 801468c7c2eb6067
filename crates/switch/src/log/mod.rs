// SPDX-License-Identifier: Apache-2.0
//! The daemon's log on stderr. It may lose lines, but it never blocks, panics or ends the process.
//!
//! Threads put finished lines into a bounded queue without waiting. One thread writes them. That thread may block for
//! ever on a pipe that nobody reads. So the end of the process waits for it at most [`FLUSH_LIMIT`], or twice that after
//! a failure: before its message is queued, so that there is room, and after it. Lines that are lost are counted, and
//! reported in the log as soon as it can be written again. Workers write no log per packet.
//!
//! Limits: [`queue::LINES`] lines wait, each of at most [`queue::LINE_BYTES`]; [`rate::LINES_PER_SECOND`].

mod queue;
mod rate;
mod writer;

pub use queue::LogCounts;

use queue::Queue;
use rate::RateLimit;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

/// Longest wait of one [`flush`].
const FLUSH_LIMIT: Duration = Duration::from_millis(500);

/// Lines of a backtrace that are logged.
const BACKTRACE_LINES: usize = 100;

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Logs to stderr from now on, by the levels of the environment variable `RUST_LOG`; warnings and errors without it.
/// Panics of any thread are logged, too.
///
/// # Errors
/// The thread that writes can not be started.
pub fn start() -> io::Result<()> {
    if QUEUE.get().is_some() {
        return Ok(());
    }
    let (queue, lines) = Queue::new();
    let tally = queue.tally();
    thread::Builder::new().name("log".into()).spawn(move || writer::run(&io::stderr(), &lines, &tally))?;
    let queue = QUEUE.get_or_init(|| queue);
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    // Its own complaints about the log would go to stderr directly, and panic if that fails.
    let lines = fmt::layer().log_internal_errors(false).with_writer(|| QueueWriter(queue));
    // It fails only when a log is set up already, which then goes on.
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .with(RateLimit::new(queue.tally()))
        .try_init();
    // The usual hook writes to stderr directly, and the thread that panics would block there.
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Writes a text of one line or more to the log, at whatever level that is set. Without a log it goes to stderr.
pub fn say(text: &str) {
    match QUEUE.get() {
        Some(queue) => text.lines().for_each(|line| queue.put(line.as_bytes())),
        // Nobody is left to report an error to.
        None => drop(writeln!(io::stderr(), "{text}")),
    }
}

/// Waits until the lines so far are written or lost, but at most [`FLUSH_LIMIT`].
pub fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(FLUSH_LIMIT);
    }
}

/// How many lines were written and how many were lost, and why.
#[must_use]
pub fn counts() -> LogCounts {
    QUEUE.get().map(Queue::counts).unwrap_or_default()
}

/// Counts a line that was left out by a limit of its own, which reports the loss itself.
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
    let backtrace = std::backtrace::Backtrace::capture();
    if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
        backtrace.to_string().lines().take(BACKTRACE_LINES).for_each(say);
    }
}

/// What the formatter writes to: each call is a line. It never fails.
struct QueueWriter<'a>(&'a Queue);

impl Write for QueueWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
