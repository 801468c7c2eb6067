#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command while there are so many more hugepages of 2 MiB: `pages.py 1200 libraries --quick`.

Where the system has none, or this may not set them aside, the command runs without, and says what that means.
"""

import subprocess
import sys

from machine import Failed, Pages, end_in_order


def main():
    """The command's exit code."""
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        sys.exit("usage: pages.py COUNT COMMAND...")
    end_in_order()
    command = sys.argv[2:]
    try:
        with Pages(int(sys.argv[1])):
            sys.exit(subprocess.run(command, check=False).returncode)
    except (Failed, OSError) as failed:
        print("bench/peers/pages.py: %s" % failed, file=sys.stderr)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
