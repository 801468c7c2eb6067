// SPDX-License-Identifier: Apache-2.0
//! Requests about bundles: BUNDLE_CONTROL and BUNDLE_ADD_MESSAGE.

use super::bundle::{BYTES, Bundle, MESSAGES, Origin, Size};
use super::channel::Channel;
use super::context::{Context, Refusal};
use super::long::Then;
use super::shared::Shared;
use super::{flow_mod, group, meter, port_mod};
use crate::changes::Change;
use crate::error::ModelError;
use dataplane::DataPlane;
use openflow::bundle::{BundleAdd, BundleControl, BundleKind, code};
use openflow::{Message, Request};

impl Channel {
    pub(super) fn bundle_control<D: DataPlane>(
        &mut self,
        request: &Request,
        control: &BundleControl,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Result<Option<Message>, Refusal> {
        let (id, flags) = (control.bundle_id, control.flags);
        let kind = match control.kind {
            BundleKind::OpenRequest => self.bundles.open(id, flags).map(|()| BundleKind::OpenReply),
            BundleKind::CloseRequest => {
                let bundle = self.bundles.get(id, flags)?;
                if std::mem::replace(&mut bundle.closed, true) {
                    return Err(Refusal::new(
                        code::BUNDLE_CLOSED,
                        format!("bundle {id:#x} is closed already"),
                    ));
                }
                Ok(BundleKind::CloseReply)
            }
            BundleKind::CommitRequest => {
                self.bundles.get(id, flags)?;
                // The bundle is discarded even if the commit fails.
                let Some(bundle) = self.take_bundle(id, shared) else { return Ok(None) };
                let then = Then::Commit(*control, bundle.origins);
                return self.apply(request, bundle.changes, then, shared, context);
            }
            BundleKind::DiscardRequest => match self.take_bundle(id, shared) {
                Some(_) => Ok(BundleKind::DiscardReply),
                None => Err(Refusal::new(code::BAD_ID, format!("there is no bundle {id:#x} to discard"))),
            },
            BundleKind::OpenReply
            | BundleKind::CloseReply
            | BundleKind::CommitReply
            | BundleKind::DiscardReply => {
                Err(Refusal::new(code::BAD_TYPE, "only a switch sends replies to bundle controls"))
            }
        }?;
        Ok(Some(Message::BundleControl(BundleControl { bundle_id: id, kind, flags })))
    }

    /// Removes a bundle, and subtracts its size from the total of all channels.
    fn take_bundle(&mut self, id: u32, shared: &mut Shared) -> Option<Bundle> {
        let bundle = self.bundles.take(id)?;
        shared.bundled = shared.bundled.minus(bundle.size);
        Some(bundle)
    }

    /// Sends an ERROR for the message at fault. Returns the refusal of the commit request.
    pub(super) fn refuse_bundle(
        &mut self,
        control: &BundleControl,
        origins: &[Origin],
        at: usize,
        error: &ModelError,
    ) -> Refusal {
        if let Some(Origin { xid, head }) = origins.get(at) {
            self.session.send_error(*xid, error.openflow(), head);
        }
        let id = control.bundle_id;
        Refusal::new(code::MSG_FAILED, format!("message {at} of bundle {id:#x}, counted from 0: {error}"))
    }

    pub(super) fn bundle_add(
        &mut self,
        request: &Request,
        add: &BundleAdd,
        shared: &mut Shared,
    ) -> Result<(), Refusal> {
        let change = change(&add.message)?;
        // The first message may open the bundle (ONF extension 230).
        if !self.bundles.is_open(add.bundle_id) {
            self.bundles.open(add.bundle_id, add.flags)?;
        }
        let bundle = self.bundles.get(add.bundle_id, add.flags)?;
        if bundle.closed {
            return Err(Refusal::new(code::BUNDLE_CLOSED, "the bundle is closed; commit or discard it"));
        }
        let one = Size { messages: 1, bytes: request.head.message_bytes() };
        let all = shared.bundled.plus(one);
        if all.messages > MESSAGES || all.bytes > BYTES {
            let Size { messages, bytes } = shared.bundled;
            return Err(Refusal::new(
                code::MSG_TOO_MANY,
                format!(
                    "bundles hold {messages} messages of {bytes} bytes; the maximum is {MESSAGES} messages of {BYTES} bytes; commit some first"
                ),
            ));
        }
        shared.bundled = all;
        bundle.size = bundle.size.plus(one);
        bundle.origins.push(Origin { xid: request.xid, head: request.head });
        bundle.changes.push(change);
        Ok(())
    }
}

/// Returns the answer to a commit.
pub fn committed(control: BundleControl) -> Message {
    Message::BundleControl(BundleControl { kind: BundleKind::CommitReply, ..control })
}

fn change(message: &Message) -> Result<Change, Refusal> {
    match message {
        Message::FlowMod(m) if flow_mod::buffer(m).is_some() => {
            Err(Refusal::new(code::MSG_UNSUP, "a flow-mod in a bundle cannot refer to a buffered packet"))
        }
        Message::FlowMod(m) => Ok(Change::Flow(m.flow.clone())),
        Message::GroupMod(m) => Ok(group::change(m)),
        Message::MeterMod(m) => Ok(meter::change(m)),
        Message::PortMod(m) => port_mod::change(m),
        Message::StatelessMod(m) => Ok(Change::Stateless(m.clone())),
        _ => Err(Refusal::new(
            code::MSG_UNSUP,
            "a bundle can contain only flow-mods, group-mods, meter-mods, port-mods and stateless_mods",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::context::ChannelId;
    use flow::{Action, FlowMod, Instructions, Nanos};
    use openflow::bundle::FLAG_ATOMIC;
    use openflow::{SessionConfig, SessionEvent, encode};

    /// Adds a flow-mod with `actions` actions of 8 bytes each to the bundle. Returns the size of the message.
    fn added(channel: &mut Channel, shared: &mut Shared, actions: usize) -> Result<usize, Refusal> {
        let instructions = Instructions::apply(vec![Action::PopVlan; actions]);
        let flow = FlowMod { instructions, ..FlowMod::default() };
        let message =
            Box::new(Message::FlowMod(openflow::flow_mod::FlowModMessage { flow, buffer_id: None }));
        let mut bytes = Vec::new();
        encode(&Message::BundleAdd(BundleAdd { bundle_id: 1, flags: FLAG_ATOMIC, message }), 1, &mut bytes)
            .unwrap();
        channel.receive(&bytes, Nanos(0));
        let Some(SessionEvent::Request(request)) = channel.session.next_event() else {
            panic!("expected a request")
        };
        let Message::BundleAdd(add) = &request.message else { panic!("expected a message for a bundle") };
        channel.bundle_add(&request, add, shared).map(|()| bytes.len())
    }

    fn open() -> Channel {
        let mut channel = Channel::new(ChannelId(0), SessionConfig::default(), Nanos(0));
        let mut hello = Vec::new();
        encode(&Message::Hello(openflow::Hello::supported()), 0, &mut hello).unwrap();
        channel.receive(&hello, Nanos(0));
        assert_eq!(channel.session.next_event(), Some(SessionEvent::Opened));
        channel
    }

    #[test]
    fn bundles_are_limited_in_bytes() {
        let others = Size { messages: 7, bytes: BYTES - 150_000 };
        let mut shared = Shared { bundled: others, ..Shared::default() };
        let mut channel = open();
        let large = added(&mut channel, &mut shared, 8_000).unwrap();
        assert!(large > 64_000);
        added(&mut channel, &mut shared, 8_000).unwrap();
        let both = Size { messages: 2, bytes: 2 * large };
        assert_eq!((channel.bundles.size(), shared.bundled), (both, others.plus(both)));
        let refusal = added(&mut channel, &mut shared, 8_000).unwrap_err();
        assert_eq!(refusal.code, code::MSG_TOO_MANY);
        assert_eq!(shared.bundled, others.plus(both), "a refused message does not count");
        let small = added(&mut channel, &mut shared, 1).unwrap();
        assert_eq!(channel.bundles.size(), both.plus(Size { messages: 1, bytes: small }));

        channel.take_bundle(1, &mut shared).unwrap();
        assert_eq!(shared.bundled, others, "a discarded bundle frees its space");
        added(&mut channel, &mut shared, 8_000).unwrap();
        channel.give_back(&mut shared);
        assert_eq!(shared.bundled, others);
    }

    #[test]
    fn bundles_are_limited_in_messages() {
        let mut shared = Shared { bundled: Size { messages: MESSAGES - 1, bytes: 0 }, ..Shared::default() };
        let mut channel = open();
        added(&mut channel, &mut shared, 1).unwrap();
        assert_eq!(added(&mut channel, &mut shared, 1).unwrap_err().code, code::MSG_TOO_MANY);
    }
}
