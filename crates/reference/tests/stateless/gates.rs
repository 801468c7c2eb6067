// SPDX-License-Identifier: Apache-2.0
//! Tag-and-Forward. Compares walks across the paper's tree with the planner's walks, and tests single steps
//! with arbitrary tags.

use super::{Links, ethernet, inner, lines, numbers, ports, under};
use flow::stateless::{Gate, GateFlag, Gates};
use flow::{DropReason, PortNo, QueueId, StatelessConfig};
use reference::{Sent, StatelessOutcome, Unfinished, stateless};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use wire::tf::Form;

#[derive(Default)]
struct Tree {
    links: Links,
    switches: BTreeMap<usize, Gates>,
}

/// Parses a port with its gate and flag, as `make.py` writes them.
fn gate(word: &str) -> (PortNo, Gate) {
    let mut parts = word.split(':');
    let mut number = || parts.next().unwrap().parse::<u32>().unwrap();
    let (port, number) = (number(), number());
    let flag = match parts.next().unwrap() {
        "G_SRV" => GateFlag::Server,
        "G_EXT" => GateFlag::External,
        "G_ASS" => GateFlag::Assists,
        _ => GateFlag::None,
    };
    (PortNo(port), Gate { number: NonZeroU32::new(number).unwrap(), flag })
}

impl Tree {
    /// Returns the gate to which a tag leads at one switch. All ports of the switch are trusted.
    fn step(
        &self,
        node: usize,
        in_port: PortNo,
        form: Form,
        up: u32,
        down: u16,
    ) -> Result<(PortNo, Gate), DropReason> {
        let gates = &self.switches[&node];
        let every = || gates.ports.keys().copied();
        let config = StatelessConfig {
            gates: Some(gates.clone()),
            trusted: every().collect(),
            ..StatelessConfig::default()
        };
        let tagged = under(ethernet().tf(form, 3, up, down));
        match stateless(&config, &ports(every().map(u32::from)), in_port, &tagged) {
            StatelessOutcome::Tables => panic!("{node} leaves a tag to its tables"),
            StatelessOutcome::Dropped(reason) => Err(reason),
            StatelessOutcome::Sent(Sent { port, bytes, queue, .. }) => {
                let gate = gates.ports[&port];
                let pops = matches!(gate.flag, GateFlag::Server | GateFlag::External);
                assert_eq!((bytes, queue), (if pops { inner() } else { tagged }, QueueId(3)));
                Ok((port, gate))
            }
        }
    }
}

#[test]
fn tags_lead_to_the_gates_of_the_planner() {
    let mut tree = Tree::default();
    let mut met = BTreeMap::new();
    for words in lines(include_str!("gates.txt")) {
        let number = |at: usize| words[at].parse::<u32>().unwrap();
        let (node, down) = (number(1) as usize, |at: usize| number(at) as u16);
        for form in [Form::Paper, Form::Wide] {
            match words[0] {
                "link" => tree.links.add((node, PortNo(number(2))), (number(3) as usize, PortNo(number(4)))),
                "gates" => {
                    let gates = Gates {
                        down_d: number(2),
                        up_d: number(3),
                        external_d: number(4),
                        server_gate_max: number(5),
                        ports: words[6..].iter().map(|word| gate(word)).collect(),
                    };
                    tree.switches.insert(node, gates);
                }
                "walk" => {
                    let visited = numbers(words[5]);
                    let (mut at, mut out) = (node, PortNo(number(2)));
                    for next in &visited[1..] {
                        let in_port;
                        (at, in_port) = tree.links.0[&(at, out)];
                        assert_eq!(at, *next, "{words:?}");
                        let found;
                        (out, found) = tree.step(at, in_port, form, number(3), down(4)).unwrap();
                        *met.entry(found.flag as usize).or_insert(0) += 1;
                    }
                    let gate = tree.switches[&at].ports[&out];
                    assert_eq!(gate.number.get(), number(6), "{words:?}");
                    assert!(matches!(gate.flag, GateFlag::Server | GateFlag::External), "{words:?}");
                }
                // In the wide form, UP has 29 bits.
                "step" if form == Form::Paper || number(3) >> 29 == 0 => {
                    let found = tree.step(node, PortNo(number(2)), form, number(3), down(4));
                    let said =
                        found.map_or_else(|e| e.name().to_owned(), |(_, gate)| gate.number.to_string());
                    assert_eq!(said, words[5], "{words:?}");
                    *met.entry(4 + usize::from(found.is_err())).or_insert(0) += 1;
                }
                "step" => {}
                other => panic!("no line begins with {other}"),
            }
        }
    }
    assert_eq!(
        met.into_keys().collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5],
        "the file has walks to each flag, and both kinds of steps"
    );
}

/// Returns an edge switch with servers at ports 1 and 2 and an uplink at port 3.
fn edge() -> StatelessConfig {
    let ports = ["1:2:G_SRV", "2:4:G_SRV", "3:48:-"].map(gate);
    let gates = Gates { down_d: 2, up_d: 8, external_d: 0, server_gate_max: 32, ports: ports.into() };
    StatelessConfig { gates: Some(gates), trusted: [PortNo(3)].into(), ..StatelessConfig::default() }
}

fn tagged(down: u16) -> Vec<u8> {
    under(ethernet().tf(Form::Paper, 0, 0, down))
}

#[test]
fn servers_may_not_tag() {
    let verdict = stateless(&edge(), &ports(1..=3), PortNo(1), &tagged(4));
    assert_eq!(verdict, StatelessOutcome::Dropped(DropReason::UntrustedTag));
    assert!(matches!(stateless(&edge(), &ports(1..=3), PortNo(3), &tagged(4)), StatelessOutcome::Sent(_)));
    let unset = StatelessConfig { gates: None, ..edge() };
    assert_eq!(stateless(&unset, &ports(1..=3), PortNo(3), &tagged(4)), StatelessOutcome::Tables);
}

#[test]
fn gates_have_no_backups() {
    let mut some = ports(1..=3);
    some.get_mut(&PortNo(2)).unwrap().up = false;
    assert_eq!(
        stateless(&edge(), &some, PortNo(3), &tagged(4)),
        StatelessOutcome::Dropped(DropReason::PortDown)
    );
    some.remove(&PortNo(2));
    assert_eq!(
        stateless(&edge(), &some, PortNo(3), &tagged(4)),
        StatelessOutcome::Dropped(DropReason::PortDown)
    );
    // Gates 6 and 0 do not exist. Gate 48 belongs to the ingress port.
    for down in [6, 0, 48] {
        assert_eq!(
            stateless(&edge(), &ports(1..=3), PortNo(3), &tagged(down)),
            StatelessOutcome::Dropped(DropReason::NoGate)
        );
    }
}

#[test]
fn a_popped_packet_is_a_complete_ethernet_frame() {
    let short = ethernet().tf(Form::Wide, 7, 0, 4).ethertype(0x0800).payload(&[9]).build();
    let StatelessOutcome::Sent(sent) = stateless(&edge(), &ports(1..=3), PortNo(3), &short) else {
        panic!("the packet is not sent")
    };
    let padded = ethernet().ethertype(0x0800).payload(&[9]).pad_to(60).build();
    assert_eq!(
        sent,
        Sent { port: PortNo(2), bytes: padded, queue: QueueId(7), unfinished: Unfinished::default() }
    );
    // The MTU limits the frame as it is sent.
    let config = StatelessConfig { mtu_bytes: [(PortNo(2), inner().len() - 14)].into(), ..edge() };
    assert!(matches!(stateless(&config, &ports(1..=3), PortNo(3), &tagged(4)), StatelessOutcome::Sent(_)));
    let config = StatelessConfig { mtu_bytes: [(PortNo(2), inner().len() - 15)].into(), ..edge() };
    assert_eq!(
        stateless(&config, &ports(1..=3), PortNo(3), &tagged(4)),
        StatelessOutcome::Dropped(DropReason::OverMtu)
    );
}

#[test]
fn each_condition_affects_the_gate() {
    let port_by = |gates: &Gates, in_port, up, down| {
        let config = StatelessConfig {
            gates: Some(gates.clone()),
            trusted: (1..=5).map(PortNo).collect(),
            ..StatelessConfig::default()
        };
        let tagged = under(ethernet().tf(Form::Paper, 0, up, down));
        match stateless(&config, &ports(1..=5), in_port, &tagged) {
            StatelessOutcome::Sent(sent) => Ok(sent.port),
            StatelessOutcome::Dropped(reason) => Err(reason),
            StatelessOutcome::Tables => panic!("the switch has gates"),
        }
    };
    let mut gates = Gates {
        down_d: 8,
        up_d: 4,
        external_d: 2,
        server_gate_max: 30,
        ports: ["1:4:G_ASS", "2:44:-", "3:30:-", "4:32:-", "5:40:-"].map(gate).into(),
    };
    assert_eq!(port_by(&gates, PortNo(1), 44, 32), Ok(PortNo(2)), "UP is used");
    assert_eq!(port_by(&gates, PortNo(1), 44, 0), Err(DropReason::NoGate), "DOWN is used if it is 0");
    assert_eq!(port_by(&gates, PortNo(1), 0, 40), Ok(PortNo(5)), "DOWN is used if UP is 0");
    assert_eq!(
        port_by(&gates, PortNo(2), 44, 30),
        Ok(PortNo(4)),
        "DOWN is not above the highest server gate"
    );
    assert_eq!(
        port_by(&gates, PortNo(2), 44, 33),
        Err(DropReason::NoGate),
        "the external d gives gate 34, which does not exist"
    );
    gates.external_d = 0;
    assert_eq!(
        port_by(&gates, PortNo(2), 44, 33),
        Ok(PortNo(5)),
        "without an external d, the downward d gives gate 40"
    );
}

#[test]
fn the_ethertype_after_a_tag_belongs_to_the_tag() {
    for len in 14..22 {
        let verdict = stateless(&edge(), &ports(1..=3), PortNo(3), &tagged(4)[..len]);
        assert_eq!(verdict, StatelessOutcome::Dropped(DropReason::MalformedTag), "{len} bytes");
    }
    assert!(matches!(
        stateless(&edge(), &ports(1..=3), PortNo(3), &tagged(4)[..22]),
        StatelessOutcome::Sent(_)
    ));
}
