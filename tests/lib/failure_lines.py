# SPDX-License-Identifier: Apache-2.0
"""The few lines of a failed test's output that say why it failed, for a summary.

The end of the output is seldom the reason: a report of a sanitizer begins with its reason, a
compiler's error stands before what ninja says of it, and a failed assertion of Python may print a
daemon's log after its traceback. So the lines are those

1. from the first report of a sanitizer or failed assert() on, else
2. from ninja's first failed command on, else
3. of unittest's first failure: its name, the calls in our files, and the error, else
4. at the end.

Lines without news (tests that passed, rules, empty lines) are left out first.
"""
import re

COLUMNS = 200
NO_NEWS = re.compile(
    r"""\s*$ | \s*[\^~=-]+\s*$ | .*\.\.\.\ (ok|skipped\b.*)$ | Ran\ \d+\ tests?\ in\b
    | \[\ (RUN|\ +OK|\ PASSED)\ | \[=+\]\ | \[\d+/\d+\]\ | ninja:\ build\ stopped""",
    re.VERBOSE,
)
DEATH = re.compile(r"==\d+==\s*ERROR: |.*: runtime error: |.*: Assertion `.*' failed")
COMMAND = re.compile(r"FAILED: ")
RULE = re.compile(r"(=|-){70}$")
HEADING = re.compile(r"(FAIL|ERROR): ")
CHAINED = re.compile(r"(During handling of|The) above exception")
NOT_INDENTED = re.compile(r"\S")
FRAME = re.compile(r'  File "')
NOT_OURS = re.compile(r'  File "(/usr/lib/|<frozen)')


def index_of(pattern, lines):
    """Returns the first line's index, or None."""
    return next((i for i, line in enumerate(lines) if pattern.match(line)), None)


def find_unittest_failure(lines):
    """Returns the lines of the first failure that unittest printed at its end, without its rules;
    [] if there is none."""
    for i in range(1, len(lines)):
        if RULE.match(lines[i - 1]) and HEADING.match(lines[i]):
            begin = i + 1 + (index_of(RULE, lines[i + 1 :]) or 0)
            end = index_of(RULE, lines[begin + 1 :])
            return [lines[i]] + lines[begin + 1 : None if end is None else begin + 1 + end]
    return []


def shorten_failure(lines, limit):
    """The heading, the calls and the error. If these are too many lines, the error gets at least
    half of them; of calls and error, the first and the last lines stay."""
    heading, rest = lines[0], [line for line in lines[1:] if not NO_NEWS.match(line)]
    for i in (i for i, line in enumerate(lines) if CHAINED.match(line)):
        rest = [line for line in lines[i + 1 :] if not NO_NEWS.match(line)]
    first = index_of(NOT_INDENTED, rest[1:])
    first = len(rest) if first is None else first + 1
    frames, error = join_frames(rest[:first]), rest[first:]
    space = limit - 1
    error = shorten_middle(error, max(space - len(frames), (space + 1) // 2))
    return [heading, *shorten_middle(frames, space - len(error)), *error]


def join_frames(lines):
    """Each call in our files as one line: its place and its source."""
    frames = []
    for line in lines:
        if FRAME.match(line):
            frames.append(line)
        elif frames:
            frames[-1] += ": " + line.strip()
    return [frame for frame in frames if not NOT_OURS.match(frame)]


def shorten_middle(lines, limit):
    if len(lines) <= limit:
        return lines
    last = limit // 2
    return lines[: limit - last] + lines[len(lines) - last :]


def choose_lines(text, limit):
    """Chooses the lines of a failed program's output that say why it failed.

    text: the output
    limit: the number of lines, at least 2

    Returns at most `limit` lines, each of at most COLUMNS characters.
    """
    lines = text.splitlines()
    news = [line for line in lines if not NO_NEWS.match(line)]
    for pattern in (DEATH, COMMAND):
        begin = index_of(pattern, news)
        if begin is not None:
            news = news[begin : begin + limit]
            break
    else:
        failure = find_unittest_failure(lines)
        news = shorten_failure(failure, limit) if failure else news[-limit:]
    return [line.rstrip()[:COLUMNS] for line in news]
