# SPDX-License-Identifier: Apache-2.0
"""The unit for systemd: what it promises, and that systemd understands it."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
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
        self.assertEqual(self.values("RestartPreventExitStatus"), ["2"])
        self.assertEqual(
            self.values("ExecReload"), ["@sbindir@/collocd --check", "kill -HUP $MAINPID"]
        )
        self.assertEqual(self.values("Type"), ["notify"])

    def test_tasks_outlive_the_daemon_in_cgroups_of_their_own(self):
        self.assertEqual(self.values("KillMode"), ["process"])
        self.assertEqual(self.values("Delegate"), ["yes"])
        self.assertEqual(self.values("OOMPolicy"), ["continue"])

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
    def test_systemd_understands_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "collocd.service")
            with open(path, "w", encoding="utf-8") as file:
                text = self.text.replace("@sbindir@/collocd", shutil.which("true"))
                file.write(LEFT_OUT.sub("", text))
            done = subprocess.run(
                ["systemd-analyze", "verify", "--recursive-errors=no", path],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
