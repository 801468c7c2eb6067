#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates the golden messages of ../golden.rs with independent encoders.

    python3 -m venv venv && venv/bin/pip install os-ken==4.2.2
    apt-get install openvswitch-switch     (ovs-ofctl 3.1)
    venv/bin/python make.py os-ken > os-ken.hex
    venv/bin/python make.py ovs-ofctl > ovs-ofctl.hex
    venv/bin/python make.py check ours.hex [-v]

Each line of output has a name and a message in hex. `check` decodes the replies of Shunt's encoder
(../replies.rs) with os-ken and ovs-ofctl. os-ken 4.2.2 and ovs-ofctl 3.1 refuse none of them. -v prints the decoded messages.
"""
import os
import socket
import struct
import subprocess
import sys
import tempfile

XID = 0x12345678


def os_ken():
    from os_ken.ofproto import ofproto_protocol
    return ofproto_protocol.ProtocolDesc(version=4)


def serialized(message):
    message.set_xid(XID)
    message.serialize()
    return bytes(message.buf)


def samples(dp):
    """Returns messages of a controller as (name, message)."""
    p, o = dp.ofproto_parser, dp.ofproto
    yield "hello", p.OFPHello(dp, elements=[p.OFPHelloElemVersionBitmap([1, 4])])
    yield "error", p.OFPErrorMsg(dp, type_=4, code=6, data=b"offending")
    yield "echo_request", p.OFPEchoRequest(dp, data=b"ping")
    yield "echo_reply", p.OFPEchoReply(dp, data=b"pong")
    yield "features_request", p.OFPFeaturesRequest(dp)
    yield "get_config_request", p.OFPGetConfigRequest(dp)
    yield "set_config", p.OFPSetConfig(dp, 1, 1234)
    yield "barrier_request", p.OFPBarrierRequest(dp)
    yield "role_request", p.OFPRoleRequest(dp, o.OFPCR_ROLE_MASTER, 0x1122334455667788)
    yield "get_async_request", p.OFPGetAsyncRequest(dp)
    yield "set_async", p.OFPSetAsync(dp, [1, 2], [3, 4], [5, 6])
    yield "queue_get_config_request", p.OFPQueueGetConfigRequest(dp, 7)
    yield "table_mod", p.OFPTableMod(dp, 3, 3)
    yield "port_mod", p.OFPPortMod(dp, 3, "00:11:22:33:44:55", 0x20, 0x65, 0x101)
    match = p.OFPMatch(in_port=1, eth_type=0x800, ip_proto=6, ipv4_dst=("10.0.0.0", "255.0.0.0"), tcp_dst=80)
    query = dict(table_id=2, out_port=5, out_group=o.OFPG_ANY, cookie=7, cookie_mask=0xff, match=match)
    yield "desc_request", p.OFPDescStatsRequest(dp, 0)
    yield "flow_request", p.OFPFlowStatsRequest(dp, 0, **query)
    yield "aggregate_request", p.OFPAggregateStatsRequest(dp, 0, **query)
    yield "table_request", p.OFPTableStatsRequest(dp, 0)
    yield "port_stats_request", p.OFPPortStatsRequest(dp, 0, o.OFPP_ANY)
    yield "queue_request", p.OFPQueueStatsRequest(dp, 0, 3, o.OFPQ_ALL)
    yield "group_request", p.OFPGroupStatsRequest(dp, 0, o.OFPG_ALL)
    yield "group_desc_request", p.OFPGroupDescStatsRequest(dp, 0)
    yield "group_features_request", p.OFPGroupFeaturesStatsRequest(dp, 0)
    yield "meter_request", p.OFPMeterStatsRequest(dp, 0, o.OFPM_ALL)
    yield "meter_config_request", p.OFPMeterConfigStatsRequest(dp, 0, 4)
    yield "meter_features_request", p.OFPMeterFeaturesStatsRequest(dp, 0)
    yield "table_features_request", p.OFPTableFeaturesStatsRequest(dp, 0, [])
    yield "port_desc_request", p.OFPPortDescStatsRequest(dp, 0)
    out = [p.OFPActionOutput(4), p.OFPActionOutput(o.OFPP_CONTROLLER, 96)]
    yield "packet_out", p.OFPPacketOut(dp, o.OFP_NO_BUFFER, o.OFPP_CONTROLLER, out, bytes(range(60)))
    yield "packet_out_buffered", p.OFPPacketOut(dp, 17, 1, out, None)
    sets = dict(
        eth_dst="00:00:00:00:00:01", eth_src="00:00:00:00:00:02", eth_type=0x800, vlan_vid=0x1064, vlan_pcp=5,
        ip_dscp=46, ip_ecn=2, ip_proto=17, ipv4_src="1.2.3.4", ipv4_dst="4.3.2.1", tcp_src=1, tcp_dst=2, udp_src=3,
        udp_dst=4, sctp_src=5, sctp_dst=6, icmpv4_type=7, icmpv4_code=8, arp_op=2, arp_spa="1.1.1.1",
        arp_tpa="2.2.2.2", arp_sha="00:00:00:00:00:03", arp_tha="00:00:00:00:00:04", ipv6_src="2001:db8::1",
        ipv6_dst="2001:db8::2", ipv6_flabel=0xabcde, icmpv6_type=135, icmpv6_code=0, ipv6_nd_target="fe80::1",
        ipv6_nd_sll="00:00:00:00:00:05", ipv6_nd_tll="00:00:00:00:00:06", mpls_label=0xfffff, mpls_tc=7, mpls_bos=1,
        pbb_isid=0xabcdef, tunnel_id=0x1122334455667788)
    actions = [
        p.OFPActionOutput(1), p.OFPActionGroup(9), p.OFPActionSetQueue(3), p.OFPActionSetMplsTtl(64),
        p.OFPActionDecMplsTtl(), p.OFPActionSetNwTtl(63), p.OFPActionDecNwTtl(), p.OFPActionCopyTtlOut(),
        p.OFPActionCopyTtlIn(), p.OFPActionPushVlan(0x88a8), p.OFPActionPopVlan(), p.OFPActionPushMpls(0x8847),
        p.OFPActionPopMpls(0x800), p.OFPActionPushPbb(0x88e7), p.OFPActionPopPbb()]
    actions += [p.OFPActionSetField(**{name: value}) for name, value in sets.items()]
    instructions = [
        p.OFPInstructionMeter(2), p.OFPInstructionActions(o.OFPIT_APPLY_ACTIONS, actions),
        p.OFPInstructionActions(o.OFPIT_CLEAR_ACTIONS, []),
        p.OFPInstructionActions(o.OFPIT_WRITE_ACTIONS, out), p.OFPInstructionWriteMetadata(0x55, 0xff),
        p.OFPInstructionGotoTable(9)]
    yield "flow_mod_all_instructions", p.OFPFlowMod(
        dp, 0x1234, 0xffff, 3, o.OFPFC_MODIFY_STRICT, 10, 20, 100, 55, 1, 2, 0x1f, match, instructions)
    for command in range(5):
        yield f"flow_mod_command_{command}", p.OFPFlowMod(dp, command=command, match=match)
    yield "flow_mod_delete_all", p.OFPFlowMod(
        dp, table_id=o.OFPTT_ALL, command=o.OFPFC_DELETE, out_port=o.OFPP_ANY, out_group=o.OFPG_ANY)
    ip, ip6 = dict(eth_type=0x800), dict(eth_type=0x86dd)
    matches = [
        dict(), dict(in_port=1, in_phy_port=2), dict(metadata=(0x10, 0xf0)), dict(metadata=2**64 - 1),
        dict(eth_dst=("01:00:00:00:00:00", "01:00:00:00:00:00"), eth_src="00:01:02:03:04:05"),
        dict(vlan_vid=0), dict(vlan_vid=(0x1000, 0x1000)), dict(vlan_vid=0x1064, vlan_pcp=3),
        dict(ip, ip_dscp=46, ip_ecn=1, ip_proto=6, tcp_src=1, tcp_dst=2), dict(ip, ip_proto=17, udp_src=1, udp_dst=2),
        dict(ip, ip_proto=132, sctp_src=1, sctp_dst=2), dict(ip, ip_proto=1, icmpv4_type=8, icmpv4_code=0),
        dict(ip, ipv4_src="10.1.2.3", ipv4_dst=("10.0.0.0", "255.255.0.255")),
        dict(eth_type=0x806, arp_op=1, arp_spa=("10.0.0.0", "255.0.0.0"), arp_tpa="10.0.0.1",
             arp_sha="00:00:00:00:00:01", arp_tha=("00:00:00:00:00:02", "00:00:00:00:00:ff")),
        dict(ip6, ipv6_src=("2001:db8::", "ffff:ffff::"), ipv6_dst="2001:db8::1", ipv6_flabel=0x12345),
        dict(ip6, ipv6_flabel=(0x12300, 0xfff00)),
        dict(ip6, ip_proto=58, icmpv6_type=135, icmpv6_code=0, ipv6_nd_target="fe80::1",
             ipv6_nd_sll="00:00:00:00:00:07"),
        dict(ip6, ip_proto=58, icmpv6_type=136, icmpv6_code=0, ipv6_nd_tll="00:00:00:00:00:08"),
        dict(ip6, ipv6_exthdr=(0x40, 0x1c0)), dict(eth_type=0x8847, mpls_label=0x12345, mpls_tc=3, mpls_bos=1),
        dict(eth_type=0x88e7, pbb_isid=(0x123400, 0xffff00)), dict(tunnel_id=(5, 0xff))]
    for number, fields in enumerate(matches):
        yield f"flow_mod_match_{number}", p.OFPFlowMod(dp, match=p.OFPMatch(**fields))
    buckets = [p.OFPBucket(10, 1, o.OFPG_ANY, out), p.OFPBucket(20, o.OFPP_ANY, 7, [p.OFPActionPopVlan()])]
    for kind in range(4):
        yield f"group_mod_type_{kind}", p.OFPGroupMod(dp, kind % 3, kind, 50 + kind, buckets[:kind])
    yield "group_mod_delete_all", p.OFPGroupMod(dp, o.OFPGC_DELETE, 0, o.OFPG_ALL, [])
    bands = [p.OFPMeterBandDrop(1000, 100), p.OFPMeterBandDscpRemark(2000, 200, 1)]
    yield "meter_mod_kbps", p.OFPMeterMod(dp, o.OFPMC_ADD, o.OFPMF_KBPS | o.OFPMF_BURST, 5, bands)
    yield "meter_mod_pktps", p.OFPMeterMod(dp, o.OFPMC_MODIFY, o.OFPMF_PKTPS | o.OFPMF_STATS, 6, bands[:1])
    yield "meter_mod_delete", p.OFPMeterMod(dp, o.OFPMC_DELETE, o.OFPMF_KBPS, o.OFPM_ALL, [])
    yield "table_features_set", p.OFPTableFeaturesStatsRequest(dp, 0, [p.OFPTableFeaturesStats(
        table_id=4, name=b"vlan", metadata_match=15, metadata_write=7, config=3, max_entries=1000,
        properties=[
            p.OFPTableFeaturePropInstructions(o.OFPTFPT_INSTRUCTIONS, [p.OFPInstructionId(1), p.OFPInstructionId(4)]),
            p.OFPTableFeaturePropNextTables(o.OFPTFPT_NEXT_TABLES, [5, 6, 7]),
            p.OFPTableFeaturePropNextTables(o.OFPTFPT_NEXT_TABLES_MISS, [9]),
            p.OFPTableFeaturePropActions(o.OFPTFPT_APPLY_ACTIONS, [p.OFPActionId(0), p.OFPActionId(25)]),
            p.OFPTableFeaturePropActions(o.OFPTFPT_WRITE_ACTIONS_MISS, []),
            p.OFPTableFeaturePropOxm(o.OFPTFPT_MATCH, [p.OFPOxmId("eth_dst", True), p.OFPOxmId("in_port")]),
            p.OFPTableFeaturePropOxm(o.OFPTFPT_WILDCARDS, [p.OFPOxmId("vlan_vid")]),
            p.OFPTableFeaturePropOxm(o.OFPTFPT_APPLY_SETFIELD, [p.OFPOxmId("vlan_vid")])])])


OFCTL = [
    ["add-flow", "priority=5,ip,nw_dst=10.0.0.0/8,actions=output:2"],
    ["add-flow", "table=3,idle_timeout=5,hard_timeout=9,cookie=0x77,send_flow_rem,check_overlap,reset_counts,"
     "no_packet_counts,no_byte_counts,in_port=1,dl_vlan=100,dl_vlan_pcp=3,actions=strip_vlan,controller:96,goto_table:4"],
    ["add-flow", "ipv6,icmp6,icmp_type=135,icmp_code=0,nd_target=fe80::1,actions=normal"],
    ["add-flow", "arp,arp_spa=10.0.0.0/8,arp_op=1,actions=write_actions(group:5,set_queue:3,output:7),write_metadata:0x5/0xff"],
    ["add-flow", "mpls,mpls_label=5,mpls_bos=1,actions=pop_mpls:0x800,dec_ttl,set_field:10.0.0.1->ip_src,output:1"],
    ["add-flow", "ip,actions=set_field:10.0.0.0/8->ip_src,load:5->NXM_OF_ETH_SRC[0..3],all"],
    ["add-flow", "tun_id=0x5/0xf,metadata=3,actions=push_vlan:0x8100,set_field:4196->vlan_vid,flood"],
    ["add-flow", "tcp,actions=mod_nw_tos:32,mod_vlan_vid:5,mod_dl_src:00:00:00:00:00:09,mod_tp_dst:80,in_port"],
    ["mod-flows", "tcp,tp_dst=80,actions=meter:5,clear_actions"],
    ["--strict", "mod-flows", "priority=9,udp,tp_dst=80,actions=local"],
    ["del-flows", "cookie=0x5/0xff,out_port=4"],
    ["--strict", "del-flows", "priority=9,sctp,tp_src=5"],
    ["add-group", "group_id=5,type=select,bucket=weight:10,output:1,bucket=weight:20,actions=output:2,dec_ttl"],
    ["add-group", "group_id=6,type=ff,bucket=watch_port:1,output:1,bucket=watch_port:2,output:2"],
    ["mod-group", "group_id=5,type=all,bucket=output:3"],
    ["del-groups", "group_id=5"],
    ["add-meter", "meter=3,kbps,burst,stats,band=type=drop,rate=1000,burst_size=100"],
    ["add-meter", "meter=4,pktps,band=type=dscp_remark,rate=1000,prec_level=1"],
    ["del-meter", "meter=3"],
    ["packet-out", "in_port=controller,packet=" + "00" * 12 + "0800" + "00" * 46 + ",actions=table"],
    ["dump-flows", "table=3,ip"],
    ["dump-aggregate", ""],
    ["dump-ports", "3"],
    ["dump-desc"], ["dump-tables"], ["queue-stats"], ["dump-groups"], ["dump-group-stats"], ["dump-group-features"],
    ["dump-meters"], ["meter-stats"], ["meter-features"], ["dump-table-features"], ["dump-ports-desc"], ["show"],
    ["--bundle", "add-flow", "priority=5,ip,actions=output:2"],
]


def exchange(arguments, path):
    """Returns the messages that ovs-ofctl sends to a fake switch. The switch answers only barriers
    and bundles, and reports success."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(4)
        listener.settimeout(3)
        words = [a for a in arguments if a.startswith("--")] + ["-O", "OpenFlow13", "--no-names"]
        rest = [a for a in arguments if not a.startswith("--")]
        client = subprocess.Popen(["ovs-ofctl", *words, rest[0], f"unix:{path}", *rest[1:]],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            connection, _ = listener.accept()
            with connection:
                yield from converse(connection)
        except TimeoutError:
            pass
        finally:
            client.terminate()
            client.wait()
            os.unlink(path)


def converse(connection):
    connection.settimeout(0.3)
    connection.sendall(bytes.fromhex("0400000800000001"))
    data = b""
    while True:
        try:
            more = connection.recv(65536)
        except TimeoutError:
            return
        if not more:
            return
        data += more
        while len(data) >= 8 and len(data) >= struct.unpack("!H", data[2:4])[0]:
            length = struct.unpack("!H", data[2:4])[0]
            message, data = data[:length], data[length:]
            yield message
            if message[1] == 20:
                connection.sendall(bytes([4, 21]) + message[2:8])
            if message[1] == 4 and struct.unpack("!I", message[12:16])[0] == 2300:
                kind = struct.unpack("!H", message[20:22])[0]
                connection.sendall(message[:20] + struct.pack("!H", kind + 1) + message[22:24])


def make_ofctl():
    seen = set()
    with tempfile.TemporaryDirectory() as folder:
        for arguments in OFCTL:
            name = "_".join(a.strip("-").replace("-", "_") for a in arguments[:-1] or arguments)
            for message in exchange(arguments, os.path.join(folder, "s")):
                # A request that was already sent with another transaction ID is skipped.
                key = message[:4] + message[8:]
                if key not in seen:
                    seen.add(key)
                    print(name, message.hex())


def check(path):
    """Decodes the messages of Shunt's encoder with os-ken and ovs-ofctl. Returns whether any was refused."""
    from os_ken.ofproto import ofproto_parser
    dp, bad, count = os_ken(), 0, 0
    for line in open(path):
        name, text = line.split()
        data = bytes.fromhex(text)
        version, kind, length, xid = ofproto_parser.header(data)
        count += 1
        try:
            message = ofproto_parser.msg(dp, version, kind, length, xid, data)
            assert message is not None and length == len(data)
            if "-v" in sys.argv:
                print(name, "os-ken:", message)
        except Exception as problem:  # every exception of os-ken is a finding
            print(name, "os-ken:", repr(problem))
            bad += 1
        shown = subprocess.run(["ovs-ofctl", "ofp-print", text, "2"], capture_output=True, text=True, check=False)
        says = shown.stdout + shown.stderr
        if "-v" in sys.argv:
            print(name, "ovs-ofctl:", says.strip())
        if "decode error" in says or not says.strip():
            print(name, "ovs-ofctl:", says.strip().splitlines()[:2])
            bad += 1
    print(f"{count} messages, {bad} refused")
    return bad != 0


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "os-ken":
        for name, message in samples(os_ken()):
            print(name, serialized(message).hex())
    elif what == "ovs-ofctl":
        make_ofctl()
    elif what == "check":
        return check(sys.argv[2])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
