# SPDX-License-Identifier: Apache-2.0
"""Tests of the locations and addresses of hosts."""

from hypothesis import given
from hypothesis import strategies as st

from shunt_controller.live.hosts import Hosts
from shunt_controller.live.timing import Timing
from shunt_controller.live.topology import Host, Port

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
ONE, TWO = Port(1, 1), Port(2, 1)


def hosts(**given_timing) -> tuple[Hosts, list[str]]:
    texts: list[str] = []
    return Hosts(Timing(**given_timing), lambda kind, text: texts.append(text)), texts


def test_a_host_that_moves_is_reported_and_keeps_its_addresses():
    made, texts = hosts()
    assert made.learn(A, ONE, ["10.0.0.1"], 0.0) and not made.learn(A, ONE, ["10.0.0.1"], 0.0)
    assert made.learn(A, TWO, [], 1.0)
    assert made.current == (Host(A, TWO, ("10.0.0.1",)),)
    assert texts[-1] == f"host {A} has moved from port 1 of switch 1 to port 1 of switch 2"
    assert made.ports() == {TWO}


def test_a_host_seen_at_two_places_in_turns_stays_at_one():
    made, texts = hosts(moves_max=3, moves_s=10.0)
    for second in range(9):
        made.learn(A, (ONE, TWO)[second % 2], [], float(second))
    assert made.current[0].at == TWO and "in turns" in texts[-1]
    assert not made.learn(A, ONE, ["10.0.0.9"], 9.0) and made.current[0].addresses == ()
    assert made.learn(A, ONE, [], 30.0)


def test_two_hosts_with_the_same_address_are_reported_and_both_have_it():
    made, texts = hosts()
    made.learn(A, ONE, ["10.0.0.1"], 0.0)
    made.learn(B, TWO, ["10.0.0.1"], 0.0)
    assert texts[-1] == f"10.0.0.1 is used by two hosts, {A} at port 1 of switch 1 and {B} at port 1 of switch 2"
    assert [host.addresses for host in made.current] == [("10.0.0.1",)] * 2


def test_a_port_and_a_host_have_limits():
    made, texts = hosts(hosts_per_port=2, addresses_per_host=2)
    learned = [made.learn(f"02:00:00:00:00:{number:02x}", ONE, [], 0.0) for number in range(4)]
    assert learned == [True, True, False, False] and "are ignored" in texts[-1]
    made.learn(A, TWO, [], 0.0)
    assert not made.learn(A, ONE, [], 1.0) and made.current[-1].at == TWO
    made.learn(A, TWO, ["10.0.0.1", "10.0.0.2", "10.0.0.3"], 2.0)
    assert made.current[-1].addresses == ("10.0.0.1", "10.0.0.2")


EVENTS = st.tuples(st.sampled_from([A, B, "02:00:00:00:00:0c"]), st.sampled_from([ONE, TWO, None]), st.sampled_from(["10.0.0.1", "fe80::1"]))


@given(st.lists(EVENTS, max_size=30))
def test_the_ports_with_hosts_are_those_where_hosts_are(events):
    made, _ = hosts(moves_max=2, hosts_per_port=2)
    for second, (mac, at, address) in enumerate(events):
        if at is None:
            made.forget_at(ONE)
        else:
            made.learn(mac, at, [address], float(second))
        assert made.ports() == {host.at for host in made.current}
        assert all(sum(host.at == port for host in made.current) <= 2 for port in (ONE, TWO))
