// SPDX-License-Identifier: Apache-2.0
//! Tests of traces in a running switch.

use crate::lab::Lab;
use crate::{counters, frame};
use config::packet::PacketForm;
use config::trace::TraceForm;
use flow::PortNo;
use switch::control::{ClientError, ControlRequest, CountersReport};

fn ask(lab: &Lab, packet: PacketForm) -> Result<TraceForm, ClientError> {
    lab.client().ask(&ControlRequest::Trace { packet })
}

fn fields(text: &str) -> PacketForm {
    PacketForm { fields: Some(text.to_owned()), ..PacketForm::default() }
}

#[test]
fn a_trace_uses_the_active_rules_and_counts_nothing() {
    let flows =
        "priority=5,in_port=p1,dl_type=0x88b7,low_latency actions=output:p2\npriority=0 actions=drop\n";
    let mut lab = Lab::start(2, 2, Some(flows));
    assert_eq!(lab.pass(1, &frame(1, 2), 2), frame(1, 2));
    // These counters are not compared: usage is published only from time to time, and preemption causes gaps.
    let counted = |lab: &Lab| CountersReport { limits: Vec::new(), gaps: 0, stolen_ns: 0, ..counters(lab) };
    let before = (counted(&lab), lab.client().ask::<serde_json::Value>(&ControlRequest::Tables).unwrap());
    for _ in 0..3 {
        let reported = ask(&lab, fields("in_port=p1,dl_type=0x88b7")).unwrap();
        assert_eq!(
            (reported.outcome.as_str(), reported.outputs[0].port, reported.outputs[0].name.as_str()),
            ("forwarded", PortNo(2), "p2")
        );
        assert!(reported.low_latency && reported.fast, "{reported:?}");
        let reported = ask(&lab, fields("in_port=p2,dl_type=0x88b7")).unwrap();
        assert_eq!((reported.outcome.as_str(), reported.reason.as_deref()), ("dropped", Some("no_output")));
        assert!(
            reported.tables[0].near[0].excluded[0].contains("wants in_port=1, the packet has in_port=2"),
            "{reported:?}"
        );
    }
    let reported = ask(&lab, fields("in_port=9,arp")).unwrap();
    assert_eq!(reported.why, "its ingress port 9 does not exist");
    assert_eq!((counted(&lab), lab.client().ask(&ControlRequest::Tables).unwrap()), before);
}

#[test]
fn a_trace_uses_learned_macs_and_learns_none() {
    let mut lab = Lab::start(1, 3, None);
    lab.pass(1, &frame(1, 2), 2);
    lab.pass(2, &frame(2, 1), 1);
    let reported = ask(&lab, fields("in_port=2,dl_src=02:00:00:00:00:02,dl_dst=02:00:00:00:00:01")).unwrap();
    assert_eq!(reported.outputs.iter().map(|copy| copy.port).collect::<Vec<_>>(), [PortNo(1)]);
    assert_eq!(reported.notes, [""; 0]);
    let reported = ask(&lab, fields("in_port=3,dl_src=02:00:00:00:00:0a,dl_dst=02:00:00:00:00:0b")).unwrap();
    assert_eq!(reported.outputs.iter().map(|copy| copy.port).collect::<Vec<_>>(), [PortNo(1), PortNo(2)]);
    assert!(reported.notes[0].contains("02:00:00:00:00:0a is at port 3"), "{reported:?}");
    let macs: switch::control::Macs = lab.client().ask(&ControlRequest::Macs).unwrap();
    assert_eq!(macs.macs.len(), 2);
}

#[test]
fn wrong_requests_are_answered_with_an_error() {
    let lab = Lab::start(1, 1, None);
    let mut raw = lab.raw();
    for (request, says) in [
        (r#"{"id":1,"request":"trace"}"#.to_owned(), "packet"),
        (r#"{"id":1,"request":"trace","packet":{}}"#.to_owned(), "either as"),
        (r#"{"id":1,"request":"trace","packet":{"fields":"arp","hex":"00"}}"#.to_owned(), "either as"),
        (r#"{"id":1,"request":"trace","packet":{"hex":"0"}}"#.to_owned(), "two for each byte"),
        (r#"{"id":1,"request":"trace","packet":{"colour":"red"}}"#.to_owned(), "colour"),
        (
            r#"{"id":1,"request":"trace","packet":{"fields":"arp","in_port":4294967295}}"#.to_owned(),
            "is not an ingress port",
        ),
        (
            format!(r#"{{"id":1,"request":"trace","packet":{{"hex":"{}"}}}}"#, "00".repeat(65_601)),
            "65601 bytes",
        ),
    ] {
        let answer = raw.ask(&request);
        assert!(answer.contains("\"error\"") && answer.contains(says), "{answer}");
    }
    assert!(raw.ask(r#"{"id":1,"request":"trace","packet":{"hex":""}}"#).contains("runt"));
}

/// Tracing a frame of maximum length that is flooded many times takes bounded memory and time.
#[test]
fn a_trace_of_many_long_copies_is_bounded() {
    let actions = vec!["FLOOD"; 60].join(",");
    let lab = Lab::start(1, 4, Some(&format!("priority=9,actions={actions}\n")));
    let reported = ask(&lab, PacketForm { hex: Some("00".repeat(65_600)), ..PacketForm::default() }).unwrap();
    assert_eq!(
        (reported.outcome.as_str(), reported.outputs.len()),
        ("forwarded", 2 * 1_024 * 1_024 / 65_600)
    );
    assert!(reported.copies_dropped[0].starts_with("no_buffer"), "{:?}", reported.copies_dropped[0]);
}
