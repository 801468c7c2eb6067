// SPDX-License-Identifier: Apache-2.0
//! Checks that every lost packet is counted: the counters agree with the packets that entered and left, and
//! all frames are back in their pools.

use crate::book::EGRESS;
use crate::watchdog::PATIENCE;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use switch::control::{Client, ControlRequest, CountersReport, PortRow, Ports};

/// Totals as seen from outside the switch.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    pub pushed: u64,
    /// Number of copies that left through ports 3, 4 and 5.
    pub left: [u64; 3],
    /// Number of packets with at least one copy that left.
    pub seen: u64,
    /// Number of copies of the packets in `seen` that did not leave.
    pub missing: u64,
    /// Number of packets that only the controller got.
    pub only_packet_ins: u64,
}

/// Losses that can occur after a copy was counted as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    Nothing,
    /// Copies to a port of another worker whose outbox is full. Their drop reason is also that of copies that
    /// are refused immediately and not counted as sent.
    FullOutbox,
    /// Copies to full egress queues of another worker, which have a separate drop reason.
    FullQueue,
}

/// Resources that must be unused when the switch is idle: frames, and slots of rings and queues.
const RESTING: [&str; 11] = [
    "small_frames",
    "large_frames",
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

fn ask(client: &mut Client) -> CountersReport {
    client.ask(&ControlRequest::Counters).unwrap()
}

/// Waits until the counters of the ports include these numbers of received and sent packets, and returns
/// them. Workers publish the counters only periodically.
pub fn ports(client: &mut Client, received: u64, sent: u64) -> Vec<PortRow> {
    let begun = Instant::now();
    loop {
        let ports = client.ask::<Ports>(&ControlRequest::Ports).unwrap().ports;
        let sums = (
            ports.iter().map(|port| port.rx_packets).sum::<u64>(),
            ports.iter().map(|port| port.tx_packets).sum::<u64>(),
        );
        if sums == (received, sent) {
            return ports;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "the ports' counters show {sums:?} packets instead of {:?}",
            (received, sent)
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until the switch has received all packets and holds none. `turn` must take the packets that leave.
pub fn settle(client: &mut Client, pushed: u64, mut turn: impl FnMut()) -> CountersReport {
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

/// Compares the counters with the totals as seen from outside.
pub fn judge(counters: &CountersReport, ports: &[PortRow], outside: Outside, late: Late) {
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
    // Each missing copy was counted as dropped. A packet that counts as forwarded but did not leave lacks at
    // least one copy.
    let lost = count(&counters.copies_dropped, &["port_down", "no_buffer", "transmit_full", "queue_full"]);
    assert!(missing + unseen <= lost, "{missing} copies of packets that left are missing: {counters:?}");
    let lost: u64 = counters.controllers_lost.values().sum();
    assert!(
        only_packet_ins <= counters.consumed + unseen && counters.consumed <= only_packet_ins + lost,
        "{only_packet_ins} packets came to the controller only: {counters:?}"
    );
}

/// Checks that no packet was dropped, and that none went to the controller.
pub fn judge_lossless(counters: &CountersReport) {
    let drops = counters.dropped.values().chain(counters.copies_dropped.values());
    assert_eq!((drops.sum::<u64>(), counters.consumed), (0, 0), "{counters:?}");
}

fn count(dropped: &BTreeMap<String, u64>, reasons: &[&str]) -> u64 {
    reasons.iter().filter_map(|reason| dropped.get(*reason)).sum()
}

/// Returns the number of packets that the backlog refused.
pub fn refused(counters: &CountersReport) -> u64 {
    counters.dropped.iter().filter(|(name, _)| name.starts_with("backlog")).map(|(_, count)| count).sum()
}
