// SPDX-License-Identifier: Apache-2.0
//! The program in classic BPF that selects the member of a fan-out group for each packet.
//!
//! Member `base + h` receives a packet, where h is a hash below the number of queues. The hash is symmetric
//! in the two endpoints, so both directions of a flow reach the same queue. An endpoint is an IP address and,
//! in packets of TCP, UDP and SCTP that are no fragments, a port. Packets without an IP header, or with more
//! than two VLAN tags, have hash 0. The program sees a packet from its network header on, after the outermost
//! VLAN tag.
//!
//! A load outside the packet would end the program with result 0, the number of another process's member. So
//! the length is checked before each load.

use libc::{
    BPF_A, BPF_ABS, BPF_ADD, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET,
    BPF_K, BPF_LD, BPF_LDX, BPF_LEN, BPF_MEM, BPF_MISC, BPF_MSH, BPF_MUL, BPF_RET, BPF_RSH, BPF_ST, BPF_SUB,
    BPF_TAX, BPF_W, BPF_X, BPF_XOR, sock_filter,
};

/// Factor that combines the words of an endpoint: an odd number with irregular bits.
const FACTOR: u32 = 0x9e37_79b1;
/// Factors of the mixing function. Multiplication moves entropy up, and the shifts between move it down.
const MIX: [u32; 2] = [0x7feb_352d, 0x846c_a68b];

const ETH_P_VLAN: [u32; 2] = [0x8100, 0x88a8];
const ETH_P_IPV4: u32 = 0x0800;
const ETH_P_IPV6: u32 = 0x86dd;
const TAG_BYTES: u32 = 4;
const IPV4_BYTES: u32 = 20;
const IPV6_BYTES: u32 = 40;
/// Bytes of a transport header that hold its ports.
const PORTS_BYTES: u32 = 4;
/// More-fragments flag and offset of the IPv4 header.
const FRAGMENT: u32 = 0x3fff;
/// Ancillary data: the packet's EtherType.
const PROTOCOL: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;

/// Places of the scratch memory.
const SOURCE: u32 = 0;
const DESTINATION: u32 = 1;
const SPARE: u32 = 2;

/// Jump targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    /// Code for packets with a second VLAN tag.
    Tagged,
    /// Code for IPv4 packets, with or without a second tag.
    Ipv4 { tagged: bool },
    /// The two endpoints are in the scratch memory.
    Mix,
    /// The packet has hash 0.
    Other,
}

/// Returns the program that selects among `queues` members from number `base` on.
pub(super) fn select(base: u16, queues: u32) -> Vec<sock_filter> {
    let mut code = Code::default();
    if queues > 1 {
        code.step(BPF_LD | BPF_H | BPF_ABS, PROTOCOL);
        for kind in ETH_P_VLAN {
            code.branch(BPF_JEQ, kind, true, Label::Tagged);
        }
        code.endpoints(false);
        code.label(Label::Tagged);
        code.require(TAG_BYTES, Label::Other);
        code.step(BPF_LD | BPF_H | BPF_ABS, TAG_BYTES - 2);
        code.endpoints(true);
        code.label(Label::Mix);
        code.mix(queues);
        code.step(BPF_ALU | BPF_ADD | BPF_K, base.into());
        code.step(BPF_RET | BPF_A, 0);
        code.label(Label::Other);
    }
    code.step(BPF_RET | BPF_K, base.into());
    code.finish()
}

/// A program under construction.
#[derive(Default)]
struct Code {
    steps: Vec<sock_filter>,
    labels: Vec<(Label, usize)>,
    /// Instructions that jump to a label if their condition has this value.
    branches: Vec<(usize, bool, Label)>,
}

impl Code {
    fn step(&mut self, code: u32, k: u32) {
        self.steps.push(sock_filter { code: code as u16, jt: 0, jf: 0, k });
    }

    fn label(&mut self, label: Label) {
        self.labels.push((label, self.steps.len()));
    }

    /// Jumps to a label, which must follow, if comparing the accumulator with `k` has the result `when`.
    fn branch(&mut self, comparison: u32, k: u32, when: bool, to: Label) {
        self.branches.push((self.steps.len(), when, to));
        self.step(BPF_JMP | comparison, k);
    }

    /// Jumps to a label if the packet is shorter than `bytes` after the Ethernet header and first tag.
    fn require(&mut self, bytes: u32, otherwise: Label) {
        self.step(BPF_LD | BPF_W | BPF_LEN, 0);
        self.branch(BPF_JGE, bytes, false, otherwise);
    }

    /// Stores the endpoints of a packet whose EtherType is in the accumulator, and jumps to [`Label::Mix`].
    /// Jumps to [`Label::Other`] if there is no IP header.
    fn endpoints(&mut self, tagged: bool) {
        let at = if tagged { TAG_BYTES } else { 0 };
        self.branch(BPF_JEQ, ETH_P_IPV4, true, Label::Ipv4 { tagged });
        self.branch(BPF_JEQ, ETH_P_IPV6, false, Label::Other);
        self.require(at + IPV6_BYTES, Label::Other);
        self.address(at + 8, 4, SOURCE);
        self.address(at + 24, 4, DESTINATION);
        self.require(at + IPV6_BYTES + PORTS_BYTES, Label::Mix);
        self.step(BPF_LDX | BPF_W, IPV6_BYTES);
        self.ports(at, 6);

        self.label(Label::Ipv4 { tagged });
        self.require(at + IPV4_BYTES, Label::Other);
        self.address(at + 12, 1, SOURCE);
        self.address(at + 16, 1, DESTINATION);
        self.step(BPF_LD | BPF_H | BPF_ABS, at + 6);
        self.branch(BPF_JSET, FRAGMENT, true, Label::Mix);
        self.require(at + PORTS_BYTES, Label::Mix);
        self.step(BPF_ALU | BPF_SUB | BPF_K, at + PORTS_BYTES);
        self.step(BPF_LDX | BPF_B | BPF_MSH, at);
        self.branch(BPF_JGE | BPF_X, 0, false, Label::Mix);
        self.ports(at, 9);
    }

    /// Stores the value of an address: `words` words from this offset on.
    fn address(&mut self, at: u32, words: u32, place: u32) {
        self.step(BPF_LD | BPF_W | BPF_ABS, at);
        for word in 1..words {
            self.step(BPF_ALU | BPF_MUL | BPF_K, FACTOR);
            self.step(BPF_MISC | BPF_TAX, 0);
            self.step(BPF_LD | BPF_W | BPF_ABS, at + 4 * word);
            self.step(BPF_ALU | BPF_ADD | BPF_X, 0);
        }
        self.step(BPF_ALU | BPF_MUL | BPF_K, FACTOR);
        self.step(BPF_ST, place);
    }

    /// Adds the ports to the endpoints if the IP header at `at` names a protocol with ports, at offset
    /// `protocol`. X is the length of the IP header. Jumps to [`Label::Mix`].
    fn ports(&mut self, at: u32, protocol: u32) {
        self.step(BPF_LD | BPF_B | BPF_ABS, at + protocol);
        // The next instructions are skipped, up to the jump to `Mix`, unless the protocol is one of these.
        self.steps.extend([
            jump(BPF_JEQ, libc::IPPROTO_UDP as u32, 2, 0),
            jump(BPF_JEQ, libc::IPPROTO_TCP as u32, 1, 0),
        ]);
        self.branch(BPF_JEQ, libc::IPPROTO_SCTP as u32, false, Label::Mix);
        self.step(BPF_LD | BPF_W | BPF_IND, at);
        self.step(BPF_ST, SPARE);
        self.step(BPF_ALU | BPF_RSH | BPF_K, 16);
        self.step(BPF_LDX | BPF_MEM, SOURCE);
        self.step(BPF_ALU | BPF_ADD | BPF_X, 0);
        self.step(BPF_ST, SOURCE);
        self.step(BPF_LD | BPF_MEM, SPARE);
        self.step(BPF_ALU | BPF_AND | BPF_K, 0xffff);
        self.step(BPF_LDX | BPF_MEM, DESTINATION);
        self.step(BPF_ALU | BPF_ADD | BPF_X, 0);
        self.step(BPF_ST, DESTINATION);
        // The condition is always true.
        self.branch(BPF_JGE, 0, true, Label::Mix);
    }

    /// Computes the sum of the mixed endpoints, which does not depend on their order, and scales it to a
    /// number below `queues` (at most 256).
    fn mix(&mut self, queues: u32) {
        for (place, last) in [(SOURCE, false), (DESTINATION, true)] {
            self.step(BPF_LD | BPF_MEM, place);
            for factor in MIX {
                self.fold(16);
                self.step(BPF_ALU | BPF_MUL | BPF_K, factor);
            }
            self.fold(15);
            if !last {
                self.step(BPF_ST, SPARE);
            }
        }
        self.step(BPF_LDX | BPF_MEM, SPARE);
        self.step(BPF_ALU | BPF_ADD | BPF_X, 0);
        self.step(BPF_ALU | BPF_RSH | BPF_K, 16);
        self.step(BPF_ALU | BPF_MUL | BPF_K, queues);
        self.step(BPF_ALU | BPF_RSH | BPF_K, 16);
    }

    /// Combines the accumulator with its upper bits, by exclusive or.
    fn fold(&mut self, bits: u32) {
        self.step(BPF_MISC | BPF_TAX, 0);
        self.step(BPF_ALU | BPF_RSH | BPF_K, bits);
        self.step(BPF_ALU | BPF_XOR | BPF_X, 0);
    }

    /// Returns the program with the distances of its jumps.
    fn finish(mut self) -> Vec<sock_filter> {
        for (at, when, label) in self.branches {
            let target =
                self.labels.iter().find(|(known, _)| *known == label).map_or(at, |(_, target)| *target);
            let distance = target.wrapping_sub(at + 1);
            debug_assert!(distance < 256, "a conditional jump has 8 bits");
            let step = &mut self.steps[at];
            *(if when { &mut step.jt } else { &mut step.jf }) = distance as u8;
        }
        self.steps
    }
}

fn jump(comparison: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | comparison) as u16, jt, jf, k }
}
