// SPDX-License-Identifier: Apache-2.0
//! The new process of an upgrade: gets everything from the old one, and takes over its packets.

use super::launcher::SUCCESSOR;
use super::protocol::{
    DatapathOffer, LinkError, PortWay, PredecessorMessage, SuccessorMessage, UpgradeHello, UpgradeLink,
    VERSION,
};
use super::{FinalCounters, unsealed};
use crate::daemon::DaemonError;
use port::{Fanout, FanoutGroup, Inherited, XdpSockets};
use rustix::thread::gettid;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for a message of the old process before it hands over its packets.
const BEFORE: Duration = Duration::from_secs(120);
/// Longest wait for the old process after the packets were directed to this one.
const AFTER: Duration = Duration::from_secs(10);
/// Largest number of unread messages of an old process that has ended: one for each datapath, and the last.
const LAST_MESSAGES: usize = 1_024;

/// Time between two looks at a thread that directs packets to this process.
const SETTLED: Duration = Duration::from_micros(500);
/// Number of looks in a row at which the thread waits in the kernel. It also waits, more briefly, before the
/// packets are directed.
const WAITS: u32 = 2;

/// Why this process does not continue the old one.
#[derive(Debug, thiserror::Error)]
pub enum SuccessorError {
    /// The old process is not reached, or has ended.
    #[error("cannot take over from the running switch: {0}")]
    Link(#[from] LinkError),
    /// The programs do not speak the same version.
    #[error(
        "cannot take over from the running switch: it speaks version {0} of the upgrade, and this program \
         version {VERSION}; restart the switch instead"
    )]
    Version(u32),
    /// A datapath or a descriptor is missing, or the state is damaged.
    #[error("cannot take over from the running switch: {0}")]
    Incomplete(String),
    /// The packets of a port could not be directed to this process.
    #[error("cannot direct the packets of a port to the new program: {0}")]
    TakeOver(io::Error),
}

/// What a datapath gets from the old process.
#[derive(Debug)]
pub(crate) struct InheritedDatapath {
    pub offer: DatapathOffer,
    pub state: Vec<u8>,
    pub control: Option<OwnedFd>,
    listeners: Vec<(String, OwnedFd)>,
    locks: Vec<(String, OwnedFd)>,
    /// What the ports inherit, with their devices.
    ports: Vec<(String, Inherited)>,
}

impl InheritedDatapath {
    /// Takes the socket that listens on this address.
    pub fn take_listener(&mut self, name: &str) -> Option<OwnedFd> {
        let at = self.listeners.iter().position(|(known, _)| known == name)?;
        Some(self.listeners.remove(at).1)
    }

    /// Takes the claim on a device.
    pub fn take_lock(&mut self, device: &str) -> Option<OwnedFd> {
        let at = self.locks.iter().position(|(known, _)| known == device)?;
        Some(self.locks.remove(at).1)
    }

    /// Returns what a port inherits. Returns `None` if the old process had no port of this driver on the
    /// device.
    pub fn port(&self, device: &str, driver: &str) -> Option<Inherited> {
        let (_, port) = self.ports.iter().find(|(known, _)| known == device)?;
        let of = match port {
            Inherited::Group(_) => port::af_packet::NAME,
            Inherited::Sockets(_) => port::af_xdp::NAME,
        };
        (of == driver).then(|| port.clone())
    }
}

/// The way to the old process.
#[derive(Debug)]
pub struct Successor {
    link: UpgradeLink,
    /// The socket that listens for requests of metrics, until it is taken.
    metrics: Mutex<Option<TcpListener>>,
}

impl Successor {
    /// Returns the way to the old process, if a launcher has started this one.
    #[must_use]
    pub fn from_environment() -> Option<Self> {
        std::env::var_os(SUCCESSOR)?;
        let socket = io::stdin().as_fd().try_clone_to_owned().ok()?;
        Some(Self::new(UpgradeLink::new(socket)))
    }

    fn new(link: UpgradeLink) -> Self {
        Self { link, metrics: Mutex::new(None) }
    }

    /// Takes the socket that listens for requests of metrics on this address, if the old process had one.
    pub(crate) fn take_metrics(&self, address: SocketAddr) -> Option<TcpListener> {
        let listener = self.metrics.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let bound = listener.local_addr().ok()?;
        (bound.ip() == address.ip() && [0, bound.port()].contains(&address.port())).then_some(listener)
    }

    /// Tells the old process that this one gives up.
    pub fn fail(&self, reason: &str) {
        // The old process may have ended.
        let _ = self.link.send(&SuccessorMessage::Failed(reason.to_owned()), &[]);
    }

    /// Receives what the datapaths get.
    pub(crate) fn receive(&self) -> Result<Vec<InheritedDatapath>, SuccessorError> {
        let (hello, sockets) = self.link.receive::<UpgradeHello>(BEFORE)?;
        if hello.version != VERSION {
            return Err(SuccessorError::Version(hello.version));
        }
        if hello.metrics {
            let listener = sockets.into_iter().next().map(TcpListener::from);
            *self.metrics.lock().unwrap_or_else(PoisonError::into_inner) = listener;
        }
        (0..hello.datapaths).map(|_| self.receive_datapath()).collect()
    }

    fn receive_datapath(&self) -> Result<InheritedDatapath, SuccessorError> {
        let (offer, descriptors) = self.link.receive::<DatapathOffer>(BEFORE)?;
        let expected = 2 + offer.listeners.len() + offer.locks.len();
        if descriptors.len() != expected {
            let problem = format!("{} descriptors came instead of {expected}", descriptors.len());
            return Err(SuccessorError::Incomplete(problem));
        }
        let mut descriptors = descriptors.into_iter();
        let mut next =
            || descriptors.next().ok_or_else(|| SuccessorError::Incomplete("a descriptor is missing".into()));
        let state = unsealed(next()?).map_err(|error| SuccessorError::Incomplete(error.to_string()))?;
        let control = Some(next()?);
        let mut named = |names: &[String]| {
            names.iter().map(|name| Ok((name.clone(), next()?))).collect::<Result<Vec<_>, SuccessorError>>()
        };
        let listeners = named(&offer.listeners)?;
        let locks = named(&offer.locks)?;
        let ports = offer.ports.iter().map(|port| Ok((port.device.clone(), self.receive_port(port.way)?)));
        let ports = ports.collect::<Result<_, SuccessorError>>()?;
        Ok(InheritedDatapath { offer, state, control, listeners, locks, ports })
    }

    fn receive_port(&self, way: PortWay) -> Result<Inherited, SuccessorError> {
        let queues = match way {
            PortWay::Group { id, members } => return Ok(Inherited::Group(FanoutGroup { id, members })),
            PortWay::Sockets { queues } => queues,
        };
        let (message, descriptors) = self.link.receive::<PredecessorMessage>(BEFORE)?;
        if message != PredecessorMessage::Sockets {
            return Err(unexpected(&message));
        }
        let problem = format!("{} descriptors came for {queues} queues", descriptors.len());
        let sockets = XdpSockets::new(descriptors, queues);
        Ok(Inherited::Sockets(Arc::new(sockets.ok_or(SuccessorError::Incomplete(problem))?)))
    }

    /// Directs the packets of these ports to this process, waits until the old one has none left, and calls
    /// `start`, which starts the workers. Returns how long no process forwarded.
    ///
    /// The kernel changes the way of the packets at once, but returns only when no packet can be on its way
    /// to the old process, which takes 20 ms or more. Packets would fill the rings in this time, so the
    /// workers start while the kernel waits. The old process goes on until its calls have returned, so a
    /// packet that was on its way is not lost.
    pub(crate) fn take_over(
        &self,
        fanouts: &[Fanout],
        start: impl FnOnce() -> Result<(), DaemonError>,
    ) -> Result<Duration, DaemonError> {
        self.link.send(&SuccessorMessage::Ready, &[]).map_err(SuccessorError::from)?;
        self.expect(PredecessorMessage::TakeOver, BEFORE)?;
        let calls: Vec<Call> = fanouts.iter().map(Call::new).collect();
        thread::scope(|scope| {
            for call in &calls {
                let builder = thread::Builder::new().name("take-over".into());
                if builder.spawn_scoped(scope, || call.run()).is_err() {
                    call.run();
                }
            }
            let begun = Instant::now();
            wait_until_effective(&calls);
            if let Some(error) = calls.iter().find_map(Call::take_error) {
                return Err(SuccessorError::TakeOver(error).into());
            }
            self.link.send(&SuccessorMessage::Switched, &[]).map_err(SuccessorError::from)?;
            self.expect(PredecessorMessage::Drained, AFTER)?;
            start()?;
            Ok(begun.elapsed())
        })
    }

    /// Reports that the workers run, and how long no process forwarded.
    pub(crate) fn report_running(&self, interruption: Duration) {
        let interruption_us = interruption.as_micros() as u64;
        let _ = self.link.send(&SuccessorMessage::Running { interruption_us }, &[]);
    }

    /// Receives the final counters of the datapaths, and waits until the old process has ended.
    pub(crate) fn receive_counters(
        &self,
        mut take: impl FnMut(u64, &FinalCounters),
    ) -> Result<(), SuccessorError> {
        loop {
            let (message, mut files) = self.link.receive::<PredecessorMessage>(AFTER)?;
            match (message, files.pop()) {
                (PredecessorMessage::Counters { datapath }, Some(file)) => {
                    let incomplete = |error: String| SuccessorError::Incomplete(error);
                    let bytes = unsealed(file).map_err(|error| incomplete(error.to_string()))?;
                    let counters = serde_json::from_slice(&bytes);
                    take(datapath, &counters.map_err(|error| incomplete(error.to_string()))?);
                }
                (PredecessorMessage::Ends, _) => break,
                (other, _) => return Err(unexpected(&other)),
            }
        }
        if !self.link.wait_for_end(AFTER) {
            return Err(LinkError::Late(AFTER.as_secs()).into());
        }
        Ok(())
    }

    /// Returns whether the old process has ended. Messages that it has sent before are lost.
    pub(crate) fn has_predecessor_ended(&self) -> bool {
        // Each message before the end is received by one call.
        (0..LAST_MESSAGES).any(|_| self.link.wait_for_end(Duration::ZERO))
    }

    fn expect(&self, expected: PredecessorMessage, limit: Duration) -> Result<(), SuccessorError> {
        let (message, _) = self.link.receive::<PredecessorMessage>(limit)?;
        if message == expected { Ok(()) } else { Err(unexpected(&message)) }
    }
}

/// A call on a thread of its own that directs the packets of a port to this process.
struct Call<'a> {
    fanout: &'a Fanout,
    /// ID of the thread, or 0 before it runs.
    thread: AtomicI32,
    result: Mutex<Option<io::Result<()>>>,
}

impl<'a> Call<'a> {
    fn new(fanout: &'a Fanout) -> Self {
        Self { fanout, thread: AtomicI32::new(0), result: Mutex::new(None) }
    }

    fn run(&self) {
        self.thread.store(gettid().as_raw_pid(), Ordering::Release);
        let result = self.fanout.take_over();
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    fn has_returned(&self) -> bool {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn take_error(&self) -> Option<io::Error> {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.as_mut().and_then(|result| std::mem::replace(result, Ok(())).err())
    }

    /// Returns whether the thread waits without being interruptible. Without /proc, the result is `false`.
    fn waits_in_kernel(&self) -> bool {
        let thread = self.thread.load(Ordering::Acquire);
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('D'))
    }
}

/// Waits until the packets of all ports reach this process: each call has returned, or waits in the kernel
/// for packets on their way.
fn wait_until_effective(calls: &[Call<'_>]) {
    let mut waits = vec![0; calls.len()];
    loop {
        for (call, waits) in calls.iter().zip(&mut waits) {
            *waits = if call.has_returned() || call.waits_in_kernel() { *waits + 1 } else { 0 };
        }
        if waits.iter().all(|waits| *waits >= WAITS) {
            return;
        }
        thread::sleep(SETTLED);
    }
}

fn unexpected(message: &PredecessorMessage) -> SuccessorError {
    LinkError::Malformed(format!("{message:?} comes at another time")).into()
}

#[cfg(test)]
mod tests {
    use super::super::sealed;
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::os::fd::BorrowedFd;

    fn pair() -> (UpgradeLink, Successor) {
        let (old, new) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        (UpgradeLink::new(old), Successor::new(UpgradeLink::new(new)))
    }

    fn offer() -> DatapathOffer {
        DatapathOffer {
            datapath: 1,
            control: "/run/s1.sock".into(),
            listeners: vec!["OpenFlow tcp:127.0.0.1:6653".into()],
            locks: vec!["eth0".into()],
            ports: Vec::new(),
        }
    }

    #[test]
    fn another_version_is_refused_with_both_numbers() {
        let (old, new) = pair();
        old.send(&UpgradeHello { version: VERSION + 1, datapaths: 1, metrics: false }, &[]).unwrap();
        let error = new.receive().unwrap_err().to_string();
        assert!(
            error.contains(&format!("version {}", VERSION + 1)) && error.contains("restart the switch"),
            "{error}"
        );
    }

    #[test]
    fn a_datapath_gets_each_descriptor_by_its_name() {
        let (old, mut files) = (pair(), Vec::new());
        for text in ["state", "control", "listener", "lock"] {
            files.push(sealed(text.as_bytes()).unwrap());
        }
        let (old, new) = old;
        let descriptors: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        old.send(&UpgradeHello { version: VERSION, datapaths: 1, metrics: false }, &[]).unwrap();
        old.send(&offer(), &descriptors).unwrap();
        let mut one = new.receive().unwrap().remove(0);
        assert_eq!(one.state, b"state");
        assert!(one.take_listener("OpenFlow tcp:127.0.0.1:1").is_none());
        let listener = one.take_listener("OpenFlow tcp:127.0.0.1:6653").unwrap();
        assert_eq!(unsealed(listener).unwrap(), b"listener");
        assert_eq!(unsealed(one.take_lock("eth0").unwrap()).unwrap(), b"lock");
        assert!(one.take_lock("eth0").is_none(), "a descriptor is taken once");
        old.send(&UpgradeHello { version: VERSION, datapaths: 1, metrics: false }, &[]).unwrap();
        old.send(&offer(), &descriptors[1..]).unwrap();
        let error = new.receive().unwrap_err().to_string();
        assert!(error.contains("3 descriptors came instead of 4"), "{error}");
    }

    /// The old process may end before each of its messages. The new one must then not start its workers.
    #[test]
    fn the_end_of_the_old_process_is_noticed_at_each_step() {
        let steps = [PredecessorMessage::TakeOver, PredecessorMessage::Drained];
        for sent in 0..=steps.len() {
            let (old, new) = pair();
            for step in steps.iter().take(sent) {
                old.send(step, &[]).unwrap();
            }
            let receiver = thread::spawn(move || {
                // The last messages of the new process need a receiver.
                while old.receive::<SuccessorMessage>(Duration::from_millis(300)).is_ok() {}
            });
            let mut is_started = false;
            let taken = new.take_over(&[], || {
                is_started = true;
                Ok(())
            });
            receiver.join().unwrap();
            assert_eq!(
                (taken.is_ok(), is_started),
                (sent == steps.len(), sent == steps.len()),
                "{sent} steps"
            );
        }
        let (old, new) = pair();
        old.send(&PredecessorMessage::Drained, &[]).unwrap();
        let error = new.take_over(&[], || Ok(())).unwrap_err().to_string();
        assert!(error.contains("another time"), "{error}");
    }

    #[test]
    fn counters_end_with_the_old_process() {
        let (old, new) = pair();
        let counters = FinalCounters::none(4);
        let file = sealed(&serde_json::to_vec(&counters).unwrap()).unwrap();
        old.send(&PredecessorMessage::Counters { datapath: 4 }, &[file.as_fd()]).unwrap();
        old.send(&PredecessorMessage::Ends, &[]).unwrap();
        drop(old);
        let mut taken = Vec::new();
        new.receive_counters(|datapath, counters| taken.push((datapath, counters.clone()))).unwrap();
        assert_eq!(taken, [(4, counters)]);
        let (old, new) = pair();
        drop(old);
        assert!(new.receive_counters(|_, _| unreachable!("no counters came")).is_err());
    }

    #[test]
    fn the_end_of_the_old_process_is_seen_behind_unread_messages() {
        let (old, new) = pair();
        assert!(!new.has_predecessor_ended());
        for _ in 0..3 {
            old.send(&PredecessorMessage::Ends, &[]).unwrap();
        }
        drop(old);
        assert!(new.has_predecessor_ended());
    }
}
