// SPDX-License-Identifier: Apache-2.0
//! Conservation: what the switch counted is what went in and came out, and every frame is back in its pool.

use crate::Load;
use crate::book::EGRESS;
use crate::watchdog::PATIENCE;
use std::time::{Duration, Instant};
use switch::control::{Client, Counters, Port, Ports, Request};

/// What was seen from outside.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    pub pushed: u64,
    /// Copies that left, by port 3, 4, 5.
    pub left: [u64; 3],
    /// Packets of which a copy left.
    pub seen: u64,
    pub packet_ins: u64,
}

/// Frames and ring places that are in use when nothing is under way: none.
const RESTING: [&str; 12] = [
    "small_frames",
    "large_frames",
    "frames_on_loan",
    "controller_frames",
    "handovers_low_latency",
    "handovers_normal",
    "backlog_normal",
    "backlog_unknown",
    "hold",
    "copies",
    "outbox_low_latency",
    "outbox_normal",
];

fn ask(client: &mut Client) -> Counters {
    client.ask(&Request::Counters).unwrap()
}

fn ports(client: &mut Client) -> Vec<Port> {
    client.ask::<Ports>(&Request::Ports).unwrap().ports
}

/// Packets that the ports of [`EGRESS`] counted as sent.
pub fn sent(client: &mut Client) -> [u64; 3] {
    let ports = ports(client);
    EGRESS.map(|egress| ports.iter().find(|port| port.number == egress).unwrap().tx_packets)
}

/// Waits until the switch has taken all that was pushed and holds nothing. `turn` goes on taking what leaves.
pub fn settle(client: &mut Client, pushed: u64, mut turn: impl FnMut()) -> Counters {
    let mut progress = (0, Instant::now());
    loop {
        turn();
        let counters = ask(client);
        if counters.received != progress.0 {
            progress = (counters.received, Instant::now());
        }
        let used: Vec<_> = counters
            .limits
            .iter()
            .filter(|limit| RESTING.contains(&limit.name.as_str()) && limit.used > 0)
            .map(|limit| format!("{} {}: {}", limit.of, limit.name, limit.used))
            .collect();
        if counters.received == pushed && counters.held == 0 && used.is_empty() {
            turn();
            return counters;
        }
        assert!(
            progress.1.elapsed() < PATIENCE,
            "{pushed} packets were pushed, {} received, {} are held; in use: {used:?}",
            counters.received,
            counters.held
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Holds the counters against what was seen.
pub fn judge(client: &mut Client, counters: &Counters, outside: Outside, load: Load) {
    let Outside { pushed, left, seen, packet_ins } = outside;
    let dropped: u64 = counters.dropped.values().sum();
    let sum = counters.forwarded + counters.consumed + dropped + counters.held;
    assert_eq!((counters.received, counters.received), (pushed, sum), "{counters:?}");
    assert_eq!(sent(client), left, "packets sent by ports");
    let ports = ports(client);
    assert_eq!(ports.iter().map(|port| port.rx_packets).sum::<u64>(), pushed, "packets received by ports");
    assert_eq!(ports.iter().map(|port| port.rx_dropped + port.tx_dropped).sum::<u64>(), 0);
    let late: u64 = counters.copies_dropped.values().sum();
    let left: u64 = left.iter().sum();
    assert!(left <= counters.copies && counters.copies <= left + late, "{left} copies left: {counters:?}");
    assert!(
        seen <= counters.forwarded && counters.forwarded <= seen + late,
        "{seen} packets left: {counters:?}"
    );
    assert!(counters.consumed <= packet_ins + late + lost(counters), "{packet_ins} packet-ins: {counters:?}");
    if load == Load::Sleepy {
        assert_eq!((dropped, late, counters.consumed), (0, 0, 0), "{counters:?}");
    }
}

/// Packet-ins that the controller did not get.
fn lost(counters: &Counters) -> u64 {
    counters.controllers_lost.values().sum()
}

/// Packets that were dropped before any table saw them.
pub fn refused(counters: &Counters) -> u64 {
    counters.dropped.iter().filter(|(name, _)| name.starts_with("backlog")).map(|(_, count)| count).sum()
}
