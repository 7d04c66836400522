#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A policy or a task option that is one row in its table appears everywhere.

The programs are the product's, linked with a table of one row more: the policy `pretend`
(pretend_policies.c) and the option `--pretend=SIZE` (pretend_options.def).
"""

import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "system"))

import daemon_case  # noqa: E402

COLLOC = os.environ["PRETEND_COLLOC"]
COLLOCD = os.environ["PRETEND_COLLOCD"]
daemon_case.PROGRAMS.update(colloc=COLLOC, collocd=COLLOCD)


def output_of(*words):
    """Its text with all blanks as one, so that a wrapped line is found."""
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split())


class Help(unittest.TestCase):
    def test_help_of_the_option(self):
        self.assertIn(
            "--pretend=SIZE memory that it pretends to need; default: 7MiB",
            output_of(COLLOC, "help", "submit"),
        )

    def test_help_of_the_policy(self):
        self.assertIn(
            "placement policy for this task: magm, pretend;", output_of(COLLOC, "help", "submit")
        )
        self.assertIn("magm, pretend", output_of(COLLOCD, "--help"))

    def test_man_pages(self):
        page = output_of(COLLOC, "help", "--man")
        self.assertIn(r"\fB\-\-pretend\fR=\fISIZE\fR memory that it pretends", page)
        self.assertIn("magm, pretend;", page)
        self.assertIn("magm, pretend", output_of(COLLOCD, "--print-settings=roff"))

    def test_completion(self):
        for shell in ("bash", "zsh", "fish"):
            with self.subTest(shell=shell):
                script = output_of(COLLOC, "help", f"--completion={shell}")
                self.assertRegex(script, r"--pretend=|-l pretend .*memory that it pretends")
                self.assertIn("magm pretend ", script)


class Requests(daemon_case.DaemonCase):
    def request_of(self, *words):
        """The JSON that `colloc submit` would send."""
        return json.loads(self.colloc("submit", "--dry-run", *words).stdout)

    def test_command_line_and_task_files(self):
        script = self.write("task.sh", "#!/bin/sh\n#COLLOC --pretence=64MiB\ntrue\n")
        rad = self.write("task.rad", "true\npretend: 64MiB\n")
        for words in (["--pretend=64MiB", "--", "true"], [script], [rad]):
            with self.subTest(words=words):
                self.assertEqual(self.request_of(*words)["pretend_mib"], 64)
        self.assertNotIn("pretend_mib", self.request_of("--", "true"))
        refused = self.colloc("submit", "--pretend=4GiB", "--", "true", code=2)
        self.assertIn("--pretend=4GiB: must be from 1.0 MiB to 2.0 GiB", refused.stderr)

    def test_the_daemon_checks_and_shows_the_option(self):
        self.refused(400, "pretend_mib=4096", "between 1 and 2048", pretend_mib=4096)
        self.refused(400, "pretend_mib: has to be a number", pretend_mib="64MiB")
        self.refused(400, "pretended_mib: there is no such key", pretended_mib=64)
        task = self.submit(hold=True, pretend_mib=64)
        self.assertEqual(self.task(task)["pretend_mib"], 64)
        self.assertRegex(self.colloc("show", str(task)).stdout, r"\nPretended +64\.0 MiB\n")
        self.restart()
        self.assertEqual(self.task(task)["pretend_mib"], 64)

    def test_the_daemon_knows_the_policy(self):
        self.refused(400, "policy=best: must be one of magm, pretend", policy="best")
        task = self.submit(policy="pretend")
        self.assertEqual(self.task(task)["policy"], "pretend")


if __name__ == "__main__":
    unittest.main()
