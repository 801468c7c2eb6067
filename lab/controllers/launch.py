# SPDX-License-Identifier: Apache-2.0
"""Runs os-ken applications of this folder, since os-ken 4 no longer has osken-manager.

    python lab/controllers/launch.py learning [OPTION...]

The first argument is the application's module. The options are those of os-ken (--ofp-listen-host,
--ofp-tcp-listen-port) and of the application; --help lists them. The program ends on SIGTERM and Ctrl-C.
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
    """Exception that is never raised. With threads, os-ken treats any Exception in an application's handler
    as a request to end, and silently delivers no further events. With this class in its place, os-ken logs
    the exception and continues."""


def configure(options):
    """Reads the options. The defaults suit controllers and switches on one machine."""
    # OpenFlow without TLS is safe on loopback only.
    cfg.CONF.set_default("ofp_listen_host", "127.0.0.1")
    cfg.CONF.set_default("ofp_tcp_listen_port", 6653)
    # With threads, os-ken detects a closed connection only when it next sends something to the switch.
    cfg.CONF.set_default("echo_request_interval", ECHO_INTERVAL_S)
    cfg.CONF.set_default("maximum_unreplied_echo_requests", ECHOES_UNANSWERED)
    cfg.CONF(options, project="os_ken", default_config_files=[], default_config_dirs=[])


def main(arguments):
    """Runs one application until it is stopped."""
    if not arguments or arguments[0].startswith("-"):
        raise SystemExit("usage: launch.py APPLICATION [OPTION...]; applications are learning, marking and rest")
    application, *options = arguments
    # Threads are not joined at the end, because they wait on sockets.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    hub.TaskExit = TaskExit
    # Importing an application registers its options.
    importlib.import_module("os_ken.controller.controller")
    importlib.import_module(application)
    configure(options)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("os_ken.base").setLevel(logging.WARNING)
    AppManager.run_apps([application])


if __name__ == "__main__":
    main(sys.argv[1:])
