// SPDX-License-Identifier: Apache-2.0
//! Tests of `shunt trace` without a running switch.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Temporary directory with a flow file. Dropping it removes the directory.
struct Place(PathBuf);

impl Place {
    fn new(flows: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("shunt-trace-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("t.flows"), flows).unwrap();
        Self(folder)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, "")
    }

    /// Runs a trace with `input` on standard input.
    fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        let file = self.0.join("input");
        std::fs::write(&file, input).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_shunt"));
        command.arg("trace").arg("--flows").arg(self.0.join("t.flows")).args(arguments);
        command.stdin(std::fs::File::open(file).unwrap()).output().unwrap()
    }

    /// Returns the output of a trace, which must succeed.
    fn trace(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the error message of a trace, which must fail.
    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

const FLOWS: &str = "\
priority=100,in_port=1,tcp,tp_dst=80 actions=mod_nw_dst:10.0.0.9,dec_ttl,goto_table:1
priority=90,in_port=1,tcp,tp_dst=22,low_latency actions=output:2
priority=80,in_port=1,tcp,tp_dst=23 actions=drop
priority=70,in_port=1,tcp,tp_dst=24 actions=output:1
table=1,priority=7,ip,nw_dst=10.0.0.0/24 actions=output:2
table=1,priority=9,ip,nw_src=10.9.0.0/16,nw_dst=10.0.0.0/24 actions=output:3";

#[test]
fn one_command_explains_why_a_packet_is_dropped() {
    let place = Place::new(FLOWS);
    for (packet, says) in [
        (
            "in_port=1,udp,tp_dst=53",
            "result: dropped (table_miss): none of the 4 entries in table 0 matches it, and the table has no table-miss entry",
        ),
        (
            "in_port=1,tcp,tp_dst=23",
            "result: dropped (no_output): the entry that it hits in table 0 drops it: actions=drop",
        ),
        (
            "in_port=1,tcp,tp_dst=24",
            "result: dropped (ingress_port): an action sends it to port 1, its ingress port",
        ),
        (
            "in_port=1,tcp,tp_dst=80,nw_ttl=1",
            "result: dropped (ttl_expired): a TTL of 0 or 1 was to be decremented",
        ),
    ] {
        let reported = place.trace(&[packet]);
        assert!(reported.contains(says), "{packet}\n{reported}");
    }
    let reported = place.trace(&["--hex", "02:00:00:00:00:01 0200"]);
    assert!(
        reported.contains("result: dropped (runt): it has 8 bytes, but an Ethernet header has 14"),
        "{reported}"
    );
}

#[test]
fn a_trace_shows_tables_near_misses_changes_and_outputs() {
    let place = Place::new(FLOWS);
    let reported = place.trace(&["in_port=1,tcp,nw_src=10.1.2.3,nw_dst=10.7.0.1,tp_dst=80"]);
    for says in [
        "packet  tcp,in_port=1,",
        "table 0 (",
        "  hits  cookie=0x0, priority=100,tcp,in_port=1,tp_dst=80 actions=",
        "        as the packet has in_port=1, ip, nw_proto=6, tp_dst=80",
        "  then  nw_dst: 10.7.0.1 -> 10.0.0.9",
        "  then  nw_ttl: 64 -> 63",
        "table 1 (",
        "  not   cookie=0x0, priority=9,ip,nw_src=10.9.0.0/16,nw_dst=10.0.0.0/24 actions=output:3",
        "        it wants nw_src=10.9.0.0/16, the packet has nw_src=10.1.2.3",
        "output  port 2 (port-2):",
        "low latency: no, it hits a normal entry in table 0",
        "fast-forwarding path: no, it leaves the path at table 0, where it hits a normal entry",
        "express path: no, the path is off (datapath.express.enabled)",
        "port cache: no, the cache is off (datapath.port_cache.mode)",
        "result: forwarded: it leaves by port 2",
    ] {
        assert!(reported.contains(says), "{says:?} is missing:\n{reported}");
    }
    let reported = place.trace(&["in_port=1,tcp,tp_dst=22"]);
    assert!(reported.contains("low latency: yes, every entry is"), "{reported}");
    assert!(
        reported.contains("fast-forwarding path: yes, all its tables are shared by the path"),
        "{reported}"
    );
    assert!(reported.contains("output  port 2 (port-2): unchanged"), "{reported}");
    assert!(reported.contains("it wants tp_dst=80, the packet has tp_dst=22"), "{reported}");
}

#[test]
fn json_contains_the_information_of_the_text() {
    let place = Place::new(FLOWS);
    let reported: serde_json::Value =
        serde_json::from_str(&place.trace(&["in_port=1,udp,tp_dst=53", "--json"])).unwrap();
    assert_eq!(reported["outcome"], "dropped");
    assert_eq!(reported["reason"], "table_miss");
    assert_eq!(reported["tables"][0]["rule"], serde_json::Value::Null);
    assert_eq!(reported["in_port"], 1);
}

/// Returns a pcap file with these Ethernet frames.
fn pcap(frames: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_ne_bytes());
    }
    for frame in frames {
        for word in [0, 0, frame.len() as u32, frame.len() as u32] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend_from_slice(frame);
    }
    bytes
}

#[test]
fn a_packet_of_a_capture_is_traced() {
    let place = Place::new("in_port=4,dl_type=0x88b7 actions=output:5");
    let frame = [&[2; 12][..], &[0x88, 0xb7], &[0; 46]].concat();
    let capture = place.0.join("in.pcap");
    std::fs::write(&capture, pcap(&[&[9; 60], &frame])).unwrap();
    let capture = capture.to_str().unwrap();
    let reported = place.trace(&["--pcap", capture, "--packet", "2", "--in-port", "4"]);
    assert!(reported.contains("it leaves by port 5"), "{reported}");
    assert!(place.trace(&["--pcap", capture]).contains("table_miss"));
    let reported = place.refusal(&["--pcap", capture, "--packet", "3"]);
    assert!(reported.contains("has 2 packets, not 3"), "{reported}");
    let reported = place.refusal(&["--pcap", place.0.join("t.flows").to_str().unwrap()]);
    assert!(reported.contains("t.flows"), "{reported}");
}

#[test]
fn hostile_input_is_refused_with_an_error() {
    let place = Place::new(FLOWS);
    for (arguments, says) in [
        (&["--hex", "0102zz"][..], "'z' is not a hexadecimal digit"),
        (&["--hex", "010"], "give two for each byte"),
        (&["in_port=1,colour=red"], "colour"),
        (&["ip,nw_src=10.0.0.0/8"], "has a mask"),
        (&["in_port=1,tcp", "--in-port", "2"], "the ingress ports 1 and 2"),
        (&["--in-port", "0", "udp"], "0 is not an ingress port"),
        (&["--pcap", "/nonexistent"], "/nonexistent"),
    ] {
        let reported = place.refusal(arguments);
        assert!(reported.starts_with("shunt: ") && reported.contains(says), "{reported}");
    }
    for arguments in
        [&[][..], &["udp", "--hex", "00"], &["udp", "--packet", "2"], &["--packet", "0", "--pcap", "x"]]
    {
        assert_eq!(place.run(arguments).status.code(), Some(2), "{arguments:?}");
    }
    // A frame of the maximum length is accepted.
    let output = place.run_with(&["--hex", "-"], &"00".repeat(65_600));
    assert!(String::from_utf8(output.stdout).unwrap().contains("table_miss"));
    let output = place.run_with(&["--hex", "-"], &"00".repeat(70_000));
    let reported = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(reported.contains("the packet has 70000 bytes; a frame has at most 65600"), "{reported}");
}

/// Fake control socket that reports a fault, because a real switch has none to report.
#[test]
fn a_fault_ends_a_trace_of_real_packets_with_exit_code_1() {
    let place = Place::new(FLOWS);
    let imagined = place.trace(&["in_port=1,tcp,tp_dst=23", "--json"]);
    let part = format!(
        r#"{{"worker":0,"in_port":1,"packet":"tcp","bytes":60,"version":3,"hits":[{{"table":0,"by":"express","line":"priority=1 actions=output:2","hit":true,"after_ns":300}}],
        "missed":null,"fast":false,"express":true,"waited":"merged",
        "ports":[2],"packet_ins":0,"outcome":"forwarded","reason":null,"left_ns":500,"verdict":"fault",
        "why":["the worker: forwarded, by the rules: dropped (no_output)"],"imagined":{imagined}}}"#
    );
    for (faults, code) in [(1, 1), (0, 0)] {
        let socket = place.0.join(format!("{faults}.sock"));
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_shunt"));
        command.arg("--control").arg(socket).args(["trace", "--live", "--count", "1"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stream = listener.accept().unwrap().0;
        let mut request = String::new();
        BufReader::new(&stream).read_line(&mut request).unwrap();
        assert!(request.contains("trace_live"), "{request}");
        let id = request.split("\"id\":").nth(1).unwrap().split([',', '}']).next().unwrap();
        let done = format!(r#"{{"recorded":1,"compared":1,"faults":{faults},"lost":0}}"#);
        let answer = [format!(r#"{{"id":{id},"part":{part}}}"#), format!(r#"{{"id":{id},"done":{done}}}"#)];
        let answer = answer.map(|line| line.replace('\n', "")).join("\n");
        stream.write_all(format!("{answer}\n").as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let reported = String::from_utf8(output.stdout).unwrap();
        assert!(reported.contains("FAULT: the rules differ: the worker: forwarded"), "{reported}");
        let hit = "table 0 after 300 ns, by the path record\n  hits  priority=1 actions=output:2\n";
        assert!(reported.contains(hit), "{reported}");
        assert!(
            reported.contains("result: forwarded: port 2, after 500 ns, by a path record\n"),
            "{reported}"
        );
        assert!(
            reported.contains("actions=drop") && reported.contains(&format!("{faults} fault")),
            "{reported}"
        );
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            reported.contains("1 of 1 packets were not forwarded by the rules"),
            code == 1,
            "{reported}"
        );
    }
}

#[test]
fn a_flow_file_with_mistakes_and_a_missing_switch_are_reported() {
    let place = Place::new("in_port=1,actions=nonsense");
    assert!(place.refusal(&["udp"]).contains("line 1"));
    let missing = place.0.join("no.sock");
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt"));
    let output = command.arg("--control").arg(missing).args(["trace", "udp"]).output().unwrap();
    let reported = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(reported.contains("no switch answers on this control socket"), "{reported}");
}
