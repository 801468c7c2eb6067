// SPDX-License-Identifier: Apache-2.0
//! Error types and codes of OpenFlow 1.3 (section 7.4.4), and the error types of the codec.

use crate::experimenter;
use std::borrow::Cow;
use std::fmt;

/// Type of the errors that experimenters define (OFPET_EXPERIMENTER).
const EXPERIMENTER: u16 = 0xffff;

/// Type and code of an ERROR message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode {
    /// Error type (OFPET_*).
    pub kind: u16,
    /// Code within the type. If `experimenter` is set, this is the experimenter's `exp_type`.
    pub code: u16,
    /// Experimenter that defines the code. It is `Some` if and only if `kind` is OFPET_EXPERIMENTER.
    pub experimenter: Option<u32>,
}

impl ErrorCode {
    /// Returns a code of the standard.
    #[must_use]
    pub const fn new(kind: u16, code: u16) -> Self {
        Self { kind, code, experimenter: None }
    }

    /// Returns a code that an experimenter defines.
    #[must_use]
    pub const fn of_experimenter(experimenter: u32, exp_type: u16) -> Self {
        Self { kind: EXPERIMENTER, code: exp_type, experimenter: Some(experimenter) }
    }

    /// Returns an error with this code and the description `problem`.
    pub(crate) fn says<T>(self, problem: impl Into<Cow<'static, str>>) -> Result<T, DecodeError> {
        Err(DecodeError { code: self, problem: problem.into() })
    }
}

/// Converts a code of the standard. OFPET_EXPERIMENTER stands for Shunt's own codes.
impl From<(u16, u16)> for ErrorCode {
    fn from((kind, code): (u16, u16)) -> Self {
        if kind == EXPERIMENTER {
            Self::of_experimenter(experimenter::EXPERIMENTER, code)
        } else {
            Self::new(kind, code)
        }
    }
}

/// Prints the standard's name (such as `OFPBMC_BAD_FIELD`), or else type and code.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (NAMES.iter().find(|(code, _)| code == self), self.experimenter) {
            (Some((_, name)), _) => f.write_str(name),
            (None, Some(experimenter)) => write!(f, "experimenter {experimenter:#x} error {}", self.code),
            (None, None) => write!(f, "error type {} code {}", self.kind, self.code),
        }
    }
}

/// Invalid stateless configuration (Shunt's own code).
pub const STATELESS_BAD_CONFIG: ErrorCode = ErrorCode::of_experimenter(experimenter::EXPERIMENTER, 1);

/// Reason why a message is refused, with the code to send in the ERROR message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} ({code})")]
pub struct DecodeError {
    /// Code of the ERROR message to send.
    pub code: ErrorCode,
    /// Description for the log.
    pub problem: Cow<'static, str>,
}

/// The length of a message, in bytes, if it does not fit into the 16-bit length field. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message would have {0} bytes; an OpenFlow message has at most 65535; split its content")]
pub struct TooLong(pub usize);

macro_rules! codes {
    ($($name:ident = $kind:literal, $code:literal, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: ErrorCode = ErrorCode::new($kind, $code);)*

        const NAMES: &[(ErrorCode, &str)] = &[$(($name, $text)),*];
    };
}

codes! {
    HELLO_INCOMPATIBLE = 0, 0, "OFPHFC_INCOMPATIBLE";
    HELLO_EPERM = 0, 1, "OFPHFC_EPERM";
    BAD_VERSION = 1, 0, "OFPBRC_BAD_VERSION";
    BAD_TYPE = 1, 1, "OFPBRC_BAD_TYPE";
    BAD_MULTIPART = 1, 2, "OFPBRC_BAD_MULTIPART";
    BAD_EXPERIMENTER = 1, 3, "OFPBRC_BAD_EXPERIMENTER";
    BAD_EXP_TYPE = 1, 4, "OFPBRC_BAD_EXP_TYPE";
    REQUEST_EPERM = 1, 5, "OFPBRC_EPERM";
    BAD_LEN = 1, 6, "OFPBRC_BAD_LEN";
    BUFFER_EMPTY = 1, 7, "OFPBRC_BUFFER_EMPTY";
    BUFFER_UNKNOWN = 1, 8, "OFPBRC_BUFFER_UNKNOWN";
    BAD_TABLE_ID = 1, 9, "OFPBRC_BAD_TABLE_ID";
    IS_SLAVE = 1, 10, "OFPBRC_IS_SLAVE";
    BAD_PORT = 1, 11, "OFPBRC_BAD_PORT";
    BAD_PACKET = 1, 12, "OFPBRC_BAD_PACKET";
    MULTIPART_BUFFER_OVERFLOW = 1, 13, "OFPBRC_MULTIPART_BUFFER_OVERFLOW";
    ACTION_BAD_TYPE = 2, 0, "OFPBAC_BAD_TYPE";
    ACTION_BAD_LEN = 2, 1, "OFPBAC_BAD_LEN";
    ACTION_BAD_EXPERIMENTER = 2, 2, "OFPBAC_BAD_EXPERIMENTER";
    ACTION_BAD_EXP_TYPE = 2, 3, "OFPBAC_BAD_EXP_TYPE";
    ACTION_BAD_OUT_PORT = 2, 4, "OFPBAC_BAD_OUT_PORT";
    ACTION_BAD_ARGUMENT = 2, 5, "OFPBAC_BAD_ARGUMENT";
    ACTION_EPERM = 2, 6, "OFPBAC_EPERM";
    ACTION_TOO_MANY = 2, 7, "OFPBAC_TOO_MANY";
    ACTION_BAD_QUEUE = 2, 8, "OFPBAC_BAD_QUEUE";
    ACTION_BAD_OUT_GROUP = 2, 9, "OFPBAC_BAD_OUT_GROUP";
    ACTION_MATCH_INCONSISTENT = 2, 10, "OFPBAC_MATCH_INCONSISTENT";
    ACTION_UNSUPPORTED_ORDER = 2, 11, "OFPBAC_UNSUPPORTED_ORDER";
    ACTION_BAD_TAG = 2, 12, "OFPBAC_BAD_TAG";
    ACTION_BAD_SET_TYPE = 2, 13, "OFPBAC_BAD_SET_TYPE";
    ACTION_BAD_SET_LEN = 2, 14, "OFPBAC_BAD_SET_LEN";
    ACTION_BAD_SET_ARGUMENT = 2, 15, "OFPBAC_BAD_SET_ARGUMENT";
    INSTRUCTION_UNKNOWN = 3, 0, "OFPBIC_UNKNOWN_INST";
    INSTRUCTION_UNSUPPORTED = 3, 1, "OFPBIC_UNSUP_INST";
    INSTRUCTION_BAD_TABLE_ID = 3, 2, "OFPBIC_BAD_TABLE_ID";
    INSTRUCTION_UNSUPPORTED_METADATA = 3, 3, "OFPBIC_UNSUP_METADATA";
    INSTRUCTION_UNSUPPORTED_METADATA_MASK = 3, 4, "OFPBIC_UNSUP_METADATA_MASK";
    INSTRUCTION_BAD_EXPERIMENTER = 3, 5, "OFPBIC_BAD_EXPERIMENTER";
    INSTRUCTION_BAD_EXP_TYPE = 3, 6, "OFPBIC_BAD_EXP_TYPE";
    INSTRUCTION_BAD_LEN = 3, 7, "OFPBIC_BAD_LEN";
    INSTRUCTION_EPERM = 3, 8, "OFPBIC_EPERM";
    MATCH_BAD_TYPE = 4, 0, "OFPBMC_BAD_TYPE";
    MATCH_BAD_LEN = 4, 1, "OFPBMC_BAD_LEN";
    MATCH_BAD_WILDCARDS = 4, 5, "OFPBMC_BAD_WILDCARDS";
    MATCH_BAD_FIELD = 4, 6, "OFPBMC_BAD_FIELD";
    MATCH_BAD_VALUE = 4, 7, "OFPBMC_BAD_VALUE";
    MATCH_BAD_MASK = 4, 8, "OFPBMC_BAD_MASK";
    MATCH_BAD_PREREQ = 4, 9, "OFPBMC_BAD_PREREQ";
    MATCH_DUP_FIELD = 4, 10, "OFPBMC_DUP_FIELD";
    MATCH_EPERM = 4, 11, "OFPBMC_EPERM";
    FLOW_MOD_UNKNOWN = 5, 0, "OFPFMFC_UNKNOWN";
    FLOW_MOD_TABLE_FULL = 5, 1, "OFPFMFC_TABLE_FULL";
    FLOW_MOD_BAD_TABLE_ID = 5, 2, "OFPFMFC_BAD_TABLE_ID";
    FLOW_MOD_OVERLAP = 5, 3, "OFPFMFC_OVERLAP";
    FLOW_MOD_EPERM = 5, 4, "OFPFMFC_EPERM";
    FLOW_MOD_BAD_TIMEOUT = 5, 5, "OFPFMFC_BAD_TIMEOUT";
    FLOW_MOD_BAD_COMMAND = 5, 6, "OFPFMFC_BAD_COMMAND";
    FLOW_MOD_BAD_FLAGS = 5, 7, "OFPFMFC_BAD_FLAGS";
    GROUP_EXISTS = 6, 0, "OFPGMFC_GROUP_EXISTS";
    GROUP_INVALID = 6, 1, "OFPGMFC_INVALID_GROUP";
    GROUP_WEIGHT_UNSUPPORTED = 6, 2, "OFPGMFC_WEIGHT_UNSUPPORTED";
    GROUP_OUT_OF_GROUPS = 6, 3, "OFPGMFC_OUT_OF_GROUPS";
    GROUP_OUT_OF_BUCKETS = 6, 4, "OFPGMFC_OUT_OF_BUCKETS";
    GROUP_CHAINING_UNSUPPORTED = 6, 5, "OFPGMFC_CHAINING_UNSUPPORTED";
    GROUP_WATCH_UNSUPPORTED = 6, 6, "OFPGMFC_WATCH_UNSUPPORTED";
    GROUP_LOOP = 6, 7, "OFPGMFC_LOOP";
    GROUP_UNKNOWN = 6, 8, "OFPGMFC_UNKNOWN_GROUP";
    GROUP_CHAINED = 6, 9, "OFPGMFC_CHAINED_GROUP";
    GROUP_BAD_TYPE = 6, 10, "OFPGMFC_BAD_TYPE";
    GROUP_BAD_COMMAND = 6, 11, "OFPGMFC_BAD_COMMAND";
    GROUP_BAD_BUCKET = 6, 12, "OFPGMFC_BAD_BUCKET";
    GROUP_BAD_WATCH = 6, 13, "OFPGMFC_BAD_WATCH";
    GROUP_EPERM = 6, 14, "OFPGMFC_EPERM";
    PORT_MOD_BAD_PORT = 7, 0, "OFPPMFC_BAD_PORT";
    PORT_MOD_BAD_HW_ADDR = 7, 1, "OFPPMFC_BAD_HW_ADDR";
    PORT_MOD_BAD_CONFIG = 7, 2, "OFPPMFC_BAD_CONFIG";
    PORT_MOD_BAD_ADVERTISE = 7, 3, "OFPPMFC_BAD_ADVERTISE";
    PORT_MOD_EPERM = 7, 4, "OFPPMFC_EPERM";
    TABLE_MOD_BAD_TABLE = 8, 0, "OFPTMFC_BAD_TABLE";
    TABLE_MOD_BAD_CONFIG = 8, 1, "OFPTMFC_BAD_CONFIG";
    TABLE_MOD_EPERM = 8, 2, "OFPTMFC_EPERM";
    QUEUE_BAD_PORT = 9, 0, "OFPQOFC_BAD_PORT";
    QUEUE_BAD_QUEUE = 9, 1, "OFPQOFC_BAD_QUEUE";
    QUEUE_EPERM = 9, 2, "OFPQOFC_EPERM";
    SWITCH_CONFIG_BAD_FLAGS = 10, 0, "OFPSCFC_BAD_FLAGS";
    SWITCH_CONFIG_BAD_LEN = 10, 1, "OFPSCFC_BAD_LEN";
    SWITCH_CONFIG_EPERM = 10, 2, "OFPSCFC_EPERM";
    ROLE_STALE = 11, 0, "OFPRRFC_STALE";
    ROLE_UNSUPPORTED = 11, 1, "OFPRRFC_UNSUP";
    ROLE_BAD_ROLE = 11, 2, "OFPRRFC_BAD_ROLE";
    METER_UNKNOWN_ERROR = 12, 0, "OFPMMFC_UNKNOWN";
    METER_EXISTS = 12, 1, "OFPMMFC_METER_EXISTS";
    METER_INVALID = 12, 2, "OFPMMFC_INVALID_METER";
    METER_UNKNOWN = 12, 3, "OFPMMFC_UNKNOWN_METER";
    METER_BAD_COMMAND = 12, 4, "OFPMMFC_BAD_COMMAND";
    METER_BAD_FLAGS = 12, 5, "OFPMMFC_BAD_FLAGS";
    METER_BAD_RATE = 12, 6, "OFPMMFC_BAD_RATE";
    METER_BAD_BURST = 12, 7, "OFPMMFC_BAD_BURST";
    METER_BAD_BAND = 12, 8, "OFPMMFC_BAD_BAND";
    METER_BAD_BAND_VALUE = 12, 9, "OFPMMFC_BAD_BAND_VALUE";
    METER_OUT_OF_METERS = 12, 10, "OFPMMFC_OUT_OF_METERS";
    METER_OUT_OF_BANDS = 12, 11, "OFPMMFC_OUT_OF_BANDS";
    TABLE_FEATURES_BAD_TABLE = 13, 0, "OFPTFFC_BAD_TABLE";
    TABLE_FEATURES_BAD_METADATA = 13, 1, "OFPTFFC_BAD_METADATA";
    TABLE_FEATURES_BAD_TYPE = 13, 2, "OFPTFFC_BAD_TYPE";
    TABLE_FEATURES_BAD_LEN = 13, 3, "OFPTFFC_BAD_LEN";
    TABLE_FEATURES_BAD_ARGUMENT = 13, 4, "OFPTFFC_BAD_ARGUMENT";
    TABLE_FEATURES_EPERM = 13, 5, "OFPTFFC_EPERM";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_different_name() {
        let mut codes: Vec<_> = NAMES.iter().map(|(code, _)| (code.kind, code.code)).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), NAMES.len());
        assert_eq!(MATCH_BAD_PREREQ.to_string(), "OFPBMC_BAD_PREREQ");
        assert_eq!(ErrorCode::new(99, 3).to_string(), "error type 99 code 3");
    }
}
