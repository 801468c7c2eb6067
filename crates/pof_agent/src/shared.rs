// SPDX-License-Identifier: Apache-2.0
//! State that all channels share.

use crate::config::AgentConfig;
use crate::counters::PofCounters;
use crate::tables::PofTables;
use crate::work::{PofChannelId, PofWork};
use flow::GroupId;
use model::agent::{LostMessages, QueuedBytes};
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
    pub offloads: bool,
    /// Long changes for the driver to take. No request starts before they are taken.
    pub work: Option<PofWork>,
    /// Channel that has completed its handshake in this step. All others end.
    pub sole: Option<PofChannelId>,
    /// Size of the requests that wait in all channels.
    pub queued: QueuedBytes,
    /// Messages lost on channels that have been closed.
    pub lost: LostMessages,
}

impl Shared {
    /// Returns the state without tables and channels.
    pub fn new(config: AgentConfig) -> Self {
        Self {
            config,
            tables: PofTables::new(),
            counters: PofCounters::default(),
            group_counters: HashMap::new(),
            offloads: false,
            work: None,
            sole: None,
            queued: QueuedBytes::default(),
            lost: LostMessages::default(),
        }
    }
}
