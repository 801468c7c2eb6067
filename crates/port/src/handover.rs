// SPDX-License-Identifier: Apache-2.0
//! How a port takes part in an upgrade of the process.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A fan-out group of the kernel that has the sockets of a port as its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanoutGroup {
    /// ID of the group in its network namespace.
    pub id: u16,
    /// Number of members: the queues of the port, and the members before them.
    pub members: u16,
}

/// Number of descriptors of a port that do not belong to a queue: the map of sockets, the XDP program, and
/// its link to the interface.
const DESCRIPTORS_OF_PORT: usize = 3;
/// Number of descriptors of a queue: the socket, and the file of its UMEM.
pub(crate) const DESCRIPTORS_OF_QUEUE: usize = 2;

/// The descriptors of an AF_XDP port, as one process passes them to another.
#[derive(Debug)]
pub struct XdpSockets(Vec<OwnedFd>);

impl XdpSockets {
    /// Takes descriptors in the order of [`XdpSockets::descriptors`]. Returns `None` if their number is wrong
    /// for a port with this number of queues.
    #[must_use]
    pub fn new(descriptors: Vec<OwnedFd>, queues: usize) -> Option<Self> {
        (descriptors.len() == DESCRIPTORS_OF_PORT + queues * DESCRIPTORS_OF_QUEUE)
            .then_some(Self(descriptors))
    }

    /// Returns the descriptors in this order: the map of sockets, the XDP program, the program's link, then
    /// the socket and the UMEM file of each queue.
    #[must_use]
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.0.iter().map(AsFd::as_fd).collect()
    }

    /// Returns the number of queues.
    #[must_use]
    pub fn queues(&self) -> usize {
        self.0.len().saturating_sub(DESCRIPTORS_OF_PORT) / DESCRIPTORS_OF_QUEUE
    }

    /// Returns copies of the map, the program and the link.
    pub(crate) fn program(&self) -> io::Result<[OwnedFd; DESCRIPTORS_OF_PORT]> {
        match &self.0[..] {
            [map, program, link, ..] => Ok([map.try_clone()?, program.try_clone()?, link.try_clone()?]),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Returns copies of a queue's socket and of the file of its memory.
    pub(crate) fn queue(&self, number: u32) -> io::Result<[OwnedFd; DESCRIPTORS_OF_QUEUE]> {
        let at = DESCRIPTORS_OF_PORT + number as usize * DESCRIPTORS_OF_QUEUE;
        match self.0.get(at..at + DESCRIPTORS_OF_QUEUE) {
            Some([socket, file]) => Ok([socket.try_clone()?, file.try_clone()?]),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

impl PartialEq for XdpSockets {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(AsRawFd::as_raw_fd).eq(other.0.iter().map(AsRawFd::as_raw_fd))
    }
}

impl Eq for XdpSockets {}

/// What a port inherits from the same port of an older process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inherited {
    /// The fan-out group of an `af_packet` port. The new port receives nothing until
    /// [`Fanout::take_over`](crate::Fanout::take_over).
    Group(FanoutGroup),
    /// The sockets of an `af_xdp` port and the packets in them. The older process must have stopped using
    /// them before a queue of the new port first receives or transmits.
    Sockets(Arc<XdpSockets>),
}

/// How an `af_packet` or `af_xdp` port takes part in upgrades of the process. Other drivers ignore it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Handover {
    /// The port is not handed over. An `af_packet` port with one queue then needs no fan-out group, so the
    /// kernel processes each packet a little faster.
    #[default]
    Never,
    /// The port can be handed over later.
    Possible,
    /// The port continues a port of an older process, and can be handed over later.
    From(Inherited),
}

impl Handover {
    /// Returns the fan-out group of the port from which this one takes over.
    pub(crate) fn group(&self) -> Option<FanoutGroup> {
        match self {
            Self::From(Inherited::Group(group)) => Some(*group),
            _ => None,
        }
    }

    /// Returns the sockets of the port that this one continues.
    pub(crate) fn sockets(&self) -> Option<&XdpSockets> {
        match self {
            Self::From(Inherited::Sockets(sockets)) => Some(sockets),
            _ => None,
        }
    }
}
