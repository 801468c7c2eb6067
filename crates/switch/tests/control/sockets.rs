// SPDX-License-Identifier: Apache-2.0
//! Tests of the file of the control socket.

use crate::lab::{LONG, Lab, config, folder, start_bare};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::time::Instant;
use switch::daemon::{Daemon, Stop};

#[test]
fn only_the_owner_may_open_the_socket_and_no_other_switch_replaces_it() {
    let lab = Lab::start(1, 1, None);
    let mode = std::fs::metadata(&lab.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut opened = false;
    let open = || {
        opened = true;
        Ok(Vec::new())
    };
    let (stop, _tell) = Stop::by_hand().unwrap();
    let second = Daemon::start(&config(&lab.socket, 1, 0), open, None, &stop);
    let message = second.err().unwrap().to_string();
    assert!(message.contains("another switch answers on this control socket"), "{message}");
    assert!(!opened, "the second switch opened devices");
    lab.client();
}

#[test]
fn a_stale_socket_is_replaced_and_a_file_is_not() {
    let folder = folder();
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("control.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(start_bare(&config(&path, 1, 0), None).unwrap());
    assert!(!path.exists());

    std::fs::write(&path, "precious").unwrap();
    let message = start_bare(&config(&path, 1, 0), None).err().unwrap().to_string();
    assert!(message.contains("is not a socket"), "{message}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Neither a listener that never accepts nor a lock of another process may block the start forever.
#[test]
fn the_start_does_not_wait_for_other_processes() {
    let folder = folder();
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("control.sock");
    let deaf = UnixListener::bind(&path).unwrap();
    let mut waiting = Vec::new();
    // Connect until the listener's queue is full.
    for _ in 0..5_000 {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        if connect(&socket, &SocketAddrUnix::new(&path).unwrap()).is_err() {
            break;
        }
        waiting.push(socket);
        assert!(waiting.len() < 5_000);
    }
    let message = start_bare(&config(&path, 1, 0), None).err().unwrap().to_string();
    assert!(message.contains("another switch answers on this control socket"), "{message}");
    drop((deaf, waiting));
    let lock = std::fs::File::open(&folder).unwrap();
    lock.lock().unwrap();
    let message = start_bare(&config(&path, 1, 0), None).err().unwrap().to_string();
    assert!(message.contains("another process has locked this folder"), "{message}");
    drop(lock);
    start_bare(&config(&path, 1, 0), None).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_invalid_flow_file_prevents_the_start() {
    let folder = folder();
    std::fs::create_dir(&folder).unwrap();
    let (socket, flows) = (folder.join("control.sock"), folder.join("start.flows"));
    std::fs::write(&flows, "in_port=1,actions=output:2\nin_port=nobody,actions=drop\n").unwrap();
    let message = start_bare(&config(&socket, 1, 0), Some(&flows)).err().unwrap().to_string();
    assert!(message.contains("start.flows: line 2, column "), "{message}");
    assert!(!socket.exists());
    let message = start_bare(&config(&socket, 1, 0), Some(&folder.join("none"))).err().unwrap().to_string();
    assert!(message.contains("none: cannot read the flow file"), "{message}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The daemon can be stopped while it reads a flow file, even from a pipe that delivers nothing.
#[test]
fn the_daemon_can_be_stopped_while_it_starts() {
    let folder = folder();
    std::fs::create_dir(&folder).unwrap();
    let socket = folder.join("control.sock");
    let (silent, endless) = (folder.join("silent"), folder.join("endless"));
    for pipe in [&silent, &endless] {
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    }
    let writer = endless.clone();
    let writer = std::thread::spawn(move || {
        let mut pipe = std::fs::File::create(writer).unwrap();
        while pipe.write_all(b"# no flow yet\n").is_ok() {}
    });
    for flows in [&silent, &endless] {
        let (stop, tell) = Stop::by_hand().unwrap();
        let reported = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            drop(tell);
        });
        let start = Instant::now();
        let daemon = Daemon::start(&config(&socket, 1, 0), || Ok(Vec::new()), Some(flows), &stop).unwrap();
        assert!(daemon.is_none() && start.elapsed() < LONG);
        assert!(!socket.exists());
        reported.join().unwrap();
    }
    writer.join().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
