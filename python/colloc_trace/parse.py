# SPDX-License-Identifier: Apache-2.0
"""Numbers, lengths of time and dates in logs.

Dates have no time zone in most logs: they are read as UTC, since only differences matter. The
calendar of `datetime` is used for its days only, since its parsers accept other texts.
"""

import datetime
import re
from typing import Dict, Optional, Tuple

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
YEAR_FIRST, YEAR_LAST = 1970, 2199
CLOCK_MAX_S = (2**63 - 1) // SECOND_US  # its microseconds fit in 64 bits

NUMBER = re.compile(r"-?\.?[0-9][0-9.eE+-]*")
CLOCK = re.compile(
    r"(?:([0-9]{1,9})-([0-9]{1,9})|([0-9]{1,9}))(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?"
)
DATE = re.compile(
    r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})"
    r"(?:[ T]([0-9]{2}):?([0-9]{2}):?(?:([0-9]{2})(?:\.[0-9]*)?)?"
    r"(Z|[+-][0-9]{2}:?(?:[0-9]{2})?)?)?"
)
MISSING = frozenset(("nan", "none", "null", "\\n"))  # what programs write for "no value"


def llround(value: float) -> int:
    """The nearest integer; halves away from zero, as C's llround."""
    whole = int(value)
    if abs(value - whole) >= 0.5:
        whole += 1 if value > 0 else -1
    return whole


def parse_number(text: str) -> Optional[float]:
    """A plain decimal number, which may be infinite when it is too large; None: it is none."""
    if not NUMBER.fullmatch(text):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def is_missing(text: Optional[str]) -> bool:
    """Is there no value? Tables that pandas, DuckDB or Hive wrote have words for that."""
    return text is None or text.lower() in MISSING


def parse_clock(text: str) -> Optional[int]:
    """Slurm's [DAYS-]HOURS:MINUTES:SECONDS in microseconds; None: it is none."""
    match = CLOCK.fullmatch(text)
    if not match:
        return None
    days, first = match[1], int(match[2] or match[3])
    second, third = match[4], match[5]
    if days is not None or third is not None:
        seconds = int(days or 0) * 86400 + first * 3600 + int(second or 0) * 60 + int(third or 0)
    else:
        seconds = first * 60 + int(second or 0)
    return seconds * SECOND_US if seconds <= CLOCK_MAX_S else None


_DAYS: Dict[Tuple[str, str, str], int] = {}
_DAYS_OF_TEXT: Dict[str, int] = {}  # "2017-10-07" -> microseconds since 1970
_SIXTY = {f"{number:02d}": number for number in range(60)}
_HOURS = {f"{number:02d}": number for number in range(24)}
PLAIN_SIZE = len("2017-10-07 01:11:39")


def _day_of(year: str, month: str, day: str) -> Optional[int]:
    """Days since 1970; -1: no such day. A log has few days, so they are kept."""
    key = (year, month, day)
    if key not in _DAYS:
        number = -1
        if YEAR_FIRST <= int(year) <= YEAR_LAST:
            try:
                number = datetime.date(int(year), int(month), int(day)).toordinal() - 719163
            except ValueError:
                pass
        _DAYS[key] = number
    return _DAYS[key]


def _zone_s(text: Optional[str]) -> Optional[int]:
    """The seconds by which the zone's clocks are ahead of UTC; None: there is no such zone."""
    if not text or text == "Z":
        return 0
    digits = text[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:] or 0)
    if hours > 14 or minutes > 59:
        return None
    return (-1 if text[0] == "-" else 1) * (hours * 3600 + minutes * 60)


def _parse_plain_date(text: str) -> Optional[int]:
    """2017-10-07 01:11:39, the form of nearly every log, faster; None: see parse_date."""
    days = _DAYS_OF_TEXT.get(text[:10])
    hour, minute, second = _HOURS.get(text[11:13]), _SIXTY.get(text[14:16]), _SIXTY.get(text[17:])
    if None in (days, hour, minute, second) or text[13] != ":" or text[16] != ":":
        return None
    if text[10] not in " T":
        return None
    return days + (hour * 3600 + minute * 60 + second) * SECOND_US  # type: ignore[operator]


def parse_date(text: str) -> Optional[int]:
    """A date with or without a time, a fraction of a second, which is dropped, and a zone:
    "2017-10-07 01:11:39", "2017-10-07", "2023-05-17T09:00:58.25Z", "2023-05-17 11:00:58+02:00".

    Returns microseconds since 1970; None for other texts, impossible dates, and years before 1970
    or after 2199.
    """
    plain = _parse_plain_date(text) if len(text) == PLAIN_SIZE else None
    if plain is not None:
        return plain
    match = DATE.fullmatch(text)
    if not match:
        return None
    year, month, day, hour, minute, second, zone = match.groups()
    days, zone_s = _day_of(year, month, day), _zone_s(zone)
    if days is None or days < 0 or zone_s is None:
        return None
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 60:
        return None
    if len(text) == PLAIN_SIZE:
        _DAYS_OF_TEXT[text[:10]] = days * DAY_US
    total = days * 86400 + hours * 3600 + minutes * 60 + seconds - zone_s
    return total * SECOND_US if total >= 0 else None


def format_date(us: int) -> str:
    """2017-10-07 01:11:39"""
    when = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=us // SECOND_US)
    return when.strftime("%Y-%m-%d %H:%M:%S")


def format_seconds(us: int) -> str:
    """Seconds with at most three decimals."""
    return f"{us / SECOND_US:.3f}".rstrip("0").rstrip(".")
