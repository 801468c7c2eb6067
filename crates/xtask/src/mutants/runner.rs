// SPDX-License-Identifier: Apache-2.0
//! Runs test commands, and distinguishes a failed test from a failed build.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::Failure;

/// Limit of the address space of each test process in KiB. A process with a fault may allocate memory without
/// end.
const MEMORY_KIB: u64 = 12 << 20;

/// Time limit including the build. A planted fault may make the test hang.
const LIMIT: Duration = Duration::from_secs(1_800);
const POLL: Duration = Duration::from_millis(50);

/// Result of a test command.
#[derive(Debug, PartialEq)]
pub enum RunOutcome {
    Passed,
    /// At least one test failed. The list contains the names of the failed tests.
    Failed(Vec<String>),
    /// Every test was filtered out.
    NothingRan,
    /// No test result was printed: the build failed, or the test process died.
    NoResult,
    TooSlow,
}

impl fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => write!(f, "passed"),
            Self::Failed(tests) => write!(f, "failed: {}", tests.join(", ")),
            Self::NothingRan => write!(f, "no test ran"),
            Self::NoResult => write!(f, "no test result: the build failed or the test process died"),
            Self::TooSlow => write!(f, "not done after {} s", LIMIT.as_secs()),
        }
    }
}

/// Runs commands in the copy, with a common build folder.
pub struct Runner {
    root: PathBuf,
    build: PathBuf,
    logs: PathBuf,
    interrupted: Arc<AtomicBool>,
}

impl Runner {
    pub fn new(root: &Path, build: &Path, logs: &Path) -> Result<Self, Failure> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))
                .map_err(|error| format!("signal {signal} cannot be caught: {error}"))?;
        }
        Ok(Self { root: root.into(), build: build.into(), logs: logs.into(), interrupted })
    }

    /// Returns the output of the last command with this name.
    pub fn log(&self, name: &str) -> Result<String, Failure> {
        let path = self.logs.join(format!("{name}.log"));
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Runs `command` with these environment variables. Its output goes to `NAME.log`.
    pub fn run(
        &self,
        name: &str,
        command: &[String],
        environment: &[(String, String)],
    ) -> Result<RunOutcome, Failure> {
        let path = self.logs.join(format!("{name}.log"));
        let fault = |error| format!("{}: {error}", path.display());
        let log = File::create(&path).map_err(fault)?;
        let program = command.first().ok_or("an empty test command")?;
        let child = Command::new("sh")
            .args(["-c", &format!("ulimit -v {MEMORY_KIB} && exec \"$@\""), "sh"])
            .args(command)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.build)
            .envs(environment.iter().cloned())
            // The command gets a separate process group, so that the test process can be ended together with
            // cargo.
            .process_group(0)
            .stdin(Stdio::null())
            .stderr(log.try_clone().map_err(fault)?)
            .stdout(log)
            .spawn()
            .map_err(|error| format!("{program} could not be started: {error}"))?;
        let Some(status) = self.wait(child)? else { return Ok(RunOutcome::TooSlow) };
        let output = fs::read(&path).map_err(fault)?;
        Ok(outcome(status.success(), &String::from_utf8_lossy(&output)))
    }

    /// Waits for `child`. Returns `None` if it exceeds the time limit.
    fn wait(&self, mut child: Child) -> Result<Option<ExitStatus>, Failure> {
        let started = Instant::now();
        loop {
            if let Some(status) =
                child.try_wait().map_err(|error| format!("cannot wait for the test: {error}"))?
            {
                return Ok(Some(status));
            }
            let interrupted = self.interrupted.load(Ordering::Relaxed);
            if interrupted || started.elapsed() > LIMIT {
                // The process may already have ended.
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                let _ = child.wait();
                return if interrupted { Err("interrupted".into()) } else { Ok(None) };
            }
            thread::sleep(POLL);
        }
    }
}

/// Parses the test runner's output.
fn outcome(success: bool, output: &str) -> RunOutcome {
    let results: Vec<&str> = output.lines().filter(|line| line.starts_with("test result: ")).collect();
    let none_ran = results.iter().all(|line| line.contains(" 0 passed; 0 failed"));
    match (success, results.is_empty()) {
        (true, _) if none_ran => RunOutcome::NothingRan,
        (true, _) => RunOutcome::Passed,
        (false, true) => RunOutcome::NoResult,
        (false, false) => match failed_tests(output) {
            tests if tests.is_empty() => RunOutcome::NoResult,
            tests => RunOutcome::Failed(tests),
        },
    }
}

/// Returns the names in the test runner's final list: the lines after the last `failures:` that are indented
/// by four spaces.
fn failed_tests(output: &str) -> Vec<String> {
    let Some((_, list)) = output.rsplit_once("\nfailures:\n") else { return Vec::new() };
    list.lines().map_while(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: &str = "running 2 tests\ntest a::b ... FAILED\n\nfailures:\n\n---- a::b stdout ----\nno\n\n\n\
        failures:\n    a::b\n    c\n\ntest result: FAILED. 0 passed; 2 failed; 0 ignored\n";

    #[test]
    fn outcomes_are_distinguished() {
        assert_eq!(outcome(false, FAILED), RunOutcome::Failed(vec!["a::b".into(), "c".into()]));
        assert_eq!(outcome(true, "test result: ok. 3 passed; 0 failed; 0 ignored\n"), RunOutcome::Passed);
        assert_eq!(outcome(true, "test result: ok. 0 passed; 0 failed; 1 ignored\n"), RunOutcome::NothingRan);
        assert_eq!(outcome(false, "error[E0308]: mismatched types\n"), RunOutcome::NoResult);
        assert_eq!(
            outcome(false, "running 1 test\nmemory allocation failed, aborted\n"),
            RunOutcome::NoResult
        );
    }

    /// Returns whether the process runs. A zombie does not count.
    fn runs(pid: &str) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    #[test]
    fn a_test_process_is_ended_with_its_children_when_interrupted() {
        let folder = std::env::temp_dir().join(format!("xtask-runner-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let runner = Runner::new(&folder, &folder, &folder).unwrap();
        let interrupted = Arc::clone(&runner.interrupted);
        let pid_file = folder.join("child");
        let watcher = thread::spawn(move || {
            while !fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n')) {
                thread::sleep(POLL);
            }
            let pid = fs::read_to_string(&pid_file).unwrap();
            assert!(runs(&pid));
            interrupted.store(true, Ordering::Relaxed);
            pid
        });
        let command = ["sh", "-c", "sleep 60 & echo $! >child; wait"].map(str::to_owned);
        assert_eq!(runner.run("sleeper", &command, &[]), Err("interrupted".into()));
        let pid = watcher.join().unwrap();
        let patience = Instant::now();
        while runs(&pid) && patience.elapsed() < Duration::from_secs(5) {
            thread::sleep(POLL);
        }
        assert!(!runs(&pid));
        fs::remove_dir_all(&folder).unwrap();
    }
}
