// SPDX-License-Identifier: Apache-2.0
//! Invalid flows must be refused at the right position, with a helpful message.

use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowModCommand, PortNo};

/// Each row contains a flow, the text to which the error points, and a part of the message.
const REFUSED: &[(&str, &str, &str)] = &[
    ("nw_dts=10.0.0.1 actions=2", "nw_dts=10.0.0.1", "did you mean \"nw_dst\"?"),
    ("ip,banana actions=2", "banana", "is not a match field"),
    ("nw_dst=10.0.0.1 actions=2", "nw_dst=10.0.0.1", "needs dl_type=0x0800 (ip)"),
    ("ip,nw_dst=10.0.0.1,nw_dst=10.0.0.2 actions=2", "nw_dst=10.0.0.2", "given twice"),
    ("tcp,udp actions=2", "udp", "given twice"),
    ("ip,nw_dst=10.0.0.0/33 actions=2", "33", "at most 32"),
    ("ip,nw_dst actions=2", "nw_dst", "write nw_dst=VALUE"),
    ("ip=4 actions=2", "ip=4", "takes no value"),
    ("tp_dst=80 actions=2", "tp_dst=80", "add tcp, udp or sctp"),
    ("dl_type=0x800/0xff00 actions=2", "dl_type=0x800/0xff00", "cannot be masked"),
    ("ip,nw_proto=6/7 actions=2", "nw_proto=6/7", "cannot be masked"),
    ("ip,ip_dscp=8/0x38 actions=2", "ip_dscp=8/0x38", "cannot be masked"),
    ("arp,arp_op=1/1 actions=2", "arp_op=1/1", "cannot be masked"),
    ("mpls,mpls_label=16/0xf actions=2", "mpls_label=16/0xf", "cannot be masked"),
    ("tcp,tp_dst=0x50/0x1fff0 actions=2", "0x1fff0", "65535"),
    ("ip,nw_proto=6/0xfe,tp_dst=80 actions=2", "tp_dst=80", "add tcp, udp or sctp"),
    ("tcp,tp_dst=70000 actions=2", "70000", "65535"),
    ("tcp,tp_dst=080 actions=2", "080", "leading zero"),
    ("ip,nw_frag=yes actions=2", "nw_frag=yes", "slice(l3,50,14)"),
    ("reg0=5 actions=2", "reg0=5", "metadata"),
    ("ct_state=+trk actions=2", "ct_state=+trk", "connection tracker"),
    ("tcp,tcp_flags=2 actions=2", "tcp_flags=2", "slice(l4,103,9)"),
    ("importance=5 actions=2", "importance=5", "OpenFlow 1.4"),
    ("dl_vlan=4096 actions=2", "4096", "0 to 4095"),
    ("vlan_tci=0x2000/0x3000 actions=2", "vlan_tci=0x2000/0x3000", "needs a VLAN tag"),
    ("vlan_tci=0x0000/0x2000 actions=2", "vlan_tci=0x0000/0x2000", "present bit"),
    ("vlan_tci=0x0000/0xe000 actions=2", "vlan_tci=0x0000/0xe000", "present bit"),
    ("rarp,arp_op=3 actions=2", "arp_op=3", "arp"),
    ("slice(packet,0,129)=0 actions=2", "slice(packet,0,129)=0", "1 to 128"),
    ("slice(l2,0,8)=0 actions=2", "l2", "packet, metadata, l3, l4 or base"),
    ("slice(l3,0)=0 actions=2", "slice(l3,0)=0", "lacks length"),
    ("slice(l3,0,8,9)=0 actions=2", "9", "one argument too many"),
    ("slice(l3,0,8)=256 actions=2", "256", "255"),
    ("index=5,index=5 actions=2", "index=5", "given twice"),
    ("index=5,ip actions=2", "index=5", "leave out all other"),
    ("ip", "ip", "add actions="),
    ("ip actions", "actions", "write actions=output:2"),
    ("table=256 actions=2", "256", "255"),
    ("table=255 actions=2", "table=255 actions=2", "0 to 254"),
    ("priority=65536 actions=2", "65536", "65535"),
    ("cookie=1/1 actions=2", "cookie=1/1", "leave the mask out"),
    ("modify cookie=1 actions=2", "cookie=1", "VALUE/MASK"),
    ("delete priority=5", "priority=5", "delete_strict"),
    ("delete ip actions=2", "2", "drop actions="),
    ("out_port=3 actions=2", "out_port=3", "delete"),
    ("low_latency=maybe actions=2", "maybe", "neither true nor false"),
    ("dl_src=0:1:2 actions=2", "0:1:2", "MAC address"),
    ("in_port=uplink actions=2", "uplink", "is not a port"),
    ("dl_src=(1 actions=2", "(1 actions=2", "closing parenthesis"),
    ("actions=move_base(1537)", "move_base(1537)", "at most 1536 bytes"),
    ("actions=move_base(-x)", "x", "is not a number"),
    ("actions=move_base(40000)", "40000", "too far"),
    ("actions=add_field(4,8,1)", "add_field(4,8,1)", "bits 4 to 12 are not whole bytes"),
    ("actions=add_field(0,8,256)", "add_field(0,8,256)", "0x100 does not fit 8 bits"),
    ("actions=add_field(0,136,0)", "add_field(0,136,0)", "8 to 128"),
    ("actions=delete_field(8,12)", "delete_field(8,12)", "multiples of 8"),
    ("actions=delete_field(12280,16)", "delete_field(12280,16)", "by bit 12288"),
    ("actions=delete_field(8)", "delete_field(8)", "lacks length"),
    ("actions=cut_front(base,1537)", "cut_front(base,1537)", "maximum is 1536 bytes"),
    ("actions=cut_front(l3,14)", "l3", "write packet or base"),
    ("actions=cut_front(base)", "cut_front(base)", "lacks bytes"),
    ("actions=cut_front(base,-1)", "-1", "is not a number"),
    (
        "actions=write_actions(cut_front(base,1))",
        "actions=write_actions(cut_front(base,1))",
        "in apply_actions",
    ),
    ("actions=modify_field:1", "modify_field:1", "->"),
    ("actions=modify_field:1->slice(l3,0,33)", "modify_field:1->slice(l3,0,33)", "1 to 32"),
    ("actions=modify_field:1->nw_src", "nw_src", "is not a slice"),
    ("actions=modify_field:2147483648->slice(l3,0,8)", "2147483648", "maximum is 2147483647"),
    (
        "actions=copy_field:slice(l3,0,8)->slice(l3,0,9)",
        "copy_field:slice(l3,0,8)->slice(l3,0,9)",
        "same length",
    ),
    (
        "actions=copy_field:slice(l3,0,8)->slice(metadata,0,8)",
        "copy_field:slice(l3,0,8)->slice(metadata,0,8)",
        "cannot write",
    ),
    ("actions=calculate_checksum(0,24,0,8)", "calculate_checksum(0,24,0,8)", "8, 16 or 32"),
    ("actions=write_actions(move_base(1))", "actions=write_actions(move_base(1))", "in apply_actions"),
    ("actions=ouput:2", "ouput:2", "did you mean \"output\"?"),
    ("actions=eth7", "eth7", "is not an action, instruction or port"),
    ("actions=output", "output", "write output:PORT"),
    ("actions=LOCAL", "actions=LOCAL", "no LOCAL port"),
    ("actions=output:local", "actions=output:local", "no LOCAL port"),
    ("actions=write_actions(LOCAL)", "actions=write_actions(LOCAL)", "no LOCAL port"),
    ("actions=output:0", "actions=output:0", "port 0x0"),
    ("actions=table", "table", "goto_table"),
    ("actions=output:table", "table", "goto_table"),
    ("actions=output(port=3,max_len=64)", "64", "truncates packets"),
    ("actions=controller(id=5)", "id", "extension"),
    ("actions=drop,2", "2", "combined with drop"),
    ("actions=2,drop", "drop", "combined with drop"),
    ("actions=goto_table:4,2", "2", "comes after goto_table"),
    ("actions=2,meter:3", "meter:3", "comes after the actions"),
    ("actions=meter:3,meter:4", "meter:4", "second meter"),
    ("actions=meter:0", "actions=meter:0", "1 to 0xffff0000"),
    ("actions=write_metadata:3,write_actions(2)", "write_actions(2)", "the order is"),
    ("actions=write_actions(goto_table:3)", "goto_table:3", "outside the list"),
    ("actions=write_actions", "write_actions", "has no list"),
    ("table=5,actions=goto_table:5", "table=5,actions=goto_table:5", "higher"),
    ("actions=resubmit(,1)", "resubmit(,1)", "goto_table"),
    ("actions=learn(table=1)", "learn(table=1)", "NORMAL"),
    ("actions=load:1->NXM_NX_REG0[]", "load:1->NXM_NX_REG0[]", "set_field"),
    ("actions=ct(commit)", "ct(commit)", "connection tracker"),
    ("ip actions=dec_ttl(1,2)", "dec_ttl(1,2)", "dec_ttl alone"),
    ("actions=mod_tp_dst:80", "mod_tp_dst:80", "add tcp, udp or sctp"),
    ("actions=mod_nw_src:1.2.3.4", "mod_nw_src:1.2.3.4", "needs ip"),
    ("ip actions=mod_nw_tos:3", "3", "multiple of 4"),
    ("actions=strip_vlan", "strip_vlan", "pop_vlan"),
    ("actions=push_vlan:0x0800", "actions=push_vlan:0x0800", "0x8100 or 0x88a8"),
    ("actions=set_field:5", "set_field:5", "VALUE->FIELD"),
    ("actions=set_field:5->metadata", "metadata", "write_metadata"),
    ("actions=set_field:5->in_port", "in_port", "cannot be written"),
    ("actions=set_field:5->tp_dst", "tp_dst", "tcp_dst"),
    ("actions=set_field:5->dl_vlan", "dl_vlan", "vlan_vid"),
    ("actions=set_field:5->tcp_dts", "tcp_dts", "did you mean \"tcp_dst\"?"),
    ("actions=set_field:5/0->tcp_dst", "5/0", "writes no bit"),
    ("actions=set_field:5->slice(metadata,192,16)", "slice(metadata,192,16)", "cannot be written"),
    ("actions=push_key(key=0x1,width=65,hops=1)", "65", "64, 128, 192 or 256"),
    ("actions=push_key(key=0x10000000000000000,width=64,hops=1)", "0x10000000000000000", "64 bits"),
    ("actions=push_key(key=0x1,width=64)", "push_key(key=0x1,width=64)", "lacks hops"),
    ("actions=push_key(key=0x1,key=0x2,width=64,hops=1)", "key", "given twice"),
    ("actions=push_polka(key=0x1)", "push_polka(key=0x1)", "lacks ttl"),
    ("actions=push_polka(ttl=1)", "push_polka(ttl=1)", "lacks key"),
    ("actions=push_polka(key=1,ttl=1)", "1", "write 0x and hexadecimal digits"),
    (
        "actions=push_polka(key=0x100000000000000000000000000000000,ttl=1)",
        "0x100000000000000000000000000000000",
        "128 bits",
    ),
    ("actions=push_polka(key=0x1,ttl=256)", "256", "255"),
    ("actions=push_polka(key=0x1,hops=2)", "hops", "not known here"),
    ("actions=push_polka(key=0x1,ttl=2,ttl=2)", "ttl", "given twice"),
    ("actions=push_tf(8,0,0)", "8", "the maximum is 7"),
    ("actions=push_tf(0,0,0x2000)", "0x2000", "0x1fff"),
    ("actions=push_tf_wide(0,0x20000000,0)", "0x20000000", "0x1fffffff"),
    ("actions=enqueue:3", "enqueue:3", "enqueue:PORT:QUEUE"),
    ("actions=goto_direct(5)", "goto_direct(5)", "lacks index"),
];

#[test]
fn each_error_points_at_the_text_and_gives_the_correction() {
    let mut wrong = Vec::new();
    for &(flow, text, sentence) in REFUSED {
        match parse_flow(flow, FlowModCommand::Add, ParseOptions::default()) {
            Err(e)
                if e.text == text
                    && e.problem.contains(sentence)
                    && flow[e.column as usize - 1..].starts_with(text) => {}
            other => wrong.push(format!("{flow}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn columns_count_characters_and_long_quotes_are_truncated() {
    let error = parse_flow("ip,ö=1 actions=2", FlowModCommand::Add, ParseOptions::default()).unwrap_err();
    assert_eq!((error.column, error.text.as_str()), (4, "ö=1"));
    let long = format!("in_port=é{} actions=2", "x".repeat(500));
    let error = parse_flow(&long, FlowModCommand::Add, ParseOptions::default()).unwrap_err();
    assert_eq!((error.column, error.text.chars().count()), (9, 63));
}

#[test]
fn port_names_are_resolved() {
    let names = |name: &str| (name == "up-link.1").then_some(PortNo(7));
    let options = ParseOptions { port_names: &names };
    for text in ["in_port=up-link.1 actions=output:up-link.1", "in_port=7 actions=up-link.1"] {
        let flow = parse_flow(text, FlowModCommand::Add, options).unwrap();
        assert_eq!(flow.to_string(), "in_port=7 actions=output:7");
    }
    assert_eq!(
        parse_flow("in_port=\"up-link.1\" actions=drop", FlowModCommand::Add, options).unwrap().to_string(),
        "in_port=7 actions=drop"
    );
}
