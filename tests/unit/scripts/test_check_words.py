# SPDX-License-Identifier: Apache-2.0
"""scripts/check-words: tables that are wider than a screen."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile
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
    def found(self, *rows, page=PAGE):
        return list(words.check_tables(page, "\n".join(["# A page", "", *rows]) + "\n"))

    def test_a_wide_row_is_refused(self):
        self.assertEqual(self.found(row_of(200)), [])
        wide = [f"{PAGE}:4: a table of 201 columns, at most 200"]
        self.assertEqual(self.found(row_of(200), row_of(201)), wide)

    def test_the_program_refuses_it_also_where_words_are_not_checked(self):
        wide = "a table of 201 columns, at most 200\n1 findings\n"
        for page in (PAGE, "docs/glossary.md"):
            with tempfile.TemporaryDirectory() as root, contextlib.ExitStack() as stack:
                os.mkdir(os.path.join(root, "docs"))
                with open(os.path.join(root, page), "w", encoding="utf-8") as file:
                    file.write(row_of(201) + "\n")
                stack.enter_context(mock.patch.object(words, "ROOT", root))
                stack.enter_context(mock.patch.object(words, "tracked_files", lambda: [page]))
                stack.enter_context(mock.patch.object(sys, "argv", ["check-words"]))
                printed = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
                self.assertEqual(words.main(), 1)
            self.assertEqual(printed.getvalue(), f"{page}:1: {wide}")

    def test_a_table_in_a_list_is_one(self):
        wide = [f"{PAGE}:3: a table of 202 columns, at most 200"]
        self.assertEqual(self.found("  " + row_of(200)), wide)

    def test_code_blocks_and_other_files_have_no_tables(self):
        self.assertEqual(self.found("```", row_of(300), "```"), [])
        wide = [f"{PAGE}:6: a table of 300 columns, at most 200"]
        self.assertEqual(self.found("```", row_of(300), "```", row_of(300)), wide)
        self.assertEqual(self.found(row_of(300), page="CHANGELOG.md"), [])

    def test_all_pages_are_read(self):
        pages = ["README.md", "CONTRIBUTING.md", "tests/gpu/README.md"]
        for page in [*pages, "docs/slurm-node.md", "docs/measured/h200.md"]:
            self.assertEqual(len(self.found(row_of(300), page=page)), 1, page)


if __name__ == "__main__":
    unittest.main()
