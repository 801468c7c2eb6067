// SPDX-License-Identifier: Apache-2.0
//! A running replay: a switch, its clock, and its output.

use crate::clock::VirtualClock;
use crate::replay::engine::Forwarder;
use crate::replay::input::{self, Burst, Survey};
use crate::replay::output::Outputs;
use crate::replay::summary::ReplaySummary;
use crate::replay::{Options, ReplayError};
use config::flow_file::FlowFile;
use flow::{Nanos, PortNo};
use model::{AsyncMessage, FlowCursor, FlowFilter, Model, ModelConfig, PacketIn, PortDesc};
use std::collections::BTreeSet;
use wire::capture::CaptureError;

pub(super) struct Session<F: Forwarder> {
    model: Model<F::Plane>,
    forwarder: F,
    clock: VirtualClock,
    summary: ReplaySummary,
    packet_ins: Vec<PacketIn>,
}

impl<F: Forwarder> Session<F> {
    pub fn new(plane: F::Plane, forwarder: F, options: &Options, survey: &Survey) -> Self {
        let clock = VirtualClock::starting_at(survey.start_ns);
        Self {
            model: Model::new(ModelConfig::default(), plane, clock.now()),
            forwarder,
            clock,
            summary: ReplaySummary::new(options, survey.damage.clone()),
            packet_ins: Vec::new(),
        }
    }

    /// Creates ports and entries, which are applied before the first packet.
    pub fn set_up(
        &mut self,
        options: &Options,
        flows: FlowFile,
        ports: &BTreeSet<PortNo>,
    ) -> Result<(), ReplayError> {
        let now = self.clock.now();
        for &number in ports {
            let desc = PortDesc { number, name: format!("port-{number}"), ..PortDesc::default() };
            self.model.add_port(now, desc, true)?;
            self.summary.ports.entry(number).or_default();
        }
        let refused = |mistakes| ReplayError::Flows { path: options.flows.clone(), mistakes };
        flows.apply(&mut self.model, now).map_err(refused)?;
        self.do_housekeeping(now);
        Ok(())
    }

    /// Sends all packets through the switch.
    pub fn run(mut self, options: &Options, outputs: &mut Outputs) -> Result<ReplaySummary, ReplayError> {
        let mut reader = input::open(options)?;
        let mut burst = Burst::default();
        let mut first_ns = None;
        loop {
            let packet = match reader.next_packet() {
                Ok(Some(packet)) => packet,
                // The first pass has already reported the damage.
                Ok(None) | Err(CaptureError::Packet { .. }) => break,
                Err(source) => {
                    return Err(ReplayError::Capture { path: options.capture.clone(), source });
                }
            };
            self.summary.packets += 1;
            self.summary.truncated += u64::from(packet.truncated);
            let first_ns = *first_ns.get_or_insert(packet.timestamp_ns);
            self.summary.span_ns =
                self.summary.span_ns.max(Nanos(packet.timestamp_ns.saturating_sub(first_ns)));
            if input::is_oversized(&packet) {
                self.summary.oversized += 1;
                continue;
            }
            if !burst.takes(options, &packet, self.model.next_deadline()) {
                self.forward(&mut burst, outputs)?;
            }
            burst.push(options, &packet);
        }
        self.forward(&mut burst, outputs)?;
        let now = self.clock.now();
        self.summary.take_totals(&self.model.totals());
        self.summary.misses = F::misses(&mut self.model);
        let entries = self.model.flow_count();
        self.summary.flows =
            self.model.flows(now, &FlowFilter::default(), &mut FlowCursor::default(), entries + 1);
        self.summary.macs = self.model.macs(now).len();
        Ok(self.summary)
    }

    /// Advances the time to the burst, forwards it, and lets the model process the resulting events.
    fn forward(&mut self, burst: &mut Burst, outputs: &mut Outputs) -> Result<(), ReplayError> {
        if burst.packets.is_empty() {
            return Ok(());
        }
        self.pass_time(burst.start_ns());
        let now = self.clock.advance_to(burst.start_ns());
        self.forwarder.forward(&mut self.model, now, burst);
        self.do_housekeeping(now);
        self.summary.ports.entry(burst.in_port).or_default().received += burst.packets.len() as u64;
        let (summary, mut written) = (&mut self.summary, Ok(()));
        self.forwarder.take_sent(&mut self.model, |port, sent| {
            summary.ports.entry(port).or_default().sent += sent.len() as u64;
            let Some(output) = outputs.ports.get_mut(&port) else { return };
            for (number, bytes) in sent {
                if let (Ok(()), Some(packet)) = (&written, burst.packet(number)) {
                    written = output.write(packet, bytes.len(), &bytes);
                }
            }
        });
        written?;
        self.packet_ins.sort_by_key(|packet_in| packet_in.frame.meta.sequence);
        for packet_in in std::mem::take(&mut self.packet_ins) {
            let bytes = packet_in.frame.bytes();
            let asked = bytes.len().min(usize::from(packet_in.max_len));
            if let Some(packet) = burst.packet(packet_in.frame.meta.sequence) {
                outputs.controller.write(packet, bytes.len(), &bytes[..asked])?;
            }
            self.summary.packet_ins += 1;
            self.model.recycle(packet_in.frame);
        }
        burst.next();
        Ok(())
    }

    /// Advances the clock from one deadline to the next, up to `until`.
    fn pass_time(&mut self, until: Nanos) {
        while let Some(deadline) = self.model.next_deadline().filter(|at| *at <= until) {
            let now = self.clock.advance_to(deadline);
            self.do_housekeeping(now);
        }
    }

    /// Runs the model and the engine until no work is left at this time.
    fn do_housekeeping(&mut self, now: Nanos) {
        loop {
            self.forwarder.settle(&mut self.model, now);
            let more = self.model.poll(now);
            while let Some(message) = self.model.next_async_message() {
                if let AsyncMessage::PacketIn(packet_in) = message {
                    self.packet_ins.push(packet_in);
                }
            }
            self.forwarder.settle(&mut self.model, now);
            if !more {
                break;
            }
        }
    }
}
