// SPDX-License-Identifier: Apache-2.0
//! The fan-out group of a port's sockets, and how a newer process takes over the port's packets.
//!
//! The kernel runs the group's program for each packet, and the program's result is the number of the member
//! that receives the packet. The sockets of a newer process join the group as further members, which no
//! program selects at first. One system call then replaces the program ([`Fanout::take_over`]), so that each
//! packet reaches either the older process or the newer one, never both.
//!
//! When a member leaves, the kernel moves the last member into its place. The sockets of the older process
//! close in any order, so the newer process joins with as many fillers as there are older members, after its
//! queues: sockets that no program selects, and that move into the places of the older members.

use super::program;
use crate::handover::FanoutGroup;
use crate::sys;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// `PACKET_FANOUT_CBPF` of linux/if_packet.h, which libc does not define: a program selects the member.
const FANOUT_CBPF: u32 = 6;
/// `PACKET_FANOUT_FLAG_IGNORE_OUTGOING` of linux/if_packet.h, which libc does not define. The sockets' own
/// option does not apply to a fan-out group.
const FANOUT_IGNORE_OUTGOING: u32 = 0x4000;
/// Maximum number of members of a group.
pub(super) const MEMBERS_MAX: usize = 256;

/// Access to the fan-out group of a port from any thread.
#[derive(Clone)]
pub struct Fanout(Arc<Shared>);

struct Shared {
    queues: usize,
    /// The group of an older process, which the sockets join when the port is opened.
    inherited: Option<FanoutGroup>,
    /// The group of the port's sockets, once a socket has joined. Locked only when a device is opened or
    /// reopened, and by the methods of [`Fanout`].
    group: Mutex<Option<Group>>,
}

struct Group {
    /// Index of the group's interface.
    ifindex: i32,
    id: u16,
    /// Number of the first member that belongs to this port. Older members and fillers come before.
    base: u16,
    /// Whether members of an older process may exist.
    has_older: bool,
    /// The sockets of this port that have joined.
    members: Vec<Weak<OwnedFd>>,
    fillers: Vec<OwnedFd>,
}

/// When a socket joins its port's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The port is opened.
    Opening,
    /// The interface was replaced.
    Reopening,
}

impl Fanout {
    pub(super) fn new(queues: usize, inherited: Option<FanoutGroup>) -> Self {
        Self(Arc::new(Shared { queues, inherited, group: Mutex::new(None) }))
    }

    /// Returns the group that a newer process's port can join. Returns `None` if the port has no complete
    /// group on its interface now, if members of an older process may exist, or if the group has no space for
    /// another port with as many queues.
    #[must_use]
    pub fn group(&self) -> Option<FanoutGroup> {
        let group = self.lock();
        let group = group.as_ref().filter(|group| !group.has_older)?;
        self.bound(group).ok()?;
        let members = usize::from(group.base) + self.0.queues;
        (members_with_newer(members, self.0.queues) <= MEMBERS_MAX)
            .then_some(FanoutGroup { id: group.id, members: members as u16 })
    }

    /// Directs the packets of the interface to this port, at once and without loss. When the call returns,
    /// each earlier packet is in the ring of the older process. The older process can undo this by the same
    /// call on its own port.
    ///
    /// # Errors
    /// Returns an error of the system, or an error if the interface was removed or replaced.
    pub fn take_over(&self) -> io::Result<()> {
        let group = self.lock();
        let group = group.as_ref().ok_or_else(no_group)?;
        let socket = self.bound(group)?;
        sys::set_fanout_program(socket.as_fd(), &mut program::select(group.base, self.0.queues as u32))
    }

    /// Prepares the group for the next newer process. Must be called after the older process's sockets are
    /// closed. Has no effect if the port has a group of its own.
    ///
    /// # Errors
    /// Returns an error of the system, or an error if no socket of the port is open.
    pub fn settle(&self) -> io::Result<()> {
        let mut group = self.lock();
        let Some(group) = group.as_mut().filter(|group| group.has_older) else { return Ok(()) };
        let socket = group.members.iter().find_map(Weak::upgrade).ok_or_else(no_group)?;
        // Several fillers have unknown numbers, so closing them would move queues to unknown numbers. They
        // stay until the process ends.
        if group.base == 1 && self.0.queues == 1 {
            // The kernel moves the queue to number 0, and takes the program's result modulo 1.
            group.fillers.clear();
            sys::set_fanout_program(socket.as_fd(), &mut program::select(0, 1))?;
            group.base = 0;
        }
        group.has_older = false;
        Ok(())
    }

    /// Makes a bound socket a member of the port's group on this interface. Creates a group if there is none,
    /// or if it belongs to a removed interface.
    pub(super) fn join(&self, socket: &Arc<OwnedFd>, ifindex: i32, occasion: Occasion) -> io::Result<()> {
        let mut current = self.lock();
        if let Some(group) = current.as_mut()
            && group.ifindex == ifindex
            // A member keeps the group alive: entering a group that has ended would create another one.
            && let Some(_member) = group.members.iter().find_map(Weak::upgrade)
        {
            let entered = enter(socket, group.id, 0).and_then(|()| {
                group.members.push(Arc::downgrade(socket));
                self.fill(group)
            });
            if entered.is_ok() || occasion == Occasion::Opening {
                return entered;
            }
        }
        let inherited = self.0.inherited.filter(|_| occasion == Occasion::Opening);
        let (id, base) = match inherited {
            Some(group) => {
                enter(socket, group.id, 0)?;
                (group.id, group.members)
            }
            None => (create(socket, self.0.queues)?, 0),
        };
        let members = vec![Arc::downgrade(socket)];
        let group = Group { ifindex, id, base, has_older: base > 0, members, fillers: Vec::new() };
        self.fill(current.insert(group))
    }

    /// Adds the fillers after the last queue of a port that takes over from an older one.
    fn fill(&self, group: &mut Group) -> io::Result<()> {
        if !group.has_older || group.members.len() != self.0.queues {
            return Ok(());
        }
        while group.fillers.len() < usize::from(group.base) {
            let filler = sys::packet_socket()?;
            sys::refuse_all(filler.as_fd())?;
            sys::bind(filler.as_fd(), group.ifindex)?;
            enter(&filler, group.id, 0)?;
            group.fillers.push(filler);
        }
        Ok(())
    }

    /// Records that the socket `fresh` now has the descriptor `kept`.
    pub(super) fn renumber(&self, fresh: &Arc<OwnedFd>, kept: &Arc<OwnedFd>) {
        let mut current = self.lock();
        let Some(group) = current.as_mut() else { return };
        let is_of = |fd: &Arc<OwnedFd>| {
            let pointer = Arc::as_ptr(fd);
            move |member: &Weak<OwnedFd>| member.as_ptr() == pointer
        };
        // The old socket of `kept` is closed.
        group.members.retain(|member| !is_of(kept)(member) && member.strong_count() > 0);
        if let Some(member) = group.members.iter_mut().find(|member| is_of(fresh)(member)) {
            *member = Arc::downgrade(kept);
        }
    }

    /// Returns a socket of the group if all sockets of the port are members on the group's interface.
    fn bound(&self, group: &Group) -> io::Result<Arc<OwnedFd>> {
        let sockets: Vec<_> = group.members.iter().filter_map(Weak::upgrade).collect();
        let is_bound = |socket: &Arc<OwnedFd>| {
            sys::bound_index(socket.as_fd()).is_ok_and(|ifindex| ifindex == group.ifindex)
        };
        if sockets.len() != self.0.queues || !sockets.iter().all(is_bound) {
            return Err(no_group());
        }
        sockets.into_iter().next().ok_or_else(no_group)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Group>> {
        self.0.group.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number of members when a newer port has joined a group: the older members, the queues of the
/// newer port, and its fillers.
pub(super) fn members_with_newer(older: usize, queues: usize) -> usize {
    2 * older + queues
}

/// Makes a socket a member of the group with this ID.
fn enter(socket: &OwnedFd, id: u16, flags: u32) -> io::Result<()> {
    let mode = FANOUT_CBPF | FANOUT_IGNORE_OUTGOING | flags;
    let argument = (u32::from(id) | mode << 16) as libc::c_int;
    sys::set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT, &argument)
}

/// Makes a socket the first member of a new group, whose program selects among the first `queues` members.
/// Returns the group's ID.
fn create(socket: &OwnedFd, queues: usize) -> io::Result<u16> {
    enter(socket, 0, libc::PACKET_FANOUT_FLAG_UNIQUEID)?;
    let id: libc::c_int = sys::option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT)?;
    sys::set_fanout_program(socket.as_fd(), &mut program::select(0, queues as u32))?;
    Ok(id as u16)
}

fn no_group() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the port has no complete fan-out group on its interface")
}
