# SPDX-License-Identifier: Apache-2.0
"""Tables in text files, as src/base/columns.c reads them for the other commands.

The first line names the columns; its separator is that of the table: "|", else commas, else blanks.
Comma-separated tables are RFC 4180's, with quoted fields. Blank lines and lines that begin with "#"
are skipped. An empty field and "-" mean no value.
"""

import io
import math
import re
import sys
from typing import BinaryIO, Iterator, List, Optional, Union

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


def begins_with_name(line: str, names: str) -> bool:
    """Does a line of names begin with the first of these?"""
    first = names.split(",", 1)[0]
    return line.startswith(first) and line[len(first) : len(first) + 1] in ("", ",", "\r", "\n")


class ReadError(Fault):
    """The file itself cannot be read on."""


class Columns:
    """A table that is read a row at a time, in constant memory.

    number: the line in which the current row begins; lines: those read so far; at_end: the file
    ends within the current row, or behind it without a line end.
    """

    def __init__(self, file: Union[BinaryIO, bytes], name: str, names: Optional[str] = None):
        """names: of the columns, comma-separated, for a file whose first line does not begin with
        the first of them."""
        self.name, self.lines, self.number, self.at_end = name, 0, 0, False
        self._file = io.BytesIO(file) if isinstance(file, bytes) else file
        self._row: List[str] = []
        self._kept: Optional[str] = None  # the first row of a table without a line of names
        self._title = "the first line names"
        line = self._first_line()
        if names is not None and (line is None or not begins_with_name(line, names)):
            self._kept, self._title = line, "such a table has"
            line = names
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
        try:
            data = self._file.readline(LINE_MAX)
        except OSError:
            raise ReadError(f"{self.name}: cannot be read after line {self.lines}") from None
        self.at_end = not data.endswith(b"\n") and len(data) < LINE_MAX
        if not data:
            return None
        self.lines += 1
        if b"\0" in data and self.at_end:
            data = data[: data.index(b"\0")]
        if b"\0" in data or len(data) >= LINE_MAX:
            while not self.at_end and not data.endswith(b"\n"):  # the rest of the line
                data = self._file.readline(LINE_MAX)
                self.at_end = len(data) < LINE_MAX and not data.endswith(b"\n")
            self.number = self.lines
            raise self.wrong(f"the line is longer than {LINE_MAX - 2} bytes, or binary")
        return decode(data)

    def _first_line(self) -> Optional[str]:
        line, self._kept = self._kept, None
        if line is not None:
            return line
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
        text = first.rstrip("\r\n")
        if '"' not in text and "\r" not in text:
            return [field.strip(" \t") for field in text.split(",")]
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

    def next_row(self) -> Optional[List[str]]:
        """The next row's fields, which `get` and `number_at` are of, or None. Raises Fault; the row
        after a wrong one can be read."""
        line = self._first_line()
        if line is None:
            return None
        self._row = self._fields(line)
        if len(self._row) != len(self.names):
            raise self.wrong(
                f"{len(self._row)} fields, where {self._title} {len(self.names)} columns"
            )
        return self._row

    def rows(self) -> Iterator[List[str]]:
        """Each row. Raises Fault."""
        while True:
            row = self.next_row()
            if row is None:
                return
            yield row

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
            return Columns(sys.stdin.buffer, "standard input")
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
