// SPDX-License-Identifier: Apache-2.0
//! Random frames, often with wrong lengths.

use fastrand::Rng;

fn bytes(chance: &mut Rng, count: usize) -> Vec<u8> {
    (0..count).map(|_| chance.u8(..)).collect()
}

fn pick<T: Copy>(chance: &mut Rng, list: &[T]) -> T {
    list[chance.usize(..list.len())]
}

fn ip(chance: &mut Rng, payload: &[u8]) -> Vec<u8> {
    let proto = pick(chance, &[1, 6, 17, 58, 132, 99, 0, 44]);
    let ttl = pick(chance, &[0, 1, 2, 64, 255]);
    let length = payload.len() as u16;
    let mut packet = Vec::new();
    if chance.f32() < 0.6 {
        let version = pick(chance, &[4, 4, 4, 5]);
        let words = pick(chance, &[5, 5, 5, 6, 15, 4]);
        packet.extend([8, 0, version << 4 | words, chance.u8(..)]);
        packet.extend(pick(chance, &[length + 20, 20, 1, 0xffff, 60]).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(pick(chance, &[0_u16, 0, 0, 0x4000, 1, 0x2000]).to_be_bytes());
        packet.extend([ttl, proto]);
        packet.extend(bytes(chance, 10));
    } else {
        packet.extend([0x86, 0xdd, 0x60 | chance.u8(..16), chance.u8(..), 0, 0]);
        packet.extend(pick(chance, &[length, 0, 0xffff, 12]).to_be_bytes());
        packet.extend([proto, ttl]);
        packet.extend(bytes(chance, 32));
    }
    packet.extend(payload);
    packet
}

/// Returns a frame of 14 to 1,518 bytes.
pub fn random(chance: &mut Rng) -> Vec<u8> {
    let macs = [chance.u8(..4), chance.u8(..4)];
    let mut frame = vec![2, 0, 0, 0, 0, macs[0], 2, 0, 0, 0, 0, macs[1]];
    for _ in 0..pick(chance, &[0, 0, 1, 2, 3]) {
        frame.extend(pick(chance, &[[0x81, 0], [0x88, 0xa8], [0x91, 0]]));
        frame.extend(bytes(chance, 2));
    }
    let count = pick(chance, &[0, 20, 46, 46, 60, 60, 200, 1400]);
    let mut payload = bytes(chance, count);
    if chance.f32() < 0.3 && payload.len() >= 8 {
        // A UDP checksum of 0, if the packet is a UDP packet.
        payload[6..8].fill(0);
    }
    if chance.f32() < 0.8 {
        frame.extend(ip(chance, &payload));
    } else {
        frame.extend(bytes(chance, 2));
        frame.extend(payload);
    }
    if chance.f32() < 0.3 {
        frame.truncate(chance.usize(14..140));
    }
    frame.truncate(1518);
    frame.resize(frame.len().max(14), 0);
    frame
}
