// SPDX-License-Identifier: Apache-2.0
//! Checks of a configuration against this build and this machine.

use crate::endpoint::Endpoint;
use crate::mistakes::Mistakes;
use crate::settings::ConfiguredPort;
use crate::socket::{SocketPurpose, check_socket_path};
use port::PortError;
use std::path::Path;

/// Extent of the checks. Each scope includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Checks the file only.
    File,
    /// Also checks that this build contains the drivers of the ports.
    Build,
    /// Also checks that CPUs, devices and socket directories exist on this machine.
    Machine,
}

/// File with the list of CPUs that are online.
const ONLINE: &str = "/sys/devices/system/cpu/online";

impl Scope {
    /// Checks that a worker can be pinned to this CPU. If the CPU is online but this process may not use it,
    /// returns a note.
    pub fn cpu(self, cpu: usize) -> Result<Option<String>, String> {
        if self < Self::Machine {
            return Ok(None);
        }
        let online = std::fs::read_to_string(ONLINE).unwrap_or_default();
        let online = online.trim();
        if !online.is_empty() && !in_list(online, cpu) {
            return Err(format!("this machine has no online CPU {cpu}; use one of {online}"));
        }
        let allowed = rustix::thread::sched_getaffinity(None);
        let is_allowed = allowed.is_ok_and(|set| cpu < rustix::thread::CpuSet::MAX_CPU && set.is_set(cpu));
        Ok((!is_allowed).then(|| {
            format!(
                "this process may not use CPU {cpu}; a switch with the same restriction runs the worker unpinned."
            )
        }))
    }

    /// Checks that the port of the table at `key` can be opened.
    pub fn port(self, key: &str, port: &ConfiguredPort, mistakes: &mut Mistakes) {
        let check = match self {
            Self::File => return,
            Self::Build => port::check,
            Self::Machine => port::find,
        };
        if let Err(error) = check(&port.spec()) {
            let name = match error {
                PortError::UnknownDriver { .. } | PortError::NotBuilt { .. } => "driver",
                PortError::BadQueues { .. } => "workers",
                _ => "device",
            };
            mistakes.wrong(format!("{key}.{name}"), error.to_string());
        }
    }

    /// Checks that a socket can be created at this endpoint. If it cannot, adds a mistake for `key`.
    pub fn socket(self, key: &str, end: &Endpoint, purpose: SocketPurpose, mistakes: &mut Mistakes) {
        if let (Self::Machine, Endpoint::Unix(path)) = (self, end) {
            self.socket_path(key, path, purpose, mistakes);
        }
    }

    /// Checks that a socket can be created at this path.
    pub fn socket_path(self, key: &str, path: &Path, purpose: SocketPurpose, mistakes: &mut Mistakes) {
        if self == Self::Machine {
            mistakes.at(key, check_socket_path(path, purpose).map_err(|error| error.to_string()));
        }
    }
}

/// Returns whether a CPU list of the kernel, such as `0-3,8`, contains this number.
fn in_list(list: &str, number: usize) -> bool {
    list.split(',').any(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        from.parse().is_ok_and(|from: usize| from <= number) && to.parse().is_ok_and(|to: usize| number <= to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        let has = |list: &str| (0..6).filter(|cpu| in_list(list, *cpu)).collect::<Vec<usize>>();
        assert_eq!(
            (has("0-2,4"), has("5"), has("0-1"), has("")),
            (vec![0, 1, 2, 4], vec![5], vec![0, 1], vec![])
        );
    }

    #[test]
    fn cpus_are_checked_only_in_the_scope_of_the_machine() {
        assert_eq!(Scope::File.cpu(8_191), Ok(None));
        assert_eq!(Scope::Build.cpu(8_191), Ok(None));
        let problem = Scope::Machine.cpu(8_191).unwrap_err();
        assert!(problem.starts_with("this machine has no online CPU 8191; use one of 0"), "{problem}");
        assert!(Scope::Machine.cpu(0).is_ok());
    }
}
