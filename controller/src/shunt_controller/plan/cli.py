# SPDX-License-Identifier: Apache-2.0
"""The command line ``shunt-controller plan COMMAND``. Exit codes: 0 success, 1 failure, 2 usage error."""

import argparse
import os
import sys
from collections.abc import Sequence

from shunt_controller.plan import (
    command_check,
    command_compare,
    command_fat_tree,
    command_keyflow,
    command_polka,
)
from shunt_controller.plan.errors import PlanError
from shunt_controller.run.command import run as run_applications

COMMANDS = (command_keyflow, command_polka, command_fat_tree, command_check, command_compare)


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Adds the planners to a parser."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add(commands)


def run(options: argparse.Namespace) -> int:
    """Runs the selected command. Returns the exit code."""
    try:
        options.run(options)
        sys.stdout.flush()
    except PlanError as error:
        print(f"{options.name}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader has closed the output, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of ``python -m shunt_controller.plan``."""
    parser = argparse.ArgumentParser(prog="plan", description="Plans for stateless forwarding.")
    add_commands(parser)
    return run(parser.parse_args(arguments))


def controller(arguments: Sequence[str] | None = None) -> int:
    """Entry point of ``shunt-controller``."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["run"]:
        # os-ken parses the options of applications.
        return run_applications(given[1:])
    parser = argparse.ArgumentParser(prog="shunt-controller", description="Tools for Shunt's controllers.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_commands(commands.add_parser("plan", help="plans for stateless forwarding: KeyFlow, PolKA, Tag-and-Forward"))
    commands.add_parser("run", help="run applications that control a network (see: shunt-controller run --help)")
    return run(parser.parse_args(given))
