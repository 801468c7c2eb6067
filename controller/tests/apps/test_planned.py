# SPDX-License-Identifier: Apache-2.0
"""What applications with a plan do at a takeover, without a network."""

from collections.abc import Iterable
from typing import Any

import pytest
from os_ken.base.app_manager import AppManager  # noqa: F401 - os-ken's modules import each other; this one is first.

from os_ken import cfg  # isort: skip

from shunt_controller.apps import planned
from shunt_controller.apps.keyflow import KeyFlow
from shunt_controller.apps.planned import PlannedApp
from shunt_controller.apps.switches import Switch
from shunt_controller.apps.tag_and_forward import TagAndForward
from shunt_controller.live.state import State
from shunt_controller.live.topology import Host, Port
from shunt_controller.redundancy.journal import Entry

HERE, AWAY = Host("02:00:00:00:00:01", Port(1, 4), ("10.0.0.1",)), Host("02:00:00:00:00:02", Port(2, 4))


class Discovery:
    """Discovery and the election of a controller that has become the master."""

    def __init__(self, stored: Entry) -> None:
        self.mastership, self.stored = self, stored
        self.restored: list[Host] = []

    def entry(self, kind: str) -> Entry:
        """Returns the stored plan."""
        return self.stored if kind == self.stored.kind else Entry(kind)

    def submit(self, entry: Entry, done: Any) -> None:
        """Stores a plan at once."""
        self.stored = entry
        done(entry)

    def restore(self, hosts: Iterable[Host]) -> None:
        """Records hosts that are restored."""
        self.restored += hosts


@pytest.fixture(params=[KeyFlow, TagAndForward])
def app(request: pytest.FixtureRequest) -> PlannedApp:
    """Returns an application of a controller that has become the master."""
    cfg.CONF([], project="os_ken", default_config_files=[], default_config_dirs=[])
    return request.param(discovery=Discovery(Entry(request.param.NAME, hosts=(HERE, AWAY))))


def connect(app: PlannedApp, number: int) -> None:
    """Adds a switch whose configuration was read."""
    app.switches.connected[number] = Switch(None, has_lane=True)
    app._known(number, State())


def test_stored_hosts_are_restored_when_their_switch_becomes_known(app):
    connect(app, 1)
    assert app._begin_plan(planned.SETTLE_MOST_S + 1) and app._has_begun
    assert app.discovery.restored == [HERE]
    connect(app, 2)
    assert app.discovery.restored == [HERE, AWAY]


def test_the_end_of_the_mastership_forgets_the_plan(app):
    connect(app, 1)
    app.mtu_problems = ["a link"]
    app._known_s[1] = 7.0
    app.planned(5.0)
    app._reset()
    assert not app.mtu_problems and not app._known_s and not app._has_begun and not app.state.rollout.actual
    assert getattr(app, "_planned_s", None) is None and getattr(app, "_was_settled", True)
