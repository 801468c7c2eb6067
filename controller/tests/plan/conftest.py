# SPDX-License-Identifier: Apache-2.0
"""Settings of the planners' tests."""

import tempfile

from hypothesis import configuration, settings

# These settings keep tests from writing to the repository, and from failing on a slow machine.
configuration.set_hypothesis_home_dir(tempfile.mkdtemp(prefix="shunt-hypothesis-"))
settings.register_profile("here", database=None, deadline=None, max_examples=40, derandomize=True)
settings.load_profile("here")
