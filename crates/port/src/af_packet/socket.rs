// SPDX-License-Identifier: Apache-2.0
//! A raw socket with its receive ring.

use super::copies::Copies;
use super::fanout::{Fanout, Occasion};
use crate::interface::Owner;
use crate::sys::{self, Interface, Ring};
use crate::watch::LinkReport;
use crate::{Handover, PortError, Spec};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Usual size of a receive ring in bytes.
const RING_BYTES: usize = 8 * 1024 * 1024;
/// Minimum and maximum size of a slot in bytes. Longer packets are fetched from the socket's queue.
const SLOT_BYTES: [usize; 2] = [2048, 16 * 1024];
/// Minimum number of slots of a ring.
const SLOTS_MIN: usize = 64;
/// Maximum size of a receive ring in bytes.
const RING_MAX_BYTES: usize = 128 * 1024 * 1024;
/// Bytes in a slot before the packet (kernel header, address, offload header, alignment), plus two VLAN tags;
/// rounded up.
const SLOT_OVERHEAD_BYTES: usize = 128;
/// Size in bytes of the socket's buffers, for packets longer than their slot and for packets that a slow
/// device has not sent.
const SOCKET_BUFFER_BYTES: libc::c_int = 16 * 1024 * 1024;

/// State shared by the queues of a port.
pub(super) struct Port {
    owner: Owner,
    pub(super) fanout: Fanout,
    group: GroupUse,
    /// [`Spec::receive_ring`].
    receive_ring: Option<usize>,
}

/// Whether the sockets of a port are members of a fan-out group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupUse {
    /// A single socket that is never handed over needs no group.
    None,
    /// A single socket works without a group, too.
    IfPossible,
    /// Without a group, each socket would receive all packets.
    Required,
}

impl GroupUse {
    fn of(spec: &Spec) -> Self {
        match &spec.handover {
            _ if spec.queues > 1 => Self::Required,
            Handover::From(_) => Self::Required,
            Handover::Possible => Self::IfPossible,
            Handover::Never => Self::None,
        }
    }
}

impl Port {
    pub(super) fn new(spec: &Spec) -> Arc<Self> {
        Arc::new(Self {
            owner: Owner::new(spec, super::NAME),
            fanout: Fanout::new(spec.queues, spec.handover.group()),
            group: GroupUse::of(spec),
            receive_ring: spec.receive_ring,
        })
    }

    pub(super) fn error(&self, what: &'static str, source: io::Error) -> PortError {
        self.owner.error(what, "CAP_NET_RAW", source)
    }
}

/// A bound socket with its mapped ring.
pub(super) struct Socket {
    // Fields are dropped in this order, because the ring must be unmapped before its socket is closed.
    pub(super) ring: Ring,
    /// Packets too long for a ring slot.
    pub(super) copies: Copies,
    pub(super) fd: Arc<OwnedFd>,
}

impl Socket {
    /// Opens the port's device in the calling thread's network namespace. The socket receives nothing before
    /// `start`; otherwise packets would be received twice while the port's sockets join their fan-out group.
    pub(super) fn open(port: &Port, occasion: Occasion) -> Result<Self, PortError> {
        let fd = sys::packet_socket().map_err(|e| port.error("open a raw packet socket", e))?;
        let fd = Arc::new(fd);
        let socket = fd.as_fd();
        let interface = Interface::new(socket, &port.owner.device);
        let ifindex = interface.index().map_err(|e| port.error("find the interface", e))?;
        let (kind, _) = interface.hardware().map_err(|e| port.error("query the link layer", e))?;
        port.owner.check_link_layer(kind)?;
        // Best effort: if the interface cannot be brought up, the link state shows it.
        let _ = interface.bring_up();
        let mtu = interface.mtu().map_err(|e| port.error("query the MTU", e))?;

        sys::refuse_all(socket).map_err(|e| port.error("attach a filter", e))?;
        for (name, value, what) in [
            (
                libc::PACKET_VERSION,
                libc::tpacket_versions::TPACKET_V2 as libc::c_int,
                "select ring version 2",
            ),
            (libc::PACKET_VNET_HDR, 1, "enable offload headers"),
            (libc::PACKET_IGNORE_OUTGOING, 1, "ignore outgoing packets"),
            (libc::PACKET_COPY_THRESH, 1, "enable queueing of long packets"),
        ] {
            sys::set_option(socket, libc::SOL_PACKET, name, &value).map_err(|e| port.error(what, e))?;
        }
        buffers(socket);
        let slot_bytes = slot_bytes(mtu);
        let ring = Ring::new(socket, slots(port.receive_ring, slot_bytes), slot_bytes)
            .map_err(|e| port.error("set up the receive ring", e))?;
        let promiscuous = libc::packet_mreq {
            mr_ifindex: ifindex,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        sys::set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)
            .map_err(|e| port.error("receive frames for all addresses (promiscuous)", e))?;
        sys::bind(socket, ifindex).map_err(|e| port.error("bind", e))?;
        if port.group != GroupUse::None {
            // Before Linux 6.13, only an interface that is up can have a fan-out group.
            let joined = port.fanout.join(&fd, ifindex, occasion);
            if port.group == GroupUse::Required {
                joined.map_err(|e| port.error("join a fan-out group (the interface must be up)", e))?;
            }
        }
        Ok(Self { ring, copies: Copies::default(), fd })
    }

    pub(super) fn start(&self, port: &Port) -> Result<(), PortError> {
        sys::accept_all(self.fd.as_fd()).map_err(|e| port.error("detach the filter", e))
    }

    pub(super) fn borrow(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Replaces this socket with `fresh`, but keeps the number of the old descriptor.
    pub(super) fn replace(&mut self, port: &Port, fresh: Self) -> io::Result<()> {
        let Self { ring, copies, fd } = fresh;
        sys::replace(&self.fd, fd.as_fd())?;
        port.fanout.renumber(&fd, &self.fd);
        // This unmaps the old ring, and the kernel then closes the old socket.
        self.ring = ring;
        self.copies = copies;
        Ok(())
    }

    /// Clears a pending error, which would wake the waiting thread again and again.
    pub(super) fn take_error(&self) {
        sys::take_error(self.fd.as_fd());
    }

    /// Returns the link's state for a device that was just opened. May wait for a system-wide lock.
    pub(super) fn link_report_at_opening(&self, port: &Port) -> LinkReport {
        LinkReport {
            link: Interface::new(self.fd.as_fd(), &port.owner.device).link(),
            ..self.link_report(port)
        }
    }

    /// Returns the link's state without waiting for a lock.
    pub(super) fn link_report(&self, port: &Port) -> LinkReport {
        LinkReport {
            link: Interface::new(self.fd.as_fd(), &port.owner.device).quick_link(),
            bound_index: self.bound_index(),
            is_stale: self.is_stale(port),
        }
    }

    /// Returns the index of the interface to which this socket is bound; -1 if the interface is gone.
    fn bound_index(&self) -> i32 {
        sys::bound_index(self.fd.as_fd()).unwrap_or(-1)
    }

    /// Returns whether the port's device exists but is not the device to which this socket is bound. A
    /// recreated interface counts as another interface, even with the same index.
    pub(super) fn is_stale(&self, port: &Port) -> bool {
        let bound = self.bound_index();
        Interface::new(self.fd.as_fd(), &port.owner.device).index().is_ok_and(|index| index != bound)
    }

    /// Returns the number of bytes that the device has not sent yet.
    pub(super) fn outstanding_bytes(&self) -> usize {
        sys::outstanding_bytes(self.fd.as_fd()).unwrap_or(0)
    }

    /// Returns the number of packets dropped by the kernel for lack of space since the last call.
    pub(super) fn take_drops(&self) -> u64 {
        sys::option::<libc::tpacket_stats>(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS)
            .map_or(0, |statistics| u64::from(statistics.tp_drops))
    }

    /// Discards the packets in the ring. Returns their number.
    pub(super) fn drain(&mut self) -> u64 {
        let mut count = 0;
        while self.ring.peek().is_some() {
            self.ring.release();
            count += 1;
        }
        count
    }
}

/// Returns the size of slots that hold the device's packets.
fn slot_bytes(mtu: u32) -> usize {
    (mtu as usize + SLOT_OVERHEAD_BYTES).next_power_of_two().clamp(SLOT_BYTES[0], SLOT_BYTES[1])
}

/// Returns the number of slots of a ring for this number of packets. Rings consist of whole blocks of
/// [`Ring::new`].
fn slots(packets: Option<usize>, slot_bytes: usize) -> usize {
    packets.map_or(RING_BYTES / slot_bytes, |packets| {
        packets.next_power_of_two().clamp(SLOTS_MIN, RING_MAX_BYTES / slot_bytes)
    })
}

/// Enlarges the socket's buffers. Best effort: more than the system's limit requires CAP_NET_ADMIN.
fn buffers(socket: BorrowedFd<'_>) {
    for (force, polite) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
    {
        if sys::set_option(socket, libc::SOL_SOCKET, force, &SOCKET_BUFFER_BYTES).is_err() {
            let _ = sys::set_option(socket, libc::SOL_SOCKET, polite, &SOCKET_BUFFER_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_the_mtu_and_divide_the_ring() {
        assert_eq!(slot_bytes(1500), 2048);
        assert_eq!(slot_bytes(9000), 16_384);
        assert_eq!(slot_bytes(65_536), 16_384);
        assert_eq!(RING_BYTES % slot_bytes(4000), 0);
        assert_eq!([2048, 16_384].map(|bytes| slots(None, bytes)), [4096, 512]);
        assert_eq!([1, 256, 257, 65_536].map(|packets| slots(Some(packets), 2048)), [64, 256, 512, 65_536]);
        assert_eq!(slots(Some(65_536), 16_384), 8_192, "a ring has at most 128 MiB");
    }
}
