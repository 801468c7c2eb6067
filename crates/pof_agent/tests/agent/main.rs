// SPDX-License-Identifier: Apache-2.0
//! Tests of the agent over a model with a fake data plane.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../model/tests/common/mod.rs"]
mod common;
mod limits;
mod random;

use common::{Fake, FakePlane, plain};
use flow::{Nanos, PortNo};
use model::agent::Context;
use openflow::SessionConfig;
use pof::message::setup::PofSwitchConfig;
use pof::{PofDialect, PofMessage, decode, encode};
use pof_agent::{AgentConfig, Miss, PofAgent, PofChannelEvent, PofChannelId, TableLayout};

const DIALECT: PofDialect = PofDialect::V1_4;

/// An agent with one channel over a model with two ports.
struct Rig {
    agent: PofAgent,
    model: Fake,
    channel: PofChannelId,
    now: Nanos,
    events: Vec<PofChannelEvent>,
}

impl Rig {
    fn new(lends: bool) -> Self {
        let layout = TableLayout::new([2, 2, 1, 2]);
        let config = AgentConfig { dialect: DIALECT, layout, device_id: 1, miss: Miss::Drop };
        let mut agent = PofAgent::new(config);
        if lends {
            agent.lend_long_work();
        }
        let mut model = plain();
        for number in [1, 2] {
            model.add_port(Nanos(0), common::port(PortNo(number)), true).unwrap();
        }
        let channel = agent.open(Nanos(0), SessionConfig::default());
        let mut rig = Self { agent, model, channel, now: Nanos(0), events: Vec::new() };
        rig.greet();
        rig
    }

    /// Sends the messages of the handshake.
    fn greet(&mut self) {
        let config = PofMessage::SetConfig(PofSwitchConfig::default());
        for message in [PofMessage::Hello, PofMessage::FeaturesRequest, config, PofMessage::GetConfigRequest]
        {
            self.send(&message);
        }
    }

    /// Replaces the channel by a new one.
    fn reconnect(&mut self) {
        self.agent.close(self.channel);
        self.channel = self.agent.open(self.now, SessionConfig::default());
        self.greet();
    }

    fn send(&mut self, message: &PofMessage) {
        let mut bytes = Vec::new();
        encode(message, 7, DIALECT, &mut bytes).unwrap();
        self.send_bytes(&bytes);
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
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
    fn run(&mut self) {
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
    fn output(&mut self) -> Vec<PofMessage> {
        let channel = self.agent.channel(self.channel).unwrap();
        let mut messages = Vec::new();
        let mut at = 0;
        while let Some(header) = channel.output().get(at..at + 4) {
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            messages.push(decode(&channel.output()[at..at + length], DIALECT).unwrap());
            at += length;
        }
        channel.consume(at);
        messages
    }
}
