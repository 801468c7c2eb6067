// SPDX-License-Identifier: Apache-2.0
//! Tests of POF over TLS: with controllers that connect to the switch, with controllers to which the switch
//! connects, and with peers that it refuses.

use crate::lab::{Lab, until};
use crate::peer::{Peer, apply, entry, equals, field, frame, output, table};
use crate::tls_files::{Authority, Files};
use pof::message::table::PofTableType;
use pof::{PofDialect, PofMessage};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const LISTEN: &str = "ssl:127.0.0.1:0";
const ETHERTYPE: u16 = 0x0908;
const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];

/// Connects over TLS and completes the handshake of POF.
fn connect(lab: &Lab, dialect: PofDialect, files: &Files) -> Peer {
    let mut peer = Peer::secure(dialect, files.connect(lab.pof, true));
    peer.greet();
    peer
}

/// Installs entries that forward packets of one EtherType to port 3. There are so many that the TLS records
/// of several messages arrive together.
fn install(peer: &mut Peer) {
    let ethertype = field(96, 16);
    peer.send(&table(PofTableType::Mask, 0, &[ethertype]));
    for index in 0..500 {
        let value = u128::from(ETHERTYPE) + u128::from(index);
        let forward = apply(vec![output(3)]);
        peer.send(&PofMessage::FlowMod(entry(index, vec![equals(ethertype, value)], vec![forward])));
    }
    peer.settle();
}

/// Requires that the program of [`install`] forwards packets.
fn forwards(lab: &mut Lab) {
    let last = frame(ETHERTYPE + 499, &[7]);
    lab.push(1, &frame(ETHERTYPE - 1, &[]));
    lab.push(1, &last);
    assert_eq!(lab.pop(3), last);
}

/// Waits until the log has a line with these parts.
fn logged(lab: &Lab, parts: &[&str]) {
    until(&format!("the log has {parts:?}"), || !lab.log.lines(parts).is_empty());
}

#[test]
fn a_controller_programs_the_switch_over_tls_in_both_dialects() {
    let authority = Authority::new("good");
    let files = authority.issue("controller", "127.0.0.2");
    for (name, dialect) in [("1.4.0.015", PofDialect::V1_4), ("1.2", PofDialect::V1_2)] {
        let of_switch = authority.issue("switch", "127.0.0.1");
        let mut lab = Lab::start_at(LISTEN, &format!("dialect = {name:?}\n{}", of_switch.section()));
        install(&mut connect(&lab, dialect, &files));
        forwards(&mut lab);
        logged(&lab, &["INFO", &format!(": POF {name}")]);
    }
}

#[test]
fn the_switch_connects_to_a_controller_over_tls() {
    let authority = Authority::new("good");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let of_switch = authority.issue("switch", "10.0.0.1");
    let mut lab = Lab::start(&format!("controllers = [\"ssl:{address}\"]\n{}", of_switch.section()));
    let stream = authority.issue("controller", "127.0.0.1").serve(listener.accept().unwrap().0);
    let mut peer = Peer::secure(PofDialect::V1_4, stream);
    peer.greet();
    install(&mut peer);
    forwards(&mut lab);
    logged(&lab, &["INFO", &format!("ssl:{address}"), ": POF 1.4.0.015"]);
}

#[test]
fn refused_peers_do_not_disturb_the_controller() {
    let (authority, foreign) = (Authority::new("good"), Authority::new("foreign"));
    let mut lab = Lab::start_at(LISTEN, &authority.issue("switch", "127.0.0.1").section());
    let good = authority.issue("controller", "127.0.0.1");
    let mut peer = connect(&lab, PofDialect::V1_4, &good);
    install(&mut peer);
    let of = |files: Files| Files { ca: good.ca.clone(), ..files };
    let cases = [
        (of(foreign.issue("stranger", "127.0.0.1")), true, "no authority in tls.ca has issued"),
        (of(authority.issue_until("old", "127.0.0.1", 2001)), true, "has expired"),
        (good.clone(), false, "the peer presents no certificate"),
    ];
    for (files, with_certificate, reason) in cases {
        let mut refused = files.connect(lab.pof, with_certificate);
        // The alert arrives after the client's part of the handshake.
        assert!(refused.write_all(&HELLO).and_then(|()| refused.read_exact(&mut [0; 8])).is_err());
        logged(&lab, &["WARN", reason]);
    }
    let mut plain = TcpStream::connect(lab.pof).unwrap();
    plain.write_all(&HELLO).unwrap();
    logged(&lab, &["WARN", "sends plain text to an address of TLS"]);
    // A completed handshake of another controller would have emptied the tables.
    peer.settle();
    forwards(&mut lab);
}

#[test]
fn replaced_certificates_do_not_end_the_session() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let of_switch = old.issue("switch", "127.0.0.1");
    let mut lab = Lab::start_at(LISTEN, &of_switch.section());
    let mut first = connect(&lab, PofDialect::V1_4, &old.issue("controller", "127.0.0.1"));
    of_switch.replace_by(&new.issue("switch", "127.0.0.1"));
    // The file of the old authority contains the new one now, so this controller accepts the switch.
    let mut refused = old.issue("late", "127.0.0.1").connect(lab.pof, true);
    assert!(refused.write_all(&HELLO).and_then(|()| refused.read_exact(&mut [0; 8])).is_err());
    logged(&lab, &["WARN", "no authority in tls.ca has issued"]);
    install(&mut first);
    forwards(&mut lab);
    // The next controller replaces the first one, and empties the tables.
    let mut second = connect(&lab, PofDialect::V1_4, &new.issue("controller", "127.0.0.1"));
    first.wait_for_end();
    install(&mut second);
    forwards(&mut lab);
}
