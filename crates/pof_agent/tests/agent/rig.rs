// SPDX-License-Identifier: Apache-2.0
//! An agent with one channel over a model with two ports and a fake data plane.

use crate::common::{self, Fake, FakePlane, plain};
use flow::{Nanos, PortNo};
use model::agent::Context;
use openflow::SessionConfig;
use pof::message::setup::PofSwitchConfig;
use pof::{PofDialect, PofMessage, decode, encode};
use pof_agent::{AgentConfig, Miss, PofAgent, PofChannelEvent, PofChannelId, TableLayout};

pub struct Rig {
    pub agent: PofAgent,
    pub model: Fake,
    pub channel: PofChannelId,
    pub now: Nanos,
    pub events: Vec<PofChannelEvent>,
    pub dialect: PofDialect,
}

impl Rig {
    /// Creates a switch with 2, 2, 1 and 2 tables of the four types, whose channel has completed its
    /// handshake. If `offloads`, the agent leaves long changes to its driver.
    pub fn new(dialect: PofDialect, miss: Miss, offloads: bool) -> Self {
        let mut rig = Self::silent(plain(), dialect, miss);
        if offloads {
            rig.agent.offload_long_work();
        }
        rig.greet();
        rig
    }

    /// Creates the switch with this model, whose channel has not received any message.
    pub fn silent(model: Fake, dialect: PofDialect, miss: Miss) -> Self {
        Self::of(model, TableLayout::new([2, 2, 1, 2]), dialect, miss)
    }

    /// Creates a switch with these tables.
    pub fn of(mut model: Fake, layout: TableLayout, dialect: PofDialect, miss: Miss) -> Self {
        let mut agent = PofAgent::new(AgentConfig { dialect, layout, device_id: 1, miss });
        for number in [1, 2] {
            model.add_port(Nanos(0), common::port(PortNo(number)), true).unwrap();
        }
        let channel = agent.open(Nanos(0), SessionConfig::default());
        Self { agent, model, channel, now: Nanos(0), events: Vec::new(), dialect }
    }

    /// Sends the messages of the handshake.
    pub fn greet(&mut self) {
        let config = PofMessage::SetConfig(PofSwitchConfig::default());
        for message in [PofMessage::Hello, PofMessage::FeaturesRequest, config, PofMessage::GetConfigRequest]
        {
            self.send(&message);
        }
    }

    /// Replaces the channel by a new one.
    pub fn reconnect(&mut self) {
        self.agent.close(self.channel);
        self.channel = self.agent.open(self.now, SessionConfig::default());
        self.greet();
    }

    pub fn send(&mut self, message: &PofMessage) {
        let mut bytes = Vec::new();
        encode(message, 7, self.dialect, &mut bytes).unwrap();
        self.send_bytes(&bytes);
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = self.agent.channel(self.channel).unwrap().receive(rest, self.now);
            let before = rest.len();
            rest = &rest[taken..];
            self.run();
            let channel = self.agent.channel(self.channel).unwrap();
            assert!(rest.len() < before || channel.is_busy(), "the channel neither reads nor works");
            if rest.len() == before {
                return;
            }
        }
    }

    /// Steps until the channel has no more work.
    pub fn run(&mut self) {
        loop {
            let mut refresh = || {};
            let mut context =
                Context::<FakePlane> { model: &mut self.model, now: self.now, refresh: &mut refresh };
            let progress = self.agent.step(self.channel, &mut context);
            self.events.extend(progress.events);
            if !progress.more {
                return;
            }
        }
    }

    /// Takes the messages in the output.
    pub fn output(&mut self) -> Vec<PofMessage> {
        let channel = self.agent.channel(self.channel).unwrap();
        let mut messages = Vec::new();
        let mut at = 0;
        while let Some(header) = channel.output().get(at..at + 4) {
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            messages.push(decode(&channel.output()[at..at + length], self.dialect).unwrap());
            at += length;
        }
        channel.consume(at);
        messages
    }
}
