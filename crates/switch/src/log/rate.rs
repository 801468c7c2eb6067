// SPDX-License-Identifier: Apache-2.0
//! Limit of log lines per second, applied before a line is formatted.

use super::queue::LogCounters;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Maximum number of lines per second: one limit for warnings and errors, and one for all other levels.
pub const LINES_PER_SECOND: u64 = 200;

/// Number of low bits of a [`Window`] that count the lines; the other bits hold the second.
const COUNT_BITS: u32 = 24;

/// The current second, and the number of lines logged in it.
#[derive(Debug, Default)]
struct Window(AtomicU64);

impl Window {
    /// Counts one more line in this second. Returns whether it is within the limit.
    fn admits(&self, second: u64) -> bool {
        let admit = |state: u64| {
            let lines = if state >> COUNT_BITS == second { state & ((1 << COUNT_BITS) - 1) } else { 0 };
            (lines < LINES_PER_SECOND).then_some(second << COUNT_BITS | (lines + 1))
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, admit).is_ok()
    }
}

/// Layer that drops log events above the limit.
#[derive(Debug)]
pub struct RateLimit {
    start: Instant,
    warnings: Window,
    others: Window,
    tally: Arc<LogCounters>,
}

impl RateLimit {
    pub fn new(tally: Arc<LogCounters>) -> Self {
        Self { start: Instant::now(), warnings: Window::default(), others: Window::default(), tally }
    }

    fn admits(&self, level: Level, second: u64) -> bool {
        let window = if level <= Level::WARN { &self.warnings } else { &self.others };
        let admitted = window.admits(second);
        if !admitted {
            self.tally.over_rate();
        }
        admitted
    }
}

impl<S: Subscriber> Layer<S> for RateLimit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        self.admits(*event.metadata().level(), self.start.elapsed().as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn lines_are_limited_per_second_and_kind() {
        let limit = RateLimit::new(Arc::default());
        let admitted = |level, second| (0..1_000).filter(|_| limit.admits(level, second)).count() as u64;
        assert_eq!(admitted(Level::DEBUG, 0), LINES_PER_SECOND);
        assert_eq!(admitted(Level::INFO, 0), 0);
        assert_eq!(admitted(Level::WARN, 0), LINES_PER_SECOND);
        assert_eq!(admitted(Level::ERROR, 0), 0);
        assert_eq!(admitted(Level::INFO, 1), LINES_PER_SECOND);
        assert_eq!(limit.tally.counts().over_rate, 1_000 * 5 - 3 * LINES_PER_SECOND);
    }

    #[test]
    fn lines_above_the_limit_are_not_formatted() {
        /// A value that counts how often it is formatted.
        struct Costly<'a>(&'a AtomicU64);
        impl std::fmt::Display for Costly<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fetch_add(1, Ordering::Relaxed);
                f.write_str("costly")
            }
        }
        let formatted = AtomicU64::new(0);
        let lines = tracing_subscriber::fmt::layer().with_writer(io::sink);
        let limited = tracing_subscriber::registry().with(lines).with(RateLimit::new(Arc::default()));
        tracing::subscriber::with_default(limited, || {
            for _ in 0..50_000 {
                tracing::info!("{}", Costly(&formatted));
            }
        });
        // The loop may take longer than a second, and each second has its own limit.
        let formatted = formatted.into_inner();
        assert!((LINES_PER_SECOND..25_000).contains(&formatted), "{formatted}");
    }
}
