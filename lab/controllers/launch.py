# SPDX-License-Identifier: Apache-2.0
"""Runs os-ken applications of this folder: os-ken 4 has no osken-manager any more.

    python lab/controllers/launch.py learning [OPTION...]

The first argument names the application's module. The options are os-ken's (--ofp-listen-host, --ofp-tcp-listen-port)
and those of the application; --help lists them. Ends on SIGTERM and Ctrl-C.
"""

import importlib
import logging
import signal
import sys

from os_ken import cfg
from os_ken.base.app_manager import AppManager
from os_ken.lib import hub

ECHO_INTERVAL_S = 5
ECHOES_UNANSWERED = 2


class TaskExit(BaseException):
    """Nobody raises it. With threads, os-ken takes any Exception of an application's handler for the wish to end, and
    hears no more events without a word; with this in its place it logs the exception and goes on."""


def configure(options):
    """Reads the options, over defaults that suit one machine."""
    # OpenFlow without TLS belongs on loopback.
    cfg.CONF.set_default("ofp_listen_host", "127.0.0.1")
    cfg.CONF.set_default("ofp_tcp_listen_port", 6653)
    # With threads, os-ken notices that a switch has gone only when it has something to send to it.
    cfg.CONF.set_default("echo_request_interval", ECHO_INTERVAL_S)
    cfg.CONF.set_default("maximum_unreplied_echo_requests", ECHOES_UNANSWERED)
    cfg.CONF(options, project="os_ken", default_config_files=[], default_config_dirs=[])


def main(arguments):
    """Runs one application until it is told to end."""
    if not arguments or arguments[0].startswith("-"):
        raise SystemExit("usage: launch.py APPLICATION [OPTION...]; an application is learning, marking or rest")
    application, *options = arguments
    # An ended controller leaves its threads where they are: they wait on sockets, and hold nothing that must be saved.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    hub.TaskExit = TaskExit
    # Importing an application makes its options known.
    importlib.import_module("os_ken.controller.controller")
    importlib.import_module(application)
    configure(options)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("os_ken.base").setLevel(logging.WARNING)
    AppManager.run_apps([application])


if __name__ == "__main__":
    main(sys.argv[1:])
