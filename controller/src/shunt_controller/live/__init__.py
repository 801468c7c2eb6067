# SPDX-License-Identifier: Apache-2.0
"""A running network: what a controller has discovered of it, and what it installs. Modules of this package do
no I/O and read no clock; the os-ken applications of :mod:`shunt_controller.apps` call them."""
