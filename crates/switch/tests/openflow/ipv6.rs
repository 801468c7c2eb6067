// SPDX-License-Identifier: Apache-2.0
//! Connections over IPv6: listeners and controllers of both protocols, and metrics.

use crate::lab::LONG;
use config::{Config, Endpoint};
use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use switch::daemon::{Daemon, Stop};

/// Returns the first 8 bytes that the other end sends: the header of its HELLO.
fn header(mut stream: TcpStream) -> [u8; 8] {
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut header = [0; 8];
    stream.read_exact(&mut header).unwrap();
    header
}

fn address(endpoints: &[Endpoint]) -> SocketAddr {
    let address = endpoints[0].address().unwrap();
    assert_eq!(address.ip(), Ipv6Addr::LOCALHOST);
    address
}

#[test]
fn all_control_connections_work_over_ipv6() {
    let folder = std::env::temp_dir().join(format!("shunt-ipv6-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [openflow, pof] = [(); 2].map(|()| TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let text = format!(
        "control = {:?}\nmetrics = \"[::1]:0\"\n[[worker]]\n[[datapath]]\nid = 7\n\
         [datapath.openflow]\nlisten = \"[::1]:0\"\ncontrollers = [\"tcp:[::1]:{}\"]\n\
         [datapath.pof]\nlisten = \"[::1]:0\"\ncontrollers = [\"tcp:[::1]:{}\"]\n",
        folder.join("control.sock"),
        port(&openflow),
        port(&pof)
    );
    let config = Config::parse(&text).unwrap();
    let (stop, tell) = Stop::by_hand().unwrap();
    let daemon = Daemon::start(&config, || Ok(Vec::new()), None, &stop).unwrap().unwrap();
    let (listens, listens_pof) = (address(&daemon.openflow_addresses()), address(&daemon.pof_addresses()));
    let source = daemon.metrics_source();
    let server = switch::metrics::start(config.process.metrics.unwrap(), vec![source]).unwrap();
    let thread = std::thread::spawn(move || daemon.serve(&stop));
    // Version 1.3, and the kind HELLO.
    assert_eq!(header(openflow.accept().unwrap().0)[..2], [4, 0]);
    assert_eq!(header(TcpStream::connect(listens).unwrap())[..2], [4, 0]);
    // The kind of POF's HELLO is 0, too.
    assert_eq!(header(pof.accept().unwrap().0)[1], 0);
    assert_eq!(header(TcpStream::connect(listens_pof).unwrap())[1], 0);
    let mut scrape = TcpStream::connect(server.address()).unwrap();
    scrape.set_read_timeout(Some(LONG)).unwrap();
    assert_eq!(server.address().ip(), Ipv6Addr::LOCALHOST);
    scrape.write_all(b"GET /metrics HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    scrape.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("shunt_datapath_up"), "{text}");
    drop(tell);
    thread.join().unwrap().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}
