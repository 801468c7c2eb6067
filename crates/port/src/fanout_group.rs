// SPDX-License-Identifier: Apache-2.0
//! The name of a fan-out group, by which another process joins it.

/// A fan-out group of the kernel that has the sockets of a port as its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanoutGroup {
    /// ID of the group in its network namespace.
    pub id: u16,
    /// Number of members: the queues of the port.
    pub members: u16,
}
