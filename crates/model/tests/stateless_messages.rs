// SPDX-License-Identifier: Apache-2.0
//! The stateless forwarder over OpenFlow. Its configuration is changed in parts, alone and in bundles, and
//! reported as a whole. Invalid changes are refused.
#![allow(clippy::unwrap_used, clippy::panic)]

use flow::{Nanos, PortNo};
mod common;

use common::{Fake, add, mac, plain};
use flow::stateless::{Arithmetic, Bank, Label, NodeId, StatelessChange, StatelessConfig, StatelessSection};
use model::agent::{Agent, ChannelId, Context};
use openflow::bundle::{BundleAdd, BundleControl, BundleKind};
use openflow::error::{IS_SLAVE, STATELESS_BAD_CONFIG};
use openflow::role::{Role, RoleMessage};
use openflow::stateless::StatelessReply;
use openflow::{ErrorCode, HEADER_BYTES, Message, SessionConfig, bundle, decode, encode};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum unread output of a channel in bytes.
const OUTPUT_MAX: usize = 256 * 1_024;

struct Bench {
    agent: Agent,
    model: Fake,
    id: ChannelId,
}

impl Bench {
    fn new() -> Self {
        let mut agent = Agent::default();
        let id = agent.open(Nanos(0), SessionConfig::default());
        let mut bench = Self { agent, model: plain(), id };
        let hello = Message::Hello(openflow::Hello::supported());
        assert!(matches!(bench.ask(0, &hello)[..], [(_, Message::Hello(_))]));
        bench
    }

    fn send(&mut self, xid: u32, message: &Message) {
        let mut bytes = Vec::new();
        encode(message, xid, &mut bytes).unwrap();
        assert_eq!(self.agent.channel(self.id).unwrap().receive(&bytes, Nanos(0)), bytes.len());
    }

    fn step(&mut self) -> bool {
        let Self { agent, model, id } = self;
        agent.step(*id, &mut Context { model, now: Nanos(0), refresh: &mut || {} }).more
    }

    /// Returns the size of the unread output in bytes.
    fn waiting(&mut self) -> usize {
        self.agent.channel(self.id).unwrap().output().len()
    }

    fn read(&mut self) -> Vec<(u32, Message)> {
        let channel = self.agent.channel(self.id).unwrap();
        let mut rest = channel.output().to_vec();
        channel.consume(rest.len());
        let mut replies = Vec::new();
        while rest.len() >= HEADER_BYTES {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            let xid = u32::from_be_bytes(rest[4..8].try_into().unwrap());
            replies.push((xid, decode(&rest[..length]).unwrap()));
            rest.drain(..length);
        }
        replies
    }

    /// Returns all replies to a message.
    fn ask(&mut self, xid: u32, message: &Message) -> Vec<(u32, Message)> {
        self.send(xid, message);
        let mut replies = Vec::new();
        loop {
            let more = self.step();
            let read = self.read();
            if !more && read.is_empty() {
                return replies;
            }
            replies.extend(read);
        }
    }

    fn refused(&mut self, message: &Message) -> ErrorCode {
        match &self.ask(9, message)[..] {
            [(9, Message::Error(error))] => error.code,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Returns the configuration of the stateless forwarder as reported to a controller.
    fn reported(&mut self) -> Option<StatelessConfig> {
        let replies = self.ask(8, &Message::StatelessRequest);
        let [(8, Message::StatelessReply(StatelessReply { more: false, sections }))] = &replies[..] else {
            panic!("{replies:?}")
        };
        let mut stateless_config = StatelessConfig::default();
        sections.clone()?.into_iter().for_each(|section| stateless_config.set(section));
        Some(stateless_config)
    }
}

fn bank(id: u32, labels: u32) -> Bank {
    let id = NodeId::new(Arithmetic::Integer, id).unwrap();
    Bank {
        id,
        labels: (0..labels).map(|n| (n, Label::Port(PortNo(n % 4 + 1)))).collect(),
        backups: BTreeMap::new(),
    }
}

fn trusted(ports: impl IntoIterator<Item = u32>) -> StatelessSection {
    StatelessSection::Trusted(ports.into_iter().map(PortNo).collect())
}

fn set(sections: Vec<StatelessSection>) -> Message {
    Message::StatelessMod(StatelessChange::Set(sections))
}

#[test]
fn the_configuration_that_was_set_is_reported() {
    let mut bench = Bench::new();
    assert_eq!(bench.reported(), None);
    assert_eq!(bench.ask(1, &set(vec![StatelessSection::Bank(1, Some(bank(5, 4))), trusted([1, 9])])), []);
    assert_eq!(bench.ask(2, &set(vec![StatelessSection::Polka(Some(bank(7, 2)))])), []);
    let stateless_config = StatelessConfig {
        banks: [None, Some(bank(5, 4))],
        polka: Some(bank(7, 2)),
        trusted: BTreeSet::from([PortNo(1), PortNo(9)]),
        ..StatelessConfig::default()
    };
    assert_eq!(bench.reported(), Some(stateless_config.clone()));
    assert_eq!(bench.model.stateless().map(|stateless_config| &**stateless_config), Some(&stateless_config));
    assert_eq!(bench.ask(3, &Message::StatelessMod(StatelessChange::Off)), []);
    assert_eq!(bench.reported(), None);
    // An empty request still creates a configuration, so that tagged packets go to the stateless forwarder.
    assert_eq!(bench.ask(4, &set(vec![])), []);
    assert_eq!(bench.reported(), Some(StatelessConfig::default()));
}

#[test]
fn invalid_changes_are_refused_without_effect() {
    let mut bench = Bench::new();
    bench.ask(1, &set(vec![trusted([1])]));
    let small = StatelessSection::MtuBytes(BTreeMap::from([(PortNo(1), 20)]));
    for bad in [small, StatelessSection::Bank(0, Some(bank(3, 4))), trusted([0]), trusted(1..=1_025)] {
        assert_eq!(bench.refused(&set(vec![trusted([2]), bad])), STATELESS_BAD_CONFIG);
    }
    assert_eq!(bench.reported().unwrap().trusted, BTreeSet::from([PortNo(1)]));
}

#[test]
fn slaves_may_read_but_not_change_the_configuration() {
    let mut bench = Bench::new();
    let role = RoleMessage { role: Role::Slave, generation_id: 1 };
    assert!(matches!(bench.ask(1, &Message::RoleRequest(role))[..], [(1, Message::RoleReply(_))]));
    assert_eq!(bench.refused(&Message::StatelessMod(StatelessChange::Off)), IS_SLAVE);
    assert_eq!(bench.reported(), None);
}

#[test]
fn bundles_change_the_configuration_and_entries_together() {
    let mut bench = Bench::new();
    let control = |kind, bundle_id| {
        Message::BundleControl(BundleControl { bundle_id, kind, flags: bundle::FLAG_ATOMIC })
    };
    let added = |bundle_id, message| {
        Message::BundleAdd(BundleAdd { bundle_id, flags: bundle::FLAG_ATOMIC, message: Box::new(message) })
    };
    let entry = || {
        Message::FlowMod(openflow::flow_mod::FlowModMessage {
            flow: add(1, mac(1), PortNo(1)),
            buffer_id: None,
        })
    };
    let small = StatelessSection::MtuBytes(BTreeMap::from([(PortNo(1), 20)]));
    assert_eq!(bench.ask(1, &added(1, entry())), []);
    assert_eq!(bench.ask(2, &added(1, set(vec![trusted([1])]))), []);
    assert_eq!(bench.ask(3, &added(1, set(vec![small]))), []);
    let replies = bench.ask(4, &control(BundleKind::CommitRequest, 1));
    // The first ERROR refers to the message at fault, the second to the commit.
    let [(3, Message::Error(first)), (4, Message::Error(second))] = &replies[..] else {
        panic!("{replies:?}")
    };
    assert_eq!((first.code, second.code), (STATELESS_BAD_CONFIG, bundle::code::MSG_FAILED));
    assert_eq!((bench.reported(), bench.model.flow_count()), (None, 0));

    assert_eq!(bench.ask(1, &added(2, entry())), []);
    assert_eq!(bench.ask(2, &added(2, set(vec![trusted([1])]))), []);
    assert_eq!(bench.ask(3, &added(2, set(vec![StatelessSection::Bank(0, Some(bank(5, 4)))]))), []);
    assert!(matches!(
        bench.ask(4, &control(BundleKind::CommitRequest, 2))[..],
        [(4, Message::BundleControl(_))]
    ));
    let stateless_config = bench.reported().unwrap();
    assert_eq!(
        (stateless_config.trusted, stateless_config.banks[0].clone()),
        (BTreeSet::from([PortNo(1)]), Some(bank(5, 4)))
    );
    assert_eq!(bench.model.flow_count(), 1);
}

#[test]
fn the_longest_stateless_reply_is_complete_and_sent_no_faster_than_it_is_read() {
    let mut bench = Bench::new();
    let whole = bank(u32::MAX, 65_536);
    let stateless_config =
        StatelessConfig { banks: [Some(whole.clone()), Some(whole)], ..StatelessConfig::default() };
    bench.model.set_stateless(Nanos(0), Some(Arc::new(stateless_config))).unwrap();
    for xid in 1..=20 {
        bench.send(xid, &Message::StatelessRequest);
    }
    bench.send(21, &Message::EchoRequest(vec![]));
    bench.send(22, &Message::StatelessMod(StatelessChange::Off));
    let mut replies = Vec::new();
    let mut changed_at = None;
    loop {
        let more = bench.step();
        assert!(bench.waiting() < OUTPUT_MAX, "{} bytes wait", bench.waiting());
        let read = bench.read();
        if read.is_empty() && !more {
            break;
        }
        replies.extend(read.into_iter().filter(|(_, message)| matches!(message, Message::StatelessReply(_))));
        changed_at = changed_at.or_else(|| bench.model.stateless().is_none().then_some(replies.len()));
    }
    // All replies are complete and in order, although the configuration was removed before the last reply was
    // sent.
    let labels = |xid| {
        let messages = replies.iter().filter(|(to, _)| *to == xid).map(|(_, message)| match message {
            Message::StatelessReply(StatelessReply { sections: Some(sections), .. }) => sections,
            other => panic!("{other:?}"),
        });
        let count = |section: &StatelessSection| match section {
            StatelessSection::Bank(_, Some(bank)) => bank.labels.len(),
            _ => 0,
        };
        messages.flatten().map(count).sum::<usize>()
    };
    assert!(replies.is_sorted_by_key(|(xid, _)| *xid));
    assert!((1..=20).all(|xid| labels(xid) == 2 * 65_536));
    assert!(changed_at.unwrap() < replies.len());
}
