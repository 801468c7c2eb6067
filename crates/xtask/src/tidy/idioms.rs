// SPDX-License-Identifier: Apache-2.0
//! Checks for idioms that a crate must not use, and for `unsafe` outside the permitted files.
//!
//! Tests are exempt. Some files of packet-path crates run on the control thread only, such as table
//! compilation. Such a file declares this by a line `//! Control side: ...` in its module documentation, and
//! is then exempt from the idioms of [`Reach::PacketPath`].

use std::collections::HashSet;

use super::Finding;
use crate::code;
use crate::tree::File;

/// Files of a crate in which an idiom is forbidden.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    /// All files except tests.
    Crate,
    /// All files except tests and control-side files.
    PacketPath,
}

struct Idiom {
    /// Text to search for in code. Only whole words match.
    needle: &'static str,
    crates: &'static [&'static str],
    reach: Reach,
    why: &'static str,
}

const fn idiom(
    needle: &'static str,
    crates: &'static [&'static str],
    reach: Reach,
    why: &'static str,
) -> Idiom {
    Idiom { needle, crates, reach, why }
}

const FAST: &[&str] =
    &["actions", "keys", "stateless", "port_cache", "backlog", "pipeline", "tables", "engines"];
#[rustfmt::skip]
const NO_IO: &[&str] =
    &["actions", "keys", "stateless", "port_cache", "backlog", "pipeline", "tables", "engines", "frame", "flow", "reference", "dataplane", "openflow", "pof", "model"];
const NO_CLOCK: &[&str] = NO_IO;
const NO_SOCKET: &[&str] =
    &["frame", "flow", "reference", "dataplane", "openflow", "pof", "model", "worker", "config"];
#[rustfmt::skip]
const NO_THREAD: &[&str] =
    &["actions", "keys", "stateless", "port_cache", "backlog", "pipeline", "tables", "engines", "frame", "flow", "reference", "dataplane", "openflow", "pof", "model", "worker", "config"];

const IO: &str = "this crate does no I/O";
const SOCKET: &str = "sockets are opened by `switch`";
const LOG: &str = "no log in the datapath: count it, or return it as an event";
const LOCK: &str = "a worker never waits: pass operations on a ring";
const PANIC: &str = "no input may reach a panic: return an error or a named drop";
const ALLOCATE: &str = "no allocation per packet";
const CLOCK: &str = "time comes in as a parameter, so that `sim` runs the same code";
const THREAD: &str = "threads are started by `switch`";

#[rustfmt::skip]
const IDIOMS: &[Idiom] = &[
    idiom("println!", FAST, Reach::Crate, LOG),
    idiom("eprintln!", FAST, Reach::Crate, LOG),
    idiom("print!", FAST, Reach::Crate, LOG),
    idiom("eprint!", FAST, Reach::Crate, LOG),
    idiom("dbg!", FAST, Reach::Crate, LOG),
    idiom("log::", FAST, Reach::Crate, LOG),
    idiom("tracing::", FAST, Reach::Crate, LOG),
    idiom("error!", FAST, Reach::Crate, LOG),
    idiom("warn!", FAST, Reach::Crate, LOG),
    idiom("info!", FAST, Reach::Crate, LOG),
    idiom("debug!", FAST, Reach::Crate, LOG),
    idiom("trace!", FAST, Reach::Crate, LOG),
    idiom("Mutex", FAST, Reach::Crate, LOCK),
    idiom("RwLock", FAST, Reach::Crate, LOCK),
    idiom("Condvar", FAST, Reach::Crate, LOCK),
    idiom("std::sync::mpsc", FAST, Reach::Crate, LOCK),
    idiom(".unwrap(", FAST, Reach::Crate, PANIC),
    idiom(".expect(", FAST, Reach::Crate, PANIC),
    idiom("panic!", FAST, Reach::Crate, PANIC),
    idiom("todo!", FAST, Reach::Crate, PANIC),
    idiom("unimplemented!", FAST, Reach::Crate, PANIC),
    idiom("format!", FAST, Reach::PacketPath, ALLOCATE),
    idiom(".to_string(", FAST, Reach::PacketPath, ALLOCATE),
    idiom("String", FAST, Reach::PacketPath, ALLOCATE),
    idiom("HashMap", FAST, Reach::PacketPath, "std's hash is slow and allocates: use an engine or an array"),
    idiom("HashSet", FAST, Reach::PacketPath, "std's hash is slow and allocates: use an engine or an array"),
    idiom("BTreeMap", FAST, Reach::PacketPath, ALLOCATE),
    idiom("libc", NO_IO, Reach::Crate, IO),
    idiom("std::fs", NO_IO, Reach::Crate, IO),
    idiom("std::net", FAST, Reach::Crate, IO),
    idiom("TcpStream", NO_SOCKET, Reach::Crate, SOCKET),
    idiom("TcpListener", NO_SOCKET, Reach::Crate, SOCKET),
    idiom("UdpSocket", NO_SOCKET, Reach::Crate, SOCKET),
    idiom("UnixStream", NO_SOCKET, Reach::Crate, SOCKET),
    idiom("UnixListener", NO_SOCKET, Reach::Crate, SOCKET),
    idiom("UnixDatagram", NO_SOCKET, Reach::Crate, SOCKET),
    idiom("std::os", NO_IO, Reach::Crate, IO),
    idiom("std::process", NO_IO, Reach::Crate, IO),
    idiom("std::env", NO_IO, Reach::Crate, "settings come in as parameters"),
    idiom("Instant::now", NO_CLOCK, Reach::Crate, CLOCK),
    idiom("SystemTime", NO_CLOCK, Reach::Crate, CLOCK),
    idiom("std::thread", NO_THREAD, Reach::Crate, THREAD),
];

/// Folders of code that uses device memory, a signal handler, and the small modules for frame memory,
/// prefetch, TSC and SIMD.
const UNSAFE_PLACES: &[&str] = &[
    "crates/port/",
    "crates/frame/src/memory",
    "crates/device_sim/src/pins",
    "crates/switch/src/sandbox/trap.rs",
];
const UNSAFE_MODULES: &[&str] = &["pages", "prefetch", "tsc", "simd"];

pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, shipped) in shipped(files) {
        let Some((name, _)) = file.path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"))
        else {
            continue;
        };
        let control_side = is_control_side(file);
        for idiom in IDIOMS.iter().filter(|idiom| idiom.crates.contains(&name)) {
            if idiom.reach == Reach::Crate || !control_side {
                let says = format!("`{}` is forbidden in `{name}`: {}", idiom.needle, idiom.why);
                findings.extend(
                    lines_with(&shipped, idiom.needle)
                        .into_iter()
                        .map(|line| Finding::new(file, line, says.clone())),
                );
            }
        }
        if !may_be_unsafe(&file.path) {
            let says =
                "`unsafe` belongs in `port`, `pins`, or a small module for memory, prefetch, TSC or SIMD";
            findings.extend(
                lines_with(&shipped, "unsafe").into_iter().map(|line| Finding::new(file, line, says)),
            );
        }
    }
    findings
}

/// Returns the Rust files that are not only for tests, each with its code without comments, literals and
/// tests.
pub fn shipped(files: &[File]) -> Vec<(&File, String)> {
    let sources: Vec<(&File, String)> = files
        .iter()
        .filter(|file| file.has_extension("rs"))
        .map(|file| (file, code::without_words(file.text.as_deref().unwrap_or_default())))
        .collect();
    let test_files = test_files(&sources);
    sources
        .into_iter()
        .filter(|(file, _)| !test_files.iter().any(|stem| belongs_to(&file.path, stem)))
        .map(|(file, code)| (file, code::without_tests(&code)))
        .collect()
}

fn is_control_side(file: &File) -> bool {
    let text = file.text.as_deref().unwrap_or_default();
    text.lines().take_while(|line| line.starts_with("//")).any(|line| line.starts_with("//! Control side: "))
}

fn may_be_unsafe(path: &str) -> bool {
    let stem = path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
    UNSAFE_PLACES.iter().any(|place| path.starts_with(place)) || UNSAFE_MODULES.contains(&stem)
}

/// Returns the paths, without `.rs`, of the modules declared under `#[cfg(test)]`.
fn test_files(sources: &[(&File, String)]) -> HashSet<String> {
    let mut stems = HashSet::new();
    for (file, code) in sources {
        let stem = file.path.strip_suffix(".rs").unwrap_or(&file.path);
        let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        let below = if matches!(name, "mod" | "lib" | "main") { folder } else { stem };
        stems.extend(code::test_modules(code).iter().map(|module| format!("{below}/{module}")));
    }
    stems
}

fn belongs_to(path: &str, stem: &str) -> bool {
    path.strip_prefix(stem).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// Returns the numbers of the lines that contain `needle` as a separate word. `use std::{fs, ..}` counts as
/// `std::fs`.
fn lines_with(code: &str, needle: &str) -> Vec<usize> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let bounded_before = needle.starts_with(word);
    let bounded_after = needle.ends_with(word);
    let plain = code.match_indices(needle).map(|(at, _)| at).filter(move |at| {
        let before = code[..*at].chars().next_back().is_some_and(word);
        let after = code[at + needle.len()..].chars().next().is_some_and(word);
        let part_of_a_word = (bounded_before && before) || (bounded_after && after);
        !part_of_a_word
    });
    let grouped = needle.strip_prefix("std::").into_iter().flat_map(|module| grouped_uses(code, module));
    plain.chain(grouped).map(|at| code[..at].matches('\n').count() + 1).collect()
}

/// Returns the positions where `module` is the first segment of a path in a `std::{..}` group.
fn grouped_uses(code: &str, module: &str) -> impl Iterator<Item = usize> {
    code.match_indices("std::{").filter_map(move |(at, open)| {
        let mut depth = 1usize;
        let mut first_segment = String::new();
        for (offset, c) in code[at + open.len()..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' | ',' if depth == 1 => {
                    if first_segment.split("::").next() == Some(module) {
                        return Some(at + open.len() + offset);
                    }
                    if c == '}' {
                        return None;
                    }
                    first_segment.clear();
                }
                '}' => depth -= 1,
                c if depth == 1 && !c.is_whitespace() => first_segment.push(c),
                _ => {}
            }
        }
        None
    })
}

#[cfg(test)]
mod tests;
