# SPDX-License-Identifier: Apache-2.0
"""Tests of IDs and keys."""

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import ZOO, graphs, sample, zoo
from shunt_controller.plan import ids, keys
from shunt_controller.plan.arithmetic import primes
from shunt_controller.plan.compare import compare, shorter_percent
from shunt_controller.plan.demand import LOCAL, Demand
from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.numbering import Bank, grown, labels_of, number, suit
from shunt_controller.plan.routes import Listed, Trees
from shunt_controller.plan.walk import Entry, Walk, by_key


def test_the_key_of_the_papers_figure():
    assert keys.key_of((4, 3, 5), (1, 1, 0)) == 25
    assert [25 % value for value in (4, 3, 5)] == [1, 1, 0]
    # The paper's formula gives the same key.
    whole = 4 * 3 * 5
    assert sum(pow(whole // m, -1, m) * (whole // m) * p for m, p in zip((4, 3, 5), (1, 1, 0), strict=True)) % whole == 25


@given(st.lists(st.sampled_from(primes(400)), min_size=1, max_size=12, unique=True), st.randoms())
def test_keys_have_the_residues_that_they_were_made_from(moduli, random):
    labels = [random.randrange(modulus) for modulus in moduli]
    key = keys.key_of(moduli, labels)
    assert [key % modulus for modulus in moduli] == labels
    assert 0 <= key < math.prod(moduli) and key.bit_length() <= keys.bits_of(moduli)


@pytest.mark.parametrize(
    ("moduli", "labels", "says"),
    [((4, 6), (0, 0), "ID 6 shares the factor 2"), ((4, 3), (4, 0), "label 4 is not below"), ((1,), (0,), "1 is not an ID")],
)
def test_residues_without_a_key_are_refused(moduli, labels, says):
    with pytest.raises(PlanError, match=says):
        keys.key_of(moduli, labels)


@given(st.data())
def test_ids_are_coprime_where_nodes_meet_and_large_enough(data):
    count = data.draw(st.integers(1, 14))
    demand = Demand.none(count)
    for a, b in combinations(range(count), 2):
        if data.draw(st.booleans()):
            demand.meets[a] |= 1 << b
            demand.meets[b] |= 1 << a
    demand.uses = data.draw(st.lists(st.integers(0, 99), min_size=count, max_size=count))
    labels = data.draw(st.lists(st.integers(0, 30), min_size=count, max_size=count))
    found = ids.assign(demand, labels)
    assert [bool(value) for value in found] == [bool(count) for count in labels]
    assert all(value >= count for value, count in zip(found, labels, strict=True))
    for a, b in combinations(range(count), 2):
        if demand.meets[a] >> b & 1 and found[a] and found[b]:
            assert math.gcd(found[a], found[b]) == 1
    # Fixed IDs stay. All other IDs are coprime to them where necessary.
    kept = {node: value for node, value in enumerate(found) if value and node % 2}
    again = ids.assign(demand, labels, kept)
    assert all(again[node] == value for node, value in kept.items())
    ids.check(again, demand, labels, [str(node) for node in range(count)])


def test_nodes_that_never_meet_share_ids():
    demand = Demand([{1}, {1}, {1}], [1, 1, 9], [0b100, 0b100, 0b011])
    assert ids.assign(demand, [2, 2, 2]) == [3, 3, 2]


def test_powers_of_primes_are_used():
    demand = Demand([set()] * 3, [9, 5, 1], [0b110, 0b101, 0b011])
    assert ids.assign(demand, [8, 8, 8]) == [8, 9, 11]


def test_unsuitable_ids_are_reported():
    demand = Demand([set()] * 2, [1, 1], [2, 1])
    with pytest.raises(PlanError, match=r"a \(ID 4\) and b \(ID 6\).*factor 2"):
        ids.check([4, 6], demand, [2, 2], ["a", "b"])
    with pytest.raises(PlanError, match="b has the ID 5 and needs 6 labels"):
        ids.check([4, 5], demand, [2, 6], ["a", "b"])


@pytest.mark.parametrize("network", graphs(), ids=lambda network: network.name)
@pytest.mark.parametrize("coded", ["all", "hops"])
def test_all_pairs_keys_lead_along_their_routes(network, coded):
    trees = Trees(network)
    bank = number(trees, coded)
    demand = trees.demand(coded)
    listed = Listed(network, list(trees.paths())).demand(coded)
    assert (demand.uses, demand.ports) == (listed.uses, listed.ports)
    assert all(rough | exact == rough for rough, exact in zip(demand.meets, listed.meets, strict=True))
    widths = dict(keys.widths(trees, bank.ids, coded))
    for destination, found in keys.all_keys(trees, bank.ids, bank.label_of(), coded):
        for source in trees.ends:
            if source == destination:
                continue
            path = trees.path(source, destination)
            first = Entry(source, network.neighbours[source][path[1]])
            outcome = Walk(network, bank.backups).run(first, by_key(bank, found[source]), len(path) - 2)
            assert outcome.visited == tuple(path) and not outcome.reason and outcome.forwarded == len(path) - 2
            assert found[source].bit_length() <= widths[destination][source]


@pytest.mark.parametrize("network", graphs(), ids=lambda network: network.name)
def test_planned_keys_are_shorter(network):
    found = compare(network)
    assert found.mean <= found.baseline_mean and found.same_routes_mean <= found.baseline_mean
    trees = Trees(network)
    labels = [len(ports) for ports in labels_of(trees.demand("all"))]
    assert max(labels) == found.ports_max == 1 + max(map(len, network.neighbours))
    baseline = ids.consecutive(labels)
    assert baseline[0] >= found.ports_max and len(set(baseline)) == len(baseline)


def test_keys_of_the_zoo_are_shorter_by_more_than_a_fifth():
    names = sorted(path.stem for path in ZOO.glob("*.graphml"))
    # The largest network takes seconds, so only the command line compares it.
    found = [compare(zoo(name)) for name in names if name != "Kdl"]
    if not found:
        pytest.skip(f"{ZOO} is not there")
    assert shorter_percent(found) >= 22


def test_growth_keeps_ids_and_labels():
    old_network = sample("backbone.json").part(range(8), "a part")
    old = number(Trees(old_network), "all", reserve=2)
    new_network = sample("backbone.json")
    bank = number(Trees(new_network), "all", old=grown(old_network, old, new_network))
    for node, name in enumerate(old_network.nodes):
        place = new_network.index(name)
        assert bank.ids[place] == old.ids[node]
        assert bank.labels[place][: len(old.labels[node])] == old.labels[node]
    assert all(math.gcd(a, b) == 1 for a, b in combinations(bank.ids, 2))


def test_growth_without_room_is_refused():
    old_network = sample("backbone.json").part(range(8), "a part")
    old = suit(old_network, Trees(old_network).demand("all"))
    horb = old_network.index("Horb")
    # The switch has one link in the old network, and two links in the new one.
    assert len(old.labels[horb]) == 2
    old.ids = [value if value % 2 else 101 for value in old.ids]
    old.ids[horb] = 2
    new_network = sample("backbone.json")
    with pytest.raises(PlanError, match="Horb has the ID 2 and room for labels 0 to 1, and 3 are needed"):
        number(Trees(new_network), "all", old=grown(old_network, old, new_network))
    with pytest.raises(PlanError, match="port 3 of Gera led to Isny, but no longer does"):
        grown(new_network, Bank([0] * 11, [[]] * 11), old_network)


def test_given_routes_are_checked():
    network = sample("backbone.json")
    for route, says in [
        ([0], "fewer than two nodes"),
        ([0, 1, 0], "visits a node twice"),
        ([0, 4], "a hop without a link, Aalen - Egge"),
    ]:
        with pytest.raises(PlanError, match=says):
            Listed(network, [route])
    with pytest.raises(PlanError, match="two routes from Aalen to Calw"):
        Listed(network, [[0, 2], [0, 2]])


def test_labels_begin_with_the_tables():
    assert labels_of(Demand([{3, LOCAL, 1}], [1], [0])) == [[LOCAL, 1, 3]]
    assert labels_of(Demand([{3, LOCAL, 1}], [1], [0]), Bank([5], [[3]])) == [[3, LOCAL, 1]]
