# SPDX-License-Identifier: Apache-2.0
"""What docs/measured/auto.md says after its table of modes is what the table has."""
import re
import unittest

import fit_case

MODES = ("streams", "mps")


def read_page():
    """The table's numbers by mode and key, each a list of (per cent, is bold); and the sentences on
    the default."""
    with open(f"{fit_case.ROOT}/docs/measured/auto.md", encoding="utf-8") as file:
        head, _, rest = file.read().partition("## Why it is the default")
    rows = re.findall(r"^\| (?:tasks.txt|idle)[^|]*\| philly.*", head, re.MULTILINE)
    cells = [[cell.strip() for cell in row.split("|")[4:8]] for row in rows]
    columns = [
        [(float(cell.strip("*").split()[0]), cell.startswith("**")) for cell in column]
        for column in zip(*cells)
    ]
    return columns, rest.partition("## MIG")[0]


def worst(column):
    """Of those beyond noise, as a pattern for the page's words."""
    values = [value for value, is_bold in column if is_bold]
    return rf"\+{max(values)} %" if values else "none"


class Auto(unittest.TestCase):
    def test_the_worst_cells_are_named(self):
        columns, text = read_page()
        for k, mode in enumerate(MODES):
            total, completion = (worst(column) for column in columns[2 * k : 2 * k + 2])
            self.assertRegex(text, rf"\| {mode} +\| {total} [^|]*\| {completion} ")

    def test_the_cells_that_are_worse_are_counted(self):
        columns, text = read_page()
        worse = sum(is_bold for column in columns for _, is_bold in column)
        count = sum(len(column) for column in columns)
        self.assertIn(f"in {worse} of the {count} cells", " ".join(text.split()))


if __name__ == "__main__":
    unittest.main()
