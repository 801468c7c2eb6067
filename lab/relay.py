#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passes OpenFlow connections on to a controller, delays the messages, and counts them:

    lab/relay.py LISTEN_PORT CONTROLLER_PORT DELAY_MS COUNTS

Both ports are of 127.0.0.1. Messages of each direction arrive DELAY_MS milliseconds later, in order. On SIGUSR1,
the program writes the number of messages since the previous SIGUSR1 to the file COUNTS, by their kinds.
"""

import asyncio
import collections
import json
import os
import signal
import sys

HEADER_BYTES = 8
NAMES = {
    0: "hello",
    1: "error",
    2: "echo",
    3: "echo",
    4: "experimenter",
    10: "packet-in",
    11: "flow-removed",
    12: "port-status",
    13: "packet-out",
    14: "flow-mod",
    15: "group-mod",
    18: "statistics",
    19: "statistics",
    20: "barrier",
    21: "barrier",
}
# The experimenter ID of ONF, whose messages 2300 and 2301 control bundles in OpenFlow 1.3.
ONF, BUNDLES = 0x4F4E4600, {2300: "bundle control", 2301: "bundle add"}
counts = collections.Counter()


def kind_of(message):
    """Returns the kind of a message."""
    kind = message[1]
    if kind == 4 and int.from_bytes(message[8:12], "big") == ONF:
        return BUNDLES.get(int.from_bytes(message[12:16], "big"), "experimenter")
    return NAMES.get(kind, "other")


async def read(reader, queue, delay_s, direction):
    """Reads messages and puts them into a queue with the time at which they are due."""
    loop = asyncio.get_running_loop()
    try:
        while True:
            header = await reader.readexactly(HEADER_BYTES)
            rest = await reader.readexactly(max(0, int.from_bytes(header[2:4], "big") - HEADER_BYTES))
            counts["%s %s" % (kind_of(header + rest), direction)] += 1
            queue.put_nowait((loop.time() + delay_s, header + rest))
    except (asyncio.IncompleteReadError, OSError):
        queue.put_nowait((0, None))


async def write(writer, queue):
    """Writes messages when they are due, until the other side has ended."""
    loop = asyncio.get_running_loop()
    try:
        while True:
            due_s, message = await queue.get()
            if message is None:
                break
            if due_s > loop.time():
                await asyncio.sleep(due_s - loop.time())
            writer.write(message)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def relay(port, delay_s, reader, writer):
    """Passes one connection on."""
    try:
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        # The switch connects again.
        writer.close()
        return
    up, down = asyncio.Queue(), asyncio.Queue()
    await asyncio.gather(
        read(reader, up, delay_s, "to controller"),
        write(other_writer, up),
        read(other_reader, down, delay_s, "to switch"),
        write(writer, down),
    )


def report(path):
    """Writes the counts to a file, which appears as a whole."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(counts, file)
    os.rename(path + ".new", path)
    counts.clear()


async def main():
    """Runs until the process is ended."""
    if len(sys.argv) != 5:
        sys.exit("usage: relay.py LISTEN_PORT CONTROLLER_PORT DELAY_MS COUNTS")
    port, delay_s = int(sys.argv[2]), float(sys.argv[3]) / 1000
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, report, sys.argv[4])
    server = await asyncio.start_server(lambda reader, writer: relay(port, delay_s, reader, writer), "127.0.0.1", int(sys.argv[1]))
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
