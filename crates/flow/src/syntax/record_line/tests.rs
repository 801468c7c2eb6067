// SPDX-License-Identifier: Apache-2.0
//! Groups and meters must be parsed as `ovs-ofctl` parses them, and printed ones must parse to the original.

use super::*;
use crate::syntax::{format_line, parse_line};
use crate::{Action, MeterId};

fn read(text: &str) -> Result<FileLine, String> {
    let by_name = |name: &str| (name == "p7").then_some(PortNo(7));
    let parsed = parse_line(text, 3, ParseOptions { port_names: &by_name });
    parsed.unwrap().map_err(|error| error.to_string())
}

fn group_of(text: &str) -> Group {
    match read(text) {
        Ok(FileLine::Group(RecordCommand::Add, group)) => group,
        other => panic!("{text}: {other:?}"),
    }
}

fn meter_of(text: &str) -> Meter {
    match read(text) {
        Ok(FileLine::Meter(RecordCommand::Add, meter)) => meter,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn groups_are_read_as_ovs_ofctl_writes_them() {
    let output = |port| vec![Action::output(port)];
    let bucket = |weight, actions| Bucket { weight, actions, ..Bucket::default() };
    assert_eq!(
        group_of("group group_id=1,type=select,bucket=weight:3,actions=output:1,output:2,bucket=output:p7"),
        Group {
            id: GroupId(1),
            kind: GroupType::Select,
            buckets: vec![
                bucket(3, [output(PortNo(1)), output(PortNo(2))].concat()),
                bucket(1, output(PortNo(7)))
            ],
        }
    );
    let watched =
        Bucket { watch_port: Some(PortNo(7)), watch_group: Some(GroupId(9)), ..bucket(0, output(PortNo(1))) };
    let ff = "group add group_id=0xffffff00 type=ff \
              bucket=bucket_id:0,watch_port:p7,watch_group:9,actions=1, bucket=watch_port:any,actions=drop";
    assert_eq!(
        group_of(ff),
        Group {
            id: GroupId(0xffff_ff00),
            kind: GroupType::FastFailover,
            buckets: vec![watched, Bucket::default()]
        }
    );
    let nested = "group group_id=2,type=all,bucket=actions=set_field:1->slice(l3,0,8),group:1,\
                  bucket=push_key(key=0x5,width=64,hops=3),output:2";
    assert_eq!(group_of(nested).buckets.len(), 2);
    assert_eq!(
        group_of("group group_id=3,type=indirect,buckets=output:1").buckets,
        [bucket(0, output(PortNo(1)))]
    );
    assert_eq!(group_of("group group_id=3,type=all").buckets, []);
}

#[test]
fn meters_are_read_as_ovs_ofctl_writes_them() {
    let drop = |rate, burst| MeterBand { band: Band::Drop, rate, burst };
    let meter = |bands| Meter { id: MeterId(5), packets: false, stats: true, burst: true, bands };
    assert_eq!(
        meter_of("meter meter=5 kbps burst stats bands=type=drop rate=1000 burst_size=50"),
        meter(vec![drop(1_000, 50)])
    );
    let remark = MeterBand { band: Band::DscpRemark { precedence_level: 2 }, rate: 7, burst: 0 };
    let two = "meter add meter=5,pktps,band=type=dscp_remark,rate=7,prec_level=2,type=drop,rate=8";
    assert_eq!(
        meter_of(two),
        Meter { id: MeterId(5), packets: true, stats: false, burst: false, bands: vec![remark, drop(8, 0)] }
    );
    assert_eq!(meter_of("meter meter=5").bands, []);
}

#[test]
fn commands_precede_the_settings() {
    for (text, command) in [
        ("group add_or_mod group_id=1,type=all", RecordCommand::AddOrModify),
        ("group modify group_id=1,type=all", RecordCommand::Modify),
        ("group delete group_id=1", RecordCommand::Delete),
        ("group delete group_id=all", RecordCommand::DeleteAll),
    ] {
        let parsed = read(text).unwrap();
        assert!(matches!(parsed, FileLine::Group(found, _) if found == command), "{text}: {parsed:?}");
        assert_eq!(read(&format_line(&parsed)), Ok(parsed));
    }
    for (text, command) in [
        ("meter add_or_mod meter=1", RecordCommand::AddOrModify),
        ("meter modify meter=1", RecordCommand::Modify),
        ("meter delete meter=1", RecordCommand::Delete),
        ("meter delete meter=ALL", RecordCommand::DeleteAll),
    ] {
        let parsed = read(text).unwrap();
        assert!(matches!(parsed, FileLine::Meter(found, _) if found == command), "{text}: {parsed:?}");
        assert_eq!(read(&format_line(&parsed)), Ok(parsed));
    }
    let flow = read("flow delete table=3").unwrap();
    assert!(matches!(&flow, FileLine::Flow(m) if m.command == FlowModCommand::Delete));
    assert_eq!(read(&format_line(&flow)), Ok(flow));
}

#[test]
fn printed_lines_are_read_back() {
    for text in [
        "group group_id=1,type=select,bucket=weight:0,actions=drop,bucket=weight:65535,actions=output:1,group:7",
        "group group_id=2,type=ff,bucket=watch_port:1,watch_group:4,actions=set_queue:3,output:IN_PORT",
        "group group_id=4,type=indirect,bucket=push_tf(3,5,6),set_field:1/3->slice(packet,0,8),controller:64",
        "group group_id=5,type=all,bucket=weight:4,pop_vlan,push_vlan:0x88a8,set_field:4099->vlan_vid,FLOOD",
        "meter meter=1 pktps stats bands=type=drop rate=4294967295",
        "meter meter=4294901760 kbps burst bands=type=dscp_remark rate=1 burst_size=2 prec_level=1,type=drop rate=3",
    ] {
        let parsed = read(text).unwrap();
        let printed = format_line(&parsed);
        assert_eq!(read(&printed), Ok(parsed), "{printed}");
    }
    let group = read("group add_or_mod group_id=1 type=select bucket=1 bucket=weight:2,drop").unwrap();
    assert_eq!(
        format_line(&group),
        "group add_or_mod group_id=1,type=select,bucket=weight:1,actions=output:1,bucket=weight:2,actions=drop"
    );
    let meter = read("meter add_or_mod meter=9,pktps,burst,band=type=drop,rate=2,burst_size=3").unwrap();
    assert_eq!(
        format_line(&meter),
        "meter add_or_mod meter=9 pktps burst bands=type=drop rate=2 burst_size=3"
    );
}

#[test]
fn mistakes_are_reported_with_their_position() {
    for (text, says) in [
        ("group type=all", "line 3, column 1: \"group type=all\": has no number; add group_id=1"),
        ("group group_id=1", "has no type; add type=all, select, indirect or ff"),
        ("group group_id=1,type=some", "column 23: \"some\": is not a group type"),
        ("group group_id=1,tipe=all", "\"tipe=all\": is not a setting of a group; did you mean \"type\"?"),
        ("group group_id=x,type=all", "column 16: \"x\": "),
        ("group group_id=1,type=all,bucket=weight:3", "has no actions; add actions=output:2"),
        ("group group_id=1,type=all,bucket=output:nowhere", "column 41: \"nowhere\""),
        ("group group_id=1,type=all,bucket=goto_table:1", "is an instruction"),
        ("group group_id=1,type=all,selection_method=hash", "Open vSwitch's extension"),
        ("group delete group_id=1,type=all", "a delete takes group_id alone"),
        ("group modify group_id=all,type=all", "\"all\""),
        ("meter kbps", "has no number; add meter=1"),
        ("meter meter=1 mbps", "\"mbps\": is not a setting of a meter"),
        ("meter meter=1 bands=rate=3", "comes before the type of the band"),
        ("meter meter=1 bands=type=police", "\"police\": is not a band type"),
        ("meter meter=1 bands=type=drop", "has no rate above 0"),
        ("meter meter=1 bands=type=drop rate=1 prec_level=1", "has prec_level, which is for dscp_remark"),
        ("meter meter=1 bands=type=dscp_remark rate=1", "has no drop precedence; add prec_level=1 or 2"),
        ("meter meter=1 bands=type=drop rate=1 size=3", "\"size=3\": is not a setting of a band"),
        ("meter delete meter=1 kbps", "a delete takes meter=N alone"),
    ] {
        let reported = read(text).unwrap_err();
        assert!(
            reported.starts_with("line 3, column ") && reported.contains(says),
            "{text}: {reported}, not {says}"
        );
    }
}
