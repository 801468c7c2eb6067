// SPDX-License-Identifier: Apache-2.0
//! Tests of OpenFlow channels over unix sockets.

use crate::lab::{Lab, until};
use config::Config;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use switch::daemon::{Daemon, Stop};

/// Path of a socket in a temporary directory. Dropping it removes the directory.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("shunt-unix-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        Self(folder.join("of.sock"))
    }

    fn endpoint(&self) -> String {
        format!("unix:{}", self.0.display())
    }

    fn listens(&self) -> String {
        format!("listen = [\"127.0.0.1:0\", {:?}]", self.endpoint())
    }

    /// Returns the error of a switch that cannot listen on the socket.
    fn refusal(&self) -> String {
        let text = format!(
            "control = {:?}\n[[worker]]\n[[datapath]]\nid = 1\n[datapath.openflow]\nlisten = {:?}\n",
            self.0.with_extension("control"),
            self.endpoint()
        );
        let (stop, _tell) = Stop::by_hand().unwrap();
        let start = Daemon::start(&Config::parse(&text).unwrap(), || Ok(Vec::new()), None, &stop);
        start.err().unwrap().to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(self.0.parent().unwrap()).unwrap();
    }
}

#[test]
fn ovs_ofctl_uses_unix_sockets_and_tcp_at_the_same_time() {
    let place = Place::new();
    let lab = Lab::start(1, 2, &place.listens());
    let mode = std::fs::metadata(&place.0).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let ofctl = |words: &[&str]| {
        let (good, text) = lab.try_ofctl_at(&place.endpoint(), words);
        assert!(good, "ovs-ofctl {words:?}: {text}");
        text
    };
    ofctl(&["del-flows"]);
    let lines: String = (0..2_000).map(|n| format!("tcp,tcp_dst={n},actions=output:1\n")).collect();
    let file = lab.file("many", &lines);
    ofctl(&["add-flows", &file]);
    assert_eq!(ofctl(&["diff-flows", &file]), "");
    assert_eq!(ofctl(&["dump-flows"]).matches("actions=output:1").count(), 2_000);
    assert_eq!(lab.flows().len(), 2_000, "the socket and TCP lead to the same switch");
    lab.ofctl(&["del-flows"]);
    ofctl(&["--bundle", "add-flows", &file]);
    assert!(ofctl(&["dump-aggregate"]).contains("flow_count=2000"));
    drop(lab);
    assert!(!place.0.exists(), "the socket still exists");
}

#[test]
fn only_stale_sockets_are_replaced() {
    let place = Place::new();
    drop(UnixListener::bind(&place.0).unwrap());
    let lab = Lab::start(1, 1, &place.listens());
    assert!(lab.try_ofctl_at(&place.endpoint(), &["show"]).0);
    let message = place.refusal();
    assert!(message.contains("of.sock: another process answers on this OpenFlow socket"), "{message}");
    assert!(message.contains("another `datapath.openflow.listen` path"), "{message}");
    assert!(lab.try_ofctl_at(&place.endpoint(), &["show"]).0, "the socket of the first switch is gone");
    drop(lab);
    std::fs::write(&place.0, "precious").unwrap();
    let message = place.refusal();
    assert!(message.contains("exists already and is not a socket; move it, or use"), "{message}");
    assert_eq!(std::fs::read_to_string(&place.0).unwrap(), "precious");
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The controller starts after the switch, and later restarts.
#[test]
fn connections_to_a_controller_are_retried() {
    let place = Place::new();
    let lab = Lab::start(1, 2, &format!("controllers = [{:?}]", place.endpoint()));
    until("the first try has failed", || {
        !lab.log.lines(&["controller unix:", "of.sock cannot be reached"]).is_empty()
    });
    for _ in 0..2 {
        let controller = lab
            .tool("ovs-testcontroller")
            .args(["-O", "OpenFlow13", &format!("p{}", place.endpoint())])
            .stderr(Stdio::null())
            .spawn()
            .expect("ovs-testcontroller is needed: scripts/setup.sh test installs it");
        let controller = Ended(controller);
        until("the controller has set its table-miss entry", || lab.flows().join("").contains("CONTROLLER"));
        drop(controller);
        lab.ofctl(&["del-flows"]);
    }
}
