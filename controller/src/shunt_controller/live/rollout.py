# SPDX-License-Identifier: Apache-2.0
"""Brings the switches of a network from one configuration to another, so that no packet is lost on the way.
First, everything new is added in stages: what the end of a route needs before what its start needs. When all
switches have confirmed a stage, the next one begins. Then packets that were sent by the old configuration get
time to leave the network. At last, what is old is removed.

If a switch does not answer in time, the others get only what the first stage adds, until the configuration of
this switch is known or its connection has ended."""

from collections.abc import Mapping
from dataclasses import replace

from shunt_controller.live.state import FlowId, State, staged, stages


class Rollout:
    """The configurations of switches by datapath ID: actual ones, and desired ones. Switches are only changed
    after :meth:`known` has been called for them. All times are in seconds."""

    def __init__(self, drain_s: float = 1.0, patience_s: float = 2.0) -> None:
        self._drain_s, self._patience_s = drain_s, patience_s
        self.actual: dict[int, State] = {}
        self.desired: dict[int, State] = {}
        self._waiting: dict[int, State] = {}
        self._silent: dict[int, State] = {}
        """What was sent to switches that have not answered in time. Later stages wait until the configurations of
        these switches are known, or their connections end."""
        self._sent_s = 0.0
        self._changed_s = float("-inf")
        """When the last stage was confirmed that changed something."""
        self.keep_until_s = float("-inf")
        """Nothing is removed before this time."""
        self.may_remove = True
        """Whether anything may be removed."""
        self.is_settled = True
        """Whether all switches have the desired configuration, as of the last call of :meth:`next`."""

    def want(self, desired: Mapping[int, State]) -> None:
        """Sets the desired configurations. Switches that are not named are left alone."""
        self.desired = dict(desired)
        self.is_settled = False

    def known(self, switch: int, state: State) -> None:
        """Records the configuration that a switch has."""
        self.actual[switch] = state
        self._forget(switch)
        self.is_settled = False

    def gone(self, switch: int) -> None:
        """Records that a switch cannot be changed."""
        self.actual.pop(switch, None)
        self._forget(switch)

    def _forget(self, switch: int) -> None:
        self._waiting.pop(switch, None)
        self._silent.pop(switch, None)

    def removed(self, switch: int, flow: FlowId) -> None:
        """Records that a switch has removed an entry."""
        for states in (self.actual, self._waiting, self._silent):
            if switch in states and flow in states[switch].flows:
                flows = {key: kept for key, kept in states[switch].flows.items() if key != flow}
                states[switch] = replace(states[switch], flows=flows)

    def done(self, switch: int, now_s: float) -> None:
        """Records that a switch has the configuration that was sent last."""
        late = self._silent.pop(switch, None)
        target = self._waiting.pop(switch, late)
        if target is not None and (switch in self.actual or late is not None):
            self.actual[switch] = target
            self._changed_s = now_s

    def next(self, now_s: float) -> dict[int, State]:
        """Returns the configurations that are to be sent now."""
        if self._waiting and now_s - self._sent_s < self._patience_s:
            return {}
        for switch in self._waiting:
            # The switch may or may not have executed the change, so the caller must read its configuration.
            self.actual.pop(switch, None)
        self._silent.update(self._waiting)
        self._waiting = {}
        # If a switch is known to have its desired configuration, `actual` has the same object as `desired`.
        both = {switch for switch in self.desired.keys() & self.actual.keys() if self.actual[switch] is not self.desired[switch]}
        for switch in list(both):
            if self.actual[switch] == self.desired[switch]:
                self.actual[switch] = self.desired[switch]
                both.discard(switch)
        in_order = stages({switch: self.desired[switch] for switch in both})
        # The first stage needs nothing of other switches.
        for stage in in_order[:1] if self._silent else in_order:
            targets = {switch: staged(self.actual[switch], self.desired[switch], stage) for switch in both}
            if self._send(targets, now_s):
                return dict(self._waiting)
        targets = {switch: self.desired[switch] for switch in both}
        has_old = any(self.actual[switch] != target for switch, target in targets.items())
        self.is_settled = not has_old and not self._silent
        is_time = self.may_remove and not self._silent and now_s - self._changed_s >= self._drain_s and now_s >= self.keep_until_s
        if has_old and is_time and self._send(targets, now_s):
            return dict(self._waiting)
        return {}

    def _send(self, targets: Mapping[int, State], now_s: float) -> bool:
        self._waiting = {
            switch: self.desired[switch] if target == self.desired[switch] else target
            for switch, target in targets.items()
            if self.actual[switch] != target
        }
        self._sent_s = now_s
        return bool(self._waiting)

    @property
    def is_added(self) -> bool:
        """Whether all switches have everything that is desired. They may have more."""
        return not self._waiting and not self._silent and all(
            self.actual[switch] is desired or staged(self.actual[switch], desired, 1 << 30) == self.actual[switch]
            for switch, desired in self.desired.items()
            if switch in self.actual
        )
