// SPDX-License-Identifier: Apache-2.0
//! Values of counters while their entries are added, replaced and removed.

use crate::common;
use crate::rig::Rig;
use flow::{EntryId, Match, Nanos, PortNo, TableId};
use pof::message::resource::{CounterCommand, PofCounter};
use pof::message::table::{PofFlowMod, PofTableMod};
use pof::value::PofCounterId;
use pof::{PofDialect, PofMessage};
use pof_agent::Miss;

/// Counter of the tests.
const ID: PofCounterId = PofCounterId(5);

fn rig(miss: Miss) -> Rig {
    let mut rig = Rig::new(PofDialect::V1_4, miss, false);
    rig.send(&PofMessage::TableMod(PofTableMod { entries: 8, ..PofTableMod::default() }));
    rig
}

fn counter(command: CounterCommand) -> PofCounter {
    PofCounter { command, counter: ID, ..PofCounter::default() }
}

/// Returns a FLOW_MOD that adds an entry for all packets to the masked table 0.
fn entry(index: u32, priority: u16) -> PofFlowMod {
    PofFlowMod { index, priority, counter: ID, ..PofFlowMod::default() }
}

/// Sends a request, which must not be refused.
fn tell(rig: &mut Rig, message: &PofMessage) {
    rig.output();
    rig.send(message);
    let answers = rig.output();
    assert!(!answers.iter().any(|answer| matches!(answer, PofMessage::Error(_))), "{answers:?}");
}

/// Returns the packets of the counter.
fn counted(rig: &mut Rig) -> u64 {
    rig.output();
    rig.send(&PofMessage::CounterRequest(counter(CounterCommand::Request)));
    match &rig.output()[..] {
        [PofMessage::CounterReply(reply)] => reply.packets,
        other => panic!("{other:?}"),
    }
}

/// Returns the ID of the entry of table 0 with this priority.
fn id_of(rig: &Rig, priority: u16) -> EntryId {
    let found = rig.model.find(TableId(0), priority, &Match::any()).unwrap();
    rig.model.entry_of(found).unwrap().id
}

fn hit(rig: &mut Rig, id: EntryId, packets: u64) {
    rig.model.plane_mut().hit(id, packets, Nanos(0));
}

/// The table-miss entry and entries of other controllers have the match and priority of the added entry.
#[test]
fn an_added_entry_counts_from_0_whatever_it_replaces() {
    let mut rig = rig(Miss::Controller);
    for (priority, before) in [(0, 0), (7, 20)] {
        if priority != 0 {
            rig.model.flow_mod(rig.now, common::add(7, Match::any(), PortNo(1))).unwrap();
        }
        let replaced = id_of(&rig, priority);
        hit(&mut rig, replaced, 1_000);
        tell(&mut rig, &PofMessage::FlowMod(entry(priority.into(), priority)));
        assert_eq!(counted(&mut rig), before, "priority {priority}");
        let added = id_of(&rig, priority);
        assert_ne!(added, replaced);
        hit(&mut rig, added, 20);
        assert_eq!(counted(&mut rig), before + 20);
    }
}
