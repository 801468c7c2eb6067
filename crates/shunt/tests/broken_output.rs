// SPDX-License-Identifier: Apache-2.0
//! Tests of commands whose stdout or stderr is closed, full or never read. A switch forwards and answers as
//! before and counts the log lines that it loses. Other commands end with one of the three documented exit
//! codes.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

/// HELLO of OpenFlow 1.0, which the switch refuses with a line in the log.
const HELLO_10: [u8; 8] = [1, 0, 0, 8, 0, 0, 0, 1];

fn shunt() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt"));
    command.env("RUST_LOG", "debug").stdin(Stdio::null());
    command
}

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "timeout while waiting until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Running switch with two in-memory ports. Dropping it stops the switch and removes its directory.
struct Switch {
    folder: PathBuf,
    child: Child,
    openflow: PathBuf,
}

impl Switch {
    fn start(stderr: impl Into<Stdio>) -> Self {
        Self::launch(|mut run| {
            run.stderr(stderr);
            run
        })
    }

    /// Starts the switch. `prepare` may change its command.
    fn launch(prepare: impl FnOnce(Command) -> Command) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("shunt-broken-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let (control, openflow) = (folder.join("control.sock"), folder.join("openflow.sock"));
        let text = format!(
            "control = {control:?}\n[[worker]]\n[[datapath]]\nid = 1\n[datapath.openflow]\nlisten = \"unix:{}\"\n\
             [[datapath.port]]\nnumber = 1\nname = \"p1\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [0]\n",
            openflow.display()
        );
        std::fs::write(folder.join("switch.toml"), text).unwrap();
        let mut run = shunt();
        run.args(["run", "-c"]).arg(folder.join("switch.toml"));
        let child = prepare(run).env("RUST_LOG", "debug").stdin(Stdio::null()).spawn().unwrap();
        let mut switch = Self { folder, child, openflow };
        until("the switch answers", || {
            switch.is_running();
            switch.asked(&["show", "ports"]).is_some()
        });
        switch
    }

    fn is_running(&mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "the switch has ended");
    }

    /// Returns the output of a control command, or `None` if it fails.
    fn asked(&self, arguments: &[&str]) -> Option<String> {
        let control = self.folder.join("control.sock");
        let mut command = shunt();
        command.arg("--control").arg(control).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // The output fits into the pipe, so the command ends without a reader.
        until("the switch answers", || child.try_wait().unwrap().is_some());
        let output = child.wait_with_output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Connects peers that the switch refuses. Each peer causes some lines in the log.
    fn storm(&self, peers: usize) {
        for _ in 0..peers {
            let mut peer = UnixStream::connect(&self.openflow).unwrap();
            peer.write_all(&HELLO_10).unwrap();
            // The switch answers and closes the connection.
            let _ = peer.read_to_end(&mut Vec::new());
        }
    }

    /// Returns a counter from the output of `shunt show counters`, which does not print counters of 0.
    fn counter(&self, name: &str) -> u64 {
        let printed = self.asked(&["show", "counters"]).unwrap();
        let line = printed.lines().find_map(|line| line.trim_start().strip_prefix(name));
        line.map_or(0, |count| count.trim().parse().unwrap())
    }

    /// Stops the switch and returns its exit code.
    fn stop(mut self) -> Option<i32> {
        self.is_running();
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        let mut code = None;
        until("the switch ends", || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        code.and_then(|status| status.code())
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_switch_whose_stderr_refuses_lines_runs_on_and_counts_them() {
    let (gone, reader) = UnixStream::pair().unwrap();
    drop(reader);
    let (reader, gone_pipe) = std::io::pipe().unwrap();
    drop(reader);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let stderrs: [Stdio; 3] = [std::os::fd::OwnedFd::from(gone).into(), gone_pipe.into(), full.into()];
    for stderr in stderrs {
        let switch = Switch::start(stderr);
        switch.storm(5);
        // The switch has lost the ready line, and at least one line per peer.
        until("lost lines are counted", || switch.counter("log_refused") >= 6);
        assert_eq!(switch.counter("log lines written"), 0);
        assert_eq!(switch.stop(), Some(0));
    }
}

#[test]
fn a_switch_without_a_descriptor_for_stderr_runs_on() {
    let mut switch = Switch::launch(|run| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" 2>&-"]).arg(run.get_program()).args(run.get_args());
        shell
    });
    switch.storm(5);
    switch.is_running();
    assert_eq!(switch.stop(), Some(0));
}

#[test]
fn a_switch_whose_stderr_nobody_reads_answers_and_ends() {
    let (reader, mut pipe) = std::io::pipe().unwrap();
    fill(&mut pipe);
    let switch = Switch::start(pipe.try_clone().unwrap());
    drop(pipe);
    // Connect until the queue overflows. The switch logs at most 20 such lines per second.
    until("lines are lost", || {
        switch.storm(100);
        switch.counter("log lines lost") > 0
    });
    assert_eq!(switch.counter("log lines written"), 0);
    assert_eq!(switch.stop(), Some(0));
    drop(reader);
}

#[test]
fn a_reader_that_returns_gets_a_report_of_lost_lines() {
    let (out, reader) = UnixStream::pair().unwrap();
    out.set_nonblocking(true).unwrap();
    while (&out).write(b"nothing more fits\n").is_ok() {}
    out.set_nonblocking(false).unwrap();
    let switch = Switch::start(std::os::fd::OwnedFd::from(out));
    until("lines are lost", || {
        switch.storm(100);
        switch.counter("log_no_room") > 0
    });
    let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("shunt: ready")));
    assert!(lines.any(|line| line.starts_with("shunt: ") && line.contains(" log lines lost, ")));
    assert!(switch.counter("log lines written") > 0);
    assert_eq!(switch.stop(), Some(0));
}

fn fill(pipe: &mut std::io::PipeWriter) {
    // A pipe holds 64 KiB and accepts a write of one page as a whole.
    for _ in 0..16 {
        pipe.write_all(&[b'.'; 4_096]).unwrap();
    }
}

#[test]
fn commands_whose_output_is_closed_or_full_end_cleanly() {
    let switch = Switch::start(Stdio::null());
    let commands: [&[&str]; 8] = [
        &["show", "ports"],
        &["show", "counters", "--json"],
        &["show", "flows"],
        &["flows", "dump"],
        &["top", "--once"],
        &["trace", "--flows", "/dev/null", "in_port=1"],
        &["--help"],
        &["--version"],
    ];
    for arguments in commands {
        let command = || {
            let mut command = shunt();
            command.arg("--control").arg(switch.folder.join("control.sock")).args(arguments);
            command
        };
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        // A closed output is not a failure, because the reader may have read as much as it needs.
        let output = command().stdout(closed).output().unwrap();
        assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]), "{arguments:?}");
        let output = command().stdout(full()).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
        assert!(message.starts_with("shunt: cannot write the output: "), "{arguments:?}: {message}");
        let status = command().stdout(full()).stderr(full()).status().unwrap();
        assert_eq!(status.code(), Some(1), "{arguments:?}");
    }
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let status = shunt().args(["show", "nothing"]).stderr(closed).status().unwrap();
    assert_eq!(status.code(), Some(2));
}
