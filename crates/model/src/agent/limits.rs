// SPDX-License-Identifier: Apache-2.0
//! Limits of a step and of the unread output of a channel, for both protocols.

use flow::Nanos;

/// Maximum number of requests started in one step. Fewer are started if their changes together examine many
/// entries.
pub const REQUESTS_PER_STEP: usize = 64;
/// Unread output in bytes at which a long answer pauses.
pub const ANSWER_BYTES: usize = 64 * 1_024;
/// Unread output in bytes above which asynchronous messages other than packet-ins are dropped.
pub const ASYNC_BYTES: usize = 1_024 * 1_024;
/// Minimum time in nanoseconds between two events that report lost messages.
pub const LOST_NS: Nanos = Nanos(1_000_000_000);
