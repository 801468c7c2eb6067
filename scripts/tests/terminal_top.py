#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Acts as the user of `shunt top` at a terminal: terminal_top.py SHUNT CONTROL_SOCKET PID_OF_THE_SWITCH."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

LONG_S = 20
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """`shunt top` in a separate terminal."""

    def __init__(self, shunt: str, control: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(shunt, [shunt, "--control", control, "top"])
        self.resize(30, 100)
        self.seen = b""

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, text: bytes, key: bytes = b"") -> None:
        """Reads until this text is drawn. Sends a key before each read. The next call reads the output that
        follows the text."""
        end = time.monotonic() + LONG_S
        while text not in self.seen:
            if key:
                time.sleep(0.2)
                self.key(key)
            if not select.select([self.fd], [], [], max(0.0, end - time.monotonic()))[0]:
                sys.exit(f"test_top: {text!r} was not drawn in time after {self.seen[-2000:]!r}")
            try:
                read = os.read(self.fd, 65536)
            except OSError:
                read = b""
            if not read:
                sys.exit(f"test_top: shunt top ended before it drew {text!r}: {self.seen[-2000:]!r}")
            self.seen += read
        self.seen = self.seen.split(text, 1)[1]

    def key(self, key: bytes) -> None:
        os.write(self.fd, key)

    def ended(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def expect(code: int, wanted: int) -> None:
    if code != wanted:
        sys.exit(f"test_top: exit code {code}, not {wanted}")


def main() -> None:
    shunt, control, switch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    top = Terminal(shunt, control)
    top.until(ENTER)
    top.until(b"ports")
    top.until(b"normal")
    top.key(b"p")
    top.until(b"[paused]")
    top.key(b"\t")
    # The focus changes how two panels look. A small terminal shows only the panel with the focus.
    top.resize(8, 60)
    top.until(b"from receive poll")
    # If a key arrives together with a resize, the terminal library delivers the key late: at the next key.
    top.until(LEAVE, b"q")
    expect(top.ended(), 0)
    print("ok: shunt top draws, pauses, follows a new size, and restores the terminal")

    top = Terminal(shunt, control)
    top.until(b"ports")
    os.kill(switch, signal.SIGTERM)
    top.until(LEAVE)
    top.until(b"shunt: the connection to the switch was lost")
    expect(top.ended(), 1)
    print("ok: shunt top reports the end of the switch, and restores the terminal")


main()
