// SPDX-License-Identifier: Apache-2.0
//! Bundles: changes that take effect together, or not at all.

use super::channel::Channel;
use super::long::Then;
use super::{Context, Refusal, Shared, flow_mod, group, meter, port_mod};
use crate::changes::Change;
use crate::error::ModelError;
use dataplane::DataPlane;
use openflow::bundle::{BundleAdd, BundleControl, BundleKind, FLAG_ATOMIC, FLAG_ORDERED, code};
use openflow::{Message, Request, RequestHead};
use std::collections::BTreeMap;

/// Maximum number of open bundles per channel.
const BUNDLES: usize = 16;
/// Maximum number of messages in the open bundles of all channels.
const MESSAGES: usize = 1_000_000;
/// Maximum size in bytes of the messages in all open bundles, as received. It is enough for a million
/// ordinary flow-mods. Decoded, a message takes up to about six times its size (actions of 8 bytes).
const BYTES: usize = 192 * 1_024 * 1_024;

/// Size of uncommitted bundles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    messages: usize,
    bytes: usize,
}

impl Size {
    fn plus(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }

    /// Subtracts the size of removed bundles.
    pub fn minus(self, other: Self) -> Self {
        Self {
            messages: self.messages.saturating_sub(other.messages),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

#[derive(Debug)]
struct Bundle {
    flags: u16,
    closed: bool,
    size: Size,
    /// Transaction ID and first bytes of each message, for an ERROR about the message.
    origins: Vec<(u32, RequestHead)>,
    changes: Vec<Change>,
}

/// The bundles of a channel, by bundle ID.
#[derive(Debug, Default)]
pub struct Bundles(BTreeMap<u32, Bundle>);

impl Bundles {
    /// Returns the total size of the channel's bundles.
    pub fn size(&self) -> Size {
        self.0.values().fold(Size::default(), |sum, bundle| sum.plus(bundle.size))
    }

    fn open(&mut self, id: u32, flags: u16) -> Result<(), Refusal> {
        if flags & !(FLAG_ATOMIC | FLAG_ORDERED) != 0 {
            return Err(Refusal::new(code::BAD_FLAGS, format!("bundle flags {flags:#x}; 1 and 2 are known")));
        }
        if self.0.contains_key(&id) {
            return Err(Refusal::new(code::BUNDLE_EXIST, format!("bundle {id:#x} is open already")));
        }
        if self.0.len() >= BUNDLES {
            return Err(Refusal::new(code::OUT_OF_BUNDLES, format!("{BUNDLES} bundles are open, the most")));
        }
        let (size, origins, changes) = Default::default();
        self.0.insert(id, Bundle { flags, closed: false, size, origins, changes });
        Ok(())
    }

    fn get(&mut self, id: u32, flags: u16) -> Result<&mut Bundle, Refusal> {
        match self.0.get_mut(&id) {
            None => Err(Refusal::new(code::BAD_ID, format!("there is no bundle {id:#x}; open it first"))),
            Some(bundle) if bundle.flags != flags => Err(Refusal::new(
                code::BAD_FLAGS,
                format!("bundle {id:#x} was opened with flags {:#x}, not {flags:#x}", bundle.flags),
            )),
            Some(bundle) => Ok(bundle),
        }
    }

    fn take(&mut self, id: u32, shared: &mut Shared) -> Option<Bundle> {
        let bundle = self.0.remove(&id)?;
        shared.bundled = shared.bundled.minus(bundle.size);
        Some(bundle)
    }
}

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
                // The bundle is discarded, whether or not the commit succeeds.
                let Some(bundle) = self.bundles.take(id, shared) else { return Ok(None) };
                let then = Then::Commit(*control, bundle.origins);
                return self.make(request, bundle.changes, then, shared, context);
            }
            BundleKind::DiscardRequest => match self.bundles.take(id, shared) {
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

    /// Sends an ERROR for the message at fault. Returns the refusal of the commit.
    pub(super) fn refuse_bundle(
        &mut self,
        control: &BundleControl,
        origins: &[(u32, RequestHead)],
        at: usize,
        error: &ModelError,
    ) -> Refusal {
        if let Some((xid, head)) = origins.get(at) {
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
        if !self.bundles.0.contains_key(&add.bundle_id) {
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
                    "bundles hold {messages} messages of {bytes} bytes; {MESSAGES} of {BYTES} are the most; commit \
                     some first"
                ),
            ));
        }
        shared.bundled = all;
        bundle.size = bundle.size.plus(one);
        bundle.origins.push((request.xid, request.head));
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
            Err(Refusal::new(code::MSG_UNSUP, "a flow-mod in a bundle can not name a held packet"))
        }
        Message::FlowMod(m) => Ok(Change::Flow(m.flow.clone())),
        Message::GroupMod(m) => Ok(group::change(m)),
        Message::MeterMod(m) => Ok(meter::change(m)),
        Message::PortMod(m) => port_mod::change(m),
        Message::StatelessMod(m) => Ok(Change::Stateless(m.clone())),
        _ => Err(Refusal::new(
            code::MSG_UNSUP,
            "flow-mods, group-mods, meter-mods, port-mods and stateless_mods can be in a bundle, nothing else",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::ChannelId;
    use flow::{Action, FlowMod, Instructions};
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
        channel.receive(&bytes, 0);
        let Some(SessionEvent::Request(request)) = channel.session.next_event() else { panic!("no request") };
        let Message::BundleAdd(add) = &request.message else { panic!("another message") };
        channel.bundle_add(&request, add, shared).map(|()| bytes.len())
    }

    fn open() -> Channel {
        let mut channel = Channel::new(ChannelId(0), SessionConfig::default(), 0);
        let mut hello = Vec::new();
        encode(&Message::Hello(openflow::Hello::supported()), 0, &mut hello).unwrap();
        channel.receive(&hello, 0);
        assert_eq!(channel.session.next_event(), Some(SessionEvent::Opened));
        channel
    }

    #[test]
    fn bundles_hold_so_many_bytes() {
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
        assert_eq!(shared.bundled, others.plus(both), "what is refused is not held");
        let small = added(&mut channel, &mut shared, 1).unwrap();
        assert_eq!(channel.bundles.size(), both.plus(Size { messages: 1, bytes: small }));

        channel.bundles.take(1, &mut shared).unwrap();
        assert_eq!(shared.bundled, others, "what is gone makes room");
        added(&mut channel, &mut shared, 8_000).unwrap();
        channel.give_back(&mut shared);
        assert_eq!(shared.bundled, others);
    }

    #[test]
    fn bundles_hold_so_many_messages() {
        let mut shared = Shared { bundled: Size { messages: MESSAGES - 1, bytes: 0 }, ..Shared::default() };
        let mut channel = open();
        added(&mut channel, &mut shared, 1).unwrap();
        assert_eq!(added(&mut channel, &mut shared, 1).unwrap_err().code, code::MSG_TOO_MANY);
    }
}
