# SPDX-License-Identifier: Apache-2.0
"""Tables of measured pages are what their command prints of the raw results."""

import os
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
START = (
    "start.jsonl",
    "start-two.jsonl",
    "start-again.jsonl",
    "start-array-small.jsonl",
    "start-array-middle.jsonl",
)
MEASURED = os.path.join(ROOT, "docs", "measured")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(text):
    """The cells of each row of a table, without the lines of dashes, which Prettier widens."""
    found = [cells(line) for line in text.splitlines() if line.startswith("|")]
    return [row for row in found if not set("".join(row)) <= set("-: ")]


class Pages(unittest.TestCase):
    def made_by(self, program, *words):
        return subprocess.run(
            [sys.executable, os.path.join(ROOT, *program), *words],
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        ).stdout

    def test_start(self):
        made = ""
        for name in START:
            path = os.path.join(MEASURED, name)
            made += self.made_by(("tests", "gpu", "start_trial.py"), "--page", path)
        with open(os.path.join(MEASURED, "start.md"), encoding="utf-8") as file:
            page = rows(file.read())
        self.assertGreater(len(page), 4)
        self.assertEqual(page, rows(made))

    def test_memory_waits(self):
        paths = [os.path.join(MEASURED, f"memory-waits-carrier-{gpu}.json.xz") for gpu in (0, 1)]
        made = rows(self.made_by(("scripts", "study-trace"), "--table", *paths))
        with open(os.path.join(MEASURED, "memory-waits.md"), encoding="utf-8") as file:
            page = [row for row in rows(file.read()) if len(row) == len(made[0])]
        self.assertGreater(len(made), 2)
        self.assertEqual([row for row in page if row in made], made)


if __name__ == "__main__":
    unittest.main()
