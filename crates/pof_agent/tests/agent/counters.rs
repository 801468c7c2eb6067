// SPDX-License-Identifier: Apache-2.0
//! Values of counters while their entries are added, replaced and removed.

use crate::common;
use crate::rig::Rig;
use flow::{EntryId, GroupId, Match, MeterId, Nanos, PortNo, TableId};
use model::agent::Context;
use pof::action::{GroupAction, PofAction};
use pof::instruction::{ApplyActions, MeterInstruction, PofInstruction};
use pof::message::resource::*;
use pof::message::table::{FlowCommand, PofFlowMod, PofTableMod, PofTableType};
use pof::value::PofCounterId;
use pof::{PofDialect, PofMessage, encode};
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

/// Lets the data plane apply all operations and release all removed entries.
fn release_all(rig: &mut Rig) {
    let plane = rig.model.plane_mut();
    plane.held = false;
    plane.apply_all();
    common::poll_all(&mut rig.model, rig.now);
    assert_eq!(rig.model.pending_removals(), 0);
}

/// Returns a switch with counter 5 and an entry of priority 1 that counts under it and has hits. The entry
/// sends to group 3 through meter 3. Also returns the ID of the entry.
fn with_entry(packets: u64) -> (Rig, EntryId) {
    let mut rig = rig(Miss::Drop);
    tell(&mut rig, &PofMessage::CounterMod(counter(CounterCommand::Add)));
    let (group, meter) = (GroupId(3), MeterId(3));
    tell(&mut rig, &PofMessage::GroupMod(PofGroupMod { group, ..PofGroupMod::default() }));
    tell(&mut rig, &PofMessage::MeterMod(PofMeterMod { meter, rate_kbps: 1_000, ..PofMeterMod::default() }));
    let actions = vec![PofAction::Group(GroupAction { group })];
    let instructions = vec![
        PofInstruction::Meter(MeterInstruction { meter }),
        PofInstruction::ApplyActions(ApplyActions { actions }),
    ];
    let m = PofFlowMod { instructions, hard_timeout_s: 9, ..entry(1, 1) };
    tell(&mut rig, &PofMessage::FlowMod(m));
    let id = id_of(&rig, 1);
    hit(&mut rig, id, packets);
    assert_eq!(counted(&mut rig), packets);
    (rig, id)
}

/// Packets may hit an entry until all workers have applied its removal.
#[test]
fn packets_that_hit_an_entry_during_its_removal_are_counted() {
    let group = PofGroupMod { command: PofGroupCommand::Delete, group: GroupId(3), ..Default::default() };
    let meter = PofMeterMod { command: PofMeterCommand::Delete, meter: MeterId(3), ..Default::default() };
    let delete = PofFlowMod { command: FlowCommand::Delete, ..entry(1, 1) };
    let other_match = PofFlowMod { command: FlowCommand::Modify, ..entry(1, 2) };
    let removals = [
        Some(PofMessage::FlowMod(delete)),
        Some(PofMessage::FlowMod(other_match)),
        Some(PofMessage::GroupMod(group)),
        Some(PofMessage::MeterMod(meter)),
        // Another controller deletes the entry, or it expires.
        None,
        Some(PofMessage::EchoRequest),
    ];
    for removal in removals {
        let (mut rig, id) = with_entry(10);
        rig.model.plane_mut().held = true;
        match &removal {
            None => drop(rig.model.flow_mod(rig.now, common::delete_all()).unwrap()),
            Some(PofMessage::EchoRequest) => {
                rig.now = Nanos(10 * common::SECOND.0);
                common::poll_all(&mut rig.model, rig.now);
            }
            Some(message) => tell(&mut rig, message),
        }
        assert_eq!(rig.model.pending_removals(), 1, "{removal:?}");
        assert_eq!(counted(&mut rig), 10, "{removal:?}");
        hit(&mut rig, id, 5);
        assert_eq!(counted(&mut rig), 15, "{removal:?}");
        release_all(&mut rig);
        assert!(!rig.model.plane_mut().knows(id));
        for _ in 0..2 {
            assert_eq!(counted(&mut rig), 15, "{removal:?}");
        }
        tell(&mut rig, &PofMessage::CounterMod(counter(CounterCommand::Clear)));
        assert_eq!(counted(&mut rig), 0, "{removal:?}");
    }
}

#[test]
fn a_modified_entry_counts_each_packet_once_while_it_is_replaced() {
    let (mut rig, old) = with_entry(10);
    rig.model.plane_mut().held = true;
    let same_match = PofFlowMod { command: FlowCommand::Modify, ..entry(1, 1) };
    tell(&mut rig, &PofMessage::FlowMod(same_match));
    let new = id_of(&rig, 1);
    assert_ne!(old, new);
    hit(&mut rig, old, 5);
    hit(&mut rig, new, 2);
    assert_eq!(counted(&mut rig), 17);
    release_all(&mut rig);
    assert_eq!(counted(&mut rig), 17);
}

#[test]
fn a_counter_cleared_during_a_removal_counts_later_packets_only() {
    let (mut rig, id) = with_entry(10);
    rig.model.plane_mut().held = true;
    tell(&mut rig, &PofMessage::FlowMod(PofFlowMod { command: FlowCommand::Delete, ..entry(1, 1) }));
    hit(&mut rig, id, 5);
    tell(&mut rig, &PofMessage::CounterMod(counter(CounterCommand::Clear)));
    hit(&mut rig, id, 2);
    assert_eq!(counted(&mut rig), 2);
    release_all(&mut rig);
    assert_eq!(counted(&mut rig), 2);
}

/// A counter with many entries is added up in parts. Between two parts, the model releases removed entries.
#[test]
fn entries_released_while_their_counter_is_added_up_count_once() {
    let mut rig = rig(Miss::Drop);
    let table_type = PofTableType::Linear;
    tell(&mut rig, &PofMessage::CounterMod(counter(CounterCommand::Add)));
    tell(
        &mut rig,
        &PofMessage::TableMod(PofTableMod { table_type, entries: 5_000, ..PofTableMod::default() }),
    );
    let entries = 3_000;
    for index in 0..entries {
        rig.send(&PofMessage::FlowMod(PofFlowMod { table_type, ..entry(index, 0) }));
    }
    for stats in common::dump(&mut rig.model, rig.now) {
        hit(&mut rig, stats.entry.id, 1);
    }
    rig.model.flow_mod(rig.now, common::delete_all()).unwrap();
    rig.output();
    let mut bytes = Vec::new();
    let request = PofMessage::CounterRequest(counter(CounterCommand::Request));
    encode(&request, 7, rig.dialect, &mut bytes).unwrap();
    rig.agent.channel(rig.channel).unwrap().receive(&bytes, rig.now);
    let mut steps = 0;
    loop {
        let mut refresh = || {};
        let mut context = Context { model: &mut rig.model, now: rig.now, refresh: &mut refresh };
        steps += 1;
        if !rig.agent.step(rig.channel, &mut context).more {
            break;
        }
        common::poll_all(&mut rig.model, rig.now);
    }
    let [PofMessage::CounterReply(reply)] = &rig.output()[..] else { panic!("no reply") };
    assert_eq!(reply.packets, u64::from(entries));
    assert!(steps > 2, "the counter was added up in {steps} steps");
    assert_eq!(counted(&mut rig), u64::from(entries));
}
