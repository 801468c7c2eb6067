// SPDX-License-Identifier: Apache-2.0
//! Queries of a network interface, by ioctl on any socket of its network namespace.

use super::check;
use crate::Link;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Maximum length of an interface name in bytes.
pub(crate) const NAME_BYTES: usize = libc::IFNAMSIZ - 1;

/// `ETHTOOL_GSET` of linux/ethtool.h: link settings in `struct ethtool_cmd`.
const ETHTOOL_GSET: u32 = 1;
/// `ETHTOOL_GLINK`: carrier state in `struct ethtool_value`.
const ETHTOOL_GLINK: u32 = 0xa;
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// `struct ethtool_cmd` with the fields that are read; 44 bytes in total.
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

/// `ETHTOOL_GDRVINFO`: `struct ethtool_drvinfo`, 196 bytes, with the driver's name from offset 4.
const ETHTOOL_GDRVINFO: u32 = 3;
const DRIVER_INFO_BYTES: usize = 196;
const DRIVER_NAME_AT: usize = 4;
const DRIVER_NAME_BYTES: usize = 32;

/// `ETHTOOL_GCHANNELS`: numbers of queues in `struct ethtool_channels`.
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

/// Returns the index of an interface in the calling thread's network namespace.
pub(crate) fn index_of(name: &str) -> Option<u32> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: `name` is a terminated string that lives until the call returns.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// An interface, addressed by name.
pub(crate) struct Interface<'a> {
    socket: BorrowedFd<'a>,
    name: [u8; libc::IFNAMSIZ],
}

impl<'a> Interface<'a> {
    /// Addresses the interface `name` in the socket's network namespace. `name` is cut to [`NAME_BYTES`].
    pub(crate) fn new(socket: BorrowedFd<'a>, name: &str) -> Self {
        let mut bytes = [0; libc::IFNAMSIZ];
        let len = name.len().min(NAME_BYTES);
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        Self { socket, name: bytes }
    }

    /// Returns the interface's index; `ENODEV` if there is no interface of this name.
    pub(crate) fn index(&self) -> io::Result<i32> {
        let request = self.ask(libc::SIOCGIFINDEX)?;
        // SAFETY: SIOCGIFINDEX succeeded, so the kernel has set this member of the union.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    }

    /// Returns the link layer (`ARPHRD_*`) and the MAC address.
    pub(crate) fn hardware(&self) -> io::Result<(u16, [u8; 6])> {
        let request = self.ask(libc::SIOCGIFHWADDR)?;
        // SAFETY: SIOCGIFHWADDR succeeded, so the kernel has set this member of the union.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let mut mac = [0; 6];
        for (to, from) in mac.iter_mut().zip(address.sa_data) {
            *to = from as u8;
        }
        Ok((address.sa_family, mac))
    }

    /// Returns the MTU: the maximum number of bytes after the Ethernet header.
    pub(crate) fn mtu(&self) -> io::Result<u32> {
        let request = self.ask(libc::SIOCGIFMTU)?;
        // SAFETY: SIOCGIFMTU succeeded, so the kernel has set this member of the union.
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

    /// Returns the complete link state; down if the interface does not exist. May wait for a system-wide
    /// lock.
    pub(crate) fn link(&self) -> Link {
        let link = self.quick_link();
        // The kernel takes up to a second to report an interface with a new carrier as running.
        let has_carrier = |flags| flags & libc::IFF_UP != 0 && self.has_carrier();
        Link { up: link.up || self.flags().is_ok_and(has_carrier), speed_mbps: self.speed_mbps(), ..link }
    }

    /// Returns the link state without the speed, and without waiting for a lock. A new carrier may be
    /// reported up to a second late.
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

    /// Returns whether the interface has a carrier; false if its driver does not report it.
    fn has_carrier(&self) -> bool {
        let mut value = [ETHTOOL_GLINK, 0];
        self.ethtool(value.as_mut_ptr().cast()).is_ok() && value[1] != 0
    }

    /// Returns the numbers of receive and transmit queues, or `None` if the driver does not report them.
    pub(crate) fn queues(&self) -> Option<(u32, u32)> {
        let mut channels = EthtoolChannels { command: ETHTOOL_GCHANNELS, ..EthtoolChannels::default() };
        self.ethtool((&raw mut channels).cast()).ok()?;
        Some((channels.receive + channels.combined, channels.transmit + channels.combined))
    }

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
        // SAFETY: SIOCGIFFLAGS succeeded, so the kernel has set this member of the union.
        Ok(libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags } as u16))
    }

    /// Returns the speed in Mbit/s. May wait for a system-wide lock.
    pub(crate) fn speed_mbps(&self) -> Option<u32> {
        let mut command = EthtoolCommand { command: ETHTOOL_GSET, ..EthtoolCommand::default() };
        self.ethtool((&raw mut command).cast()).ok()?;
        let speed = u32::from(command.speed_high) << 16 | u32::from(command.speed_low);
        // All ones, in 16 or in 32 bits, mean "unknown".
        (speed != 0 && speed != u32::MAX && speed != u32::from(u16::MAX)).then_some(speed)
    }

    /// Executes an ethtool command. `command` must point to a structure of the size that the kernel reads and
    /// writes for that command.
    fn ethtool(&self, command: *mut libc::c_char) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_data = command;
        self.call(SIOCETHTOOL, &mut request)
    }

    fn request(&self) -> libc::ifreq {
        // SAFETY: `ifreq` consists of integers, byte arrays and pointers, for which all zeros are valid.
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
        // SAFETY: every request used in this file takes an `ifreq`, which lives until the call returns. For
        // ethtool, the `ifreq` points to a structure in the caller's stack frame, which has the size that the
        // kernel reads and writes.
        unsafe { check(libc::ioctl(self.socket.as_raw_fd(), what as _, &raw mut *request))? };
        Ok(())
    }
}
