// SPDX-License-Identifier: Apache-2.0
//! Exclusive use of kernel interfaces. Two switches that forward between the same interfaces would flood each
//! other's packets endlessly.

use crate::{PortError, Spec, is_of_interfaces};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, netdevice, socket_with};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Claim on an interface, which lasts until it is dropped or the process ends.
///
/// The claim is a socket with an abstract name. The kernel allows each name once per network namespace.
#[derive(Debug)]
pub struct DeviceLock {
    socket: OwnedFd,
}

impl DeviceLock {
    /// Claims the interface of a port. Returns `None` if the port's driver uses no interface of the kernel,
    /// or if the interface does not exist. Opening the port reports a missing interface.
    ///
    /// # Errors
    ///
    /// Returns [`PortError::Taken`] if another switch or device has claimed the interface, or an error of the
    /// system.
    pub fn take(spec: &Spec) -> Result<Option<Self>, PortError> {
        if !is_of_interfaces(&spec.driver) {
            return Ok(None);
        }
        let (port, device) = (&spec.name, &spec.device);
        let io = |error: Errno| PortError::Io {
            port: port.clone(),
            device: device.clone(),
            what: "claim the interface",
            source: error.into(),
        };
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None).map_err(io)?;
        // `device` may be an alternative name, so look up the kernel's name.
        let Ok(index) = netdevice::name_to_index(&socket, device) else { return Ok(None) };
        let Ok(name) = netdevice::index_to_name(&socket, index) else { return Ok(None) };
        let address = SocketAddrUnix::new_abstract_name(format!("shunt interface {name}").as_bytes());
        match address.and_then(|address| bind(&socket, &address)) {
            Ok(()) => Ok(Some(Self { socket })),
            Err(Errno::ADDRINUSE) => Err(PortError::Taken { port: port.clone(), device: device.clone() }),
            Err(error) => Err(io(error)),
        }
    }
}

impl From<OwnedFd> for DeviceLock {
    /// Uses the claim of an earlier process, which has sent its descriptor.
    fn from(socket: OwnedFd) -> Self {
        Self { socket }
    }
}

impl AsFd for DeviceLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{af_packet, mem};
    use rustix::net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, recvmsg, sendmsg, socketpair,
    };
    use std::io::{IoSlice, IoSliceMut};
    use std::mem::MaybeUninit;
    use std::sync::{Mutex, PoisonError};

    /// Tests that claim `lo` hold this, because they run at the same time in one network namespace.
    static LOOPBACK: Mutex<()> = Mutex::new(());

    fn take(driver: &str, device: &str) -> Result<Option<DeviceLock>, PortError> {
        DeviceLock::take(&Spec {
            number: 1,
            name: "p1".into(),
            driver: driver.into(),
            device: device.into(),
            queues: 1,
            outstanding_bytes: usize::MAX,
            receive_ring: None,
            handover: crate::Handover::Never,
        })
    }

    /// Returns a copy of a descriptor that was sent through a pair of sockets.
    fn sent(descriptor: BorrowedFd<'_>) -> OwnedFd {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let mut space = [MaybeUninit::uninit(); 64];
        let mut out = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        assert!(out.push(SendAncillaryMessage::ScmRights(&descriptors)));
        sendmsg(&a, &[IoSlice::new(b"x")], &mut out, SendFlags::empty()).unwrap();
        let mut space = [MaybeUninit::uninit(); 64];
        let mut got = RecvAncillaryBuffer::new(&mut space);
        recvmsg(&b, &mut [IoSliceMut::new(&mut [0])], &mut got, RecvFlags::CMSG_CLOEXEC).unwrap();
        let Some(RecvAncillaryMessage::ScmRights(mut descriptors)) = got.drain().next() else {
            panic!("none")
        };
        descriptors.next().unwrap()
    }

    #[test]
    fn an_interface_is_claimed_once_until_its_release() {
        let _loopback = LOOPBACK.lock().unwrap_or_else(PoisonError::into_inner);
        let first = take(af_packet::NAME, "lo").unwrap();
        assert!(first.is_some());
        assert!(matches!(take(af_packet::NAME, "lo"), Err(PortError::Taken { .. })));
        assert!(take(mem::NAME, "lo").unwrap().is_none(), "the driver uses no interface");
        drop(first);
        assert!(take(af_packet::NAME, "lo").unwrap().is_some());
        assert!(take(af_packet::NAME, "no-such-dev").unwrap().is_none());
    }

    #[test]
    fn a_claim_that_was_sent_to_another_process_has_no_gap() {
        let _loopback = LOOPBACK.lock().unwrap_or_else(PoisonError::into_inner);
        let first = take(af_packet::NAME, "lo").unwrap().unwrap();
        let shared = DeviceLock::from(sent(first.as_fd()));
        drop(first);
        assert!(matches!(take(af_packet::NAME, "lo"), Err(PortError::Taken { .. })));
        drop(shared);
        assert!(take(af_packet::NAME, "lo").unwrap().is_some());
    }
}
