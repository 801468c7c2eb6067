// SPDX-License-Identifier: Apache-2.0
//! Tests of clients that send invalid requests or disconnect, and of the maximum number of clients.

use crate::counters;
use crate::lab::{Lab, until};
use std::io::Write;
use switch::control::{ControlRequest, Tables};

#[test]
fn malformed_requests_get_an_error_and_the_connection_stays_open() {
    let lab = Lab::start(1, 1, None);
    let mut raw = lab.raw();
    let rows: &[(&str, &str, &str)] = &[
        ("hello", "\"id\":null", "not a JSON object"),
        ("[1]", "\"id\":null", "not a JSON object"),
        ("{}", "\"id\":null", "has no \\\"id\\\""),
        ("{\"id\":-1,\"request\":\"ports\"}", "\"id\":null", "an integer from 0"),
        ("{\"id\":5}", "\"id\":5", "missing field `request`"),
        ("{\"id\":5,\"request\":\"prots\"}", "\"id\":5", "expected one of `ports`"),
        ("{\"id\":5,\"request\":\"flows\",\"form\":\"xml\"}", "\"id\":5", "expected one of `lines`"),
        ("{\"id\":5,\"request\":\"load\",\"text\":3,\"last\":true}", "\"id\":5", "expected a string"),
        (
            "{\"id\":5,\"request\":\"load\",\"text\":\"\",\"last\":true,\"x\":1}",
            "\"id\":5",
            "unknown field `x`",
        ),
        (
            "{\"id\":5,\"request\":\"ports\",\"form\":\"rows\"}",
            "\"id\":5",
            "unknown field `form`; this request has no",
        ),
        ("{\"id\":5,\"request\":\"clear\",\"table\":1}", "\"id\":5", "unknown field `table`"),
        ("{\"id\":5,\"request\":\"ports\",\"request\":\"clear\"}", "\"id\":5", "\\\"request\\\" twice"),
        (
            "{\"id\":5,\"request\":\"flows\",\"form\":\"rows\",\"form\":\"rows\"}",
            "\"id\":5",
            "\\\"form\\\" twice",
        ),
        ("{\"id\":4,\"id\":5,\"request\":\"ports\"}", "\"id\":null", "add one"),
        ("{\"id\":6,\"request\":\"cache\",\"port\":1}", "\"id\":6", "unknown field `port`"),
        (
            "{\"id\":7,\"request\":\"gates\",\"gates\":{\"ports\":[[1,0,\"\"]]},\"trusted\":null}",
            "\"id\":7",
            "gates.ports[0]: 0 is out of range",
        ),
        (
            "{\"id\":7,\"request\":\"gates\",\"gates\":{\"ports\":[[1,2]]},\"trusted\":null}",
            "\"id\":7",
            "not understood",
        ),
    ];
    for (request, id, says) in rows {
        let answer = raw.ask(request);
        assert!(
            answer.contains("\"error\":") && answer.contains(id) && answer.contains(says),
            "{request}: {answer}"
        );
    }
    raw.send(b"\n  \n\xff\xfe\n");
    assert!(raw.line().contains("not a JSON object"));
    // Several requests in one write are answered in order, even if the client has closed its sending
    // direction.
    raw.send(b"{\"id\":1,\"request\":\"tables\"}\n{\"id\":2,\"request\":\"ports\"}\n{\"id\":3,\"request\":\"counters\"}\n");
    raw.end();
    for id in 1..=3 {
        assert!(raw.line().contains(&format!("\"id\":{id}")));
    }
    assert_eq!(raw.line(), "");
}

/// Requests that were read together are processed one by one, without copying the remaining bytes each time.
#[test]
fn many_requests_in_one_write_are_answered_in_order() {
    const REQUESTS: u32 = 20_000;
    let lab = Lab::start(1, 1, None);
    let mut raw = lab.raw();
    let sent: String = (0..REQUESTS).map(|id| format!("{{\"id\":{id},\"request\":\"wrong\"}}\n")).collect();
    let mut writer = raw.writer();
    let sending = std::thread::spawn(move || writer.write_all(sent.as_bytes()).unwrap());
    for id in 0..REQUESTS {
        assert!(raw.line().contains(&format!("\"id\":{id}}}")), "{id}");
    }
    sending.join().unwrap();
}

#[test]
fn an_endless_request_is_refused() {
    let lab = Lab::start(1, 1, None);
    let mut raw = lab.raw();
    raw.send(&vec![b'x'; switch::control::REQUEST_BYTES + 1]);
    let answer = raw.line();
    assert!(answer.contains("is longer than 1048576 bytes"), "{answer}");
    assert_eq!(raw.line(), "");
}

#[test]
fn two_loads_on_one_connection_do_not_mix() {
    let lab = Lab::start(1, 1, None);
    let mut raw = lab.raw();
    raw.send(b"{\"id\":1,\"request\":\"load\",\"text\":\"in_port=1,actions=drop\\n\",\"last\":false}\n");
    let answer =
        raw.ask("{\"id\":2,\"request\":\"load\",\"text\":\"in_port=2,actions=drop\\n\",\"last\":true}");
    assert!(answer.contains("\"id\":2") && answer.contains("was not finished"), "{answer}");
    assert_eq!(raw.line(), "", "the connection is closed");
    let tables: Tables = lab.client().ask(&ControlRequest::Tables).unwrap();
    assert_eq!(tables.tables[0].entries, 1);
}

#[test]
fn clients_that_vanish_leave_nothing_behind() {
    let lab = Lab::start(1, 1, None);
    // The switch may refuse some of the 200 clients, because earlier ones may still be connected.
    for _ in 0..200 {
        let mut raw = lab.raw();
        let _ = raw.try_send(b"{\"id\":1,\"request\":\"load\",\"text\":\"in_port=1,actions=drop\\n\",\"last\":false}\n{\"id\":2");
        drop(raw);
        let mut raw = lab.raw();
        let _ = raw.try_send(b"{\"id\":1,\"request\":\"flows\",\"form\":\"lines\"}\n");
    }
    // The switch may notice the closed connections only later.
    until("there is room again", || {
        lab.client().ask(&ControlRequest::Tables).is_ok_and(|tables: Tables| tables.tables[0].entries == 1)
    });
}

#[test]
fn clients_above_the_maximum_are_refused_until_others_leave() {
    let lab = Lab::start(1, 1, None);
    let mut crowd: Vec<_> = (0..64).map(|_| lab.raw()).collect();
    for raw in &mut crowd {
        assert!(raw.ask("{\"id\":1,\"request\":\"counters\"}").contains("\"received\":0"));
    }
    let answer = lab.raw().line();
    assert!(answer.contains("64 clients are connected"), "{answer}");
    drop(crowd);
    until("there is room again", || lab.client().ask::<Tables>(&ControlRequest::Tables).is_ok());
    assert_eq!(counters(&lab).received, 0);
}
