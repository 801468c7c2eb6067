// SPDX-License-Identifier: Apache-2.0
//! From text to a file's structure; the parser's complaints become mistakes with line and key.

use super::Mistake;
use serde::de::DeserializeOwned;
use toml::de::Error;

/// What the keys of a sort of file take.
pub struct Grammar {
    /// Each key, its type in words, and an example. One whose name means something else elsewhere stands with its path.
    pub keys: &'static [&'static [Key]],
    /// Keys that stand for lists of tables, whose entries are numbered.
    pub lists: &'static [&'static str],
}

/// A key, its type in words, and an example.
pub type Key = (&'static str, &'static str, &'static str);

/// Configurations.
pub const CONFIGURATION: Grammar = Grammar {
    keys: &[KEYS, FORWARDING],
    lists: &["worker", "datapath.port", "datapath.port.queue", "datapath.stateless.bank"],
};

const KEYS: &[Key] = &[
    ("control", STRING, "control = \"/run/shunt/s1.sock\""),
    ("simd", STRING, "simd = \"auto\""),
    ("dpdk", "a table", "[dpdk]"),
    ("eal", "a list of strings", "eal = [\"--in-memory\"]"),
    ("mbufs", NUMBER, "mbufs = 16384"),
    ("mtu", NUMBER, "mtu = 1500"),
    ("worker", TABLES, "[[worker]]"),
    ("cpu", NUMBER, "cpu = 1"),
    ("idle", STRING, "idle = \"adaptive\""),
    ("datapath", TABLES, "[[datapath]]"),
    ("id", NUMBER, "id = 1"),
    ("openflow", "a table", "[datapath.openflow]"),
    ("controllers", "a list of strings", "controllers = [\"tcp:127.0.0.1:6653\"]"),
    ("listen", "a string or a list of strings", "listen = \"127.0.0.1:6654\""),
    ("fail_mode", STRING, "fail_mode = \"secure\""),
    ("port", TABLES, "[[datapath.port]]"),
    ("number", NUMBER, "number = 1"),
    ("name", STRING, "name = \"p1\""),
    ("driver", STRING, "driver = \"af_packet\""),
    ("device", STRING, "device = \"veth1\""),
    ("workers", "a list of whole numbers", "workers = [0]"),
    ("datapath.port.queue", TABLES, "[[datapath.port.queue]]"),
    ("min_rate_kbps", NUMBER, "min_rate_kbps = 1000"),
    ("max_rate_kbps", NUMBER, "max_rate_kbps = 10000"),
    ("priority", NUMBER, "priority = 7"),
    ("limit_frames", NUMBER, "limit_frames = 512"),
    ("flows", STRING, "flows = \"s1.flows\""),
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

/// Keys that tell how a switch forwards: of the daemon's file and of scenarios.
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
];

pub const STRING: &str = "a string";
pub const NUMBER: &str = "a whole number";
pub const TABLES: &str = "a list of tables";

/// Reads a file's text.
pub fn read<T: DeserializeOwned>(text: &str, grammar: &Grammar) -> Result<T, Mistake> {
    toml::from_str(text).map_err(|error| mistake(text, &error, grammar))
}

/// As [`read`], of a file's bytes.
pub fn decode(bytes: Vec<u8>) -> Result<String, Mistake> {
    String::from_utf8(bytes).map_err(|error| Mistake {
        line: Some(line_of(error.as_bytes(), error.utf8_error().valid_up_to())),
        key: String::new(),
        problem: "is not UTF-8 text; write a TOML file, and save it as UTF-8".to_owned(),
    })
}

fn mistake(text: &str, error: &Error, grammar: &Grammar) -> Mistake {
    let told = error.message();
    let line = error.span().map(|span| line_of(text.as_bytes(), span.start));
    let plain = |key| Mistake { line, key, problem: told.replace('\n', "; ") };
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return plain(String::new());
    };
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let header = text[line_start..].starts_with('[');
    let Some((path, key)) = (if header { header_at(text, before.len()) } else { key_at(before, grammar) })
    else {
        return plain(String::new());
    };
    let known = |wanted: &str| grammar.keys.iter().copied().flatten().find(|(name, _, _)| *name == wanted);
    let Some((_, needed, example)) = known(&path).or_else(|| known(&key)) else {
        return plain(String::new());
    };
    let problem = if let Some(found) = told.strip_prefix("invalid type: ") {
        let found = in_words(found.rsplit_once(", expected").map_or(found, |(found, _)| found));
        format!("is {found}, and {needed} is needed; write {example}")
    } else if told.contains("integer") || told.contains("number") {
        format!("is no number that can be read ({}); write {example}", told.replace('\n', "; "))
    } else {
        return plain(String::new());
    };
    Mistake { line, key: path, problem }
}

/// The parser's words for what it found.
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

/// Path and name of the header around a place.
fn header_at(text: &str, offset: usize) -> Option<(String, String)> {
    let line = text.get(text.get(..offset)?.rfind('\n').map_or(0, |at| at + 1)..)?.lines().next()?;
    let path = line.trim().trim_matches(['[', ']']).trim();
    Some((path.to_owned(), path.rsplit('.').next()?.to_owned()))
}

/// Path and name of the key whose value begins where `before` ends, or within whose value that is.
fn key_at(before: &str, grammar: &Grammar) -> Option<(String, String)> {
    let (left, _) = before.rsplit_once('=')?;
    let is_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let left = left.trim_end();
    let start = left.rfind(|c| !is_key(c)).map_or(0, |at| at + 1);
    let key = left[start..].to_owned();
    let line_start = left.rfind('\n').map_or(0, |at| at + 1);
    let mut path = section(&before[..line_start], grammar);
    let outer = left[line_start..start].split(['=', '{']).next().unwrap_or_default();
    let outer = outer.trim().trim_end_matches('.');
    for part in [outer, key.as_str()].into_iter().filter(|part| !part.is_empty()) {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(part);
    }
    Some((path, key))
}

/// The section at the end of the text, as the checks name it: `datapath.port[2]`.
fn section(text: &str, grammar: &Grammar) -> String {
    let name = |line: &str| line.trim().trim_matches(['[', ']']).trim().to_owned();
    let is_header = |line: &&str| line.trim_start().starts_with('[') && line.trim_end().ends_with(']');
    let headers: Vec<String> = text.lines().filter(is_header).map(name).collect();
    let Some(last) = headers.last() else { return String::new() };
    let mut headers = headers.as_slice();
    let (mut path, mut named) = (String::new(), String::new());
    for part in last.split('.') {
        for text in [&mut path, &mut named] {
            *text += if text.is_empty() { "" } else { "." };
            *text += part;
        }
        // A list within an entry of another is numbered anew.
        if let (true, Some(at)) =
            (grammar.lists.contains(&path.as_str()), headers.iter().rposition(|h| *h == path))
        {
            named += &format!("[{}]", headers[..at].iter().filter(|header| **header == path).count());
            headers = &headers[at..];
        }
    }
    named
}

fn line_of(text: &[u8], offset: usize) -> usize {
    text.iter().take(offset).filter(|&&byte| byte == b'\n').count() + 1
}
