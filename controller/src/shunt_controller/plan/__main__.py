# SPDX-License-Identifier: Apache-2.0
"""Entry point of ``python -m shunt_controller.plan``."""

import sys

from shunt_controller.plan.cli import main

sys.exit(main())
