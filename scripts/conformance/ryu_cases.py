# SPDX-License-Identifier: Apache-2.0
"""Selects case files of the Ryu switch test tool and divides them into lists of about the same running time.

ryu_cases.py FOLDER SHARDS ONLY SKIP THROUGHPUT    writes FOLDER/0/cases, ...; prints the used shards

ONLY and SKIP are regular expressions for a file's path below the suite's OpenFlow 1.3 cases. THROUGHPUT is
yes or no.
"""

import importlib.util
import json
import pathlib
import re
import sys

# Seconds per case. A throughput case sends for 30 s, a table-miss case waits for 1 s.
THROUGHPUT_S, MISS_S, PLAIN_S = 31, 1.1, 0.1


def seconds(path):
    """Returns the running time of a case file, and whether it measures throughput."""
    total, measures = 0, False
    for case in json.loads(path.read_text(encoding="utf-8")):
        for step in case["tests"] if isinstance(case, dict) else []:
            throughput = "throughput" in json.dumps(step.get("egress", ""))
            measures |= throughput
            total += THROUGHPUT_S if throughput else MISS_S if "table-miss" in step else PLAIN_S
    return total, measures


def main():
    folder, shards, only, skip, throughput = sys.argv[1:]
    package = importlib.util.find_spec("os_ken")
    cases = pathlib.Path(package.submodule_search_locations[0]) / "tests/switch/of13"
    chosen = []
    for path in sorted(cases.rglob("*.json")):
        name = str(path.relative_to(cases))
        if re.search(only, name) is None or (skip and re.search(skip, name)):
            continue
        takes, measures = seconds(path)
        if throughput == "yes" or not measures:
            chosen.append((takes, str(path)))
    if not chosen:
        sys.exit(f"no path of a case file matches; case files are below {cases}")

    lists = [[] for _ in range(min(int(shards), len(chosen)))]
    loads = [0.0] * len(lists)
    for takes, path in sorted(chosen, key=lambda one: (-one[0], one[1])):
        at = loads.index(min(loads))
        loads[at] += takes
        lists[at].append(path)
    for number, paths in enumerate(lists):
        shard = pathlib.Path(folder) / str(number)
        shard.mkdir()
        (shard / "cases").write_text("".join(f"{path}\n" for path in sorted(paths)), encoding="utf-8")
    print(len(lists))


if __name__ == "__main__":
    main()
