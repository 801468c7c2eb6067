// SPDX-License-Identifier: Apache-2.0
//! DPDK's environment abstraction layer (EAL), started once per process.

use super::{DpdkSettings, shim};
use std::sync::OnceLock;

/// Options that select the CPUs for DPDK's own threads.
const CORE_OPTIONS: [&str; 6] = ["-l", "-c", "-s", "-S", "--lcores", "--main-lcore"];

static STARTED: OnceLock<Result<(), String>> = OnceLock::new();

/// Starts DPDK unless it was started before. The error describes the fault and a remedy.
pub(super) fn start(settings: &DpdkSettings) -> Result<(), String> {
    STARTED.get_or_init(|| start_once(&settings.eal)).clone()
}

/// Refuses options with which DPDK would print a text and exit the process.
pub(super) fn check(eal: &[String]) -> Result<(), String> {
    eal.iter().find(|option| ends_the_process(option)).map_or(Ok(()), |option| {
        Err(format!("the EAL argument \"{option}\" makes DPDK print a text and exit; leave it out"))
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
        // One DPDK thread on any CPU that the process may use. Workers have their own threads.
        arguments.extend(["--lcores".into(), format!("0@({})", allowed_cpus())]);
    }
    arguments.extend_from_slice(eal);
    // `rte_eal_init` pins the calling thread to a CPU, so it runs on a temporary thread.
    let starter =
        std::thread::Builder::new().name("dpdk-eal".into()).spawn(move || shim::start_eal(&arguments));
    let result = starter.map_err(|error| error.to_string())?.join();
    let hint = if eal.iter().any(|option| option == "--no-huge") {
        "see DPDK's messages above"
    } else {
        "see DPDK's messages above. Huge pages may be missing: reserve some (sysctl vm.nr_hugepages=512) or use \
         dpdk.eal = [\"--no-huge\", \"-m\", \"512\", \"--no-shconf\"]"
    };
    match result {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("DPDK cannot be started with {eal:?}: {error}; {hint}")),
        Err(_) => Err("the thread that starts DPDK ended early".into()),
    }
}

/// Returns whether DPDK would print a text and exit with this option. DPDK also accepts abbreviated options,
/// and several letters in one option.
fn ends_the_process(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(name) => !name.is_empty() && ["help", "version"].iter().any(|long| long.starts_with(name)),
        None => option.starts_with("-h") || option.starts_with("-v"),
    }
}

/// Returns the CPUs of this process in the kernel's notation, such as "0-3,6".
fn allowed_cpus() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.map_or("0", str::trim).to_owned()
}
