// SPDX-License-Identifier: Apache-2.0
//! DPDK's environment, started once in a process.

use super::{Settings, shim};
use std::sync::OnceLock;

/// Options that say on which CPUs DPDK is to have threads of its own.
const CORE_OPTIONS: [&str; 6] = ["-l", "-c", "-s", "-S", "--lcores", "--main-lcore"];

static STARTED: OnceLock<Result<(), String>> = OnceLock::new();

/// Starts it, if it has not been. The error says what was wrong, what DPDK's own messages before it (in the log)
/// mean, and what would be right.
pub(super) fn start(settings: &Settings) -> Result<(), String> {
    STARTED.get_or_init(|| start_once(&settings.eal)).clone()
}

/// Refuses options that would print something and end the process.
pub(super) fn check(eal: &[String]) -> Result<(), String> {
    eal.iter().find(|option| ends_the_process(option)).map_or(Ok(()), |option| {
        Err(format!("the EAL argument \"{option}\" is for programs that do nothing else; leave it away"))
    })
}

fn start_once(eal: &[String]) -> Result<(), String> {
    check(eal)?;
    if let Some(log) = super::LOG.get() {
        shim::log_to(*log)?;
    }
    let mut arguments = vec!["shunt".to_owned()];
    let has_cores = |option: &String| CORE_OPTIONS.iter().any(|core| option.starts_with(core));
    if !eal.iter().any(has_cores) {
        // One thread, wherever this process may run: workers have threads of their own.
        arguments.extend(["--lcores".into(), format!("0@({})", allowed_cpus())]);
    }
    arguments.extend_from_slice(eal);
    // DPDK pins the thread that starts it.
    let starter =
        std::thread::Builder::new().name("dpdk-eal".into()).spawn(move || shim::start_eal(&arguments));
    let result = starter.map_err(|error| error.to_string())?.join();
    let hint = if eal.iter().any(|option| option == "--no-huge") {
        "its messages above say more"
    } else {
        "its messages above say more. Huge pages may be missing: reserve some (sysctl vm.nr_hugepages=512) or use \
         dpdk.eal = [\"--no-huge\", \"-m\", \"512\", \"--no-shconf\"]"
    };
    match result {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("DPDK can not be started with {eal:?}: {error}; {hint}")),
        Err(_) => Err("the thread that starts DPDK ended early".into()),
    }
}

/// Whether DPDK would print something and end the process. It understands options that are cut short, too, and several letters
/// at once.
fn ends_the_process(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(name) => !name.is_empty() && ["help", "version"].iter().any(|long| long.starts_with(name)),
        None => option.starts_with("-h") || option.starts_with("-v"),
    }
}

/// The CPUs of this process in the kernel's notation, such as "0-3,6".
fn allowed_cpus() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.map_or("0", str::trim).to_owned()
}
