# SPDX-License-Identifier: Apache-2.0
"""Shunt's OpenFlow 1.3 extensions for os-ken applications (docs/openflow-extensions.md).

Call :func:`register` once, before switches connect; then the classes here go into os-ken's lists of instructions and
actions, and come out of statistics. Messages of the stateless lane (:mod:`.lane`, :mod:`.sections`) need no registration.
"""

from shunt_controller.actions import PopKey, PopTf, PushKey, PushPolka, PushTf, PushTfWide
from shunt_controller.experimenter import EXPERIMENTER
from shunt_controller.fields import INDEX, slice_name
from shunt_controller.instructions import GotoDirect, LowLatency
from shunt_controller.lane import LaneMod, LaneReply, LaneRequest
from shunt_controller.registration import register

__all__ = [
    "EXPERIMENTER",
    "INDEX",
    "GotoDirect",
    "LaneMod",
    "LaneReply",
    "LaneRequest",
    "LowLatency",
    "PopKey",
    "PopTf",
    "PushKey",
    "PushPolka",
    "PushTf",
    "PushTfWide",
    "register",
    "slice_name",
]
