// SPDX-License-Identifier: Apache-2.0
//! The fast-forwarding path against the same tables without it: Mpps per CPU-second of low-latency packets.

use std::error::Error;
use std::io::{self, Write};

use shunt_bench::rig::{Case, Rig};
use shunt_bench::scenario::{Kind, Options, PORTS, Popularity, Scenario};
use shunt_bench::{Bar, GAP_LIMIT, Loop, Plan, Sources, allowed_cpus, compare, pin_to};

fn main() -> Result<(), Box<dyn Error>> {
    pin_to(*allowed_cpus()?.last().ok_or("no CPU is allowed")?)?;
    for kind in Kind::ALL {
        for (rules, list) in [(100, "acl1_1k"), (1_000, "acl1_10k"), (10_000, "acl1_10k")] {
            let scenario = Scenario::new(&Options::new(kind, rules, 1_000), &Sources::best(list)?)?;
            let packets = scenario.traffic(10_000, Popularity::Zipf(1.0), 0, 1);
            let packets: Vec<_> = packets.iter().map(|at| scenario.flows[*at].packet.clone()).collect();
            let case = |lut_entries| Case {
                name: kind.name().into(),
                flows: scenario.rules.clone(),
                ports: 1 + PORTS,
                sources: vec![(1, packets.clone())],
                burst: 32,
                forwards: true,
                lut_entries,
            };
            let contender = |lut_entries| -> Result<_, Box<dyn Error>> {
                let mut rig = Rig::new(&case(lut_entries))?;
                Ok(Loop::new(100, move || rig.turn()).gap_limit(GAP_LIMIT))
            };
            let found = compare(&Plan::new(100), &mut contender(4_096)?, &mut contender(0)?)?;
            writeln!(
                io::stdout(),
                "{}, {rules} rules: {:.2} Mpps/CPU-s with, {:.2} without, ratio {:.2} ({:.2} to {:.2}) {:?}",
                kind.name(),
                found.ours.median,
                found.peer.median,
                found.ratio,
                found.low,
                found.high,
                found.verdict(Bar::AtLeast(1.0)),
            )?;
        }
    }
    Ok(())
}
