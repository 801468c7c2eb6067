// SPDX-License-Identifier: Apache-2.0
//! Execution of an entry's program on a packet, and of the action set at the end of the pipeline.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::packet::{Packet, State, Take};
use actions::{Program, ProgramStep};
use flow::action::WHOLE_PACKET;
use flow::{DropReason, PacketInReason};

impl<E: Egress> BurstContext<'_, E> {
    /// Runs an entry's instructions and returns the packet's new state, which is also stored in the packet.
    ///
    /// Callers use the returned value. Reading `packet.state` right after it was written in parts would stall
    /// the core (failed store forwarding).
    #[inline(always)]
    pub(crate) fn instructions(&mut self, packet: &mut Packet, program: &Program) -> State {
        packet.low_latency &= program.low_latency;
        packet.miss_entry = program.miss_entry;
        // Each branch stores and returns its own state. One variable for all of them would be copied byte by
        // byte.
        if let Some(port) = program.output
            && packet.set.is_empty()
        {
            packet.state = State::Done;
            if self.route(packet, program) {
                self.output_to(packet, port, Take::Frame);
            }
            return State::Done;
        }
        if let Some(next) = program.passage {
            if !self.route(packet, program) {
                packet.state = State::Done;
                return State::Done;
            }
            packet.state = State::Waits(next);
            return State::Waits(next);
        }
        let state = if program.plain {
            self.applied_actions(packet, program)
        } else {
            self.all_instructions(packet, program)
        };
        packet.state = state;
        state
    }

    /// Runs the rewrites of a router, if the program has them. Returns false if a rewrite failed, which ends
    /// the packet's processing.
    #[inline(always)]
    fn route(&mut self, packet: &mut Packet, program: &Program) -> bool {
        let Some(route) = &program.route else { return true };
        let Err(reason) = route.run(&mut packet.data) else { return true };
        self.fail_step(packet, reason);
        false
    }

    /// Runs apply-actions and goto-table, for programs that have no other instruction.
    #[inline(never)]
    fn applied_actions(&mut self, packet: &mut Packet, program: &Program) -> State {
        let ends = program.next.is_none() && packet.set.is_empty();
        let last = if ends { Take::Frame } else { Take::Copy };
        let goes_on = self.steps(packet, &program.apply, last, 0);
        if goes_on { after(packet, program) } else { State::Done }
    }

    /// Runs instructions of every kind.
    #[inline(never)]
    fn all_instructions(&mut self, packet: &mut Packet, program: &Program) -> State {
        if let Some(meter) = program.meter
            && !self.meter(packet, meter, program.next)
        {
            return State::Done;
        }
        // The last applied action may take the packet's frame if the packet continues neither with a table
        // nor with an action set.
        let ends =
            program.next.is_none() && program.write.is_empty() && (program.clear || packet.set.is_empty());
        let last = if ends { Take::Frame } else { Take::Copy };
        if !self.steps(packet, &program.apply, last, 0) {
            return State::Done;
        }
        if program.clear {
            packet.set.clear();
        }
        if !program.write.is_empty()
            && let Err(reason) = packet.set.write(&program.write)
        {
            self.fail(packet, reason);
            return State::Done;
        }
        if let Some((value, mask)) = program.metadata {
            packet.data.ext.write_metadata(value, mask);
        }
        after(packet, program)
    }

    /// Executes the packet's action set.
    #[inline(never)]
    pub(crate) fn action_set(&mut self, packet: &mut Packet) {
        let steps = packet.set.ordered();
        self.steps(packet, &steps, Take::Frame, 0);
        packet.state = State::Done;
    }

    /// Runs actions in order. Returns false if an action failed, which ends the packet's processing. `last`
    /// states whether the last action may take the packet's frame. `chain` is the number of groups already
    /// entered.
    #[inline(always)]
    pub(crate) fn steps(
        &mut self,
        packet: &mut Packet,
        steps: &[ProgramStep],
        last: Take,
        chain: usize,
    ) -> bool {
        for (number, step) in steps.iter().enumerate() {
            let take = || if number + 1 == steps.len() { last } else { Take::Copy };
            // Outputs are checked first, because they are the most frequent action and often the only one.
            if let ProgramStep::Output { port, max_len } = *step {
                self.output(packet, port, max_len, take());
            } else if let ProgramStep::WriteMacs(macs) = step {
                macs.run(&mut packet.data);
            } else if let ProgramStep::Group(group) = *step {
                self.group(packet, group, take(), chain);
            } else if let Err(reason) = step.rewrite(&mut packet.data, self.tag_types()) {
                self.fail_step(packet, reason);
                return false;
            }
        }
        true
    }

    /// Notes that an action failed. Reports an expired TTL to the controller if the settings require it.
    #[cold]
    #[inline(never)]
    fn fail_step(&mut self, packet: &mut Packet, reason: DropReason) {
        if reason == DropReason::TtlExpired && self.settings.report_invalid_ttl {
            self.send_to_controller(packet, WHOLE_PACKET, PacketInReason::InvalidTtl);
        }
        self.fail(packet, reason);
    }
}

/// Returns the packet's state after an entry's instructions.
#[inline]
fn after(packet: &Packet, program: &Program) -> State {
    match program.next {
        Some(next) => State::Waits(next),
        None if packet.set.is_empty() => State::Done,
        None => State::Finish,
    }
}
