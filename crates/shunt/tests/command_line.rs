// SPDX-License-Identifier: Apache-2.0
//! Tests of the program as users and scripts run it.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

fn shunt() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt"));
    command.env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Directory with a configuration of two ports. Dropping it stops the switch and removes the directory.
struct Place {
    folder: PathBuf,
    switch: Option<(Child, BufReader<ChildStderr>)>,
}

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("shunt-cli-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let place = Self { folder, switch: None };
        let control = place.path("control.sock");
        let mut text = format!("control = {control:?}\n[[worker]]\n[[datapath]]\nid = 1\n");
        for n in 1..=2 {
            text.push_str(&format!(
                "[[datapath.port]]\nnumber = {n}\nname = \"p{n}\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [0]\n"
            ));
        }
        place.write("switch.toml", &text);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// Starts the switch and returns its ready line.
    fn start(&mut self, arguments: &[&str]) -> String {
        let config = self.path("switch.toml");
        let mut child =
            shunt().arg("run").arg("-c").arg(config).args(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        self.switch = Some((child, stderr));
        line
    }

    /// Sends a signal and returns the exit code and the rest of stderr.
    fn signal(&mut self, name: &str) -> (Option<i32>, String) {
        let (mut child, mut stderr) = self.switch.take().unwrap();
        let sent = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().unwrap();
        assert!(sent.success());
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        (child.wait().unwrap().code(), rest)
    }

    fn control(&self, arguments: &[&str]) -> Output {
        shunt().arg("--control").arg(self.path("control.sock")).args(arguments).output().unwrap()
    }

    /// Returns the output of a control command, which must succeed.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.control(arguments);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(output.stderr, b"", "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the error message of a control command, which must fail.
    fn fails(&self, arguments: &[&str]) -> String {
        failed(self.control(arguments), 1)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((mut child, _)) = self.switch.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns the message of a command that must have failed with `code`.
fn failed(output: Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert_eq!(output.stdout, b"");
    String::from_utf8(output.stderr).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_switch_starts_answers_and_stops() {
    let mut place = Place::new();
    let start = place.write("start.flows", "priority=3,in_port=p1,actions=output:p2\n");
    let ready = place.start(&["--flows", text(&start)]);
    let control = place.path("control.sock");
    assert_eq!(ready, format!("shunt: ready, control {}, ports 1=p1 2=p2\n", control.display()));

    let flows = place.prints(&["show", "flows"]);
    let lines: Vec<&str> = flows.lines().collect();
    assert_eq!(lines.len(), 2, "{flows}");
    assert!(
        lines[0].starts_with(" cookie=0x0, duration=") && lines[0].ends_with(" actions=NORMAL"),
        "{flows}"
    );
    assert!(lines[1].ends_with("priority=3,in_port=1 actions=output:2"), "{flows}");

    let more = place.write("more.flows", "in_port=2,actions=output:1\narp,actions=FLOOD\n");
    assert_eq!(place.prints(&["flows", "load", text(&more)]), "2 flows added, 0 modified, 0 removed\n");
    let dump = place.prints(&["flows", "dump"]);
    assert_eq!(
        dump,
        "priority=0 actions=NORMAL\npriority=3,in_port=1 actions=output:2\nin_port=2 actions=output:1\narp actions=FLOOD\n"
    );
    let json = place.prints(&["show", "flows", "--json"]);
    assert_eq!(json.lines().count(), 4);
    assert!(json.contains("\"match\":\"arp\"") && json.contains("\"actions\":\"FLOOD\""), "{json}");

    let ports = place.prints(&["show", "ports"]);
    let lines: Vec<&str> = ports.lines().collect();
    assert!(lines[0].starts_with("port  name  link"), "{ports}");
    assert!(lines[2].starts_with("   2  p2    up"), "{ports}");
    assert!(place.prints(&["show", "ports", "--json"]).starts_with("{\"ports\":[{"));
    assert!(place.prints(&["show", "tables"]).starts_with("table  flows  lookups"));
    assert!(place.prints(&["show", "macs"]).starts_with("vlan  mac"));
    let counters = place.prints(&["show", "counters"]);
    assert!(
        counters.contains("\nreceived 0 = forwarded 0 + consumed 0 + dropped 0 + held 0\n"),
        "{counters}"
    );
    assert!(counters.contains(
        "\nlane         frames  p50 us  p99 us  p99.9 us  p99.99 us  max us\nlow_latency       0  -"
    ));
    assert!(!counters.contains("table_miss"), "{counters}");
    assert!(place.prints(&["show", "counters", "--json"]).contains("\"table_miss\":0"));
    let json = place.prints(&["show", "counters", "--json"]);
    assert!(json.contains("\"low_latency\":{\"gaps_aside\":{\"frames\":0,"), "{json}");
    let ffp = place.prints(&["show", "ffp"]);
    assert!(ffp.starts_with("0 of 0 packets left by the path alone"), "{ffp}");
    let express = place.prints(&["show", "express"]);
    assert!(express.contains(": keys of 18 bytes, in records of one cache line\n"), "{express}");
    assert!(express.contains("\n     0  open        0  8192  "), "{express}");
    assert!(place.prints(&["show", "cache"]).starts_with("the port cache is off; datapath.port_cache.mode"));
    assert!(
        place.prints(&["show", "cache", "--json"]).starts_with(
            "{\"bytes\":0,\"entries\":0,\"mode\":\"off\",\"ports\":[],\"queue\":0,\"records\":0"
        )
    );
    assert_eq!(place.prints(&["show", "stateless"]), "stateless forwarding is off (datapath.stateless)\n");
    assert_eq!(place.prints(&["gates", "show"]), "there are no gates\n");
    assert_eq!(place.prints(&["gates", "clear"]), "all gates are removed\n");
    assert!(place.prints(&["show", "stateless"]).starts_with("stateless forwarding is off"));
    assert!(place.prints(&["gates", "set", "1=2"]).contains("no port is trusted"));
    let set = ["gates", "set", "--down-d", "2", "--trusted", "1,2", "1=2:server", "2=4"];
    assert_eq!(place.prints(&set), "2 gates active\n");
    let gates = place.prints(&["gates", "show"]);
    assert!(gates.starts_with("gates: down-d 2, up-d 0,") && gates.contains("server"), "{gates}");
    let json = place.prints(&["gates", "show", "--json"]);
    assert!(json.contains("\"ports\":[[1,2,\"server\"],[2,4,\"\"]]"), "{json}");
    let shown = place.prints(&["show", "stateless"]);
    assert!(shown.contains("trusted ports: 1 2\n") && shown.contains("TF 0xff1f"), "{shown}");
    for (down, says) in
        [("0001", "its tag leads to the gate 2: that of port 1"), ("0005", "the gate 6: no port has it")]
    {
        let frame = format!("020000000001020000000002ff1f00000000{down}0800{}", "00".repeat(46));
        let reported = place.prints(&["trace", "--in-port", "2", "--hex", &frame]);
        assert!(reported.contains(says), "{reported}");
    }
    assert!(place.fails(&["gates", "set", "1:2"]).contains("write PORT=NUMBER"));
    assert!(place.fails(&["gates", "set", "1=2", "2=2"]).contains("gate 2 is given twice"));
    assert_eq!(place.prints(&["gates", "clear"]), "all gates are removed\n");
    assert_eq!(place.prints(&["gates", "show", "--json"]), "null\n");

    assert_eq!(place.prints(&["flows", "clear"]), "4 flows deleted, 1 default flow added\n");
    let mut loading = shunt()
        .args(["flows", "load", "-", "-c", text(&place.path("switch.toml"))])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    loading.stdin.take().unwrap().write_all(dump.as_bytes()).unwrap();
    assert!(loading.wait_with_output().unwrap().status.success());
    assert_eq!(place.prints(&["flows", "dump"]), dump);

    let second = shunt().args(["run", "-c", text(&place.path("switch.toml"))]).output().unwrap();
    assert!(failed(second, 1).contains("another switch answers on this control socket"));
    let (code, rest) = place.signal("TERM");
    assert_eq!((code, rest.as_str()), (Some(0), ""));
    assert!(!control.exists());
    assert!(place.fails(&["show", "ports"]).contains("no switch answers on this control socket"));
    place.start(&[]);
    assert_eq!(place.signal("INT").0, Some(0));
}

#[test]
fn the_express_path_shows_its_plan_and_the_records_of_each_worker() {
    let mut place = Place::new();
    let config = std::fs::read_to_string(place.path("switch.toml")).unwrap();
    let express = "[[worker]]\n[[worker]]\n[[datapath]]\nexpress.enabled = true\nexpress.records = 1000\n";
    place.write("switch.toml", &config.replace("[[worker]]\n[[datapath]]\n", express));
    place.start(&[]);
    place.prints(&["flows", "clear"]);
    let flows = place.write("next.flows", "priority=9,ip,nw_dst=10.0.0.0/24,actions=goto_table:3\n");
    place.prints(&["flows", "load", text(&flows)]);

    let shown = place.prints(&["show", "express"]);
    // The plan is new, so the records of the previous plan may still be in use.
    let lines: Vec<&str> = shown.lines().filter(|line| !line.starts_with("records of plan ")).collect();
    assert!(lines[0].ends_with(": keys of 22 bytes, in records of one cache line"), "{shown}");
    assert_eq!(lines[1], "packets can reach tables 0, 3");
    let fields = "dl_dst, dl_src, dl_type, vlan_vid/0xfff, nw_dst/0xffffff00";
    assert_eq!(lines[2], format!("their rules examine 148 bits: {fields}"));
    assert!(lines[3].starts_with("worker  now   records  room   bytes  hit %  hits  misses"), "{shown}");
    assert!(lines[4].starts_with("0       open        0  1024  "), "{shown}");
    assert!(lines[5].starts_with("1       open        0  1024  "), "{shown}");
    assert!(lines[6].starts_with("sum                 0  2048  "), "{shown}");
    assert_eq!(lines.len(), 7, "{shown}");

    let json = place.prints(&["show", "express", "--json"]);
    assert!(json.contains("\"enabled\":true") && json.contains("\"tables\":[0,3]"), "{json}");
    assert!(json.contains("\"workers\":[{\"bypassed\":0,\"bypassed_now\":false,"), "{json}");
}

#[test]
fn top_prints_boards_until_the_switch_is_gone() {
    let mut place = Place::new();
    place.start(&[]);
    let board = place.prints(&["top", "--once"]);
    assert!(board.starts_with("packets/s: received 0, forwarded 0, "), "{board}");
    for part in [
        "\n\nports\nport  name  link",
        "\n\nlanes: us from receive",
        "\nnormal ",
        "\n\ntables\n",
        "\n\ndrops\nreason",
    ] {
        assert!(board.contains(part), "{part} is not in {board}");
    }
    assert_eq!(place.prints(&["top", "--batch", "2"]).matches("packets/s: ").count(), 2);
    assert!(failed(place.control(&["top", "--once", "--batch", "2"]), 2).contains("cannot be used with"));
    assert!(failed(place.control(&["top", "--batch", "0"]), 2).contains("0 is not in 1"));

    // Without a terminal, `top` prints until it is stopped.
    let control = place.path("control.sock");
    let mut endless = shunt()
        .arg("--control")
        .arg(control)
        .arg("top")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(endless.stdout.take().unwrap());
    let mut printed = String::new();
    reader.read_line(&mut printed).unwrap();
    assert!(printed.starts_with("packets/s: "), "{printed}");
    place.signal("TERM");
    reader.read_to_string(&mut printed).unwrap();
    let output = endless.wait_with_output().unwrap();
    let reported = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(reported.starts_with("shunt: the connection to the switch was lost: "), "{reported}");
    assert!(place.fails(&["top"]).contains("no switch answers on this control socket"));
}

#[test]
fn a_killed_switch_leaves_a_socket_that_the_next_one_replaces() {
    let mut place = Place::new();
    place.start(&[]);
    assert_eq!(place.signal("KILL").0, None);
    assert!(place.path("control.sock").exists());
    assert!(place.start(&[]).starts_with("shunt: ready, "));
    assert_eq!(place.signal("TERM").0, Some(0));
}

/// A signal must end a switch immediately, even while it waits for its flow file.
#[test]
fn a_switch_stops_before_it_is_ready() {
    for name in ["TERM", "INT"] {
        let mut place = Place::new();
        let pipe = place.path("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let config = place.path("switch.toml");
        let mut child = shunt()
            .args(["run", "-c", text(&config), "--flows", text(&pipe)])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        while !place.path("control.sock").exists() {
            assert_eq!(child.try_wait().unwrap(), None);
            std::thread::yield_now();
        }
        place.switch = Some((child, stderr));
        assert_eq!(place.signal(name), (Some(0), String::new()));
        assert!(!place.path("control.sock").exists());
    }
}

#[test]
fn a_flow_file_that_is_wrong_changes_nothing() {
    let mut place = Place::new();
    place.start(&[]);
    let wrong = place.write("wrong.flows", "in_port=1,actions=output:2\nin_port=1 acton=drop\n");
    let message = place.fails(&["flows", "load", text(&wrong)]);
    assert!(message.starts_with("shunt: ") && message.contains("wrong.flows: line 2, column "), "{message}");
    let message = place.fails(&["flows", "load", text(&place.path("none.flows"))]);
    assert!(message.contains("none.flows: cannot open the flow file"), "{message}");
    let binary = place.path("binary.flows");
    std::fs::write(&binary, [0xff, 0xfe, b'\n']).unwrap();
    let message = place.fails(&["flows", "load", text(&binary)]);
    assert!(message.contains("line 1: is not UTF-8 text"), "{message}");
    assert_eq!(place.prints(&["flows", "dump"]), "priority=0 actions=NORMAL\n");
}

#[test]
fn a_running_switch_explains_why_a_packet_is_dropped() {
    let mut place = Place::new();
    place.write(
        "start.flows",
        "priority=7,in_port=p1,tcp,tp_dst=80,actions=output:p2\npriority=0,actions=drop\n",
    );
    let flows = place.path("start.flows");
    assert!(place.start(&["--flows", text(&flows)]).starts_with("shunt: ready"));
    let reported = place.prints(&["trace", "in_port=p1,tcp,tp_dst=81"]);
    assert!(reported.contains("it wants tp_dst=80, the packet has tp_dst=81"), "{reported}");
    let why = "result: dropped (no_output): the entry that it hits in table 0 drops it: actions=drop\n";
    assert!(reported.ends_with(why), "{reported}");
    let reported = place.prints(&["trace", "in_port=p1,tcp,tp_dst=80"]);
    assert!(reported.ends_with("result: forwarded: it leaves by port 2\n"), "{reported}");
    let reported = place.prints(&["trace", "--live", "tcp", "--timeout", "1"]);
    assert_eq!(reported, "0 packets recorded, 0 compared with the rules, 0 faults\n");
    assert!(place.fails(&["trace", "--live", "colour=red"]).contains("the filter is not understood"));
    assert!(place.fails(&["trace", "colour=red"]).contains("the packet is not understood"));
}

#[test]
fn several_datapaths_are_one_process() {
    let mut place = Place::new();
    let sockets = [place.path("s1.sock"), place.path("s2.sock")];
    place.write("s2.flows", "priority=7,actions=drop\n");
    let config = format!(
        "control = {:?}\n[[worker]]\n[[datapath]]\nid = 1\n[[datapath]]\nid = 2\ncontrol = {:?}\nflows = {:?}\n",
        sockets[0],
        sockets[1],
        place.path("s2.flows")
    );
    place.write("switch.toml", &config);
    assert!(place.start(&[]).contains("s1.sock"));
    let asks = |socket: &Path| {
        let output = shunt().args(["--control", text(socket), "flows", "dump"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!asks(&sockets[0]).contains("priority=7"));
    assert!(asks(&sockets[1]).contains("priority=7"));
    let config = place.path("switch.toml");
    let shown = shunt().args(["show", "ports", "-c", text(&config)]).output().unwrap();
    assert!(failed(shown, 1).contains("select one with --control: "));
    let (code, rest) = place.signal("TERM");
    assert_eq!(code, Some(0), "{rest}");
    assert!(rest.contains("shunt: ready") && rest.contains("s2.sock"), "{rest}");
    assert!(sockets.iter().all(|socket| !socket.exists()));

    // If one datapath cannot start, all of them must end.
    let _taken = std::os::unix::net::UnixListener::bind(&sockets[1]).unwrap();
    let output = shunt().args(["run", "-c", text(&config)]).output().unwrap();
    assert!(failed(output, 1).contains("s2.sock"));
    assert!(!sockets[0].exists());
    let output =
        shunt().args(["run", "-c", text(&config), "--flows", text(&place.path("s2.flows"))]).output();
    assert!(failed(output.unwrap(), 1).contains("several datapaths are configured"));
}

#[test]
fn a_reader_that_closes_the_output_early_is_no_error() {
    let mut place = Place::new();
    let lines: Vec<String> = (0..20_000)
        .map(|n| format!("dl_dst=02:00:00:00:{:02x}:{:02x},actions=drop\n", n / 256, n % 256))
        .collect();
    let many = place.write("many.flows", &lines.concat());
    place.start(&["--flows", text(&many)]);
    for what in [&["show", "flows"][..], &["flows", "dump"], &["show", "flows", "--json"]] {
        let mut child = shunt()
            .arg("--control")
            .arg(place.path("control.sock"))
            .args(what)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{what:?}");
    }
    assert_eq!(place.prints(&["show", "flows"]).lines().count(), 20_001);
}

#[test]
fn check_reports_mistakes_and_settings_without_effect() {
    let place = Place::new();
    let config = place.path("switch.toml");
    let output = shunt().args(["check", "-c", text(&config)]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("switch.toml: OK; 2 ports, 1 worker\n"), "{said}");
    let flows = place.write("one.flows", "in_port=p2,actions=drop\n");
    let output = shunt().args(["check", "-c", text(&config), "--flows", text(&flows)]).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("one.flows: OK; 1 flow\n"));
    let flows = place.write("one.flows", "in_port=p3,actions=drop\n");
    let output = shunt().args(["check", "-c", text(&config), "--flows", text(&flows)]).output().unwrap();
    assert!(failed(output, 1).contains("one.flows: line 1, "));
    let text_of = |control: &Path| format!("control = {control:?}\n[[worker]]\n[[datapath]]\nid = 1\n");
    for (control, says) in [(place.path(""), "is not a socket"), (config.join("x.sock"), "not a directory")] {
        let wrong = place.write("wrong.toml", &text_of(&control));
        let message = failed(shunt().args(["check", "-c", text(&wrong)]).output().unwrap(), 1);
        assert!(message.contains(text(&control)) && message.contains(says), "{message}");
    }
    let right = std::fs::read_to_string(&config).unwrap();
    for (driver, device) in
        [("mem", "nil"), ("pcap", "out"), ("af_packet", "much-too-long-a-name"), ("af_xdp", "a b")]
    {
        let by = format!("\"{driver}\"\ndevice = \"{device}\"");
        let wrong = place.write("wrong.toml", &right.replacen("\"mem\"\ndevice = \"null\"", &by, 1));
        let message = failed(shunt().args(["check", "-c", text(&wrong)]).output().unwrap(), 1);
        let begin = format!("shunt: {}:", wrong.display());
        assert!(message.starts_with(&begin) && message.contains(&format!("\"{device}\"")), "{message}");
        assert!(
            message.contains(": datapath.port[0].device: port p1: ") && message.lines().count() == 1,
            "{message}"
        );
    }
    let wrong = place.write("wrong.toml", "[[worker]]\n[[datapath]]\nid = 1\nmode = 3\n");
    let output = shunt().args(["check", "-c", text(&wrong)]).output().unwrap();
    let message = failed(output, 1);
    assert!(message.contains("wrong.toml:4:1: datapath.mode: unknown key; use one of `id`"), "{message}");
}

/// The configuration names a CPU, a device and a capture that this machine does not have. Later, two mistakes
/// of another kind are added.
#[test]
fn check_examines_the_machine_unless_it_is_offline() {
    let place = Place::new();
    let right = std::fs::read_to_string(place.path("switch.toml")).unwrap();
    let missing = right
        .replacen("[[worker]]\n", "[[worker]]\ncpu = 8191\n", 1)
        .replacen("\"mem\"\ndevice = \"null\"", "\"af_packet\"\ndevice = \"no-such-dev\"", 1)
        .replacen("\"mem\"\ndevice = \"null\"", "\"pcap\"\ndevice = \"in=no/such.pcap\"", 1);
    let file = place.write("missing.toml", &missing);
    let check = |more: &[&str]| shunt().args(["check", "-c", text(&file)]).args(more).output().unwrap();
    let message = failed(check(&[]), 1);
    let at = |line_and_column: &str, says: &str| {
        let begin = format!("shunt: {}:{line_and_column}: {says}", file.display());
        assert!(message.lines().any(|line| line.starts_with(&begin)), "{begin}: {message}");
    };
    at("3:7", "worker[0].cpu: this machine has no online CPU 8191; use one of 0");
    at("10:10", "datapath.port[0].device: port p1: there is no network device \"no-such-dev\"");
    at("16:10", "datapath.port[1].device: port p2: device \"in=no/such.pcap\"");
    assert_eq!(message.lines().count(), 3, "{message}");
    let offline = check(&["--offline"]);
    assert_eq!((offline.status.code(), offline.stderr.as_slice()), (Some(0), &b""[..]));
    place
        .write("missing.toml", &missing.replace("id = 1", "id = 0").replace("name = \"p1\"", "name = \"1\""));
    let message = failed(check(&["--offline"]), 1);
    assert_eq!(message.lines().count(), 2, "{message}");
    assert!(message.lines().all(|line| line.starts_with("shunt: ")), "{message}");
    let message = failed(check(&[]), 1);
    assert_eq!(message.lines().count(), 4, "{message}");
    // `show` uses the file only for the socket's path, so it does not check CPUs and devices.
    let message = failed(shunt().args(["show", "ports", "-c", text(&file)]).output().unwrap(), 1);
    assert_eq!(message.lines().count(), 2, "{message}");
}

/// A flow file with invalid flows is reported line by line.
#[test]
fn check_reports_every_refused_flow() {
    let place = Place::new();
    let config = place.path("switch.toml");
    let flows = place.write(
        "wrong.flows",
        "in_port=p1,actions=group:3\nin_port=p2,actions=meter:4,output:1\narp,actions=1\n",
    );
    let check = || shunt().args(["check", "-c", text(&config), "--flows", text(&flows)]).output().unwrap();
    let message = failed(check(), 1);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    for (n, line) in lines.into_iter().enumerate() {
        assert!(line.starts_with(&format!("shunt: {}: line {}: ", flows.display(), n + 1)), "{message}");
    }
    place.write("wrong.flows", "meter meter=4 bands=type=drop rate=1\ngroup group_id=3,type=all\nin_port=p1,actions=meter:4,group:3\n");
    let right = check();
    assert_eq!(right.status.code(), Some(0), "{right:?}");
}

#[test]
fn a_capture_that_is_damaged_is_reported_on_stderr() {
    let place = Place::new();
    let flows = place.write("one.flows", "in_port=1,actions=output:2\n");
    let (capture, out) = (place.path("in.pcap"), place.path("out"));
    // Header of a capture with Ethernet frames, then packets of 60 bytes.
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    for _ in 0..2 {
        bytes.extend([[0, 0, 0, 0], [0, 0, 0, 0], [60, 0, 0, 0], [60, 0, 0, 0]].concat());
        bytes.extend([2; 60]);
    }
    let replay = |bytes: &[u8]| {
        std::fs::write(&capture, bytes).unwrap();
        let files = ["--pcap", text(&capture), "--flows", text(&flows), "--out", text(&out)];
        shunt().arg("replay").args(files).output().unwrap()
    };
    let message = failed(replay(&bytes[..80]), 1);
    assert!(
        message.starts_with("shunt: ") && message.contains("in.pcap: packet 1: the file ends"),
        "{message}"
    );
    assert!(!out.exists());
    let cut = replay(&bytes[..bytes.len() - 1]);
    assert_eq!(cut.status.code(), Some(0));
    let message = String::from_utf8(cut.stderr).unwrap();
    assert!(message.contains("in.pcap: the capture ends early: packet 2: ") && message.lines().count() == 1);
    assert!(String::from_utf8(cut.stdout).unwrap().contains("forwarded       1 in 1 copies\n"));
    let whole = replay(&bytes);
    assert_eq!((whole.status.code(), whole.stderr.as_slice()), (Some(0), &b""[..]));
}

/// Entries that examine no bits need no LUT record, so even the first packet of a flow stays on the
/// fast-forwarding path.
#[test]
fn replayed_packets_take_the_path_over_entries_that_match_everything() {
    let place = Place::new();
    let (capture, out) = (place.path("in.pcap"), place.path("out"));
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    for packet in 0..200_u8 {
        bytes.extend([[0, 0, 0, 0], [packet, 0, 0, 0], [60, 0, 0, 0], [60, 0, 0, 0]].concat());
        bytes.extend([packet & 0xfe; 60]);
    }
    std::fs::write(&capture, &bytes).unwrap();
    for rules in [
        "table=0,priority=1,low_latency,actions=output:2\n",
        "table=0,low_latency,actions=goto_table:1\ntable=1,low_latency,actions=output:2\n",
    ] {
        let flows = place.write("match_all.flows", rules);
        let files = ["--ffp", "on", "--pcap", text(&capture), "--flows", text(&flows), "--out", text(&out)];
        let replayed = shunt().arg("replay").args(files).output().unwrap();
        let report = String::from_utf8(replayed.stdout).unwrap();
        assert!(report.contains("forwarded       200 in 200 copies\n"), "{rules}{report}");
        assert!(report.contains("FFP hits        200\n"), "{rules}{report}");
        assert!(report.contains("express hits    off\n"), "{rules}{report}");
        let express = shunt().arg("replay").args(files).args(["--express", "on"]).output().unwrap();
        let report = String::from_utf8(express.stdout).unwrap();
        assert!(report.contains("forwarded       200 in 200 copies\n"), "{rules}{report}");
        // No rule examines a bit, so the first burst creates the only record.
        assert!(!report.contains("express hits    off\n"), "{rules}{report}");
        assert!(!report.contains("express hits    0\n"), "{rules}{report}");
    }
}

#[test]
fn a_missing_device_prevents_the_start() {
    let place = Place::new();
    let config = std::fs::read_to_string(place.path("switch.toml")).unwrap();
    let config = config.replacen("\"mem\"\ndevice = \"null\"", "\"af_packet\"\ndevice = \"no-such-dev\"", 1);
    let config = place.write("missing.toml", &config);
    let message = failed(shunt().args(["run", "-c", text(&config)]).output().unwrap(), 1);
    assert!(message.starts_with("shunt: port p1: ") && message.lines().count() == 1, "{message}");
}

#[test]
fn wrong_usage_has_a_separate_exit_code_and_help_lists_every_command() {
    for arguments in
        [&["shwo"][..], &["show"], &["show", "prots"], &["run"], &["flows"], &["replay", "--ffp", "maybe"]]
    {
        failed(shunt().args(arguments).output().unwrap(), 2);
    }
    let help = String::from_utf8(shunt().arg("--help").output().unwrap().stdout).unwrap();
    for word in ["run", "check", "show", "flows", "trace", "replay", "--control", "Examples:", "Exit codes:"]
    {
        assert!(help.contains(word), "{word} is not in: {help}");
    }
    let help = String::from_utf8(shunt().args(["run", "--help"]).output().unwrap().stdout).unwrap();
    assert!(help.contains("RUST_LOG") && help.contains("exit code 0"), "{help}");
}
