# SPDX-License-Identifier: Apache-2.0
"""os-ken applications that control a network. ``shunt-controller run`` runs them, and other os-ken applications
can import them."""
