// SPDX-License-Identifier: Apache-2.0
//! Replays captures with both engines. Output captures and counters must be the same, and checksums must stay
//! correct.

// Clippy recognises tests by their attribute, which helper functions here do not have.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use flow::{EntryId, Nanos, PortNo};
#[path = "replay/checksums.rs"]
mod checksums;
#[path = "replay/common.rs"]
mod common;
#[path = "replay/made.rs"]
mod made;

use checksums::{Check, has_tshark};
use common::{Folder, captures, committed, flows_file, has_all_captures, run};
use config::{PortCacheMode, SearcherKind};
use sim::replay::{Options, ReplayEngine, ReplaySummary, replay};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

const MS: u64 = 1_000_000;

/// Replays with both engines, with the express path and with the port cache, and compares all outputs.
/// Returns the summary and folder of the worker engine with the express path.
fn compare(capture: &Path, window_ns: u64, folder: &Folder) -> (ReplaySummary, PathBuf) {
    let base = Options { burst_window_ns: Nanos(window_ns), ..Options::new(capture, flows_file(), "") };
    let (plain, plain_in) = run(&base, ReplayEngine::Reference, folder);
    let (without, without_in) = run(&base, ReplayEngine::Worker, folder);
    let expected = files(&plain_in);
    let same = |out: &Path, what: &str| {
        let found = files(out);
        assert!(found.keys().eq(expected.keys()), "{}, {what}: the sets of files differ", capture.display());
        for (file, bytes) in &found {
            assert!(*bytes == expected[file], "{}, {what}: {} differs", capture.display(), file.display());
        }
    };
    same(&without_in, "without the express path");
    // The reference has neither the fast-forwarding path nor the express path.
    let common = |summary: &ReplaySummary| ReplaySummary {
        engine: ReplayEngine::Worker,
        express: true,
        fast: 0,
        path_records: 0,
        ..summary.clone()
    };
    let caches = [
        (PortCacheMode::Nonblocking, SearcherKind::Own),
        (PortCacheMode::Blocking, SearcherKind::Own),
        (PortCacheMode::Nonblocking, SearcherKind::Worker),
        (PortCacheMode::Blocking, SearcherKind::Worker),
    ];
    for (port_cache, searcher) in caches {
        let options = Options { port_cache, searcher, ..base.clone() };
        let (cached, cached_in) = run(&options, ReplayEngine::Worker, folder);
        same(&cached_in, &format!("{port_cache} {searcher:?}"));
        let misses = cached.misses;
        let is_sent = searcher == SearcherKind::Worker;
        // Super-frames are too long for the search worker.
        let is_searched = misses.sent + misses.fallen_back > 0;
        assert_eq!(
            (is_searched, misses.answered),
            (is_sent, misses.sent),
            "{}: {misses:?}",
            capture.display()
        );
        assert!(misses.offered() > 0 && misses.offered() < cached.packets + 1, "{misses:?}");
        assert_eq!((misses.dropped, misses.timed_out), (0, 0), "{misses:?}");
        let without_cache =
            ReplaySummary { misses: without.misses, port_cache: without.port_cache, ..cached };
        assert_eq!(common(&without_cache), common(&plain), "{port_cache}: {}", capture.display());
    }
    // The run with the express path overwrites this folder.
    let (ours, ours_in) = run(&Options { express: true, ..base }, ReplayEngine::Worker, folder);
    same(&ours_in, "with the express path");
    assert_eq!(common(&without), common(&plain), "{}", capture.display());
    assert_eq!(common(&ours), common(&plain), "{}", capture.display());
    let lost = ["no_buffer", "packet_in_full", "transmit_full"];
    assert!(ours.dropped.iter().all(|(name, _)| !lost.contains(name)), "{ours}");
    let all = ours.forwarded + ours.consumed + ours.dropped_packets() + ours.oversized;
    assert_eq!(ours.packets, all, "{ours}");
    (ours, ours_in)
}

/// Returns the content of each file of a folder.
fn files(folder: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn both_engines_give_the_same_output_for_every_capture() {
    let folder = Folder::new("engines");
    let mut hit: BTreeSet<EntryId> = BTreeSet::new();
    let (mut packets, mut missed, mut express) = (0, 0, 0);
    for capture in captures() {
        for window_ns in [0, 10_000, 100 * MS] {
            let (summary, _) = compare(&capture, window_ns, &folder);
            hit.extend(summary.flows.iter().filter(|flow| flow.packets != 0).map(|flow| flow.entry.id));
            packets += summary.packets;
            express += summary.path_records;
            missed += summary.dropped.iter().find(|(name, _)| *name == "table_miss").map_or(0, |(_, n)| *n);
        }
    }
    println!(
        "{packets} packets, {missed} of them missed, {express} by path records; {} of 60 flows hit",
        hit.len()
    );
    assert_eq!(missed, 0);
    // The committed captures are too short for flows to be learned and seen again.
    assert!(express > 0 || !has_all_captures(), "no packet had a path record");
    assert!(hit.len() >= if has_all_captures() { 50 } else { 15 }, "{hit:?}");
}

#[test]
fn generated_packets_hit_nearly_all_flows() {
    let folder = Folder::new("made");
    let capture = folder.path().join("made.pcap");
    made::write(&capture);
    let (mut hit, mut express): (BTreeSet<EntryId>, u64) = (BTreeSet::new(), 0);
    for window_ns in [0, 10_000, 100 * MS] {
        let (summary, _) = compare(&capture, window_ns, &folder);
        express += summary.path_records;
        assert!(summary.truncated > 0 && summary.oversized > 0, "{summary}");
        hit.extend(summary.flows.iter().filter(|flow| flow.packets != 0).map(|flow| flow.entry.id));
    }
    println!("{} of 60 flows hit, {express} packets by path records", hit.len());
    assert!(hit.len() >= 54, "{hit:?}");
    assert!(express > 0, "no packet had a path record");
}

#[test]
fn tshark_finds_no_broken_checksum() {
    if !has_tshark() {
        println!("tshark is not installed: not checked");
        return;
    }
    let folder = Folder::new("checksums");
    let made = folder.path().join("made.pcap");
    made::write(&made);
    let mut check = Check::new(folder.path());
    for capture in captures().into_iter().chain([made]) {
        let (_, out) = compare(&capture, 10_000, &folder);
        check.add(&capture, &out);
    }
    let right = check.finish();
    println!("{right} checksums of copies are correct; each wrong one was wrong before the replay");
    assert!(right > 1_000);
}

/// The checksum check must detect an error.
#[test]
#[should_panic = "was correct and is wrong in packet 1"]
fn a_broken_checksum_is_found() {
    assert!(has_tshark(), "was correct and is wrong in packet 1, if tshark were installed");
    let folder = Folder::new("broken");
    let capture = folder.path().join("in.pcap");
    made::write_at(&capture, &[(0, false)]);
    let mut bytes = fs::read(&capture).unwrap();
    // Offset of the TTL: file header, packet header, Ethernet header and 8 bytes of IPv4.
    bytes[24 + 16 + 14 + 8] -= 1;
    let out = folder.path().join("out");
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join("port-1.pcap"), bytes).unwrap();
    let mut check = Check::new(folder.path());
    check.add(&capture, &out);
    check.finish();
}

#[test]
fn other_link_types_are_refused_with_a_sentence() {
    let folder = Folder::new("link-type");
    let out = folder.path().join("out");
    let error = replay(&Options::new(committed("dsa.pcap"), flows_file(), &out)).unwrap_err().to_string();
    assert!(error.contains("dsa.pcap") && error.contains("Ethernet (1) is needed"), "{error}");
    assert!(!out.exists(), "no output is written");
}

#[test]
fn mistakes_are_reported_as_sentences() {
    let folder = Folder::new("refusals");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let qinq = committed("802.1ad_QinQ.pcap");
    let out = folder.path().join("out");
    let reported = |flows: PathBuf, change: &dyn Fn(&mut Options)| {
        let mut options = Options::new(&qinq, flows, &out);
        change(&mut options);
        replay(&options).unwrap_err().to_string()
    };
    let typo = reported(file("typo", "# one\nactions=drop\n\nip,nw_dsst=1.1.1.1 actions=drop\n"), &|_| {});
    assert!(typo.contains("typo: line 4") && typo.contains("nw_dst"), "{typo}");
    let twice = file("twice", "# one\n\ncheck_overlap,ip actions=drop\ncheck_overlap,ip actions=drop");
    let twice = reported(twice, &|_| {});
    assert!(twice.contains("twice: line 4: an entry of table 0"), "{twice}");
    let port = reported(flows_file(), &|options| options.in_port = Some(PortNo(0)));
    assert!(port.contains("in-port 0 is not a port"), "{port}");
    let missing = reported(folder.path().join("none"), &|_| {});
    assert!(missing.contains("cannot read the flows"), "{missing}");
    assert!(!out.exists(), "no output is written");
}

/// Timeouts and MAC ageing follow the time stamps of the capture.
#[test]
fn timeouts_follow_the_capture() {
    let folder = Folder::new("timeouts");
    let flows = folder.path().join("flows");
    fs::write(
        &flows,
        "priority=9,hard_timeout=2 actions=output:2\npriority=8,idle_timeout=3 actions=output:3\n\
                       priority=7 actions=NORMAL,output:4\n",
    )
    .unwrap();
    let capture = folder.path().join("in.pcap");
    // Two packets hit the first entry, which expires at 2 s. Two packets hit the second entry, which expires
    // at 7 s. Then NORMAL learns the sender, refreshes it at 8 s, and forgets it at 308 s. Until then,
    // packets to the sender leave only by its port.
    let to = [0, 1_999, 2_000, 4_000, 7_000, 8_000].map(|time_ms| (time_ms, false));
    made::write_at(&capture, &[&to[..], &[(307_999, true), (308_000, true)]].concat());
    for engine in [ReplayEngine::Worker, ReplayEngine::Reference] {
        let (summary, _) = run(&Options::new(&capture, &flows, ""), engine, &folder);
        let sent: Vec<_> = summary.ports.iter().map(|(number, port)| (*number, port.sent)).collect();
        assert_eq!(
            sent,
            [(PortNo(1), 0), (PortNo(2), 2 + 3), (PortNo(3), 2 + 3), (PortNo(4), 7)],
            "{summary}"
        );
        assert_eq!((summary.flows.len(), summary.macs), (1, 1), "{summary}");
    }
}

/// The interfaces of a pcapng file are ports, unless an ingress port is configured.
#[test]
fn interfaces_are_ports() {
    let folder = Folder::new("interfaces");
    let capture = folder.path().join("in.pcapng");
    made::write_interfaces(&capture, &[0, 2, 2, 0, 1]);
    let options = Options::new(&capture, flows_file(), "");
    let (each, _) = compare(&capture, 10_000, &folder);
    let (one, _) = run(&Options { in_port: Some(PortNo(7)), ..options }, ReplayEngine::Worker, &folder);
    let received = |summary: &ReplaySummary| -> Vec<(PortNo, u64)> {
        summary.ports.iter().filter(|(_, p)| p.received != 0).map(|(n, p)| (*n, p.received)).collect()
    };
    assert_eq!(received(&one), [(PortNo(7), 5)]);
    assert_eq!(received(&each), [(PortNo(1), 2), (PortNo(2), 1), (PortNo(3), 2)]);
}

#[test]
fn a_cut_capture_is_replayed_up_to_the_cut() {
    let folder = Folder::new("cut");
    let whole = fs::read(committed("mpls-over-udp.pcap")).unwrap();
    let capture = folder.path().join("cut.pcap");
    fs::write(&capture, &whole[..whole.len() - 9]).unwrap();
    let (summary, _) = run(&Options::new(&capture, flows_file(), ""), ReplayEngine::Worker, &folder);
    assert_eq!(summary.packets, 1);
    assert!(summary.damage.is_some_and(|damage| damage.contains("packet 2")));
    // The file is cut within the first packet, so nothing can be replayed.
    fs::write(&capture, &whole[..24 + 16 + 9]).unwrap();
    let out = folder.path().join("out");
    let error = replay(&Options::new(&capture, flows_file(), &out)).unwrap_err().to_string();
    assert!(error.contains("cut.pcap: packet 1: the file ends within it"), "{error}");
    assert!(!out.exists(), "no output is written");
}

#[test]
fn captures_that_are_no_regular_files_are_refused_at_once() {
    let folder = Folder::new("pipe");
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for capture in [pipe.as_path(), folder.path(), Path::new("/dev/zero")] {
        let out = folder.path().join("out");
        let error = replay(&Options::new(capture, flows_file(), &out)).unwrap_err().to_string();
        assert!(error.contains("is not a regular file; a capture is read twice"), "{error}");
        assert!(!out.exists(), "no output is written");
    }
}
