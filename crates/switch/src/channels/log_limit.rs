// SPDX-License-Identifier: Apache-2.0
//! Limit of log lines per second, for lines that peers can cause.

use flow::Nanos;

/// Maximum number of lines per level and second.
const LINES: u32 = 20;
const SECOND_NS: Nanos = Nanos(1_000_000_000);

/// Counts log lines in the current second. Warnings have a separate count, so that info lines cannot suppress
/// warnings. Lines that the log level hides are not counted.
#[derive(Debug, Default)]
pub struct LogLimit {
    second: u64,
    infos: u32,
    warnings: u32,
}

impl LogLimit {
    /// Writes a line of level INFO, unless the limit for this second is reached.
    pub fn info(&mut self, now: Nanos, write: impl FnOnce()) {
        self.turn(now);
        if tracing::enabled!(tracing::Level::INFO) {
            count(&mut self.infos, write);
        }
    }

    /// Writes a line of level WARN, unless the limit for this second is reached.
    pub fn warn(&mut self, now: Nanos, write: impl FnOnce()) {
        self.turn(now);
        if tracing::enabled!(tracing::Level::WARN) {
            count(&mut self.warnings, write);
        }
    }

    fn turn(&mut self, now: Nanos) {
        let second = now / SECOND_NS;
        if second == self.second {
            return;
        }
        let left_out = self.infos.saturating_sub(LINES).saturating_add(self.warnings.saturating_sub(LINES));
        if left_out > 0 {
            tracing::warn!("{left_out} lines about connections of controllers were suppressed");
        }
        *self = Self { second, infos: 0, warnings: 0 };
    }
}

fn count(lines: &mut u32, write: impl FnOnce()) {
    *lines = lines.saturating_add(1);
    if *lines <= LINES {
        write();
    } else {
        crate::log::count_left_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::level_filters::LevelFilter;

    fn at(level: LevelFilter, test: impl FnOnce()) {
        let log = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::sink).finish();
        tracing::subscriber::with_default(log, test);
    }

    #[test]
    fn lines_above_the_limit_are_suppressed_until_the_next_second() {
        at(LevelFilter::INFO, || {
            let mut limit = LogLimit::default();
            let mut written = 0;
            for n in 0..100 {
                limit.info(Nanos(n), || written += 1);
            }
            assert_eq!((written, limit.infos), (LINES, 100));
            limit.info(SECOND_NS, || written += 1);
            assert_eq!((written, limit.infos), (LINES + 1, 1));
        });
    }

    #[test]
    fn warnings_have_a_separate_limit() {
        at(LevelFilter::INFO, || {
            let mut limit = LogLimit::default();
            let mut written = 0;
            for n in 0..100 {
                limit.info(Nanos(n), || {});
            }
            for n in 0..100 {
                limit.warn(Nanos(n), || written += 1);
            }
            assert_eq!(written, LINES);
        });
    }

    #[test]
    fn lines_that_the_level_hides_are_not_counted() {
        at(LevelFilter::WARN, || {
            let mut limit = LogLimit::default();
            for n in 0..100 {
                limit.info(Nanos(n), || panic!("a hidden line is formatted"));
            }
            assert_eq!(limit.infos, 0);
            limit.warn(Nanos(0), || {});
            assert_eq!(limit.warnings, 1);
        });
    }
}
