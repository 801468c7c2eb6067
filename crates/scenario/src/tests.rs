// SPDX-License-Identifier: Apache-2.0
//! Tests of valid scenarios, and of scenarios with one mistake. Each row contains a mistake and its error
//! message.

mod compared;

use super::packets::{FLOWS, made};
use super::*;
use config::{Mistake, PortCacheMode};
use std::fs;
use std::path::Path;

/// A valid file. Each row of [`MISTAKES`] changes one thing in it.
const GOOD: &str = r#"
seed = 3
warm_up = "1ms"
duration = "4ms"
ring = 256
io = "2us"
costs = [
    { step = "turn", time_ns = 150.0, unit_ns = 0.0 },
    { step = "receive", time_ns = 120.0, unit_ns = 50.0 },
    { step = "transmit", time_ns = 150.0, unit_ns = 30.0 },
    { step = "probe", table = 0, time_ns = 120.0, unit_ns = 20.0 },
    { step = "execute", table = 0, again = true, time_ns = 200.0, unit_ns = 600.0 },
]
[load]
rate_pps = 4000000
[[datapath]]
id = 1
rules = """
low_latency,priority=20,udp,nw_dst=10.0.0.0/24,tp_dst=2000,actions=output:2
priority=10,ip,nw_dst=10.1.0.0/16,actions=output:3
priority=9,udp,nw_dst=10.2.0.0/16,actions=CONTROLLER:64
"""
[datapath.lanes]
normal = 128
unknown = 64
[[traffic]]
name = "control"
share = 0.1
packets = "in_port=4,udp,nw_src=10.0.1.0/24,nw_dst=10.0.0.0/24,tp_dst=2000"
flows = 20
popularity = "zipf"
known = true
returns_by = 5
[[traffic]]
name = "other"
port = 1
share = 0.85
pattern = "bursts"
burst = 8
packets = "tcp,nw_src=10.9.0.0/16,nw_dst=10.1.0.0/16"
flows = 100
[[traffic]]
name = "asked"
port = 1
share = 0.05
packets = "udp,nw_dst=10.2.0.0/16"
begin = "1ms"
"#;

fn read(text: &str) -> Result<SwitchScenario, Vec<Mistake>> {
    read_with(text, &Overrides::default())
}

fn read_with(text: &str, overrides: &Overrides) -> Result<SwitchScenario, Vec<Mistake>> {
    match scenario::parse(Path::new("examples/test.toml"), text, overrides)? {
        Scenario::Switch(scenario) => Ok(*scenario),
        Scenario::Network(_) => panic!("expected a scenario of one switch"),
    }
}

/// Runs a scenario that has one switch.
fn outcome_of(text: &str) -> ScenarioOutcome {
    let [outcome] = read(text).unwrap().run().unwrap().try_into().unwrap();
    outcome
}

/// Formats all mistakes, one per line, as `line 3: KEY: PROBLEM`.
fn refusal(mistakes: &[Mistake]) -> String {
    let line =
        |mistake: &Mistake| mistake.place.map_or(String::new(), |place| format!("line {}: ", place.line));
    mistakes.iter().map(|mistake| format!("{}{mistake}\n", line(mistake))).collect()
}

#[test]
fn every_packet_is_delivered_or_lost_by_a_named_reason() {
    // With path records, low-latency packets leave before the fast-forwarding path.
    let without = Overrides { express: Some(false), ..Overrides::default() };
    let outcome = read_with(GOOD, &without).unwrap().run().unwrap().remove(0);
    for part in outcome.lanes.iter().chain(&outcome.traffic) {
        let dropped: u64 = part.dropped.values().sum();
        assert!(part.offered > 500, "{part:?}");
        assert_eq!(part.offered, part.delivered + part.consumed + dropped, "{part:?}");
        assert_eq!(part.overtaken, 0, "{part:?}");
    }
    let sum = |parts: &[TrafficShare]| parts.iter().map(|part| part.offered).sum::<u64>();
    assert_eq!(sum(&outcome.lanes), sum(&outcome.traffic));
    let [low, normal] = &outcome.lanes[..] else { panic!("expected two lanes: {outcome:?}") };
    assert_eq!((low.name.as_str(), low.offered, low.dropped.len()), ("low-latency", low.delivered, 0));
    assert_eq!(low.fast, 2 * low.delivered);
    assert!(normal.dropped.contains_key("backlog_normal"), "{normal:?}");
    assert!(outcome.traffic[2].consumed > 0, "{outcome:?}");
    let latency = low.latency_ns;
    assert!(
        4_000.0 < latency.p50 && latency.p50 <= latency.p99_9 && latency.p99_9 <= latency.max,
        "{latency:?}"
    );
    assert!((outcome.offered_pps - 4e6).abs() < 1.0);
}

/// Path records affect how entries are found, but not how packets are treated.
#[test]
fn the_express_path_can_be_overridden() {
    let without_lanes = GOOD.replace("normal = 128\nunknown = 64", "enabled = false");
    let slow = without_lanes.replace("rate_pps = 4000000", "rate_pps = 400000");
    let file_says = slow.replace("[datapath.lanes]", "[datapath.express]\nenabled = true\n[datapath.lanes]");
    let run = |text: &str, express| {
        read_with(text, &Overrides { express, ..Overrides::default() }).unwrap().run().unwrap().remove(0)
    };
    let records = |outcome: &ScenarioOutcome| outcome.lanes.iter().map(|lane| lane.express).sum::<u64>();
    let counts = |outcome: &ScenarioOutcome| -> Vec<_> {
        let count = |part: &TrafficShare| (part.offered, part.delivered, part.consumed, part.dropped.clone());
        outcome.traffic.iter().map(count).collect()
    };
    let without = run(&slow, None);
    for (text, express, is_on) in [
        (&slow, Some(false), false),
        (&slow, Some(true), true),
        (&file_says, None, true),
        (&file_says, Some(false), false),
    ] {
        let outcome = run(text, express);
        assert_eq!(records(&outcome) > 500, is_on, "{outcome:?}");
        assert_eq!(counts(&outcome), counts(&without));
    }
}

#[test]
fn the_same_file_and_seed_give_the_same_bytes() {
    let bytes = |text: &str| serde_json::to_string(&outcome_of(text)).unwrap();
    assert_eq!(bytes(GOOD), bytes(GOOD));
    assert_ne!(bytes(GOOD), bytes(&GOOD.replace("seed = 3", "seed = 4")));
}

#[test]
fn a_load_factor_is_relative_to_the_capacity() {
    let at = |factor: &str| outcome_of(&GOOD.replace("rate_pps = 4000000", factor));
    let (below, beyond) = (at("factor = 0.5"), at("factor = 2"));
    let dropped =
        |outcome: &ScenarioOutcome| outcome.traffic.iter().map(|part| part.dropped.len()).sum::<usize>();
    assert_eq!((dropped(&below), below.capacity_pps), (0, beyond.capacity_pps));
    assert!(dropped(&beyond) > 0);
    assert!((below.offered_pps * 4.0 - beyond.offered_pps).abs() < 4.0);
    // A run with the printed rate instead of the factor gives the same result.
    let again = at(&format!("rate_pps = {:.1}", below.offered_pps));
    assert_eq!(again.traffic, below.traffic);
}

#[test]
fn a_larger_ring_does_not_raise_the_capacity() {
    let capacity = |text: &str| outcome_of(text).capacity_pps.unwrap();
    let text = GOOD.replace("rate_pps = 4000000", "factor = 0.5");
    for more in ["", "\nenabled = false"] {
        let text = text.replace("unknown = 64", &format!("unknown = 64{more}"));
        // A ring of 65,536 packets could hold all packets of a short run.
        let (usual, deep) = (capacity(&text), capacity(&text.replace("ring = 256", "ring = 65536")));
        assert!((deep / usual - 1.0).abs() < 0.1, "{more}: {deep} against {usual}");
    }
}

#[test]
fn a_run_with_rounded_shares_is_repeated_by_its_rate() {
    let thirds =
        GOOD.replace("share = 0.1\n", "share = 0.3333333\n").replace("share = 0.85", "share = 0.3333333");
    let thirds = thirds.replace("share = 0.05", "share = 0.3333333");
    let first = outcome_of(&thirds.replace("rate_pps = 4000000", "factor = 0.7"));
    let again = thirds.replace("rate_pps = 4000000", &format!("rate_pps = {:.1}", first.offered_pps));
    assert_eq!(outcome_of(&again).traffic, first.traffic);
}

#[test]
fn packets_dropped_at_admission_are_in_no_lane() {
    let folder = std::env::temp_dir().join(format!("shunt-runts-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("runts.pcap");
    // The capture contains two frames, of 1 and 13 bytes.
    let mut file: Vec<u8> =
        [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1].iter().flat_map(|w| w.to_le_bytes()).collect();
    for (at, len) in [(0_u32, 1_u32), (1, 13)] {
        file.extend([0, at, len, len].iter().flat_map(|w| w.to_le_bytes()));
        file.extend(vec![2; len as usize]);
    }
    fs::write(&path, file).unwrap();
    let from = GOOD.find("[[traffic]]").unwrap();
    let text = format!(
        "{}[[traffic]]\nname = \"runts\"\nport = 1\nshare = 1\npcap = \"{}\"\n",
        &GOOD[..from],
        path.display()
    );
    let outcome = outcome_of(&text);
    fs::remove_dir_all(&folder).unwrap();
    let offered: Vec<u64> = outcome.lanes.iter().map(|lane| lane.offered).collect();
    assert!(offered[0] == 0 && offered[1] > 0, "{:?}", outcome.lanes);
    assert!(outcome.lanes[1].dropped.contains_key("runt"));
}

#[test]
fn costs_can_be_measured_and_written_down() {
    let start = GOOD.find("costs = [").unwrap();
    let end = GOOD.find("[load]").unwrap();
    let with = |costs: String| format!("{}{costs}\n{}", &GOOD[..start], &GOOD[end..]);
    let slow = |text: String| text.replace("rate_pps = 4000000", "rate_pps = 100000");
    let measured = outcome_of(&slow(with("costs = \"measured\"".into())));
    assert!(measured.agreement.is_some());
    let steps: Vec<String> = measured.steps.iter().map(ToString::to_string).collect();
    let given = outcome_of(&slow(with(format!("costs = [{}]", steps.join(", ")))));
    assert_eq!((&given.traffic, given.costs), (&measured.traffic, "given"));
}

/// Rows of mistakes: the replaced text, its replacement, and a part of the expected message.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("seed = 3", "seed = -1", "seed: -1 is out of range; use 0"),
    ("seed = 3", "seed = \"x\"", "line 2: seed: is the string \"x\""),
    ("seed = 3", "sead = 3", "line 2: sead: unknown key; use one of `seed`"),
    ("seed = 3", "seed = ", "line 2"),
    ("\"4ms\"", "\"4 ms\"", "duration: \"4 ms\" is not a duration"),
    ("\"4ms\"", "\"0ms\"", "duration: is 0"),
    ("\"4ms\"", "\"4000h\"", "duration: \"4000h\" is too long"),
    ("\"4ms\"", "\"4ms\"\npackets = 5", "packets: cannot be combined with duration"),
    ("duration = \"4ms\"", "packets = 0", "packets: 0 is out of range"),
    ("ring = 256", "ring = 0", "ring: 0 is out of range; use 1 to"),
    ("io = \"2us\"", "io = \"2h\"", "io: \"2h\" is too long"),
    ("step = \"turn\"", "step = \"ponder\"", "costs[0].step: there is no step \"ponder\"; steps are turn, "),
    ("step = \"turn\"", "step = \"turn\", table = 3", "costs[0].step: \"turn\" is not a step of a table"),
    ("step = \"turn\"", "step = \"turn\", again = true", "costs[0].again: is for steps of tables"),
    ("step = \"turn\"", "step = \"receive\"", "costs[1].step: is given twice"),
    (
        "step = \"turn\"",
        "stop = \"turn\"",
        "line 8: costs[0].step: is missing; write step = \"turn\"\nline 8: costs[0].stop: unknown key",
    ),
    ("time_ns = 150.0, unit_ns = 0.0", "time_ns = -1, unit_ns = 0", "costs[0].time_ns: -1 is out of range"),
    ("time_ns = 150.0, unit_ns = 0.0", "time_ns = nan, unit_ns = 0", "costs[0].time_ns: NaN is out of range"),
    ("time_ns = 150.0, unit_ns = 0.0", "time_ns = 0, unit_ns = inf", "costs[0].unit_ns: inf is out of range"),
    ("rate_pps = 4000000", "rate_pps = 0", "load.rate_pps: 0 is out of range"),
    ("rate_pps = 4000000", "rate_pps = 1e-300", "load.rate_pps: 0.000"),
    ("rate_pps = 4000000", "rate_pps = inf", "load.rate_pps: inf is out of range"),
    ("rate_pps = 4000000", "factor = nan", "load.factor: NaN is out of range"),
    ("rate_pps = 4000000", "rate_pps = 1\nfactor = 1", "load: needs exactly one of rate_pps and factor"),
    ("rate_pps = 4000000", "", "load: needs exactly one of rate_pps and factor"),
    ("[load]\nrate_pps = 4000000", "", "load: is missing"),
    ("share = 0.05", "share = 0.06", "shares that add up to 1.01"),
    ("share = 0.05", "share = 0", "traffic[2].share: 0 is out of range"),
    ("share = 0.05", "share = 0.05\nrate_pps = 1", "traffic[2].share: cannot be combined with rate_pps"),
    ("share = 0.05", "", "traffic[2].rate_pps: is missing"),
    ("id = 1", "id = 0", "datapath.id: 0 is out of range"),
    ("id = 1", "id = 1\nflows = \"x\"", "datapath.rules: cannot be combined with flows"),
    (
        "id = 1",
        "id = 1\n[[datapath.port]]",
        "line 16: datapath.flows: is missing; name a flow file, or give the flows as rules\nline 18: datapath.port: unknown key",
    ),
    ("normal = 128", "normal = -1", "datapath.lanes.normal: -1 is out of range"),
    ("low_latency,priority=20", "low_latency,prioritee=20", "datapath.rules: line 1, column"),
    (
        "actions=output:3",
        "actions=output:300",
        "datapath.rules: there is no port 300; a simulated switch has ports 1 to 256",
    ),
    ("actions=output:3", "actions=group:7", "datapath.rules: line 2"),
    ("in_port=4,udp", "in_port=4,colour=red,udp", "traffic[0].packets: \"in_port=4,colour=red"),
    ("in_port=4,udp", "metadata=4,udp", "traffic[0].packets: \"metadata=4"),
    ("flows = 20", "flows = 2000000", "traffic[0].flows: 2000000 is out of range"),
    ("flows = 100", "flows = 100\nbytes = 20", "traffic[1].bytes: 20 is out of range; use 64 to"),
    ("flows = 100", "flows = 100\npcap = \"x.pcap\"", "traffic[1].pcap: cannot be combined with packets"),
    ("name = \"other\"", "name = \"control\"", "traffic[1].name: \"control\" is given twice"),
    ("name = \"other\"", "name = \"\"", "traffic[1].name: is not a name"),
    ("name = \"other\"", "name = 7", "traffic[1].name: is the number 7"),
    (
        "port = 1\nshare = 0.85",
        "port = 257\nshare = 0.85",
        "traffic[1].port: 257 is out of range; use 1 to 256",
    ),
    ("share = 0.1", "share = 0.1\nport = 1", "traffic[0].port: is 1, but in_port of the packets is 4"),
    ("returns_by = 5", "returns_by = 0", "traffic[0].returns_by: 0 is out of range"),
    ("\"zipf\"", "\"fair\"", "traffic[0].popularity: \"fair\" is unknown; use \"uniform\""),
    ("\"zipf\"", "\"uniform\"\nexponent = 1", "traffic[0].exponent: is for popularity"),
    ("\"zipf\"", "\"zipf\"\nexponent = nan", "traffic[0].exponent: NaN is out of range"),
    ("\"zipf\"", "\"as_captured\"", "traffic[0].popularity: \"as_captured\" is unknown"),
    ("\"bursts\"\nburst = 8", "\"swarms\"", "traffic[1].pattern: \"swarms\" is unknown; use \"constant\""),
    ("\"bursts\"", "\"poisson\"", "traffic[1].burst: is for pattern"),
    ("burst = 8", "spacing_ns = -1", "traffic[1].spacing_ns: -1 is out of range"),
    ("burst = 8", "burst = 0", "traffic[1].burst: 0 is out of range"),
    ("begin = \"1ms\"", "begin = \"soon\"", "traffic[2].begin: \"soon\" is not a duration"),
    ("packets = \"udp,nw_dst=10.2.0.0/16\"", "", "traffic[2].packets: are missing"),
    (
        "packets = \"udp,nw_dst=10.2.0.0/16\"",
        "pcap = \"no.pcap\"",
        "traffic[2].pcap: examples/no.pcap: cannot read",
    ),
    ("packets = \"udp,nw_dst=10.2.0.0/16\"", "pcap = \"/\"", "traffic[2].pcap: /: is not a regular file"),
];

#[test]
fn every_mistake_of_a_scenario_has_a_message() {
    let mut failed = Vec::new();
    for (what, by, says) in MISTAKES {
        assert_eq!(GOOD.matches(what).count(), 1, "{what}");
        let mistake = read(&GOOD.replace(what, by)).err().map(|mistakes| refusal(&mistakes));
        let is_right = |refusal: &String| {
            refusal.contains(says) && refusal.lines().count() == 1 + says.matches('\n').count()
        };
        if !mistake.as_ref().is_some_and(is_right) {
            failed.push(format!("{by}: {mistake:?}, not {says}"));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    for (costs, says) in [
        ("\"guessed\"", "line 7: costs: \"guessed\" is unknown"),
        ("{ unit_ns = 0 }", "costs.unit_ns: is 0"),
        ("{ unit_ns = 1, x = 2 }", "line 7"),
        ("[]", "costs: has no step that costs anything"),
        ("7", "line 7: costs: is the number 7, but \"measured\""),
    ] {
        let (start, end) = (GOOD.find("[\n    { step").unwrap(), GOOD.find("\n[load]").unwrap());
        let text = format!("{}{costs}{}", &GOOD[..start], &GOOD[end..]);
        let mistake = refusal(&read(&text).unwrap_err());
        assert!(mistake.contains(says), "{costs}: {mistake}, not {says}");
    }
}

#[test]
fn all_mistakes_of_a_scenario_are_reported() {
    let text = GOOD
        .replace("seed = 3", "sead = 3")
        .replace("io = \"2us\"", "io = \"2h\"")
        .replace("step = \"turn\"", "step = \"ponder\"")
        .replace("normal = 128", "normal = -1")
        .replace("burst = 8", "burst = 0")
        .replace("begin = \"1ms\"", "begin = \"soon\"");
    let refusal = refusal(&read(&text).unwrap_err());
    let begins = [
        "line 2: sead: unknown key; use one of `seed`",
        "line 6: io: \"2h\" is too long",
        "line 8: costs[0].step: there is no step",
        "line 24: datapath.lanes.normal: -1 is out of range",
        "line 39: traffic[1].burst: 0 is out of range",
        "line 47: traffic[2].begin: \"soon\" is not a duration",
    ];
    assert_eq!(refusal.lines().count(), begins.len(), "{refusal}");
    for (refusal, begin) in refusal.lines().zip(begins) {
        assert!(refusal.starts_with(begin), "{begin}: {refusal}");
    }
}

#[test]
fn packets_that_would_take_for_ever_are_refused() {
    let text =
        GOOD.replace("duration = \"4ms\"", "packets = 1000000").replace("rate_pps = 4000000", "rate_pps = 1");
    let refusal = read(&text).unwrap().run().unwrap_err().to_string();
    assert!(
        refusal.contains("packets: would take 1000000 s to arrive; a run has at most 3600 s"),
        "{refusal}"
    );
}

#[test]
fn files_that_are_not_scenarios_are_refused() {
    for text in ["", "\0", "[", "= 1", "[[datapath]]", "[[traffic]]\nname = \"x\"", &"[".repeat(100_000)] {
        assert!(read(text).is_err(), "{text:.20}");
    }
    for cut in 0..GOOD.len() {
        // Any result except a panic is allowed.
        let _ = read(&GOOD[..cut]);
    }
    let folder = std::env::temp_dir().join(format!("shunt-scenario-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("bytes.toml");
    fs::write(&file, b"seed = 1\n\xff").unwrap();
    let refusal = |path: &Path| Scenario::load(path, &Overrides::default()).unwrap_err().to_string();
    assert!(refusal(&file).contains("bytes.toml:2:1: is not UTF-8"), "{}", refusal(&file));
    assert!(refusal(&folder).contains("cannot read the scenario"));
    assert!(refusal(&folder.join("none.toml")).contains("cannot read the scenario"));
    assert!(refusal(Path::new("/dev/zero")).contains("is longer than"));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn flows_of_a_template_differ_in_their_open_bits() {
    let template = "udp,nw_src=10.0.0.0/24,nw_dst=10.1.2.3,tp_dst=5".to_owned();
    let packets = made(std::slice::from_ref(&template), 256, 128, 1).unwrap();
    let mut sources: Vec<u8> = packets.flows.iter().map(|packet| packet[29]).collect();
    sources.sort_unstable();
    assert!(sources.iter().copied().eq(0..=255));
    for packet in packets.flows.iter() {
        assert_eq!(
            (&packet[26..29], &packet[30..34], packet.len()),
            (&[10, 0, 0][..], &[10, 1, 2, 3][..], 124)
        );
    }
    let error = |templates: &[String], flows| made(templates, flows, 64, 1).unwrap_err();
    assert!(error(std::slice::from_ref(&template), 257).contains("has 8 open bits, too few for 257 flows"));
    assert!(error(&vec![template.clone(); FLOWS], 2).contains("the maximum is"));
    assert!(error(&[template.clone(), template], 200).contains("leave more bits open"));
    let ports = ["in_port=1,arp".to_owned(), "in_port=2,arp".to_owned()];
    assert!(error(&ports, 1).contains("of another template"));
}

#[test]
fn the_examples_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sim");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            Scenario::load(&path, &Overrides { seed: Some(2), ..Overrides::default() }).unwrap();
            seen += 1;
        }
    }
    assert_eq!(seen, 12);
}

/// The known flows of the example do not wait for the search of the new flow.
#[test]
fn a_slow_search_holds_up_only_its_own_flow() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sim/new-flow.toml");
    let run = |overrides: &Overrides| match Scenario::load(&path, overrides).unwrap() {
        Scenario::Switch(scenario) => scenario.run().unwrap().remove(0),
        Scenario::Network(_) => unreachable!("the example has one switch"),
    };
    let outcome = run(&Overrides::default());
    let cache = outcome.port_cache.unwrap();
    // The rules do not examine the source address, so the ten known flows need one search. The first packets
    // of nine of them wait for it, as 256 packets of the new flow wait for theirs.
    assert_eq!((cache.new, cache.merged, cache.passed, cache.uncached), (2, 9 + 256, 0, 0), "{cache:?}");
    assert_eq!(cache.timed_out, 0);
    let [known, new] = &outcome.traffic[..] else { panic!("{outcome:?}") };
    assert_eq!((known.delivered, known.overtaken, new.overtaken), (known.offered, 0, 0), "{outcome:?}");
    assert!(known.latency_ns.max < 20_000.0, "{:?}", known.latency_ns);
    // Packets of the new flow arrive for 20 ms, less those that wait.
    assert_eq!(new.dropped["miss_queue_full"], cache.dropped);
    assert_eq!(cache.dropped, 19_743, "docs/port-cache.md states this number");
    assert_eq!(new.delivered + cache.dropped, new.offered);
    let off = run(&Overrides { port_cache: Some(PortCacheMode::Off), ..Overrides::default() });
    assert_eq!(off.port_cache, None);
    assert!(off.traffic.iter().all(|part| part.delivered == part.offered), "{off:?}");
}

/// A switch with little space in its port caches. Port 1 has more flows than records. Port 4 has flows whose
/// packets go to the controller.
const CROWDED: &str = r#"
seed = 1
warm_up = "0us"
duration = "20ms"
costs = { unit_ns = 20 }
[[datapath]]
rules = """
priority=9,udp,nw_src=1.1.1.1,nw_dst=1.1.1.1,tp_src=1,tp_dst=1 actions=drop
priority=2,udp,tp_dst=2000 actions=output:2
priority=1,udp,nw_dst=10.2.0.0/16 actions=CONTROLLER:64
"""
lanes = { enabled = false }
[datapath.port_cache]
mode = "nonblocking"
entries = 1
queue = 2
records = 4
searcher = "lab"
service = "100us"
[[traffic]]
name = "crowd"
port = 1
rate_pps = 1000000
packets = "udp,nw_src=10.0.1.0/24,nw_dst=10.0.0.0/24,tp_dst=2000"
flows = 20
[[traffic]]
name = "asked"
port = 4
rate_pps = 100000
packets = "udp,nw_src=10.0.1.0/24,nw_dst=10.2.0.0/16,tp_dst=9"
flows = 4
"#;

#[test]
fn the_port_cache_counts_each_received_packet_once() {
    let cases = [
        ("nonblocking", "drop", "lab"),
        ("nonblocking", "forward", "lab"),
        ("blocking", "drop", "lab"),
        ("nonblocking", "drop", "worker"),
        ("nonblocking", "forward", "worker"),
        ("blocking", "drop", "worker"),
    ];
    for (mode, when_full, searcher) in cases {
        let with = format!("\"{mode}\"\nwhen_full = \"{when_full}\"");
        let text = CROWDED.replace("\"nonblocking\"", &with).replace("\"lab\"", &format!("\"{searcher}\""));
        let outcome = outcome_of(&text);
        let cache = outcome.port_cache.unwrap();
        // Without a warm-up, `offered` counts every packet. Packets lost at the receive ring do not arrive.
        let offered: u64 = outcome.traffic.iter().map(|part| part.offered).sum();
        let lost: u64 = outcome.traffic.iter().filter_map(|part| part.dropped.get("ring_full")).sum();
        assert_eq!(cache.packets, offered - lost, "{mode} {when_full}: {outcome:?}");
        assert!(cache.hits > 1_000 && cache.new > 5, "{mode} {when_full}: {cache:?}");
        if mode == "nonblocking" {
            assert!(cache.merged > 10 && cache.uncached > 1_000 && lost == 0, "{cache:?}");
            assert_eq!(cache.dropped > 10, when_full == "drop", "{cache:?}");
        }
    }
}

/// The example with a search worker. Known flows do not wait for answers to others.
#[test]
fn a_search_worker_does_not_delay_known_flows_and_a_flood_leaves_other_ports_their_packets() {
    let example = include_str!("../../../examples/sim/search-worker.toml");
    let known = |text: &str| {
        let outcome = outcome_of(text);
        let [known, _] = &outcome.traffic[..] else { panic!("{outcome:?}") };
        assert_eq!((known.delivered, known.overtaken), (known.offered, 0), "{outcome:?}");
        (known.latency_ns.p99_9, outcome.port_cache.unwrap())
    };
    let (worker, cache) = known(example);
    assert!(cache.new > 4_000 && cache.uncached == 0, "{cache:?}");
    let (inline, _) = known(&example.replace("searcher = \"worker\"\nservice = \"1us\"", ""));
    let (hits, _) = known(&example.replace("flows = 6000", "flows = 100\nknown = true"));
    let tenths = [hits, worker, inline].map(|ns| (ns / 100.0).round());
    assert_eq!(tenths, [27.0, 27.0, 77.0], "99.9th percentile in units of 0.1 us");
    assert!(worker <= 1.05 * hits, "{worker} {hits}");
    // Nearly every packet of the flood begins a flow, and the worker cannot carry all of them.
    let flood = example.replace(
        "name = \"new\"\nport = 1\nrate_pps = 200000",
        "name = \"new\"\nport = 3\nrate_pps = 3000000",
    );
    let (_, cache) = known(&flood.replace("flows = 6000", "flows = 100000"));
    assert!(cache.new + cache.uncached > 40_000, "{cache:?}");
}

#[test]
fn a_scenario_has_no_cpu_for_its_search_worker() {
    let text = CROWDED.replace("\"lab\"", "\"worker\"\nsearcher_cpu = 1");
    let refusal = refusal(&read(&text).unwrap_err());
    assert!(refusal.contains("port_cache.searcher_cpu: is for shunt run; omit it"), "{refusal}");
}

#[test]
fn packets_that_may_wait_exceed_no_pool() {
    let text = CROWDED.replace("entries = 1\nqueue = 2\nrecords = 4", "entries = 4096\nqueue = 4096");
    assert!(read(&text).is_ok());
    let refusal = refusal(&read(&text.replace("port = 4", "port = 17")).unwrap_err());
    assert!(refusal.contains("port_cache.queue: 4096 packets and 4096 entries of each of 17"), "{refusal}");
}
