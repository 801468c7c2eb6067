# SPDX-License-Identifier: Apache-2.0
"""What the programs of experiments share: their options, the CPUs that they need, and how they end."""

import argparse
import contextlib
import os
import sys

from report import ROOT
from rooms import Failed

# Python with os-ken, for planners and controllers, and its environment variables.
PYTHON = os.environ.get("PLAN_PYTHON", os.path.join(ROOT, "target/tools/os-ken/bin/python3"))
PLANNING = {"PYTHONPATH": os.path.join(ROOT, "controller/src")}


def name():
    """Returns the path of the running program in the repository."""
    return os.path.relpath(os.path.abspath(sys.argv[0]), ROOT)


def parser_of(text, rounds, of):
    """Returns a parser with the option `--rounds` and its default. `text` is the documentation of the program, and
    `of` states what is repeated."""
    parser = argparse.ArgumentParser(description=text.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=positive, default=rounds, help="%s (%d)" % (of, rounds))
    return parser


def positive(text):
    """Returns the positive integer that a text states."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a positive integer, not %r" % text)
    return int(text)


def add_first(parser):
    """Adds the option `--first`."""
    parser.add_argument("--first", action="store_true", help="take a higher scheduling priority than other programs, for machines that are not idle")


def two_cpus():
    """Returns two CPUs: for hosts and controllers, and for switches. Ends the program if there is only one."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        sys.exit("%s: this needs two CPUs, but the machine has one" % name())
    return cpus[:2]


@contextlib.contextmanager
def ending(advice="run make first"):
    """Ends the program with a message if a step fails, and with exit code 130 after Ctrl-C. If a file is missing,
    the message has the advice."""
    try:
        yield
    except Failed as failed:
        sys.exit("%s: %s" % (name(), failed))
    except FileNotFoundError as error:
        sys.exit("%s: %s is missing: %s" % (name(), error.filename, advice))
    except KeyboardInterrupt:
        sys.exit(130)
