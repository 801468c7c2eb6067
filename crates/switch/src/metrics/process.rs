// SPDX-License-Identifier: Apache-2.0
//! Metrics of the process: memory, CPU time, descriptors and log lines.

use super::catalogue::{Catalogue, with};
use crate::log;
use metrics::{Kind, Labels, Value};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

/// The process, which is this one.
pub struct Process {
    started: f64,
}

impl Process {
    /// Creates the metrics of a process that starts now.
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { started: now.as_secs_f64() }
    }

    /// Adds the metrics as of now. Values that the kernel does not report are left out.
    pub fn describe(&self, catalogue: &mut Catalogue) {
        let none = Labels::new;
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mut memory = |name, help, key| {
            if let Some(bytes) = kilobytes(&status, key) {
                catalogue.add(name, Some("bytes"), Kind::Gauge, help, none(), Value::Integer(bytes));
            }
        };
        memory("process_resident_memory", "Memory of the process that is in RAM", "VmRSS:");
        memory("process_resident_memory_max", "Largest resident memory since the start", "VmHWM:");
        memory("process_virtual_memory", "Address space of the process", "VmSize:");
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Value::Number(cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9);
        catalogue.add("process_cpu", Some("seconds"), Kind::Counter, "CPU time of the process", none(), cpu);
        let started = Value::Number(self.started);
        let help = "Time of day of the start, since 1970";
        catalogue.add("process_start_time", Some("seconds"), Kind::Gauge, help, none(), started);
        let mut number = |name, help, value| {
            catalogue.add(name, None, Kind::Gauge, help, none(), Value::Integer(value));
        };
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            number("process_open_fds", "Open descriptors", open.count() as u64);
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            number("process_max_fds", "Maximum number of open descriptors", most);
        }
        for (thread, ns) in threads() {
            let labels = with(&none(), "thread", thread);
            let help = "CPU time of the threads that run now, by name";
            let value = Value::Number(ns as f64 / 1e9);
            catalogue.add("shunt_thread_cpu", Some("seconds"), Kind::Counter, help, labels, value);
        }
        log_lines(catalogue);
        let info = with(&none(), "version", env!("CARGO_PKG_VERSION"));
        catalogue.add("shunt_build", None, Kind::Info, "Version of the program", info, Value::Info);
    }
}

fn log_lines(catalogue: &mut Catalogue) {
    let counts = log::counts();
    let written = Value::Integer(counts.written);
    catalogue.add("shunt_log_lines", None, Kind::Counter, "Log lines written", Labels::new(), written);
    let help = "Log lines lost, by reason";
    catalogue.add_by_name("shunt_log_lines_lost", help, &Labels::new(), "reason", &counts.lost_by_name());
}

/// Returns a value of the kernel's status file, in bytes.
fn kilobytes(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// Returns the CPU time in ns of the threads, summed by name.
fn threads() -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |file| fs::read_to_string(task.path().join(file)).ok();
        // A thread may end meanwhile.
        let (Some(name), Some(times)) = (read("comm"), read("schedstat")) else { continue };
        let Some(ns) = times.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()) else { continue };
        *all.entry(name.trim().to_owned()).or_default() += ns;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_reports_memory_and_threads_of_this_process() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let resident = kilobytes(&status, "VmRSS:").unwrap();
        assert!((1 << 20..1 << 34).contains(&resident), "{resident}");
        assert_eq!(kilobytes("VmRSS:\t    12 kB\n", "VmRSS:"), Some(12_288));
        assert_eq!(kilobytes("VmRSS:\t    12\n", "VmRSS:"), None);
        let name = fs::read_to_string("/proc/thread-self/comm").unwrap();
        assert!(threads().contains_key(name.trim()), "{:?}", threads());
    }
}
