// SPDX-License-Identifier: Apache-2.0
//! Flow entries and groups of edge switches.

use flow::entry::DEFAULT_PRIORITY;
use flow::group::{Bucket, Group, GroupType};
use flow::{
    Action, Field, FieldMatch, FlowMod, FlowModCommand, GroupId, Instructions, Match, MatchError, Next,
    PortNo, TableId, port_no,
};
use model::{Change, GroupCommand};
use std::collections::BTreeMap;

/// Number of the table for packets that hosts sent.
pub const HOSTS: TableId = TableId(1);
/// Number of the table for packets whose stateless header was popped.
pub const POPPED: TableId = TableId(2);

/// Returns the MAC address of the host with this index.
pub fn mac(host: usize) -> [u8; 6] {
    let [.., a, b, c, d] = (host as u64).to_be_bytes();
    [2, 0, a, b, c, d]
}

/// Packets that an entry matches: packets to one host, in one table, from one ingress port or from any port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    /// Table of the entry.
    pub table: TableId,
    /// Index of the destination host.
    pub host: usize,
    /// Ingress port. An entry for one port has a higher priority than the entry for all ports.
    pub in_port: Option<PortNo>,
}

impl Selector {
    /// Selects packets to a host from any ingress port.
    pub fn to(table: TableId, host: usize) -> Self {
        Self { table, host, in_port: None }
    }

    fn flow_mod(self, command: FlowModCommand, apply: Vec<Action>) -> Result<Change, MatchError> {
        let address = mac(self.host).iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
        let in_port = self.in_port.map(|port| FieldMatch::exact(Field::InPort, port.0.into()));
        let fields = in_port.into_iter().chain([FieldMatch::exact(Field::EthDst, address)]);
        let priority = DEFAULT_PRIORITY + u16::from(self.in_port.is_some());
        let (table, matching) = (Some(self.table), Match::new(fields)?);
        let instructions = Instructions::apply(apply);
        Ok(FlowMod { command, table, priority, matching, instructions, ..FlowMod::default() }.into())
    }
}

/// Returns the changes that add the entries of table 0. Packets with this EtherType lose their stateless
/// header and continue in [`POPPED`]. All other packets continue in [`HOSTS`].
pub fn doors(ethertype: u16, pop: Action) -> Result<[Change; 2], MatchError> {
    let door = |priority, matching, apply, table| {
        let instructions = Instructions { apply, next: Some(Next::Table(table)), ..Instructions::default() };
        FlowMod { priority, matching, instructions, ..FlowMod::default() }
    };
    let tagged = Match::new([FieldMatch::exact(Field::EthType, ethertype.into())])?;
    Ok([door(2, tagged, vec![pop], POPPED).into(), door(1, Match::any(), Vec::new(), HOSTS).into()])
}

/// Returns the change that adds an entry.
pub fn entry(selector: Selector, apply: Vec<Action>) -> Result<Change, MatchError> {
    selector.flow_mod(FlowModCommand::Add, apply)
}

/// Returns the change that deletes an entry.
pub fn without(selector: Selector) -> Result<Change, MatchError> {
    selector.flow_mod(FlowModCommand::DeleteStrict, Vec::new())
}

/// Port that a bucket watches, and port to which it outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Output {
    watch: PortNo,
    port: PortNo,
}

impl Output {
    /// Uses the reserved port `IN_PORT` if `port` is the ingress port, as OpenFlow requires.
    fn new(port: PortNo, in_port: Option<PortNo>) -> Self {
        Self { watch: port, port: if in_port == Some(port) { port_no::IN_PORT } else { port } }
    }
}

/// Fast-failover groups of a switch. Each group outputs to a port, or to a backup port while the port is
/// down.
#[derive(Debug, Default)]
pub struct Failovers {
    ids: BTreeMap<[Output; 2], GroupId>,
}

impl Failovers {
    /// Returns the action that outputs to a port or its backup. `in_port` is the ingress port if it is the
    /// same for all packets. A new group is added to `changes`.
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
        let next = GroupId(self.ids.len() as u32 + 1);
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

/// Returns a select group that chooses one of these lists of actions by the hash of a packet's flow.
pub fn choice(id: GroupId, lists: Vec<Vec<Action>>) -> Change {
    let bucket = |actions| Bucket { weight: 1, actions, ..Bucket::default() };
    let buckets = lists.into_iter().map(bucket).collect();
    Change::Group(GroupCommand::Add, Group { id, kind: GroupType::Select, buckets })
}
