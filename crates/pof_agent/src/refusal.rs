// SPDX-License-Identifier: Apache-2.0
//! Reasons for refusing a request.

use flow::validate::ValidateError;
use model::ModelError;
use pof::PofErrorCode;
use pof::error;
use std::borrow::Cow;

/// Reason for refusing a request, with the code of the ERROR message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} ({code})")]
pub struct PofRefusal {
    /// Code of the ERROR message.
    pub code: PofErrorCode,
    /// Sentence that names the fault and, if there is one, the valid alternative.
    pub problem: Cow<'static, str>,
}

impl PofRefusal {
    /// Returns a refusal.
    pub fn new(code: PofErrorCode, problem: impl Into<Cow<'static, str>>) -> Self {
        Self { code, problem: problem.into() }
    }
}

/// POF has the error codes of OpenFlow 1.3, but with other meanings in types 7 and 8, and without type
/// 0xffff.
impl From<ModelError> for PofRefusal {
    fn from(error: ModelError) -> Self {
        let code = match &error {
            ModelError::NoSuchPort(_) => error::PORT_MOD_BAD_PORT_ID,
            ModelError::IndexTooLarge { .. } | ModelError::IndexTaken { .. } => error::FLOW_MOD_BAD_ENTRY_ID,
            ModelError::Invalid(ValidateError::Goto { .. }) => error::INSTRUCTION_BAD_TABLE_ID,
            _ => match error.openflow() {
                (7, _) => error::PORT_MOD_UNKNOWN,
                (kind, code) => PofErrorCode::new(kind, code),
            },
        };
        Self::new(code, error.to_string())
    }
}
