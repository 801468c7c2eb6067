// SPDX-License-Identifier: Apache-2.0
//! Tests of the low_latency instruction: one controller sends it in a flow-mod, and another reads it in the
//! statistics.

use crate::lab::Lab;
use crate::peer::{Peer, add, flow_mod};
use flow::FlowModCommand;
use openflow::bundle::{BundleAdd, BundleControl, BundleKind};
use openflow::multipart::flow_stats::FlowQuery;
use openflow::multipart::{Answer, MultipartReply, MultipartRequest, Query};
use openflow::{Message, error};

/// Returns the low-latency marks that a peer reads in the entries, in ascending order of priority.
fn reported(peer: &mut Peer) -> Vec<Option<bool>> {
    let query = Query::Flow(FlowQuery::default());
    let asked = peer.send(&Message::MultipartRequest(MultipartRequest { more: false, query }));
    let mut flows = Vec::new();
    loop {
        match peer.answer_to(asked) {
            Message::MultipartReply(MultipartReply { more, answer: Answer::Flow(part) }) => {
                flows.extend(part);
                if !more {
                    break;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    flows.sort_by_key(|flow| flow.priority);
    flows.iter().map(|flow| flow.low_latency).collect()
}

#[test]
fn a_mark_is_reported_as_it_was_set_to_controllers_that_use_marks() {
    let lab = Lab::start(1, 2, "");
    let (mut user, mut other) = (Peer::connect(lab.address), Peer::connect(lab.address));
    user.send(&flow_mod(FlowModCommand::Delete, "table=0"));
    user.send(&add("priority=1,in_port=1,actions=output:2"));
    user.barrier();
    assert_eq!(reported(&mut user), [None]);
    user.send(&add("priority=2,low_latency,in_port=1,actions=output:2"));
    user.send(&add("priority=3,low_latency=false,in_port=1,actions=output:2"));
    user.barrier();
    assert_eq!(reported(&mut user), [None, Some(true), Some(false)]);
    // A peer that has never used the instruction gets statistics without it.
    assert_eq!(reported(&mut other), [None, None, None]);
    assert!(lab.ofctl(&["dump-flows"]).contains("priority=2,in_port=1"));
    // Only a modify with the instruction changes the mark.
    user.send(&flow_mod(FlowModCommand::Modify, "in_port=1,actions=output:1"));
    user.barrier();
    assert_eq!(reported(&mut user), [None, Some(true), Some(false)]);
    other.send(&flow_mod(FlowModCommand::Modify, "low_latency=false,in_port=1,actions=output:1"));
    other.barrier();
    assert_eq!(reported(&mut other), [Some(false); 3]);
    // If an add replaces an entry, the new entry does not inherit the mark.
    other.send(&add("priority=2,in_port=1,actions=output:2"));
    other.barrier();
    assert_eq!(reported(&mut user), [Some(false), None, Some(false)]);
}

#[test]
fn bundles_carry_marks_and_refuse_wrong_ones() {
    let lab = Lab::start(1, 2, "");
    let mut peer = Peer::connect(lab.address);
    peer.send(&flow_mod(FlowModCommand::Delete, "table=0"));
    let control = |kind| Message::BundleControl(BundleControl { bundle_id: 5, kind, flags: 3 });
    let bundled = |line| {
        let message = Box::new(add(line));
        Message::BundleAdd(BundleAdd { bundle_id: 5, flags: 3, message })
    };
    peer.ask(&control(BundleKind::OpenRequest));
    peer.send(&bundled("priority=1,low_latency,in_port=1,actions=output:2"));
    peer.send(&bundled("priority=2,low_latency=false,in_port=2,actions=output:1"));
    // Send the first message again with an invalid value of the mark.
    let mut bytes = Vec::new();
    openflow::encode(&bundled("priority=3,low_latency,in_port=1,actions=drop"), 9, &mut bytes).unwrap();
    let at = bytes.windows(7).position(|w| w == [0xff, 0x53, 0x48, 0x4e, 0, 2, 1]).unwrap();
    bytes[at + 6] = 2;
    peer.send_bytes(&bytes);
    let Message::Error(refused) = peer.answer_to(9) else { panic!("not refused") };
    assert_eq!(refused.code, error::INSTRUCTION_UNSUPPORTED);
    assert!(matches!(peer.ask(&control(BundleKind::CommitRequest)), Message::BundleControl(_)));
    assert_eq!(reported(&mut peer), [Some(true), Some(false)]);
}
