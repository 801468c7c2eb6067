# SPDX-License-Identifier: Apache-2.0
"""A plain model of the controller processing logic: outcome and reply of each frame from the control plane."""

import device
from datagram import ADDRESSES, checksum, number

LENGTHS = {
    device.MESSAGE_HELLO: (12, 12), device.MESSAGE_ECHO_REQUEST: (8, device.MESSAGE_BYTES_MAX),
    device.MESSAGE_FLOW_REQUEST: (12, 12), device.MESSAGE_PACKET_OUT: (30, device.MESSAGE_BYTES_MAX),
    device.MESSAGE_STATS_REQUEST: (8, 8),
}
COMMANDS = {device.COMMAND_SELECT: 28, device.COMMAND_WRITE: 68, device.COMMAND_REMOVE: 12, device.COMMAND_ACT: 32}


def word(text, at):
    """16 bits, big endian."""
    return int.from_bytes(text[at : at + 2], "big")


def action_is_valid(text):
    """Whether the 20 bytes are an action word that the device accepts."""
    value, fields = int.from_bytes(text, "big"), {}
    for name, width in reversed(device.ACTION_FIELDS):
        fields[name], value = value & (1 << width) - 1, value >> width
    return (fields["base"] < 3 and fields["insert"] <= 12 and fields["remove"] <= 16 and fields["reserved"] == 0
            and (fields["write_metadata"] or fields["metadata"] == 0))


def body_is_valid(code, body):
    """Whether all values of a body of the right length are allowed."""
    if code in (device.MESSAGE_HELLO, device.MESSAGE_FLOW_REQUEST):
        return body[1] == 0
    if code == device.MESSAGE_PACKET_OUT:
        return body[1] <= 1 and body[2:8] == bytes(6)
    if code != device.MESSAGE_FLOW_MOD or body[0] == device.COMMAND_REMOVE:
        return True
    if body[0] == device.COMMAND_ACT:
        return action_is_valid(body[4:])
    if body[0] == device.COMMAND_SELECT:
        slices = [body[at : at + 4] for at in range(4, 20, 4)]
        return word(body, 2) == 0 and all(s[0] < 4 and s[2] <= 4 and s[3] == 0 for s in slices)
    value, mask = (int.from_bytes(body[at : at + 17], "big") for at in (4, 21))
    return value & ~mask == 0 and mask & 15 == 0 and body[38:40] == b"\0\0" and action_is_valid(body[40:])


class Device:
    """State of a session, and of nothing else. `exists` states whether a PPU has an index."""

    def __init__(self, ppus, entries):
        self.ppus, self.entries = ppus, entries
        self.hello, self.newest, self.newest_mod, self.window, self.seen = None, None, None, 0, {}

    def refuses(self, frame):
        """The reason for which the filter refuses a frame, or None."""
        text, a = frame.ljust(64, b"\0"), ADDRESSES
        ip, udp, message = text[14:34], text[34:42], text[42:50]
        if len(frame) > 42 + device.MESSAGE_BYTES_MAX:
            return "bad_frame"
        here = number(a["device_mac"], 6), b"\x08\x00\x45", number(a["device_ip"], 4), number(a["device_port"], 2)
        if (text[:6], text[12:15], ip[16:20], udp[2:4]) != here or word(ip, 6) & 0xBFFF or ip[9] != 17:
            return "foreign"
        if (text[6:12], ip[12:16], udp[:2]) != tuple(
            number(a[f"daemon_{name}"], size) for name, size in (("mac", 6), ("ip", 4), ("port", 2))
        ):
            return "spoofed"
        if len(frame) < 50:
            return "bad_frame"
        end, size = 14 + word(ip, 2), word(udp, 4)
        if len(frame) < end:
            return "length"
        covered = frame[26:end] + bytes(end % 2) + number(17, 2) + number(size, 2)
        if udp[6:8] == b"\0\0" or checksum(ip) or checksum(covered):
            return "checksum"
        length, code, command = word(message, 2), message[1], text[50]
        known = code in LENGTHS or code == device.MESSAGE_FLOW_MOD
        low, high = LENGTHS.get(code, (8, device.MESSAGE_BYTES_MAX))
        if code == device.MESSAGE_FLOW_MOD:
            low, high = (COMMANDS[command],) * 2 if command in COMMANDS else (12, device.MESSAGE_BYTES_MAX)
        if word(ip, 2) != size + 20 or size != length + 8 or not low <= length <= high:
            return "length"
        if message[0] != device.MESSAGE_VERSION:
            return "version"
        if not known:
            return "type"
        return "value" if code == device.MESSAGE_FLOW_MOD and command not in COMMANDS else None

    def handle(self, frame):
        """Outcome of a frame, and type, ID and body of its reply, or None. A Stats_reply has no body here."""
        reason = self.refuses(frame)
        if reason:
            return reason, None
        code, transaction = frame[43], int.from_bytes(frame[46:50], "big")
        body = frame[50 : 42 + word(frame, 44)]
        if not body_is_valid(code, body):
            return "value", None
        if code in (device.MESSAGE_FLOW_MOD, device.MESSAGE_PACKET_OUT):
            return self._once(code, transaction, body)
        if code == device.MESSAGE_HELLO:
            if self.hello != transaction:
                self.hello = self.newest = self.newest_mod = transaction
                self.window, self.seen = 0, {}
            return "request", (code, transaction, bytes([self.ppus, 0]) + number(self.entries, 2))
        if code == device.MESSAGE_FLOW_REQUEST:
            return "request", (device.MESSAGE_FLOW_REPLY, transaction, body + bytes(64))
        reply = device.MESSAGE_ECHO_REPLY if code == device.MESSAGE_ECHO_REQUEST else device.MESSAGE_STATS_REPLY
        return "request", (reply, transaction, body)

    def _once(self, code, transaction, body):
        if self.hello is None:
            return "stale", None
        # IDs behind the window's begin, by less than half of all IDs.
        place = (transaction - self.newest + self.window) % (1 << 32)
        if place == 0 or place >= 1 << 31:
            return "stale", None
        if transaction in self.seen:
            ack = self.seen[transaction]
            answers = code == device.MESSAGE_FLOW_MOD and ack is not None
            return "duplicate", (device.MESSAGE_FLOW_ACK, transaction, ack) if answers else None
        # Place of the newest executed Flow_mod; 0 if it is before the window.
        newest_mod = (self.newest_mod - self.newest + self.window) % (1 << 32)
        if code == device.MESSAGE_FLOW_MOD and place <= (newest_mod if newest_mod < 1 << 31 else 0):
            return "late", (device.MESSAGE_FLOW_ACK, transaction, bytes(4))
        if place > self.window:
            self.newest, self.window = transaction, min(device.MESSAGE_WINDOW, place)
            if newest_mod >= 1 << 31:
                self.newest_mod = (self.newest - self.window) % (1 << 32)
        if code == device.MESSAGE_PACKET_OUT:
            self.seen[transaction] = None
            return "packet_out", None
        self.newest_mod = transaction
        self.seen[transaction] = bytes([int(body[1] < self.ppus and word(body, 2) < self.entries), 0, 0, 0])
        return "flow_mod", (device.MESSAGE_FLOW_ACK, transaction, self.seen[transaction])
