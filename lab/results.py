# SPDX-License-Identifier: Apache-2.0
"""Values of experiments as CSV files in target/report/experiments. The first lines are comments with the CPU, the
date, the command, and the load of the machine at the beginning (average of the last minute)."""

import csv
import json
import os
import platform
import shlex
import sys
import time

from report import ROOT

FOLDER = os.path.join(ROOT, "target/report/experiments")


def cpu():
    """Returns the name of the CPU."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def about():
    """Returns the CPU, the date, the command, and the load of the machine."""
    command = shlex.join([os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]])
    return {"cpu": cpu(), "date": time.strftime("%Y-%m-%d", time.gmtime()), "command": command, "load": "%.1f" % os.getloadavg()[0]}


def write_about(report):
    """Writes these values beside a report file. Called at the beginning of an experiment."""
    os.makedirs(os.path.dirname(os.path.abspath(report)), exist_ok=True)
    with open(report + ".about", "w", encoding="utf-8") as file:
        json.dump(about(), file)


class Results:
    """Writes a CSV file. Rows appear as they are measured; the file appears under its name when all are."""

    def __init__(self, name, columns, folder=FOLDER):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, name + ".csv")
        self.columns = columns
        self._file = open(self.path + ".new", "w", encoding="utf-8", newline="")  # noqa: SIM115
        for key, value in about().items():
            self._file.write("# %s: %s\n" % (key, value))
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(columns)

    def add(self, *values):
        """Adds a row."""
        assert len(values) == len(self.columns), values
        self._writer.writerow(["%.6g" % value if isinstance(value, float) else value for value in values])
        self._file.flush()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self._file.close()
        if kind is None:
            os.replace(self.path + ".new", self.path)
            print("written: %s" % os.path.relpath(self.path))
        else:
            os.unlink(self.path + ".new")


def read(name, folder=FOLDER):
    """Returns the comments and the rows of a CSV file, or None if it does not exist."""
    path = os.path.join(folder, name + ".csv")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8", newline="") as file:
        lines = file.read().splitlines()
    comments = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    return comments, list(csv.DictReader(line for line in lines if not line.startswith("# ")))
