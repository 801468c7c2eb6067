# SPDX-License-Identifier: Apache-2.0
"""The applications of ``shunt-controller run``, by name."""

from typing import NamedTuple


class Application(NamedTuple):
    """An application: the module of its class, and one line of help."""

    module: str
    help: str


APPLICATIONS = {
    "discovery": Application("shunt_controller.apps.discovery", "discover the network and log its links and hosts"),
    "keyflow": Application("shunt_controller.apps.keyflow", "forward packets between all hosts by KeyFlow"),
    "tag-and-forward": Application("shunt_controller.apps.tag_and_forward", "forward packets in a fat tree by Tag-and-Forward"),
    "low-latency": Application("shunt_controller.apps.low_latency", "mark flow entries by the rules of a file"),
    "status": Application("shunt_controller.apps.status", "serve the state of the network as JSON and as a page"),
}
