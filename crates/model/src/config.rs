// SPDX-License-Identifier: Apache-2.0
//! What a datapath is set to.

use crate::marking::Learning;
use flow::Nanos;

/// Nanoseconds of a second.
pub(crate) const SECOND_NS: Nanos = 1_000_000_000;

/// Settings of one datapath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its number, unique in the network.
    pub datapath_id: u64,
    /// Forward by learned MACs without a controller: table 0 starts with `priority=0 actions=NORMAL`.
    pub standalone: bool,
    /// Time after which a MAC that was not seen as a source is forgotten; 0: never.
    pub mac_ageing: Nanos,
    /// Learned MACs kept at most; beyond it the one not seen for longest goes.
    pub mac_limit: usize,
    /// Entries whose cookie has this value under this mask are low-latency.
    pub low_latency_cookie: Option<(u64, u64)>,
    /// When entries are learned to be low-latency; none: never.
    pub learning: Option<Learning>,
    /// Limits.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            datapath_id: 0,
            standalone: false,
            mac_ageing: 300 * SECOND_NS,
            mac_limit: 8_192,
            low_latency_cookie: None,
            learning: None,
            limits: Limits::default(),
        }
    }
}

impl Config {
    /// Whether entries with this cookie are low-latency unless it is said otherwise.
    #[must_use]
    pub fn is_marked_by_cookie(&self, cookie: u64) -> bool {
        self.low_latency_cookie.is_some_and(|(value, mask)| (cookie ^ value) & mask == 0)
    }
}

/// Limits of the model; each bounds memory or the time of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries of all tables together, learned MACs apart. As many again may wait for their removal to be in force.
    pub entries: usize,
    /// Notices that wait for [`crate::Model::next_notice`]. Packet-ins beyond it are dropped and counted,
    /// flow-removed notices wait with their entries, port notices get as much room again.
    pub notices: usize,
    /// Worker events taken in one poll.
    pub events_per_poll: usize,
    /// Due timers looked at in one poll.
    pub timers_per_poll: usize,
    /// Removed entries whose counters are read and whose ids are released in one poll.
    pub removals_per_poll: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: flow::Limits::ENTRIES,
            notices: 4_096,
            events_per_poll: 1_024,
            timers_per_poll: 1_024,
            removals_per_poll: 4_096,
        }
    }
}
