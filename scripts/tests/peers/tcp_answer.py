# SPDX-License-Identifier: Apache-2.0
"""Answers on TCP ports. Usage: tcp_answer.py PORT... Prints "ready" when it listens. Each client gets one
line, "port PORT"."""

import selectors
import socket
import sys


def main(ports):
    """Answers until the process is ended."""
    selector = selectors.DefaultSelector()
    for port in ports:
        listener = socket.create_server(("", int(port)))
        selector.register(listener, selectors.EVENT_READ, port)
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            connection, _ = key.fileobj.accept()
            with connection:
                connection.sendall(b"port %s\n" % key.data.encode())


if __name__ == "__main__":
    main(sys.argv[1:])
