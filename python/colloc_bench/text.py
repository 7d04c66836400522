# SPDX-License-Identifier: Apache-2.0
"""Errors, numbers and files, as colloc's programs in C report, read and write them."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from typing import List, NamedTuple, Optional

OUTPUT_MAX = 1 << 20  # bytes of a program's output that are kept; chosen: far more than any list
PROGRAM_LIMIT_S = 60.0  # chosen: conda takes several seconds

INTEGER = re.compile(r"-?[0-9]+")
# Control characters but the tab, and those that reorder a line on a terminal.
CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Fault(Exception):
    """What went wrong, where, and what to do: a sentence for the user."""


def escape(text: str) -> str:
    """The text with control characters shown as \\x1b, so that it cannot control the terminal."""

    def shown(match: "re.Match[str]") -> str:
        number = ord(match[0])
        return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"

    return CONTROL.sub(shown, text)


def print_error(text: str) -> None:
    """Prints a message to stderr, as all of colloc's messages are."""
    sys.stdout.flush()
    sys.stderr.write(f"colloc: {escape(text)}\n")
    sys.stderr.flush()


def parse_integer(text: str, least: int, most: int) -> Optional[int]:
    """A whole number; None: it is none, or out of these bounds."""
    if not INTEGER.fullmatch(text):
        return None
    value = int(text) if len(text) <= 20 else most + 1
    return value if least <= value <= most else None


def format_elapsed(seconds: float) -> str:
    """0:07, 1:02:03 or 2-01:02:03."""
    s = max(0, int(seconds))
    days, hours, minutes = s // 86400, s // 3600 % 24, s // 60 % 60
    if days:
        return f"{days}-{hours:02d}:{minutes:02d}:{s % 60:02d}"
    return f"{hours}:{minutes:02d}:{s % 60:02d}" if hours else f"{minutes}:{s % 60:02d}"


def strerror(error: OSError) -> str:
    """The system's words for an error."""
    return os.strerror(error.errno) if error.errno else str(error)


def read_bytes(path: str, most: int) -> bytes:
    """A whole file of at most `most` bytes. Raises Fault."""
    try:
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise Fault(f"{path}: {strerror(error)}") from None
    if len(data) > most:
        raise Fault(f"{path}: larger than {most} bytes")
    return data


def decode(data: bytes) -> str:
    """Text of any bytes."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The bytes that `decode` read."""
    return text.encode("utf-8", "surrogateescape")


def readable(text: str) -> str:
    """The text in valid UTF-8, as JSON needs it."""
    return encode(text).decode("utf-8", "replace").replace("\ufffd", "?")


def write_atomic(path: str, text: str, mode: int = 0o644) -> None:
    """Replaces a file, or leaves it as it was. Raises OSError."""
    beside = f"{path}.tmp.{os.getpid()}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(encode(text))
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


class Output(NamedTuple):
    """How a program ended, and what it printed, trimmed."""

    status: int  # 128 + N for signal N
    text: str


def run_program(words: List[str], limit_s: float = PROGRAM_LIMIT_S) -> Output:
    """Runs a program of PATH to its end, in another session. Raises Fault."""
    try:
        with subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                data, _ = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise Fault(f"{words[0]} did not end within {limit_s:g} s") from None
    except FileNotFoundError:
        raise Fault(f"{words[0]}: no such program") from None
    except OSError as error:
        raise Fault(f"{words[0]}: {strerror(error)}") from None
    code = process.returncode
    return Output(128 - code if code < 0 else code, decode(data[:OUTPUT_MAX]).strip(" \t\r\n\f\v"))
