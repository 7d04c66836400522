# SPDX-License-Identifier: Apache-2.0
"""Tables of measured pages are what their command prints of the raw results."""

import os
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
MEASURED = os.path.join(ROOT, "docs", "measured")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(text):
    """The cells of each row of a table, without the lines of dashes, which Prettier widens."""
    found = [cells(line) for line in text.splitlines() if line.startswith("|")]
    return [row for row in found if not set("".join(row)) <= set("-: ")]


class Pages(unittest.TestCase):
    def test_start(self):
        made = ""
        for name in ("start.jsonl", "start-two.jsonl"):
            made += subprocess.run(
                [sys.executable, os.path.join(ROOT, "tests", "gpu", "start_trial.py"), "--page"]
                + [os.path.join(MEASURED, name)],
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            ).stdout
        with open(os.path.join(MEASURED, "start.md"), encoding="utf-8") as file:
            page = rows(file.read())
        self.assertGreater(len(page), 4)
        self.assertEqual(page, rows(made))


if __name__ == "__main__":
    unittest.main()
