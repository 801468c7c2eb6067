// SPDX-License-Identifier: Apache-2.0
//! Damaged and torn files: a start finds a state that the datapath once had, and never panics.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use fastrand::Rng;
use std::fs;
use std::path::Path;
use store::{Durability, RuleStore, StoreClock, StoreConfig};

/// Number of damaged copies.
const CASES: u64 = 1_000;

/// Runs a program over several starts, and returns the folder, its settings, and all transactions.
fn made(clock: StoreClock, seed: u64) -> (TestFolder, StoreConfig, Recording) {
    let folder = TestFolder::new("made");
    let config = config(&folder.0, Durability::Off);
    let recording = Recording::default();
    let mut program = Program::new(seed);
    for _ in 0..3 {
        let (handle, mut model) = attached(config.clone(), clock, &recording);
        for step in 0..120 {
            program.step(&mut model);
            if step % 40 == 39 {
                settle(&mut model, &handle);
            }
        }
        settle(&mut model, &handle);
    }
    (folder, config, recording)
}

/// Damages a file at a random position: changes a byte, cuts the file, or overwrites its rest with zeros.
fn damage(folder: &Path, random: &mut Rng) -> String {
    let files = files(folder);
    let lengths: Vec<u64> = files.iter().map(|file| file.metadata().unwrap().len()).collect();
    let mut at = random.u64(0..lengths.iter().sum());
    let mut which = 0;
    while at >= lengths[which] {
        at -= lengths[which];
        which += 1;
    }
    let (file, at) = (&files[which], at as usize);
    let mut bytes = fs::read(file).unwrap();
    let what = match random.u8(0..10) {
        0..7 => {
            bytes[at] ^= random.u8(1..);
            "byte"
        }
        7 => {
            bytes[at..].fill(0);
            "zeros"
        }
        _ => {
            bytes.truncate(at);
            "cut"
        }
    };
    fs::write(file, bytes).unwrap();
    format!("{what} at {at} of {}", file.display())
}

#[test]
fn a_damaged_store_gives_a_state_that_the_datapath_had() {
    let clock = StoreClock::at(START);
    let mut random = Rng::with_seed(3);
    let cases = setting("STORE_CASES", CASES);
    let (mut complete, mut partial, mut nothing) = (0, 0, 0);
    for seed in 0..4 {
        let (folder, config, recording) = made(clock, seed);
        let total = recording.lock().unwrap().len() as u64;
        assert!(total > 150, "{total} transactions");
        for case in 0..cases.div_ceil(4) {
            let copy = folder.copy("damaged");
            let what = damage(&copy.0, &mut random);
            let config = StoreConfig { path: copy.0.clone(), ..config.clone() };
            let (model, opened) = restored(config.clone(), clock);
            let report = opened.report.clone();
            drop(opened);
            let expected = match report.last {
                0 => state(&fresh()),
                last => Folded::after(&recording, last).without_lost_macs(),
            };
            assert_eq!(state(&model), expected, "seed {seed}, case {case}: {what}: {report:?}");
            // The file with the number of changes may be the damaged one.
            let lost = report.lost.unwrap_or(total - report.last);
            assert!(what.contains("sequence") || lost == total - report.last, "{what}: {report:?}");
            match report.last {
                0 => nothing += 1,
                last if last == total => complete += 1,
                _ => partial += 1,
            }
            if case % 8 == 0 {
                goes_on(&config, clock, &recording, report.last);
            }
        }
    }
    println!("{complete} whole states, {partial} earlier states, {nothing} empty states");
    assert!(complete > 0 && partial > cases / 20, "{complete} whole, {partial} earlier, {nothing} empty");
    assert!(nothing < cases / 10, "{complete} whole, {partial} earlier, {nothing} empty");
}

/// Changes the rules after a damage, and restarts twice.
fn goes_on(config: &StoreConfig, clock: StoreClock, recording: &Recording, last: u64) {
    let recording =
        Recording::new(std::sync::Mutex::new(recording.lock().unwrap()[..last as usize].to_vec()));
    let mut program = Program::new(last);
    for _ in 0..2 {
        let (handle, mut model) = attached(config.clone(), clock, &recording);
        for _ in 0..20 {
            program.step(&mut model);
        }
        settle(&mut model, &handle);
        let expected = state(&model);
        drop(model);
        drop(handle);
        let (model, opened) = restored(config.clone(), clock);
        assert_eq!((state(&model), opened.report.lost), (expected, Some(0)), "{:?}", opened.report);
    }
}

#[test]
fn files_of_others_are_kept_aside() {
    let clock = StoreClock::at(START);
    let (folder, config, _) = made(clock, 9);
    // Another datapath.
    let opened = RuleStore::open(StoreConfig { datapath_id: 8, ..config.clone() }, clock).unwrap();
    assert!(opened.state.is_none());
    assert!(opened.report.problems.iter().any(|p| p.contains("belongs to the datapath with ID 0x7")));
    drop(opened);
    assert!(files(&folder.0).iter().all(|file| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.starts_with("damaged-") || name == "sequence"
    }));
    // A newer version, and a file of another program.
    for (change, expected) in
        [(9_usize, "a newer shunt has written it (version "), (0, "its header is damaged")]
    {
        let (folder, config, _) = made(clock, 10);
        for file in files(&folder.0).iter().filter(|file| !file.ends_with("sequence")) {
            let mut bytes = fs::read(file).unwrap();
            bytes[change] ^= 1;
            let crc = crc32c::crc32c(&bytes[..60]);
            bytes[60..64].copy_from_slice(&crc.to_le_bytes());
            fs::write(file, bytes).unwrap();
        }
        let opened = RuleStore::open(config, clock).unwrap();
        assert!(opened.state.is_none());
        let found = &opened.report.problems;
        assert!(found.iter().all(|problem| problem.contains(expected)) && !found.is_empty(), "{found:?}");
    }
}

#[test]
fn a_folder_is_used_once_at_a_time() {
    let clock = StoreClock::at(START);
    let folder = TestFolder::new("twice");
    let config = config(&folder.0, Durability::Off);
    let first = RuleStore::open(config.clone(), clock).unwrap();
    let error = RuleStore::open(config.clone(), clock).unwrap_err().to_string();
    assert!(error.contains("another datapath or process uses this store"), "{error}");
    drop(first);
    assert!(RuleStore::open(config, clock).is_ok());
}

/// A start removes a log without transactions, and begins it again. It may be killed in between.
#[test]
fn a_snapshot_without_later_changes_needs_no_log() {
    let clock = StoreClock::at(START);
    let folder = TestFolder::new("between");
    let config = config(&folder.0, Durability::Off);
    let mut program = Program::new(7);
    let recording = Recording::default();
    let (handle, mut model) = attached(config.clone(), clock, &recording);
    let newest = || files(&folder.0).into_iter().rfind(|file| name(file).starts_with("log-")).unwrap();
    while handle.status().snapshots == 0 {
        program.step(&mut model);
        settle(&mut model, &handle);
    }
    let expected = state(&model);
    let last = handle.status().recorded;
    drop(model);
    drop(handle);
    assert!(fs::metadata(newest()).unwrap().len() <= 64, "the newest log has no transaction");
    for start in 0..3 {
        let (model, opened) = restored(config.clone(), clock);
        assert_eq!(state(&model), expected, "start {start}");
        assert_eq!((opened.report.last, opened.report.lost), (last, Some(0)), "start {start}");
        assert_eq!(opened.report.problems, [""; 0], "start {start}");
        assert!(opened.report.last_age.is_some_and(|age| age < LIMIT), "{:?}", opened.report.last_age);
    }
    // The process was killed when it began the log.
    fs::write(folder.0.join(format!("log-{:020}", last + 1)), [0; 5]).unwrap();
    let (model, opened) = restored(config, clock);
    assert_eq!((state(&model), opened.report.last), (expected, last));
}

#[test]
fn without_the_page_of_numbers_only_a_new_store_has_lost_nothing() {
    let clock = StoreClock::at(START);
    let (folder, config, _) = made(clock, 11);
    fs::remove_file(folder.0.join("sequence")).unwrap();
    for log in files(&folder.0).iter().filter(|file| name(file).starts_with("log-")) {
        let mut bytes = fs::read(log).unwrap();
        bytes[0] ^= 1;
        fs::write(log, bytes).unwrap();
    }
    // The snapshot is whole, but later changes may have been in the logs.
    let (_, opened) = restored(config, clock);
    assert!(opened.report.last > 0 && !opened.report.problems.is_empty(), "{:?}", opened.report);
    assert_eq!(opened.report.lost, None);

    let empty = TestFolder::new("empty");
    let opened = RuleStore::open(common::config(&empty.0, Durability::Off), clock).unwrap();
    assert_eq!(opened.report.lost, Some(0));
}

/// A datapath that was killed before its first change was written must load its flow file again.
#[test]
fn a_store_without_a_whole_change_has_no_state() {
    let clock = StoreClock::at(START);
    let folder = TestFolder::new("no-change");
    let config = config(&folder.0, Durability::Off);
    let (journal, handle) = RuleStore::open(config.clone(), clock).unwrap().store.start(|| ()).unwrap();
    drop(journal);
    drop(handle);
    let log = folder.0.join(format!("log-{:020}", 1));
    assert_eq!(fs::metadata(&log).unwrap().len(), 64, "the log is only a header");
    let opened = RuleStore::open(config.clone(), clock).unwrap();
    assert!(opened.state.is_none());
    assert_eq!((opened.report.lost, opened.report.problems), (Some(0), Vec::new()));
    drop(opened.store);

    let (handle, mut model) = attached(config.clone(), clock, &Recording::default());
    settle(&mut model, &handle);
    drop(model);
    drop(handle);
    assert!(RuleStore::open(config.clone(), clock).unwrap().state.is_some());
    let mut bytes = fs::read(&log).unwrap();
    bytes[64] ^= 1;
    fs::write(&log, bytes).unwrap();
    let opened = RuleStore::open(config, clock).unwrap();
    assert!(opened.state.is_none() && opened.report.problems[0].contains("change 1 is damaged"));
}

/// The checksum of such a change can only be right if the program that wrote it has a fault.
#[test]
fn no_part_of_a_malformed_change_is_applied() {
    let clock = StoreClock::at(START);
    let folder = TestFolder::new("malformed");
    let config = config(&folder.0, Durability::Off);
    let (handle, mut model) = attached(config.clone(), clock, &Recording::default());
    settle(&mut model, &handle);
    let (expected, last) = (state(&model), handle.status().recorded);
    drop(model);
    drop(handle);
    // A transaction with two items: a MAC, and tables with too few bytes.
    let mac = [12, 0, 0, 3, 0, 0, 2, 0, 0, 0, 0, 1, 1, 0, 0, 0];
    let tables = [1, 0, 0, 11, 255];
    let payload = [&[0; 16][..], &mac, &tables].concat();
    let log = folder.0.join(format!("log-{:020}", 1));
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend([0; 4]);
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend((last + 1).to_le_bytes());
    bytes.extend([3, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(payload);
    seal(&mut bytes);
    fs::write(&log, bytes).unwrap();
    let (model, opened) = restored(config, clock);
    assert_eq!(state(&model), expected);
    assert_eq!(opened.report.last, last);
    assert!(opened.report.problems[0].contains("is damaged"), "{:?}", opened.report);
}

/// Changes after a damaged one must not be applied once the numbers between them are used again.
#[test]
fn logs_after_a_damaged_change_are_kept_aside() {
    let clock = StoreClock::at(START);
    let folder = TestFolder::new("later");
    let config = StoreConfig { snapshot_after_bytes: u64::MAX, ..config(&folder.0, Durability::Off) };
    let mut program = Program::new(12);
    let recording = Recording::default();
    for _ in 0..3 {
        let (handle, mut model) = attached(config.clone(), clock, &recording);
        (0..20).for_each(|_| program.step(&mut model));
        settle(&mut model, &handle);
    }
    let logs: Vec<String> =
        files(&folder.0).iter().map(|file| name(file)).filter(|name| name.starts_with("log-")).collect();
    assert_eq!(logs.len(), 3);
    let mut bytes = fs::read(folder.0.join(&logs[1])).unwrap();
    bytes[64] ^= 1;
    fs::write(folder.0.join(&logs[1]), bytes).unwrap();
    let (model, opened) = restored(config, clock);
    let report = opened.report;
    assert_eq!(state(&model), Folded::after(&recording, report.last).without_lost_macs());
    assert!(!report.problems.iter().any(|problem| problem.contains("os error")), "{report:?}");
    let is_there = |log: &String| folder.0.join(log).exists();
    assert!(is_there(&logs[0]) && !is_there(&logs[1]) && !is_there(&logs[2]), "{:?}", files(&folder.0));
}

fn name(file: &Path) -> String {
    file.file_name().unwrap().to_string_lossy().into_owned()
}
