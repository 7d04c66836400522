# SPDX-License-Identifier: Apache-2.0
"""Tables in text files, as src/base/columns.c reads them for the other commands.

The first line names the columns; its separator is that of the table: "|", else commas, else blanks.
Comma-separated tables are RFC 4180's, with quoted fields. Blank lines and lines that begin with "#"
are skipped. An empty field and "-" mean no value.
"""

import math
import re
import sys
from typing import Iterator, List, Optional

from colloc_bench.text import Fault, decode, encode, strerror

COLUMNS_MAX = 256  # as in src/base/columns.h
LINE_MAX = 1 << 16  # bytes, with the end of the line and a NUL
LINES = re.compile(r"[^\n]*\n|[^\n]+")
NUMBER = re.compile(r"-?\.?[0-9][0-9.eE+-]*")
SPECIAL = re.compile('[,|"\r\n]')


class QuoteError(Exception):
    """A quotation mark is where none may be."""


class RowParser:
    """Parses one row of RFC 4180, a line at a time: a quoted field may hold line ends.

    Blanks around a field do not belong to it, unless they are in quotation marks.
    """

    def __init__(self) -> None:
        self.fields: List[str] = []
        self.has_ended = False
        self._begin_field()

    def _begin_field(self) -> None:
        self._text: List[str] = []
        self._state = "before"  # before, plain, quoted, after a quotation mark, over

    def _end_field(self) -> None:
        text = "".join(self._text)
        if self._state == "plain":
            text = text.rstrip(" \t")
        self.fields.append(text)
        self._begin_field()

    def feed(self, line: str) -> None:
        """Raises QuoteError."""
        has_begun = bool(self.fields) or self._state != "before"
        for c in line:
            if self._state == "quoted":
                if c == '"':
                    self._state = "after"
                else:
                    self._text.append(c)
            elif c == ",":
                self._end_field()
                has_begun = True
            elif c in "\r\n":
                if has_begun or self._state != "before":
                    self._end_field()
                    self.has_ended = True
                    has_begun = False
            elif self._state in ("after", "over"):
                self._after_quote(c)
            elif c == '"':
                if self._state == "plain":
                    raise QuoteError
                self._state = "quoted"
            elif self._state == "plain" or c not in " \t":
                self._state = "plain"
                self._text.append(c)

    def _after_quote(self, c: str) -> None:
        """A second mark stands for one in the field; blanks may follow the end of the field."""
        if c == '"' and self._state == "after":
            self._state = "quoted"
            self._text.append(c)
        elif c in " \t":
            self._state = "over"
        else:
            raise QuoteError


class Columns:
    """A table that is read a row at a time.

    number: the line in which the current row begins; lines: those read so far.
    """

    def __init__(self, data: bytes, name: str):
        self.name, self.lines, self.number = name, 0, 0
        self._rest = LINES.finditer(decode(data))
        self._size = len(data)
        self._row: List[str] = []
        line = self._first_line()
        if line is None:
            raise Fault(
                f"{name}: the file is empty: a line with the names of the columns is missing"
            )
        line = line[1:] if line.startswith("\ufeff") else line  # spreadsheets write it
        self.separator = "|" if "|" in line else "," if "," in line else " "
        self.names = self._fields(line)
        if len(self.names) > COLUMNS_MAX:
            raise self.wrong(f"more than {COLUMNS_MAX} columns")

    def wrong(self, text: str) -> Fault:
        """A fault with the file and line of the current row."""
        return Fault(f"{self.name}:{self.number}: {text[:399]}")

    def _line(self) -> Optional[str]:
        match = next(self._rest, None)
        if match is None:
            return None
        line = match[0]
        self.lines += 1
        if "\0" in line and not line.endswith("\n"):
            line = line[: line.index("\0")]
        if "\0" in line or (len(line) >= LINE_MAX // 4 and len(encode(line)) >= LINE_MAX):
            self.number = self.lines
            raise self.wrong(f"the line is longer than {LINE_MAX - 2} bytes, or binary")
        return line

    def _first_line(self) -> Optional[str]:
        line = self._line()
        while line is not None and (line.startswith("#") or not line.strip(" \t\r\n")):
            line = self._line()
        self.number = self.lines
        return line

    def _fields(self, line: str) -> List[str]:
        if self.separator == ",":
            return self._parse_row(line)
        line = re.split("[\r\n]", line, maxsplit=1)[0]
        if self.separator == "|":
            return [field.strip(" \t") for field in line.split("|")]
        return re.split("[ \t]+", line.strip(" \t"))

    def _parse_row(self, first: str) -> List[str]:
        parser = RowParser()
        size, line = 0, first
        while True:
            size += len(encode(line)) + 1
            if size > LINE_MAX:
                raise self.wrong(f"the row is longer than {LINE_MAX - 2} bytes")
            try:
                parser.feed(line if line.endswith("\n") else line + "\n")
            except QuoteError:
                raise self.wrong(
                    "a quotation mark within a field: put the whole field in quotation marks and "
                    "double it"
                ) from None
            if parser.has_ended:
                return parser.fields
            following = self._line()
            if following is None:
                raise self.wrong("a quoted field begins in this row and does not end")
            line = following

    def rows(self) -> Iterator[List[str]]:
        """Each row's fields; `get` and `number_at` are of the current one. Raises Fault."""
        while True:
            line = self._first_line()
            if line is None:
                return
            self._row = self._fields(line)
            if len(self._row) != len(self.names):
                raise self.wrong(
                    f"{len(self._row)} fields, where the first line names {len(self.names)} columns"
                )
            yield self._row

    def find(self, name: str) -> Optional[int]:
        """The column of this name."""
        return self.names.index(name) if name in self.names else None

    def get(self, column: Optional[int]) -> Optional[str]:
        """The current row's value; None: no value, or no such column."""
        text = "" if column is None else self._row[column]
        return None if text in ("", "-") else text

    def number_at(self, column: Optional[int], least: float, most: float) -> Optional[float]:
        """The value as a number; None: no value. Raises Fault."""
        text = self.get(column)
        if text is None or column is None:
            return None
        try:
            value = float(text) if NUMBER.fullmatch(text) else None
        except ValueError:
            value = None
        name = self.names[column]
        if value is None:
            raise self.wrong(f'{name} is "{text[:60]}", which is not a number')
        if not math.isfinite(value) or value < least or value > most:
            raise self.wrong(f"{name} is {text[:60]}: it must be between {least:g} and {most:g}")
        return value


def open_columns(path: str) -> Columns:
    """Opens a file; "-": standard input. Raises Fault."""
    try:
        if path == "-":
            return Columns(sys.stdin.buffer.read(), "standard input")
        with open(path, "rb") as file:
            return Columns(file.read(), path)
    except OSError as error:
        raise Fault(f"{path}: {strerror(error)}") from None


def cell(text: str) -> str:
    """A field of a comma-separated table, quoted if needed."""
    has_blank_end = text[:1] in (" ", "\t") or text[-1:] in (" ", "\t")
    if has_blank_end or text.startswith("#") or SPECIAL.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text
