// SPDX-License-Identifier: Apache-2.0
//! ERROR (section 7.4.4) and experimenter messages (7.5.4). Only the ONF's bundles and Shunt's own
//! experimenter messages are supported.

use crate::bundle::{BundleAdd, BundleControl};
use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError, ErrorCode};
use crate::experimenter;
use crate::message::Message;
use crate::stateless;

/// ERROR message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorMessage {
    /// Type and code of the error.
    pub code: ErrorCode,
    /// First 64 bytes of the refused message, or the whole message if it is shorter. For OFPET_HELLO_FAILED,
    /// the data is text.
    pub data: Vec<u8>,
}

impl ErrorMessage {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (kind, code) = (r.u16()?, r.u16()?);
        let code = match kind {
            0xffff => ErrorCode::of_experimenter(r.u32()?, code),
            _ => ErrorCode::new(kind, code),
        };
        Ok(Self { code, data: r.rest().to_vec() })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(self.code.kind);
        out.put_u16(self.code.code);
        if let Some(experimenter) = self.code.experimenter {
            out.put_u32(experimenter);
        }
        out.put(&self.data);
    }
}

/// Message types of the ONF's extension 230 (bundles for OpenFlow 1.3).
const BUNDLE_CONTROL: u32 = 2300;
const BUNDLE_ADD: u32 = 2301;

pub(crate) fn decode_experimenter(xid: u32, r: &mut Reader<'_>) -> Result<Message, DecodeError> {
    let (experimenter, exp_type) = (r.u32()?, r.u32()?);
    match (experimenter, exp_type) {
        (experimenter::ONF, BUNDLE_CONTROL) => BundleControl::decode(r).map(Message::BundleControl),
        (experimenter::ONF, BUNDLE_ADD) => BundleAdd::decode(xid, r).map(Message::BundleAdd),
        (experimenter::EXPERIMENTER, experimenter::message::STATELESS_MOD) => stateless::decode_change(r).map(Message::StatelessMod),
        (experimenter::EXPERIMENTER, experimenter::message::STATELESS_REQUEST) => Ok(Message::StatelessRequest),
        (experimenter::EXPERIMENTER, experimenter::message::STATELESS_REPLY) => stateless::decode_reply(r).map(Message::StatelessReply),
        (experimenter::ONF | experimenter::EXPERIMENTER, _) => error::BAD_EXP_TYPE
            .says(format!("message {exp_type} of experimenter {experimenter:#x} is not known")),
        _ => error::BAD_EXPERIMENTER.says(format!(
            "messages of experimenter {experimenter:#x} (here type {exp_type}) are unknown; supported are bundles of the ONF (0x4f4e4600, types 2300 and 2301) and stateless forwarding ({:#x}, types 1 to 3)",
            experimenter::EXPERIMENTER
        )),
    }
}

/// Returns whether the bytes after a header are a bundle message.
pub(crate) fn is_bundle(body: &[u8]) -> bool {
    let begins =
        |exp_type: u32| body.starts_with([experimenter::ONF, exp_type].map(u32::to_be_bytes).as_flattened());
    begins(BUNDLE_CONTROL) || begins(BUNDLE_ADD)
}

/// Returns whether the bytes after a header are a stateless_mod.
pub(crate) fn is_stateless_mod(body: &[u8]) -> bool {
    let numbers = [experimenter::EXPERIMENTER, experimenter::message::STATELESS_MOD].map(u32::to_be_bytes);
    body.starts_with(numbers.as_flattened())
}

/// Writes an experimenter message after its header. Writes nothing for any other message.
pub(crate) fn encode_experimenter(message: &Message, xid: u32, out: &mut Vec<u8>) {
    let mut begin = |experimenter: u32, exp_type: u32| {
        out.put_u32(experimenter);
        out.put_u32(exp_type);
    };
    match message {
        Message::BundleControl(control) => {
            begin(experimenter::ONF, BUNDLE_CONTROL);
            control.encode(out);
        }
        Message::BundleAdd(add) => {
            begin(experimenter::ONF, BUNDLE_ADD);
            add.encode(xid, out);
        }
        Message::StatelessMod(change) => {
            begin(experimenter::EXPERIMENTER, experimenter::message::STATELESS_MOD);
            stateless::encode_change(change, out);
        }
        Message::StatelessRequest => {
            begin(experimenter::EXPERIMENTER, experimenter::message::STATELESS_REQUEST)
        }
        Message::StatelessReply(reply) => {
            begin(experimenter::EXPERIMENTER, experimenter::message::STATELESS_REPLY);
            stateless::encode_reply(reply, out);
        }
        _ => {}
    }
}
