// SPDX-License-Identifier: Apache-2.0
//! The fast-forwarding path against the same tables without it: Mpps per CPU-second of low-latency packets.

#[path = "forward/cases.rs"]
#[allow(dead_code)]
mod cases;
#[path = "forward/rig.rs"]
mod rig;
#[path = "ffp/server.rs"]
mod server;

use cases::Case;
use rig::Rig;
use shunt_bench::{Bar, GAP_LIMIT, Loop, Plan, allowed_cpus, compare, pin_to};
use std::error::Error;
use std::io::{self, Write};

fn main() -> Result<(), Box<dyn Error>> {
    pin_to(*allowed_cpus()?.last().ok_or("no CPU is allowed")?)?;
    for rules in [100, 1_000, 10_000] {
        for flows in [1, 100, 1_000] {
            let scenario = server::server(rules, flows, 64, 1);
            let case = |lut_entries| Case {
                name: "server".into(),
                flows: scenario.flows.clone(),
                ports: 2,
                sources: vec![(1, scenario.packets.clone())],
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
                "server, {rules} rules, {flows} flows: {:.2} Mpps/CPU-s with, {:.2} without, ratio {:.2} ({:.2} to {:.2}) {:?}",
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
