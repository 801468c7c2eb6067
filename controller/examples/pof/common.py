# SPDX-License-Identifier: Apache-2.0
"""What the POF applications of this folder share: options, settings from a JSON file, and their values."""

import argparse
import asyncio
import ipaddress
import json
import logging
import re
from collections.abc import Callable
from typing import Any

from shunt_controller import pof

Settings = dict[str, Any]
MAC_BITS = 48


class SettingsError(Exception):
    """The settings are invalid."""


def need(condition: bool, problem: str) -> None:
    """Raises SettingsError unless the condition holds."""
    if not condition:
        raise SettingsError(problem)


def check_keys(item: Any, what: str, required: str, optional: str = "") -> Settings:
    """Returns an object of the settings after checking the names in it."""
    need(isinstance(item, dict), f"{what} is not an object")
    known = required.split() + optional.split()
    missing = [name for name in required.split() if name not in item]
    unknown = [name for name in item if name not in known]
    need(not missing, f"{what} lacks `{', '.join(missing)}`")
    need(not unknown, f"{what} has the unknown key `{', '.join(unknown)}`; the keys are {', '.join(known)}")
    return dict(item)


def listed(settings: Settings, key: str, required: str, optional: str = "") -> list[Settings]:
    """Returns a list of objects of the settings."""
    items = settings.get(key, [])
    need(isinstance(items, list), f"`{key}` is not a list")
    return [check_keys(item, f"item {number} of `{key}`", required, optional) for number, item in enumerate(items, 1)]


def mac(text: str) -> int:
    """Returns a MAC address as a number."""
    need(re.fullmatch("[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", str(text)) is not None, f"`{text}` is not a MAC address")
    return int(text.replace(":", ""), 16)


def mac_prefix(text: str) -> tuple[int, int]:
    """Returns a MAC address, possibly with a prefix length after `/`, as a number and a mask."""
    address, _, length = str(text).partition("/")
    bits = number(length, 1, MAC_BITS, "prefix length of a MAC address") if length else MAC_BITS
    mask = (1 << MAC_BITS) - (1 << MAC_BITS - bits)
    return mac(address) & mask, mask


def network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Returns an IP network."""
    need(isinstance(text, str), f"`{text}` is not an IP network")
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def number(value: Any, least: int, most: int, what: str) -> int:
    """Returns a number, given as one or as text such as `0x88dc`, within limits."""
    is_number = isinstance(value, int | str) and not isinstance(value, bool)
    try:
        need(is_number, f"{what} `{value}` is not a whole number")
        made = int(str(value), 0)
    except ValueError:
        raise SettingsError(f"{what} `{value}` is not a whole number") from None
    need(least <= made <= most, f"{what} {value}; values are {least} to {most}")
    return made


def port(value: Any) -> int:
    """Returns the number of a port."""
    return number(value, 1, 0xFFFF, "port")


def ingress_port(value: Any) -> int:
    """Returns the number of a port that a match on POF's metadata can name."""
    return number(value, 1, 0xFF, "ingress port")


def flag(item: Settings, key: str, default: bool) -> bool:
    """Returns a value that is true or false."""
    value = item.get(key, default)
    need(isinstance(value, bool), f"`{key}` is true or false")
    return bool(value)


def permits(value: Any) -> bool:
    """Returns whether `permit` or `deny` permits."""
    need(value in ("permit", "deny"), f"action `{value}`; actions are permit and deny")
    return bool(value == "permit")


Build = Callable[[Settings, pof.Target], pof.Program]


class Installer(pof.Application):
    """Installs a program in each switch that connects."""

    def __init__(self, settings: Settings, build: Build) -> None:
        self.settings = settings
        self.build = build
        # Errors in the settings are reported at the start, not when a switch connects.
        build(settings, pof.Target())

    def settings_of(self, switch: pof.Switch) -> Settings:
        """Returns the settings for a switch."""
        return self.settings

    async def connected(self, switch: pof.Switch) -> None:
        """Installs the program."""
        try:
            program = self.build(self.settings_of(switch), switch.target)
            await switch.install(program)
        except pof.RefusedError as error:
            await self._undo(switch, program, error)
            return
        except (SettingsError, pof.ProgramError) as error:
            print(f"{switch}: not installed: {error}", flush=True)
            return
        except pof.EncodeError as error:
            # The messages before this one were sent.
            await self._undo(switch, program, error)
            return
        mark = "" if switch.target.low_latency else "; the switch has no low-latency flag"
        print(f"{switch}: installed {len(program.tables)} tables and {len(program.entries)} entries{mark}", flush=True)

    async def _undo(self, switch: pof.Switch, program: pof.Program, reason: pof.PofError) -> None:
        """Deletes a program that is installed in part."""
        try:
            await switch.uninstall(program)
        except pof.RefusedError as error:
            print(f"{switch}: installed in part: {reason}; not deleted: {error}", flush=True)
        else:
            print(f"{switch}: not installed: {reason}", flush=True)

    def port_status(self, switch: pof.Switch, message: Any) -> None:
        """Reports a port that changed."""
        print(f"{switch}: port {message.port.number} ({message.port.name}) changed", flush=True)

    def disconnected(self, switch: pof.Switch) -> None:
        """Reports the end of a connection."""
        print(f"{switch}: disconnected", flush=True)


def main(doc: str, make: Callable[[Settings], pof.Application]) -> None:
    """Runs an application until it is interrupted."""
    summary, _, rest = doc.partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", help="JSON file with the settings that are described below")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    parser.add_argument("--port", type=int, default=6633, help="port to listen at (default: %(default)s)")
    names = [dialect.value for dialect in pof.Dialect]
    parser.add_argument("--dialect", choices=names, default=names[1], help="dialect of POF (default: %(default)s)")
    given = parser.parse_args()
    logging.basicConfig(format="%(levelname)s: %(message)s")
    try:
        with open(given.settings, encoding="utf-8") as file:
            settings = json.load(file)
        need(isinstance(settings, dict), "the file has no object")
        application = make(settings)
    except (OSError, ValueError, SettingsError, pof.ProgramError) as error:
        raise SystemExit(f"{parser.prog}: {given.settings}: {error}") from None
    try:
        asyncio.run(_serve(application, given))
    except OSError as error:
        raise SystemExit(f"{parser.prog}: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


async def _serve(application: pof.Application, given: argparse.Namespace) -> None:
    dialect = pof.Dialect(given.dialect)
    async with pof.Controller(application, host=given.host, port=given.port, dialect=dialect) as controller:
        print(f"ready at {given.host}:{controller.port}, dialect {dialect.value}", flush=True)
        await controller.forever()
