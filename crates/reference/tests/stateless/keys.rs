// SPDX-License-Identifier: Apache-2.0
//! KeyFlow. Compares walks through planned networks with the planner's walks, and tests each rule separately.

use super::{Links, bank, ethernet, inner, keyed, lines, numbers, ports, under};
use flow::stateless::{Arithmetic, Bank, Label, NodeId};
use flow::{DropReason, PortNo, PortState, StatelessConfig};
use reference::{StatelessOutcome, stateless};
use std::collections::BTreeMap;

/// A planned network.
struct Plan {
    arithmetic: Arithmetic,
    links: Links,
    banks: BTreeMap<usize, Bank>,
}

/// Result of a walk: its end, and the nodes visited.
#[derive(Debug, PartialEq, Eq)]
struct Walked {
    outcome: &'static str,
    visited: Vec<usize>,
    /// Number of times that the packet was forwarded, computed from the hop limit.
    forwarded: u8,
}

impl Plan {
    /// Returns a node's ports. Ports to failed links or nodes are down.
    fn ports(&self, node: usize, down: Option<(usize, Option<PortNo>)>) -> BTreeMap<PortNo, PortState> {
        let is_down = |end: (usize, PortNo)| {
            down.is_some_and(|(at, port)| end.0 == at && port.is_none_or(|p| p == end.1))
        };
        let up = |number| {
            let end = (node, number);
            !is_down(end) && !is_down(self.links.0[&end])
        };
        let state = |number| (number, PortState { up: up(number), ..PortState::up(number) });
        self.links.ports_of(node).map(state).collect()
    }

    fn walk(
        &self,
        down: Option<(usize, Option<PortNo>)>,
        source: usize,
        port: PortNo,
        key: &str,
        hops: u8,
    ) -> Walked {
        let key = u128::from_str_radix(key, 16).unwrap().to_be_bytes();
        let mut frame = under(ethernet().keyflow(1, hops, &key));
        let mut visited = vec![source];
        // The first switch sends the packet by a fast-failover group, which has the port and its backup.
        let is_up = |port: &&PortNo| self.ports(source, down)[port].up;
        let backup = || self.banks.get(&source).and_then(|bank| bank.backups.get(&port));
        let first = Some(&port).filter(is_up).or_else(backup).filter(is_up);
        let Some(mut out) = first.copied() else {
            return Walked { outcome: "port_down", visited, forwarded: 0 };
        };
        let mut node = source;
        loop {
            let in_port;
            (node, in_port) = self.links.0[&(node, out)];
            visited.push(node);
            let config = StatelessConfig {
                banks: [None, self.banks.get(&node).cloned()],
                trusted: self.links.ports_of(node).collect(),
                ..StatelessConfig::default()
            };
            let outcome = match stateless(&config, &self.ports(node, down), in_port, &frame) {
                StatelessOutcome::Tables => "tables",
                StatelessOutcome::Dropped(reason) => reason.name(),
                StatelessOutcome::Sent(sent) => {
                    (out, frame) = (sent.port, sent.bytes);
                    continue;
                }
            };
            let left = frame[15];
            assert_eq!(frame, under(ethernet().keyflow(1, left, &key)));
            return Walked { outcome, visited, forwarded: hops - left };
        }
    }
}

#[test]
fn walks_end_at_the_nodes_of_the_planner() {
    let mut plan = Plan { arithmetic: Arithmetic::Integer, links: Links::default(), banks: BTreeMap::new() };
    let mut met: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    for words in lines(include_str!("keys.txt")) {
        let number = |at: usize| words[at].parse::<usize>().unwrap();
        let port = |at: usize| words[at].parse::<PortNo>().unwrap();
        match words[0] {
            "arithmetic" => {
                let arithmetic =
                    if words[1] == "integer" { Arithmetic::Integer } else { Arithmetic::Polynomial };
                plan = Plan { arithmetic, links: Links::default(), banks: BTreeMap::new() };
            }
            "link" => plan.links.add((number(1), port(2)), (number(3), port(4))),
            "bank" => {
                let label = |word: &str| word.parse().map_or(Label::Tables, Label::Port);
                let pair = |word: &str| {
                    word.split_once(':')
                        .map(|(port, backup)| (port.parse().unwrap(), backup.parse().unwrap()))
                };
                let bank = Bank {
                    id: NodeId::new(plan.arithmetic, port(2).0).unwrap(),
                    labels: (0..).zip(words[3].split(',').map(label)).collect(),
                    backups: words[4].split(',').filter_map(pair).collect(),
                };
                plan.banks.insert(number(1), bank);
            }
            "walk" => {
                let down = match words[1].split_once(':') {
                    Some((node, port)) => Some((node.parse().unwrap(), Some(port.parse().unwrap()))),
                    None => words[1].parse().ok().map(|node| (node, None)),
                };
                let walked = plan.walk(down, number(2), port(3), words[4], words[5].parse().unwrap());
                let visited = numbers(words[9]);
                assert_eq!(walked.outcome, words[6], "{words:?}");
                if walked.outcome == "hop_limit" {
                    // The planner stops at the first node that a packet visits twice.
                    assert_eq!(walked.visited[..visited.len()], visited, "{words:?}");
                } else {
                    assert_eq!(walked.visited, visited, "{words:?}");
                    assert_eq!(usize::from(walked.forwarded), number(8), "{words:?}");
                }
                *met.entry((words[6], down.is_some())).or_default() += 1;
            }
            other => panic!("no line begins with {other}"),
        }
    }
    for case in
        [("tables", false), ("tables", true), ("hop_limit", false), ("no_label", false), ("port_down", true)]
    {
        assert!(met.contains_key(&case), "no walk ends in {case:?}: {met:?}");
    }
}

/// Returns the configuration of a node with ID 5. Label 0 selects the tables, and labels 1 to 3 select ports
/// 1 to 3, of which port 3 does not exist. Port 4 is the backup of port 2, and port 2 is the backup of port
/// 1.
fn node() -> StatelessConfig {
    let mut bank = bank(Arithmetic::Integer, 5, &[None, Some(PortNo(1)), Some(PortNo(2)), Some(PortNo(3))]);
    bank.backups = [(PortNo(2), PortNo(4)), (PortNo(1), PortNo(2))].into();
    keyed(bank, [1, 2])
}

/// Returns a packet with a 64-bit key.
fn frame(key: u64, hops: u8) -> Vec<u8> {
    under(ethernet().keyflow(0, hops, &key.to_be_bytes()))
}

fn port_of(verdict: StatelessOutcome) -> Result<PortNo, DropReason> {
    match verdict {
        StatelessOutcome::Tables => Ok(PortNo(0)),
        StatelessOutcome::Sent(sent) => Ok(sent.port),
        StatelessOutcome::Dropped(reason) => Err(reason),
    }
}

#[test]
fn backups_replace_ports_that_are_down_or_the_ingress_port() {
    let up = ports([1, 2, 4]);
    let without = |gone: &[PortNo]| {
        let mut ports = up.clone();
        ports.values_mut().filter(|port| gone.contains(&port.number)).for_each(|port| port.up = false);
        ports
    };
    let by = |ports, in_port, key| port_of(stateless(&node(), &ports, in_port, &frame(key, 1)));
    assert_eq!(by(up.clone(), PortNo(1), 12), Ok(PortNo(2)));
    assert_eq!(by(without(&[PortNo(2)]), PortNo(1), 12), Ok(PortNo(4)));
    assert_eq!(by(up.clone(), PortNo(2), 12), Ok(PortNo(4)), "port 2 is the ingress port");
    assert_eq!(by(without(&[PortNo(1)]), PortNo(2), 11), Ok(PortNo(2)), "the backup may be the ingress port");
    assert_eq!(by(without(&[PortNo(2), PortNo(4)]), PortNo(1), 12), Err(DropReason::PortDown));
    assert_eq!(
        by(up.clone(), PortNo(1), 13),
        Err(DropReason::PortDown),
        "the port does not exist and has no backup"
    );
    let mut silent = up.clone();
    silent.get_mut(&PortNo(2)).unwrap().no_fwd = true;
    assert_eq!(by(silent, PortNo(1), 12), Ok(PortNo(4)));
}

#[test]
fn checks_have_the_documented_order() {
    let up = ports([1, 2, 4]);
    let by = |in_port, frame: &[u8]| port_of(stateless(&node(), &up, in_port, frame));
    assert_eq!(
        by(PortNo(4), &frame(10, 0)),
        Err(DropReason::UntrustedTag),
        "a tag from an untrusted port is not examined"
    );
    assert_eq!(by(PortNo(4), &frame(10, 0)[..20]), Err(DropReason::UntrustedTag));
    assert_eq!(by(PortNo(1), &frame(14, 0)), Err(DropReason::NoLabel));
    assert_eq!(
        by(PortNo(1), &frame(10, 0)),
        Ok(PortNo(0)),
        "packets for the tables may have a hop limit of 0"
    );
    assert_eq!(
        by(PortNo(1), &frame(13, 0)),
        Err(DropReason::HopLimit),
        "the hop limit is checked before the port"
    );
    assert_eq!(
        by(PortNo(1), &under(ethernet().keyflow(1, 9, &[0; 8]))),
        Ok(PortNo(0)),
        "the switch has no bank of this epoch"
    );
    let mut damaged = under(ethernet().keyflow(1, 9, &[0; 8]));
    damaged[16] = 5;
    assert_eq!(by(PortNo(1), &damaged), Err(DropReason::MalformedTag));
    // Untagged packets, and packets whose header is not configured, enter the tables.
    assert_eq!(
        [by(PortNo(4), &inner()), by(PortNo(1), &inner()), by(PortNo(1), &inner()[..13])],
        [Ok(PortNo(0)); 3]
    );
    assert_eq!(by(PortNo(1), &under(ethernet().polka(0, 1))), Ok(PortNo(0)));
    assert_eq!(by(PortNo(1), &under(ethernet().vlan(0x8100, 1).keyflow(0, 9, &[0xff; 8]))), Ok(PortNo(0)));
}

#[test]
fn other_ethertypes_can_be_configured() {
    let mut config = node();
    config.types.keyflow = 0x88b7;
    let by = |frame: &[u8]| port_of(stateless(&config, &ports([1, 2]), PortNo(1), frame));
    let mut other = frame(12, 1);
    other[12..14].copy_from_slice(&[0x88, 0xb7]);
    assert_eq!([by(&frame(12, 1)), by(&other)], [Ok(PortNo(0)), Ok(PortNo(2))]);
}

#[test]
fn packets_above_the_mtu_are_dropped() {
    let mut config = node();
    let by =
        |config: &StatelessConfig| port_of(stateless(config, &ports([1, 2, 4]), PortNo(1), &frame(12, 1)));
    config.mtu_bytes = [(PortNo(2), frame(12, 1).len() - 14)].into();
    assert_eq!(by(&config), Ok(PortNo(2)));
    config.mtu_bytes = [(PortNo(2), frame(12, 1).len() - 15)].into();
    assert_eq!(by(&config), Err(DropReason::OverMtu), "no backup is used");
}

#[test]
fn other_versions_and_lengths_are_malformed() {
    let up = ports([1, 2, 4]);
    let by = |frame: &[u8]| port_of(stateless(&node(), &up, PortNo(1), frame));
    for (at, value) in [(14, 0x00), (14, 0x20), (14, 0xf0), (16, 0), (16, 5)] {
        let mut damaged = frame(12, 1);
        damaged[at] = value;
        assert_eq!(by(&damaged), Err(DropReason::MalformedTag), "{value:#x} at {at}");
    }
    for len in 14..30 {
        assert_eq!(by(&frame(12, 1)[..len]), Err(DropReason::MalformedTag), "{len} bytes");
    }
    assert_eq!(by(&frame(12, 1)[..30]), Ok(PortNo(2)));
    let mut reserved = frame(12, 1);
    (reserved[14], reserved[17], reserved[20], reserved[21]) = (0x17, 0xff, 0xff, 0xff);
    assert_eq!(by(&reserved), Ok(PortNo(2)), "reserved bits are ignored");
}
