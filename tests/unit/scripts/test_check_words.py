# SPDX-License-Identifier: Apache-2.0
"""scripts/check-words: tables that are wider than a screen."""

import importlib.machinery
import importlib.util
import os
import unittest
from unittest import mock

CHECK = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts", "check-words"
)
PAGE = "docs/page.md"


def load():
    loader = importlib.machinery.SourceFileLoader("check_words", CHECK)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_words", loader))
    loader.exec_module(module)
    return module


words = load()


def row_of(columns):
    return "| " + "x" * (columns - 4) + " |"


class Tables(unittest.TestCase):
    def found(self, *rows, page=PAGE, left=0):
        with mock.patch.dict(words.WIDE_ROWS_LEFT, {page: left}):
            return list(words.check_tables(page, "\n".join(["# A page", "", *rows]) + "\n"))

    def test_a_wide_row_is_refused(self):
        self.assertEqual(self.found(row_of(200)), [])
        wide = [f"{PAGE}:4: a table of 201 columns, at most 200"]
        self.assertEqual(self.found(row_of(200), row_of(201)), wide)

    def test_it_is_a_check_of_the_program(self):
        self.assertIn(words.check_tables, words.CHECKS)

    def test_code_blocks_and_other_files_have_no_tables(self):
        self.assertEqual(self.found("```", row_of(300), "```"), [])
        wide = [f"{PAGE}:6: a table of 300 columns, at most 200"]
        self.assertEqual(self.found("```", row_of(300), "```", row_of(300)), wide)
        self.assertEqual(self.found(row_of(300), page="data/steps/README.md"), [])

    def test_all_pages_are_read(self):
        for page in ("README.md", "CONTRIBUTING.md", "docs/slurm-node.md", "docs/measured/h200.md"):
            self.assertEqual(len(self.found(row_of(300), page=page)), 1, page)

    def test_the_number_that_is_left_only_falls(self):
        two = [row_of(300)] * 2
        self.assertEqual(self.found(*two, left=2), [])
        self.assertEqual(len(self.found(*two, left=1)), 2)
        fewer = [f"{PAGE}: 2 wide rows are left: say so in WIDE_ROWS_LEFT of check-words"]
        self.assertEqual(self.found(*two, left=3), fewer)


if __name__ == "__main__":
    unittest.main()
