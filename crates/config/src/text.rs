// SPDX-License-Identifier: Apache-2.0
//! Reads TOML text into the structure of a file, and reports errors of the parser as mistakes.
//!
//! Begin with [`load`] and [`parse`].

use crate::mistakes::{FileMistakes, Mistake, Mistakes, wrong};
use crate::places::{KeyPath, TextPlace, Tree};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use toml::de::{DeTable, Deserializer, Error};

/// Lists of the keys of one kind of file. A key that depends on its table is listed with its path.
pub type Grammar = &'static [&'static [Key]];

/// A key, its type in words, and an example.
pub type Key = (&'static str, &'static str, &'static str);

/// Grammar of the daemon's configuration file.
pub(crate) const CONFIGURATION: Grammar = &[KEYS, STATELESS, FORWARDING];

const KEYS: &[Key] = &[
    ("control", "a string or a table", "control = \"/run/shunt/s1.sock\""),
    ("datapath.control", STRING, "control = \"/run/shunt/s2.sock\""),
    ("control.path", STRING, "path = \"/run/shunt/s1.sock\""),
    ("owner", STRING, "owner = \"root\""),
    ("group", STRING, "group = \"shunt\""),
    ("control.mode", STRING, "mode = \"0660\""),
    ("security", "a table", "[security]"),
    ("user", STRING, "user = \"shunt\""),
    ("seccomp", STRING, "seccomp = \"on\""),
    ("simd", STRING, "simd = \"auto\""),
    ("metrics", STRING, "metrics = \"127.0.0.1:9494\""),
    ("metrics_remote", "true or false", "metrics_remote = true"),
    ("upgrade", "true or false", "upgrade = true"),
    ("log", "a table", "[log]"),
    ("format", STRING, "format = \"json\""),
    ("levels", "a table", "levels = { channels = \"info\" }"),
    ("tls", "a table", "[tls]"),
    ("certificate", STRING, "certificate = \"/etc/shunt/sw.pem\""),
    ("private_key", STRING, "private_key = \"/etc/shunt/sw.key\""),
    ("ca", STRING, "ca = \"/etc/shunt/ca.pem\""),
    ("check_address", "true or false", "check_address = true"),
    ("dpdk", "a table", "[dpdk]"),
    ("eal", "a list of strings", "eal = [\"--in-memory\"]"),
    ("mbufs", NUMBER, "mbufs = 16384"),
    ("mtu", NUMBER, "mtu = 1500"),
    ("worker", TABLES, "[[worker]]"),
    ("cpu", NUMBER, "cpu = 1"),
    ("idle", STRING, "idle = \"adaptive\""),
    ("datapath", TABLES, "[[datapath]]"),
    ("store", "a table", "[datapath.store]"),
    ("path", STRING, "path = \"/var/lib/shunt/s1\""),
    ("durable", STRING, "durable = \"interval\""),
    ("id", NUMBER, "id = 1"),
    ("openflow", "a table", "[datapath.openflow]"),
    ("controllers", "a list of strings", "controllers = [\"tcp:127.0.0.1:6653\"]"),
    ("listen", "a string or a list of strings", "listen = \"127.0.0.1:6654\""),
    ("fail_mode", STRING, "fail_mode = \"secure\""),
    ("packet_in", "a table", "[datapath.openflow.packet_in]"),
    ("quench", "a list of tables", "quench = [0]"),
    ("quench_timeout", STRING, "quench_timeout = \"1s\""),
    ("no_match", "a table", "no_match = { rate = 1000, burst = 100 }"),
    ("action", "a table", "action = { rate = 1000, burst = 100 }"),
    ("invalid_ttl", "a table", "invalid_ttl = { rate = 100, burst = 10 }"),
    ("rate", NUMBER, "rate = 1000"),
    ("burst", NUMBER, "burst = 100"),
    ("pof", "a table", "[datapath.pof]"),
    ("dialect", STRING, "dialect = \"1.4.0.015\""),
    ("tables", "a list of four numbers", "tables = [10, 10, 5, 20]"),
    ("device_id", NUMBER, "device_id = 1"),
    ("miss", STRING, "miss = \"drop\""),
    ("port", TABLES, "[[datapath.port]]"),
    ("number", NUMBER, "number = 1"),
    ("name", STRING, "name = \"p1\""),
    ("driver", STRING, "driver = \"af_packet\""),
    ("device", STRING, "device = \"veth1\""),
    ("workers", "a list of integers", "workers = [0]"),
    ("receive_ring", NUMBER, "receive_ring = 16384"),
    ("vlan_mode", STRING, "vlan_mode = \"access\""),
    ("tag", NUMBER, "tag = 10"),
    ("trunks", "a list of integers", "trunks = [10, 20]"),
    ("storm", "a table", "[datapath.port.storm]"),
    ("broadcast", "a table", "broadcast = { rate = 1000, burst = 100 }"),
    ("multicast", "a table", "multicast = { rate = 1000, burst = 100 }"),
    ("unknown_unicast", "a table", "unknown_unicast = { rate = 1000, burst = 100 }"),
    ("datapath.port.storm.action", STRING, "action = \"shut\""),
    ("reopen", STRING, "reopen = \"5m\""),
    ("mac_limit", NUMBER, "mac_limit = 16"),
    ("datapath.port.queue", TABLES, "[[datapath.port.queue]]"),
    ("min_rate_kbps", NUMBER, "min_rate_kbps = 1000"),
    ("max_rate_kbps", NUMBER, "max_rate_kbps = 10000"),
    ("priority", NUMBER, "priority = 7"),
    ("limit_frames", NUMBER, "limit_frames = 512"),
    ("flows", STRING, "flows = \"s1.flows\""),
    ("mirror", TABLES, "[[datapath.mirror]]"),
    ("ingress", "a list of numbers or names of ports", "ingress = [\"p1\"]"),
    ("egress", "a list of numbers or names of ports", "egress = [\"p1\"]"),
    ("vlans", "a list of integers", "vlans = [10]"),
    ("output_port", "the number or the name of a port", "output_port = \"p3\""),
    ("other_traffic", "true or false", "other_traffic = true"),
    ("file", STRING, "file = \"/var/tmp/span.pcapng\""),
    ("snap_bytes", NUMBER, "snap_bytes = 128"),
    ("max_bytes", NUMBER, "max_bytes = 100000000"),
    ("max_packets", NUMBER, "max_packets = 1000"),
];

/// Keys of stateless forwarding, which scenarios share.
pub const STATELESS: &[Key] = &[
    ("datapath.stateless", "a table", "[datapath.stateless]"),
    ("trusted", "a list of ports", "trusted = [1, 2]"),
    ("datapath.stateless.mtu", "a list of ports and bytes", "mtu = [[1, 1600]]"),
    ("types", "a table", "types = { keyflow = 0x88b5 }"),
    ("keyflow", NUMBER, "keyflow = 0x88b5"),
    ("datapath.stateless.types.polka", NUMBER, "polka = 0x8842"),
    ("tf", NUMBER, "tf = 0xff1f"),
    ("tf_wide", NUMBER, "tf_wide = 0x88b6"),
    ("datapath.stateless.bank", TABLES, "[[datapath.stateless.bank]]"),
    ("datapath.stateless.polka", "a table", "[datapath.stateless.polka]"),
    ("epoch", NUMBER, "epoch = 0"),
    ("arithmetic", STRING, "arithmetic = \"integer\""),
    ("labels", "a list of ports and \"tables\"", "labels = [\"tables\", 1, 2]"),
    ("backups", "a list of ports and backup ports", "backups = [[1, 2]]"),
    ("gates", "a table", "[datapath.stateless.gates]"),
    ("down_d", NUMBER, "down_d = 4"),
    ("up_d", NUMBER, "up_d = 8"),
    ("external_d", NUMBER, "external_d = 0"),
    ("server_gate_max", NUMBER, "server_gate_max = 0"),
    ("ports", "a list of ports, gates and flags", "ports = [[1, 2, \"server\"]]"),
];

/// Keys of forwarding settings, which scenarios share.
pub const FORWARDING: &[Key] = &[
    ("low_latency", "a table", "[datapath.low_latency]"),
    ("cookie", STRING, "cookie = \"0x4c4c000000000000/0xffff000000000000\""),
    ("learn", "a table", "learn = { enabled = false }"),
    ("min_pps", NUMBER, "min_pps = 1000"),
    ("window", STRING, "window = \"5s\""),
    ("min_timeout", STRING, "min_timeout = \"10m\""),
    ("ffp", "a table", "[datapath.ffp]"),
    ("enabled", "true or false", "enabled = false"),
    ("lut_entries", NUMBER, "lut_entries = 4096"),
    ("consistency", STRING, "consistency = \"auto\""),
    ("express", "a table", "[datapath.express]"),
    ("records", NUMBER, "records = 16384"),
    ("lanes", "a table", "[datapath.lanes]"),
    ("normal", NUMBER, "normal = 2048"),
    ("unknown", NUMBER, "unknown = 1024"),
    ("hold", NUMBER, "hold = 256"),
    ("small_quantum", NUMBER, "small_quantum = 8"),
    ("large_quantum", NUMBER, "large_quantum = 32"),
    ("outstanding_bytes", NUMBER, "outstanding_bytes = 262144"),
    ("quiet", STRING, "quiet = \"100us\""),
    ("port_cache", "a table", "[datapath.port_cache]"),
    ("mode", STRING, "mode = \"off\""),
    ("entries", NUMBER, "entries = 64"),
    ("queue", NUMBER, "queue = 64"),
    ("datapath.port_cache.records", NUMBER, "records = 0"),
    ("victim", STRING, "victim = \"clock\""),
    ("bytes", NUMBER, "bytes = 524288"),
    ("timeout", STRING, "timeout = \"200ms\""),
    ("retries", NUMBER, "retries = 2"),
    ("negative", STRING, "negative = \"100ms\""),
    ("when_full", STRING, "when_full = \"drop\""),
    ("searcher", STRING, "searcher = \"inline\""),
    ("service", STRING, "service = \"10us\""),
    ("searcher_cpu", NUMBER, "searcher_cpu = 3"),
];

/// Type of a string, in words.
pub const STRING: &str = "a string";
/// Type of an integer, in words.
pub const NUMBER: &str = "an integer";
/// Type of a list of tables, in words.
pub const TABLES: &str = "a list of tables";

/// Maximum size of a file, in bytes.
const FILE_BYTES: u64 = 16 * 1_024 * 1_024;

/// Maximum number of unknown keys and wrong types to find. Each of them needs another pass over the file.
const READS: usize = 100;

/// Result of reading a file's text.
struct Reading<'t, T> {
    /// Tree of all keys and values.
    tree: Tree<'t>,
    /// The structure of the file without its wrong parts. `None` if the text is not TOML, or if a wrong part
    /// cannot be removed.
    file: Option<T>,
    /// Syntax errors, unknown keys and wrong types.
    mistakes: Mistakes,
}

/// Reads the file at `path`, and parses its text with `parse`.
///
/// # Errors
///
/// The outer error is an error of the system. The inner error lists the mistakes in the contents.
pub fn load<R>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<R, Vec<Mistake>>,
) -> io::Result<Result<R, FileMistakes>> {
    let read = read_file(path)?;
    let parsed = read.map_err(|mistake| vec![mistake]).and_then(|text| parse(&text));
    Ok(parsed.map_err(|mistakes| FileMistakes::new(path, mistakes)))
}

/// Reads the text of the file at `path`.
///
/// # Errors
///
/// The outer error is an error of the system. The inner error is a mistake in the contents.
pub(crate) fn read_text(path: &Path) -> io::Result<Result<String, FileMistakes>> {
    Ok(read_file(path)?.map_err(|mistake| FileMistakes::new(path, vec![mistake])))
}

/// Adds the places of keys to mistakes that were found without the text. Returns them in the order of the
/// text.
pub(crate) fn locate(text: &str, mistakes: Vec<Mistake>) -> Vec<Mistake> {
    let (tree, _) = DeTable::parse_recoverable(text);
    let mut all = Mistakes::default();
    mistakes.into_iter().for_each(|mistake| all.add(mistake));
    all.in_order(text, &tree)
}

/// Reads a file of at most `FILE_BYTES` bytes. The inner error is a mistake in the contents.
fn read_file(path: &Path) -> io::Result<Result<String, Mistake>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES {
        return Ok(Err(wrong("", format!("is longer than {FILE_BYTES} bytes; name a TOML file"))));
    }
    Ok(decode(bytes))
}

/// Reads a file's text into its structure, and checks the values with `check`. Unknown keys and values of the
/// wrong type are mistakes, and are left out.
///
/// # Errors
///
/// Returns all mistakes in the order of the text.
pub fn parse<T: DeserializeOwned, R>(
    text: &str,
    grammar: Grammar,
    check: impl FnOnce(T, &mut Mistakes) -> Option<R>,
) -> Result<R, Vec<Mistake>> {
    let Reading { tree, file, mut mistakes } = read(text, grammar);
    match file.and_then(|file| check(file, &mut mistakes)) {
        Some(checked) if mistakes.is_empty() => Ok(checked),
        _ => Err(mistakes.in_order(text, &tree)),
    }
}

/// Reads a file's text without its unknown keys and values of the wrong type, which are mistakes.
fn read<T: DeserializeOwned>(text: &str, grammar: Grammar) -> Reading<'_, T> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    let mut mistakes = no_toml(text, &errors);
    if !mistakes.is_empty() {
        return Reading { tree, file: None, mistakes };
    }
    let mut rest = tree.clone();
    for _ in 0..READS {
        let error = match T::deserialize(Deserializer::from(rest.clone())) {
            Ok(file) => return Reading { tree, file: Some(file), mistakes },
            Err(error) => error,
        };
        let way = error.span().map(|span| KeyPath::to(&rest, &span)).unwrap_or_default();
        let missing = error.message().strip_prefix("missing field `").map(|name| name.trim_end_matches('`'));
        let (key, problem) = match missing {
            Some(name) => (way.path_within(&rest, name), is_missing(name, &way, grammar)),
            None => (way.path(&rest), problem(error.message(), &way, grammar)),
        };
        mistakes.add(Mistake { place: place_of(text, &error), key, problem });
        if !way.remove(&mut rest) {
            break;
        }
    }
    Reading { tree, file: None, mistakes }
}

fn place_of(text: &str, error: &Error) -> Option<TextPlace> {
    error.span().map(|span| TextPlace::of(text.as_bytes(), span.start))
}

/// Collects syntax errors. Errors in the lines directly after an error are omitted, because they mostly
/// follow from it.
fn no_toml(text: &str, errors: &[Error]) -> Mistakes {
    let mut errors: Vec<(Option<TextPlace>, &Error)> =
        errors.iter().map(|error| (place_of(text, error), error)).collect();
    errors.sort_by_key(|(place, _)| *place);
    let mut mistakes = Mistakes::default();
    let mut last_line = None;
    for (place, error) in errors {
        let line = place.map(|place| place.line);
        let follows = line.zip(last_line).is_some_and(|(line, last)| line <= last + 1);
        if !follows {
            let problem = in_our_words(error.message());
            mistakes.add(Mistake { place, key: String::new(), problem });
        }
        last_line = line;
    }
    mistakes
}

/// Rewords the parser's message about a syntax error, and adds how to fix the error.
fn in_our_words(message: &str) -> String {
    let words = [
        (
            "duplicate key",
            "is given twice; keep one of the two. A further entry of a list has double brackets, such as [[datapath.port]], and follows the entry that it belongs to",
        ),
        ("string values must be quoted", "is not a value; write a text in quotes, a number, true or false"),
        ("invalid basic string", "the text is not closed; end it with a quote in the same line"),
        (
            "missing comma between array elements",
            "the preceding list is not closed, or lacks a comma; write [1, 2]",
        ),
        ("key with no value", "the key has no value; write KEY = VALUE"),
        ("extra `=`", "there is a second `=`; write KEY = VALUE"),
    ];
    let found = words.into_iter().find(|(begin, _)| message.starts_with(begin));
    found.map_or_else(|| one_line(message), |(_, ours)| ours.to_owned())
}

/// Decodes a file's bytes as UTF-8.
fn decode(bytes: Vec<u8>) -> Result<String, Mistake> {
    String::from_utf8(bytes).map_err(|error| Mistake {
        place: Some(TextPlace::of(error.as_bytes(), error.utf8_error().valid_up_to())),
        key: String::new(),
        problem: "is not UTF-8 text; write a TOML file, and save it as UTF-8".to_owned(),
    })
}

fn one_line(message: &str) -> String {
    message.replace('\n', "; ")
}

/// Returns the grammar's row for a path or, if there is none, for the key alone.
fn known(path: &str, key: &str, grammar: Grammar) -> Option<&'static Key> {
    let find = |wanted: &str| grammar.iter().copied().flatten().find(|(name, _, _)| *name == wanted);
    find(path).or_else(|| find(key))
}

fn is_missing(name: &str, way: &KeyPath, grammar: Grammar) -> String {
    match known(&format!("{}.{name}", way.keys().0), name, grammar) {
        Some((_, _, example)) => format!("is missing; write {example}"),
        None => "is missing".to_owned(),
    }
}

/// Rewords the parser's message about a key, and adds how to fix the key.
fn problem(message: &str, way: &KeyPath, grammar: Grammar) -> String {
    if let Some((_, known)) = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
        let known = known.trim_start_matches(", expected ").trim_start_matches("one of ");
        return format!("unknown key; use one of {known}");
    }
    let (path, key) = way.keys();
    let Some((_, needed, example)) = known(&path, key, grammar) else { return one_line(message) };
    if let Some(found) = message.strip_prefix("invalid type: ") {
        let found = in_words(found.rsplit_once(", expected").map_or(found, |(found, _)| found));
        format!("is {found}, but {needed} is needed; write {example}")
    } else if message.contains("integer") || message.contains("number") {
        format!("is not a valid number ({}); write {example}", one_line(message))
    } else {
        one_line(message)
    }
}

/// Replaces the parser's name of a type, such as "map", by TOML's name.
fn in_words(found: &str) -> String {
    let (kind, value) = found.split_once(' ').unwrap_or((found, ""));
    let kind = match (kind, value) {
        ("map", _) => return "a table".to_owned(),
        ("sequence", _) => return "a list".to_owned(),
        ("integer", _) => "the number",
        ("string", _) => "the string",
        ("floating", _) => {
            return format!("the fraction {}", value.trim_start_matches("point ").replace('`', ""));
        }
        ("boolean", _) => return value.replace('`', ""),
        _ => return found.replace('`', ""),
    };
    format!("{kind} {}", value.replace('`', ""))
}
