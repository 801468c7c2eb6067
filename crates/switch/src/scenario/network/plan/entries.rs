// SPDX-License-Identifier: Apache-2.0
//! Entries and groups of edges, from what they are to do.

use flow::group::{Bucket, Group, GroupType};
use flow::{Action, Command, Field, FieldMatch, FlowMod, Instructions, Match, MatchError, Next, PortNo};
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

fn to(host: usize) -> Result<Match, MatchError> {
    let value = mac(host).iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
    Match::new([FieldMatch::exact(Field::EthDst, value)])
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

/// In a table, packets to a host.
pub fn entry(table: u8, host: usize, apply: Vec<Action>) -> Result<Change, MatchError> {
    let instructions = Instructions::apply(apply);
    Ok(FlowMod { table: Some(table), matching: to(host)?, instructions, ..FlowMod::default() }.into())
}

/// The entry is gone.
pub fn without(table: u8, host: usize) -> Result<Change, MatchError> {
    let command = Command::DeleteStrict;
    Ok(FlowMod { command, table: Some(table), matching: to(host)?, ..FlowMod::default() }.into())
}

/// The groups of a switch that take a port, or another one while the first is down.
#[derive(Debug, Default)]
pub struct Failovers {
    ids: BTreeMap<[PortNo; 2], u32>,
}

impl Failovers {
    /// What sends by a port or its backup; the group is added to `changes` where it is new.
    pub fn output(&mut self, port: PortNo, backup: Option<PortNo>, changes: &mut Vec<Change>) -> Action {
        let Some(backup) = backup else { return Action::output(port) };
        let next = self.ids.len() as u32 + 1;
        let id = *self.ids.entry([port, backup]).or_insert(next);
        if id == next {
            let bucket = |port| Bucket {
                watch_port: Some(port),
                actions: vec![Action::output(port)],
                ..Bucket::default()
            };
            let buckets = vec![bucket(port), bucket(backup)];
            let group = Group { id, kind: GroupType::FastFailover, buckets };
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
