// SPDX-License-Identifier: Apache-2.0
//! The old process of an upgrade. The thread that changes the configuration does all steps, so an upgrade and
//! a reload never overlap. Begin with [`Predecessor::hand_over`].

use super::launcher::{Launcher, Started};
use super::protocol::{
    DatapathOffer, LinkError, PredecessorMessage, SuccessorMessage, UpgradeHello, UpgradeLink, VERSION,
};
use super::{FinalCounters, sealed};
use crate::daemon::{Shared, report_main_process};
use port::{Fanout, XdpRings, XdpSockets};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time in which the new program may prepare itself.
const PREPARE: Duration = Duration::from_secs(60);
/// Longest time in which the new program may direct the packets to itself, and start its workers.
const SWITCH: Duration = Duration::from_secs(5);
/// Longest time in which a control thread answers.
const ANSWER: Duration = Duration::from_secs(10);
/// Longest time in which the workers process what is in their rings and egress queues.
const DRAIN: Duration = Duration::from_millis(500);
/// Pause between two looks at the workers.
const LOOK: Duration = Duration::from_micros(20);

/// Reason of a failed upgrade.
const ENDED: &str = "the new program has ended before it was ready";

/// A command for a control thread.
pub(crate) enum UpgradeCommand {
    /// Stops all changes, and hands over the state and the sockets.
    Freeze(Sender<Result<FrozenDatapath, String>>),
    /// Goes on as before [`UpgradeCommand::Freeze`].
    Thaw,
    /// Ends the workers, and returns the final counters. Afterwards only the end of the process may follow.
    Finish(Sender<FinalCounters>),
}

/// What a datapath hands over. The descriptors are in the order of the offer.
pub(crate) struct FrozenDatapath {
    pub offer: DatapathOffer,
    pub state: Vec<u8>,
    pub control: OwnedFd,
    pub listeners: Vec<OwnedFd>,
    pub locks: Vec<OwnedFd>,
    /// The sockets of ports that hand over their sockets, in the order of the ports.
    pub sockets: Vec<XdpSockets>,
    pub access: PortAccess,
}

/// Access to the ports that are handed over.
#[derive(Default)]
pub(crate) struct PortAccess {
    pub fanouts: Vec<Fanout>,
    /// The rings of each port, with the value of [`XdpRings::openings`] when the sockets were sent.
    pub rings: Vec<(XdpRings, u32)>,
}

impl PortAccess {
    /// Returns an error if the new process has an outdated socket, because a queue was reopened meanwhile.
    fn check_sockets(&self) -> Result<(), String> {
        match self.rings.iter().all(|(rings, openings)| rings.openings() == *openings) {
            true => Ok(()),
            false => Err("an interface was replaced during the preparation; try again".into()),
        }
    }

    /// Makes the workers stop using the rings, and waits until they have stopped.
    fn release_rings(&self) -> Result<(), String> {
        self.rings.iter().for_each(|(rings, _)| rings.release());
        let end = Instant::now() + DRAIN;
        while !self.rings.iter().all(|(rings, _)| rings.have_noticed()) {
            if Instant::now() >= end {
                return Err("a worker does not stop using its sockets".into());
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Takes all packets back after a failure: uses the rings again, and directs the packets of fan-out
    /// groups to this process.
    fn take_back(&self) {
        self.rings.iter().for_each(|(rings, _)| rings.resume());
        for fanout in &self.fanouts {
            if let Err(error) = fanout.take_over() {
                tracing::error!("the packets of a port cannot be directed back to this process: {error}");
            }
        }
    }
}

/// The way to a datapath's control thread and workers.
#[derive(Clone)]
pub(crate) struct UpgradeWay {
    pub commands: Sender<UpgradeCommand>,
    pub wake: Arc<dyn Fn() + Send + Sync>,
    pub workers: Arc<[Arc<Shared>]>,
}

impl UpgradeWay {
    fn send(&self, command: UpgradeCommand) {
        // Without a receiver, the datapath has ended, and no answer will come.
        let _ = self.commands.send(command);
        (self.wake)();
    }

    fn freeze(&self) -> Result<FrozenDatapath, String> {
        let (answer, frozen) = channel();
        self.send(UpgradeCommand::Freeze(answer));
        frozen.recv_timeout(ANSWER).unwrap_or_else(|_| Err("the control thread does not answer".into()))
    }

    fn finish(&self) -> Option<FinalCounters> {
        let (answer, counters) = channel();
        self.send(UpgradeCommand::Finish(answer));
        counters.recv_timeout(ANSWER).ok()
    }
}

/// The old process's part of an upgrade.
pub(crate) struct Predecessor {
    pub launcher: Launcher,
    /// The socket that listens for requests of metrics, if there is one.
    pub metrics: Option<TcpListener>,
    /// Ends the process.
    pub end: UnixStream,
}

impl Predecessor {
    /// Starts a new program, and hands over to it. Returns sentences about the upgrade, and the link to the
    /// new process, which waits until the link is closed. So the link must stay open until this process ends,
    /// which must follow. After an error, this process forwards as before.
    pub fn hand_over(
        &mut self,
        program: Option<&Path>,
        ways: &[UpgradeWay],
    ) -> Result<(Vec<String>, UpgradeLink), String> {
        let Started { link, pid, program } =
            self.launcher.launch(program).map_err(|error| error.to_string())?;
        let mut access = PortAccess::default();
        let handed = self.prepare(&link, ways, &mut access).and_then(|()| switch(&link, ways, &access));
        match handed {
            Ok(interruption_us) => {
                report_main_process(pid);
                access.rings.iter().for_each(|(rings, _)| rings.abandon());
                finish(&link, ways);
                let sentences = vec![
                    format!("{} forwards packets as process {pid}", program.display()),
                    format!(
                        "no process forwarded for {} ms; arriving packets waited",
                        interruption_us as f64 / 1e3
                    ),
                ];
                Ok((sentences, link))
            }
            Err(reason) => {
                // Take the packets back only when the new process has ended. It could still use the rings,
                // and would stay a member of the fan-out groups.
                if self.launcher.end(pid) {
                    access.take_back();
                } else {
                    tracing::error!("process {pid} may still have the ports; restart the switch");
                }
                for way in ways {
                    way.workers.iter().for_each(|worker| worker.end_drain());
                    way.send(UpgradeCommand::Thaw);
                }
                Err(format!("the upgrade failed, and the running program goes on: {reason}"))
            }
        }
    }

    /// Freezes the datapaths, sends everything to the new program, and waits until it is prepared.
    fn prepare(
        &self,
        link: &UpgradeLink,
        ways: &[UpgradeWay],
        access: &mut PortAccess,
    ) -> Result<(), String> {
        let failed = |error: LinkError| failure(link, &error);
        let metrics: Vec<BorrowedFd<'_>> = self.metrics.iter().map(AsFd::as_fd).collect();
        let hello = UpgradeHello { version: VERSION, datapaths: ways.len(), metrics: !metrics.is_empty() };
        link.send(&hello, &metrics).map_err(failed)?;
        for way in ways {
            let frozen = way.freeze()?;
            let state = sealed(&frozen.state).map_err(|error| error.to_string())?;
            let mut descriptors: Vec<BorrowedFd<'_>> = vec![state.as_fd(), frozen.control.as_fd()];
            descriptors.extend(frozen.listeners.iter().chain(&frozen.locks).map(AsFd::as_fd));
            link.send(&frozen.offer, &descriptors).map_err(failed)?;
            for sockets in &frozen.sockets {
                link.send(&PredecessorMessage::Sockets, &sockets.descriptors()).map_err(failed)?;
            }
            access.fanouts.extend(frozen.access.fanouts);
            access.rings.extend(frozen.access.rings);
        }
        expect(link, &SuccessorMessage::Ready, PREPARE)
    }
}

/// Lets the new program direct the packets to itself, and empties the rings. Rings of sockets that move keep
/// their packets. Returns the interruption in microseconds.
fn switch(link: &UpgradeLink, ways: &[UpgradeWay], access: &PortAccess) -> Result<u64, String> {
    access.check_sockets()?;
    link.send(&PredecessorMessage::TakeOver, &[]).map_err(|error| error.to_string())?;
    expect(link, &SuccessorMessage::Switched, SWITCH)?;
    access.rings.iter().for_each(|(rings, _)| rings.hold());
    if !drain(ways) {
        tracing::warn!("packets were left in the old process when the new one began");
    }
    access.check_sockets()?;
    access.release_rings()?;
    link.send(&PredecessorMessage::Drained, &[]).map_err(|error| error.to_string())?;
    match link.receive::<SuccessorMessage>(SWITCH) {
        Ok((SuccessorMessage::Running { interruption_us }, _)) => Ok(interruption_us),
        Ok((other, _)) => Err(format!("the new program answers {other:?}")),
        Err(error) => Err(format!("the new program: {error}")),
    }
}

/// Waits until no packet is left in the rings, between the workers, and in egress queues. Returns whether
/// this is so before the time is over.
fn drain(ways: &[UpgradeWay]) -> bool {
    let workers = || ways.iter().flat_map(|way| way.workers.iter());
    let end = Instant::now() + DRAIN;
    // Waits until each worker has had a whole turn without a packet.
    let all_were_idle = || {
        workers().for_each(|worker| worker.begin_drain());
        while !workers().all(|worker| worker.is_drained()) {
            if Instant::now() >= end {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    };
    let busy_turns = || workers().map(|worker| worker.busy_turns()).sum::<u64>();
    // A frame may pass several workers, over rings between the workers of a datapath and over patch ports. A
    // worker that was idle may get it from one that was not idle yet. So nothing is left only if every worker
    // has completed an idle turn during a period in which no worker was busy.
    let mut is_done = all_were_idle();
    loop {
        let before = busy_turns();
        is_done = is_done && all_were_idle();
        if !is_done || busy_turns() == before {
            return is_done;
        }
    }
}

/// Ends the workers, and sends the final counters.
fn finish(link: &UpgradeLink, ways: &[UpgradeWay]) {
    // Packets that were on their way to this process when the packets were directed to the new one.
    drain(ways);
    for way in ways {
        let Some((datapath, counters)) = way.finish().map(|counters| (counters.datapath, counters)) else {
            tracing::error!("the counters of a datapath are lost: its control thread does not answer");
            continue;
        };
        let sent = serde_json::to_vec(&counters)
            .map_err(|error| error.to_string())
            .and_then(|bytes| sealed(&bytes).map_err(|error| error.to_string()))
            .and_then(|file| {
                let message = PredecessorMessage::Counters { datapath };
                link.send(&message, &[file.as_fd()]).map_err(|error| error.to_string())
            });
        if let Err(error) = sent {
            tracing::error!("the counters of datapath {datapath} are lost: {error}");
        }
    }
    if let Err(error) = link.send(&PredecessorMessage::Ends, &[]) {
        tracing::error!("the new program: {error}");
    }
}

fn expect(link: &UpgradeLink, expected: &SuccessorMessage, limit: Duration) -> Result<(), String> {
    match link.receive::<SuccessorMessage>(limit) {
        Ok((message, _)) if message == *expected => Ok(()),
        Ok((SuccessorMessage::Failed(reason), _)) => Err(reason),
        Ok((other, _)) => Err(format!("the new program answers {other:?}")),
        Err(LinkError::Ended) => Err(ENDED.into()),
        Err(LinkError::Late(seconds)) => Err(format!("the new program was not ready within {seconds} s")),
        Err(error) => Err(format!("the new program: {error}")),
    }
}

/// Returns why a message could not be sent: the reason of the new program, if it has sent one.
fn failure(link: &UpgradeLink, error: &LinkError) -> String {
    match link.receive::<SuccessorMessage>(Duration::ZERO) {
        Ok((SuccessorMessage::Failed(reason), _)) => reason,
        _ if matches!(error, LinkError::Ended) => ENDED.into(),
        _ => format!("the new program: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    const SOON: Duration = Duration::from_millis(20);

    fn pair() -> (UpgradeLink, UpgradeLink) {
        let (old, new) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        (UpgradeLink::new(old), UpgradeLink::new(new))
    }

    #[test]
    fn the_client_gets_the_reason_of_a_new_program_that_is_not_ready() {
        let (old, new) = pair();
        assert!(expect(&old, &SuccessorMessage::Ready, SOON).unwrap_err().contains("was not ready within"));
        new.send(&SuccessorMessage::Switched, &[]).unwrap();
        assert!(expect(&old, &SuccessorMessage::Ready, SOON).unwrap_err().contains("answers Switched"));
        new.send(&SuccessorMessage::Failed("no such key".into()), &[]).unwrap();
        assert_eq!(expect(&old, &SuccessorMessage::Ready, SOON), Err("no such key".into()));
        new.send(&SuccessorMessage::Ready, &[]).unwrap();
        assert_eq!(expect(&old, &SuccessorMessage::Ready, SOON), Ok(()));
        // A program that gives up at once has ended when the old one sends.
        new.send(&SuccessorMessage::Failed("no such file".into()), &[]).unwrap();
        drop(new);
        assert_eq!(failure(&old, &LinkError::Ended), "no such file");
        assert_eq!(expect(&old, &SuccessorMessage::Ready, SOON), Err(ENDED.into()));
    }

    /// Without an answer, or with another one, the packets stay with the old process.
    #[test]
    fn a_switch_over_ends_at_each_step_at_which_the_new_program_ends() {
        let steps = [SuccessorMessage::Switched, SuccessorMessage::Running { interruption_us: 7 }];
        for sent in 0..=steps.len() {
            let (old, new) = pair();
            for step in steps.iter().take(sent) {
                new.send(step, &[]).unwrap();
            }
            let receiver =
                thread::spawn(
                    move || {
                        while new.receive::<PredecessorMessage>(Duration::from_millis(300)).is_ok() {}
                    },
                );
            let switched = switch(&old, &[], &PortAccess::default());
            receiver.join().unwrap();
            if sent == steps.len() {
                assert_eq!(switched, Ok(7));
            } else {
                assert!(switched.is_err(), "{sent} steps");
            }
        }
    }
}
