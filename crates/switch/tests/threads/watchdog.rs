// SPDX-License-Identifier: Apache-2.0
//! Watchdog that turns a hang into a failure with a report of all threads.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Maximum time of any step. A worker that is not woken sleeps longer. The watchdog waits twice as long, so
/// that more specific checks fail first.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Counter that a thread of a run advances while it makes progress.
#[derive(Debug, Default)]
pub struct Pulse(AtomicU64);

impl Pulse {
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Watches the pulses of threads until `is_over` returns `true`. Returns `false` if a pulse does not advance
/// for too long.
pub fn watch(pulses: &[&Pulse], is_over: &dyn Fn() -> bool) -> bool {
    let mut last: Vec<(u64, Instant)> = pulses.iter().map(|pulse| (pulse.read(), Instant::now())).collect();
    while !is_over() {
        for (pulse, (beats, since)) in pulses.iter().zip(&mut last) {
            let now = pulse.read();
            if now != *beats {
                (*beats, *since) = (now, Instant::now());
            }
            if since.elapsed() > 2 * PATIENCE {
                return false;
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Returns one line per thread of the process: name, state, CPU time, and where in the kernel it waits.
pub fn threads() -> String {
    let mut lines = String::new();
    for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let stat = read("stat");
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?');
        let run = read("schedstat");
        let run_ms = run.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0) / 1_000_000;
        let (name, waits) = (read("comm"), read("wchan"));
        let call = read("syscall");
        let call = call.split(' ').next().unwrap_or("?").trim().to_owned();
        lines +=
            &format!("  {:16} {state} ran {run_ms} ms, system call {call}, waits in {waits}\n", name.trim());
    }
    lines
}
