// SPDX-License-Identifier: Apache-2.0
//! CPU time of threads, and pinning of threads to CPUs.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::Error;

/// CPU time of the calling thread, from the kernel's accounting.
#[derive(Clone, Copy, Debug)]
pub struct ThreadCpu(u64);

impl ThreadCpu {
    /// Reads the clock.
    #[must_use]
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Self(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
    }

    /// Returns the CPU time used since `self`, in nanoseconds.
    #[must_use]
    pub fn elapsed_ns(self) -> u64 {
        Self::now().0.saturating_sub(self.0)
    }
}

/// Returns the CPU time in nanoseconds that thread `tid` of process `pid` has used.
///
/// # Errors
/// Returns an error if there is no such thread, or if the kernel keeps no scheduler statistics.
pub fn task_cpu_ns(pid: u32, tid: u32) -> Result<u64, Error> {
    let path = format!("/proc/{pid}/task/{tid}/schedstat");
    let fault = |source| Error::System { what: format!("CPU time of thread {tid} ({path})"), source };
    let text = std::fs::read_to_string(&path).map_err(fault)?;
    let first = text.split_whitespace().next().and_then(|word| word.parse().ok());
    first.ok_or_else(|| fault(io::Error::other("the first word is not a number")))
}

/// Returns the CPUs on which the calling thread may run.
///
/// # Errors
/// Returns an error if the system call fails.
pub fn allowed_cpus() -> Result<Vec<usize>, Error> {
    let set = sched_getaffinity(None)
        .map_err(|errno| Error::System { what: "the list of allowed CPUs".into(), source: errno.into() })?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Pins the calling thread, and programs that it starts, to `cpu`.
///
/// # Errors
/// Returns an error if the CPU does not exist or is not allowed.
pub fn pin_to(cpu: usize) -> Result<(), Error> {
    let refused = |source| Error::System { what: format!("pinning to CPU {cpu}"), source };
    if cpu >= CpuSet::MAX_CPU {
        return Err(refused(io::ErrorKind::InvalidInput.into()));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|errno| refused(errno.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn thread_time_counts_work_and_not_sleep() {
        let cpu = ThreadCpu::now();
        std::thread::sleep(Duration::from_millis(30));
        assert!(cpu.elapsed_ns() < 15_000_000, "{} ns of CPU time in a sleep", cpu.elapsed_ns());
        let (wall, cpu) = (Instant::now(), ThreadCpu::now());
        while cpu.elapsed_ns() < 5_000_000 {}
        // The two clocks may have slightly different rates.
        assert!(wall.elapsed() >= Duration::from_micros(4_900), "{:?}", wall.elapsed());
    }

    #[test]
    fn the_time_of_a_task_is_read_and_a_missing_task_is_refused() {
        assert!(task_cpu_ns(std::process::id(), std::process::id()).is_ok());
        let error = task_cpu_ns(std::process::id(), u32::MAX).unwrap_err().to_string();
        assert!(error.contains("CPU time of thread 4294967295"), "{error}");
    }

    #[test]
    fn a_thread_is_pinned_to_an_allowed_cpu_only() {
        std::thread::spawn(|| {
            let cpu = *allowed_cpus().unwrap().last().unwrap();
            pin_to(cpu).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [cpu]);
            assert!(pin_to(CpuSet::MAX_CPU).is_err());
            assert!(pin_to(CpuSet::MAX_CPU - 1).is_err());
        })
        .join()
        .unwrap();
    }
}
