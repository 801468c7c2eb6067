// SPDX-License-Identifier: Apache-2.0
//! An AF_XDP socket on a hardware queue, and the XDP program that the sockets of a port share.

use super::handover::{Attachment, PortRings};
use crate::handover::XdpSockets;
use crate::interface::Owner;
use crate::sys::{self, Attached, Interface, Redirect, UmemKind, Xsk};
use crate::watch::LinkReport;
use crate::{Handover, PortError, Spec};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Maximum MTU in bytes. With XDP, a packet and the driver's bookkeeping must fit into a page.
const MTU_MAX: u32 = 3_500;
const MTU_EXPECTED: &str = "an interface whose MTU and whose peer's MTU are at most 3500 bytes; \
                            `ip link set DEVICE mtu 1500` changes the MTU";
const QUEUES_EXPECTED: &str = "as many workers as the interface has receive queues, and as many transmit queues; \
                               `ethtool -L DEVICE combined N` changes them";
const NEEDS: &str = "the capabilities CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF";
/// Interval between attempts to get a resource that another process holds.
const RETRY_AFTER: Duration = Duration::from_millis(10);

/// How long to wait for resources that another process has just released.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Not at all, because packets are waiting.
    None,
    /// Up to a second.
    Second,
}

/// State shared by the queues of a port.
pub(super) struct Port {
    owner: Owner,
    queues: u32,
    kind: UmemKind,
    pub(super) rings: Arc<PortRings>,
}

impl Port {
    pub(super) fn new(spec: &Spec) -> Arc<Self> {
        Arc::new(Self {
            owner: Owner::new(spec, super::NAME),
            queues: spec.queues as u32,
            kind: if spec.handover == Handover::Never { UmemKind::Private } else { UmemKind::File },
            rings: Arc::new(PortRings::new(spec.queues)),
        })
    }

    /// Returns whether the port can be handed over to another process.
    pub(super) fn can_be_handed_over(&self) -> bool {
        self.kind == UmemKind::File
    }

    /// Returns the program that the older process has attached to this interface.
    fn inherit(&self, ifindex: i32, sockets: &XdpSockets) -> io::Result<Arc<Attachment>> {
        let mut current = self.rings.attachment();
        if let Some(attachment) = current.as_ref() {
            return Ok(Arc::clone(attachment));
        }
        let [map, program, link] = sockets.program()?;
        let redirect = Redirect { map, program };
        let attachment = Arc::new(Attachment { ifindex, redirect, attached: Attached(link) });
        *current = Some(Arc::clone(&attachment));
        Ok(attachment)
    }

    pub(super) fn error(&self, what: &'static str, source: io::Error) -> PortError {
        self.owner.error(what, NEEDS, source)
    }

    /// Returns the port's program on this interface. Attaches a new program if there is none yet, or if the
    /// attached program is `old`.
    fn attach(
        &self,
        ifindex: i32,
        old: Option<&Arc<Attachment>>,
        patience: Patience,
    ) -> Result<Arc<Attachment>, PortError> {
        let mut current = self.rings.attachment();
        if let Some(attachment) = current.as_ref()
            && attachment.ifindex == ifindex
            && old.is_none_or(|old| !Arc::ptr_eq(old, attachment))
        {
            return Ok(Arc::clone(attachment));
        }
        let redirect =
            Redirect::new(self.queues).map_err(|e| self.error("load the XDP program into the kernel", e))?;
        let attached = retry(patience, || redirect.attach(ifindex)).map_err(|e| self.attach_error(e))?;
        let attachment = Arc::new(Attachment { ifindex, redirect, attached });
        *current = Some(Arc::clone(&attachment));
        Ok(attachment)
    }

    fn attach_error(&self, error: io::Error) -> PortError {
        match error.raw_os_error() {
            Some(libc::ERANGE) => {
                self.owner.bad_device("its driver cannot run XDP with this MTU".into(), MTU_EXPECTED)
            }
            // The veth driver returns this error if its peer has more transmit queues than it has receive
            // queues.
            Some(libc::ENOSPC) => {
                self.owner.bad_device("its peer has more transmit queues".into(), QUEUES_EXPECTED)
            }
            Some(libc::EBUSY | libc::EEXIST) => self.error("replace another program's XDP program", error),
            _ => self.error("attach the XDP program", error),
        }
    }

    fn is_current(&self, attachment: &Arc<Attachment>) -> bool {
        let current = self.rings.attachment();
        current.as_ref().is_some_and(|current| Arc::ptr_eq(current, attachment))
    }
}

/// A bound socket with its program.
pub(super) struct Socket {
    pub(super) xsk: Xsk,
    attachment: Arc<Attachment>,
    /// A packet socket that receives nothing. It serves queries, and keeps the interface in promiscuous mode.
    packet: OwnedFd,
    queue: u32,
    /// Whether the peer of this interface is a network stack on this machine (veth, TUN), which may send
    /// unfinished checksums.
    pub(super) is_local: bool,
}

/// The parts of a [`Socket`] that do not move to another process.
struct Opened {
    packet: OwnedFd,
    ifindex: i32,
    is_local: bool,
}

impl Opened {
    /// Checks the port's device, brings it up, and sets it to promiscuous mode.
    fn new(port: &Port) -> Result<Self, PortError> {
        let packet = sys::packet_socket().map_err(|e| port.error("open a raw packet socket", e))?;
        let interface = Interface::new(packet.as_fd(), &port.owner.device);
        let ifindex = interface.index().map_err(|e| port.error("find the interface", e))?;
        let (kind, _) = interface.hardware().map_err(|e| port.error("query the link layer", e))?;
        port.owner.check_link_layer(kind)?;
        let mtu = interface.mtu().map_err(|e| port.error("query the MTU", e))?;
        if mtu > MTU_MAX {
            return Err(port.owner.bad_device(format!("its MTU is {mtu}"), MTU_EXPECTED));
        }
        if let Some((receive, transmit)) = interface.queues()
            && (receive != port.queues || transmit < port.queues)
        {
            let wrong = format!(
                "it has {receive} receive and {transmit} transmit queues, the port {} workers",
                port.queues
            );
            return Err(port.owner.bad_device(wrong, QUEUES_EXPECTED));
        }
        // Best effort: if the interface cannot be brought up, the link state shows it.
        let _ = interface.bring_up();
        let is_local = ["veth", "tun"].iter().any(|driver| interface.is_driven_by(driver));
        let promiscuous = libc::packet_mreq {
            mr_ifindex: ifindex,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        sys::set_option(packet.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)
            .map_err(|e| port.error("receive frames for all addresses (promiscuous)", e))?;
        Ok(Self { packet, ifindex, is_local })
    }
}

impl Socket {
    /// Opens a hardware queue of the port's device in the calling thread's network namespace. `old` is the
    /// program of an interface that was replaced.
    pub(super) fn open(
        port: &Port,
        queue: u32,
        old: Option<&Arc<Attachment>>,
        patience: Patience,
    ) -> Result<Self, PortError> {
        let Opened { packet, ifindex, is_local } = Opened::new(port)?;
        let mut xsk = Xsk::new(port.kind).map_err(|e| {
            port.error("set up an AF_XDP socket with 12 MiB of locked memory (see `ulimit -l`)", e)
        })?;
        let attachment = port.attach(ifindex, old, patience)?;
        retry(patience, || xsk.bind(ifindex, queue))
            .map_err(|e| port.error("bind an AF_XDP socket to a hardware queue", e))?;
        attachment
            .redirect
            .set(queue, xsk.fd.as_fd())
            .map_err(|e| port.error("direct packets to the AF_XDP socket", e))?;
        Ok(Self { xsk, attachment, packet, queue, is_local })
    }

    /// Opens a queue with the socket of an older process. Its rings must not be used before
    /// [`Xsk::take_over`].
    pub(super) fn inherit(port: &Port, queue: u32, sockets: &XdpSockets) -> Result<Self, PortError> {
        let Opened { packet, is_local, .. } = Opened::new(port)?;
        let error = |e| port.error("continue the AF_XDP socket of the old process", e);
        let [socket, memory] = sockets.queue(queue).map_err(error)?;
        let xsk = Xsk::inherit(Arc::new(socket), Arc::new(memory)).map_err(error)?;
        // If another interface has the device's name now, `is_stale` will say so.
        let (ifindex, bound) = xsk.binding();
        if bound != queue {
            let problem = format!("it is bound to hardware queue {bound} instead of {queue}");
            return Err(error(io::Error::new(io::ErrorKind::InvalidData, problem)));
        }
        let attachment = port.inherit(ifindex, sockets).map_err(error)?;
        Ok(Self { xsk, attachment, packet, queue, is_local })
    }

    /// Opens a socket on the interface that now has the name of the port's device.
    pub(super) fn open_anew(&self, port: &Port) -> Result<Self, PortError> {
        Self::open(port, self.queue, Some(&self.attachment), Patience::None)
    }

    /// Replaces this socket with `fresh`, but keeps the number of the old descriptor.
    pub(super) fn replace(&mut self, fresh: Self) -> io::Result<()> {
        let Self { xsk, attachment, packet, queue, is_local } = fresh;
        self.xsk.replace(xsk)?;
        (self.attachment, self.packet) = (attachment, packet);
        (self.queue, self.is_local) = (queue, is_local);
        Ok(())
    }

    /// Returns the number of the hardware queue.
    pub(super) fn queue(&self) -> u32 {
        self.queue
    }

    /// Returns the descriptor to wait for. Clears a pending error, which would wake the waiting thread again
    /// and again.
    pub(super) fn descriptor(&self) -> RawFd {
        sys::take_error(self.xsk.fd.as_fd());
        self.xsk.fd.as_raw_fd()
    }

    /// Returns the link's state for a device that was just opened. May wait for a system-wide lock.
    pub(super) fn link_report_at_opening(&self, port: &Port) -> LinkReport {
        LinkReport {
            link: Interface::new(self.packet.as_fd(), &port.owner.device).link(),
            ..self.link_report(port)
        }
    }

    /// Returns the link's state without waiting for a system-wide lock.
    pub(super) fn link_report(&self, port: &Port) -> LinkReport {
        LinkReport {
            link: Interface::new(self.packet.as_fd(), &port.owner.device).quick_link(),
            bound_index: self.bound_index(),
            is_stale: self.is_stale(port),
        }
    }

    /// Returns the index of the interface to which this socket is bound; -1 if the interface is gone.
    fn bound_index(&self) -> i32 {
        if self.xsk.is_bound() { self.attachment.ifindex } else { -1 }
    }

    /// Returns whether the port's device exists but is not the device to which this socket is bound, or has
    /// lost this socket's program. A recreated interface counts as another interface, even with the same
    /// index.
    pub(super) fn is_stale(&self, port: &Port) -> bool {
        let bound = self.bound_index();
        let interface = Interface::new(self.packet.as_fd(), &port.owner.device);
        interface.index().is_ok_and(|index| index != bound || !port.is_current(&self.attachment))
    }
}

/// Repeats the attempt while another process holds the resource (`EBUSY`).
fn retry<T>(patience: Patience, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut left = if patience == Patience::None { Duration::ZERO } else { Duration::from_secs(1) };
    loop {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && !left.is_zero() => {
                thread::sleep(RETRY_AFTER);
                left = left.saturating_sub(RETRY_AFTER);
            }
            result => return result,
        }
    }
}
