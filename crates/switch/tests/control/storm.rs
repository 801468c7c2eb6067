// SPDX-License-Identifier: Apache-2.0
//! A thousand clients at once, and clients that send garbage: packets pass, rules stay, and well-behaved
//! clients are answered.

use crate::lab::{Lab, until};
use crate::{counters, frame};
use fastrand::Rng;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::Shutdown;
use switch::control::{ControlRequest, Tables};

const CLIENTS: usize = 1_000;

/// Lets this process open descriptors for all clients.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[test]
fn each_of_a_thousand_clients_is_answered_or_refused_with_a_reason() {
    raise_descriptor_limit();
    let mut lab = Lab::start(1, 2, None);
    lab.pass(1, &frame(1, 2), 2);
    let mut all: Vec<_> = (0..CLIENTS).map(|_| lab.raw()).collect();
    let mut served = 0;
    for raw in &mut all {
        // A refused connection may be closed already.
        let _ = raw.try_send(b"{\"id\":1,\"request\":\"tables\"}\n");
        let answer = raw.line();
        let is_served = answer.contains("\"done\"");
        assert!(is_served || answer.contains("64 clients are connected"), "{answer}");
        served += usize::from(is_served);
    }
    drop(all);
    assert!((64..=CLIENTS).contains(&served), "{served} clients were served");
    until("there is room again", || lab.client().ask::<Tables>(&ControlRequest::Tables).is_ok());
    lab.pass(2, &frame(2, 1), 1);
    until("both packets are counted", || counters(&lab).received == 2);
}

/// Returns bytes that a client sends: random ones, or requests of which some bytes have changed.
fn garbage(random: &mut Rng) -> Vec<u8> {
    const REQUESTS: &[&str] = &[
        "{\"id\":1,\"request\":\"flows\",\"form\":\"rows\"}\n",
        "{\"id\":18446744073709551615,\"request\":\"trace\",\"packet\":{\"fields\":\"in_port=1,arp\"}}\n",
        "{\"id\":3,\"request\":\"trace_live\",\"live\":{\"filter\":\"arp\",\"count\":3,\"timeout_ms\":1}}\n",
        "{\"id\":4,\"request\":\"load\",\"text\":\"in_port=1,actions=output:\\n\",\"last\":true}\n",
    ];
    let mut bytes = Vec::new();
    for _ in 0..random.usize(1..20) {
        if random.bool() {
            bytes.extend((0..random.usize(0..300)).map(|_| random.u8(..)));
            bytes.push(b'\n');
        } else {
            let mut request = random.choice(REQUESTS).unwrap().as_bytes().to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..request.len());
                request[at] = random.u8(..);
            }
            bytes.extend(request);
        }
    }
    bytes
}

#[test]
fn garbage_on_the_control_socket_has_no_effect() {
    let mut lab = Lab::start(1, 2, None);
    lab.pass(1, &frame(1, 2), 2);
    let mut random = Rng::with_seed(26);
    for _ in 0..300 {
        let mut raw = lab.raw();
        // The switch may end the connection early.
        let _ = raw.try_send(&garbage(&mut random));
        if random.bool() {
            let mut stream = raw.writer();
            let _ = stream.shutdown(Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
        drop(raw);
        until("the switch answers", || {
            lab.client()
                .ask(&ControlRequest::Tables)
                .is_ok_and(|tables: Tables| tables.tables[0].entries == 1)
        });
    }
    lab.pass(2, &frame(2, 1), 1);
    until("both packets are counted", || counters(&lab).received == 2);
}
