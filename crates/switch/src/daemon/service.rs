// SPDX-License-Identifier: Apache-2.0
//! Reports to the service manager (sd_notify(3)): that the switch is ready, reloads or stops, and that it
//! works.
//!
//! Without the environment variable NOTIFY_SOCKET, reports have no effect. The watchdog of systemd restarts a
//! switch that does not report for the time WATCHDOG_USEC. Begin with [`Watchdog`].

use super::thread::Shared;
use sd_notify::NotifyState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of reports in the time after which the service manager would act.
const REPORTS: u32 = 4;

/// Whether another process continues this one.
static IS_CONTINUED: AtomicBool = AtomicBool::new(false);

/// Sends a report. A service manager that does not listen is no reason to stop forwarding.
fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!("the service manager was not reached: {error}");
    }
}

/// Reports that the switch forwards packets, with a line about it.
pub fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that the switch reads its configuration again. [`reloaded`] must follow.
pub fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        notify(&[NotifyState::Reloading, now]);
    }
}

/// Reports that the switch has read its configuration, with a line about the result.
pub fn reloaded(status: &str) {
    ready(status);
}

/// Reports that the switch ends, unless another process continues it.
pub fn stopping() {
    if !IS_CONTINUED.load(Ordering::Relaxed) {
        notify(&[NotifyState::Stopping]);
    }
}

/// Reports that another process is the main process of the service from now on.
pub fn report_main_process(pid: u32) {
    IS_CONTINUED.store(true, Ordering::Relaxed);
    notify(&[NotifyState::MainPid(pid)]);
}

/// Decides when to report that the switch works. All control threads share it.
///
/// A control thread calls [`Watchdog::report`] for each datapath whose workers make progress. When all
/// datapaths have been reported recently, the service manager gets a report. So neither a control thread nor
/// a worker can stand still without a restart of the switch.
pub struct Watchdog {
    start: Instant,
    /// Time after which the service manager acts.
    limit: Duration,
    /// For each datapath, when it was reported last, in ms since `start`.
    reported_ms: Vec<AtomicU64>,
    /// When the service manager got the last report, in ms since `start`.
    sent_ms: AtomicU64,
}

impl Watchdog {
    /// Creates the watchdog of this many datapaths, if the service manager expects reports.
    pub fn from_environment(datapaths: usize) -> Option<Arc<Self>> {
        sd_notify::watchdog_enabled().map(|limit| Arc::new(Self::new(limit, datapaths)))
    }

    fn new(limit: Duration, datapaths: usize) -> Self {
        let reported_ms = (0..datapaths).map(|_| AtomicU64::new(0)).collect();
        Self { start: Instant::now(), limit, reported_ms, sent_ms: AtomicU64::new(0) }
    }

    /// Reports that the control thread and the workers of a datapath work.
    pub fn report(&self, datapath: usize) {
        if self.is_due(datapath, self.start.elapsed()) {
            notify(&[NotifyState::Watchdog]);
        }
    }

    /// Records a report at a time since the start. Returns whether the service manager must get a report now.
    fn is_due(&self, datapath: usize, now: Duration) -> bool {
        let now_ms = now.as_millis() as u64;
        if let Some(reported_ms) = self.reported_ms.get(datapath) {
            reported_ms.store(now_ms, Ordering::Relaxed);
        }
        let limit_ms = self.limit.as_millis() as u64;
        let is_recent = |at: &AtomicU64| now_ms.saturating_sub(at.load(Ordering::Relaxed)) <= limit_ms / 2;
        let sent_ms = self.sent_ms.load(Ordering::Relaxed);
        now_ms.saturating_sub(sent_ms) >= limit_ms / u64::from(REPORTS)
            && self.reported_ms.iter().all(is_recent)
            && self.sent_ms.compare_exchange(sent_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// The watchdog of one datapath.
pub struct DatapathWatch {
    watchdog: Arc<Watchdog>,
    /// Position of the datapath in the watchdog.
    datapath: usize,
    /// For each worker, its last known number of publications, and when this number changed.
    seen: Vec<(u64, Instant)>,
}

impl DatapathWatch {
    pub fn new(watchdog: Arc<Watchdog>, datapath: usize) -> Self {
        Self { watchdog, datapath, seen: Vec::new() }
    }

    /// Reports the datapath if all its workers make progress.
    pub fn check(&mut self, workers: &[Arc<Shared>]) {
        let counts: Vec<u64> = workers.iter().map(|worker| worker.publications()).collect();
        if self.progress(&counts, Instant::now()) {
            self.watchdog.report(self.datapath);
        }
    }

    /// Returns whether each worker has published something recently.
    fn progress(&mut self, counts: &[u64], now: Instant) -> bool {
        self.seen.resize(counts.len(), (0, now));
        let half = self.watchdog.limit / 2;
        let mut all = true;
        for (seen, count) in self.seen.iter_mut().zip(counts) {
            if seen.0 != *count {
                *seen = (*count, now);
            }
            all &= now.saturating_duration_since(seen.1) <= half;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(8);

    fn due(watchdog: &Watchdog, datapath: usize, seconds: u64) -> bool {
        watchdog.is_due(datapath, Duration::from_secs(seconds))
    }

    #[test]
    fn reports_come_in_time_while_all_datapaths_work() {
        let watchdog = Watchdog::new(LIMIT, 2);
        let sent: Vec<u64> =
            (0..=12).filter(|second| due(&watchdog, (second % 2) as usize, *second)).collect();
        assert_eq!(sent, [2, 4, 6, 8, 10, 12]);
    }

    #[test]
    fn a_datapath_that_stands_still_ends_the_reports() {
        let watchdog = Watchdog::new(LIMIT, 2);
        assert!(due(&watchdog, 0, 2));
        assert!(due(&watchdog, 0, 4), "the start of the other is still recent");
        assert!((5..60).all(|second| !due(&watchdog, 0, second)));
        assert!(due(&watchdog, 1, 60), "it works again");
    }

    #[test]
    fn a_worker_that_stands_still_is_no_progress() {
        let start = Instant::now();
        let mut watch = DatapathWatch::new(Arc::new(Watchdog::new(LIMIT, 1)), 0);
        let mut at = |seconds, counts: &[u64]| watch.progress(counts, start + Duration::from_secs(seconds));
        assert!(at(0, &[1, 1]));
        assert!(at(4, &[2, 1]));
        assert!(!at(5, &[3, 1]));
        assert!(at(6, &[3, 2]));
        assert!(at(7, &[]), "a datapath without workers needs none");
    }
}
