# SPDX-License-Identifier: Apache-2.0
"""Runs os-ken applications: ``shunt-controller run NAME... [OPTION...]``. os-ken and the applications define
the options, such as --ofp-listen-host and --ofp-tcp-listen-port; --help lists them. The program ends on
SIGTERM and Ctrl-C. Exit codes: 1 failure, 2 usage error."""

import importlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

from shunt_controller.run.applications import APPLICATIONS

ECHO_INTERVAL_S = 5
ECHOES_UNANSWERED = 2


class TaskExit(BaseException):
    """Exception that is never raised. With threads, os-ken treats any Exception in an application's handler
    as a request to end, and silently delivers no further events. With this class in its place, os-ken logs
    the exception and continues."""


def run(arguments: Sequence[str]) -> int:
    """Runs the applications that are named first, until the process is stopped."""
    names = []
    for argument in arguments:
        if argument.startswith("-"):
            break
        names.append(argument)
    options = list(arguments[len(names) :])
    unknown = [name for name in names if name not in APPLICATIONS]
    if unknown or not names:
        reason = f"there is no application {unknown[0]!r}" if unknown else "name at least one application"
        listed = "".join(f"\n  {name:<18} {application.help}" for name, application in APPLICATIONS.items())
        is_help = not names and options[:1] in (["-h"], ["--help"])
        text = f"usage: shunt-controller run APPLICATION... [OPTION...]\n\napplications:{listed}"
        if is_help:
            print(f"{text}\n\nshunt-controller run APPLICATION --help lists its options.")
            return 0
        print(f"{text}\n\nrun: {reason}", file=sys.stderr)
        return 2
    return _start([APPLICATIONS[name].module for name in names], names, options)


def _start(modules: list[str], names: list[str], options: list[str]) -> int:
    try:
        cfg = importlib.import_module("os_ken.cfg")
        hub: Any = importlib.import_module("os_ken.lib.hub")
    except ImportError:
        print("run: os-ken is not installed; install it with: pip install 'shunt-controller[os-ken]'", file=sys.stderr)
        return 1
    # Threads are not joined at the end, because they wait on sockets.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    hub.TaskExit = TaskExit
    # Importing these modules registers the options. os-ken's modules import each other, so the order matters.
    app_manager = importlib.import_module("os_ken.base.app_manager")
    importlib.import_module("os_ken.controller.controller")
    for module in modules:
        importlib.import_module(module)
    conf = cfg.CONF
    # OpenFlow without TLS is safe on loopback only.
    conf.set_default("ofp_listen_host", "127.0.0.1")
    conf.set_default("ofp_tcp_listen_port", 6653)
    # With threads, os-ken detects a dead connection only when it next sends something to the switch.
    conf.set_default("echo_request_interval", ECHO_INTERVAL_S)
    conf.set_default("maximum_unreplied_echo_requests", ECHOES_UNANSWERED)
    program = f"shunt-controller run {' '.join(names)}"
    try:
        conf(options, project="os_ken", prog=program, default_config_files=[], default_config_dirs=[])
    except SystemExit as error:
        # os-ken has printed the help or the reason.
        return 2 if error.code else 0
    problem = _unusable(conf.ofp_listen_host, conf.ofp_tcp_listen_port)
    if problem:
        print(f"run: cannot listen at {conf.ofp_listen_host}:{conf.ofp_tcp_listen_port}: {problem}", file=sys.stderr)
        return 1
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("os_ken.base").setLevel(logging.WARNING)
    app_manager.AppManager.run_apps(modules)
    return 0


def _unusable(host: str, port: int) -> str | None:
    """Returns why a controller cannot listen at an address. os-ken would log a traceback and run without
    switches."""
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)
    return None
