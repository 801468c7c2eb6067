# SPDX-License-Identifier: Apache-2.0
"""Tests how the demo's replay matches received with sent frames, and which frames it counts as lost."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from demo_replay import Replay  # pylint: disable=wrong-import-position


def replay_of(*frames):
    """Returns a replay with these frames in flight. They were sent one microsecond apart, the first at time
    0."""
    replay = Replay(None, None)
    replay.under_way.extend((frame, 1_000 * place) for place, frame in enumerate(frames))
    return replay


class Matching(unittest.TestCase):
    """Frames are identified by their bytes and their order."""

    def test_frames_before_the_one_that_arrives_are_lost(self):
        """Two of four frames are lost."""
        replay = replay_of(b"a", b"b", b"c", b"d")
        replay.take(b"c", 7_000)
        self.assertEqual((replay.tally.lost, replay.tally.times_us), (2, [5.0]))
        self.assertEqual(list(replay.under_way), [(b"d", 3_000)])

    def test_of_equal_frames_the_oldest_has_arrived(self):
        """Both frames arrive."""
        replay = replay_of(b"a", b"a")
        replay.take(b"a", 1_000)
        replay.take(b"a", 3_000)
        self.assertEqual((replay.tally.lost, replay.tally.times_us), (0, [1.0, 2.0]))

    def test_unknown_frames_are_not_counted(self):
        """The frames in flight are not lost, either."""
        replay = replay_of(b"a")
        replay.take(b"b", 0)
        self.assertEqual((replay.tally.lost, replay.tally.times_us, len(replay.under_way)), (0, [], 1))

    def test_late_frames_are_lost(self):
        """Only frames sent before the limit are lost."""
        replay = replay_of(b"a", b"b", b"c")
        replay.give_up(2_000)
        self.assertEqual((replay.tally.lost, list(replay.under_way)), (2, [(b"c", 2_000)]))

    def test_a_row_has_the_nearest_rank(self):
        """The p99 of a hundred values is the 99th value, not the maximum."""
        replay = replay_of()
        replay.tally.times_us = [float(number) for number in range(100, 0, -1)]
        self.assertEqual(replay.tally.row("all").split(), ["all", "100", "0", "50", "99", "100"])


if __name__ == "__main__":
    unittest.main()
