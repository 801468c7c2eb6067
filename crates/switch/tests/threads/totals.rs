// SPDX-License-Identifier: Apache-2.0
//! Conservation: what the switch counted is what went in and came out, and every frame is back in its pool.

use crate::book::EGRESS;
use crate::watchdog::PATIENCE;
use std::collections::BTreeMap;
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
    /// Copies of these that did not leave.
    pub missing: u64,
    /// Packets that came to the controller and of which no copy left.
    pub only_packet_ins: u64,
}

/// What may be lost after it was counted as a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    Nothing,
    /// Copies for a port of another worker, whose outbox has no room. They are counted under the same name as those that
    /// find no room at once.
    FullOutbox,
    /// Copies for egress queues of another worker, which have no room. They are counted under a name of their own.
    FullQueue,
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

/// What the switch counted for each port.
pub fn ports(client: &mut Client) -> Vec<Port> {
    client.ask::<Ports>(&Request::Ports).unwrap().ports
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

/// Compares the counters with what was seen from outside.
pub fn judge(counters: &Counters, ports: &[Port], outside: Outside, late: Late) {
    let Outside { pushed, left, seen, missing, only_packet_ins } = outside;
    let dropped: u64 = counters.dropped.values().sum();
    let sum = counters.forwarded + counters.consumed + dropped + counters.held;
    assert_eq!((counters.received, counters.received), (pushed, sum), "{counters:?}");
    let sent = EGRESS.map(|egress| ports.iter().find(|port| port.number == egress).unwrap().tx_packets);
    assert_eq!(sent, left, "packets sent by ports");
    assert_eq!(ports.iter().map(|port| port.rx_packets).sum::<u64>(), pushed, "packets received by ports");
    let refused =
        count(&counters.dropped, &["queue_full"]) + count(&counters.copies_dropped, &["queue_full"]);
    assert_eq!(ports.iter().map(|port| port.rx_dropped + port.tx_dropped).sum::<u64>(), refused);
    let late = match late {
        Late::Nothing => 0..=0,
        Late::FullOutbox => 0..=count(&counters.copies_dropped, &["transmit_full"]),
        Late::FullQueue => refused..=refused,
    };
    let left: u64 = left.iter().sum();
    let lost = counters.copies.checked_sub(left);
    assert!(lost.is_some_and(|lost| late.contains(&lost)), "{left} copies left, {late:?} lost: {counters:?}");
    let unseen = counters.forwarded.checked_sub(seen);
    assert!(unseen.is_some_and(|unseen| unseen <= *late.end()), "{seen} packets left: {counters:?}");
    let unseen = unseen.unwrap_or_default();
    // Of a packet that left, each other copy was counted as dropped. Of one that was forwarded and did not leave, at least
    // one copy was.
    let lost = count(&counters.copies_dropped, &["port_down", "no_buffer", "transmit_full", "queue_full"]);
    assert!(missing + unseen <= lost, "{missing} copies of packets that left are missing: {counters:?}");
    let lost: u64 = counters.controllers_lost.values().sum();
    assert!(
        only_packet_ins <= counters.consumed + unseen && counters.consumed <= only_packet_ins + lost,
        "{only_packet_ins} packets came to the controller only: {counters:?}"
    );
}

/// Nothing is lost, and nothing goes to the controller.
pub fn judge_lossless(counters: &Counters) {
    let drops = counters.dropped.values().chain(counters.copies_dropped.values());
    assert_eq!((drops.sum::<u64>(), counters.consumed), (0, 0), "{counters:?}");
}

/// How many were dropped for these reasons.
fn count(dropped: &BTreeMap<String, u64>, reasons: &[&str]) -> u64 {
    reasons.iter().filter_map(|reason| dropped.get(*reason)).sum()
}

/// Packets that were dropped before any table saw them.
pub fn refused(counters: &Counters) -> u64 {
    counters.dropped.iter().filter(|(name, _)| name.starts_with("backlog")).map(|(_, count)| count).sum()
}
