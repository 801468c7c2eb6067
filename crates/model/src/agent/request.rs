// SPDX-License-Identifier: Apache-2.0
//! Dispatch of requests to the functions that answer them.

use super::channel::{Channel, Job};
use super::context::{Context, Refusal};
use super::describe;
use super::dump::Dump;
use super::long::Then;
use super::shared::Shared;
use crate::changes::Change;
use dataplane::DataPlane;
use flow::Settings;
use openflow::error;
use openflow::features::{Fragments, SwitchConfig};
use openflow::role::Role;
use openflow::stateless::StatelessReplies;
use openflow::{Message, Request};

impl Channel {
    /// Executes a request. Returns the answer if it is available immediately.
    pub(super) fn answer<D: DataPlane>(
        &mut self,
        request: &Request,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Result<Option<Message>, Refusal> {
        if request.message.is_barred_for_slaves()
            && let Some(refusal) = self.barred(shared)
        {
            if let Message::MultipartRequest(part) = &request.message {
                self.layout.refuse(request.xid, part.more);
            }
            return Err(refusal);
        }
        self.knows_marks |= marks(&request.message);
        match &request.message {
            Message::FeaturesRequest => Ok(Some(Message::FeaturesReply(describe::features(
                context.model.config(),
                &context.model.table_capabilities(),
            )))),
            Message::GetConfigRequest => {
                let drops = context.model.settings().drop_fragments;
                let fragments = if drops { Fragments::Drop } else { Fragments::Normal };
                Ok(Some(Message::GetConfigReply(SwitchConfig { fragments, ..self.config })))
            }
            Message::SetConfig(config) => self.set_config(*config, shared, context).map(|()| None),
            Message::BarrierRequest => {
                self.begin(Job::Barrier(request.xid, context.model.barrier()));
                Ok(None)
            }
            Message::FlowMod(m) => {
                let buffer = super::flow_mod::known_buffer(m, shared, context.now)?;
                let change = Change::Flow(m.flow.clone());
                self.apply(request, vec![change], Then::Packet(buffer), shared, context)
            }
            Message::PortMod(m) => self.change(request, super::port_mod::change(m)?, shared, context),
            Message::TableMod(table_mod) => match table_mod.config {
                // Bits 0 and 1 are OFPTC_DEPRECATED_MASK. They had a meaning before OpenFlow 1.3.
                0..=3 => Ok(None),
                _ => {
                    Err(Refusal::new(error::TABLE_MOD_BAD_CONFIG, "OpenFlow 1.3 has no table configuration"))
                }
            },
            Message::GroupMod(m) => self.change(request, super::group::change(m), shared, context),
            Message::MeterMod(m) => self.change(request, super::meter::change(m), shared, context),
            Message::PacketOut(packet) => {
                super::packet_out::packet_out(context, shared, packet).map(|()| None)
            }
            Message::StatelessMod(m) => self.change(request, Change::Stateless(m.clone()), shared, context),
            Message::StatelessRequest => {
                let stateless_config = StatelessReplies::new(context.model.stateless().cloned());
                self.begin(Job::Dump(Box::new(Dump::Stateless(request.xid, stateless_config))));
                Ok(None)
            }
            Message::MultipartRequest(asked) => self.multipart(request, asked, shared, context),
            Message::QueueGetConfigRequest { port } => super::queues::config(*port, context).map(Some),
            Message::RoleRequest(asked) => self.role_request(asked, shared).map(Some),
            Message::GetAsyncRequest => Ok(Some(Message::GetAsyncReply(self.async_config))),
            Message::SetAsync(config) => {
                self.async_config = *config;
                shared.subscriptions_changed = true;
                Ok(None)
            }
            Message::BundleControl(control) => self.bundle_control(request, control, shared, context),
            Message::BundleAdd(add) => self.bundle_add(request, add, shared).map(|()| None),
            // The session answers or refuses all other messages.
            _ => Ok(None),
        }
    }

    fn set_config<D: DataPlane>(
        &mut self,
        config: SwitchConfig,
        shared: &Shared,
        context: &mut Context<'_, D>,
    ) -> Result<(), Refusal> {
        if config.fragments == Fragments::Reassemble {
            return Err(Refusal::new(
                error::SWITCH_CONFIG_BAD_FLAGS,
                "fragments are not reassembled here; use OFPC_FRAG_NORMAL or OFPC_FRAG_DROP",
            ));
        }
        self.config = config;
        // Fragment handling applies to the whole switch, so a slave must not change it. The packet-in
        // length `miss_send_len` is a setting of each channel.
        if self.role(shared) != Role::Slave {
            let drop_fragments = config.fragments == Fragments::Drop;
            context.model.set_settings(Settings { drop_fragments, ..context.model.settings() });
        }
        Ok(())
    }

    /// Applies a change. The controller gets an answer only if the change is refused.
    fn change<D: DataPlane>(
        &mut self,
        request: &Request,
        change: Change,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Result<Option<Message>, Refusal> {
        self.apply(request, vec![change], Then::Packet(None), shared, context)
    }
}

/// Returns whether a request marks an entry explicitly as low-latency or normal.
fn marks(message: &Message) -> bool {
    match message {
        Message::FlowMod(m) => m.flow.low_latency.is_some(),
        Message::BundleAdd(add) => marks(&add.message),
        _ => false,
    }
}
