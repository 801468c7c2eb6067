# SPDX-License-Identifier: Apache-2.0
"""A client of etcd 3.4 and later, by the JSON of its HTTP gateway (docs/adr/0057). It reads and writes single
keys, and each write is a transaction that depends on the revision of a key.

::

    store = Etcd(["http://127.0.0.1:2379"])
    found = store.read("/shunt/leader")
    store.write("/shunt/plan", b"...", guard="/shunt/leader", revision=found.revision)
"""

import base64
import http.client
import json
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

_Answer = TypeVar("_Answer")
TIMEOUT_S = 0.4
"""Time in which an endpoint must answer."""
ANSWER_BYTES_MAX = 8 << 20


class StoreError(Exception):
    """The store did not execute a request, or it is not known whether it did. The message is for the user."""


@dataclass(frozen=True)
class Found:
    """The content of a key."""

    value: bytes | None
    """None if the key does not exist."""
    revision: int
    """Revision of the store at the last change of the key; 0 if the key does not exist."""


@dataclass(frozen=True)
class Written:
    """The result of a conditional write."""

    is_done: bool
    """Whether the condition was true, so that the value was written."""
    revision: int
    """Revision of the store at this write. Only valid if it was done."""
    guard: Found
    """The content of the key of the condition. Only valid if the write was not done."""


class Etcd:
    """A connection to the first of some endpoints that answers. All methods must be called by the same thread.
    They raise StoreError."""

    def __init__(self, endpoints: Sequence[str], timeout_s: float = TIMEOUT_S) -> None:
        """`endpoints` are URLs such as ``http://127.0.0.1:2379``. Raises ValueError if one is malformed."""
        if not endpoints:
            raise ValueError("no endpoint of etcd is given")
        self._endpoints = [_endpoint(url) for url in endpoints]
        self._timeout_s = timeout_s
        self._at = 0
        self._connection: http.client.HTTPConnection | None = None

    def read(self, key: str) -> Found:
        """Returns the content of a key."""
        return self._ask("/v3/kv/range", {"key": _coded(key.encode())}, _found)

    def write(self, key: str, value: bytes, guard: str, revision: int) -> Written:
        """Writes a value if the key `guard` has this revision, or does not exist if the revision is 0."""
        compare = {"key": _coded(guard.encode()), "target": "MOD", "result": "EQUAL", "modRevision": str(revision)}
        put = {"requestPut": {"key": _coded(key.encode()), "value": _coded(value)}}
        look = {"requestRange": {"key": _coded(guard.encode())}}
        return self._ask("/v3/kv/txn", {"compare": [compare], "success": [put], "failure": [look]}, _written)

    def _ask(self, path: str, body: dict[str, Any], understood: Callable[[Any], _Answer]) -> _Answer:
        """Sends a request and returns what `understood` makes of the answer."""
        scheme, host, port = self._endpoints[self._at]
        try:
            if self._connection is None:
                self._connection = _connection(scheme, host, port, self._timeout_s)
            self._connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = self._connection.getresponse()
            data = response.read(ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            self._next()
            raise StoreError(f"etcd at {host}:{port} does not answer: {_reason(error)}") from error
        try:
            answer = json.loads(data)
            if response.status == http.HTTPStatus.OK:
                return understood(answer)
            reason = answer["error"]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            self._next()
            raise StoreError(f"the server at {host}:{port} does not answer like etcd, with HTTP status {response.status}") from error
        self._next()
        raise StoreError(f"etcd at {host}:{port} refuses a request: {reason}")

    def _next(self) -> None:
        """Closes the connection. The next request uses the next endpoint."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._at = None, (self._at + 1) % len(self._endpoints)


def _endpoint(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    try:
        port = parts.port or 2379
    except ValueError:
        port = 0
    if parts.scheme not in ("http", "https") or not parts.hostname or not port or parts.path.strip("/"):
        raise ValueError(f"{url!r} is no endpoint of etcd; one is http://127.0.0.1:2379, for example")
    return parts.scheme, parts.hostname, port


def _connection(scheme: str, host: str, port: int, timeout_s: float) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=timeout_s)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _found(answer: Any) -> Found:
    """Returns the only key of an answer. JSON has 64-bit numbers as text."""
    for item in answer.get("kvs", []):
        return Found(base64.b64decode(item.get("value", "")), int(item["mod_revision"]))
    return Found(None, 0)


def _written(answer: Any) -> Written:
    if answer.get("succeeded"):
        return Written(True, int(answer["header"]["revision"]), Found(None, 0))
    (response,) = answer["responses"]
    return Written(False, 0, _found(response["response_range"]))
