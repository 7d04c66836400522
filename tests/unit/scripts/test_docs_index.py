# SPDX-License-Identifier: Apache-2.0
"""docs/README.md names every page, each once, and README.md leads to it."""

import collections
import glob
import os
import re
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
WIDTH = 106  # columns of a code block in a browser on a desktop
LINK = re.compile(r"\]\(([^)#:]+\.md)\)")


def links_of(path):
    """The Markdown files that a page links to, relative to the source tree."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        found = LINK.findall(file.read())
    return [os.path.normpath(os.path.join(os.path.dirname(path), link)) for link in found]


class Index(unittest.TestCase):
    def test_every_page_is_listed_once(self):
        pages = glob.glob("docs/*.md", root_dir=ROOT) + glob.glob(
            "docs/measured/*.md", root_dir=ROOT
        )
        listed = collections.Counter(links_of("docs/README.md"))
        self.assertGreater(len(pages), 70)
        self.assertEqual(set(pages) - {"docs/README.md", "docs/commands.md"} - set(listed), set())
        self.assertEqual([page for page, n in listed.items() if n > 1], [])
        self.assertEqual([p for p in listed if not os.path.exists(os.path.join(ROOT, p))], [])

    def test_the_tests_that_pages_name_exist(self):
        """`Class.test_name`, or only the latter, in tests/system."""
        tests, bodies = "", collections.defaultdict(str)
        for path in glob.glob("tests/system/test_*.py", root_dir=ROOT):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                tests += file.read()
        for name, body in re.findall(r"(?ms)^class (\w+)\(.*?\):\n(.*?)(?=^class |\Z)", tests):
            bodies[name] += body
        n = 0
        for page in glob.glob("docs/*.md", root_dir=ROOT):
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                named = re.findall(r"`(?:(\w+)\.)?(test_\w+)`", file.read())
            for name, test in named:
                body = bodies[name] if name else tests
                self.assertTrue(f"def {test}(" in body, f"{page}: {name}.{test}")
                n += 1
        self.assertGreater(n, 14)

    def test_first_commands_are_seen_whole(self):
        """A code block is not wrapped: what is right of its edge is out of sight in a browser."""
        for page in ["README.md", *glob.glob("docs/*.md", root_dir=ROOT)]:
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                blocks = re.findall(r"(?m)(?:^    .*\n)+", file.read())
            for line in "".join(blocks if page == "README.md" else blocks[:1]).splitlines():
                self.assertLessEqual(len(line.strip()), WIDTH, f"{page}: {line}")

    def test_the_first_page_leads_to_it(self):
        self.assertIn("docs/README.md", links_of("README.md"))


if __name__ == "__main__":
    unittest.main()
