# SPDX-License-Identifier: Apache-2.0
"""Properties of the election, with a store that loses requests and answers."""

import heapq
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from shunt_controller.redundancy.election import TERM_MAX, Election, Read, Record, Timing

TIMING = Timing()
NAMES = ("a", "b", "c")


@dataclass
class Store:
    """The record, as etcd keeps it."""

    record: Record | None = None
    revision: int = 0
    terms: list[tuple[int, str]] = field(default_factory=list)

    def write(self, record: Record, revision: int) -> bool:
        """Writes the record if its revision is still the given one."""
        if revision != (self.revision if self.record else 0):
            return False
        self.record, self.revision = record, self.revision + 1
        if record.holder:
            self.terms.append((record.term, record.holder))
        return True


def ask(election: Election, store: Store, now_s: float, done_s: float, is_sent: bool = True, is_answered: bool = True) -> None:
    """Lets a controller send a request if it has one. The request or its answer may be lost."""
    request = election.request(now_s)
    if request is None:
        return
    revision = store.revision if store.record else 0
    if isinstance(request, Read):
        if is_sent and is_answered:
            election.found(store.record, revision, done_s)
            return
    else:
        is_done = is_sent and store.write(request.record, request.revision)
        if is_sent and is_answered:
            election.written(request, is_done, store.revision if store.record else 0, store.record, done_s)
            return
    election.failed()


def advance(elections: list[Election], store: Store, begin_s: float, end_s: float) -> float:
    """Lets controllers work without failures. Returns when one is the master for the first time."""
    at_s, first_s = begin_s, float("inf")
    while at_s < end_s:
        for election in elections:
            ask(election, store, at_s, at_s)
        if any(election.is_master for election in elections):
            first_s = min(first_s, at_s)
        at_s += 0.01
    return first_s


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_there_is_one_master_at_most_whatever_is_lost(data):
    store, elections = Store(), [Election(name, TIMING) for name in NAMES]
    skews = [data.draw(st.floats(0, 1e6)) for _ in NAMES]
    queue = [(0.0, number) for number in range(len(NAMES))]
    for _ in range(data.draw(st.integers(20, 120))):
        now_s, number = heapq.heappop(queue)
        took_s = data.draw(st.sampled_from([0.0, 0.01, 0.4]))
        is_sent, is_answered = data.draw(st.sampled_from([(True, True)] * 4 + [(True, False), (False, False)]))
        own_s = now_s + skews[number]
        ask(elections[number], store, own_s, own_s + took_s, is_sent, is_answered)
        masters = [
            election
            for election, skew in zip(elections, skews, strict=True)
            if election.is_master and now_s + skew < election._sure_until_s
        ]
        assert len(masters) <= 1, [master.holder for master in masters]
        heapq.heappush(queue, (now_s + took_s + data.draw(st.sampled_from([0.02, 0.1, 0.3, 2.0])), number))
    # Each term has one master, and terms do not decrease.
    assert len(dict(store.terms)) == len(set(store.terms))
    assert [term for term, _ in store.terms] == sorted(term for term, _ in store.terms)


@given(st.floats(0, 2), st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_a_standby_takes_over_within_the_lease_and_half_a_second(killed_s, generation):
    store, first, second = Store(), Election("first", TIMING), Election("second", TIMING)
    second.seen(generation)
    advance([first], store, 0, 0.5)
    advance([first, second], store, 0.5, 3 + killed_s)
    assert first.is_master and not second.is_master
    end_s = 3 + killed_s
    took_s = advance([second], store, end_s, end_s + 5) - end_s
    assert took_s <= TIMING.lease_s + 0.5
    assert second.term > max(first.term, generation) and store.record.holder == "second"


def test_a_master_that_gives_up_is_replaced_at_once():
    store, first, second = Store(), Election("first", TIMING), Election("second", TIMING)
    advance([first], store, 0, 0.5)
    advance([first, second], store, 0.5, 2)
    first.give_up()
    ask(first, store, 2, 2)
    assert store.record.holder == "" and not first.is_master
    assert advance([second], store, 2, 3) < 2.4


def test_a_master_without_a_store_remains_while_switches_confirm_it():
    store, first = Store(), Election("first", TIMING)
    advance([first], store, 0, 1)
    at_s, asked = 1.0, 0
    while at_s < 20:
        ask(first, store, at_s, at_s, is_sent=False)
        if first.needs_confirmation(at_s) and at_s < 15:
            first.confirmed(at_s)
            asked += 1
        if at_s < 15:
            assert first.is_master
        at_s += 0.1
    assert asked > 100 and not first.is_master


def test_a_master_remains_when_the_store_answers_again_and_has_the_record():
    store, first, second = Store(), Election("first", TIMING), Election("second", TIMING)
    advance([first], store, 0, 1)
    advance([first, second], store, 1, 2)
    at_s = 2.0
    while at_s < 10:
        for election in (first, second):
            ask(election, store, at_s, at_s, is_sent=False)
        first.confirmed(at_s)
        at_s += 0.1
    advance([first, second], store, 10, 13)
    assert first.is_master and not second.is_master and first.term == 1


def test_a_master_writes_the_record_again_that_the_store_has_lost():
    store, first = Store(), Election("first", TIMING)
    advance([first], store, 0, 1)
    store.record, store.revision = None, 0
    advance([first], store, 1, 2)
    assert first.is_master and store.record == Record("first", first.term, store.record.beat)


def test_a_master_gives_way_to_a_later_term():
    store, first, second = Store(), Election("first", TIMING), Election("second", TIMING)
    advance([first], store, 0, 1)
    advance([second], store, 1, 4)
    assert second.is_master
    first.confirmed(4)
    advance([first], store, 4, 4.5)
    assert not first.is_master and store.record.holder == "second"


def test_a_master_begins_a_later_term_if_a_switch_has_seen_a_later_one():
    store, first = Store(), Election("first", TIMING)
    advance([first], store, 0, 1)
    first.seen(70)
    first.seen((1 << 64) - 1)
    advance([first], store, 1, 2)
    assert first.is_master and first.term == 71 == store.record.term


def test_a_record_is_read_back_and_others_are_not():
    record = Record("name", 7, 3)
    assert Record.decoded(record.encoded()) == record
    for data in (None, b"", b"[]", b"{", b"3", b"\xff", b"[" * 100_000, b'{"holder":1,"term":1,"beat":1}', b'{"holder":"","term":-1,"beat":1}'):
        assert Record.decoded(data) is None
    assert Record.decoded(Record("", TERM_MAX + 1).encoded()) is None


def test_a_generation_without_room_for_later_ones_is_ignored():
    store, first, second = Store(), Election("first", TIMING), Election("second", TIMING)
    for election in (first, second):
        election.seen((1 << 63) - 1)
    advance([first], store, 0, 1)
    advance([first, second], store, 1, 4)
    assert first.is_master and not second.is_master and store.record.term == 1


def test_a_term_is_always_one_that_is_read_back():
    store, first = Store(Record("other", TERM_MAX, 4), 9), Election("first", TIMING)
    advance([first], store, 0, 3)
    assert first.is_master and Record.decoded(store.record.encoded()) == store.record
    store, first = Store(Record("", TERM_MAX - 1, 4), 9), Election("first", TIMING)
    advance([first], store, 0, 3)
    assert first.is_master and store.record.term == TERM_MAX
    # A later term is impossible, so that of the switches is kept.
    first.generation = TERM_MAX + 1
    advance([first], store, 3, 5)
    assert Record.decoded(store.record.encoded()) == store.record


def test_giving_up_is_not_forgotten_when_the_record_is_not_known():
    store, first = Store(), Election("first", TIMING)
    advance([first], store, 0, 1)
    first.failed()
    first.give_up()
    ask(first, store, 1.0, 1.0)
    ask(first, store, 1.0, 1.0)
    assert store.record.holder == "" and not first.is_master


def test_a_standby_looks_often_also_if_the_lease_is_long():
    timing = Timing.of(10)
    store, first, second = Store(), Election("first", timing), Election("second", timing)
    advance([first], store, 0, 1)
    advance([first, second], store, 1, 8)
    assert advance([second], store, 8, 20) - 8 <= timing.lease_s + 0.5
