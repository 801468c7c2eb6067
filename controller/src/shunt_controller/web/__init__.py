# SPDX-License-Identifier: Apache-2.0
"""Files of the status page (shunt_controller.apps.status)."""
