# SPDX-License-Identifier: Apache-2.0
"""Serves the state of the network on loopback: as JSON at /v1/status, and as a page that draws it at /.

    shunt-controller run tag-and-forward status

docs/controllers.md describes the JSON. The page needs the library Cytoscape.js, which `scripts/setup.sh
lab` installs. Without it, the page shows tables only. Other applications take part by a method `status`
that returns a JSON value; it is called by another thread.
"""

import http.server
import ipaddress
import json
import logging
import pathlib
import threading
from importlib import resources
from typing import Any

from os_ken import cfg
from os_ken.base.app_manager import AppManager, OSKenApp
from os_ken.ofproto import ofproto_v1_3 as ofp

from shunt_controller.apps.discovery import Discovery
from shunt_controller.live.topology import Port, Topology, switch_name

FORMAT, VERSION = "shunt-status", 1
LIBRARY = "target/tools/web/node_modules/cytoscape/dist/cytoscape.min.js"
REQUEST_S = 10
"""Time in which a client must send its request."""

cfg.CONF.register_cli_opts(
    [
        cfg.StrOpt("status-host", default="127.0.0.1", help="the loopback address of the status page"),
        cfg.IntOpt("status-port", default=8653, min=0, max=65535, help="the TCP port of the status page; 0 for any free port"),
        cfg.StrOpt("cytoscape", default=LIBRARY, help="the file cytoscape.min.js"),
    ]
)

_FILES = {"/": ("index.html", "text/html"), "/page.js": ("page.js", "text/javascript"), "/page.css": ("page.css", "text/css")}


class Status(OSKenApp):  # type: ignore[misc]
    """Serves the state of all applications."""

    OFP_VERSIONS = [ofp.OFP_VERSION]
    _CONTEXTS = {"discovery": Discovery}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.log = logging.getLogger("status")
        self._discovery: Discovery = kwargs["discovery"]
        host, port = cfg.CONF.status_host, cfg.CONF.status_port
        try:
            is_loopback = ipaddress.ip_address(host).is_loopback
        except ValueError:
            is_loopback = False
        if not is_loopback:
            raise SystemExit(f"run: --status-host is {host}; it must be a loopback address, because the page has no access control")
        try:
            self.server = Server((host, port), self.status_of_all, pathlib.Path(cfg.CONF.cytoscape))
        except OSError as error:
            raise SystemExit(f"run: the status page cannot listen at {host}:{port}: {error.strerror}") from error

    def start(self) -> Any:
        """Starts the server. Called by os-ken."""
        super().start()
        self.log.info("the status page is at http://%s:%d/", *self.server.server_address[:2])
        threading.Thread(target=self.server.serve_forever, name="status", daemon=True).start()

    def status_of_all(self) -> dict[str, Any]:
        """Returns the topology and the states of all applications."""
        applications = {}
        for app in list(AppManager.get_instance().applications.values()):
            if app is not self and callable(getattr(app, "status", None)):
                found = app.status()
                applications[found["kind"]] = found
        mastership, topology = self._discovery.mastership, of_topology(self._discovery.topology)
        pair = None if mastership is None else mastership.status()
        return {"format": FORMAT, "version": VERSION, "mastership": pair, "topology": topology, "applications": applications}


def of_topology(topology: Topology) -> dict[str, Any]:
    """Returns a topology as a JSON value."""

    def end(port: Port) -> dict[str, Any]:
        return {"switch": switch_name(port.switch), "port": port.number}

    return {
        "switches": [{"id": switch_name(switch), "ports": sorted(ports)} for switch, ports in sorted(topology.switches.items())],
        "links": [{"a": end(link.a), "b": end(link.b)} for link in sorted(topology.links)],
        "hosts": [{"mac": host.mac, "at": end(host.at), "addresses": list(host.addresses)} for host in topology.hosts],
    }


class Server(http.server.ThreadingHTTPServer):
    """Server of the page. `status` returns the JSON value; `library` is the file of Cytoscape.js."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], status: Any, library: pathlib.Path) -> None:
        super().__init__(address, _Handler)
        self.status, self.library = status, library


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    timeout = REQUEST_S

    def do_GET(self) -> None:  # noqa: N802 - the name is that of the base class.
        """Answers a request."""
        if not self._is_local():
            self._send(403, "text/plain", b"the name of the host must be localhost or a loopback address\n")
        elif self.path == "/v1/status":
            try:
                body = json.dumps(self.server.status()).encode()
            except Exception:
                logging.getLogger("status").exception("an internal error of the status page")
                self._send(500, "text/plain", b"an internal error; the log has its details\n")
                return
            self._send(200, "application/json", body)
        elif self.path == "/cytoscape.js":
            try:
                self._send(200, "text/javascript", self.server.library.read_bytes())
            except OSError:
                self._send(404, "text/plain", b"Cytoscape.js is not installed: run scripts/setup.sh lab\n")
        elif self.path in _FILES:
            name, kind = _FILES[self.path]
            self._send(200, f"{kind}; charset=utf-8", resources.files("shunt_controller.web").joinpath(name).read_bytes())
        else:
            self._send(404, "text/plain", b"there is no such page\n")

    def _is_local(self) -> bool:
        """Returns whether the request names this host by a loopback name. Pages of other sites that resolve
        their own name to a loopback address must not read the state."""
        name = self.headers.get("Host", "").rsplit(":", 1)[0] if not self.headers.get("Host", "").endswith("]") else self.headers["Host"]
        try:
            return name == "localhost" or ipaddress.ip_address(name.strip("[]")).is_loopback
        except ValueError:
            return False

    def _send(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        # Cytoscape.js sets styles of its canvas elements.
        self.send_header("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Suppresses the log of requests."""
