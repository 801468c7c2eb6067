# SPDX-License-Identifier: Apache-2.0
"""Shunt's OpenFlow 1.3 extensions for os-ken applications (docs/openflow-extensions.md).

Call :func:`register` once before switches connect. os-ken then accepts these classes in its lists of
instructions and actions, and returns them in statistics. Messages of stateless forwarding (:mod:`.stateless`,
:mod:`.sections`) need no registration.

Each name of this package is imported when it is first used. The planners (:mod:`.plan`) are part of the
package, but do not need os-ken.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shunt_controller.actions import (
        AddField,
        CalculateChecksum,
        CopyField,
        CutFront,
        DeleteField,
        ModifyField,
        MoveBase,
        PopKey,
        PopTf,
        PushKey,
        PushPolka,
        PushTf,
        PushTfWide,
    )
    from shunt_controller.experimenter import EXPERIMENTER
    from shunt_controller.fields import INDEX, slice_name
    from shunt_controller.instructions import GotoDirect, LowLatency
    from shunt_controller.registration import register
    from shunt_controller.stateless import StatelessMod, StatelessReply, StatelessRequest

__all__ = [
    "EXPERIMENTER",
    "INDEX",
    "AddField",
    "CalculateChecksum",
    "CopyField",
    "CutFront",
    "DeleteField",
    "GotoDirect",
    "LowLatency",
    "ModifyField",
    "MoveBase",
    "PopKey",
    "PopTf",
    "PushKey",
    "PushPolka",
    "PushTf",
    "PushTfWide",
    "StatelessMod",
    "StatelessReply",
    "StatelessRequest",
    "register",
    "slice_name",
]

_MODULES = {
    "AddField": "actions",
    "CalculateChecksum": "actions",
    "CopyField": "actions",
    "CutFront": "actions",
    "DeleteField": "actions",
    "EXPERIMENTER": "experimenter",
    "GotoDirect": "instructions",
    "INDEX": "fields",
    "LowLatency": "instructions",
    "ModifyField": "actions",
    "MoveBase": "actions",
    "PopKey": "actions",
    "PopTf": "actions",
    "PushKey": "actions",
    "PushPolka": "actions",
    "PushTf": "actions",
    "PushTfWide": "actions",
    "StatelessMod": "stateless",
    "StatelessReply": "stateless",
    "StatelessRequest": "stateless",
    "register": "registration",
    "slice_name": "fields",
}


def __getattr__(name: str) -> Any:
    """Imports the module of a name when the name is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Returns all names, whether imported or not."""
    return sorted(set(globals()) | set(__all__))
