// SPDX-License-Identifier: Apache-2.0
//! Messages compared with bytes assembled by hand; truncated, damaged and random datagrams.

use device::command::PpuCommand;
use device::message::{COUNTERS_MAX, EntryState, MESSAGE_BYTES_MAX};
use device::{ActionWord, Body, CodecError, DeviceMessage, KeySlice, OutputKind, SelectorBase, TernaryKey};

const OUT: ActionWord = ActionWord {
    data: [0; 12],
    base: device::EditBase::Frame,
    offset: 0,
    insert: 0,
    remove: 0,
    fix_ip: false,
    fix_l4: false,
    dec_ttl: false,
    metadata: None,
    output: OutputKind::Port,
    port: 3,
    last: true,
    to_ingress: false,
};
/// Bytes of [`OUT`]: output 2, port 3 and the bit `last` in bits 135 to 145 of the word.
const OUT_BYTES: [u8; 20] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x01, 0xc0, 0];

fn entry_key() -> TernaryKey {
    let mut key = TernaryKey::default();
    (key.value[0], key.mask[0]) = (0x12, 0xff);
    (key.value[16], key.mask[16]) = (0x80, 0x80);
    key
}

fn key_bytes() -> Vec<u8> {
    let mut bytes = vec![0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];
    bytes.extend([0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0]);
    bytes
}

fn samples() -> Vec<(Body, Vec<u8>)> {
    let slice = |base, offset, bytes| KeySlice { base, offset, bytes };
    let slices = [
        slice(SelectorBase::L3, 16, 4),
        slice(SelectorBase::Extended, 24, 2),
        slice(SelectorBase::L4, 2, 1),
        KeySlice::default(),
    ];
    let (key, action) = (entry_key(), OUT);
    let flow_mod = |command| Body::FlowMod { ppu: 2, command };
    let reply = EntryState { ppu: 1, index: 0x102, valid: true, key, action, packets: 0x0a0b };
    let select = vec![0, 2, 0, 0, 2, 16, 4, 0, 0, 24, 2, 0, 3, 2, 1, 0, 0, 0, 0, 0];
    vec![
        (Body::Hello { ppus: 4, entries: 512 }, vec![4, 0, 2, 0]),
        (Body::EchoRequest(b"ab".to_vec()), b"ab".to_vec()),
        (Body::EchoReply(Vec::new()), Vec::new()),
        (flow_mod(PpuCommand::Select { slices }), select),
        (
            flow_mod(PpuCommand::Write { index: 0x1ff, key, action }),
            [vec![1, 2, 1, 0xff], key_bytes(), OUT_BYTES.to_vec()].concat(),
        ),
        (flow_mod(PpuCommand::Remove { index: 7 }), vec![2, 2, 0, 7]),
        (flow_mod(PpuCommand::Act { index: 8, action }), [vec![3, 2, 0, 8], OUT_BYTES.to_vec()].concat()),
        (Body::FlowAck { done: true }, vec![1, 0, 0, 0]),
        (Body::FlowRequest { ppu: 3, index: 0x100 }, vec![3, 0, 1, 0]),
        (
            Body::FlowReply(reply),
            [vec![1, 1, 1, 2], key_bytes(), OUT_BYTES.to_vec(), vec![0, 0, 0, 0, 0, 0, 10, 11]].concat(),
        ),
        (
            Body::PacketIn { port: 1, ppu: 255, code: 7, frame: vec![9, 8] },
            vec![1, 255, 7, 0, 0, 0, 0, 0, 9, 8],
        ),
        (Body::PacketOut { port: 2, pipeline: true, frame: vec![7] }, vec![2, 1, 0, 0, 0, 0, 0, 0, 7]),
        (Body::StatsRequest, Vec::new()),
        (Body::StatsReply(vec![1, 0x200]), vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0]),
    ]
}

/// The header in front of `body`, with transaction ID 0xdeadbeef.
fn datagram(code: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 8) as u16;
    let mut bytes = vec![1, code, (length >> 8) as u8, length as u8, 0xde, 0xad, 0xbe, 0xef];
    bytes.extend(body);
    bytes
}

#[test]
fn every_message_has_the_bytes_assembled_by_hand() {
    let codes = [0, 1, 2, 3, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10];
    let samples = samples();
    assert_eq!(samples.len(), codes.len());
    for ((body, expected), code) in samples.into_iter().zip(codes) {
        let message = DeviceMessage { id: 0xdead_beef, body };
        let bytes = datagram(code, &expected);
        assert_eq!(message.encode().as_deref(), Ok(&bytes[..]), "{message:?}");
        assert_eq!(DeviceMessage::decode(&bytes), Ok(message));
    }
}

#[test]
fn truncated_and_extended_datagrams_are_refused() {
    for (body, _) in samples() {
        let bytes = DeviceMessage { id: 1, body }.encode().unwrap();
        for len in 0..bytes.len() {
            assert!(DeviceMessage::decode(&bytes[..len]).is_err(), "{len} of {bytes:?}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(matches!(DeviceMessage::decode(&longer), Err(CodecError::Length(_))), "{bytes:?}");
    }
}

#[test]
fn bodies_that_are_too_short_or_too_long_for_their_type_are_refused() {
    // The length in the header is right; the body's own length is not.
    for (code, len) in
        [(0, 3), (0, 5), (3, 0), (3, 19), (4, 3), (5, 5), (6, 60), (6, 72), (7, 7), (9, 1), (10, 9)]
    {
        assert!(DeviceMessage::decode(&datagram(code, &vec![0; len])).is_err(), "type {code}, {len} bytes");
    }
}

#[test]
fn values_out_of_range_are_refused() {
    let mut value_outside_mask = [vec![1, 0, 0, 0], key_bytes(), OUT_BYTES.to_vec()].concat();
    value_outside_mask[5] = 1;
    let bad = |code, body: &[u8]| DeviceMessage::decode(&datagram(code, body));
    assert_eq!(bad(11, &[]), Err(CodecError::Type(11)));
    assert_eq!(bad(3, &[4, 0, 0, 0]), Err(CodecError::Value { field: "command", value: 4 }));
    assert!(matches!(bad(3, &value_outside_mask), Err(CodecError::Value { field: "key", .. })));
    assert!(matches!(bad(4, &[2, 0, 0, 0]), Err(CodecError::Value { .. })));
    assert!(matches!(bad(8, &[0, 0, 0, 0, 0, 1, 0, 0]), Err(CodecError::Value { .. })));
    assert!(bad(10, &[0; (COUNTERS_MAX + 1) * 8]).is_err());
    let mut version = datagram(9, &[]);
    version[0] = 2;
    assert_eq!(DeviceMessage::decode(&version), Err(CodecError::Version(2)));
    let frame = vec![0; MESSAGE_BYTES_MAX - 16];
    let fits =
        DeviceMessage { id: 0, body: Body::PacketIn { port: 0, ppu: 0, code: 0, frame: frame.clone() } };
    assert!(fits.encode().is_ok());
    let longer = DeviceMessage {
        id: 0,
        body: Body::PacketIn { port: 0, ppu: 0, code: 0, frame: [frame, vec![0]].concat() },
    };
    assert_eq!(longer.encode(), Err(CodecError::Long(1)));
}

/// Damaged messages either fail to decode, or encode to the same bytes again: no byte is ignored.
/// The device's memory is not initialised where no entry was written.
#[test]
fn a_place_without_an_entry_may_have_any_other_bytes() {
    let state = EntryState {
        ppu: 1,
        index: 2,
        valid: false,
        key: TernaryKey::default(),
        action: ActionWord::default(),
        packets: 0,
    };
    let mut bytes = DeviceMessage { id: 5, body: Body::FlowReply(state) }.encode().unwrap();
    bytes[12..].fill(0xa5);
    let decoded = DeviceMessage::decode(&bytes).unwrap();
    assert_eq!(decoded.body, Body::FlowReply(state));
    bytes.pop();
    bytes[3] -= 1;
    assert_eq!(DeviceMessage::decode(&bytes), Err(CodecError::Short));
}

#[test]
fn every_accepted_datagram_is_canonical() {
    let mut random = fastrand::Rng::with_seed(24);
    let originals: Vec<Vec<u8>> =
        samples().into_iter().map(|(body, _)| DeviceMessage { id: 5, body }.encode().unwrap()).collect();
    let mut accepted = 0;
    for round in 0..200_000 {
        let mut bytes = if round % 4 == 0 {
            let body: Vec<u8> = (0..random.usize(0..80)).map(|_| random.u8(..)).collect();
            datagram(random.u8(0..12), &body)
        } else {
            originals[random.usize(0..originals.len())].clone()
        };
        for _ in 0..random.usize(0..3) {
            let at = random.usize(0..bytes.len());
            bytes[at] ^= 1 << random.u8(0..8);
        }
        if let Ok(message) = DeviceMessage::decode(&bytes) {
            let encoded = message.encode().unwrap();
            // Key, action and count of a place without an entry have no meaning.
            if matches!(&message.body, Body::FlowReply(state) if !state.valid) {
                assert_eq!(DeviceMessage::decode(&encoded), Ok(message));
            } else {
                assert_eq!(encoded, bytes, "{message:?}");
            }
            accepted += 1;
        }
    }
    assert!((20_000..180_000).contains(&accepted), "{accepted} datagrams were accepted");
}
