// SPDX-License-Identifier: Apache-2.0
//! Speed of the simulation. Prints the figures of docs/hardware.md, section "Simulated device":
//! `cargo test -p device_sim --features device --test simulation -- --ignored --nocapture`.

use std::fs;
use std::time::{Duration, Instant};

use crate::rig::{CAPACITY, Daemon, Rig, frame};

const ROUND_TRIPS: usize = 100;
const FRAMES: u32 = 2_000;

/// CPU time of the device's thread, so that other processes do not count.
fn cpu_time() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let ns = tasks.filter_map(|task| {
        let name = fs::read_to_string(task.join("comm")).ok()?;
        let times = fs::read_to_string(task.join("schedstat")).ok()?;
        (name.trim() == "device").then(|| times.split(' ').next().unwrap().parse::<u64>().unwrap())
    });
    Duration::from_nanos(ns.sum())
}

#[test]
#[ignore = "measures; run it alone"]
fn speed() {
    let mut rig = Rig::new(2);
    let mut daemon = Daemon::new(rig.address, 5);
    let start = Instant::now();
    daemon.change("in_port=1,actions=output:2");
    daemon.settle();
    println!("first contact: 160 entries read, 2 commands: {:.0?}", start.elapsed());
    let mut times: Vec<Duration> = (0..ROUND_TRIPS as u32)
        .map(|number| {
            rig.settle();
            let start = Instant::now();
            rig.push(1, &frame(1, 60, number));
            while rig.pop(2).is_none() {
                std::hint::spin_loop();
            }
            start.elapsed()
        })
        .collect();
    times.sort();
    println!("a frame of 60 bytes, clock stands: minimum {:.2?}, median {:.2?}", times[0], times[50]);
    for len in [60, 1_514] {
        let before = rig.settle();
        let cpu = cpu_time();
        let (start, mut sent, mut left) = (Instant::now(), 0, 0);
        while left < FRAMES {
            while sent < FRAMES
                && sent - left < CAPACITY as u32 / 2
                && rig.handles[0].push(0, &frame(1, len, sent))
            {
                sent += 1;
            }
            left += u32::from(rig.pop(2).is_some());
        }
        let time = start.elapsed();
        let cycles = rig.settle().cycles - before.cycles;
        let cpu = (cpu_time() - cpu).as_secs_f64();
        let per_cycle = cpu / cycles as f64;
        let busy = f64::from(FRAMES) / (cpu - 500.0 * per_cycle);
        println!("per second of CPU time: {:.0} cycles, {busy:.0} frames of {len} bytes", 1.0 / per_cycle);
        println!(
            "{FRAMES} frames of {len} bytes in {time:.2?}: {:.0} frames/s, {:.1} Mbit/s",
            f64::from(FRAMES) / time.as_secs_f64(),
            f64::from(FRAMES) * len as f64 * 8.0 / time.as_secs_f64() / 1e6
        );
    }
}
