# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/protected.py. It must not pass if no packet tests the promises, and it must report missing
files."""

import argparse
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "bench"))
import protected  # pylint: disable=wrong-import-position


def reported(failure, delivered, lost):
    """Returns a report of `shunt sim` for packets that met a failure."""
    return {"met": [{"failure": failure, "delivered": delivered, "lost": lost}]}


class Met(unittest.TestCase):
    """Tests of how packets at protected hops are counted."""

    def test_packets_are_counted(self):
        """Delivered packets and lost packets both count."""
        self.assertEqual(protected.met(reported("protected hop, detected", 5, 2), True), (7, 2))

    def test_promises_that_no_packet_meets_are_not_tested(self):
        """The check would have no effect if `shunt sim` reported the packets under another name."""
        for found in (reported("guarded hop, detected", 5, 0), reported("protected hop, detected", 0, 0), {"met": []}):
            with self.assertRaisesRegex(protected.Failed, "hops are guarded, but no packet met"):
                protected.met(found, True)

    def test_plans_without_promises_need_no_packets(self):
        """The plan of a tree makes no promises."""
        self.assertEqual(protected.met({"met": []}, False), (0, 0))


class Lacks(unittest.TestCase):
    """Tests of missing files and programs."""

    def test_a_missing_folder_of_graphs_is_reported(self):
        """Otherwise nobody would notice that only the odd graphs run."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            missing = os.path.join(folder, "missing")
            options = argparse.Namespace(graphs=missing, quick=False, odd=1, seed=1)
            self.assertEqual(len(list(protected.cases(options, folder))), 1)
            self.assertIn("there are no graphs in " + missing, said.getvalue())

    def test_a_missing_python_is_reported_with_the_command_that_installs_it(self):
        """The message must not suggest the command that has just failed."""
        for script in ("protected.py", "networks.py"):
            environment = dict(os.environ, PLAN_PYTHON="/missing/python", SHUNT="/missing/shunt")
            # The first case needs no graph file.
            command = [sys.executable, os.path.join(ROOT, "bench", script), *(["--quick"] if script == "protected.py" else [])]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn("/missing/python is missing: run scripts/setup.sh networks", done.stderr)


if __name__ == "__main__":
    unittest.main()
