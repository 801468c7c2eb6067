// SPDX-License-Identifier: Apache-2.0
//! Examples from the papers.

use super::{bank, ethernet, inner, keyed, ports, under};
use flow::stateless::{Arithmetic, Gate, GateFlag, Gates, NodeId};
use flow::{PortNo, QueueId, StatelessConfig};
use reference::{Sent, StatelessOutcome, Unfinished, output_gate, residue, stateless};
use std::num::NonZeroU32;
use wire::tf::Form;

/// KeyFlow: nodes 4, 3 and 5 select ports 1, 1 and 0.
#[test]
fn the_key_25() {
    let by = |id| residue(&[25], NodeId::new(Arithmetic::Integer, id).unwrap());
    assert_eq!([4, 3, 5].map(by), [1, 1, 0]);
    // The same example with packets. Labels 0 and 1 stand for ports 10 and 11.
    let mut frame = under(ethernet().keyflow(0, 9, &25_u64.to_be_bytes()));
    for (id, out, hops) in [(4, 11, 8), (3, 11, 7), (5, 10, 6)] {
        let config = keyed(bank(Arithmetic::Integer, id, &[Some(PortNo(10)), Some(PortNo(11))]), [1]);
        let StatelessOutcome::Sent(sent) = stateless(&config, &ports([1, 10, 11]), PortNo(1), &frame) else {
            panic!("node {id} does not send the packet")
        };
        let expected = under(ethernet().keyflow(0, hops, &25_u64.to_be_bytes()));
        assert_eq!(
            sent,
            Sent { port: PortNo(out), bytes: expected, queue: QueueId(0), unfinished: Unfinished::default() }
        );
        frame = sent.bytes;
    }
}

/// Returns the gates of one switch, at ports 1, 2, and so on.
fn switch(down_d: u32, up_d: u32, external_d: u32, gates: &[(u32, GateFlag)]) -> StatelessConfig {
    let gate = |&(number, flag): &(u32, GateFlag)| Gate { number: NonZeroU32::new(number).unwrap(), flag };
    let gates = Gates {
        down_d,
        up_d,
        external_d,
        server_gate_max: 32,
        ports: (1..).map(PortNo).zip(gates.iter().map(gate)).collect(),
    };
    StatelessConfig {
        gates: Some(gates),
        trusted: (1..=6).map(PortNo).collect(),
        ..StatelessConfig::default()
    }
}

/// Example from a figure of the Tag-and-Forward paper, with k = 4. The packet has UP 48 and DOWN 30. It goes
/// from the first edge switch via its first aggregation switch to the first server of the last edge switch.
#[test]
fn the_packet_across_the_tree() {
    use GateFlag::{Assists, External, None, Server};
    assert_eq!([(48, 4), (30, 8), (30, 4), (30, 2)].map(|(gate, d)| output_gate(gate, d)), [48, 32, 32, 30]);
    let as1 = switch(4, 4, 0, &[(4, Assists), (8, Assists), (44, None), (48, None)]);
    let cs2 =
        switch(8, 0, 2, &[(8, None), (16, None), (24, None), (32, None), (46, External), (48, External)]);
    let as7 = switch(4, 4, 0, &[(28, Assists), (32, Assists), (44, None), (48, None)]);
    let es8 = switch(2, 8, 0, &[(30, Server), (32, Server), (48, None), (56, None)]);
    for form in [Form::Paper, Form::Wide] {
        let tagged = under(ethernet().tf(form, 5, 48, 30));
        // For each switch: ingress port, egress port, and the frame that leaves.
        for (config, in_port, out_port, bytes) in
            [(&as1, 1, 4, &tagged), (&cs2, 1, 4, &tagged), (&as7, 4, 2, &tagged), (&es8, 3, 1, &inner())]
        {
            let verdict = stateless(config, &ports(1..=6), PortNo(in_port), &tagged);
            assert_eq!(
                verdict,
                StatelessOutcome::Sent(Sent {
                    port: PortNo(out_port),
                    bytes: bytes.clone(),
                    queue: QueueId(5),
                    unfinished: Unfinished::default()
                })
            );
        }
    }
    // For packets on the way down, the aggregation switch uses DOWN, even if UP or DOWN is 0.
    let by = |in_port, up, down| match stateless(
        &as1,
        &ports(1..=6),
        in_port,
        &under(ethernet().tf(Form::Paper, 0, up, down)),
    ) {
        StatelessOutcome::Sent(sent) => sent.port,
        other => panic!("{other:?}"),
    };
    assert_eq!([by(PortNo(3), 48, 6), by(PortNo(1), 0, 6), by(PortNo(1), 44, 6)], [2, 2, 3].map(PortNo));
    // A core switch sends the packet out of the network.
    let out = stateless(&cs2, &ports(1..=6), PortNo(1), &under(ethernet().tf(Form::Paper, 0, 48, 45)));
    assert_eq!(
        out,
        StatelessOutcome::Sent(Sent {
            port: PortNo(5),
            bytes: inner(),
            queue: QueueId(0),
            unfinished: Unfinished::default()
        })
    );
}
