// SPDX-License-Identifier: Apache-2.0
//! Bundles for OpenFlow 1.3 (ONF extension 230, experimenter 0x4f4e4600), as `ovs-ofctl --bundle` uses them.

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError, ErrorCode};
use crate::header::{HEADER_BYTES, Header, VERSION, kind};
use crate::message::Message;
use crate::{experimenter, symmetric};

/// Error codes of the extension (OFPBFC_*).
pub mod code {
    use super::{ErrorCode, experimenter};

    macro_rules! codes {
        ($($name:ident = $number:literal, $text:literal;)*) => {
            $(#[doc = $text] pub const $name: ErrorCode = ErrorCode::of_experimenter(experimenter::ONF, $number);)*
        };
    }

    codes! {
        UNKNOWN = 2300, "Unspecified error.";
        EPERM = 2301, "Permissions error.";
        BAD_ID = 2302, "The bundle does not exist.";
        BUNDLE_EXIST = 2303, "The bundle exists already.";
        BUNDLE_CLOSED = 2304, "The bundle is closed.";
        OUT_OF_BUNDLES = 2305, "Too many bundles.";
        BAD_TYPE = 2306, "Unsupported or unknown control type.";
        BAD_FLAGS = 2307, "Unsupported, unknown or inconsistent flags.";
        MSG_BAD_LEN = 2308, "Length problem in the included message.";
        MSG_BAD_XID = 2309, "The transaction number of the included message differs from that of the enclosing message.";
        MSG_UNSUP = 2310, "Unsupported message in a bundle.";
        MSG_CONFLICT = 2311, "Messages of the bundle conflict.";
        MSG_TOO_MANY = 2312, "Too many messages in the bundle.";
        MSG_FAILED = 2313, "A message of the bundle failed.";
        TIMEOUT = 2314, "The bundle took too long.";
        BUNDLE_IN_PROGRESS = 2315, "The bundle locks its resource.";
    }
}

/// Type of a bundle control message (OFPBCT_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BundleKind {
    /// Open the bundle.
    OpenRequest,
    /// The bundle is open.
    OpenReply,
    /// Close the bundle. No more messages can be added.
    CloseRequest,
    /// The bundle is closed.
    CloseReply,
    /// Apply all messages of the bundle, or none of them.
    CommitRequest,
    /// All messages were applied.
    CommitReply,
    /// Discard the bundle.
    DiscardRequest,
    /// The bundle was discarded.
    DiscardReply,
}

const KINDS: [BundleKind; 8] = [
    BundleKind::OpenRequest,
    BundleKind::OpenReply,
    BundleKind::CloseRequest,
    BundleKind::CloseReply,
    BundleKind::CommitRequest,
    BundleKind::CommitReply,
    BundleKind::DiscardRequest,
    BundleKind::DiscardReply,
];

/// OFPBF_ATOMIC: a packet is processed either with all changes of the bundle or with none.
pub const FLAG_ATOMIC: u16 = 1;
/// OFPBF_ORDERED: messages are applied in order.
pub const FLAG_ORDERED: u16 = 2;

/// Opens, closes, commits or discards a bundle, or is the reply to such a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BundleControl {
    /// Number of the bundle, chosen by the controller.
    pub bundle_id: u32,
    /// Type of the request or reply.
    pub kind: BundleKind,
    /// Flags [`FLAG_ATOMIC`] and [`FLAG_ORDERED`].
    pub flags: u16,
}

impl BundleControl {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (bundle_id, kind, flags) = (r.u32()?, r.u16()?, r.u16()?);
        let Some(kind) = KINDS.get(usize::from(kind)) else {
            return code::BAD_TYPE.says(format!("bundle control type {kind}; types are 0 to 7"));
        };
        // All properties are experimenter properties, which are ignored.
        r.rest();
        Ok(Self { bundle_id, kind: *kind, flags })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.bundle_id);
        out.put_u16(self.kind as u16);
        out.put_u16(self.flags);
    }
}

/// Adds a message to a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleAdd {
    /// Number of the bundle.
    pub bundle_id: u32,
    /// Flags of the bundle, as in [`BundleControl`].
    pub flags: u16,
    /// Message to add. Its transaction number equals that of the enclosing message.
    pub message: Box<Message>,
}

impl BundleAdd {
    pub(crate) fn decode(xid: u32, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bundle_id = r.u32()?;
        r.skip(2)?;
        let flags = r.u16()?;
        let rest = r.rest();
        let Some(header) = Header::read(rest) else {
            return code::MSG_BAD_LEN.says(format!(
                "the message in a bundle has {} bytes, which is less than a header",
                rest.len()
            ));
        };
        let length = usize::from(header.length);
        if length < HEADER_BYTES || length > rest.len() {
            return code::MSG_BAD_LEN.says(format!(
                "the message in a bundle claims {length} bytes, but {} are present",
                rest.len()
            ));
        }
        if header.version != VERSION {
            return error::BAD_VERSION.says(format!(
                "the message in a bundle has version {}; it must have version 4",
                header.version
            ));
        }
        if header.xid != xid {
            return code::MSG_BAD_XID.says(format!(
                "the message in a bundle has transaction number {:#x}, but the enclosing message has {xid:#x}",
                header.xid
            ));
        }
        let body = &rest[HEADER_BYTES..length];
        // This check also prevents nested bundles.
        let is_known = match header.kind {
            kind::FLOW_MOD | kind::GROUP_MOD | kind::PORT_MOD | kind::METER_MOD | kind::PACKET_OUT => true,
            kind::EXPERIMENTER => symmetric::is_stateless_mod(body),
            _ => false,
        };
        if !is_known {
            return code::MSG_UNSUP.says(format!("a message of type {} cannot be in a bundle", header.kind));
        }
        // Properties may follow the message, but none are defined.
        let message = Message::decode_body(header, body)?;
        Ok(Self { bundle_id, flags, message: Box::new(message) })
    }

    pub(crate) fn encode(&self, xid: u32, out: &mut Vec<u8>) {
        out.put_u32(self.bundle_id);
        out.zeros(2);
        out.put_u16(self.flags);
        self.message.encode_one(xid, out);
    }
}
