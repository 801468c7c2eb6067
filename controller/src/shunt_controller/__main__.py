# SPDX-License-Identifier: Apache-2.0
"""``python -m shunt_controller``: the same as the command ``shunt-controller``."""

from shunt_controller.plan.cli import controller

if __name__ == "__main__":
    raise SystemExit(controller())
