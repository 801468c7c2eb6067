# SPDX-License-Identifier: Apache-2.0
"""Numbers a network: chooses IDs and label maps for its routes, chooses routes for the IDs, and extends an
existing numbering."""

from dataclasses import dataclass, field

from shunt_controller.plan import ids as id_choice
from shunt_controller.plan.arithmetic import INTEGERS, Arithmetic
from shunt_controller.plan.demand import LOCAL, Coded, Demand
from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.network import Network
from shunt_controller.plan.routes import Routes, Trees

REROUTE_ROUNDS = 3
"""Maximum number of rounds in which routes are chosen again by the cost of their IDs. The first round gains
most, and rounds after the third change nothing. Large networks use one round."""


@dataclass
class Bank:
    """Configuration of the switches of a network for one epoch, with one item per node."""

    ids: list[int]
    """ID of each node, or 0 for a node that is in no key."""
    labels: list[list[int]]
    """Port of each label, from label 0; :data:`LOCAL` stands for the node's own tables."""
    backups: list[dict[int, int]] = field(default_factory=list)
    """Backup of each port, used if the port is down or is the ingress port."""
    arithmetic: Arithmetic = INTEGERS

    def __post_init__(self) -> None:
        self.backups = self.backups or [{} for _ in self.ids]

    def label_of(self) -> list[dict[int, int]]:
        """Returns the label of each port, by node."""
        return [{port: label for label, port in enumerate(ports)} for ports in self.labels]


def labels_of(demand: Demand, old: Bank | None = None) -> list[list[int]]:
    """Returns labels for the ports that routes need: first the node's own tables, then ports in ascending
    order. Existing labels are kept."""
    found = []
    for node, ports in enumerate(demand.ports):
        kept = list(old.labels[node]) if old else []
        found.append(kept + sorted(ports - set(kept)))
    return found


def suit(
    network: Network, demand: Demand, reserve: int = 0, old: Bank | None = None, arithmetic: Arithmetic = INTEGERS
) -> Bank:
    """Chooses IDs and labels for a demand. With a `reserve`, each node with labels has space for this number
    of further labels. All IDs are then coprime, so that later keys may contain any combination of nodes."""
    labels = labels_of(demand, old)
    if reserve:
        demand = demand.all_meeting()
    fixed: dict[int, int] = {}
    for node, value in enumerate(old.ids if old else []):
        if not value:
            continue
        room = arithmetic.residues(value)
        if room < len(labels[node]):
            raise PlanError(
                f"{network.nodes[node]} has the ID {value} and room for labels 0 to {room - 1}, and {len(labels[node])} are "
                "needed now; renumber it under the other epoch (--renumber), or plan with more --reserve from the beginning"
            )
        fixed[node] = value
    wanted = [len(ports) + reserve * (node not in fixed) if ports else 0 for node, ports in enumerate(labels)]
    found = id_choice.assign(demand, wanted, fixed, arithmetic)
    try:
        id_choice.check(found, demand, [len(ports) for ports in labels], network.nodes, arithmetic)
    except PlanError as error:
        if old is None:
            raise
        raise PlanError(f"{error}; the old IDs do not suit the new routes: renumber (--renumber)") from error
    return Bank(found, labels, arithmetic=arithmetic)


def number(
    routes: Routes,
    coded: Coded,
    reserve: int = 0,
    old: Bank | None = None,
    has_waypoints: bool = False,
    arithmetic: Arithmetic = INTEGERS,
) -> Bank:
    """Numbers a network for its routes. :class:`Trees` can choose among shortest paths. In this case, the
    routes with the shortest keys are chosen and the network is numbered again, as long as keys become
    shorter."""

    def once() -> tuple[Bank, float]:
        demand = routes.demand(coded)
        if has_waypoints:
            for ports in demand.ports:
                if ports:
                    ports.add(LOCAL)
        bank = suit(routes.network, demand, reserve, old, arithmetic)
        return bank, cost(demand, bank)

    best, least = once()
    if isinstance(routes, Trees):
        is_large = len(routes.network.nodes) > id_choice.EXCHANGE_NODES_MAX
        for _ in range(1 if is_large else REROUTE_ROUNDS):
            weights = routes.weights
            routes.weigh([arithmetic.size(value) if value else 0.0 for value in best.ids])
            bank, bits = once()
            if bits >= least - 1e-6:
                routes.weigh(weights)
                break
            best, least = bank, bits
    return best


def cost(demand: Demand, bank: Bank) -> float:
    """Returns the total length of all keys in bits, before rounding up."""
    return sum(uses * bank.arithmetic.size(value) for uses, value in zip(demand.uses, bank.ids, strict=True) if value)


def grown(old_network: Network, old: Bank, new: Network) -> Bank:
    """Extends a bank to a larger network, whose new nodes have no IDs yet. All old nodes and links must still
    exist."""
    bank = Bank([0] * len(new.nodes), [[] for _ in new.nodes], arithmetic=old.arithmetic)
    for node, name in enumerate(old_network.nodes):
        place = new.index(name)
        bank.ids[place], bank.labels[place] = old.ids[node], list(old.labels[node])
        for port, peer in old_network.ports[node].items():
            there = new.ports[place].get(port)
            if there is None or (new.nodes[there.node], there.port) != (old_network.nodes[peer.node], peer.port):
                raise PlanError(
                    f"port {port} of {name} led to {old_network.nodes[peer.node]}, but no longer does; a network that grows keeps its "
                    "links (renumber it otherwise, --renumber)"
                )
    return bank
