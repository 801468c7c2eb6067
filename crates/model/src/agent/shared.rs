// SPDX-License-Identifier: Apache-2.0
//! State that all channels share.

use super::buffers::Buffers;
use super::bundle;
use super::context::ChannelId;
use super::long::Work;
use super::lost::LostMessages;
use super::request_queue::QueuedBytes;
use openflow::role::Generation;

/// State that all channels share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) generation: Generation,
    pub(super) master: Option<ChannelId>,
    /// Size of the uncommitted bundles of all channels.
    pub(super) bundled: bundle::Size,
    pub(super) buffers: Buffers,
    /// Whether the receivers of asynchronous messages may have changed.
    pub(super) subscriptions_changed: bool,
    /// Size of the requests that wait in all channels.
    pub(super) queued: QueuedBytes,
    /// Approximate number of entries that the changes of this step have examined.
    pub(super) spent: usize,
    /// Messages lost on channels that have been closed.
    pub(super) lost: LostMessages,
    /// Whether the driver applies long changes on another thread.
    pub(super) offloads: bool,
    /// Long changes for the driver to take. No request starts before they are taken.
    pub(super) work: Option<Work>,
}
