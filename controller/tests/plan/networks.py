# SPDX-License-Identifier: Apache-2.0
"""Networks for tests of planners."""

import pathlib

import networkx
import pytest
from shunt_controller.plan import files
from shunt_controller.plan.network import Network

SAMPLES = pathlib.Path(__file__).parent / "samples"
ZOO = pathlib.Path(__file__).parents[4] / "shared" / "data" / "topo"


def sample(name: str) -> Network:
    """Returns a network from the folder of samples."""
    return files.read(str(SAMPLES / name))


def zoo(name: str) -> Network:
    """Returns a network of the Topology Zoo; skips the test if its file is missing."""
    path = ZOO / f"{name}.graphml"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return files.read(str(path)).largest_part()


def graphs() -> list[Network]:
    """Returns small graphs of several kinds."""
    made = {
        "ring": networkx.cycle_graph(9),
        "tree": networkx.balanced_tree(3, 2),
        "path": networkx.path_graph(2),
        "full": networkx.complete_graph(6),
        "geometric": networkx.random_geometric_graph(18, 0.4, seed=3),
        "waxman": networkx.waxman_graph(18, 0.9, 0.4, seed=5),
        "grid": networkx.grid_2d_graph(4, 4),
    }
    return [files.of_graph(name, graph).largest_part() for name, graph in made.items()] + [sample("backbone.json")]
