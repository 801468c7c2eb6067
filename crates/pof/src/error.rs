// SPDX-License-Identifier: Apache-2.0
//! Error types and codes of POF, and the errors of the codec.
//!
//! POF has the error types and codes of OpenFlow 1.3, adds types 14 and 15, and gives the codes of types 7
//! and 8 other meanings.

use std::borrow::Cow;
use std::fmt;

use openflow::ErrorCode;

use crate::dialect::PofDialect;

/// Types whose codes have other meanings than in OpenFlow 1.3.
const RENUMBERED: [u16; 2] = [7, 8];

/// Type and code of an ERROR message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PofErrorCode {
    /// Error type.
    pub kind: u16,
    /// Code within the type.
    pub code: u16,
}

impl PofErrorCode {
    /// Returns an error code.
    #[must_use]
    pub const fn new(kind: u16, code: u16) -> Self {
        Self { kind, code }
    }

    /// Returns a fault with this code at offset `at` of the structure being read.
    pub(crate) fn at(self, at: usize, reason: impl Into<Cow<'static, str>>) -> Fault {
        Fault { at, code: self, reason: reason.into() }
    }
}

/// Prints the name in the public headers (such as `POFBRC_BAD_TYPE`), or else type and code.
impl fmt::Display for PofErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, name)) = NAMES.iter().find(|(code, _)| code == self) {
            return f.write_str(name);
        }
        if RENUMBERED.contains(&self.kind) {
            return write!(f, "error type {} code {}", self.kind, self.code);
        }
        let standard = ErrorCode::new(self.kind, self.code).to_string();
        match standard.strip_prefix("OFP") {
            Some(rest) => write!(f, "POF{rest}"),
            None => f.write_str(&standard),
        }
    }
}

macro_rules! codes {
    ($($name:ident = $kind:literal, $code:literal;)*) => {
        $(
            #[doc = concat!("POF error type ", $kind, ", code ", $code, ".")]
            pub const $name: PofErrorCode = PofErrorCode::new($kind, $code);
        )*
    };
}

codes! {
    HELLO_INCOMPATIBLE = 0, 0;
    BAD_VERSION = 1, 0;
    BAD_TYPE = 1, 1;
    BAD_LEN = 1, 6;
    BAD_PORT = 1, 11;
    BAD_PACKET = 1, 12;
    ACTION_BAD_TYPE = 2, 0;
    ACTION_BAD_OUT_PORT = 2, 4;
    ACTION_BAD_ARGUMENT = 2, 5;
    ACTION_TOO_MANY = 2, 7;
    ACTION_BAD_OUT_GROUP = 2, 9;
    ACTION_UNSUPPORTED_ORDER = 2, 11;
    INSTRUCTION_UNKNOWN = 3, 0;
    INSTRUCTION_UNSUPPORTED = 3, 1;
    INSTRUCTION_BAD_TABLE_ID = 3, 2;
    INSTRUCTION_BAD_LEN = 3, 7;
    MATCH_BAD_LEN = 4, 1;
    MATCH_BAD_WILDCARDS = 4, 5;
    MATCH_BAD_FIELD = 4, 6;
    FLOW_MOD_BAD_TABLE_ID = 5, 2;
    FLOW_MOD_BAD_COMMAND = 5, 6;
    FLOW_MOD_BAD_FLAGS = 5, 7;
    GROUP_INVALID = 6, 1;
    GROUP_OUT_OF_BUCKETS = 6, 4;
    GROUP_BAD_TYPE = 6, 10;
    GROUP_BAD_COMMAND = 6, 11;
    SWITCH_CONFIG_BAD_FLAGS = 10, 0;
    METER_BAD_COMMAND = 12, 4;
}

macro_rules! own_codes {
    ($($name:ident = $kind:literal, $code:literal, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: PofErrorCode = PofErrorCode::new($kind, $code);)*

        const NAMES: &[(PofErrorCode, &str)] = &[$(($name, $text)),*];
    };
}

// Codes that OpenFlow 1.3 does not have, or to which it gives another meaning.
own_codes! {
    ACTION_BAD_TABLE_ID = 2, 16, "POFBAC_BAD_TABLE_ID";
    INSTRUCTION_TOO_MANY_ACTIONS = 3, 9, "POFBIC_TOO_MANY_ACTIONS";
    INSTRUCTION_TABLE_UNEXIST = 3, 17, "POFBIC_TABLE_UNEXIST";
    INSTRUCTION_ENTRY_UNEXIST = 3, 18, "POFBIC_ENTRY_UNEXIST";
    INSTRUCTION_BAD_OFFSET = 3, 19, "POFBIC_BAD_OFFSET";
    INSTRUCTION_BAD_JUMP = 3, 20, "POFBIC_JUM_TO_INVALID_INST";
    FLOW_MOD_ENTRY_EXIST = 5, 8, "POFFMFC_ENTRY_EXIST";
    FLOW_MOD_ENTRY_UNEXIST = 5, 9, "POFFMFC_ENTRY_UNEXIST";
    FLOW_MOD_BAD_TABLE_TYPE = 5, 10, "POFFMFC_BAD_TABLE_TYPE";
    FLOW_MOD_BAD_ENTRY_ID = 5, 11, "POFFMFC_BAD_ENTRY_ID";
    FLOW_MOD_BAD_COUNTER_ID = 5, 12, "POFFMFC_BAD_COUNTER_ID";
    GROUP_BAD_COUNTER_ID = 6, 15, "POFGMFC_BAD_COUNTER_ID";
    PORT_MOD_UNKNOWN = 7, 0, "POFPMFC_UNKNOWN";
    PORT_MOD_BAD_PORT_ID = 7, 1, "POFPMFC_BAD_PORT_ID";
    TABLE_MOD_UNKNOWN = 8, 0, "POFTMFC_UNKNOWN";
    TABLE_MOD_BAD_COMMAND = 8, 1, "POFTMFC_BAD_COMMAND";
    TABLE_MOD_BAD_TABLE_TYPE = 8, 2, "POFTMFC_BAD_TABLE_TYPE";
    TABLE_MOD_BAD_TABLE_ID = 8, 3, "POFTMFC_BAD_TABLE_ID";
    TABLE_MOD_TABLE_EXIST = 8, 4, "POFTMFC_TABLE_EXIST";
    TABLE_MOD_TABLE_UNEXIST = 8, 5, "POFTMFC_TABLE_UNEXIST";
    TABLE_MOD_BAD_TABLE_SIZE = 8, 6, "POFTMFC_BAD_TABLE_SIZE";
    TABLE_MOD_BAD_KEY_LEN = 8, 7, "POFTMFC_BAD_KEY_LEN";
    TABLE_MOD_TABLE_UNEMPTY = 8, 8, "POFTMFC_TABLE_UNEMPTY";
    COUNTER_UNKNOWN = 15, 0, "POFCMFC_UNKNOWN";
    COUNTER_BAD_COUNTER_ID = 15, 1, "POFCMFC_BAD_COUNTER_ID";
    COUNTER_BAD_COMMAND = 15, 2, "POFCMFC_BAD_COMMAND";
    COUNTER_UNEXIST = 15, 3, "POFCMFC_COUNTER_UNEXIST";
    COUNTER_EXIST = 15, 4, "POFCMFC_COUNTER_EXIST";
}

/// A refusal at an offset of a structure, before the message is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Offset in bytes from the start of the structure.
    pub at: usize,
    pub code: PofErrorCode,
    pub reason: Cow<'static, str>,
}

impl Fault {
    /// Returns the fault with another code.
    pub fn with_code(self, code: PofErrorCode) -> Self {
        Self { code, ..self }
    }

    /// Returns the fault as one of the structure that contains this one at offset `at`.
    pub fn within(mut self, at: usize) -> Self {
        self.at += at;
        self
    }
}

/// Reason why a message is refused, with the code to send in the ERROR message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}, byte {offset}: {reason} ({code})")]
pub struct PofDecodeError {
    /// Code of the ERROR message to send.
    pub code: PofErrorCode,
    /// Name of the message, such as "FLOW_MOD".
    pub message: Cow<'static, str>,
    /// Offset in bytes from the start of the message, including its header of 8 bytes.
    pub offset: usize,
    /// What is wrong at the offset.
    pub reason: Cow<'static, str>,
}

/// Reason why a value cannot be encoded. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PofEncodeError {
    /// The dialect has no such message, action or instruction.
    #[error("dialect {dialect} has no {what}")]
    Missing {
        /// Name of the structure.
        what: &'static str,
        /// Dialect of the channel.
        dialect: PofDialect,
    },
    /// The dialect has no place for a field, or its place is too small for the value.
    #[error("the value of `{field}` does not fit into dialect {dialect}")]
    Unfit {
        /// Name of the field.
        field: &'static str,
        /// Dialect of the channel.
        dialect: PofDialect,
    },
    /// A list has more items than the dialect has slots.
    #[error("`{field}` has {count} items; dialect {dialect} has space for {max}")]
    TooMany {
        /// Name of the list.
        field: &'static str,
        /// Number of items.
        count: usize,
        /// Number of slots.
        max: usize,
        /// Dialect of the channel.
        dialect: PofDialect,
    },
    /// The value is one that every decoder refuses.
    #[error("{0}")]
    Invalid(Cow<'static, str>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_names_of_the_public_headers() {
        assert_eq!(BAD_TYPE.to_string(), "POFBRC_BAD_TYPE");
        assert_eq!(TABLE_MOD_BAD_COMMAND.to_string(), "POFTMFC_BAD_COMMAND");
        assert_eq!(COUNTER_EXIST.to_string(), "POFCMFC_COUNTER_EXIST");
        assert_eq!(PofErrorCode::new(8, 9).to_string(), "error type 8 code 9");
        assert_eq!(PofErrorCode::new(14, 0x7005).to_string(), "error type 14 code 28677");
        let mut codes: Vec<_> = NAMES.iter().map(|(code, _)| (code.kind, code.code)).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), NAMES.len());
    }
}
