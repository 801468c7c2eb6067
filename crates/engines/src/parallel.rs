// SPDX-License-Identifier: Apache-2.0
//! Control side: use of a second thread while many rules are compiled.

use std::ops::Range;

/// Runs both functions exactly once, the first one on another thread if the system allows another thread.
pub type RunInParallel = fn(&mut (dyn FnMut() + Send), &mut dyn FnMut());

/// Number of rules from which a second thread is worthwhile.
pub const PARALLEL_MIN: usize = 4_096;

/// Computes something for all numbers below `len`, or for both halves of them at the same time if there are
/// many. Returns the results in order.
pub fn halves<T: Send>(
    run_in_parallel: Option<RunInParallel>,
    len: usize,
    compute: impl Fn(Range<usize>) -> T + Sync,
) -> impl Iterator<Item = T> {
    let middle = if len >= PARALLEL_MIN { len / 2 } else { len };
    let (mut first, mut second) = (None, None);
    match run_in_parallel.filter(|_| middle < len) {
        Some(run_in_parallel) => run_in_parallel(&mut || second = Some(compute(middle..len)), &mut || {
            first = Some(compute(0..middle))
        }),
        None => first = Some(compute(0..len)),
    }
    first.into_iter().chain(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_numbers_are_divided_and_few_are_not() {
        let run: RunInParallel = |other, this| {
            other();
            this();
        };
        let parts = |run, len| {
            let parts = halves(run, len, |part| (part.start, part.end));
            parts.collect::<Vec<_>>()
        };
        assert_eq!(parts(Some(run), PARALLEL_MIN), [(0, PARALLEL_MIN / 2), (PARALLEL_MIN / 2, PARALLEL_MIN)]);
        assert_eq!(parts(Some(run), 5_001), [(0, 2_500), (2_500, 5_001)]);
        assert_eq!(parts(Some(run), PARALLEL_MIN - 1), [(0, PARALLEL_MIN - 1)]);
        assert_eq!(parts(None, 5_001), [(0, 5_001)]);
        assert_eq!(parts(Some(run), 0), [(0, 0)]);
    }
}
