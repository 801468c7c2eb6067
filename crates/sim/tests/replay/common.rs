// SPDX-License-Identifier: Apache-2.0
//! Locations of captures and flows, and a temporary folder.

use sim::replay::{Options, ReplayEngine, ReplaySummary, replay};
use std::fs;
use std::path::{Path, PathBuf};

/// Temporary folder for the files of one test.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("shunt-replay-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn flows_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/replay.flows")
}

/// Returns the path of a capture in the repository.
pub fn committed(name: &str) -> PathBuf {
    repository().join("crates/wire/tests/data").join(name)
}

/// Returns whether the large captures are available.
pub fn has_all_captures() -> bool {
    repository().join("../shared/data/pcap").is_dir()
}

/// Returns all Ethernet captures: the captures in the repository, and the large captures if they are
/// available.
pub fn captures() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        ["802.1ad_QinQ.pcap", "built.pcap", "built.pcapng", "mpls-over-udp.pcap"].map(committed).into();
    for folder in ["../shared/data/pcap", "../shared/data/pcap/proto"] {
        let Ok(entries) = fs::read_dir(repository().join(folder)) else { continue };
        let mut more: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        more.retain(|path| path.extension().is_some_and(|e| e == "pcap") && !path.ends_with("dsa.pcap"));
        more.sort();
        found.extend(more);
    }
    found
}

/// Replays with an engine into a separate folder.
pub fn run(base: &Options, engine: ReplayEngine, folder: &Folder) -> (ReplaySummary, PathBuf) {
    let out = folder.path().join(engine.name());
    let _ = fs::remove_dir_all(&out);
    let summary = replay(&Options { engine, out: out.clone(), ..base.clone() });
    (summary.unwrap_or_else(|error| panic!("{}: {error}", base.capture.display())), out)
}
