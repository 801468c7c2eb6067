// SPDX-License-Identifier: Apache-2.0
//! Configuration of a datapath.

use flow::Nanos;

/// Nanoseconds per second.
pub(crate) const SECOND_NS: Nanos = Nanos(1_000_000_000);

/// Configuration of one datapath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    /// Datapath ID, unique in the network.
    pub datapath_id: u64,
    /// Whether the switch forwards by learned MACs without a controller. Table 0 then starts with `priority=0
    /// actions=NORMAL`.
    pub standalone: bool,
    /// Time in nanoseconds after which a MAC that was not seen as a source is forgotten. If 0, MACs are never
    /// forgotten.
    pub mac_ageing: Nanos,
    /// Maximum number of learned MACs. At the limit, the MAC that was not seen for the longest time is
    /// removed.
    pub mac_limit: usize,
    /// Entries whose cookie matches are low-latency.
    pub low_latency_cookie: Option<CookieMask>,
    /// Thresholds for learning low-latency entries from their hit rates. If `None`, learning is off.
    pub learning: Option<Learning>,
    /// Whether the data plane quenches packet-ins. It must then know whether controllers take them.
    pub quenches: bool,
    /// Limits of the model.
    pub limits: ModelLimits,
}

impl ModelConfig {
    /// Default maximum number of learned MACs of a datapath.
    pub const MACS: usize = 8_192;
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            datapath_id: 0,
            standalone: false,
            mac_ageing: 300 * SECOND_NS,
            mac_limit: Self::MACS,
            low_latency_cookie: None,
            learning: None,
            quenches: false,
            limits: ModelLimits::default(),
        }
    }
}

impl ModelConfig {
    /// Returns whether an entry with this cookie is low-latency, unless a flow-mod states otherwise.
    #[must_use]
    pub fn is_marked_by_cookie(&self, cookie: u64) -> bool {
        self.low_latency_cookie.is_some_and(|wanted| wanted.matches(cookie))
    }
}

/// Condition on the cookie of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieMask {
    /// Required value of the bits in the mask.
    pub value: u64,
    /// Bits of the cookie to compare.
    pub mask: u64,
}

impl CookieMask {
    /// Returns whether a cookie has the required value in the bits of the mask.
    #[must_use]
    pub fn matches(self, cookie: u64) -> bool {
        (cookie ^ self.value) & self.mask == 0
    }
}

/// Thresholds for learning low-latency entries. An entry is marked when its hit rate reaches `min_pps` over
/// one window. It is unmarked when its rate stays below half of `min_pps` for two consecutive windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learning {
    /// Hit rate in packets per second.
    pub min_pps: u64,
    /// Time in nanoseconds over which the rate is measured.
    pub window: Nanos,
    /// Minimum idle and hard timeout of entries that are learned, in nanoseconds.
    pub min_timeout: Nanos,
}

/// Limits on the memory of the model and on the duration of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelLimits {
    /// Maximum number of entries in all tables together. Learned MACs do not count. The same number of
    /// removed entries may wait until their removal is active.
    pub entries: usize,
    /// Maximum number of asynchronous messages that wait for [`crate::Model::next_async_message`]. At the
    /// limit, packet-ins are dropped and counted, and flow-removed messages wait with their entries.
    /// Port-status messages may fill the queue up to twice this number.
    pub async_messages: usize,
    /// Maximum number of worker events taken in one poll.
    pub events_per_poll: usize,
    /// Maximum number of due timers examined in one poll.
    pub timers_per_poll: usize,
    /// Maximum number of removed entries whose IDs are released in one poll.
    pub removals_per_poll: usize,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            entries: flow::Limits::ENTRIES,
            async_messages: 4_096,
            events_per_poll: 1_024,
            timers_per_poll: 1_024,
            removals_per_poll: 4_096,
        }
    }
}
