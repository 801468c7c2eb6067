# SPDX-License-Identifier: Apache-2.0
"""The client of etcd against a server that fails in all ways. scripts/tests/test_controller_pair.sh uses etcd."""

import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from shunt_controller.redundancy.etcd import Etcd, Found, StoreError

READ = {"header": {"revision": "7"}, "kvs": [{"key": "aw==", "mod_revision": "5", "value": "dg=="}], "count": "1"}
DONE = {"header": {"revision": "8"}, "succeeded": True, "responses": [{"response_put": {}}]}
NOT_DONE = {"header": {"revision": "8"}, "responses": [{"response_range": READ}]}


class Server(http.server.ThreadingHTTPServer):
    """A server with an answer to all requests."""

    daemon_threads = True
    answer: tuple[int, bytes] = (200, b"{}")
    delay_s = 0.0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, dict]] = []

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers requests."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answers a request."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, json.loads(body)))
        time.sleep(self.server.delay_s)
        code, data = self.server.answer
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Suppresses the log."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Returns a server that runs during the test."""
    with Server() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def test_keys_are_read(server):
    server.answer = 200, json.dumps(READ).encode()
    assert Etcd([server.url]).read("k") == Found(b"v", 5)
    assert server.requests == [("/v3/kv/range", {"key": "aw=="})]
    server.answer = 200, b'{"header":{"revision":"7"}}'
    assert Etcd([server.url]).read("k") == Found(None, 0)


def test_writes_depend_on_the_revision_of_a_key(server):
    store = Etcd([server.url])
    server.answer = 200, json.dumps(DONE).encode()
    written = store.write("k", b"v", guard="g", revision=5)
    assert written.is_done and written.revision == 8
    ((path, body),) = server.requests
    assert path == "/v3/kv/txn"
    assert body["compare"] == [{"key": "Zw==", "target": "MOD", "result": "EQUAL", "modRevision": "5"}]
    assert body["success"] == [{"requestPut": {"key": "aw==", "value": "dg=="}}]
    server.answer = 200, json.dumps(NOT_DONE).encode()
    written = store.write("k", b"v", guard="g", revision=5)
    assert not written.is_done and written.guard == Found(b"v", 5)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((503, b'{"error":"etcdserver: request timed out"}'), "refuses a request: etcdserver: request timed out"),
        ((500, b"{}"), "does not answer like etcd, with HTTP status 500"),
        ((200, b"<html>"), "does not answer like etcd"),
        ((200, b"[]"), "does not answer like etcd"),
        ((200, b'{"kvs":[{}]}'), "does not answer like etcd"),
        ((200, b'{"kvs":[{"mod_revision":"x"}]}'), "does not answer like etcd"),
        ((200, b'{"kvs":3}'), "does not answer like etcd"),
    ],
)
def test_wrong_answers_are_explained(server, answer, reason):
    server.answer = answer
    with pytest.raises(StoreError, match=reason):
        Etcd([server.url]).read("k")


@pytest.mark.parametrize("answer", [b"{}", b'{"succeeded":true}', b'{"responses":[{}]}', b'{"succeeded":true,"header":[]}'])
def test_wrong_answers_to_writes_are_explained(server, answer):
    server.answer = 200, answer
    with pytest.raises(StoreError, match="does not answer like etcd"):
        Etcd([server.url]).write("k", b"v", "g", 0)


def test_an_endpoint_that_does_not_answer_is_left_for_the_next(server):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        store = Etcd([url, server.url], timeout_s=0.1)
        with pytest.raises(StoreError, match="does not answer: timed out"):
            store.read("k")
        server.answer = 200, json.dumps(READ).encode()
        assert store.read("k") == store.read("k") == Found(b"v", 5)
    store = Etcd([url, server.url])
    with pytest.raises(StoreError, match="Connection refused"):
        store.read("k")
    assert store.read("k") == Found(b"v", 5)


@pytest.mark.parametrize("url", ["", "127.0.0.1:2379", "ftp://a", "http://", "http://a:x", "http://a:99999", "http://a/v3"])
def test_malformed_endpoints_are_named(url):
    with pytest.raises(ValueError, match="is no endpoint of etcd"):
        Etcd([url])
