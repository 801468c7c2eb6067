# SPDX-License-Identifier: Apache-2.0
"""Tests of polynomials, and of PolKA in freeRtr's form."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import SAMPLES, graphs, zoo
from shunt_controller.plan import freertr, gf2, keys
from shunt_controller.plan.arithmetic import POLYNOMIALS, Polynomials
from shunt_controller.plan.cli import main
from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.keyflow import plan
from shunt_controller.plan.protection import plan_protected
from shunt_controller.plan.routes import Trees
from test_command import walk_document
from test_keyflow import deliver

BACKBONE = str(SAMPLES / "backbone.json")

# Golden vectors: a path, as the indices of the nodes after the first one, and its key.
GOLDEN = [
    ([2, 3], "00000000000000000000000080038005"),
    ([1, 2, 3], "00000000000000000000800380040005"),
    ([1, 2, 3, 4], "0000000000000000b7f9f81e77d43831"),
    ([1, 2, 3, 4, 5, 6, 7], "000083fdcc706c836d60531c4f645214"),
    ([8, 7, 6, 5, 4, 3, 2, 1], "28e936c2465385e4669fa5e8f33fedd4"),
    ([1, 2, 3, 4, 5, 6, 7, 8], "f7f92e6008e61692b3c4ff36f5717e6c"),
]

polynomials = st.integers(0, (1 << 40) - 1)


def crc(key: bytes, polynomial: int) -> int:
    """Returns the CRC-16 as switches compute it: over all bytes except the last two, which are added
    afterwards.
    """
    register = 0
    for byte in key[:-2]:
        register ^= byte << 8
        for _ in range(8):
            register = (register << 1) ^ (polynomial if register >> 15 else 0)
            register &= 0xFFFF
    return register ^ int.from_bytes(key[-2:])


@given(polynomials, polynomials, polynomials.filter(bool))
def test_division_undoes_multiplication(a, b, c):
    quotient, rest = gf2.divided(a, c)
    assert gf2.times(quotient, c) ^ rest == a and gf2.degree(rest) < gf2.degree(c)
    assert gf2.remainder(a, c) == rest
    assert gf2.times(a, b) == gf2.times(b, a)
    assert gf2.times(a, b ^ c) == gf2.times(a, b) ^ gf2.times(a, c)


@given(st.integers(0, (1 << 18) - 1), st.integers(2, 1 << 12))
def test_inverses(a, modulus):
    found = gf2.inverse(a, modulus)
    common = set(gf2.factors(a)) & set(gf2.factors(modulus)) if a else {modulus}
    assert bool(found) != bool(common)
    if found:
        assert gf2.remainder(gf2.times(found, a), modulus) == 1


def test_irreducible_polynomials():
    assert gf2.irreducibles(1) == (0b10, 0b11)
    assert gf2.irreducibles(4) == (0b10011, 0b11001, 0b11111)
    # The numbers of irreducible polynomials follow Gauss's formula.
    assert [len(gf2.irreducibles(degree)) for degree in range(1, 11)] == [2, 1, 2, 3, 6, 9, 18, 30, 56, 99]
    assert gf2.irreducibles(16)[:10] == (
        *(0x1002B, 0x1002D, 0x10039, 0x1003F, 0x10047),
        *(0x10053, 0x1008D, 0x100BD, 0x100D7, 0x100F5),
    )
    assert all(gf2.factors(value) == [value] for value in gf2.irreducibles(9))


@given(
    st.lists(st.sampled_from([p for d in range(3, 9) for p in gf2.irreducibles(d)]), min_size=1, unique=True), st.randoms()
)
def test_keys_have_the_residues_that_they_were_made_from(moduli, random):
    labels = [random.randrange(POLYNOMIALS.residues(modulus)) for modulus in moduli]
    key = keys.key_of(moduli, labels, POLYNOMIALS)
    assert [gf2.remainder(key, modulus) for modulus in moduli] == labels
    assert key.bit_length() <= keys.bits_of(moduli, POLYNOMIALS) == sum(map(gf2.degree, moduli))


def test_polynomials_with_a_common_factor_have_no_key():
    with pytest.raises(PlanError, match="the ID 6 shares the factor 3"):
        keys.key_of([0b101, 0b110], [0, 0], POLYNOMIALS)


@pytest.mark.parametrize("network", graphs(), ids=lambda network: network.name)
def test_everything_arrives(network):
    for arithmetic in (POLYNOMIALS, Polynomials(16)):
        made = plan(Trees(network), "hops", 64, arithmetic=arithmetic)
        assert set(deliver(made).values()) == {""}
        degrees = {gf2.degree(value) for value in made.bank.ids if value}
        assert degrees == {16} if arithmetic.fixed_degree else max(degrees) < 16
    protected = plan_protected(Trees(network), "hops", 256, arithmetic=POLYNOMIALS)
    assert set(deliver(protected).values()) == {""}


def test_keys_are_hardly_longer_than_those_of_integers():
    network = zoo("GtsCe")
    trees = Trees(network)
    pairs = trees.pairs()[::151]
    integers, others = (
        plan(Trees(network), "all", 256, pairs),
        plan(Trees(network), "all", 256, pairs, arithmetic=POLYNOMIALS),
    )
    bits = [sum(segment.bits for route in made.routes for segment in route.segments) for made in (integers, others)]
    assert 0.9 < bits[1] / bits[0] < 1.15


def test_a_degree_that_has_too_few_polynomials_is_refused():
    with pytest.raises(PlanError, match="there are no .* polynomial IDs of this kind"):
        plan(Trees(graphs()[0]), "all", 64, arithmetic=Polynomials(4))


def test_polynomials_of_freertr():
    assert freertr.polynomials(16) == (
        *(0x10000, 0x10001, 0x10003, 0x10005, 0x10009, 0x1000F, 0x10011, 0x1001B),
        *(0x1001D, 0x1002B, 0x1002D, 0x10039, 0x1003F, 0x10047, 0x1004B, 0x10053),
    )
    found = freertr.polynomials(60)
    assert all(gf2.inverse(a, b) for i, a in enumerate(found) for b in found[:i])


@pytest.mark.parametrize(("path", "expected"), GOLDEN)
def test_keys_of_freertr(path, expected):
    key = freertr.key_of(path)
    assert f"{key:032x}" == expected
    for index, following in zip(path, [*path[1:], 0], strict=True):
        assert gf2.remainder(key, freertr.polynomial(index)) == following
        if index:
            assert crc(key.to_bytes(16), freertr.polynomial(index) & 0xFFFF) == following


def test_the_header_of_freertr():
    key = freertr.encode([1, 2, 3])
    data = freertr.header(key, 255, 0x0800)
    assert len(data) == 20
    assert data.hex() == "00ff0800" + "00000000000000000000800380040005"
    with pytest.raises(PlanError, match="a TTL is 0 to 255"):
        freertr.header(key, 256, 0)
    with pytest.raises(PlanError, match="an EtherType has 16 bits"):
        freertr.header(key, 0, 0x10000)


def test_the_path_that_freertr_cannot_carry_is_split():
    path = [1, 2, 3, 4, 5, 6, 7, 8]
    with pytest.raises(PlanError, match="f7f92e6008e61692b3c4ff36f5717e6c of the path 1, 2, .* has its highest bit set"):
        freertr.encode(path)
    parts = freertr.cut(path)
    assert len(parts) == 2 and sum(parts, []) == path
    assert all(freertr.encode(part).bit_length() <= 127 for part in parts)
    fits = [8, 7, 6, 5, 4, 3, 2, 1]
    assert freertr.cut(fits) == [fits]
    with pytest.raises(PlanError, match="has 9 nodes after the first one; a key of 128 bits has at most 8"):
        freertr.encode(list(range(1, 10)))


@given(st.lists(st.integers(1, 200), min_size=1, max_size=30, unique=True))
def test_any_path_is_cut_into_the_fewest_keys(path):
    parts = freertr.cut(path)
    assert sum(parts, []) == path
    for part in parts:
        freertr.encode(part)
    assert -(-len(path) // 8) <= len(parts) <= -(-len(path) // 7)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ([], "a node after the first"),
        ([1, 1], "visits a node twice"),
        ([1, 0], "contains index 0"),
        ([9999], "is not 0 to 4095"),
    ],
)
def test_invalid_paths_are_refused(path, says):
    with pytest.raises(PlanError, match=says):
        freertr.key_of(path)


def test_plans_from_the_command_line(tmp_path, capsys):
    out = str(tmp_path / "plan.json")
    assert main(["polka", BACKBONE, "--protect", "--json", out]) == 0
    assert set(walk_document(out, 0)) == {""}
    assert main(["polka", BACKBONE, "--extend", out]) == 0
    assert main(["keyflow", BACKBONE, "--extend", out]) == 1
    assert "has polynomial IDs" in capsys.readouterr().err
    assert main(["polka", BACKBONE, "--freertr", "--json", out]) == 0
    data = json.loads((tmp_path / "plan.json").read_text())
    switches = {switch["name"]: switch for switch in data["switches"]}
    by_index = {switch["index"]: name for name, switch in switches.items()}
    for route in data["routes"]:
        at = route["from"]
        for segment in route["segments"]:
            at, steps = segment["path"][1], 1
            while index := gf2.remainder(int(segment["key"], 16), int(switches[at]["polynomial"], 16)):
                assert str(index) in switches[at]["next"]
                at, steps = by_index[index], steps + 1
            assert at == segment["path"][-1] and steps == len(segment["path"]) - 1
        assert at == route["to"]


def test_a_path_from_the_command_line(capsys):
    assert main(["polka", "--path", "1,2,3,4,5,6,7,8"]) == 0
    printed = capsys.readouterr().out
    assert "the key changes along the path" in printed and "0x1001d" in printed
    assert main(["polka", "--path", "2,3", "--ttl", "64", "--ethertype", "0x86dd"]) == 0
    assert "0040 86dd 0000 0000 0000 0000 0000 0000 8003 8005" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--path", "1,x"], "'x' is not an index of a node"),
        (["--path", "1", "--ethertype", "ip"], "'ip' is not an EtherType"),
        ([BACKBONE, "--freertr", "--protect"], "--protect cannot be combined with --freertr"),
        ([BACKBONE, "--degree", "17"], "--degree is 1 to 16"),
        ([BACKBONE, "--degree", "2"], "there are no"),
    ],
)
def test_errors_are_explained(arguments, says, capsys):
    assert main(["polka", *arguments]) == 1
    assert says in capsys.readouterr().err
