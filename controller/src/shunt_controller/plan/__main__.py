# SPDX-License-Identifier: Apache-2.0
"""``python -m shunt_controller.plan``."""

import sys

from shunt_controller.plan.cli import main

sys.exit(main())
