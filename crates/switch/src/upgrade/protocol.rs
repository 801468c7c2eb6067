// SPDX-License-Identifier: Apache-2.0
//! Messages between the processes of an upgrade: a JSON object with descriptors in each packet of a
//! SOCK_SEQPACKET socket.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Version of the messages. A process refuses another version.
pub const VERSION: u32 = 2;
/// Maximum number of descriptors in a message. The kernel's limit is 253.
pub const DESCRIPTORS_MAX: usize = 240;
/// Maximum length of a message in bytes.
const MESSAGE_BYTES: usize = 128 * 1_024;

/// Why a message was not exchanged.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The other process has ended.
    #[error("the other process has ended")]
    Ended,
    /// The other process did not answer in time.
    #[error("the other process did not answer within {0} s")]
    Late(u64),
    /// The message has more descriptors than one message can carry.
    #[error("{0} descriptors are more than the {DESCRIPTORS_MAX} that a message can carry")]
    TooManyDescriptors(usize),
    /// The message is not one of the protocol.
    #[error("the message of the other process is not understood: {0}")]
    Malformed(String),
    /// The system refused an operation.
    #[error("the other process is not reached: {0}")]
    Io(#[from] std::io::Error),
}

impl From<Errno> for LinkError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::PIPE | Errno::CONNRESET => Self::Ended,
            other => Self::Io(other.into()),
        }
    }
}

/// The first message of the old process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpgradeHello {
    /// [`VERSION`] of the old process.
    pub version: u32,
    /// Number of datapaths, each of which has a message [`DatapathOffer`].
    pub datapaths: usize,
    /// Whether the descriptor of this message listens for requests of metrics.
    pub metrics: bool,
}

/// What the old process hands over of a datapath. The descriptors are the state, the control socket, then
/// those of `listeners` and `locks`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatapathOffer {
    /// ID of the datapath.
    pub datapath: u64,
    /// Path of the control socket.
    pub control: String,
    /// Listening sockets for controllers: protocol and configured address.
    pub listeners: Vec<String>,
    /// Devices whose claims are handed over.
    pub locks: Vec<String>,
    /// Ports whose packets are taken over.
    pub ports: Vec<PortOffer>,
}

/// A port whose packets are taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortOffer {
    /// The device.
    pub device: String,
    /// How the packets move.
    pub way: PortWay,
}

/// How the packets of a port move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortWay {
    /// The sockets of both processes are members of a fan-out group of the kernel (`af_packet`).
    Group {
        /// ID of the fan-out group.
        id: u16,
        /// Number of members of the group.
        members: u16,
    },
    /// The sockets move to the new process (`af_xdp`), in a message [`PredecessorMessage::Sockets`].
    Sockets {
        /// Number of queues.
        queues: usize,
    },
}

/// A message of the new process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuccessorMessage {
    /// Everything is prepared.
    Ready,
    /// Packets reach the new process.
    Switched,
    /// The workers run.
    Running {
        /// Time in which no process forwarded, in microseconds.
        interruption_us: u64,
    },
    /// The new process gives up, for this reason.
    Failed(String),
}

/// A later message of the old process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PredecessorMessage {
    /// The descriptors of an `af_xdp` port. After the offer of a datapath, there is one such message for each
    /// of these ports, in the order of the offer.
    Sockets,
    /// The new process may direct the packets to itself.
    TakeOver,
    /// The rings are empty, so the new process may start its workers.
    Drained,
    /// Counters and MACs of a datapath; the descriptor is a file.
    Counters {
        /// ID of the datapath.
        datapath: u64,
    },
    /// All counters were sent. The process ends.
    Ends,
}

/// One end of the socket pair.
#[derive(Debug)]
pub struct UpgradeLink(OwnedFd);

impl UpgradeLink {
    /// Uses a socket of type SOCK_SEQPACKET.
    #[must_use]
    pub fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Sends a message with descriptors.
    ///
    /// # Errors
    ///
    /// Returns an error if the other process has ended or the message is too large.
    pub fn send(&self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> Result<(), LinkError> {
        if descriptors.len() > DESCRIPTORS_MAX {
            return Err(LinkError::TooManyDescriptors(descriptors.len()));
        }
        let bytes = serde_json::to_vec(message).map_err(|error| LinkError::Malformed(error.to_string()))?;
        if bytes.len() > MESSAGE_BYTES {
            return Err(LinkError::Malformed(format!("it has {} bytes", bytes.len())));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Receives a message with its descriptors.
    ///
    /// # Errors
    ///
    /// Returns an error if the other process has ended, does not send in time, or sends something else.
    pub fn receive<T: DeserializeOwned>(&self, limit: Duration) -> Result<(T, Vec<OwnedFd>), LinkError> {
        self.wait(limit)?;
        let mut bytes = vec![0; MESSAGE_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?;
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if received.bytes == 0 {
            return Err(LinkError::Ended);
        }
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(LinkError::Malformed("it is too long".into()));
        }
        let message = serde_json::from_slice(&bytes[..received.bytes]);
        Ok((message.map_err(|error| LinkError::Malformed(error.to_string()))?, descriptors))
    }

    /// Waits until the other process has ended, at most for this time. Returns whether it has.
    #[must_use]
    pub fn wait_for_end(&self, limit: Duration) -> bool {
        matches!(self.receive::<serde_json::Value>(limit), Err(LinkError::Ended))
    }

    fn wait(&self, limit: Duration) -> Result<(), LinkError> {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)], Some(&timeout)) {
                Ok(1..) => return Ok(()),
                Ok(_) => return Err(LinkError::Late(limit.as_secs())),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, send, socketpair};

    fn pair() -> (UpgradeLink, UpgradeLink) {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        (UpgradeLink(one), UpgradeLink(other))
    }

    const SOON: Duration = Duration::from_secs(5);

    #[test]
    fn a_message_arrives_with_its_descriptors() {
        let (old, new) = pair();
        let file = super::super::sealed(b"state").unwrap();
        let hello = UpgradeHello { version: VERSION, datapaths: 2, metrics: false };
        old.send(&hello, &[file.as_fd(), file.as_fd()]).unwrap();
        let (received, mut files) = new.receive::<UpgradeHello>(SOON).unwrap();
        assert_eq!((received, files.len()), (hello, 2));
        assert_eq!(super::super::unsealed(files.remove(1)).unwrap(), b"state");
    }

    #[test]
    fn garbage_and_too_many_descriptors_are_refused() {
        let (old, new) = pair();
        for bytes in [&b"{"[..], b"[]", b"\xff\xfe", b"{\"version\":-1,\"datapaths\":1}"] {
            send(&old.0, bytes, SendFlags::empty()).unwrap();
            assert!(matches!(new.receive::<UpgradeHello>(SOON), Err(LinkError::Malformed(_))), "{bytes:?}");
        }
        let many = vec![old.0.as_fd(); DESCRIPTORS_MAX + 1];
        let refused = old.send(&SuccessorMessage::Ready, &many);
        assert!(matches!(refused, Err(LinkError::TooManyDescriptors(_))));
        old.send(&SuccessorMessage::Ready, &many[1..]).unwrap();
        assert_eq!(new.receive::<SuccessorMessage>(SOON).unwrap().1.len(), DESCRIPTORS_MAX);
    }

    #[test]
    fn the_end_and_the_silence_of_the_other_process_are_noticed() {
        let (old, new) = pair();
        let late = new.receive::<UpgradeHello>(Duration::from_millis(5));
        assert!(matches!(late, Err(LinkError::Late(_))));
        drop(old);
        assert!(matches!(new.receive::<UpgradeHello>(SOON), Err(LinkError::Ended)));
        assert!(matches!(new.send(&SuccessorMessage::Ready, &[]), Err(LinkError::Ended)));
        assert!(new.wait_for_end(SOON));
    }
}
