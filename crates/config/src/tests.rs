// SPDX-License-Identifier: Apache-2.0
//! Tests of the documented example, and of files with one mistake each.

use super::*;
use crate::forwarding::LaneSettings;
use actions::PacketInRate;
use flow::{EgressQueue, Nanos, PortNo, QueueId, TableId};
use model::{CookieMask, Learning};
use pipeline::LaneLimits;
use port_cache::{MissLimits, PortCacheConfig, QuenchedTables, SearcherKind, Victim, WhenFull};
use std::path::Path;
use worker::Quanta;

/// A valid file. Each row of [`MISTAKES`] changes one thing in it.
const GOOD: &str = r#"
control = "/tmp/s1.sock"
[[worker]]
cpu = 1
idle = "adaptive"
[[datapath]]
id = 1
[datapath.openflow]
controllers = []
fail_mode = "standalone"
[datapath.low_latency]
cookie = "0x4c4c000000000000/0xffff000000000000"
learn = { enabled = false, min_pps = 1000, window = "5s", min_timeout = "10m" }
[datapath.ffp]
enabled = true
lut_entries = 4096
consistency = "lazy"
[datapath.port_cache]
mode = "off"
entries = 64
queue = 64
[[datapath.port]]
number = 1
name = "p1"
driver = "af_packet"
device = "veth1"
workers = [0]
[[datapath.port]]
number = 2
name = "p2"
driver = "mem"
device = "null"
workers = [0]
outstanding_bytes = 0
[[datapath.port.queue]]
id = 7
min_rate_kbps = 1000
max_rate_kbps = 2000
priority = 3
limit_frames = 64
[[datapath.port.queue]]
id = 1
[datapath.lanes]
normal = 0
hold = 1
large_quantum = 16
quiet = "50us"
"#;

#[test]
fn the_documented_example_is_read() {
    let config = Config::parse(GOOD).unwrap();
    let forwarding = config.datapath.forwarding;
    assert_eq!(config.control, Path::new("/tmp/s1.sock"));
    assert_eq!(config.workers, [WorkerConfig { number: 0, cpu: Some(1), idle: Idle::Adaptive }]);
    assert_eq!((config.datapath.id, config.datapath.openflow.standalone), (1, true));
    assert_eq!(forwarding.low_latency_cookie, Some(CookieMask { value: 0x4c4c << 48, mask: 0xffff << 48 }));
    let p1 = &config.datapath.ports[0];
    assert_eq!((p1.number, p1.name.as_str(), p1.device.as_str()), (PortNo(1), "p1", "veth1"));
    assert_eq!((p1.driver.as_str(), p1.workers.as_slice()), ("af_packet", &[0][..]));
    assert_eq!((forwarding.lut_entries, forwarding.express_records), (4_096, 8_192));
    assert_eq!(forwarding.consistency, worker::Consistency::Lazy);
    let limits = LaneLimits { normal: 0, unknown: 1_024, hold: 1 };
    let quanta = Quanta { small: 8, large: 16, quiet_ns: Nanos(50_000) };
    assert_eq!(forwarding.lanes, LaneSettings { limits, quanta });
    let outstanding = |text: &str| {
        let ports = Config::parse(text).unwrap().datapath.ports;
        ports.iter().map(|port| port.outstanding_bytes).collect::<Vec<_>>()
    };
    assert_eq!(outstanding(GOOD), [262_144, 0]);
    assert_eq!(outstanding(&GOOD.replace("hold = 1", "outstanding_bytes = 1")), [1, 0]);
    assert_eq!(outstanding(&GOOD.replace("hold = 1", "enabled = false")), [usize::MAX, 0]);
    let seven = EgressQueue {
        min_rate_kbps: Some(1_000),
        max_rate_kbps: Some(2_000),
        priority: 3,
        limit_frames: 64,
        ..EgressQueue::new(QueueId(7))
    };
    let queues = config.datapath.ports.iter().map(|port| port.queues.clone());
    assert_eq!(queues.collect::<Vec<_>>(), [vec![], vec![seven, EgressQueue::new(QueueId(1))]]);
    assert_eq!(forwarding.learning, None);
    assert_eq!(config.notes.len(), 0, "{:?}", config.notes);
}

#[test]
fn learning_is_off_unless_it_is_enabled() {
    let text = GOOD.replace("enabled = false", "enabled = true");
    let second = 1_000_000_000;
    let learning = Learning { min_pps: 1_000, window: Nanos(5 * second), min_timeout: Nanos(600 * second) };
    assert_eq!(Config::parse(&text).unwrap().datapath.forwarding.learning, Some(learning));
    let minimal = text
        .replace("enabled = true, min_pps = 1000, window = \"5s\", min_timeout = \"10m\"", "enabled = true");
    assert_ne!(minimal, text);
    assert_eq!(Config::parse(&minimal).unwrap().datapath.forwarding.learning, Some(learning));
    // A note reports that learned low-latency marks have no effect.
    let idle = text.replace("[datapath.ffp]\nenabled = true", "[datapath.ffp]\nenabled = false");
    assert_eq!(Config::parse(&idle).unwrap().notes.len(), 1);
}

#[test]
fn the_limitation_of_af_xdp_is_noted_once() {
    let text = GOOD
        .replace("\"af_packet\"", "\"af_xdp\"")
        .replace("\"mem\"\ndevice = \"null\"", "\"af_xdp\"\ndevice = \"x\"");
    let config = Config::parse(&text).unwrap();
    assert!(config.datapath.ports.iter().all(|port| port.driver == "af_xdp"));
    assert_eq!(config.notes.iter().filter(|note| note.contains("txvlan")).count(), 1, "{:?}", config.notes);
}

#[test]
fn missing_keys_have_the_documented_defaults() {
    let config = Config::parse("[[worker]]\n[[datapath]]\nid = 7\n").unwrap();
    assert_eq!(config.control, Path::new(DEFAULT_CONTROL));
    assert_eq!(config.workers, [WorkerConfig { number: 0, cpu: None, idle: Idle::Adaptive }]);
    assert_eq!(config.datapath.ports, []);
    assert!(config.notes.iter().any(|n| n.contains("worker 0 serves no port")), "{:?}", config.notes);
}

#[test]
fn the_fail_mode_selects_the_behaviour_without_controllers() {
    let openflow = |by: &str| {
        let text = changed(GOOD, "controllers = []\nfail_mode = \"standalone\"", by);
        Config::parse(&text).unwrap().datapath.openflow
    };
    let secure = openflow("controllers = [\"tcp:1.2.3.4\"]\nlisten = \"[::1]:6654\"");
    assert_eq!(secure.controllers, [Endpoint::Tcp("1.2.3.4:6653".parse().unwrap())]);
    assert_eq!(secure.listen, [Endpoint::Tcp("[::1]:6654".parse().unwrap())]);
    assert!(!secure.standalone);
    let both =
        openflow("controllers = [\"unix:/c\", \"tcp:1.2.3.4\"]\nlisten = [\"unix:/l\", \"[::1]:6654\"]");
    assert_eq!(both.controllers, [Endpoint::Unix("/c".into()), secure.controllers[0].clone()]);
    assert_eq!(both.listen, [Endpoint::Unix("/l".into()), secure.listen[0].clone()]);
    assert_eq!(openflow("listen = \"unix:/l\"").listen, both.listen[..1]);
    assert_eq!(openflow("listen = []").listen, []);
    assert!(openflow("controllers = [\"tcp:1.2.3.4\"]\nfail_mode = \"standalone\"").standalone);
    assert!(openflow("listen = []").standalone);
    assert!(!openflow("fail_mode = \"secure\"").standalone);
}

fn changed(text: &str, what: &str, by: &str) -> String {
    assert!(text.contains(what) && what != by, "{what}");
    text.replacen(what, by, 1)
}

/// Formats mistakes as `line 3: KEY: PROBLEM`.
fn lines_of(mistakes: Vec<Mistake>) -> Vec<String> {
    let line =
        |mistake: &Mistake| mistake.place.map_or(String::new(), |place| format!("line {}: ", place.line));
    mistakes.iter().map(|mistake| format!("{}{mistake}", line(mistake))).collect()
}

/// Rows of mistakes: the replaced text, its replacement, and parts of the expected message.
const MISTAKES: &[(&str, &str, &[&str])] = &[
    ("control = \"/tmp/s1.sock\"", "control = \"\"", &["control: ", "not a socket path", "such as"]),
    (
        "control = \"/tmp/s1.sock\"",
        "kontrol = \"\"",
        &["line 2: kontrol: unknown key; use one of `control`, `simd`"],
    ),
    (
        "control = \"/tmp/s1.sock\"",
        "control = 3",
        &[
            "line 2: control: is the number 3, but a string or a table is needed; write control = \"/run/shunt/s1.sock\"",
        ],
    ),
    (
        "[[worker]]",
        "[worker]",
        &["line 3: worker: is a table, but a list of tables is needed; write [[worker]]"],
    ),
    (
        "[[datapath]]\nid",
        "[datapath]\nid",
        &["line 6: datapath: is a table, but a list of tables is needed; write [[datapath]]"],
    ),
    (
        "cpu = 1",
        "cpu = \"one\"",
        &["line 4: worker[0].cpu: is the string \"one\", but an integer is needed; write cpu = 1"],
    ),
    ("cpu = 1", "cpu = 1.5", &["line 4: worker[0].cpu: is the fraction 1.5, but an integer is needed"]),
    ("cpu = 1", "cpu = 99999999999999999999", &["line 4: worker[0].cpu: ", "write cpu = 1"]),
    (
        "enabled = false",
        "enabled = 0",
        &["line 13: datapath.low_latency.learn.enabled: is the number 0, but true or false is needed"],
    ),
    (
        "enabled = true",
        "enabled = \"yes\"",
        &["line 15: datapath.ffp.enabled: ", "true or false is needed; write enabled = false"],
    ),
    (
        "number = 2",
        "number = true",
        &["line 29: datapath.port[1].number: is true, but an integer is needed; write number = 1"],
    ),
    (
        "workers = [0]",
        "workers = 0",
        &[
            "line 27: datapath.port[0].workers: is the number 0, but a list of integers is needed; write workers = [0]",
        ],
    ),
    ("workers = [0]", "workers = [\n  \"0\"]", &["line 28: datapath.port[0].workers: is the string \"0\""]),
    (
        "hold = 1",
        "outstanding_bytes = \"1\"",
        &[
            "lanes.outstanding_bytes: is the string \"1\", but an integer is needed; write outstanding_bytes = 262144",
        ],
    ),
    ("id = 1", "id = [1]", &["line 7: datapath.id: is a list, but an integer is needed; write id = 1"]),
    ("control = \"/tmp/s1.sock\"", "control = \"/tmp", &["line 2: "]),
    ("[[worker]]\ncpu = 1\nidle = \"adaptive\"", "", &["worker: ", "add [[worker]]"]),
    ("cpu = 1", "cpu = -1", &["worker[0].cpu: -1 is out of range; use 0 to 8191"]),
    ("\"adaptive\"", "\"lazy\"", &["worker[0].idle: \"lazy\"", "\"adaptive\" or \"busy\""]),
    ("id = 1", "id = 0", &["datapath.id: 0 is out of range; use 1 to"]),
    ("id = 1", "", &["line 6: ", "datapath.id: is missing; write id = 1"]),
    ("id = 1", "id = 1\n[[datapath]]\nid = 2", &["datapath[1].control: is missing"]),
    ("controllers = []", "controllers = [\"tcp:x\"]", &["controllers[0]: \"tcp:x\"", "tcp:127.0.0.1:6653"]),
    (
        "controllers = []",
        "controllers = [\"tcp:1.2.3.4\", \"tcp:1.2.3.4:6653\"]",
        &["controllers[1]: \"tcp:1.2.3.4:6653\" is given twice"],
    ),
    ("controllers = []", "controllers = [\"unix:\"]", &["controllers[0]: \"\" is not a socket path"]),
    ("controllers = []", "listen = \"x:1\"", &["datapath.openflow.listen[0]: \"x:1\"", "127.0.0.1:6654"]),
    (
        "controllers = []",
        "listen = [\"unix:/l\", \"/l\"]",
        &["listen[1]: \"/l\" is not a listen address", "unix:PATH"],
    ),
    ("controllers = []", "listen = [\"unix:/l\", \"unix:/l\"]", &["listen[1]: \"unix:/l\" is given twice"]),
    (
        "controllers = []",
        "listen = \"unix:/tmp/s1.sock\"",
        &["openflow.listen[0]: \"unix:/tmp/s1.sock\" is the control socket; use another path"],
    ),
    (
        "controllers = []",
        "listen = 6654",
        &[
            "line 9: datapath.openflow.listen: is the number 6654, but a string or a list of strings is needed",
        ],
    ),
    ("controllers = []", "listen = [\"unix:/l\", 3]", &["line 9: datapath.openflow.listen: is the number 3"]),
    (
        "fail_mode = \"standalone\"",
        "fail_mode = \"safe\"",
        &["fail_mode: \"safe\"", "\"secure\" or \"standalone\""],
    ),
    ("0x4c4c000000000000/", "0x4c4c00000000000g/", &["low_latency.cookie: ", "two 64-bit numbers"]),
    ("0x4c4c000000000000/", "0x4c4c000000000001/", &["low_latency.cookie: ", "outside its mask"]),
    ("min_pps = 1000", "min_pps = 0", &["learn.min_pps: 0 is out of range; use 1 to"]),
    ("\"5s\"", "\"5 seconds\"", &["learn.window: \"5 seconds\"", "\"5s\""]),
    ("\"5s\"", "\"0s\"", &["learn.window: is out of range", "\"100ms\" to \"1h\""]),
    ("\"5s\"", "\"2h\"", &["learn.window: is out of range"]),
    ("\"10m\"", "\"10\"", &["learn.min_timeout: \"10\"", "\"10m\""]),
    ("normal = 0", "normal = 16385", &["lanes.normal: 16385 is out of range"]),
    ("large_quantum = 16", "small_quantum = 0", &["lanes.small_quantum: 0 is out of range"]),
    (
        "hold = 1",
        "outstanding_bytes = -1",
        &["lanes.outstanding_bytes: -1 is out of range; use 0 to 16777216"],
    ),
    (
        "outstanding_bytes = 0",
        "outstanding_bytes = 16777217",
        &["port[1].outstanding_bytes: 16777217 is out"],
    ),
    ("outstanding_bytes = 0", "mac_limit = 8193", &["mac_limit: 8193 is out of range; use 1 to 8192"]),
    ("\"50us\"", "\"50\"", &["lanes.quiet: ", "is not a duration", "\"100us\""]),
    ("\"50us\"", "\"2s\"", &["lanes.quiet: ", "\"0us\" to \"1s\""]),
    ("lut_entries = 4096", "lut_entries = 0", &["ffp.lut_entries: 0 is out of range"]),
    ("\"lazy\"", "\"late\"", &["ffp.consistency: \"late\" is unknown", "\"generation\""]),
    ("mode = \"off\"", "mode = \"on\"", &["port_cache.mode: \"on\" is unknown", "\"nonblocking\""]),
    ("entries = 64", "entries = 1000000", &["port_cache.entries: 1000000 is out of range; use 1 to 4096"]),
    ("entries = 64", "entries = 0", &["port_cache.entries: 0 is out of range; use 1 to 4096"]),
    ("queue = 64", "queue = 4097", &["port_cache.queue: 4097 is out of range; use 0 to 4096"]),
    ("queue = 64", "queue = -1", &["port_cache.queue: -1 is out of range; use 0 to 4096"]),
    ("queue = 64", "records = 63", &["port_cache.records: 63 is less than entries; use at least 64, or 0"]),
    ("queue = 64", "records = 65536", &["port_cache.records: 65536 is out of range; use 0 to 65535"]),
    (
        "queue = 64",
        "victim = \"fifo\"",
        &["port_cache.victim: \"fifo\" is unknown; use \"clock\" or \"lru\""],
    ),
    ("queue = 64", "bytes = 64", &["port_cache.bytes: 64 is out of range; use 2048 to 16777216"]),
    ("queue = 64", "timeout = \"2m\"", &["port_cache.timeout: is out of range; use \"1us\" to \"60s\""]),
    ("queue = 64", "timeout = \"0us\"", &["port_cache.timeout: is out of range; use \"1us\" to \"60s\""]),
    ("queue = 64", "timeout = 5", &["port_cache.timeout"]),
    ("queue = 64", "negative = \"61s\"", &["port_cache.negative: is out of range; use \"0us\" to \"60s\""]),
    ("queue = 64", "retries = 17", &["port_cache.retries: 17 is out of range; use 0 to 16"]),
    ("queue = 64", "when_full = \"wait\"", &["port_cache.when_full: \"wait\" is unknown", "\"forward\""]),
    ("queue = 64", "searcher = \"fpga\"", &["port_cache.searcher: \"fpga\" is not a searcher", "\"inline\""]),
    ("queue = 64", "searcher = \"lab\"\nservice = \"1us\"", &["port_cache.searcher: \"lab\"", "\"inline\""]),
    ("queue = 64", "service = \"1us\"", &["port_cache.service: is for searcher = \"lab\""]),
    ("number = 1", "number = 0", &["port[0].number: 0 is out of range; use 1 to 4294967040"]),
    ("number = 1", "number = 4294967294", &["port[0].number: 4294967294 is out of range"]),
    ("number = 2", "number = 1", &["port[1].number: 1 is also that of port[0]"]),
    ("name = \"p2\"", "name = \"p1\"", &["port[1].name: \"p1\" is also that of port[0]"]),
    ("name = \"p2\"", "name = \"2\"", &["port[1].name: \"2\" looks like a port number"]),
    ("name = \"p2\"", "name = \"local\"", &["port[1].name: \"local\" is a reserved port"]),
    ("driver = \"mem\"", "driver = \"me\"", &["port[1].driver: there is no driver \"me\"", "\"mem\""]),
    (
        "driver = \"mem\"",
        "driver = \"rtl\"",
        &["port[1].driver: ", "\"af_packet\"", "\"af_xdp\"", "\"dpdk\""],
    ),
    ("control = \"/tmp/s1.sock\"", "simd = \"sse\"", &["simd: \"sse\" is unknown", "\"portable\""]),
    ("id = 1", "id = 1\n[dpdk]\nmbufs = 1", &["dpdk.mbufs: 1 is out of range; use 64 to 16777216"]),
    ("id = 1", "id = 1\n[dpdk]\nmtu = 10", &["dpdk.mtu: 10 is out of range"]),
    ("id = 1", "id = 1\n[dpdk]\neal = \"-l 1\"", &["dpdk.eal: ", "a list of strings"]),
    ("device = \"null\"", "device = \"\"", &["port[1].device: is empty"]),
    (
        "driver = \"mem\"\ndevice = \"null\"",
        "driver = \"af_packet\"\ndevice = \"veth1\"",
        &["port[1].device: \"veth1\" is also that of port[0]"],
    ),
    (
        "driver = \"mem\"\ndevice = \"null\"",
        "driver = \"af_xdp\"\ndevice = \"veth1\"",
        &["port[1].device: \"veth1\" is also that of port[0]"],
    ),
    ("workers = [0]", "workers = []", &["port[0].workers: is empty"]),
    ("workers = [0]", "workers = [1]", &["port[0].workers: there is no worker 1; the only one is 0"]),
    ("workers = [0]", "workers = [-1]", &["port[0].workers: there is no worker -1"]),
    ("workers = [0]", "workers = [0, 0]", &["port[0].workers: worker 0 is named twice"]),
    ("id = 7", "id = 8", &["port[1].queue[0].id: 8 is out of range; use 0 to 7"]),
    ("id = 7", "", &["line 35: datapath.port[1].queue[0].id: is missing; write id = 1"]),
    (
        "id = 7",
        "id = 1",
        &["port[1].queue[1].id: 1 is also that of queue[0]; give each queue a different id"],
    ),
    ("id = 7", "id = \"7\"", &["line 36: datapath.port[1].queue[0].id: is the string \"7\""]),
    (
        "max_rate_kbps = 2000",
        "max_rate_kbps = 999",
        &["port[1].queue[0].min_rate_kbps: 1000 is more than the queue's max_rate_kbps; use 1 to 999"],
    ),
    (
        "max_rate_kbps = 2000",
        "max_rate_kbps = 0",
        &["queue[0].max_rate_kbps: 0 is out of range; use 1 to 400000000"],
    ),
    ("min_rate_kbps = 1000", "min_rate_kbps = 400000001", &["min_rate_kbps: 400000001 is out of range"]),
    (
        "min_rate_kbps = 1000",
        "min_rate_kbps = 1.5",
        &["port[1].queue[0].min_rate_kbps: is the fraction 1.5", "write min_rate_kbps = 1000"],
    ),
    ("priority = 3", "priority = 8", &["queue[0].priority: 8 is out of range; use 0 to 7"]),
    ("limit_frames = 64", "limit_frames = 0", &["queue[0].limit_frames: 0 is out of range; use 1 to 4096"]),
    (
        "limit_frames = 64",
        "limit = 64",
        &["line 40: datapath.port[1].queue[0].limit: unknown key", "`limit_frames`"],
    ),
    (
        "[[datapath.port.queue]]\nid = 7\nmin_rate_kbps = 1000\nmax_rate_kbps = 2000\npriority = 3\nlimit_frames = 64\n[[datapath.port.queue]]\nid = 1",
        "[datapath.port.queue]\nid = 7",
        &[
            "line 35: datapath.port[1].queue: is a table, but a list of tables is needed; write [[datapath.port.queue]]",
        ],
    ),
    ("workers = [0]", "", &["line 22: datapath.port[0].workers: is missing; write workers = [0]"]),
    (
        "workers = [0]",
        "workers = [0]\nspeed = 3",
        &["line 28: datapath.port[0].speed: unknown key; use one of `number`", "`workers`"],
    ),
];

#[test]
fn every_mistake_has_a_message() {
    for (what, by, says) in MISTAKES {
        let text = changed(GOOD, what, by);
        let [message] = &lines_of(Config::parse(&text).unwrap_err())[..] else {
            panic!("{by:?} gives: {:#?}", Config::parse(&text).unwrap_err());
        };
        for part in *says {
            assert!(message.contains(part), "{by:?} gives: {message}");
        }
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn an_error_names_the_missing_file() {
    let message = Config::load(Path::new("no/such.toml")).unwrap_err().to_string();
    assert!(message.starts_with("no/such.toml: cannot read the configuration: "), "{message}");
}

#[test]
fn a_file_that_is_not_text_is_refused_with_the_line() {
    let path = std::env::temp_dir().join(format!("shunt-config-{}.toml", std::process::id()));
    std::fs::write(&path, b"[[worker]]\n# \xff\n").unwrap();
    let message = Config::load(&path).unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(message.contains(".toml:2:3: is not UTF-8 text"), "{message}");
    let message = Config::load(Path::new("/dev/zero")).unwrap_err().to_string();
    assert!(message.contains("is longer than"), "{message}");
}

#[test]
fn all_mistakes_are_reported_in_the_order_of_the_text() {
    let text = GOOD
        .replace("workers = [0]\n[[", "workers = [0]\nspeed = 3\n[[")
        .replace("cpu = 1", "cpu = \"one\"")
        .replace("id = 1\n[datapath.openflow]", "[datapath.openflow]\nid = 2")
        .replace("number = 2", "number = 1")
        .replace("\"50us\"", "\"50\"")
        .replace("name = \"p2\"", "nmae = \"p2\"")
        .replace("hold = 1", "hold = -1");
    let reported = lines_of(Config::parse(&text).unwrap_err());
    let begins = [
        "line 4: worker[0].cpu: is the string \"one\"",
        "line 6: datapath.id: is missing",
        "line 8: datapath.openflow.id: unknown key",
        "line 28: datapath.port[0].speed: unknown key",
        "line 29: datapath.port[1].name: is missing",
        "line 30: datapath.port[1].number: 1 is also that of port[0]",
        "line 31: datapath.port[1].nmae: unknown key",
        "line 46: datapath.lanes.hold: -1 is out of range",
        "line 48: datapath.lanes.quiet: \"50\" is not a duration",
    ];
    assert_eq!(reported.len(), begins.len(), "{reported:#?}");
    for (reported, begin) in reported.iter().zip(begins) {
        assert!(reported.starts_with(begin), "{begin}: {reported}");
    }
}

#[test]
fn each_place_that_is_not_toml_is_reported() {
    let text = GOOD.replacen("id = 1\n", "id = = 1\n", 1).replace("number = 2", "number 2");
    let reported = lines_of(Config::parse(&text).unwrap_err());
    assert_eq!(reported.len(), 2, "{reported:#?}");
    assert!(reported[0].starts_with("line 7: there is a second `=`"), "{reported:#?}");
    assert!(reported[1].starts_with("line 29: the key has no value; write KEY = VALUE"), "{reported:#?}");
    for (what, by, says) in [
        ("workers = [0]", "workers = [0", "line 28: the preceding list is not closed, or lacks a comma"),
        ("name = \"p1\"", "name = \"p1", "line 24: the text is not closed"),
        ("enabled = true", "enabled = yes", "line 15: is not a value; write a text in quotes"),
        ("number = 2", "number = 2\nnumber = 3", "line 30: is given twice; keep one"),
        ("[[datapath.port]]\nnumber = 2", "[datapath.port]\nnumber = 2", "line 28: is given twice"),
    ] {
        let reported = lines_of(Config::parse(&changed(GOOD, what, by)).unwrap_err());
        assert!(reported.len() == 1 && reported[0].starts_with(says), "{by}: {reported:#?}");
    }
}

#[test]
fn twenty_mistakes_are_printed_with_file_line_and_column() {
    let path = std::env::temp_dir().join(format!("shunt-config-many-{}.toml", std::process::id()));
    std::fs::write(
        &path,
        format!("{}[[worker]]\n[[datapath]]\nid = 0\n", "[[worker]]\n  cpu = -1\n".repeat(30)),
    )
    .unwrap();
    let message = Config::load(&path).unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 21, "{message}");
    let first = format!("{}:2:9: worker[0].cpu: -1 is out of range; use 0 to 8191", path.display());
    assert_eq!(lines[0], first);
    assert_eq!(lines[20], format!("{}: 11 more mistakes are not shown", path.display()));
}

#[test]
fn missing_cpus_and_devices_are_reported_only_in_the_scope_of_the_machine() {
    let text = GOOD.replace("cpu = 1", "cpu = 8191").replace("\"veth1\"", "\"no-such-dev\"");
    let in_file = text.replace("/tmp/s1.sock", "/dev/null/s1.sock");
    let lines_for = |scope| Config::parse_for(&in_file, scope).map_err(lines_of);
    assert!(lines_for(Scope::File).is_ok() && lines_for(Scope::Build).is_ok());
    let found = lines_for(Scope::Machine).unwrap_err();
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].starts_with("line 2: control: /dev/null/s1.sock: "), "{found:#?}");
    assert!(found[1].starts_with("line 4: worker[0].cpu: this machine has no online CPU 8191"), "{found:#?}");
    assert!(
        found[2].starts_with("line 26: datapath.port[0].device: port p1: there is no network device"),
        "{found:#?}"
    );
    let wrong = text.replace("\"null\"", "\"nul\"");
    assert!(Config::parse_for(&wrong, Scope::File).is_ok());
    let found = Config::parse_for(&wrong, Scope::Build).map_err(lines_of).unwrap_err();
    assert!(
        found.len() == 1 && found[0].starts_with("line 32: datapath.port[1].device: port p2: "),
        "{found:#?}"
    );
}

/// The grammar and the reader must accept the same keys.
#[test]
fn the_grammar_has_the_keys_that_are_read() {
    let asked = |table: &str| {
        let read = text::parse(table, text::CONFIGURATION, |_: file::ConfigFile, _| Some(()));
        let reported = lines_of(read.unwrap_err()).join(
            "
",
        );
        let known = reported
            .split_once("use one of ")
            .or_else(|| reported.split_once("use "))
            .map(|(_, keys)| keys.to_owned());
        known.unwrap_or_else(|| panic!("{table}: {reported}"))
    };
    let mut known = std::collections::BTreeSet::new();
    for table in [
        "x = 1",
        "[control]\nx = 1",
        "[security]\nx = 1",
        "[log]\nx = 1",
        "[tls]\nx = 1",
        "[dpdk]\nx = 1",
        "[[worker]]\nx = 1",
        "[[datapath]]\nx = 1",
        "[[datapath]]\nopenflow.x = 1",
        "[[datapath]]\npof.x = 1",
        "[[datapath]]\nopenflow.packet_in.x = 1",
        "[[datapath]]\nopenflow.packet_in.action.x = 1",
        "[[datapath]]\nlow_latency.x = 1",
        "[[datapath]]\nlow_latency.learn.x = 1",
        "[[datapath]]\nffp.x = 1",
        "[[datapath]]\nexpress.x = 1",
        "[[datapath]]\nlanes.x = 1",
        "[[datapath]]\nport_cache.x = 1",
        "[[datapath]]\nstore.x = 1",
        "[[datapath]]\nstateless.x = 1",
        "[[datapath]]\nstateless.types.x = 1",
        "[[datapath]]\nstateless.gates.x = 1",
        "[[datapath]]\n[[datapath.port]]\nx = 1",
        "[[datapath]]\n[[datapath.port]]\nstorm.x = 1",
        "[[datapath]]\n[[datapath.port]]\n[[datapath.port.queue]]\nx = 1",
        "[[datapath]]\n[[datapath.mirror]]\nx = 1",
        "[[datapath]]\n[[datapath.stateless.bank]]\nid = 2\nx = 1",
    ] {
        known.extend(
            asked(table).replace(" or ", ", ").split(", ").map(|key| key.trim_matches('`').to_owned()),
        );
    }
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let grammar = text::CONFIGURATION.iter().copied().flatten().map(|(path, _, _)| last(path)).collect();
    assert_eq!(known, grammar);
}

#[test]
fn the_express_path_is_on_unless_it_is_disabled() {
    let with =
        |keys: &str| GOOD.replace("[datapath.ffp]", &format!("[datapath.express]\n{keys}\n[datapath.ffp]"));
    let records =
        |keys: &str| Config::parse(&with(keys)).map(|config| config.datapath.forwarding.express_records);
    assert_eq!(records("enabled = true").unwrap(), 8_192);
    assert_eq!(records("enabled = false\nrecords = 1000").unwrap(), 0);
    assert_eq!(records("records = 1000").unwrap(), 1_000);
    let problems = lines_of(records("records = 9999999").unwrap_err());
    assert!(problems[0].contains("datapath.express.records: 9999999 is out of range"), "{problems:?}");
}

#[test]
fn the_port_cache_is_off_by_default_and_takes_its_limits_from_the_file() {
    let with = |keys: &str| {
        let text = GOOD.replace("mode = \"off\"\nentries = 64\nqueue = 64", keys);
        Config::parse(&text).map(|config| config.datapath.forwarding.worker_set().port_cache)
    };
    assert_eq!((with(""), with("mode = \"off\"\nqueue = 0")), (Ok(None), Ok(None)));
    assert_eq!(with("mode = \"nonblocking\""), Ok(Some(PortCacheConfig::default())));
    let problems = lines_of(with("mode = \"blocking\"").unwrap_err());
    assert!(problems[0].contains("port_cache.mode: \"blocking\" needs drivers"), "{problems:?}");
    assert!(problems[0].ends_with("use \"nonblocking\""), "{problems:?}");
    let lru = |records| with(&format!("mode = \"nonblocking\"\nvictim = \"lru\"\nrecords = {records}"));
    assert!(lru(1_024).is_ok());
    let problems = lines_of(lru(1_025).unwrap_err());
    assert!(problems[0].contains("port_cache.records: victim = \"lru\" compares"), "{problems:?}");
    assert!(problems[0].contains("use at most 1024 records"), "{problems:?}");
    let keys = "mode = \"nonblocking\"\nentries = 1\nqueue = 0\nrecords = 9\nvictim = \"lru\"\nbytes = 4096\ntimeout = \"5ms\"\nretries = 0\nnegative = \"0us\"\nwhen_full = \"forward\"\nsearcher = \"inline\"";
    let limits = MissLimits {
        entries: 1,
        queue: 0,
        records: 9,
        victim: Victim::LeastRecentlyUsed,
        bytes: 4_096,
        timeout_ns: Nanos(5_000_000),
        retries: 0,
        negative_ns: Nanos(0),
        when_full: WhenFull::Forward,
    };
    assert_eq!(with(keys), Ok(Some(PortCacheConfig { limits, ..PortCacheConfig::default() })));
    let worker = |keys: &str| with(&format!("mode = \"nonblocking\"\nsearcher = \"worker\"\n{keys}"));
    let searcher = SearcherKind::Worker;
    assert_eq!(worker(""), Ok(Some(PortCacheConfig { searcher, ..PortCacheConfig::default() })));
    assert!(worker("searcher_cpu = 5").is_ok());
    let refusals = [
        (worker("service = \"10us\""), "port_cache.service: is the time of a search in scenarios"),
        (worker("searcher_cpu = -1"), "port_cache.searcher_cpu: -1 is out of range"),
        (worker("searcher_cpu = 1"), "port_cache.searcher_cpu: 1 is the CPU of worker 0"),
        (
            with("mode = \"nonblocking\"\nsearcher_cpu = 5"),
            "port_cache.searcher_cpu: is for searcher = \"worker\"",
        ),
        (with("mode = \"nonblocking\"\nsearcher = \"core\""), "use \"inline\" or \"worker\""),
    ];
    for (refused, says) in refusals {
        let problems = lines_of(refused.unwrap_err());
        assert!(problems[0].contains(says), "{problems:?}");
    }
    let problems = lines_of(with("mode = \"nonblocking\"\nsearcher_cpu = -1").unwrap_err());
    assert_eq!(problems.iter().filter(|line| line.contains("searcher_cpu:")).count(), 1, "{problems:?}");
    let keys = "mode = \"off\"\nsearcher = \"worker\"";
    let off = GOOD.replace("mode = \"off\"\nentries = 64\nqueue = 64", keys);
    let notes = Config::parse(&off).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("port_cache.searcher has no effect")), "{notes:?}");
    let without_records = "mode = \"nonblocking\"\n[datapath.express]\nenabled = false";
    let problems = lines_of(with(without_records).unwrap_err());
    assert!(problems[0].contains("port_cache.mode: needs path records"), "{problems:?}");
}

#[test]
fn packets_that_may_wait_in_the_port_cache_fit_the_pool() {
    let on = |workers: usize, ports: usize, entries: usize, queue: usize, searcher: &str| {
        let port = |n| {
            format!(
                "[[datapath.port]]\nnumber = {n}\nname = \"p{n}\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [0]\n"
            )
        };
        let cache = format!(
            "[datapath.port_cache]\nmode = \"nonblocking\"\nentries = {entries}\nqueue = {queue}\n{searcher}"
        );
        let ports: String = (1..=ports).map(port).collect();
        let workers = "[[worker]]\n".repeat(workers);
        Config::parse(&format!("{workers}[[datapath]]\nid = 1\n{cache}{ports}")).map_err(lines_of)
    };
    let lab = "searcher = \"lab\"\nservice = \"10us\"\n";
    let problems = on(1, 256, 4_096, 0, "searcher = \"inline\"\n").unwrap_err();
    assert!(problems[0].contains("port_cache.queue"), "{problems:?}");
    let of_pool = |workers, ports, entries, queue| {
        let mut problems = on(workers, ports, entries, queue, lab).unwrap_err();
        problems.retain(|problem| problem.contains("port_cache.queue"));
        problems
    };
    let problems = of_pool(2, 16, 4_096, 4_096);
    assert!(problems[0].contains("16 ports and 2 workers exceed"), "{problems:?}");
    assert!(of_pool(2, 16, 2_048, 2_048).is_empty());
    assert!(of_pool(1, 16, 4_096, 4_096).is_empty() && of_pool(1, 256, 256, 256).is_empty());
    let problems = of_pool(1, 32, 1_000, 4_096);
    assert!(problems[0].contains("port_cache.queue: 4096 packets and 1000 entries"), "{problems:?}");
    assert!(problems[0].contains("pools of 131072 frames; use at most 3096"), "{problems:?}");
    let problems = of_pool(1, 256, 4_096, 0);
    assert!(problems[0].contains("lower entries and queue to 512 in total"), "{problems:?}");
}

#[test]
fn packet_ins_are_quenched_and_limited_as_configured() {
    let with = |keys: &str| {
        let good = GOOD.replace("[datapath.port_cache]\nmode = \"off\"\nentries = 64\nqueue = 64\n", "");
        let keys = format!("[datapath.openflow.packet_in]\n{keys}\n[datapath.ffp]");
        Config::parse(&good.replace("[datapath.ffp]", &keys))
    };
    let read = |keys: &str| with(keys).unwrap().datapath.openflow.packet_ins;
    assert_eq!(read(""), PacketIns::default());
    let all = read(
        "quench = [0, 254]\nquench_timeout = \"20ms\"\nno_match = { rate = 50 }\naction = { rate = 7, burst = 3 }",
    );
    let quench = all.quench.unwrap();
    assert_eq!(quench.tables, QuenchedTables::of([TableId(0), TableId(254)]));
    assert_eq!(quench.timeout_ns, Nanos(20_000_000));
    assert_eq!(all.rates.no_match, PacketInRate { rate: 50, burst: 50 });
    assert_eq!(all.rates.action, PacketInRate { rate: 7, burst: 3 });
    assert_eq!(all.rates.invalid_ttl, PacketInRate::default());
    let workers = with("quench = [3]").unwrap().datapath.worker_set();
    assert_eq!(workers.port_cache.unwrap().quench.unwrap().timeout_ns, Nanos(1_000_000_000));
    for (keys, says) in [
        ("quench = [255]", "packet_in.quench[0]: 255 is out of range; use 0 to 254"),
        (
            "quench = [0]\nquench_timeout = \"2m\"",
            "packet_in.quench_timeout: is out of range; use \"1ms\" to \"1m\"",
        ),
        (
            "quench_timeout = \"2s\"",
            "packet_in.quench_timeout: has no effect without tables; write quench = [0]",
        ),
        (
            "quench = [0]\n[datapath.port_cache]\nmode = \"off\"",
            "port_cache.mode: quenched packets wait in the port cache; use \"nonblocking\"",
        ),
        ("quench = [0]\n[datapath.port_cache]\nqueue = 9", "port_cache.mode: quenched packets wait"),
        ("action = {}", "packet_in.action.rate"),
        ("action = { rate = 0 }", "packet_in.action.rate: 0 is out of range; use 1 to 10000000"),
        (
            "no_match = { rate = 1, burst = 0 }",
            "packet_in.no_match.burst: 0 is out of range; use 1 to 1000000",
        ),
        (
            "quench = [0]\n[datapath.express]\nenabled = false",
            "packet_in.quench: packet-ins are quenched per path",
        ),
    ] {
        let problems = lines_of(with(keys).unwrap_err());
        assert!(problems.len() == 1 && problems[0].contains(says), "{problems:?}");
    }
}

/// A file with two datapaths that each have a stateless forwarder.
const TWO: &str = r#"
control = "/tmp/s1.sock"
[[worker]]
cpu = 0
[[worker]]
cpu = 1
[[datapath]]
id = 1
[datapath.stateless]
trusted = [1]
[[datapath.stateless.bank]]
id = 5
labels = ["tables", 1]
[[datapath.port]]
number = 1
name = "p1"
driver = "af_packet"
device = "veth1"
workers = [0]
[[datapath]]
id = 2
control = "/tmp/s2.sock"
[datapath.openflow]
listen = "127.0.0.1:6654"
[[datapath.port]]
number = 1
name = "p1"
driver = "af_packet"
device = "veth2"
workers = [1]
"#;

#[test]
fn each_datapath_has_separate_settings() {
    let all = Config::parse_all(TWO).unwrap();
    let controls: Vec<_> = all.iter().map(|config| config.control.to_str().unwrap()).collect();
    assert_eq!(controls, ["/tmp/s1.sock", "/tmp/s2.sock"]);
    let worker = |number| WorkerConfig { number, cpu: Some(number), idle: Idle::Adaptive };
    assert_eq!((&all[0].workers[..], &all[1].workers[..]), (&[worker(0)][..], &[worker(1)][..]));
    assert_eq!(all[1].datapath.ports[0].workers, [0], "workers are numbered within their datapath");
    assert!(all.iter().all(|config| config.notes.is_empty()));
    let stateless = all[0].datapath.stateless.as_ref().unwrap();
    assert_eq!(stateless.banks[0].as_ref().unwrap().labels.len(), 2);
    assert_eq!(all[1].datapath.stateless, None);
    for (what, by, says) in [
        ("id = 2", "id = 1", "datapath[1].id: 1 is also the id of another datapath"),
        ("control = \"/tmp/s2.sock\"", "", "datapath[1].control: is missing"),
        ("/tmp/s2.sock", "/tmp/s1.sock", "datapath[1].control: \"/tmp/s1.sock\" is also used"),
        ("veth2", "veth1", "datapath[1].port[0].device: \"veth1\" is also used by another datapath"),
        ("workers = [1]", "workers = [2]", "datapath[1].port[0].workers: there is no worker 2"),
        ("id = 5", "id = 1", "datapath[0].stateless.bank[0].id: 1 is out of range"),
        ("id = 5", "id = \"5\"", "datapath[0].stateless.bank[0].id: is the string \"5\""),
        (
            "trusted = [1]",
            "trusted = 1",
            "datapath[0].stateless.trusted: is the number 1, but a list of ports",
        ),
        (
            "trusted = [1]",
            "trust = [1]",
            "line 10: datapath[0].stateless.trust: unknown key; use one of `trusted`",
        ),
    ] {
        let messages = lines_of(Config::parse_all(&changed(TWO, what, by)).unwrap_err());
        assert!(messages.len() == 1 && messages[0].contains(says), "{by:?} gives: {messages:#?}");
    }
    assert!(lines_of(Config::parse(TWO).unwrap_err())[0].contains("there are 2, but one is expected"));
}
