# SPDX-License-Identifier: Apache-2.0
"""Settings of the planners' tests."""

import tempfile

from hypothesis import configuration, settings

# With these settings, nothing is written to the repository, and a slow machine does not make tests fail.
configuration.set_hypothesis_home_dir(tempfile.mkdtemp(prefix="shunt-hypothesis-"))
settings.register_profile("here", database=None, deadline=None, max_examples=40, derandomize=True)
settings.load_profile("here")
