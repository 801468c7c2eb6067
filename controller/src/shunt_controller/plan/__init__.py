# SPDX-License-Identifier: Apache-2.0
"""Planners of stateless forwarding, as pure functions and as a command (docs/planning.md).

:mod:`files` reads a network, :mod:`routes` has routes through it, :mod:`keyflow` and :mod:`protection` plan it, :mod:`documents`
writes plans, :mod:`walk` is the data plane that they are made for. :mod:`fattree` finds a fat tree, :mod:`gates` numbers it for
Tag-and-Forward, :mod:`tags` is the data plane of that.
"""
