# SPDX-License-Identifier: Apache-2.0
"""docs/reproductions.md names tests that exist, and every entry has one or says why not."""

import os
import re
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
PAGE = "docs/reproductions.md"
REFERENCE = re.compile(r"`(tests/[\w./-]+)(?:::([\w:]+))?`")
ENTRY = re.compile(r"^(?:-|\d+\.) ", re.MULTILINE)
REASON = re.compile(r"\b(Open|By design|by design)\b")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def missing(path, name):
    """What of a reference is not in the tree; None when all of it is."""
    if not os.path.exists(os.path.join(ROOT, path)):
        return path
    if not name:
        return None
    text = read(path)
    if path.endswith(".py"):
        *classes, test = name.split("::")
        for single in classes:
            begin = re.search(rf"^class {single}\b.*:\n((?:[ \t].*\n|\n)*)", text, re.MULTILINE)
            if not begin:
                return f"{path}::{single}"
            text = begin[1]
        found = re.search(rf"^\s+def {test}\(self", text, re.MULTILINE)
    else:
        found = re.search(rf"^static void {name}\(void \*\*", text, re.MULTILINE)
    return None if found else f"{path}::{name}"


class Reproductions(unittest.TestCase):
    def test_every_named_test_exists(self):
        references = REFERENCE.findall(read(PAGE))
        self.assertGreater(len(references), 150)
        gone = sorted({missing(*reference) for reference in references} - {None})
        self.assertEqual(gone, [], f"{PAGE} names tests that do not exist")

    def test_every_entry_has_a_test_or_a_reason(self):
        for section in re.split(r"^#+ ", read(PAGE), flags=re.MULTILINE)[1:]:
            title, _, body = section.partition("\n")
            for entry in ENTRY.split(body)[1:]:
                named = REFERENCE.search(entry) or REASON.search(f"{title} {entry}")
                self.assertTrue(named, f"{title}: an entry without a test: {entry[:80]}")

    def test_what_is_gone_is_found(self):
        this = "tests/unit/scripts/test_reproductions.py"
        self.assertIsNone(missing(this, "Reproductions::test_what_is_gone_is_found"))
        for path, name in (
            ("tests/unit/scripts/test_nothing.py", ""),
            (this, "Reproductions::test_nothing"),
            (this, "Nothing::test_what_is_gone_is_found"),
            ("tests/unit/core/test_core.c", "test_nothing"),
        ):
            self.assertIsNotNone(missing(path, name), (path, name))


if __name__ == "__main__":
    unittest.main()
