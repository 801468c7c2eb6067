// SPDX-License-Identifier: Apache-2.0
//! Tests of the form of the log, and of levels that change while the switch runs.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
const ECHO_REQUEST: [u8; 8] = [4, 2, 0, 8, 0, 0, 0, 7];
const ECHO_REPLY: [u8; 8] = [4, 3, 0, 8, 0, 0, 0, 7];

/// A running switch. Dropping it stops the switch and removes its directory.
struct Switch {
    folder: PathBuf,
    child: Child,
}

impl Switch {
    /// Starts a switch with these lines of configuration and this value of `RUST_LOG`.
    fn start(settings: &str, levels: Option<&str>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("shunt-log-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let text = format!(
            "control = {:?}\n{settings}\n[[worker]]\n[[datapath]]\nid = 1\nopenflow.listen = \"unix:{}\"\n",
            folder.join("control.sock"),
            folder.join("openflow.sock").display()
        );
        std::fs::write(folder.join("switch.toml"), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_shunt"));
        command.args(["run", "-c"]).arg(folder.join("switch.toml")).stdin(Stdio::null());
        command.stderr(File::create(folder.join("log")).unwrap()).env_remove("RUST_LOG");
        if let Some(levels) = levels {
            command.env("RUST_LOG", levels);
        }
        let switch = Self { child: command.spawn().unwrap(), folder };
        switch.until("the switch is ready", |text| text.contains("shunt: ready"));
        switch
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap()
    }

    /// Waits until the log fulfils a condition.
    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !holds(&self.text()) {
            assert!(start.elapsed() < LIMIT, "timeout while waiting until {what}: {}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Connects a peer, which causes lines of level INFO.
    fn greet(&self) {
        let mut peer = UnixStream::connect(self.folder.join("openflow.sock")).unwrap();
        peer.set_read_timeout(Some(LIMIT)).unwrap();
        peer.write_all(&[HELLO, ECHO_REQUEST].concat()).unwrap();
        let mut received = Vec::new();
        while !received.ends_with(&ECHO_REPLY) {
            let mut byte = [0];
            peer.read_exact(&mut byte).unwrap();
            received.push(byte[0]);
        }
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shunt"));
        command.args(words).arg("-c").arg(self.folder.join("switch.toml")).output().unwrap()
    }

    /// Runs a command that succeeds, and returns its output.
    fn says(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// Returns the number of lines of level INFO about connections of controllers.
fn lines(text: &str) -> usize {
    text.lines().filter(|line| line.contains("INFO") && line.contains("switch::channels")).count()
}

#[test]
fn levels_change_while_the_switch_runs() {
    let switch = Switch::start("", None);
    switch.greet();
    assert_eq!(switch.says(&["log", "set", "channels", "info"]), "the level of channels is info\n");
    switch.greet();
    switch.until("the second peer is logged", |text| lines(text) > 0);
    std::thread::sleep(Duration::from_millis(100));
    let once = lines(&switch.text());
    switch.says(&["log", "set", "channels", "off"]);
    switch.greet();
    switch.says(&["log", "set", "channels", "info"]);
    switch.greet();
    switch.until("the fourth peer is logged", |text| lines(text) > once);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(lines(&switch.text()), 2 * once, "{}", switch.text());
    let refused = switch.run(&["log", "set", "channels", "loud"]);
    let sentence = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && sentence.contains("\"loud\" is not a level"), "{sentence}");
    let report: Value = serde_json::from_str(&switch.says(&["log", "show", "--json"])).unwrap();
    assert_eq!((&report["format"], &report["default"]), (&"text".into(), &"warn".into()));
    let level = |name| {
        let rows = report["modules"].as_array().unwrap();
        rows.iter().find(|row| row["module"] == name).unwrap()["level"].clone()
    };
    assert_eq!((level("channels"), level("switch")), ("info".into(), Value::Null));
}

#[test]
fn a_json_log_has_an_object_per_line() {
    let settings = "log = { format = \"json\", levels = { switch = \"info\", daemon = \"error\" } }";
    let switch = Switch::start(settings, Some("off"));
    switch.greet();
    switch.until("the peer is logged", |text| lines(text) > 0);
    assert!(switch.says(&["log", "show"]).starts_with("form: json; level of modules without one: off\n"));
    for line in switch.text().lines() {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        for member in ["timestamp", "level", "message", "target"] {
            assert!(object[member].is_string(), "{line}");
        }
    }
}
