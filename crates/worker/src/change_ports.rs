// SPDX-License-Identifier: Apache-2.0
//! How a worker applies a change of its ports ([`PortChange`]).

use crate::outbox::Outbox;
use crate::port_change::{PortChange, ServedOutbox};
use crate::worker::Worker;
use flow::{DropReason, PortNo};
use pipeline::{Egress, Probe};

impl<P: Probe> Worker<P> {
    /// Applies a change of the ports. No packet may wait in the backlog. Nothing is allocated or freed, and
    /// frames of removed ports that their devices do not accept now are dropped as `no_such_port`.
    #[inline(never)]
    pub(crate) fn change_ports(&mut self, change: &mut PortChange) {
        // Frames that devices can take are sent, and not dropped.
        self.send();
        let (served, outboxes) = (&mut change.space.0, &mut change.space.1);
        debug_assert!(served.capacity() >= self.served.len() + change.added.len());
        for (one, outbox) in self.served.drain(..).zip(self.egress.outboxes.drain(..)) {
            if change.removed.contains(&one.number) {
                change.given_back.push(ServedOutbox { served: one, outbox });
            } else {
                served.push(one);
                outboxes.push(outbox);
            }
        }
        for mut one in change.added.drain(..) {
            one.served.queue.start();
            served.push(one.served);
            outboxes.push(one.outbox);
        }
        std::mem::swap(&mut self.served, served);
        std::mem::swap(&mut self.egress.outboxes, outboxes);
        std::mem::swap(&mut self.egress.routes, &mut change.routes);
        self.first = 0;
        for ServedOutbox { outbox, .. } in &mut change.given_back {
            while let Some(frame) = outbox.pop() {
                self.counters.add_copies_dropped(DropReason::NoSuchPort, 1);
                self.egress.free(frame);
            }
        }
        for (number, bytes) in &change.outstanding {
            let queues = self.served.iter_mut().filter(|served| served.number == *number);
            queues.for_each(|served| served.queue.set_outstanding(*bytes));
            let outboxes = self.served.iter().zip(&mut self.egress.outboxes);
            let of_port = outboxes.filter(|(served, _)| served.number == *number);
            of_port.for_each(|(_, outbox)| outbox.ask_again());
        }
        self.change_outboxes(&mut change.outboxes);
        if let Some(mirrors) = &mut change.mirrors {
            self.mirrors.change(mirrors);
        }
        for served in &mut self.served {
            served.taps = self.mirrors.taps(served.number);
        }
        if let Some(limits) = &mut change.limits {
            self.pipeline.swap_packet_in_limits(limits);
        }
        // The links of new ports become known at once.
        self.housekeeping();
    }

    /// Replaces outboxes of ports. Frames that wait are moved to the new outboxes in their order. Those for
    /// which there is no space are dropped as `queue_full`.
    fn change_outboxes(&mut self, outboxes: &mut [(PortNo, Outbox)]) {
        for (number, new) in outboxes {
            let Some(at) = self.served.iter().position(|served| served.number == *number) else { continue };
            std::mem::swap(&mut self.egress.outboxes[at], new);
            let old = new;
            self.egress.outboxes[at].continue_from(old);
            while let Some(moved) = old.pop_queued() {
                if let Err(frame) = self.egress.outboxes[at].push_queued(moved) {
                    self.counters.add_copies_dropped(DropReason::QueueFull, 1);
                    self.egress.free(frame);
                }
            }
            // Flows may have moved to other queues.
            self.egress.outboxes[at].requeue();
            self.egress.long = true;
        }
    }
}
