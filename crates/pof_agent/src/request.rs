// SPDX-License-Identifier: Apache-2.0
//! Dispatch of requests to the functions that execute them.

use crate::channel::{PendingRequest, PofChannel, PofChannelEvent};
use crate::job::Job;
use crate::refusal::PofRefusal;
use crate::shared::Shared;
use crate::work::{self, Asked, PofChannelId, PofWork, Then};
use crate::{
    counter_mod, describe, flow_mod, group_mod, long, meter_mod, packet_out, port_mod, reset, slot, table_mod,
};
use dataplane::DataPlane;
use flow::Settings;
use model::agent::Context;
use pof::message::setup::{PofSwitchConfig, SlotForwarding};
use pof::message::table::FlowCommand;
use pof::{PofMessage, error};

/// Flag of SET_CONFIG that drops IP fragments.
const DROP_FRAGMENTS: u16 = 1;

impl PofChannel {
    /// Executes or refuses a request.
    pub(crate) fn execute<D: DataPlane>(
        &mut self,
        id: PofChannelId,
        pending: PendingRequest,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Option<PofChannelEvent> {
        let (xid, done) = match pending {
            PendingRequest::Reset => {
                shared.sole = Some(id);
                self.apply_config(context);
                let asked = (reset::changes(), Then::Reset);
                (0, self.apply(id, 0, asked, shared, context))
            }
            PendingRequest::Request(request) => {
                (request.xid, self.request(id, request.xid, &request.message, shared, context))
            }
        };
        let hidden = Some(std::mem::take(&mut self.hidden_ports)).filter(|ports| *ports > 0);
        let refused = done.err().map(|refusal| self.refuse(xid, &refusal));
        refused.or(hidden.map(PofChannelEvent::HiddenPorts))
    }

    fn request<D: DataPlane>(
        &mut self,
        id: PofChannelId,
        xid: u32,
        message: &PofMessage,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Result<(), PofRefusal> {
        let asked = match message {
            PofMessage::FeaturesRequest => {
                self.job = Some(Job::Features(xid, context.model.barrier()));
                return Ok(());
            }
            PofMessage::SetConfig(config) => return self.set_config(config, context),
            PofMessage::GetConfigRequest => {
                self.describe(xid, shared, context);
                return Ok(());
            }
            PofMessage::TableMod(m) => {
                if let Some(reply) = table_mod::table_mod(m, shared, context)? {
                    self.reply(xid, &PofMessage::TableMod(reply));
                }
                return Ok(());
            }
            PofMessage::FlowMod(m) if m.command == FlowCommand::Query => {
                let found = flow_mod::query(m, shared, context)?;
                self.reply(xid, &PofMessage::FlowMod(found));
                return Ok(());
            }
            PofMessage::FlowMod(m) => return flow_mod::flow_mod(m, shared, context),
            PofMessage::GroupMod(m) => group_mod::group_mod(&m.into(), shared, context)?,
            PofMessage::BucketGroupMod(m) => group_mod::group_mod(&m.into(), shared, context)?,
            PofMessage::MeterMod(m) => meter_mod::meter_mod(m)?,
            PofMessage::PortMod(m) => port_mod::port_mod(m, shared.config.dialect, context)?,
            PofMessage::PacketOut(packet) => return packet_out::packet_out(packet, shared, context),
            PofMessage::CounterMod(m) => {
                self.job = counter_mod::counter_mod(m, xid, shared, context)?;
                return Ok(());
            }
            PofMessage::CounterRequest(m) => {
                self.job = Some(counter_mod::request(m, xid, shared, context)?);
                return Ok(());
            }
            PofMessage::QueryAllRequest(m) => {
                slot::check(m.slot)?;
                self.job = Some(Job::query_all(xid));
                return Ok(());
            }
            PofMessage::SlotConfig(m) => return slot_config(m.slot, m.forwarding),
            // The session answers or refuses all other messages.
            _ => return Ok(()),
        };
        self.apply(id, xid, asked, shared, context)
    }

    /// Applies changes in one transaction. Long changes go to the driver if the driver accepts them.
    fn apply<D: DataPlane>(
        &mut self,
        id: PofChannelId,
        xid: u32,
        (changes, then): Asked,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Result<(), PofRefusal> {
        if shared.offloads && context.model.is_long(&changes) {
            shared.work = Some(PofWork { channel: id, xid, now: context.now, changes, then });
            self.job = Some(Job::Offloaded);
            return Ok(());
        }
        let result = work::apply(context.now, changes, then, context.model);
        long::end(then, result, shared)
    }

    /// Answers GET_CONFIG_REQUEST. During the handshake, the answer includes the resources and the ports.
    fn describe<D: DataPlane>(&mut self, xid: u32, shared: &Shared, context: &mut Context<'_, D>) {
        let device_id = describe::device_id_of_config(&shared.config);
        let config = PofSwitchConfig { device_id, ..self.config.clone() };
        if std::mem::replace(&mut self.is_described, true) {
            self.reply(xid, &PofMessage::GetConfigReply(config));
            return;
        }
        let all = context.model.ports().count();
        let ports: Vec<_> =
            context.model.ports().filter_map(|port| describe::port(port, &shared.config)).collect();
        self.hidden_ports = all - ports.len();
        let report = describe::resources(&shared.config, context.model.config().limits.entries);
        if self.session.send_description(xid, config, report, ports).is_err() {
            self.lost.counts.reply += 1;
        }
    }

    fn set_config<D: DataPlane>(
        &mut self,
        config: &PofSwitchConfig,
        context: &mut Context<'_, D>,
    ) -> Result<(), PofRefusal> {
        if config.flags > DROP_FRAGMENTS {
            let problem = format!(
                "flags {:#x} of SET_CONFIG are not supported; use 0 (forward IP fragments) or 1 (drop them)",
                config.flags
            );
            return Err(PofRefusal::new(error::SWITCH_CONFIG_BAD_FLAGS, problem));
        }
        self.config = config.clone();
        // Until its handshake is complete, a controller changes nothing.
        if self.is_running() {
            self.apply_config(context);
        }
        Ok(())
    }

    /// Applies the configuration that the controller has set.
    fn apply_config<D: DataPlane>(&self, context: &mut Context<'_, D>) {
        let drop_fragments = self.config.flags == DROP_FRAGMENTS;
        context.model.set_settings(Settings { drop_fragments, ..context.model.settings() });
    }
}

fn slot_config(number: u16, forwarding: SlotForwarding) -> Result<(), PofRefusal> {
    slot::check(number)?;
    match forwarding {
        SlotForwarding::Enabled => Ok(()),
        SlotForwarding::Disabled => {
            let problem = "the only slot of this switch cannot be disabled; disable its ports by PORT_MOD";
            Err(PofRefusal::new(error::BAD_PORT, problem))
        }
    }
}
