# SPDX-License-Identifier: Apache-2.0
"""Tests all requests of lab/controllers/rest: os_ken_rest.py ROOMS.

test_os_ken_rest.sh runs this program in the switch's room. ROOMS is the prefix of the names of the hosts'
rooms."""

import contextlib
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

URL = "http://127.0.0.1:8080"
WAIT_S = 60
ASKED = set()


def ask(method, path, body=None, status=200, **query):
    """Returns the answer to a request, which must have this HTTP status. `path` follows /switches/1, or
    starts with two slashes."""
    address = path[1:] if path.startswith("//") else "/switches/1" + path
    # GET / lists addresses in this form.
    ASKED.add("%s %s" % (method, re.sub("[0-9]+", "#", address)))
    query = {name: json.dumps(v) if isinstance(v, dict) else v for name, v in query.items()}
    url = URL + address + ("?" + urllib.parse.urlencode(query) if query else "")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            got, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        got, text = error.code, error.read()
    assert got == status, "%s %s %s: status %d, not %d: %s" % (method, url, body, got, status, text.decode())
    return json.loads(text)


def refused(method, path, body, error_type, code, **query):
    """Sends a request that the switch must refuse with this error."""
    error = ask(method, path, body, 409, **query)["error"]
    got = error["type"], error["code"]
    assert got == (error_type, code), "%s %s %s: error %s, not %d/%d" % (method, path, body, error, error_type, code)


def until(what, condition):
    """Waits until the condition returns a true value, and returns this value."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        with contextlib.suppress(urllib.error.URLError):
            if result := condition():
                return result
        time.sleep(0.1)
    raise AssertionError("timed out after %d s, waiting for: %s" % (WAIT_S, what))


def equal(got, wanted):
    """Raises an error with both values if they differ."""
    assert got == wanted, "got\n%s\nnot\n%s" % (got, wanted)


class Hosts:
    """The hosts around the switch."""

    def __init__(self, rooms):
        self.rooms = rooms

    def ping(self, source, target, count=3, interval_s=0.1):
        """Sends pings and returns the number of answers."""
        command = ["ip", "netns", "exec", "%s-h%d" % (self.rooms, source), "ping", "-q"]
        command += ["-c", str(count), "-i", str(interval_s), "-W", "1", "10.0.0.%d" % target]
        output = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout
        return int(re.search("([0-9]+) received", output).group(1))


def reported_sent(port):
    """Returns the port counter of sent packets, which may be 100 ms old."""
    (statistics,) = ask("GET", "/ports/%d/statistics" % port)
    return statistics["tx_packets"]


def sent(port, at_least=0):
    """Returns the number of packets that the switch has sent to a port. Waits until at least this number is
    reported, and until the number no longer changes."""
    until("%d packets are sent to port %d" % (at_least, port), lambda: reported_sent(port) >= at_least)
    numbers = [reported_sent(port)]

    def is_constant():
        time.sleep(0.2)
        numbers.append(reported_sent(port))
        return numbers[-1] == numbers[-2]

    until("the counter of port %d no longer changes" % port, is_constant)
    return numbers[-1]


def last_event():
    """Returns the number of the newest event."""
    return max((event["number"] for event in ask("GET", "/events")), default=0)


def event_after(number, **wanted):
    """Returns the next event after this number that has these values."""
    return until(
        "an event with %s" % wanted,
        lambda: next(
            (e for e in ask("GET", "/events", after=number, wait=1) if all(e.get(k) == v for k, v in wanted.items())),
            None,
        ),
    )


def wire(source, target):
    """Returns a flow that forwards packets from one port to another."""
    return {"match": {"in_port": source}, "priority": 5, "apply": [{"output": target}]}


def clear():
    """Deletes all flows, groups and meters."""
    ask("DELETE", "/flows", {})
    ask("DELETE", "/groups", {"id": 0xFFFFFFFC})
    ask("DELETE", "/meters", {"id": 0xFFFFFFFF})


def check_switch(_):
    """The switch reports its features and changes its settings."""
    features = ask("GET", "")
    assert features["id"] == 1 and features["tables"] == 255 and features["buffers"] > 0, features
    assert "Shunt" in json.dumps(ask("GET", "/description")), ask("GET", "/description")
    equal(ask("GET", "/echo"), {"data": "rest"})
    ask("PUT", "/config", {"miss_send_len": 200})
    equal(ask("GET", "/config"), {"flags": 0, "miss_send_len": 200})
    refused("PUT", "/config", {"flags": 3, "miss_send_len": 200}, 10, 0)
    masks = ask("GET", "/async")
    ask("PUT", "/async", {**masks, "flow_removed_mask": [15, 1]})
    equal(ask("GET", "/async"), {**masks, "flow_removed_mask": [15, 1]})
    ask("PUT", "/async", masks)
    ask("POST", "/barrier")
    # Only types are checked, because only some drivers have queues.
    assert isinstance(ask("GET", "/queues"), list) and isinstance(ask("GET", "/queues/statistics"), list)
    listed = {table["table_id"] for table in ask("GET", "/tables/features")}
    equal(listed, set(range(255)))


def check_roles(_):
    """A slave changes nothing, and old generations are refused."""
    equal(ask("GET", "/role")["role"], "equal")
    ask("PUT", "/role", {"role": "master", "generation": 7})
    equal(ask("GET", "/role"), {"role": "master", "generation": 7})
    refused("PUT", "/role", {"role": "slave", "generation": 6}, 11, 0)
    ask("PUT", "/role", {"role": "slave", "generation": 8})
    refused("POST", "/flows", wire(1, 2), 1, 10)
    ask("PUT", "/role", {"role": "equal"})


def check_flows(hosts):
    """Traffic follows the flows, and dumps return the flows as they were sent."""
    equal(hosts.ping(1, 2), 0)
    ask("POST", "/flows", {**wire(1, 2), "cookie": 0x17})
    ask("POST", "/flows", {**wire(2, 1), "cookie": 0x18})
    equal(hosts.ping(1, 2), 3)
    flows = ask("GET", "/flows")
    assert len(flows) == 2 and all(f["packets"] >= 3 and f["bytes"] > 0 for f in flows), flows
    (one,) = ask("GET", "/flows", out_port=2)
    equal(one["flow"]["apply"], [{"output": 2}])
    (one,) = ask("GET", "/flows", cookie=0x18, cookie_mask=0xFF)
    equal(one["flow"]["match"], {"in_port": 2})
    (one,) = ask("GET", "/flows", match={"in_port": 1}, table=0)
    equal(ask("GET", "/flows", table=1), [])
    total = ask("GET", "/flows/aggregate")
    assert total["flow_count"] == 2 and total["packet_count"] >= 6, total
    (table,) = [t for t in ask("GET", "/tables") if t["table_id"] == 0]
    assert table["active_count"] == 2 and table["matched_count"] >= 6, table
    def have_received():
        received = {p["port_no"]: p["rx_packets"] for p in ask("GET", "/ports/statistics")}
        return received[1] >= 3 and received[2] >= 3

    until("the port counters include the packets", have_received)

    ask("PUT", "/flows", {"match": {"in_port": 1}, "apply": []})
    equal(hosts.ping(1, 2), 0)
    # A strict modification with another priority changes nothing.
    ask("PUT", "/flows", {**wire(1, 2), "priority": 6}, strict=1)
    equal(hosts.ping(1, 2), 0)
    ask("PUT", "/flows", wire(1, 2), strict=1)
    equal(hosts.ping(1, 2), 3)
    ask("DELETE", "/flows", {"match": {"in_port": 1}, "priority": 6}, strict=1)
    equal(hosts.ping(1, 2), 3)
    ask("DELETE", "/flows", {"match": {"in_port": 1}})
    equal(hosts.ping(1, 2), 0)

    # A flow with every field is returned as it was sent.
    ask("POST", "/groups", {"id": 9, "type": "all", "buckets": []})
    ask("POST", "/meters", {"id": 9, "flags": 1, "bands": [{"type": "drop", "rate": 1000}]})
    tcp = {"eth_type": 0x800, "ip_proto": 6, "ipv4_src": ["10.1.0.0", "255.255.0.0"], "tcp_dst": 80, "vlan_vid": 4196}
    actions = [{"set_field": {"ipv4_dst": "10.9.9.9"}}, "dec_ttl", {"push_vlan": 0x88A8}, {"set_queue": 3}]
    actions += [{"set_ttl": 9}, "pop_vlan", {"push_pbb": 0x88E7}, "pop_pbb"]
    actions += [{"push_mpls": 0x8847}, {"set_field": {"mpls_label": 5}}]
    actions += [{"set_mpls_ttl": 3}, "dec_mpls_ttl", {"pop_mpls": 0x800}, {"group": 9}]
    actions += [{"output": "in_port"}, {"output": "controller", "max_len": 64}]
    flow = {"table": 3, "priority": 77, "match": tcp, "cookie": 5, "idle_timeout": 60, "hard_timeout": 70, "flags": 1}
    flow.update(meter=9, apply=actions, clear=True, write=[{"output": "flood"}], metadata=[1, 3], goto=4)
    ask("POST", "/flows", flow)
    (one,) = ask("GET", "/flows", table=3)
    equal(one["flow"], flow)


def check_groups(hosts):
    """Flows output to groups, and groups can be changed and deleted."""
    buckets = [{"weight": 0, "actions": [{"output": 2}]}, {"weight": 0, "actions": [{"output": 3}]}]
    group = {"id": 1, "type": "all", "buckets": buckets}
    ask("POST", "/groups", group)
    equal(ask("GET", "/groups"), [group])
    refused("POST", "/groups", group, 6, 0)
    refused("PUT", "/groups", {**group, "id": 2}, 6, 8)
    ask("POST", "/flows", {"match": {"in_port": 1}, "apply": [{"group": 1}], "flags": 1})
    ask("POST", "/flows", wire(2, 1))
    before = sent(3)
    equal(hosts.ping(1, 2), 3)
    sent(3, at_least=before + 3)
    (statistics,) = ask("GET", "/groups/statistics")
    assert statistics["packet_count"] >= 3 and statistics["ref_count"] == 1, statistics

    group = {"id": 1, "type": "indirect", "buckets": buckets[:1]}
    ask("PUT", "/groups", group)
    equal(ask("GET", "/groups"), [group])
    before = sent(3)
    equal(hosts.ping(1, 2), 3)
    equal(sent(3), before)
    assert ask("GET", "/groups/features")["types"] == 15

    # The flows of a deleted group are deleted, too.
    number = last_event()
    ask("DELETE", "/groups", {"id": 1})
    event_after(number, event="flow_removed", match={"in_port": 1}, reason="group delete")
    equal([f["flow"]["match"] for f in ask("GET", "/flows")], [{"in_port": 2}])
    equal(hosts.ping(1, 2), 0)


def check_meters(hosts):
    """A meter drops packets above its rate."""
    by_packets = 2
    meter = {"id": 1, "flags": by_packets, "bands": [{"type": "drop", "rate": 1, "burst": 1}]}
    ask("POST", "/meters", meter)
    equal(ask("GET", "/meters"), [meter])
    refused("POST", "/meters", meter, 12, 1)
    ask("POST", "/flows", {**wire(1, 2), "meter": 1})
    ask("POST", "/flows", wire(2, 1))
    # ARP uses part of the rate, too.
    assert hosts.ping(1, 2, 40, 0.01) < 20, "a meter of one packet a second passes half of 40 packets"
    (statistics,) = ask("GET", "/meters/statistics")
    (band,) = statistics["band_stats"]
    assert statistics["flow_count"] == 1 and statistics["packet_in_count"] >= 40, statistics
    assert band["packet_band_count"] >= 20, statistics

    meter["bands"] = [{"type": "drop", "rate": 10000, "burst": 10000}]
    ask("PUT", "/meters", meter)
    equal(ask("GET", "/meters"), [meter])
    until("pings pass the meter with the higher rate", lambda: hosts.ping(1, 2) == 3)
    remark = {"id": 2, "flags": by_packets, "bands": [{"type": "dscp_remark", "rate": 5, "burst": 5, "level": 1}]}
    ask("POST", "/meters", remark)
    assert remark in ask("GET", "/meters")
    assert ask("GET", "/meters/features")["max_meter"] > 0
    ask("DELETE", "/meters", {"id": 1})
    equal([f["flow"]["match"] for f in ask("GET", "/flows")], [{"in_port": 2}])


def check_packets(hosts):
    """The controller sends packets through the switch, and receives packets from it."""
    frame = "ffffffffffff" + "020000000009" + "88b4" + "00" * 46
    before = sent(3)
    ask("POST", "/packets", {"data": frame, "actions": [{"output": 3}]})
    equal(sent(3, at_least=before + 1), before + 1)

    # A packet-out through the tables reaches the controller in full length.
    number = last_event()
    to_controller = {"match": {"in_port": 1}, "cookie": 0x21, "apply": [{"output": "controller"}]}
    ask("POST", "/flows", to_controller)
    ask("POST", "/packets", {"data": frame, "in_port": 1, "actions": [{"output": "table"}]})
    event = event_after(number, event="packet_in", data=frame)
    assert (event["reason"], event["table"], event["cookie"]) == ("action", 0, 0x21), event
    assert (event["match"], event["length"], event["buffer"]) == ({"in_port": 1}, 60, None), event

    # After a table miss, the controller gets the beginning of the packet, and the switch keeps the rest.
    ask("DELETE", "/flows", {})
    ask("POST", "/flows", {"priority": 0, "apply": [{"output": "controller", "max_len": 32}]})
    number = last_event()
    equal(hosts.ping(1, 3, 1), 0)
    event = event_after(number, event="packet_in", reason="miss", match={"in_port": 1})
    assert event["buffer"] is not None and len(event["data"]) == 64, event
    before = sent(3)
    held = {"buffer": event["buffer"], "in_port": 1, "actions": [{"output": 3}]}
    ask("POST", "/packets", held)
    equal(sent(3, at_least=before + 1), before + 1)
    refused("POST", "/packets", held, 1, 8)


def check_events(hosts):
    """Removed flows and changed ports are reported as events."""
    number = last_event()
    ask("POST", "/flows", {**wire(1, 2), "idle_timeout": 1, "flags": 1})
    ask("POST", "/flows", {**wire(2, 1), "hard_timeout": 1, "flags": 1, "cookie": 3})
    ask("POST", "/flows", {**wire(3, 1), "flags": 1})
    hosts.ping(1, 2, 1)
    ask("DELETE", "/flows", {"match": {"in_port": 3}})
    event_after(number, event="flow_removed", reason="delete", match={"in_port": 3}, packets=0)
    idle = event_after(number, event="flow_removed", reason="idle", match={"in_port": 1}, priority=5)
    assert idle["packets"] >= 1 and idle["bytes"] >= 42, idle
    event_after(number, event="flow_removed", reason="hard", match={"in_port": 2}, cookie=3)
    equal(ask("GET", "/flows"), [])

    equal([(p["port_no"], p["name"], p["config"]) for p in ask("GET", "/ports")], [(n, "p%d" % n, 0) for n in (1, 2, 3)])
    number = last_event()
    ask("PUT", "/ports/2", {"down": True, "no_packet_in": True})
    down = event_after(number, event="port", change="modify")["port"]
    assert down["port_no"] == 2 and down["config"] == 0x41, down
    equal([p["config"] for p in ask("GET", "/ports")], [0, 0x41, 0])
    ask("POST", "/flows", wire(1, 2))
    ask("POST", "/flows", wire(2, 1))
    equal(hosts.ping(1, 2), 0)
    ask("PUT", "/ports/2", {"down": False, "no_packet_in": False})
    until("pings pass port 2, which is up again", lambda: hosts.ping(1, 2) == 3)
    refused("PUT", "/ports/99", {"down": True}, 7, 0)


def check_errors(_):
    """Errors of the switch have the right type and code, and malformed requests never reach the switch."""
    refused("POST", "/flows", {"table": 3, "goto": 2}, 3, 2)
    refused("POST", "/flows", {"apply": [{"group": 55}]}, 2, 9)
    refused("POST", "/flows", {"meter": 55}, 12, 3)
    refused("POST", "/flows", {"match": {"tcp_dst": 80}}, 4, 9)
    refused("POST", "/flows", {"apply": [{"output": 0}]}, 2, 4)
    ask("POST", "/flows", {"match": {"in_port": 1}})
    refused("POST", "/flows", {"match": {"eth_type": 0x800}, "flags": 2}, 5, 3)
    loop = {"id": 4, "type": "all", "buckets": [{"actions": [{"group": 4}]}]}
    refused("POST", "/groups", loop, 6, 7)
    refused("POST", "/meters", {"id": 0, "bands": []}, 12, 2)
    refused("GET", "/ports/99/statistics", None, 1, 11)
    ask("POST", "/flows", {"match": {"colour": 1}}, 400)
    ask("POST", "/flows", {"match": {"in_port": 1}, "action": []}, 400)
    ask("POST", "/flows", {"priority": 65536}, 400)
    ask("POST", "/flows", {"apply": [{"output": "everywhere"}]}, 400)
    ask("POST", "/groups", {"type": "all"}, 400)
    ask("GET", "//switches/2/flows", None, 404)
    ask("GET", "//switches/1/weather", None, 404)
    # No part of the refused requests was executed, and the connection still works.
    equal([f["flow"]["match"] for f in ask("GET", "/flows")], [{"in_port": 1}])
    equal(ask("GET", "/echo"), {"data": "rest"})


def main(rooms):
    """Runs all checks, each with an empty switch."""
    hosts = Hosts(rooms)
    until("the switch is connected to the application", lambda: ask("GET", "//switches") == [1])
    for check in (
        check_switch, check_roles, check_flows, check_groups, check_meters, check_packets, check_events, check_errors,
    ):  # fmt: skip
        clear()
        began = time.monotonic()
        check(hosts)
        print("ok: %s (%.1f s)" % (check.__doc__.rstrip("."), time.monotonic() - began), flush=True)
    left = set(ask("GET", "//")) - ASKED
    assert not left, "the test sent no request for: %s" % sorted(left)


if __name__ == "__main__":
    main(sys.argv[1])
