// SPDX-License-Identifier: Apache-2.0
//! Tests of the metrics: they must equal what `shunt show --json` prints, and have the documented names.

use crate::frame;
use crate::lab::{LONG, Lab, until};
use crate::metrics_rules::{RULES, Rule, rule};
use config::Config;
use metrics::Server;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Reports of which every number is compared.
const REPORTS: [&str; 10] = [
    "ports",
    "tables",
    "ffp",
    "express",
    "cache",
    "mirrors",
    "store",
    "stateless",
    "counters",
    "controllers",
];

type Labels = BTreeMap<String, String>;

/// Samples by name and labels.
#[derive(Debug, Default)]
struct Scrape {
    samples: BTreeMap<(String, Labels), f64>,
    help: BTreeMap<String, String>,
}

impl Scrape {
    fn take(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        assert!(body.ends_with("# EOF\n"));
        let mut scrape = Self::default();
        for line in body.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').unwrap();
                scrape.help.insert(name.to_owned(), help.to_owned());
            } else if !line.starts_with('#') {
                scrape.add(line);
            }
        }
        scrape
    }

    fn add(&mut self, line: &str) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = name.split_once('{').unwrap_or((name, "}"));
        let labels = labels.strip_suffix('}').unwrap();
        let pairs = labels.split("\",").filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, text) = pair.split_once("=\"").unwrap();
            (name.to_owned(), text.trim_end_matches('"').to_owned())
        });
        let key = (name.to_owned(), pairs.collect::<Labels>());
        assert!(self.samples.insert(key, value.parse().unwrap()).is_none(), "twice: {line}");
    }

    fn get(&self, name: &str, labels: &Labels) -> Option<f64> {
        self.samples.get(&(name.to_owned(), labels.clone())).copied()
    }

    /// Returns the sum of a metric over all labels.
    fn sum(&self, name: &str) -> f64 {
        self.samples.iter().filter(|((of, _), _)| of == name).map(|(_, value)| value).sum()
    }
}

/// Settings with which every report has numbers.
fn settings(socket: &Path) -> Config {
    let queue =
        "[[datapath.port.queue]]\nid = 1\nmin_rate_kbps = 1000\nmax_rate_kbps = 400000000\npriority = 3\n";
    let mut text = format!(
        "control = {socket:?}\n[[worker]]\n[[worker]]\n[[datapath]]\nid = 9\n[datapath.openflow]\n\
         controllers = [\"tcp:127.0.0.1:1\"]\n[datapath.port_cache]\nmode = \"nonblocking\"\n"
    );
    for n in 1..=4 {
        text.push_str(&format!(
            "[[datapath.port]]\nnumber = {n}\nname = \"p{n}\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [{}]\n",
            n % 2
        ));
        text.push_str(if n == 2 { queue } else { "" });
    }
    let file = socket.with_extension("pcapng");
    text.push_str(&format!(
        "[[datapath.mirror]]\nname = \"span\"\ningress = [1]\negress = [\"p4\"]\nfile = {file:?}\n"
    ));
    text.push_str(&format!("[datapath.store]\npath = {:?}\n", socket.with_extension("store")));
    Config::parse(&text).unwrap()
}

const FLOWS: &str = "in_port=1,low_latency,actions=output:2\nin_port=2,actions=output:1\n\
                     in_port=3,actions=goto_table:1\n\
                     table=1,priority=9,actions=output:1,output:4,set_queue:1,output:2\n";

fn server(lab: &mut Lab) -> Server {
    switch::metrics::start("127.0.0.1:0".parse().unwrap(), vec![lab.metrics.take().unwrap()]).unwrap()
}

fn show(lab: &Lab) -> BTreeMap<&'static str, Value> {
    let mut client = lab.raw();
    let ask = |report: &'static str| {
        let answer = client.ask(&format!("{{\"id\":1,\"request\":\"{report}\"}}"));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        (report, answer["done"].clone())
    };
    REPORTS.map(ask).into()
}

/// A number of a report.
struct Leaf {
    path: String,
    labels: Labels,
    value: f64,
}

/// Labels of an element of a list: the members that name it.
fn named(list: &str, element: &Value, labels: &Labels) -> Labels {
    let members: &[(&str, &str)] = match list {
        "ports" if element.get("number").is_some() => &[("number", "port"), ("name", "name")],
        "ports" => &[("worker", "worker"), ("port", "port")],
        "ports[].queues" => &[("queue", "queue")],
        "tables" => &[("table", "table")],
        "mirrors" => &[("name", "mirror")],
        "workers" => &[("worker", "worker")],
        "limits" => &[("of", "of"), ("name", "name")],
        "controllers" => &[("protocol", "protocol"), ("address", "address")],
        _ => &[],
    };
    let mut labels = labels.clone();
    for (member, label) in members {
        let text = match &element[member] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        labels.insert((*label).to_owned(), text);
    }
    labels
}

fn leaves(path: &str, value: &Value, labels: &Labels, all: &mut Vec<Leaf>) {
    let mut leaf = |value| all.push(Leaf { path: path.to_owned(), labels: labels.clone(), value });
    match value {
        Value::Number(number) => leaf(number.as_f64().unwrap()),
        Value::Bool(truth) => leaf(f64::from(u8::from(*truth))),
        Value::Array(list) => list
            .iter()
            .for_each(|element| leaves(&format!("{path}[]"), element, &named(path, element, labels), all)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            let dot = if path.is_empty() { "" } else { "." };
            leaves(&format!("{path}{dot}{name}"), value, labels, all);
        }),
        Value::String(_) | Value::Null => {}
    }
}

/// Compares all numbers of the reports with the metrics. Returns the rules that were used.
fn compare(shown: &BTreeMap<&'static str, Value>, scrape: &Scrape) -> BTreeSet<String> {
    let process = Labels::new();
    let datapath: Labels = [("datapath".to_owned(), "9".to_owned())].into();
    let mut used = BTreeSet::new();
    for (report, value) in shown {
        let mut all = Vec::new();
        leaves("", value, &datapath, &mut all);
        assert!(!all.is_empty(), "{report} has no numbers");
        for Leaf { path, mut labels, value } in all {
            let found = rule(report, &path);
            let (rule, star) = found.ok_or_else(|| format!("{report}: no rule for {path}")).unwrap();
            let (name, factor) = match rule {
                Rule::Without(reason) => {
                    assert!(!reason.is_empty());
                    continue;
                }
                Rule::Metric(name, factor) => (name.replace('*', &star), factor),
                Rule::Named(name, label) => {
                    labels.insert(label.to_owned(), star);
                    (name.to_owned(), 1.0)
                }
            };
            // The log belongs to the process.
            if name.starts_with("shunt_log_lines") {
                labels.retain(|name, _| name == "reason");
                assert!(labels.len() <= 1 && process.is_empty());
            }
            let metric = scrape.get(&name, &labels);
            let metric = metric.ok_or_else(|| format!("{report}: {path}: no {name} {labels:?}")).unwrap();
            let expected = value * factor;
            let error = (metric - expected).abs();
            assert!(
                error <= expected.abs() * 1e-12,
                "{report}: {path}: {metric}, not {expected}, in {name} {labels:?}"
            );
            used.insert(name);
        }
    }
    used
}

/// Sends traffic for which many counters differ from 0.
fn traffic(lab: &mut Lab) {
    for n in 0..40 {
        lab.pass(1, &frame(1, n), 2);
        lab.pass(2, &frame(n, 1), 1);
        lab.pass(3, &frame(n % 3, 7), 4);
        // No entry matches.
        assert!(lab.ports[3].push(0, &frame(n, 9)));
    }
}

#[test]
fn metrics_equal_what_is_shown() {
    let mut lab = Lab::start_with(settings, Some(FLOWS), &[]);
    let server = server(&mut lab);
    traffic(&mut lab);
    // The counters are compared once they rest: when what is shown before a scrape is shown after it.
    let end = Instant::now() + LONG;
    let (shown, scrape) = loop {
        let before = show(&lab);
        // Scrapes within 0.2 s of each other return the same metrics.
        std::thread::sleep(Duration::from_millis(250));
        let scrape = Scrape::take(server.address());
        let after = show(&lab);
        if before == after && before["counters"]["received"] == 160 {
            break (after, scrape);
        }
        assert!(Instant::now() < end, "the counters do not rest: {before:?}");
    };
    let used = compare(&shown, &scrape);
    for (report, pattern, rule) in RULES {
        if let Rule::Metric(name, _) | Rule::Named(name, _) = rule
            && !name.contains('*')
            && !["shunt_port_drops_total", "shunt_controller_connected_since_seconds"].contains(name)
        {
            assert!(used.contains(*name), "{report}: nothing has the path {pattern}");
        }
    }
    for name in [
        "shunt_port_rx_packets_total",
        "shunt_port_tx_bytes_total",
        "shunt_queue_tx_packets_total",
        "shunt_table_lookups_total",
        "shunt_express_misses_total",
        "shunt_port_cache_packets_total",
        "shunt_drops_total",
        "shunt_copies_total",
        "shunt_latency_seconds_count",
        "process_resident_memory_bytes",
        "shunt_thread_cpu_seconds_total",
        "shunt_controller_failures_total",
        "shunt_mirror_active",
        "shunt_mirror_frames_total",
        "shunt_mirror_file_frames",
        "shunt_datapath_up",
        "shunt_table_capacity",
        "shunt_store_recorded_total",
        "shunt_store_kept_total",
    ] {
        assert!(scrape.sum(name) > 0.0, "{name}");
    }
    let frames = |lane: &str| shown["counters"]["lanes"][lane]["raw"]["frames"].as_f64().unwrap();
    assert_eq!(scrape.sum("shunt_latency_seconds_count"), frames("low_latency") + frames("normal"));
    assert_eq!(scrape.sum("shunt_workers"), 2.0);
}

/// Metrics that only a datapath with a device has.
const OF_DEVICES: [&str; 5] = [
    "shunt_device",
    "shunt_device_counts",
    "shunt_device_pending",
    "shunt_device_rewrites",
    "shunt_device_session",
];
/// Metrics that need a loss of the driver, or a connected controller.
const OTHERS: [&str; 2] = ["shunt_port_drops", "shunt_controller_connected_since_seconds"];

#[test]
fn the_metrics_are_those_of_the_documentation_and_the_dashboard() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let mut lab = Lab::start_with(settings, Some(FLOWS), &[]);
    let server = server(&mut lab);
    traffic(&mut lab);
    std::thread::sleep(Duration::from_millis(250));
    let scrape = Scrape::take(server.address());
    // The name of a family, without the suffix of its samples.
    let documented: BTreeMap<String, String> = read("docs/metrics.md")
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let name = cells.next()?.trim_end_matches('`');
            Some((name.to_owned(), cells.last()?.trim_end_matches(" |").to_owned()))
        })
        .collect();
    for (name, help) in &scrape.help {
        let said = documented
            .get(name)
            .unwrap_or_else(|| panic!("docs/metrics.md lacks | `{name}` | ... | {help} |"));
        assert_eq!(said, help, "{name}");
    }
    for name in documented.keys() {
        let is_special = OF_DEVICES.iter().chain(&OTHERS).any(|special| name == special);
        assert!(is_special || scrape.help.contains_key(name), "docs/metrics.md: {name} does not exist");
    }
    let dashboard = read("examples/grafana/shunt.json");
    let names: BTreeSet<&str> = dashboard
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("shunt_") || word.starts_with("process_"))
        .collect();
    assert!(names.len() > 20, "{names:?}");
    let samples: BTreeSet<&str> = scrape.samples.keys().map(|(name, _)| name.as_str()).collect();
    for name in names.iter().filter(|name| !name.starts_with("shunt_port_drops")) {
        assert!(samples.contains(name), "examples/grafana/shunt.json: {name} does not exist");
    }
}

#[test]
fn learned_addresses_are_counted() {
    let mut lab = Lab::start(1, 2, None);
    let server = server(&mut lab);
    lab.pass(1, &frame(1, 9), 2);
    lab.pass(2, &frame(2, 1), 1);
    until("two addresses are learned", || {
        // Scrapes within 0.2 s of each other return the same metrics.
        std::thread::sleep(Duration::from_millis(250));
        Scrape::take(server.address()).sum("shunt_mac_addresses") == 2.0
    });
}

#[test]
fn a_scrape_ends_while_the_datapath_is_gone() {
    let mut lab = Lab::start(1, 1, None);
    let server = server(&mut lab);
    let up = |scrape: &Scrape| scrape.sum("shunt_datapath_up");
    assert_eq!(up(&Scrape::take(server.address())), 1.0);
    drop(lab);
    until("the datapath is down", || {
        std::thread::sleep(Duration::from_millis(250));
        let scrape = Scrape::take(server.address());
        up(&scrape) == 0.0 && scrape.sum("process_resident_memory_bytes") > 0.0
    });
}
