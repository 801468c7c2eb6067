// SPDX-License-Identifier: Apache-2.0
//! Tests of the HTTP server with real connections.
#![allow(clippy::unwrap_used)]

use metrics::{CONNECTIONS, CONTENT_TYPE, REQUEST_LIMIT, Server};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A server, and the number of times that its metrics were rendered.
fn server(text: &str) -> (Server, Arc<AtomicUsize>) {
    let rendered = Arc::new(AtomicUsize::new(0));
    let (count, text) = (Arc::clone(&rendered), text.to_owned());
    let render = move || {
        count.fetch_add(1, Ordering::Relaxed);
        text.clone()
    };
    (Server::start("127.0.0.1:0".parse().unwrap(), || (), render).unwrap(), rendered)
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(4 * REQUEST_LIMIT)).unwrap();
    stream
}

/// Sends bytes and returns the head and the body of the response.
fn ask(server: &Server, bytes: &[u8]) -> (String, String) {
    let mut stream = connect(server);
    stream.write_all(bytes).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn a_response_has_the_metrics_and_ends_the_connection() {
    let (server, _) = server("a 1\n# EOF\n");
    let (head, body) = ask(&server, GET);
    assert_eq!(body, "a 1\n# EOF\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    for field in [&format!("Content-Type: {CONTENT_TYPE}"), "Content-Length: 10", "Connection: close"] {
        assert!(head.lines().any(|line| line == field), "{head}");
    }
    let (head, body) = ask(&server, b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.contains("Content-Length: 10") && body.is_empty(), "{head}");
}

#[test]
fn a_large_response_reaches_a_slow_reader_whole() {
    let text = "0123456789abcdef".repeat(1 << 18);
    let (server, _) = server(&text);
    let mut stream = connect(&server);
    stream.write_all(GET).unwrap();
    // Nothing is read until the buffers of the connection are full.
    std::thread::sleep(Duration::from_millis(300));
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.ends_with(&text));
}

#[test]
fn bad_requests_get_an_answer() {
    let (server, rendered) = server("a 1\n");
    let huge = [&b"GET /metrics HTTP/1.1\r\nA: "[..], &[b'a'; 100_000]].concat();
    let wrong: [(&[u8], &str, &str); 4] = [
        (b"\x16\x03\x01\x00\xf4\x01\x00\x00\xf0\x03\x03", "400", "not a request of HTTP"),
        (b"GET /other HTTP/1.1\r\n\r\n", "404", "/metrics"),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n", "405", "GET or HEAD"),
        (&huge, "431", "8192 bytes"),
    ];
    for (bytes, status, sentence) in wrong {
        let (head, body) = ask(&server, bytes);
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")) && body.contains(sentence),
            "{head}\n{body}"
        );
    }
    let mut state = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..state.usize(1..2_000)).map(|_| state.u8(..)).collect();
        let mut stream = connect(&server);
        // The server may answer and close the connection before all bytes are written.
        drop(stream.write_all(&bytes).and_then(|()| stream.shutdown(Shutdown::Write)));
        let mut response = Vec::new();
        match stream.read_to_end(&mut response) {
            Ok(_) => assert!(response.is_empty() || response.starts_with(b"HTTP/1.1 4")),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
    assert_eq!(rendered.load(Ordering::Relaxed), 0);
    assert!(ask(&server, GET).0.starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_thousand_idle_clients_do_not_lock_out_others() {
    let (server, _) = server("a 1\n");
    let start = Instant::now();
    let mut idle = Vec::new();
    for number in 0..1_000 {
        let mut stream = connect(&server);
        // A slow client: the head of its request never ends.
        drop(stream.write_all(b"GET /metrics HTTP/1.1\r\n"));
        idle.push(stream);
        if number % 100 == 99 {
            assert_eq!(ask(&server, GET).1, "a 1\n");
        }
    }
    assert!(start.elapsed() < REQUEST_LIMIT, "{:?}", start.elapsed());
    let mut bytes = [0];
    // Each new client has replaced the oldest.
    for (number, stream) in idle.iter_mut().enumerate() {
        stream.set_nonblocking(number + CONNECTIONS >= 1_000).unwrap();
        match stream.read(&mut bytes) {
            Ok(count) => assert_eq!(count, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => assert!(number + CONNECTIONS >= 1_000),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
}

#[test]
fn a_client_that_never_ends_its_request_is_disconnected() {
    let (server, _) = server("a 1\n");
    let mut stream = connect(&server);
    let start = Instant::now();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    assert!((REQUEST_LIMIT..2 * REQUEST_LIMIT).contains(&start.elapsed()), "{:?}", start.elapsed());
}

#[test]
fn frequent_requests_share_their_metrics() {
    let (server, rendered) = server("a 1\n");
    let start = Instant::now();
    for _ in 0..200 {
        assert_eq!(ask(&server, GET).1, "a 1\n");
    }
    let most = 2 + start.elapsed().as_millis() as usize / 200;
    assert!((1..=most).contains(&rendered.load(Ordering::Relaxed)), "{rendered:?}, not up to {most}");
}
