# SPDX-License-Identifier: Apache-2.0
"""Event files of TensorBoard: records with masked CRC-32C, each an `Event` in protobuf's encoding.

    record   length (8 bytes, little endian), its masked CRC, the event, the event's masked CRC
    event    1: wall_time (double), 2: step (int64), 3: file_version (string), 5: summary
    summary  1, repeated: value { 1: tag (string), 2: simple_value (float) }

(tensorflow/core/lib/io/record_writer.cc, tensorflow/core/util/event.proto)
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
from typing import List, Sequence

from colloc.tracking.bridge import Bridge, Point

CASTAGNOLI = 0x82F63B78  # the polynomial of CRC-32C, its bits reversed
MASK_DELTA = 0xA282EAD8  # of record_writer.cc


def make_table() -> List[int]:
    """The CRC of each byte."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (CASTAGNOLI if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = make_table()


def crc32c(data: bytes) -> int:
    """CRC-32C (RFC 3720, appendix B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked_crc(data: bytes) -> int:
    """As records have it: a CRC of data that contains CRCs would be weak."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF


def varint(number: int) -> bytes:
    """A number of 0 or more in protobuf's encoding."""
    data = b""
    while number > 0x7F:
        data += bytes([number & 0x7F | 0x80])
        number >>= 7
    return data + bytes([number])


def field_bytes(number: int, data: bytes) -> bytes:
    """A field that has a length."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def encode_event(at_s: float, step: int, rest: bytes) -> bytes:
    """An event with further fields."""
    return b"\x09" + struct.pack("<d", at_s) + b"\x10" + varint(max(step, 0)) + rest


def encode_scalars(points: Sequence[Point]) -> bytes:
    """The summary field of an event."""
    values = b"".join(
        field_bytes(
            1, field_bytes(1, point.name.encode()) + b"\x15" + struct.pack("<f", point.value)
        )
        for point in points
    )
    return field_bytes(5, values)


def encode_record(event: bytes) -> bytes:
    """The event as a record."""
    length = struct.pack("<Q", len(event))
    return (
        length
        + struct.pack("<I", masked_crc(length))
        + event
        + struct.pack("<I", masked_crc(event))
    )


class EventFile(Bridge):
    """A new event file in a folder, which is made if need be."""

    name = "tensorboard"

    def __init__(self, folder: str):
        now = time.time()
        name = f"events.out.tfevents.{int(now)}.{socket.gethostname()}.{os.getpid()}.colloc"
        try:
            os.makedirs(folder, exist_ok=True)
            self.file = open(os.path.join(folder, name), "ab")
            self.write(encode_event(now, 0, field_bytes(3, b"brain.Event:2")))
        except OSError as error:
            raise ValueError(str(error)) from None

    def write(self, event: bytes) -> None:
        """Appends a record, for TensorBoard to see at once."""
        self.file.write(encode_record(event))
        self.file.flush()

    def send(self, points: Sequence[Point]) -> None:
        for (at_s, step), group in itertools.groupby(points, lambda p: (p.at_s, p.step)):
            self.write(encode_event(at_s, step, encode_scalars(list(group))))

    def close(self) -> None:
        self.file.close()
