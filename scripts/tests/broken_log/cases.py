# SPDX-License-Identifier: Apache-2.0
"""Ways in which stderr can fail. `run.py` runs in a private mount namespace, so the mounts of a case vanish
when `run.py` ends."""

import fcntl
import os
import socket
import subprocess

LOST = "log lines lost"


class Case:
    """One way in which a switch's stderr fails."""

    name = ""

    def __init__(self, folder):
        self.folder = folder
        self.stderr = None

    def started(self):
        """Called when the switch has been started with this stderr."""

    def check_while_broken(self, switch):
        """Checks the counters while lines are lost."""

    def mend(self, switch, until, fail):
        """Repairs stderr if possible, and checks that the loss is reported."""

    def close(self):
        """Releases the remaining resources."""


class ReaderGone(Case):
    """A pipe whose reader has ended, as in `shunt run 2>&1 | head`."""

    name = "stderr closed"

    def __init__(self, folder):
        super().__init__(folder)
        self.reader, self.stderr = os.pipe()

    def started(self):
        os.close(self.stderr)
        os.close(self.reader)


class DiskFull(Case):
    """A file on a disk that is full until `mend` is called."""

    name = "full disk"

    def __init__(self, folder):
        super().__init__(folder)
        self.disk = folder / "disk"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", self.disk], check=True)
        # Fill a page except for a few bytes, so that a part of a line still fits, and then the rest of the
        # disk.
        self.stderr = os.open(self.disk / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(self.stderr, b"\n" * 4090)
        with open(self.disk / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(b"." * 4096):
                    pass
            except OSError:
                pass

    def started(self):
        os.close(self.stderr)

    def mend(self, switch, until, fail):
        (self.disk / "filler").unlink()
        text = until("the loss is reported", lambda: (t := (self.disk / "log").read_text()) and LOST in t and t)
        if any(line.startswith("shunt: ready") and LOST in line for line in text.splitlines()):
            fail("a partly written line is joined with the next line")

    def close(self):
        subprocess.run(["umount", self.disk], check=True)
        self.disk.rmdir()


class PipeStalled(Case):
    """A pipe that nobody reads until `mend` is called."""

    name = "stalled pipe"

    def __init__(self, folder):
        super().__init__(folder)
        self.reader, self.stderr = os.pipe()
        fcntl.fcntl(self.stderr, fcntl.F_SETPIPE_SZ, 4096)

    def started(self):
        os.close(self.stderr)

    def mend(self, switch, until, fail):
        os.set_blocking(self.reader, False)
        text = b""

        def is_reported():
            nonlocal text
            try:
                text += os.read(self.reader, 65536)
            except BlockingIOError:
                pass
            return LOST.encode() in text

        until("the loss is reported", is_reported)

    def close(self):
        os.close(self.reader)


class JournalGone(Case):
    """A stream socket whose reader ends while the switch runs. The stderr of a systemd service is such a
    socket, with the journal as its reader."""

    name = "journal gone"

    def __init__(self, folder):
        super().__init__(folder)
        self.reader, self.writer = socket.socketpair()
        self.stderr = self.writer.fileno()

    def started(self):
        self.reader.recv(1)
        self.writer.close()
        self.reader.close()


CASES = [ReaderGone, DiskFull, PipeStalled, JournalGone]
