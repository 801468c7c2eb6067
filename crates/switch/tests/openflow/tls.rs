// SPDX-License-Identifier: Apache-2.0
//! Tests of OpenFlow over TLS: with ovs-ofctl, with controllers that the switch connects to, and with
//! certificates that are expired, wrong or replaced.

use crate::lab::{Lab, until};
use crate::tls_files::{Authority, Files};
use config::Endpoint;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
const ECHO_REQUEST: [u8; 8] = [4, 2, 0, 8, 0, 0, 0, 7];
const ECHO_REPLY: [u8; 8] = [4, 3, 0, 8, 0, 0, 0, 7];

/// A switch that accepts plain and TLS connections.
fn lab(files: &Files) -> (Lab, SocketAddr) {
    let listen = format!("listen = [\"127.0.0.1:0\", \"ssl:127.0.0.1:0\"]\n{}", files.section());
    let lab = Lab::start(1, 2, &listen);
    let Endpoint::Ssl(address) = lab.endpoints[1] else { panic!("{:?}", lab.endpoints) };
    (lab, address)
}

/// Runs ovs-ofctl over TLS, with the certificate of these files.
fn ofctl(lab: &Lab, files: &Files, address: SocketAddr, words: &[&str]) -> (bool, String) {
    let options = files.options();
    let all: Vec<&str> = options.iter().map(String::as_str).chain(words.iter().copied()).collect();
    lab.try_ofctl_at(&format!("ssl:{address}"), &all)
}

/// Exchanges HELLO and an echo.
fn greet(stream: &mut (impl Read + Write)) {
    stream.write_all(&[HELLO, ECHO_REQUEST].concat()).unwrap();
    let mut header = [0; 8];
    stream.read_exact(&mut header).unwrap();
    assert_eq!(header[..2], HELLO[..2]);
    let mut rest = vec![0; usize::from(u16::from_be_bytes([header[2], header[3]])) - 8];
    stream.read_exact(&mut rest).unwrap();
    echo_is_answered(stream);
}

fn echo_is_answered(stream: &mut impl Read) {
    let mut reply = [0; 8];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply, ECHO_REPLY);
}

/// Waits until the log has a line with these parts.
fn logged(lab: &Lab, parts: &[&str]) {
    until(&format!("the log has {parts:?}"), || !lab.log.lines(parts).is_empty());
}

#[test]
fn ovs_ofctl_changes_and_reads_flows_over_tls() {
    let authority = Authority::new("good");
    let (lab, address) = lab(&authority.issue("switch", "127.0.0.1"));
    let client = authority.issue("client", "127.0.0.2");
    let run = |words: &[&str]| {
        let (good, text) = ofctl(&lab, &client, address, words);
        assert!(good, "{words:?}: {text}");
        text
    };
    assert!(run(&["show"]).contains("dpid:0000000000000007"));
    let flows: String = (0..5_000)
        .map(|n| {
            format!("table=1,priority={},ip,nw_dst=10.{}.{}.1,actions=output:2\n", n % 7, n / 250, n % 250)
        })
        .collect();
    let file = lab.file("many.flows", &flows);
    run(&["add-flows", &file]);
    let lines = |text: &str| {
        let mut lines: Vec<String> =
            text.lines().filter(|line| line.contains("actions")).map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let secure = lines(&run(&["--no-names", "--no-stats", "dump-flows"]));
    let plain = lines(&lab.ofctl(&["--no-names", "--no-stats", "dump-flows"]));
    assert_eq!(secure.len(), 5_001);
    assert!(secure == plain, "TLS and TCP show different flows");
}

#[test]
fn peers_without_a_good_certificate_are_refused_with_a_reason() {
    let (authority, foreign) = (Authority::new("good"), Authority::new("foreign"));
    let (lab, address) = lab(&authority.issue("switch", "127.0.0.1"));
    let ca = authority.issue("client", "127.0.0.1").ca;
    let of = |files: Files| Files { ca: ca.clone(), ..files };
    let cases = [
        (of(foreign.issue("stranger", "127.0.0.1")), "no authority in tls.ca has issued"),
        (of(authority.issue_until("old", "127.0.0.1", 2001)), "has expired"),
    ];
    for (files, reason) in cases {
        let (good, text) = ofctl(&lab, &files, address, &["show"]);
        assert!(!good, "{text}");
        logged(&lab, &["WARN", "127.0.0.1:", "the certificate of the peer", reason]);
    }
    let mut without = authority.issue("none", "127.0.0.1").connect(address, false);
    // The alert arrives after the client's part of the handshake.
    let refused = without.write_all(&HELLO).and_then(|()| without.read_exact(&mut [0; 8])).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::InvalidData | ErrorKind::ConnectionReset), "{refused}");
    logged(&lab, &["WARN", "the peer presents no certificate"]);
    assert_eq!(lab.log.lines(&["OpenFlow 1.3"]).len(), 0);
    assert!(lab.ofctl(&["show"]).contains("dpid:"));
}

#[test]
fn plain_text_at_an_address_of_tls_is_named_in_the_log() {
    let authority = Authority::new("good");
    let (lab, address) = lab(&authority.issue("switch", "127.0.0.1"));
    let (good, _) = lab.try_ofctl_at(&format!("tcp:{address}"), &["show"]);
    assert!(!good);
    logged(&lab, &["WARN", "sends plain text to an address of TLS"]);
    // Silence and half a record end with the usual limits.
    let idle = TcpStream::connect(address).unwrap();
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    let good = authority.issue("client", "127.0.0.1");
    greet(&mut good.connect(address, true));
    drop((idle, half));
}

#[test]
fn data_that_the_peer_sends_at_once_is_processed_without_more_data() {
    let authority = Authority::new("good");
    let (_lab, address) = lab(&authority.issue("switch", "127.0.0.1"));
    let mut stream = authority.issue("client", "127.0.0.1").connect(address, true);
    greet(&mut stream);
    // Several TLS records, which the switch decrypts together.
    let count = 20_000;
    let requests = ECHO_REQUEST.repeat(count);
    let (mut reader, mut written) = (0, 0);
    let mut reply = [0; 8];
    while reader < count {
        let next = (written + 8 * 1_000).min(requests.len());
        stream.write_all(&requests[written..next]).unwrap();
        while reader < next / 8 {
            stream.read_exact(&mut reply).unwrap();
            assert_eq!(reply, ECHO_REPLY);
            reader += 1;
        }
        written = next;
    }
}

#[test]
fn changed_certificates_are_used_for_new_connections() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let of_switch = old.issue("switch", "127.0.0.1");
    let (lab, address) = lab(&of_switch);
    let (of_old, of_new) = (old.issue("client", "127.0.0.1"), new.issue("client", "127.0.0.1"));
    let of_old = Files {
        ca: {
            let copy = of_old.certificate.with_extension("ca");
            std::fs::copy(&of_old.ca, &copy).unwrap();
            copy
        },
        ..of_old
    };
    let mut first = of_old.connect(address, true);
    greet(&mut first);
    // A key that does not fit is not used.
    let good_key = std::fs::read(&of_switch.private_key).unwrap();
    std::fs::copy(&of_new.private_key, &of_switch.private_key).unwrap();
    greet(&mut of_old.connect(address, true));
    logged(&lab, &["WARN", "the changed certificates of TLS are not used"]);
    std::fs::write(&of_switch.private_key, good_key).unwrap();
    greet(&mut of_old.connect(address, true));
    // Now all files change, and with them the authority.
    of_switch.replace_by(&new.issue("switch", "127.0.0.1"));
    greet(&mut of_new.connect(address, true));
    let mut stale = of_old.connect(address, true);
    assert!(stale.write_all(&HELLO).and_then(|()| stale.read_exact(&mut [0; 8])).is_err());
    // The connection from before goes on.
    first.write_all(&ECHO_REQUEST).unwrap();
    echo_is_answered(&mut first);
    assert!(!lab.log.lines(&["were read again"]).is_empty());
}

/// A switch that connects to a controller at this address over TLS.
fn dialing(files: &Files, address: SocketAddr, more: &str) -> Lab {
    let controllers = format!("controllers = [\"ssl:{address}\"]\n{}{more}\n", files.section());
    Lab::start(1, 2, &controllers)
}

#[test]
fn the_switch_connects_to_a_controller_over_tls() {
    let authority = Authority::new("good");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let lab = dialing(&authority.issue("switch", "10.0.0.1"), address, "");
    let controller = authority.issue("controller", "127.0.0.1");
    let mut stream = controller.serve(listener.accept().unwrap().0);
    greet(&mut stream);
    logged(&lab, &[&format!("ssl:{address}"), "OpenFlow 1.3"]);
}

#[test]
fn a_controller_with_a_wrong_certificate_is_not_used() {
    let (authority, foreign) = (Authority::new("good"), Authority::new("foreign"));
    let of_switch = authority.issue("switch", "127.0.0.1");
    let wrong = |files: Files| Files { ca: of_switch.ca.clone(), ..files };
    let cases = [
        (authority.issue("elsewhere", "10.9.9.9"), "is not for its address"),
        (authority.issue_until("old", "127.0.0.1", 2001), "has expired"),
        (wrong(foreign.issue("stranger", "127.0.0.1")), "no authority in tls.ca has issued"),
    ];
    for (files, reason) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let lab = dialing(&of_switch, listener.local_addr().unwrap(), "");
        let mut stream = files.serve(listener.accept().unwrap().0);
        assert!(stream.read_exact(&mut [0; 8]).is_err());
        logged(&lab, &["WARN", "the certificate of the peer", reason]);
    }
    // As Open vSwitch, the switch can ignore the address.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _lab = dialing(&of_switch, listener.local_addr().unwrap(), "check_address = false");
    greet(&mut authority.issue("elsewhere", "10.9.9.9").serve(listener.accept().unwrap().0));
}

#[test]
fn a_controller_that_speaks_plain_text_is_named_in_the_log() {
    let authority = Authority::new("good");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let lab = dialing(&authority.issue("switch", "127.0.0.1"), listener.local_addr().unwrap(), "");
    let mut stream = listener.accept().unwrap().0;
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(&HELLO).unwrap();
    logged(&lab, &["WARN", "sends plain text to an address of TLS"]);
}
