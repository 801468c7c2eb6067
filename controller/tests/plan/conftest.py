# SPDX-License-Identifier: Apache-2.0
"""How the tests of planners run."""

import tempfile

from hypothesis import configuration, settings

# Nothing is left in the repository; and what a loud machine delays is no fault.
configuration.set_hypothesis_home_dir(tempfile.mkdtemp(prefix="shunt-hypothesis-"))
settings.register_profile("here", database=None, deadline=None, max_examples=40, derandomize=True)
settings.load_profile("here")
