// SPDX-License-Identifier: Apache-2.0
//! Entries and groups of edges, from what they are to do.

use flow::entry::DEFAULT_PRIORITY;
use flow::group::{Bucket, Group, GroupType};
use flow::{
    Action, Command, Field, FieldMatch, FlowMod, Instructions, Match, MatchError, Next, PortNo, port_no,
};
use model::{Change, GroupCommand};
use std::collections::BTreeMap;

/// The table of packets of hosts.
pub const HOSTS: u8 = 1;
/// The table of packets that came with a header, which is off.
pub const POPPED: u8 = 2;

/// The address of a host, by its place.
pub fn mac(host: usize) -> [u8; 6] {
    let [.., a, b, c, d] = (host as u64).to_be_bytes();
    [2, 0, a, b, c, d]
}

/// The packets that an entry is for: those to a host, in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    /// The table that the entry is in.
    pub table: u8,
    /// The place of the host.
    pub host: usize,
    /// Only packets that came in by this port. Such an entry goes before the one for all ports.
    pub in_port: Option<PortNo>,
}

impl Selector {
    /// Packets to a host, whatever port they came in by.
    pub fn to(table: u8, host: usize) -> Self {
        Self { table, host, in_port: None }
    }

    fn flow_mod(self, command: Command, apply: Vec<Action>) -> Result<Change, MatchError> {
        let address = mac(self.host).iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
        let in_port = self.in_port.map(|port| FieldMatch::exact(Field::InPort, port.into()));
        let fields = in_port.into_iter().chain([FieldMatch::exact(Field::EthDst, address)]);
        let priority = DEFAULT_PRIORITY + u16::from(self.in_port.is_some());
        let (table, matching) = (Some(self.table), Match::new(fields)?);
        let instructions = Instructions::apply(apply);
        Ok(FlowMod { command, table, priority, matching, instructions, ..FlowMod::default() }.into())
    }
}

/// Packets with this EtherType lose their header and go on in a table, all others in another.
pub fn doors(ethertype: u16, pop: Action) -> Result<[Change; 2], MatchError> {
    let door = |priority, matching, apply, table| {
        let instructions = Instructions { apply, next: Some(Next::Table(table)), ..Instructions::default() };
        FlowMod { priority, matching, instructions, ..FlowMod::default() }
    };
    let tagged = Match::new([FieldMatch::exact(Field::EthType, ethertype.into())])?;
    Ok([door(2, tagged, vec![pop], POPPED).into(), door(1, Match::any(), Vec::new(), HOSTS).into()])
}

/// An entry for these packets.
pub fn entry(selector: Selector, apply: Vec<Action>) -> Result<Change, MatchError> {
    selector.flow_mod(Command::Add, apply)
}

/// The entry for these packets is deleted.
pub fn without(selector: Selector) -> Result<Change, MatchError> {
    selector.flow_mod(Command::DeleteStrict, Vec::new())
}

/// A port that a group watches, and the port that the bucket outputs to while that one is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Output {
    watch: PortNo,
    port: PortNo,
}

impl Output {
    /// OpenFlow sends a packet by the port that it came in by only if that is called `IN_PORT`.
    fn new(port: PortNo, in_port: Option<PortNo>) -> Self {
        Self { watch: port, port: if in_port == Some(port) { port_no::IN_PORT } else { port } }
    }
}

/// The groups of a switch that take a port, or another one while the first is down.
#[derive(Debug, Default)]
pub struct Failovers {
    ids: BTreeMap<[Output; 2], u32>,
}

impl Failovers {
    /// The action that sends packets by a port or its backup. With `in_port`, all of them came in by that port. The group
    /// is added to `changes` if it is new.
    pub fn output(
        &mut self,
        port: PortNo,
        backup: Option<PortNo>,
        in_port: Option<PortNo>,
        changes: &mut Vec<Change>,
    ) -> Action {
        let first = Output::new(port, in_port);
        let Some(backup) = backup else { return Action::output(first.port) };
        let outputs = [first, Output::new(backup, in_port)];
        let next = self.ids.len() as u32 + 1;
        let id = *self.ids.entry(outputs).or_insert(next);
        if id == next {
            let buckets = outputs.map(|Output { watch, port }| Bucket {
                watch_port: Some(watch),
                actions: vec![Action::output(port)],
                ..Bucket::default()
            });
            let group = Group { id, kind: GroupType::FastFailover, buckets: buckets.into() };
            changes.push(Change::Group(GroupCommand::Add, group));
        }
        Action::Group(id)
    }
}

/// A group that chooses one of these lists of actions by the packet's flow.
pub fn choice(id: u32, lists: Vec<Vec<Action>>) -> Change {
    let bucket = |actions| Bucket { weight: 1, actions, ..Bucket::default() };
    let buckets = lists.into_iter().map(bucket).collect();
    Change::Group(GroupCommand::Add, Group { id, kind: GroupType::Select, buckets })
}
