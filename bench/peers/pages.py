#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command with additional 2 MiB hugepages: `pages.py 1200 libraries --quick`.

If the system has no hugepages, or this process may not allocate them, a message is printed and the command
runs without them.
"""

import subprocess
import sys

from machine import Failed, Pages, end_in_order


def main():
    """Returns the exit code of the command."""
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
