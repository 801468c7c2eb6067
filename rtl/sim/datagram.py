# SPDX-License-Identifier: Apache-2.0
"""Messages between daemon and device as Ethernet frames, written independently of the RTL."""

import device
from bench import pack

ADDRESSES = {
    "device_mac": 0x020000000D01, "device_ip": 0x0A000002, "device_port": 6634,
    "daemon_mac": 0x020000000D02, "daemon_ip": 0x0A000001, "daemon_port": 45678,
}


def addresses():
    """The addresses as an addresses_t."""
    return pack(device.ADDRESS_FIELDS, dict(ADDRESSES))


def checksum(text):
    """The Internet checksum."""
    text += bytes(len(text) % 2)
    total = sum(int.from_bytes(text[at : at + 2], "big") for at in range(0, len(text), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def number(value, count):
    """A number as bytes."""
    return value.to_bytes(count, "big")


def message(code, transaction, body=b"", version=device.MESSAGE_VERSION, length=None):
    """The bytes of a message."""
    length = device.MESSAGE_HEADER_BYTES + len(body) if length is None else length
    return bytes([version, code]) + number(length, 2) + number(transaction, 4) + body


def frame(text, **fields):
    """A frame from the daemon to the device. `fields` replaces addresses, and parts of the headers."""
    get = lambda name, value: fields.pop(name, value)
    macs = number(get("to_mac", ADDRESSES["device_mac"]), 6) + number(get("from_mac", ADDRESSES["daemon_mac"]), 6)
    ips = number(get("from_ip", ADDRESSES["daemon_ip"]), 4) + number(get("to_ip", ADDRESSES["device_ip"]), 4)
    ports = number(get("from_port", ADDRESSES["daemon_port"]), 2) + number(get("to_port", ADDRESSES["device_port"]), 2)
    udp_length = get("udp_length", len(text) + 8)
    proto = get("proto", 17)
    pseudo = ips + bytes([0, proto]) + number(udp_length, 2)
    found = checksum(pseudo + ports + number(udp_length, 2) + bytes(2) + text) or 0xFFFF
    udp = ports + number(udp_length, 2) + number(get("udp_checksum", found), 2)
    head = bytes([get("version", 0x45), 0]) + number(get("ip_length", len(text) + 28), 2) + bytes(2)
    head += number(get("fragment", 0x4000), 2) + bytes([64, proto])
    head += number(get("ip_checksum", checksum(head + ips)), 2) + ips
    made = macs + number(get("eth_type", 0x0800), 2) + head + udp + text + get("padding", b"")
    assert not fields, fields
    return made


def parse(got):
    """Type, transaction ID and body of a frame from the device. Checks every byte of the headers."""
    assert got[:6] == number(ADDRESSES["daemon_mac"], 6) and got[6:12] == number(ADDRESSES["device_mac"], 6)
    assert got[12:16] == b"\x08\x00\x45\x00", got.hex()
    assert int.from_bytes(got[16:18], "big") == len(got) - 14, (got[16:18].hex(), len(got))
    assert got[20:24] == b"\x40\x00\x40\x11" and checksum(got[14:34]) == 0
    assert got[26:34] == number(ADDRESSES["device_ip"], 4) + number(ADDRESSES["daemon_ip"], 4)
    assert got[34:38] == number(ADDRESSES["device_port"], 2) + number(ADDRESSES["daemon_port"], 2)
    assert int.from_bytes(got[38:40], "big") == len(got) - 34 and got[40:42] != b"\0\0"
    assert checksum(got[26:34] + b"\0\x11" + got[38:40] + got[34:]) == 0, "wrong UDP checksum"
    assert got[42] == device.MESSAGE_VERSION and int.from_bytes(got[44:46], "big") == len(got) - 42
    return got[43], int.from_bytes(got[46:50], "big"), got[50:]


def key_bytes(value, mask):
    """A key in messages; the lowest 4 bits are unused."""
    return number(value << 4, device.KEY_BYTES) + number(mask << 4, device.KEY_BYTES) + bytes(2)


def write(ppu, index, value, mask, word):
    """Body of a Flow_mod that writes an entry."""
    return bytes([device.COMMAND_WRITE, ppu]) + number(index, 2) + key_bytes(value, mask) + number(word, 20)


def act(ppu, index, word):
    """Body of a Flow_mod that replaces an action."""
    return bytes([device.COMMAND_ACT, ppu]) + number(index, 2) + number(word, 20)


def remove(ppu, index):
    """Body of a Flow_mod that removes an entry."""
    return bytes([device.COMMAND_REMOVE, ppu]) + number(index, 2)


def select(ppu, slices):
    """Body of a Flow_mod that sets the slices of the key."""
    slices = list(slices) + [(0, 0, 0)] * (device.KEY_SLICES - len(slices))
    return bytes([device.COMMAND_SELECT, ppu, 0, 0]) + b"".join(bytes([*item, 0]) for item in slices)


def request(ppu, index):
    """Body of a Flow_request."""
    return bytes([ppu, 0]) + number(index, 2)


def packet_out(port, pipeline, data):
    """Body of a Packet_out."""
    return bytes([port, int(pipeline)]) + bytes(6) + data
