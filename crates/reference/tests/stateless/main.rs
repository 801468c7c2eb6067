// SPDX-License-Identifier: Apache-2.0
//! The stateless lane: the papers' examples, walks of the planners' own data planes, hostile packets.

// The lints know tests by their attribute; the functions here that serve them have none.
#![allow(clippy::unwrap_used, clippy::panic)]

mod gates;
mod hostile;
mod keys;
mod papers;
mod polka;

use flow::stateless::{Arithmetic, Bank, Label, NodeId};
use flow::{PortNo, PortState, Stateless};
use std::collections::BTreeMap;
use wire::PacketBuilder;

/// Ports that are up.
fn ports(numbers: impl IntoIterator<Item = PortNo>) -> BTreeMap<PortNo, PortState> {
    numbers.into_iter().map(|number| (number, PortState::up(number))).collect()
}

/// What is inside: long enough to be sent without padding.
fn inner() -> Vec<u8> {
    ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).payload(&[7; 40]).build()
}

fn ethernet() -> PacketBuilder {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, 0xb], [2, 0, 0, 0, 0, 0xa])
}

/// The frame of the same packet with a header before it.
fn under(header: PacketBuilder) -> Vec<u8> {
    let packet = inner();
    let mut bytes = header.ethertype(0x0800).build();
    bytes.extend_from_slice(&packet[14..]);
    bytes
}

/// A bank without backups. Labels count from 0; `None` stands for the tables.
fn bank(arithmetic: Arithmetic, id: u32, labels: &[Option<PortNo>]) -> Bank {
    let labels = labels.iter().map(|port| port.map_or(Label::Tables, Label::Port));
    Bank {
        id: NodeId::new(arithmetic, id).unwrap(),
        labels: (0..).zip(labels).collect(),
        backups: BTreeMap::new(),
    }
}

/// A lane that trusts these ports and has a bank of epoch 0.
fn keyed(bank: Bank, trusted: impl IntoIterator<Item = PortNo>) -> Stateless {
    Stateless { banks: [Some(bank), None], trusted: trusted.into_iter().collect(), ..Stateless::default() }
}

/// Links of a network: what is at the other end of a node's port.
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

/// The lines of a file of `make.py`, as words.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

/// Numbers between commas.
fn numbers(list: &str) -> Vec<usize> {
    list.split(',').map(|number| number.parse().unwrap()).collect()
}
