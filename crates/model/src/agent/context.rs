// SPDX-License-Identifier: Apache-2.0
//! Types that every request needs.

use crate::error::ModelError;
use crate::model::Model;
use dataplane::DataPlane;
use flow::Nanos;
use openflow::ErrorCode;
use std::borrow::Cow;

/// What a step of a channel needs to answer requests.
pub struct Context<'a, D: DataPlane> {
    /// Model of the datapath.
    pub model: &'a mut Model<D>,
    /// Current time.
    pub now: Nanos,
    /// Publishes counters that the data plane does not update continuously, before a step reads them.
    pub refresh: &'a mut dyn FnMut(),
}

/// ID of a channel. IDs are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub(super) u64);

/// Reason for refusing a request, with its OpenFlow error code.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: ErrorCode,
    pub(super) problem: Cow<'static, str>,
}

impl Refusal {
    pub(super) fn new(code: ErrorCode, problem: impl Into<Cow<'static, str>>) -> Self {
        Self { code, problem: problem.into() }
    }
}

impl From<ModelError> for Refusal {
    fn from(error: ModelError) -> Self {
        Self::new(error.openflow().into(), error.to_string())
    }
}
