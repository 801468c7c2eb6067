// SPDX-License-Identifier: Apache-2.0
//! Messages without a body, ERROR, features, configuration, ports and slots.

use super::{Cell, NEW, OLD, Vector, assemble, vector, with_text};
use pof::PofMessage;
use pof::message::port::{PofForwarding, PofPort, PofPortReason, PofPortStatus};
use pof::message::setup::{
    PofErrorMessage, PofFeatures, PofSwitchConfig, QueryAll, SlotConfig, SlotForwarding, SlotResend,
    SlotState, SlotStatus,
};

pub fn vectors() -> Vec<Vector> {
    [plain(), errors(), features(), configurations(), ports(), slots()].into_iter().flatten().collect()
}

fn plain() -> Vec<Vector> {
    let mut made = vec![vector(NEW, 35, Vec::new(), PofMessage::QueryAllFin)];
    for dialect in [OLD, NEW] {
        for (kind, message) in [
            (0, PofMessage::Hello),
            (2, PofMessage::EchoRequest),
            (3, PofMessage::EchoReply),
            (5, PofMessage::FeaturesRequest),
            (7, PofMessage::GetConfigRequest),
        ] {
            made.push(vector(dialect, kind, Vec::new(), message));
        }
    }
    made
}

fn errors() -> Vec<Vector> {
    let message = |slot| {
        PofMessage::Error(PofErrorMessage {
            kind: 5,
            code: 0x0108,
            device_id: 0x1122_3344,
            slot,
            text: "entry exists".into(),
        })
    };
    let head = [(0, 2, 5), (2, 2, 0x0108), (4, 4, 0x1122_3344)];
    let old = with_text(assemble(264, &head), &[(8, "entry exists")]);
    let new = with_text(assemble(272, &[&head[..], &[(8, 2, 0x0203)]].concat()), &[(16, "entry exists")]);
    vec![vector(OLD, 1, old, message(0)), vector(NEW, 1, new, message(0x0203))]
}

fn features() -> Vec<Vector> {
    let message = |slot| {
        PofMessage::FeaturesReply(PofFeatures {
            device_id: 0x0102_0304,
            slot,
            ports: 0x0506,
            tables: 0x0708,
            capabilities: 0x090a_0b0c,
            vendor: "shunt".into(),
            forwarding_engine: "forwarding 1".into(),
            lookup_engine: "lookup 2".into(),
        })
    };
    let texts = [(16, "shunt"), (80, "forwarding 1"), (144, "lookup 2")];
    let old: &[Cell] = &[(0, 4, 0x0102_0304), (4, 2, 0x0506), (6, 2, 0x0708), (8, 4, 0x090a_0b0c)];
    let new: &[Cell] =
        &[(0, 4, 0x0102_0304), (4, 2, 0x0e0f), (6, 2, 0x0506), (8, 2, 0x0708), (12, 4, 0x090a_0b0c)];
    vec![
        vector(OLD, 6, with_text(assemble(208, old), &texts), message(0)),
        vector(NEW, 6, with_text(assemble(208, new), &texts), message(0x0e0f)),
    ]
}

fn configurations() -> Vec<Vector> {
    let old = PofSwitchConfig { device_id: 0, flags: 1, miss_send_length: 0x0280 };
    let new = PofSwitchConfig { device_id: 0x0a0b_0c0d, ..old.clone() };
    let old_body = assemble(4, &[(0, 2, 1), (2, 2, 0x0280)]);
    let new_body = assemble(8, &[(0, 4, 0x0a0b_0c0d), (4, 2, 1), (6, 2, 0x0280)]);
    vec![
        vector(OLD, 8, old_body.clone(), PofMessage::GetConfigReply(old.clone())),
        vector(OLD, 9, old_body, PofMessage::SetConfig(old)),
        vector(NEW, 8, new_body.clone(), PofMessage::GetConfigReply(new.clone())),
        vector(NEW, 9, new_body, PofMessage::SetConfig(new)),
    ]
}

/// The form of PCTRL, which has no number of the device.
#[test]
fn the_newer_dialect_accepts_a_configuration_without_a_device() {
    let bytes = [4, 9, 0, 12, 0, 0, 0, 1, 0, 2, 0, 64];
    let config = PofSwitchConfig { device_id: 0, flags: 2, miss_send_length: 64 };
    assert_eq!(pof::decode(&bytes, NEW), Ok(PofMessage::SetConfig(config)));
    let reply = [4, 8, 0, 12, 0, 0, 0, 1, 0, 2, 0, 64];
    assert!(pof::decode(&reply, NEW).is_err(), "only for SET_CONFIG");
}

fn ports() -> Vec<Vector> {
    let port = |slot, number| PofPort {
        slot,
        number,
        device_id: 0x1112_1314,
        mac: [2, 3, 4, 5, 6, 7],
        name: "eth7".into(),
        config: 0x2122_2324,
        state: 0x3132_3334,
        current: 0x4142_4344,
        advertised: 0x5152_5354,
        supported: 0x6162_6364,
        peer: 0x7172_7374,
        speed_kbps: 0x8182_8384,
        max_speed_kbps: 0x9192_9394,
        forwarding: PofForwarding::Enabled,
    };
    // The port begins at byte 8 of the body.
    let common: &[Cell] = &[
        (0, 1, 2),
        (12, 4, 0x1112_1314),
        (16, 6, 0x0203_0405_0607),
        (88, 4, 0x2122_2324),
        (92, 4, 0x3132_3334),
        (96, 4, 0x4142_4344),
        (100, 4, 0x5152_5354),
        (104, 4, 0x6162_6364),
        (108, 4, 0x7172_7374),
        (112, 4, 0x8182_8384),
        (116, 4, 0x9192_9394),
        (120, 1, 1),
    ];
    let body = |more: &[Cell]| with_text(assemble(128, &[common, more].concat()), &[(24, "eth7")]);
    let status = |slot, number| PofPortStatus { reason: PofPortReason::Modify, port: port(slot, number) };
    let (old, new) = (status(0, 0x0102_0304), status(0x0506, 0x0708));
    let (old_body, new_body) = (body(&[(8, 4, 0x0102_0304)]), body(&[(8, 2, 0x0506), (10, 2, 0x0708)]));
    vec![
        vector(OLD, 12, old_body.clone(), PofMessage::PortStatus(old.clone())),
        vector(OLD, 17, old_body, PofMessage::PortMod(old)),
        vector(NEW, 12, new_body.clone(), PofMessage::PortStatus(new.clone())),
        vector(NEW, 17, new_body, PofMessage::PortMod(new)),
    ]
}

fn slots() -> Vec<Vector> {
    let slot = 0x0102;
    let status = SlotStatus { slot, state: SlotState::Up, resend: SlotResend::Yes };
    let config = SlotConfig { slot, forwarding: SlotForwarding::Enabled };
    vec![
        vector(NEW, 34, assemble(8, &[(0, 2, 0x0102)]), PofMessage::QueryAllRequest(QueryAll { slot })),
        vector(NEW, 101, assemble(8, &[(0, 2, 0x0102), (2, 1, 1)]), PofMessage::SlotConfig(config)),
        vector(
            NEW,
            102,
            assemble(8, &[(0, 2, 0x0102), (2, 1, 1), (3, 1, 1)]),
            PofMessage::SlotStatus(status),
        ),
    ]
}
