// SPDX-License-Identifier: Apache-2.0
use super::*;
use flow::bridge::BridgePort as Settings;
use std::collections::BTreeMap;

const ACCESS: PortNo = PortNo(1);
const TRUNK: PortNo = PortNo(2);
const NATIVE_TAGGED: PortNo = PortNo(3);
const NATIVE_UNTAGGED: PortNo = PortNo(400);
const PLAIN: PortNo = PortNo(5);

/// Ports of VLAN 10. The trunks also carry VLAN 20 and frames without a VLAN.
fn bridge() -> Bridge {
    let trunks = || TrunkVlans::Only([0, 10, 20].into());
    let ports = [
        (ACCESS, PortVlans::Access(10)),
        (TRUNK, PortVlans::Trunk(trunks())),
        (NATIVE_TAGGED, PortVlans::NativeTagged { native: 10, trunks: TrunkVlans::Only([20].into()) }),
        (NATIVE_UNTAGGED, PortVlans::NativeUntagged { native: 10, trunks: TrunkVlans::Only([20].into()) }),
    ];
    let ports: BTreeMap<_, _> =
        ports.map(|(port, vlans)| (port, Settings { vlans, ..Settings::default() })).into();
    Bridge::compile(&BridgeConfig { ports }, None)
}

#[test]
fn ports_admit_frames_of_their_vlans() {
    let bridge = bridge();
    let vlans = |port| [0, 10, 20, 30, 4_095].map(|vid| bridge.vlan(port, vid));
    assert_eq!(vlans(ACCESS), [Some(10), None, None, None, None]);
    assert_eq!(vlans(TRUNK), [Some(0), Some(10), Some(20), None, None]);
    assert_eq!(vlans(NATIVE_TAGGED), [Some(10), Some(10), Some(20), None, None]);
    assert_eq!(vlans(NATIVE_UNTAGGED), [Some(10), Some(10), Some(20), None, None]);
    assert_eq!(vlans(PLAIN), [Some(0), Some(10), Some(20), Some(30), Some(4_095)]);
}

#[test]
fn ports_send_frames_with_the_tags_of_their_modes() {
    use Retag::{Keep, Pop, Push, Set};
    let bridge = bridge();
    // An untagged frame, a priority-tagged frame and a tagged frame of VLAN 10.
    let tags = |port| [None, Some(0), Some(10)].map(|tag| bridge.retag(port, 10, tag));
    assert_eq!(tags(ACCESS), [Some(Keep), Some(Pop), Some(Pop)]);
    assert_eq!(tags(TRUNK), [Some(Push(10)), Some(Set(10)), Some(Keep)]);
    assert_eq!(tags(NATIVE_TAGGED), [Some(Push(10)), Some(Set(10)), Some(Keep)]);
    assert_eq!(tags(NATIVE_UNTAGGED), [Some(Keep), Some(Pop), Some(Pop)]);
    assert_eq!(tags(PLAIN), [Some(Push(10)), Some(Set(10)), Some(Keep)]);
    // A frame of VLAN 20 keeps its tag on all ports that carry the VLAN.
    let of_20 = [ACCESS, TRUNK, NATIVE_TAGGED, NATIVE_UNTAGGED].map(|port| bridge.retag(port, 20, Some(20)));
    assert_eq!(of_20, [None, Some(Keep), Some(Keep), Some(Keep)]);
    // Frames without a VLAN stay as they are, with or without a priority tag.
    for tag in [None, Some(0)] {
        let without = [ACCESS, TRUNK, NATIVE_TAGGED, PLAIN].map(|port| bridge.retag(port, 0, tag));
        assert_eq!(without, [None, Some(Keep), None, Some(Keep)]);
    }
}

const BROADCAST: [u8; 6] = [0xff; 6];
const MULTICAST: [u8; 6] = [1, 0, 0x5e, 0, 0, 1];
const UNICAST: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Limits of port 1: one broadcast per second and two at once, and unknown addresses as given.
fn limited(unknown_unicast: Option<flow::bridge::StormLimit>, before: Option<&Bridge>) -> Bridge {
    let storm = StormLimits {
        broadcast: Some(flow::bridge::StormLimit { rate: 1, burst: 2 }),
        unknown_unicast,
        ..StormLimits::default()
    };
    let ports = [(ACCESS, Settings { storm, ..Settings::default() })].into();
    Bridge::compile(&BridgeConfig { ports }, before)
}

/// Returns the number of packets that pass, of those with this destination that arrive at one moment.
fn passed(bridge: &Bridge, port: PortNo, destination: [u8; 6], now: u64, count: usize) -> usize {
    (0..count).filter(|_| bridge.exceeded(port, destination, Nanos(now)).is_none()).count()
}

#[test]
fn each_kind_of_flood_has_its_own_limit() {
    let bridge = limited(Some(flow::bridge::StormLimit { rate: 1_000, burst: 1 }), None);
    assert_eq!(passed(&bridge, ACCESS, BROADCAST, 0, 9), 2);
    assert_eq!(passed(&bridge, ACCESS, MULTICAST, 0, 9), 9, "multicasts have no limit");
    assert_eq!(passed(&bridge, ACCESS, UNICAST, 0, 9), 1);
    assert_eq!(passed(&bridge, TRUNK, BROADCAST, 0, 9), 9, "another port has no limit");
    assert_eq!(passed(&bridge, ACCESS, BROADCAST, SECOND_NS, 9), 1);
    let exceeded = [BROADCAST, UNICAST].map(|to| bridge.exceeded(ACCESS, to, Nanos(SECOND_NS)));
    assert_eq!(exceeded, [Some((FloodKind::Broadcast, false)), None]);
}

#[test]
fn a_limit_that_stays_keeps_its_tokens() {
    let first = limited(None, None);
    assert_eq!(passed(&first, ACCESS, BROADCAST, 0, 9), 2);
    let second = limited(Some(flow::bridge::StormLimit { rate: 5, burst: 5 }), Some(&first));
    assert_eq!(passed(&second, ACCESS, BROADCAST, 0, 9), 0);
    assert_eq!(passed(&second, ACCESS, UNICAST, 0, 9), 5);
    assert_eq!(passed(&second.without_limits(), ACCESS, UNICAST, 0, 9), 9);
}
