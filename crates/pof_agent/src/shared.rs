// SPDX-License-Identifier: Apache-2.0
//! State that all channels share.

use crate::config::AgentConfig;
use crate::counters::PofCounters;
use crate::lost::PofLostMessages;
use crate::tables::PofTables;
use crate::work::PofWork;
use flow::GroupId;
use pof::value::PofCounterId;
use std::collections::HashMap;

/// State that all channels share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub config: AgentConfig,
    pub tables: PofTables,
    pub counters: PofCounters,
    /// Counters of the groups that have one.
    pub group_counters: HashMap<GroupId, PofCounterId>,
    /// Whether the driver applies long changes on another thread.
    pub lends: bool,
    /// Long changes for the driver to take. No request starts before they are taken.
    pub work: Option<PofWork>,
    /// Total size in bytes of the requests that wait in all channels.
    pub held_bytes: usize,
    /// Messages lost on channels that have been closed.
    pub lost: PofLostMessages,
}

impl Shared {
    /// Returns the state without tables and channels.
    pub fn new(config: AgentConfig) -> Self {
        Self {
            config,
            tables: PofTables::new(),
            counters: PofCounters::default(),
            group_counters: HashMap::new(),
            lends: false,
            work: None,
            held_bytes: 0,
            lost: PofLostMessages::default(),
        }
    }
}
