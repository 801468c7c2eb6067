// SPDX-License-Identifier: Apache-2.0
//! The socket's file.

use crate::lab::{Lab, config, folder};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use switch::daemon::Daemon;

#[test]
fn only_the_owner_may_open_it_and_nobody_takes_it_away() {
    let lab = Lab::start(1, 1, None);
    let mode = std::fs::metadata(&lab.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut opened = false;
    let open = || {
        opened = true;
        Ok(Vec::new())
    };
    let second = Daemon::start(&config(&lab.socket, 1, 0), open, None);
    let message = second.err().unwrap().to_string();
    assert!(message.contains("another switch answers on this control socket"), "{message}");
    assert!(!opened, "the first one's devices are touched");
    lab.client();
}

#[test]
fn a_stale_socket_is_replaced_and_a_file_is_not() {
    let folder = folder();
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("control.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(Daemon::start(&config(&path, 1, 0), || Ok(Vec::new()), None).unwrap());
    assert!(!path.exists());

    std::fs::write(&path, "precious").unwrap();
    let message = Daemon::start(&config(&path, 1, 0), || Ok(Vec::new()), None).err().unwrap().to_string();
    assert!(message.contains("is no socket"), "{message}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_flow_file_that_is_wrong_keeps_it_from_starting() {
    let folder = folder();
    std::fs::create_dir(&folder).unwrap();
    let (socket, flows) = (folder.join("control.sock"), folder.join("start.flows"));
    std::fs::write(&flows, "in_port=1,actions=output:2\nin_port=nobody,actions=drop\n").unwrap();
    let message =
        Daemon::start(&config(&socket, 1, 0), || Ok(Vec::new()), Some(&flows)).err().unwrap().to_string();
    assert!(message.contains("start.flows: line 2, column "), "{message}");
    assert!(!socket.exists());
    let message = Daemon::start(&config(&socket, 1, 0), || Ok(Vec::new()), Some(&folder.join("none")))
        .err()
        .unwrap()
        .to_string();
    assert!(message.contains("none: can not read the flow file"), "{message}");
    std::fs::remove_dir_all(&folder).unwrap();
}
