// SPDX-License-Identifier: Apache-2.0
//! Questions about a network interface, by ioctl on any socket of its network namespace.

use super::check;
use crate::Link;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Longest name of an interface in bytes.
pub(crate) const NAME_BYTES: usize = libc::IFNAMSIZ - 1;

/// `ETHTOOL_GSET` of linux/ethtool.h: the link settings in `struct ethtool_cmd`.
const ETHTOOL_GSET: u32 = 1;
/// `ETHTOOL_GLINK`: `struct ethtool_value`.
const ETHTOOL_GLINK: u32 = 0xa;
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// `struct ethtool_cmd`, as far as it is read; 44 bytes in all.
#[repr(C)]
#[derive(Default)]
struct EthtoolCommand {
    command: u32,
    supported: u32,
    advertising: u32,
    speed_low: u16,
    duplex_port: u16,
    phy: u32,
    max_tx: u32,
    max_rx: u32,
    speed_high: u16,
    mdix: u16,
    partner: u32,
    reserved: [u32; 2],
}

/// `ETHTOOL_GDRVINFO`: `struct ethtool_drvinfo`, 196 bytes, the driver's name from the fourth on.
const ETHTOOL_GDRVINFO: u32 = 3;
const DRIVER_INFO_BYTES: usize = 196;
const DRIVER_NAME_AT: usize = 4;
const DRIVER_NAME_BYTES: usize = 32;

/// `ETHTOOL_GCHANNELS`: `struct ethtool_channels`.
const ETHTOOL_GCHANNELS: u32 = 0x3c;

#[repr(C)]
#[derive(Default)]
struct EthtoolChannels {
    command: u32,
    most: [u32; 4],
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// The index of an interface of the calling thread's network namespace.
pub(crate) fn index_of(name: &str) -> Option<u32> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: the name outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// An interface by name.
pub(crate) struct Interface<'a> {
    socket: BorrowedFd<'a>,
    name: [u8; libc::IFNAMSIZ],
}

impl<'a> Interface<'a> {
    /// The interface `name` of the socket's network namespace; `name` is cut to [`NAME_BYTES`].
    pub(crate) fn new(socket: BorrowedFd<'a>, name: &str) -> Self {
        let mut bytes = [0; libc::IFNAMSIZ];
        let len = name.len().min(NAME_BYTES);
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        Self { socket, name: bytes }
    }

    /// Its index; `ENODEV` if there is none of that name.
    pub(crate) fn index(&self) -> io::Result<i32> {
        let request = self.ask(libc::SIOCGIFINDEX)?;
        // SAFETY: the kernel has set the index.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    }

    /// Its link layer (`ARPHRD_*`) and MAC address.
    pub(crate) fn hardware(&self) -> io::Result<(u16, [u8; 6])> {
        let request = self.ask(libc::SIOCGIFHWADDR)?;
        // SAFETY: the kernel has set the hardware address.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let mut mac = [0; 6];
        for (to, from) in mac.iter_mut().zip(address.sa_data) {
            *to = from as u8;
        }
        Ok((address.sa_family, mac))
    }

    /// Most bytes behind the Ethernet header.
    pub(crate) fn mtu(&self) -> io::Result<u32> {
        let request = self.ask(libc::SIOCGIFMTU)?;
        // SAFETY: the kernel has set the MTU.
        Ok(unsafe { request.ifr_ifru.ifru_mtu } as u32)
    }

    /// Brings the interface up if it is down.
    pub(crate) fn bring_up(&self) -> io::Result<()> {
        let flags = self.flags()?;
        if flags & libc::IFF_UP != 0 {
            return Ok(());
        }
        let mut request = self.request();
        request.ifr_ifru.ifru_flags = (flags | libc::IFF_UP) as libc::c_short;
        self.call(libc::SIOCSIFFLAGS, &mut request)
    }

    /// Everything `Link` wants to know; down for an interface that does not exist. It may wait for a lock that the whole
    /// system shares, so it is for when a device is opened.
    pub(crate) fn link(&self) -> Link {
        let link = self.quick_link();
        // After an interface has got a carrier, the kernel takes up to a second to call it running.
        let has_carrier = |flags| flags & libc::IFF_UP != 0 && self.has_carrier();
        Link { up: link.up || self.flags().is_ok_and(has_carrier), speed_mbps: self.speed_mbps(), ..link }
    }

    /// The same without speed, and without waiting for a lock. A carrier may be known up to a second late.
    pub(crate) fn quick_link(&self) -> Link {
        let running = libc::IFF_UP | libc::IFF_RUNNING;
        Link {
            up: self.flags().is_ok_and(|flags| flags & running == running),
            speed_mbps: None,
            mac: self.hardware().ok().map(|(_, mac)| mac),
            mtu: self.mtu().ok(),
            index: None,
        }
    }

    /// Whether it has a carrier; no if its driver does not tell.
    fn has_carrier(&self) -> bool {
        let mut value = [ETHTOOL_GLINK, 0];
        self.ethtool(value.as_mut_ptr().cast()).is_ok() && value[1] != 0
    }

    /// How many hardware queues receive and how many transmit; none if the driver does not tell.
    pub(crate) fn queues(&self) -> Option<(u32, u32)> {
        let mut channels = EthtoolChannels { command: ETHTOOL_GCHANNELS, ..EthtoolChannels::default() };
        self.ethtool((&raw mut channels).cast()).ok()?;
        Some((channels.receive + channels.combined, channels.transmit + channels.combined))
    }

    /// Whether its driver has this name.
    pub(crate) fn is_driven_by(&self, driver: &str) -> bool {
        let mut info = [0_u8; DRIVER_INFO_BYTES];
        info[..DRIVER_NAME_AT].copy_from_slice(&ETHTOOL_GDRVINFO.to_ne_bytes());
        self.ethtool(info.as_mut_ptr().cast()).is_ok()
            && info[DRIVER_NAME_AT..DRIVER_NAME_AT + DRIVER_NAME_BYTES]
                .split(|byte| *byte == 0)
                .next()
                .is_some_and(|name| name == driver.as_bytes())
    }

    fn flags(&self) -> io::Result<libc::c_int> {
        let request = self.ask(libc::SIOCGIFFLAGS)?;
        // SAFETY: the kernel has set the flags.
        Ok(libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags } as u16))
    }

    /// Its speed. It may wait for a lock that the whole system shares.
    pub(crate) fn speed_mbps(&self) -> Option<u32> {
        let mut command = EthtoolCommand { command: ETHTOOL_GSET, ..EthtoolCommand::default() };
        self.ethtool((&raw mut command).cast()).ok()?;
        let speed = u32::from(command.speed_high) << 16 | u32::from(command.speed_low);
        // All ones, in 16 or in 32 bits, stand for "unknown".
        (speed != 0 && speed != u32::MAX && speed != u32::from(u16::MAX)).then_some(speed)
    }

    /// Asks ethtool by a command that is as large as the kernel reads and writes.
    fn ethtool(&self, command: *mut libc::c_char) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_data = command;
        self.call(SIOCETHTOOL, &mut request)
    }

    fn request(&self) -> libc::ifreq {
        // SAFETY: all zeros is a valid ifreq.
        let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.name) {
            *to = from as libc::c_char;
        }
        request
    }

    fn ask(&self, what: libc::c_ulong) -> io::Result<libc::ifreq> {
        let mut request = self.request();
        self.call(what, &mut request)?;
        Ok(request)
    }

    fn call(&self, what: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: every request used here takes an ifreq, which outlives the call; what an ifreq points to (the ethtool
        // command) lives in the caller's frame and has the size that the kernel reads and writes.
        unsafe { check(libc::ioctl(self.socket.as_raw_fd(), what as _, &raw mut *request))? };
        Ok(())
    }
}
