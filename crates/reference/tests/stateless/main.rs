// SPDX-License-Identifier: Apache-2.0
//! Tests of stateless forwarding: the papers' examples, walks that the planner's own data planes computed,
//! and hostile packets.

// Clippy recognises tests by their attribute, which helper functions do not have.
#![allow(clippy::unwrap_used, clippy::panic)]

mod gates;
mod hostile;
mod keys;
mod papers;
mod polka;

use flow::stateless::{Arithmetic, Bank, Label, NodeId};
use flow::{PortNo, PortState, StatelessConfig};
use std::collections::BTreeMap;
use wire::PacketBuilder;

/// Returns ports that are up.
fn ports(numbers: impl IntoIterator<Item = u32>) -> BTreeMap<PortNo, PortState> {
    numbers.into_iter().map(PortNo).map(|number| (number, PortState::up(number))).collect()
}

/// Returns the packet inside the stateless header. It is long enough to be sent without padding.
fn inner() -> Vec<u8> {
    ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).payload(&[7; 40]).build()
}

fn ethernet() -> PacketBuilder {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, 0xb], [2, 0, 0, 0, 0, 0xa])
}

/// Returns the inner packet with a stateless header after its MAC addresses.
fn under(header: PacketBuilder) -> Vec<u8> {
    let packet = inner();
    let mut bytes = header.ethertype(0x0800).build();
    bytes.extend_from_slice(&packet[14..]);
    bytes
}

/// Returns a bank without backups. `labels` are the meanings of label 0, label 1 and so on; `None` means the
/// tables.
fn bank(arithmetic: Arithmetic, id: u32, labels: &[Option<PortNo>]) -> Bank {
    let labels = labels.iter().map(|port| port.map_or(Label::Tables, Label::Port));
    Bank {
        id: NodeId::new(arithmetic, id).unwrap(),
        labels: (0..).zip(labels).collect(),
        backups: BTreeMap::new(),
    }
}

/// Returns a configuration that trusts these ports and has a bank of epoch 0.
fn keyed(bank: Bank, trusted: impl IntoIterator<Item = u32>) -> StatelessConfig {
    StatelessConfig {
        banks: [Some(bank), None],
        trusted: trusted.into_iter().map(PortNo).collect(),
        ..StatelessConfig::default()
    }
}

/// Links of a network: the remote end of each node's port.
#[derive(Default)]
struct Links(BTreeMap<(usize, PortNo), (usize, PortNo)>);

impl Links {
    fn add(&mut self, a: (usize, PortNo), b: (usize, PortNo)) {
        self.0.extend([(a, b), (b, a)]);
    }

    fn ports_of(&self, node: usize) -> impl Iterator<Item = PortNo> {
        self.0.keys().filter(move |end| end.0 == node).map(|end| end.1)
    }
}

/// Returns the lines of a file written by `make.py`, split into words.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

/// Parses numbers separated by commas.
fn numbers(list: &str) -> Vec<usize> {
    list.split(',').map(|number| number.parse().unwrap()).collect()
}
