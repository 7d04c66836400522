#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documents say of commands, options, settings, scripts and files is there."""

import glob
import os
import re
import subprocess
import unittest

from cli_case import COLLOC, CliCase

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
COLLOCD = os.path.join(os.path.dirname(COLLOC), "..", "daemon", "collocd")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "tests/README.md",
    *sorted(
        os.path.relpath(path, ROOT)
        for pattern in ("docs/*.md", "docs/measured/*.md", "data/*/*.md")
        for path in glob.glob(os.path.join(ROOT, pattern))
    ),
]


def read_pages():
    for page in PAGES:
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            yield page, file.read()


def code_of(text):
    """What stands in code spans and in indented or fenced blocks; lines that end in a backslash are
    one.
    """
    text = re.sub(r" *\\\n\s*", " ", text)
    fenced = re.findall(r"^```.*?\n(.*?)^```", text, re.M | re.S)
    indented = re.findall(r"^(?: {4}|\t)(.*)$", text, re.M)
    return [line for block in (*fenced, *indented) for line in block.splitlines()] + re.findall(
        r"`([^`\n]+)`", text
    )


# The ways in for people who use other tools: README's table has a page for each.
DOORS = {
    "cluster-logs", "containers", "executor", "hydra", "notebooks", "optuna", "outside",
    "slurm-commands", "ssh", "sweeps",
}  # fmt: skip
DOOR_LINES_MAX = 60
DOOR_LINES_BEFORE_COMMANDS = 6  # title, what the reader will be able to do


def anchors_of(text):
    """The names by which links reach its headings, as on GitHub."""
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def strings_of_source():
    """The texts of src/**/*.c, each joined from its literals."""
    literal = r'"((?:[^"\\\n]|\\.)*)"'
    found = []
    for path in glob.glob(os.path.join(ROOT, "src", "**", "*.c"), recursive=True):
        with open(path, encoding="utf-8") as file:
            for joined in re.finditer(rf"(?:{literal}\s*)+", file.read()):
                found.append("".join(re.findall(literal, joined[0])))
    return "\n".join(found)


class Docs(CliCase):
    def options_of(self, program, *words):
        done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
        return set(re.findall(r"^ {2,6}(?:-\w, )?(--[\w-]+)", done.stdout, re.M))

    def calls(self, program):
        """(page, the words behind the program) of each place where it is called."""
        for page, text in read_pages():
            for code in code_of(text):
                for call in re.split(
                    r"\||&&|;|\s#\s|\s--\s", re.sub(r"\[,?-?(-\w+)", r" \1", code)
                ):
                    found = re.search(rf"(?:^|[\s/$(]){program} +([^`]*)", call)
                    if found:
                        yield page, found[1].split()

    def test_commands_and_options(self):
        known, calls = {}, 0
        for page, words in self.calls("colloc"):
            name = words[0].split("|")[0]
            if (
                not re.fullmatch(r"[a-z][a-z-]*", name)
                or name in os.environ.get("COLLOC_LEFT_OUT", "").split()
            ):
                continue
            with self.subTest(page=page, words=words):
                if name not in known:
                    known[name] = self.options_of(COLLOC, "help", name)
                for option in re.findall(r"(?<!\S)\[?(--[a-z][\w-]*)", " ".join(words[1:])):
                    self.assertIn(option, known[name])
            calls += 1
        self.assertGreater(calls, 60)

    def test_settings_of_the_daemon(self):
        known, calls = self.options_of(COLLOCD, "--help"), 0
        for page, words in self.calls("collocd"):
            for option in re.findall(r"(?<!\S)\[?(--[a-z][\w-]*)", " ".join(words)):
                with self.subTest(page=page, option=option):
                    self.assertIn(option, known | {"--help", "--version"})
                calls += 1
        self.assertGreater(calls, 2)

    def test_pages_of_doors(self):
        """Each is short, starts with its commands, and is in README's table."""
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            table = re.search(r"^\| you use .*?\n\n", file.read(), re.M | re.S)[0]
        self.assertEqual(set(re.findall(r"\(docs/([\w-]+)\.md\)", table)), DOORS)
        for page in DOORS:
            with open(os.path.join(ROOT, "docs", page + ".md"), encoding="utf-8") as file:
                lines = file.read().splitlines()
            first = next(i for i, line in enumerate(lines) if line.startswith("    "))
            self.assertLessEqual(len(lines), DOOR_LINES_MAX, page)
            self.assertLessEqual(first, DOOR_LINES_BEFORE_COMMANDS, page)

    def test_sentences_of_bad_input(self):
        """What carrier.md quotes of the program is in it."""
        with open(os.path.join(ROOT, "docs", "carrier.md"), encoding="utf-8") as file:
            part = re.search(r"^### What is missing, or fails\n(.*?)^#", file.read(), re.M | re.S)[
                1
            ]
        entries = " ".join(part.split()).split(" - **")[1:]
        sentences = [s for entry in entries for s in re.findall(r'\("([^"]+)"\)', entry)]
        self.assertGreater(len(sentences), 8)
        source = strings_of_source()
        for sentence in sentences:
            with self.subTest(sentence):
                self.assertIn(
                    re.sub(r" \([\d.]+ GiB wanted, [\d.]+ GiB free\)", "", sentence), source
                )

    def test_links_to_headings(self):
        texts = {os.path.join(ROOT, page): text for page, text in read_pages()}
        links = 0
        for page, text in read_pages():
            for file, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text):
                to = (
                    os.path.join(ROOT, os.path.dirname(page), file)
                    if file
                    else os.path.join(ROOT, page)
                )
                to = os.path.normpath(to)
                if to in texts:
                    with self.subTest(page=page, link=f"{file}#{anchor}"):
                        self.assertIn(anchor, anchors_of(texts[to]))
                    links += 1
        self.assertGreater(links, 40)

    def test_links_and_scripts(self):
        links = 0
        for page, text in read_pages():
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
                if not re.match(r"[a-z]+:", link):
                    with self.subTest(page=page, link=link):
                        self.assertTrue(
                            os.path.exists(os.path.join(ROOT, os.path.dirname(page), link))
                        )
                    links += 1
            for script in re.findall(r"(?<!/)\bscripts/[\w-]+", "\n".join(code_of(text))):
                with self.subTest(page=page, script=script):
                    self.assertTrue(os.path.exists(os.path.join(ROOT, script)))
        self.assertGreater(links, 40)


if __name__ == "__main__":
    unittest.main()
