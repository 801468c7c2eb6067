# SPDX-License-Identifier: Apache-2.0
"""Summarizes the results of the Ryu switch test tool by category, and its failed cases by the suite's
description of the failure.

Reads the JSON lines of ryu_runner.py on stdin.

ryu_summary.py [AT_LEAST]    exits 1 if fewer cases passed
"""

import collections
import json
import re
import sys

# Maximum number of cases listed per cause and file.
TESTS_MAX = 3


def category(file):
    return "set_field" if "SET_FIELD" in file else file.split("/")[0]


def cause(detail):
    """Returns the suite's description without the values that differ between cases."""
    return re.sub(r"[({\[](?!type=).*|\d+(\.\d+)?", "", detail).strip(" :") or "no reason given"


def main():
    at_least = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    results = sorted((json.loads(line) for line in sys.stdin), key=lambda r: (r["file"], r["test"]))
    table = collections.defaultdict(lambda: [0, 0, 0.0])
    for result in results:
        for row in (category(result["file"]), "all"):
            table[row][0] += result["ok"]
            table[row][1] += 1
            table[row][2] += result["seconds"]
    print(f"{'category':12}{'passed':>8}{'failed':>8}{'cases':>8}{'seconds':>10}")
    for row in sorted(table, key=lambda row: (row == "all", row)):
        passed, cases, seconds = table[row]
        print(f"{row:12}{passed:8}{cases - passed:8}{cases:8}{seconds:10.1f}")

    causes = collections.defaultdict(lambda: collections.defaultdict(list))
    for result in results:
        if not result["ok"]:
            causes[cause(result["detail"])][result["file"]].append(result)
    for text, files in sorted(causes.items(), key=lambda c: -sum(map(len, c[1].values()))):
        print(f"\n{sum(map(len, files.values()))} failed: {text}")
        for file, failed in files.items():
            print(f"  {file}: {len(failed)}")
            for result in failed[:TESTS_MAX]:
                print(f"    {result['test'][:150]}")
                print(f"      {result['detail'][:300]}")

    passed = table["all"][0]
    if passed < at_least:
        sys.exit(f"{passed} cases passed, fewer than the required {at_least}")


if __name__ == "__main__":
    main()
