# SPDX-License-Identifier: Apache-2.0
"""The units for systemd: what they promise, and how much systemd says they leave open."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
UNITS = ("collocd.service", "colloc-node.service", "colloc-slurm.service")
# What a check here must leave out: pages that are not installed, a key of systemd 254.
LEFT_OUT = re.compile(r"^(Documentation|DelegateSubgroup)=.*\n", re.MULTILINE)


class Service(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(ROOT, "dist", "collocd.service.in"), encoding="utf-8") as file:
            self.text = file.read()

    def values(self, key):
        return re.findall(rf"^{key}=(.*)$", self.text, re.MULTILINE)

    def test_it_is_started_again_and_reloaded(self):
        self.assertEqual(self.values("Restart"), ["always"])
        self.assertEqual(self.values("StartLimitIntervalSec"), ["0"])
        self.assertEqual(self.values("RestartPreventExitStatus"), ["2"])
        self.assertEqual(
            self.values("ExecReload"), ["@sbindir@/collocd --check", "kill -HUP $MAINPID"]
        )
        self.assertEqual(self.values("Type"), ["notify"])

    def test_tasks_outlive_the_daemon_in_cgroups_of_their_own(self):
        self.assertEqual(self.values("KillMode"), ["process"])
        self.assertEqual(self.values("Delegate"), ["yes"])
        self.assertEqual(self.values("OOMPolicy"), ["continue"])
        self.assertEqual(self.values("OOMScoreAdjust"), ["-900"])


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
class Analyzed(unittest.TestCase):
    """As systemd-analyze sees them, with a program that is there."""

    def analyze(self, unit, *words):
        with open(os.path.join(ROOT, "dist", unit + ".in"), encoding="utf-8") as file:
            text = re.sub(r"@sbindir@/\S+", shutil.which("true"), LEFT_OUT.sub("", file.read()))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, unit)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return subprocess.run(
                ["systemd-analyze", *words, path],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )

    def test_systemd_understands_them(self):
        for unit in UNITS:
            done = self.analyze(unit, "verify", "--recursive-errors=no")
            self.assertEqual((done.returncode, done.stderr), (0, ""), unit)

    def test_their_exposure_is_at_most_as_documented(self):
        with open(os.path.join(ROOT, "docs", "install.md"), encoding="utf-8") as file:
            documented = dict(re.findall(r"^\| `(\S+\.service)` +\| ([\d.]+) ", file.read(), re.M))
        self.assertEqual(sorted(documented), sorted(UNITS))
        for unit, most in documented.items():
            # The threshold is in tenths of what is printed.
            threshold = round(10 * float(most))
            done = self.analyze(unit, "security", "--offline=true", f"--threshold={threshold}")
            self.assertEqual(done.returncode, 0, done.stdout[-400:] + done.stderr)


if __name__ == "__main__":
    unittest.main()
