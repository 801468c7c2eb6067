// SPDX-License-Identifier: Apache-2.0
//! Exclusive use of kernel interfaces. Two switches that forward between the same interfaces would flood each
//! other's packets endlessly.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, netdevice, socket_with};
use std::io;
use std::os::fd::OwnedFd;

/// Claim on an interface, which lasts until it is dropped or the process ends.
///
/// The claim is a socket with an abstract name. The kernel allows each name once per network namespace.
#[derive(Debug)]
pub struct DeviceLock {
    _socket: OwnedFd,
}

/// Error of [`DeviceLock::take`].
#[derive(Debug)]
pub enum DeviceLockError {
    /// Another switch has claimed the interface.
    Taken,
    /// The system refused the claim.
    Io(io::Error),
}

impl DeviceLock {
    /// Claims an interface under its kernel name. Returns `None` if the interface does not exist.
    pub fn take(interface: &str) -> Result<Option<Self>, DeviceLockError> {
        let io = |error: Errno| DeviceLockError::Io(error.into());
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None).map_err(io)?;
        // `interface` may be an alternative name, so look up the kernel's name. A missing interface is
        // reported later, when the port is opened.
        let Ok(index) = netdevice::name_to_index(&socket, interface) else { return Ok(None) };
        let Ok(name) = netdevice::index_to_name(&socket, index) else { return Ok(None) };
        let address = SocketAddrUnix::new_abstract_name(format!("shunt interface {name}").as_bytes());
        match address.and_then(|address| bind(&socket, &address)) {
            Ok(()) => Ok(Some(Self { _socket: socket })),
            Err(Errno::ADDRINUSE) => Err(DeviceLockError::Taken),
            Err(error) => Err(io(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_claimed_once_until_its_release() {
        let first = DeviceLock::take("lo").unwrap();
        assert!(first.is_some());
        assert!(matches!(DeviceLock::take("lo"), Err(DeviceLockError::Taken)));
        drop(first);
        assert!(DeviceLock::take("lo").unwrap().is_some());
        assert!(DeviceLock::take("no-such-dev").unwrap().is_none());
    }
}
