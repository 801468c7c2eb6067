# SPDX-License-Identifier: Apache-2.0
"""The planners must run in a Python without os-ken, which only controllers need."""

import os
import pathlib
import subprocess
import sys

from networks import SAMPLES

import shunt_controller

SOURCES = pathlib.Path(shunt_controller.__file__).parents[1]
# Every import of os_ken raises ImportError, as without os-ken.
BLOCKED = "import sys; sys.modules['os_ken'] = None\n"


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a new interpreter without os-ken."""
    command = [sys.executable, "-c", BLOCKED + script, *arguments]
    environment = dict(os.environ, PYTHONPATH=str(SOURCES))
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_command_plans_and_checks(tmp_path):
    command = "import runpy; runpy.run_module('shunt_controller.plan', run_name='__main__')"
    out = str(tmp_path / "plan.json")
    planned = run(command, "keyflow", str(SAMPLES / "backbone.json"), "--protect", "--json", out)
    assert planned.returncode == 0, planned.stderr
    assert "110 keys" in planned.stdout
    checked = run(command, "check", out)
    assert checked.returncode == 0, checked.stderr


def test_every_module_of_the_planners_can_be_imported():
    script = """
import importlib, pkgutil, shunt_controller.plan
names = [module.name for module in pkgutil.iter_modules(shunt_controller.plan.__path__)]
assert len(names) > 20, names
for name in names:
    if name != "__main__":
        importlib.import_module("shunt_controller.plan." + name)
for name in ("planned", "places", "sections", "experimenter", "fields"):
    importlib.import_module("shunt_controller." + name)
"""
    imported = run(script)
    assert imported.returncode == 0, imported.stderr


def test_a_missing_os_ken_is_reported():
    imported = run("from shunt_controller import LowLatency")
    assert imported.returncode == 1
    assert "os_ken" in imported.stderr.splitlines()[-1]


def test_the_package_lists_exactly_its_names():
    assert set(shunt_controller.__all__) == set(shunt_controller._MODULES)
    for name in shunt_controller.__all__:
        assert getattr(shunt_controller, name) is not None
    assert set(shunt_controller.__all__) <= set(dir(shunt_controller))
