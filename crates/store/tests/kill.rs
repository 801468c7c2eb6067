// SPDX-License-Identifier: Apache-2.0
//! A process that is killed at a random time: the next start finds every change that was reported as kept or
//! whose barrier was answered, and the state after some change.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use store::{Durability, StoreClock};

/// Number of kills in each mode.
const KILLS: u64 = 12;
/// Environment variables of the child process: its folder, seed and mode.
const CHILD: [&str; 3] = ["STORE_CHILD", "STORE_CHILD_SEED", "STORE_CHILD_BARRIER"];

/// Makes changes until it is killed. Prints `changed N` after transaction N, and `kept N` once the store
/// reports transaction N as kept; in the mode `barrier`, once a barrier after transaction N may be answered.
#[test]
fn child_process() {
    let Ok(folder) = std::env::var(CHILD[0]) else { return };
    let (seed, barrier) = (setting(CHILD[1], 0), setting(CHILD[2], 0) == 1);
    let durability = if barrier { Durability::Barrier } else { Durability::Interval };
    let clock = StoreClock::at(START);
    let (handle, mut model) =
        attached(config(&PathBuf::from(folder), durability), clock, &Recording::default());
    let mut program = Program::new(seed);
    let mut out = std::io::stdout();
    loop {
        for _ in 0..8 {
            program.step(&mut model);
        }
        let recorded = handle.status().recorded;
        writeln!(out, "changed {recorded}").unwrap();
        if barrier {
            let version = model.barrier();
            while !model.is_settled(version) {
                model.poll(START);
                std::thread::yield_now();
            }
            writeln!(out, "kept {recorded}").unwrap();
        } else {
            writeln!(out, "kept {}", handle.status().kept).unwrap();
        }
    }
}

/// Starts the child process and kills it after this time. Returns the numbers of its changes, each with the
/// time at which it was read, the number of the last change that was kept, and the time of the kill.
fn killed(
    folder: &TestFolder,
    seed: u64,
    barrier: bool,
    after: Duration,
) -> (Vec<(Instant, u64)>, u64, Instant) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_process", "--nocapture"])
        .env(CHILD[0], &folder.0)
        .env(CHILD[1], seed.to_string())
        .env(CHILD[2], u8::from(barrier).to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let reader = std::thread::spawn(move || {
        let (mut changes, mut kept) = (Vec::new(), 0);
        for line in lines.map_while(Result::ok) {
            let number = |prefix| line.strip_prefix(prefix).and_then(|text: &str| text.parse().ok());
            changes.extend(number("changed ").map(|number| (Instant::now(), number)));
            kept = number("kept ").unwrap_or(kept);
        }
        (changes, kept)
    });
    std::thread::sleep(after);
    let at = Instant::now();
    child.kill().unwrap();
    child.wait().unwrap();
    let (changes, kept) = reader.join().unwrap();
    (changes, kept, at)
}

/// Repeats the program of the child without a store.
fn repeated(seed: u64, last: u64) -> Recording {
    let folder = TestFolder::new("repeated");
    let recording = Recording::default();
    let clock = StoreClock::at(START);
    let (handle, mut model) = attached(config(&folder.0, Durability::Off), clock, &recording);
    let mut program = Program::new(seed);
    while handle.status().recorded < last {
        program.step(&mut model);
    }
    recording
}

#[test]
fn a_killed_process_loses_no_change_that_was_kept() {
    let mut random = fastrand::Rng::with_seed(11);
    let (mut lost_most, mut changes_most, mut lost_older) = (0, 0, 0);
    let kills = setting("STORE_KILLS", KILLS);
    for kill in 0..kills * 2 {
        let barrier = kill % 2 == 0;
        let folder = TestFolder::new("killed");
        let after = Duration::from_micros(random.u64(20_000..400_000));
        let (changes, kept, at) = killed(&folder, kill, barrier, after);
        let made = changes.last().map_or(0, |(_, number)| *number);
        let clock = StoreClock::at(START);
        let (model, opened) = restored(config(&folder.0, Durability::Interval), clock);
        let report = opened.report;
        assert!(report.last >= kept, "kill {kill}: {kept} changes were kept, but {report:?}");
        // Without barriers, changes that were made 50 ms before the kill are there, unless the machine was
        // too busy for the writing thread.
        let older = changes.iter().rev().find(|(then, _)| *then + Duration::from_millis(50) < at);
        lost_older += u64::from(!barrier && older.is_some_and(|(_, number)| report.last < *number));
        let lost = report.lost.unwrap_or(0);
        assert!(report.last == 0 || report.last + lost >= made, "kill {kill}: {made} made, but {report:?}");
        if report.last > 0 {
            let mut expected = Folded::after(&repeated(kill, report.last), report.last).without_lost_macs();
            expected.forget_times();
            let mut found = state(&model);
            found.forget_times();
            assert_eq!(found, expected, "kill {kill}: {report:?}");
        }
        (lost_most, changes_most) = (lost.max(lost_most), made.max(changes_most));
    }
    println!("at most {changes_most} changes were made before a kill, and at most {lost_most} were lost");
    assert!(changes_most > 100, "the child made at most {changes_most} changes");
    assert!(lost_older <= kills / 2, "{lost_older} of {kills} kills lost changes older than 50 ms");
}
