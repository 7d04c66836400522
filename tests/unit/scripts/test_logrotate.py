# SPDX-License-Identifier: Apache-2.0
"""The rules for logrotate, by the real program, on a log that stays open."""

import gzip
import os
import shutil
import subprocess
import tempfile
import unittest

RULES = os.path.join(os.path.dirname(__file__), "..", "..", "..", "dist", "logrotate", "collocd")
LOGROTATE = shutil.which("logrotate", path=os.environ["PATH"] + ":/usr/sbin")


@unittest.skipUnless(LOGROTATE, "logrotate is not installed")
class Logrotate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="colloc-logrotate-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.log = os.path.join(self.folder, "collocd.log")
        self.rules = os.path.join(self.folder, "rules")
        with open(RULES, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("/var/log/colloc/*.log", text)
        with open(self.rules, "w", encoding="utf-8") as file:
            file.write(text.replace("/var/log/colloc", self.folder))
        os.chmod(self.rules, 0o644)

    def rotate(self, *words):
        state = os.path.join(self.folder, "state")
        done = subprocess.run(
            [LOGROTATE, "-s", state, *words, self.rules],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("error", done.stderr)
        return done.stderr

    def read(self, name=""):
        with open(self.log + name, encoding="utf-8") as file:
            return file.read()

    def test_without_a_log(self):
        self.rotate("-f")

    def test_a_log_that_stays_open(self):
        with open(self.log, "a", encoding="utf-8", buffering=1) as log:  # as append: of systemd
            log.write("one\n")
            self.assertIn(f"considering log {self.log}", self.rotate("-d"))
            self.assertEqual(self.read(), "one\n")
            self.rotate("-f")
            log.write("two\n")
            self.assertEqual((self.read(), self.read(".1")), ("two\n", "one\n"))
            self.rotate("-f")
            log.write("three\n")
        self.assertEqual((self.read(), self.read(".1")), ("three\n", "two\n"))
        with gzip.open(self.log + ".2.gz", "rt") as file:
            self.assertEqual(file.read(), "one\n")


if __name__ == "__main__":
    unittest.main()
