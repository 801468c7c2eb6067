// SPDX-License-Identifier: Apache-2.0
//! Lines of log that others cause, so many a second.

use flow::Nanos;

/// Lines in one second.
const LINES: u32 = 20;
const SECOND_NS: Nanos = 1_000_000_000;

/// Counts them.
#[derive(Debug, Default)]
pub struct LogLimit {
    second: Nanos,
    lines: u32,
}

impl LogLimit {
    /// Writes a line, unless there were too many in this second.
    pub fn line(&mut self, now: Nanos, write: impl FnOnce()) {
        let second = now / SECOND_NS;
        if second != self.second {
            let left_out = self.lines.saturating_sub(LINES);
            if left_out > 0 {
                tracing::warn!("{left_out} lines about OpenFlow connections are left out");
            }
            (self.second, self.lines) = (second, 0);
        }
        self.lines = self.lines.saturating_add(1);
        if self.lines <= LINES {
            write();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_the_next_second_begins_anew() {
        let mut limit = LogLimit::default();
        let mut written = 0;
        for n in 0..100 {
            limit.line(n, || written += 1);
        }
        assert_eq!(written, LINES);
        limit.line(SECOND_NS, || written += 1);
        assert_eq!(written, LINES + 1);
    }
}
