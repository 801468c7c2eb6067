// SPDX-License-Identifier: Apache-2.0
//! Sequences of messages, some of them damaged, of a controller and of one that it replaces; time,
//! packet-ins, congestion, changes by others, and new connections. The agent and the model must have the same
//! entries, all output must decode, and memory is bounded.

use crate::choices::Choices;
use crate::common;
use crate::messages::{all_tables, message};
use crate::rig::Rig;
use flow::{Nanos, PacketInReason, TableId};
use frame::Frame;
use model::{AsyncMessage, PacketIn};
use openflow::SessionConfig;
use pof::message::setup::QueryAll;
use pof::{PofDialect, PofMessage, encode};
use pof_agent::{Miss, PofChannelEvent, PofChannelId};

/// Maximum unread output of a channel in bytes, which includes a part of a long answer.
const OUTPUT_BYTES_MAX: usize = 17 * 1_024 * 1_024;

/// What has happened in a storm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    pub messages: u64,
    pub refused: u64,
    /// Messages that added an entry.
    pub added: u64,
    /// Comparisons of all entries.
    pub compared: u64,
}

pub struct Storm {
    rig: Rig,
    /// Channel of the other controller.
    other: PofChannelId,
    miss: Miss,
    summary: Summary,
    /// Whether bytes were sent that may be the start of a message.
    is_misaligned: bool,
}

impl Storm {
    /// Starts a switch whose dialect and configuration are chosen.
    pub fn new(c: &mut Choices<'_>) -> Self {
        let dialect = c.of(&PofDialect::ALL);
        let miss = c.of(&[Miss::Drop, Miss::Drop, Miss::Controller]);
        let offloads = c.one_in(2);
        let mut rig = Rig::new(dialect, miss, offloads);
        let other = std::mem::replace(&mut rig.channel, rig.agent.open(rig.now, SessionConfig::default()));
        rig.greet();
        let mut storm = Self { rig, other, miss, summary: Summary::default(), is_misaligned: false };
        storm.create_tables();
        storm
    }

    /// Executes all steps that the choices contain.
    pub fn run(mut self, c: &mut Choices<'_>) -> Summary {
        while !c.is_empty() {
            self.step(c);
            self.settle();
        }
        self.compare();
        self.reconnect();
        self.summary
    }

    fn step(&mut self, c: &mut Choices<'_>) {
        match c.below(256) {
            0..8 => self.time_passes(c),
            8 => self.reconnect(),
            // The other channel may be misaligned, too.
            9 if !self.is_misaligned => std::mem::swap(&mut self.rig.channel, &mut self.other),
            10..14 => self.packet_in(c),
            14..18 => {
                let bytes = c.bytes(24);
                self.is_misaligned = true;
                self.send(bytes);
            }
            18 => drop(self.rig.model.flow_mod(self.rig.now, common::delete_all())),
            19..24 => {
                self.rig.model.plane_mut().parked = 256;
                self.message(c);
                self.message(c);
                self.rig.model.plane_mut().parked = 0;
            }
            24 | 25 => self.compare(),
            26..30 => self.create_tables(),
            _ => self.message(c),
        }
    }

    /// Creates all tables that do not exist.
    fn create_tables(&mut self) {
        for table in all_tables() {
            self.rig.send(&table);
        }
        self.rig.output();
        self.rig.events.clear();
    }

    /// Sends a message, which is damaged in one of eight cases.
    fn message(&mut self, c: &mut Choices<'_>) {
        let mut bytes = Vec::new();
        let message = message(c);
        if encode(&message, 9, self.rig.dialect, &mut bytes).is_err() {
            return;
        }
        if c.one_in(8) && bytes.len() > 8 {
            for _ in 0..=c.below(3) {
                let at = 8 + usize::from(c.below((bytes.len() - 8) as u16));
                bytes[at] = c.below(256) as u8;
            }
        }
        let before = self.rig.model.flow_count();
        self.send(&bytes);
        self.summary.added += u64::from(self.rig.model.flow_count() > before);
    }

    fn send(&mut self, bytes: &[u8]) {
        self.summary.messages += 1;
        self.rig.send_bytes(bytes);
    }

    /// Completes the work that a step has left, and examines the output and the events.
    fn settle(&mut self) {
        self.rig.run();
        while let Some(work) = self.rig.agent.take_work() {
            let done = work.run(&mut self.rig.model);
            self.rig.agent.finish(done);
            self.rig.run();
        }
        let unread = self.rig.agent.channel(self.rig.channel).unwrap().output().len();
        assert!(unread < OUTPUT_BYTES_MAX, "{unread} bytes are unread");
        self.rig.output();
        let mut is_closed = false;
        for event in self.rig.events.drain(..) {
            match event {
                PofChannelEvent::Refused(reason) => {
                    assert!(!reason.is_empty());
                    self.summary.refused += 1;
                }
                PofChannelEvent::Closed(_) => is_closed = true,
                _ => {}
            }
        }
        if is_closed {
            self.reconnect();
        }
    }

    fn time_passes(&mut self, c: &mut Choices<'_>) {
        self.rig.now = Nanos(self.rig.now.0 + 100_000_000 * u64::from(c.below(12)));
        for message in common::poll_all(&mut self.rig.model, self.rig.now) {
            self.rig.agent.report(&message);
        }
    }

    fn packet_in(&mut self, c: &mut Choices<'_>) {
        let mut frame = Frame::from_bytes(&vec![7; c.below(3_000).into()]);
        frame.meta.in_port = c.below(4).into();
        let reasons = [PacketInReason::NoMatch, PacketInReason::Action, PacketInReason::InvalidTtl];
        self.rig.agent.report(&AsyncMessage::PacketIn(PacketIn {
            frame,
            table: TableId(1),
            entry: None,
            cookie: 2,
            reason: c.of(&reasons),
            max_len: u16::MAX,
            metadata: 0,
            tunnel_id: 0,
            question: None,
        }));
    }

    /// A new connection empties the switch.
    fn reconnect(&mut self) {
        self.is_misaligned = false;
        self.rig.reconnect();
        self.rig.output();
        self.rig.events.clear();
        while let Some(work) = self.rig.agent.take_work() {
            let done = work.run(&mut self.rig.model);
            self.rig.agent.finish(done);
            self.rig.run();
        }
        assert_eq!(self.rig.model.flow_count(), 0, "entries outlive HELLO");
        assert_eq!(self.rig.model.groups_in_order(), [], "groups outlive HELLO");
    }

    /// Compares the answer to QUERYALL with the entries of the model. The model also has the entries for
    /// packets that hit no other.
    fn compare(&mut self) {
        if self.rig.dialect == PofDialect::V1_2 || self.is_misaligned {
            return;
        }
        self.settle();
        self.summary.compared += 1;
        self.rig.send(&PofMessage::QueryAllRequest(QueryAll::default()));
        let answer = self.rig.output();
        assert_eq!(answer.last(), Some(&PofMessage::QueryAllFin));
        let listed = answer.iter().filter(|message| matches!(message, PofMessage::FlowMod(_))).count();
        match self.miss {
            Miss::Drop => assert_eq!(listed, self.rig.model.flow_count()),
            Miss::Controller => assert!(listed <= self.rig.model.flow_count()),
        }
    }
}
