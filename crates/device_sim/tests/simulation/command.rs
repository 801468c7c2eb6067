// SPDX-License-Identifier: Apache-2.0
//! The command `shunt-device`.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};

use port::{DeviceLock, Spec};

use crate::rig::{Daemon, wait_until};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-device"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> (Output, String) {
    let output = command(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned();
    (output, text)
}

/// A free UDP port of this host.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Ends the process if the test fails.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn wrong_usage_is_explained() {
    let (output, text) = run(&["--help"]);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("--listen") && text.contains("NUMBER=[DRIVER:]DEVICE") && text.contains("Example"));
    for (arguments, code, part) in [
        (&["--port", "1=mem:null"][..], 2, "--listen"),
        (&["--listen", "127.0.0.1"], 2, "such as 127.0.0.1:6700"),
        (&["--listen", "192.0.2.1:6700"], 2, "loopback"),
        (&["--listen", "127.0.0.1:6700", "--port", "veth"], 2, "NUMBER=[DRIVER:]DEVICE"),
        (&["--listen", "127.0.0.1:6700", "--port", "0=veth"], 2, "1 to 4"),
        (&["--listen", "127.0.0.1:6700", "--port", "5=veth"], 2, "1 to 4"),
        (&["--listen", "127.0.0.1:6700", "--port", "1=tap:tap0"], 2, "af_packet"),
        (&["--listen", "127.0.0.1:6700", "--port", "1=a/b"], 2, "'/'"),
        (&["--listen", "127.0.0.1:0", "--port", "1=nosuch0"], 1, "nosuch0"),
        (&["--listen", "127.0.0.1:0", "--port", "1=mem:null", "--port", "1=mem:null"], 1, "given twice"),
    ] {
        let (output, text) = run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(part), "{arguments:?}: {text}");
    }
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (output, text) = run(&["--listen", &address]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("cannot listen at {address}")), "{text}");
}

/// The command claims an interface before it opens it, so the test needs no privileges.
#[test]
fn an_interface_that_another_switch_serves_is_refused() {
    let spec = Spec {
        number: 1,
        name: "1".into(),
        driver: port::af_packet::NAME.into(),
        device: "lo".into(),
        queues: 1,
        outstanding_bytes: usize::MAX,
        receive_ring: None,
        handover: port::Handover::Never,
    };
    let claim = DeviceLock::take(&spec).unwrap();
    assert!(claim.is_some());
    let (output, text) = run(&["--listen", "127.0.0.1:0", "--port", "1=lo"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("another switch serves the device \"lo\""), "{text}");
}

#[test]
fn a_daemon_may_be_restarted_and_signals_end_the_device() {
    for signal in ["-TERM", "-INT"] {
        let listen = format!("127.0.0.1:{}", free_port());
        let child = command(&["--listen", &listen, "--port", "1=mem:null", "--port", "2=mem:null"])
            .stderr(Stdio::piped())
            .spawn();
        let mut process = Process(child.unwrap());
        let mut lines = BufReader::new(process.0.stderr.take().unwrap()).lines();
        let ready = lines.next().unwrap().unwrap();
        assert_eq!(ready, format!("shunt-device: ready, 2 ports, listening at {listen}"));
        let address = listen.parse().unwrap();
        let mut first = Daemon::new(address, 5);
        first.change("in_port=1,actions=output:2");
        first.settle();
        drop(first);
        let mut second = Daemon::new(address, 100_000);
        second.change("in_port=1,actions=output:2");
        second.settle();
        assert_eq!(second.model.plane_mut().rewrites(), 0, "the device keeps its entries");
        drop(second);
        let id = process.0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let mut status = None;
        wait_until("the process ends", || {
            status = process.0.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(0));
        assert!(lines.next().is_none(), "a clean end says nothing");
        // Its address is free again.
        drop(UdpSocket::bind(&listen).unwrap());
    }
}
