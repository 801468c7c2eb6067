# SPDX-License-Identifier: Apache-2.0
"""Planners of stateless forwarding, as pure functions and as a command (docs/planning.md).

:mod:`files` reads a network, and :mod:`routes` computes routes through it. :mod:`keyflow` and
:mod:`protection` plan the keys. :mod:`documents` writes plans, and :mod:`walk` models the data plane.
:mod:`fattree` recognizes a fat tree, :mod:`gates` numbers it for Tag-and-Forward, and :mod:`tags` models the
data plane of Tag-and-Forward.
"""
