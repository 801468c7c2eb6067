// SPDX-License-Identifier: Apache-2.0
//! Properties of all messages. An encoded message must decode to the original. A truncated or corrupted
//! message must never cause a panic. If it is accepted, it must encode to bytes that decode to the same
//! message.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod common;

use common::{hex, message, mutate, set_length};
use openflow::flow_mod::{FlowModDecoder, FlowModParts, decode_instructions};
use openflow::{DecodeError, Header, MESSAGE_BYTES_MAX, Message, decode, encode};

/// Number of random messages that are encoded and decoded.
const ROUND_TRIPS: usize = 30_000;
/// Number of flow-mods that are decoded before similar ones.
const SIMILAR: usize = 2_000;
/// Number of corrupted messages.
const MUTATIONS: usize = 400_000;

fn encoded(message: &Message, xid: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, xid, &mut bytes).unwrap();
    bytes
}

#[test]
fn encoded_messages_decode_to_the_original() {
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..ROUND_TRIPS {
        let (sent, xid) = (message(&mut rng), rng.u32(..));
        let bytes = encoded(&sent, xid);
        assert_eq!(Header::read(&bytes).unwrap().xid, xid);
        match decode(&bytes) {
            Ok(got) => assert_eq!(got, sent, "{}", hex(&bytes)),
            Err(error) => panic!("{error}: {sent:?} as {}", hex(&bytes)),
        }
    }
}

#[test]
fn the_longest_message_takes_memory_in_proportion() {
    // A packet-out of pop_vlan actions, which have 8 bytes each, has the largest possible number of actions.
    let actions = vec![flow::Action::PopVlan; (MESSAGE_BYTES_MAX - 24) / 8];
    let in_port = flow::port_no::CONTROLLER;
    let sent = openflow::packet::PacketOutMessage { buffer_id: None, in_port, actions, data: Vec::new() };
    let Message::PacketOut(got) = decode(&encoded(&Message::PacketOut(sent), 1)).unwrap() else { panic!() };
    assert_eq!(got.actions.len(), 8_188);
    assert!(got.actions.capacity() * size_of::<flow::Action>() <= 16 * MESSAGE_BYTES_MAX);
}

#[test]
fn truncated_messages_are_refused_or_decode_to_shorter_ones() {
    let mut rng = fastrand::Rng::with_seed(2);
    for _ in 0..1_000 {
        let bytes = encoded(&message(&mut rng), 7);
        for length in (0..bytes.len()).step_by(1 + bytes.len() / 64) {
            // Truncated messages are tested with the original length field and with a corrected length field.
            assert!(decode(&bytes[..length]).is_err());
            let mut cut = bytes[..length].to_vec();
            set_length(&mut cut);
            check(&cut);
        }
    }
}

/// Decodes a FLOW_MOD and then its instructions.
fn in_parts(bytes: &[u8]) -> Result<flow::FlowMod, DecodeError> {
    let FlowModParts { flow, instructions } = FlowModDecoder::default().decode(bytes)?;
    let (instructions, low_latency) = decode_instructions(instructions)?;
    Ok(flow::FlowMod { instructions, low_latency, ..flow })
}

/// Decodes arbitrary bytes. An accepted message must survive encoding and decoding. Returns the error if the
/// message is refused.
fn check(bytes: &[u8]) -> Option<DecodeError> {
    let whole = decode(bytes);
    match (&whole, in_parts(bytes)) {
        (Ok(Message::FlowMod(m)), Ok(parts)) => assert_eq!(parts, m.flow),
        (Ok(Message::FlowMod(_)), Err(error)) => panic!("{error}: {}", hex(bytes)),
        (_, parts) => assert!(parts.is_err(), "{parts:?} from {}", hex(bytes)),
    }
    let taken = match whole {
        Ok(taken) => taken,
        Err(error) => {
            assert!(!error.problem.is_empty());
            return Some(error);
        }
    };
    let xid = Header::read(bytes).unwrap().xid;
    let mut ours = Vec::new();
    if encode(&taken, xid, &mut ours).is_err() {
        return None;
    }
    // A long reply is encoded as several parts. Only the first is compared.
    ours.truncate(Header::read(&ours).unwrap().length.into());
    let again = decode(&ours).unwrap_or_else(|e| panic!("{e}: {taken:?} from {}", hex(bytes)));
    assert_eq!(hex(&encoded(&again, xid)), hex(&ours), "{taken:?} from {}", hex(bytes));
    if let Message::FlowMod(_) | Message::GroupMod(_) | Message::PacketOut(_) | Message::MeterMod(_) = taken {
        assert_eq!(again, taken, "{}", hex(bytes));
    }
    None
}

#[test]
fn a_decoder_that_knows_a_similar_flow_mod_decodes_like_a_new_one() {
    let mut rng = fastrand::Rng::with_seed(5);
    let (mut equal, mut accepted, mut refused) = (0, 0, 0);
    for _ in 0..SIMILAR {
        let bytes = loop {
            let message = message(&mut rng);
            if matches!(message, Message::FlowMod(_)) {
                break encoded(&message, 1);
            }
        };
        let mut decoder = FlowModDecoder::default();
        let first = decoder.decode(&bytes).unwrap();
        // The match begins after the header and 40 bytes of other fields.
        let end = bytes.len() - first.instructions.len();
        for _ in 0..50 {
            let mut other = bytes.clone();
            for _ in 0..rng.usize(1..=4) {
                other[rng.usize(48..end)] = rng.u8(..);
            }
            let (ours, right) = (decoder.decode(&other), FlowModDecoder::default().decode(&other));
            match (&ours, &right) {
                (Ok(ours), Ok(_)) if ours.flow.matching == first.flow.matching => equal += 1,
                (Ok(_), Ok(_)) => accepted += 1,
                _ => refused += 1,
            }
            assert_eq!(ours, right, "{} after {}", hex(&other), hex(&bytes));
        }
    }
    assert!(
        equal > 100 && accepted > 10_000 && refused > 10_000,
        "{equal} equal, {accepted}, {refused} refused"
    );
}

#[test]
fn corrupted_messages_are_refused_or_accepted_without_a_panic() {
    let mut rng = fastrand::Rng::with_seed(3);
    let pool: Vec<Vec<u8>> = (0..2_000).map(|_| encoded(&message(&mut rng), 1)).collect();
    let mut refused = std::collections::BTreeMap::<String, usize>::new();
    let mut taken = 0;
    for _ in 0..MUTATIONS {
        let mut bytes = pool[rng.usize(..pool.len())].clone();
        let other = pool[rng.usize(..pool.len())].clone();
        mutate(&mut rng, &mut bytes, &other);
        match check(&bytes) {
            Some(error) => *refused.entry(error.code.to_string()).or_default() += 1,
            None => taken += 1,
        }
    }
    // Many corrupted messages must still be valid, and the other messages must be refused for many different
    // reasons.
    assert!(taken > MUTATIONS / 20 && taken < MUTATIONS * 19 / 20, "{taken} accepted");
    assert!(refused.len() >= 30, "{refused:?}");
    println!("{taken} of {MUTATIONS} accepted; {refused:#?}");
}
