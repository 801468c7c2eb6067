# SPDX-License-Identifier: Apache-2.0
"""The status page: what the server answers, and in headless Chromium what the page shows."""

import http.client
import json
import pathlib
import shutil
import subprocess
import threading

import pytest
from os_ken.base.app_manager import AppManager  # noqa: F401 - os-ken's modules import each other; this one is first.

from shunt_controller.apps.status import FORMAT, VERSION, Server, of_topology
from shunt_controller.live.topology import Host, Link, Port, Topology

LIBRARY = pathlib.Path(__file__).parents[3] / "target/tools/web/node_modules/cytoscape/dist/cytoscape.min.js"
EVIL = "<img src=x onerror=document.title='broken'>"
NETWORK = Topology(
    {1: frozenset({1, 2}), 2: frozenset({1, 2})},
    frozenset({Link.of(Port(1, 1), Port(2, 1))}),
    (Host("02:00:00:00:00:01", Port(1, 2), (EVIL,)),),
)
STATUS = {
    "format": FORMAT,
    "version": VERSION,
    "topology": of_topology(NETWORK),
    "applications": {"x": {"kind": "x", "problems": [EVIL], "switches": {f"{1:016x}": {"layer": "edge", "state": "as planned", "problem": EVIL}}}},
}


def served(library: pathlib.Path, status=lambda: STATUS):
    server = Server(("127.0.0.1", 0), status, library)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture
def server():
    made = served(LIBRARY)
    yield made
    made.shutdown()
    made.server_close()


def get(server: Server, path: str, host: str | None = None) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    connection.request("GET", path, headers={"Host": host} if host else {})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_the_state_is_json(server):
    response, body = get(server, "/v1/status")
    assert response.status == 200 and response.getheader("Content-Type") == "application/json"
    found = json.loads(body)
    assert found == STATUS
    assert found["topology"]["links"] == [{"a": {"switch": "0000000000000001", "port": 1}, "b": {"switch": "0000000000000002", "port": 1}}]


def test_only_loopback_names_are_answered(server):
    for name in ("localhost", "localhost:80", "127.0.0.1:8653", "[::1]:8653", "[::1]"):
        assert get(server, "/v1/status", name)[0].status == 200, name
    for name in ("example.com", "localhost.example.com:80", "192.0.2.1", "[2001:db8::1]:80", "1"):
        assert get(server, "/v1/status", name)[0].status == 403, name


def test_pages_and_errors(server):
    for path in ("/", "/page.js", "/page.css"):
        response, body = get(server, path)
        assert response.status == 200 and b"SPDX" in body and "default-src 'self'" in response.getheader("Content-Security-Policy")
    for path in ("/../pyproject.toml", "/v1/status/", "/index.html%00", "//etc/passwd"):
        assert get(server, path)[0].status == 404


def test_without_the_library_the_page_says_so(tmp_path):
    server = served(tmp_path / "none.js")
    assert get(server, "/cytoscape.js")[0].status == 404
    server.shutdown()
    server.server_close()


def test_an_internal_error_is_reported():
    def fails():
        raise RuntimeError("secret")

    server = served(LIBRARY, fails)
    response, body = get(server, "/v1/status")
    assert response.status == 500 and b"secret" not in body
    server.shutdown()
    server.server_close()


def test_the_page_draws_the_network_and_texts_do_not_become_html(server, tmp_path):
    assert shutil.which("chromium") and LIBRARY.exists(), "run scripts/setup.sh test, which installs chromium and Cytoscape.js"
    host, port = server.server_address[:2]
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--virtual-time-budget=5000", "--dump-dom"]
    run = subprocess.run([*command, f"http://{host}:{port}/"], capture_output=True, text=True, timeout=120, check=True)
    dom = run.stdout
    # Two switches and a host; a link, and the cable of the host.
    assert 'data-drawn="3 2"' in dom
    assert "2 switches, 1 links, 1 hosts; applications: x" in dom
    assert "<title>Shunt: network</title>" in dom
    assert dom.count("&lt;img src=x") == 3 and "<img" not in dom
    assert "<canvas" in dom
