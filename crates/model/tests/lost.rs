// SPDX-License-Identifier: Apache-2.0
//! Messages that are lost because a controller does not read must be counted by kind and reported.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use flow::{EntryFlags, FlowMod, Nanos, PortNo};
use model::agent::{Agent, ChannelEvent, ChannelId, Context, LostMessages};
use openflow::{Message, SessionConfig, encode};

fn step(agent: &mut Agent, model: &mut Fake, id: ChannelId, now: Nanos) -> Vec<ChannelEvent> {
    agent.step(id, &mut Context { model, now, refresh: &mut || {} }).events
}

#[test]
fn messages_that_a_controller_does_not_read_are_counted_by_kind() {
    let (mut agent, mut model) = (Agent::default(), plain());
    let id = agent.open(Nanos(0), SessionConfig::default());
    let mut hello = Vec::new();
    encode(&Message::Hello(openflow::Hello::supported()), 1, &mut hello).unwrap();
    agent.channel(id).unwrap().receive(&hello, Nanos(0));
    assert_eq!(step(&mut agent, &mut model, id, Nanos(0)), [ChannelEvent::Opened]);

    let pass_on = |agent: &mut Agent, model: &mut Fake| {
        poll_all(model, Nanos(0))
            .into_iter()
            .for_each(|async_message| agent.report(model, Nanos(0), async_message));
    };
    let reported = EntryFlags { send_flow_removed: true, ..EntryFlags::default() };
    let remove_one = |agent: &mut Agent, model: &mut Fake| {
        model.flow_mod(Nanos(0), FlowMod { flags: reported, ..add(1, mac(1), PortNo(1)) }).unwrap();
        model.flow_mod(Nanos(0), delete_all()).unwrap();
        pass_on(agent, model);
    };
    let mut sent = 0;
    while agent.lost() == LostMessages::default() {
        remove_one(&mut agent, &mut model);
        sent += 1;
        assert!(sent < 100_000, "the output has no limit");
    }
    assert!(agent.channel(id).unwrap().output().len() > 1_024 * 1_024);
    for _ in 0..4 {
        remove_one(&mut agent, &mut model);
    }
    model.add_port(Nanos(0), port(PortNo(1)), true).unwrap();
    pass_on(&mut agent, &mut model);
    let lost = LostMessages { flow_removed: 5, port_status: 1, ..LostMessages::default() };
    assert_eq!(agent.lost(), lost);
    assert_eq!(step(&mut agent, &mut model, id, Nanos(0)), [ChannelEvent::Lost(lost)]);
    assert_eq!(lost.to_string(), "5 flow_removed, 1 port_status");

    // The previous event was less than a second ago, so there is no event yet.
    remove_one(&mut agent, &mut model);
    assert_eq!(step(&mut agent, &mut model, id, SECOND - Nanos(1)), []);
    let one = LostMessages { flow_removed: 1, ..LostMessages::default() };
    assert_eq!(step(&mut agent, &mut model, id, SECOND), [ChannelEvent::Lost(one)]);
    agent.close(id);
    assert_eq!(
        agent.lost(),
        LostMessages { flow_removed: 6, ..lost },
        "losses on closed channels are included"
    );
}
