# SPDX-License-Identifier: Apache-2.0
"""Random and damaged messages of POF. The codec may raise its own exceptions only."""

import contextlib
import random

import pytest
from by_hand import vectors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import XIDS, of_dialect

from shunt_controller.pof import DecodeError, Dialect, Splitter, decode, encode

BOTH = pytest.mark.parametrize("dialect", Dialect, ids=lambda dialect: dialect.value)
SETTINGS = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@BOTH
@SETTINGS
@given(data=st.data(), xid=XIDS)
def test_random_messages_survive_the_round_trip(dialect, data, xid):
    message = data.draw(of_dialect(dialect))
    encoded = encode(message, xid, dialect)
    assert int.from_bytes(encoded[2:4]) == len(encoded)
    assert decode(encoded, dialect) == (message, xid)


@BOTH
@SETTINGS
@given(data=st.data(), seed=st.integers(0, 1 << 32))
def test_a_stream_is_split_into_its_messages(dialect, data, seed):
    messages = data.draw(st.lists(of_dialect(dialect), min_size=1, max_size=4))
    stream = b"".join(encode(message, number, dialect) for number, message in enumerate(messages))
    splitter, rng, received = Splitter(dialect), random.Random(seed), []
    at = 0
    while at < len(stream):
        size = rng.choice([1, 3, 8, 100, 5000])
        received += splitter.feed(stream[at : at + size])
        at += size
    assert received == [(message, number) for number, message in enumerate(messages)]


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: f"{vector.dialect.value}-{vector.message.NAME}")
def test_truncated_messages_are_refused(vector):
    for length in range(len(vector.data)):
        with pytest.raises(DecodeError):
            decode(vector.data[:length], vector.dialect)


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: f"{vector.dialect.value}-{vector.message.NAME}")
def test_corrupted_messages_raise_only_decode_errors(vector):
    rng = random.Random(vector.data)
    refused = 0
    for _ in range(300):
        data = bytearray(vector.data)
        for _ in range(rng.choice([1, 1, 2, 8])):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7F, 0xFF, rng.randrange(256)])
        try:
            message, xid = decode(bytes(data), vector.dialect)
        except DecodeError as error:
            refused += 1
            assert 0 <= error.offset <= len(data)
            continue
        # What is accepted can be sent again, and is then read as the same message.
        again = encode(message, xid, vector.dialect)
        assert decode(again, vector.dialect) == (message, xid)
    assert refused < 300


@BOTH
@SETTINGS
@given(data=st.binary(max_size=64), kind=st.integers(0, 110))
def test_random_bytes_raise_only_decode_errors(dialect, data, kind):
    for candidate in (data, bytes((4, kind)) + (8 + len(data)).to_bytes(2) + bytes(4) + data):
        with contextlib.suppress(DecodeError):
            decode(candidate, dialect)
        with contextlib.suppress(DecodeError):
            list(Splitter(dialect).feed(candidate))
