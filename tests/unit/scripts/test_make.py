# SPDX-License-Identifier: Apache-2.0
"""What the targets of the Makefile build."""
import json
import os
import subprocess
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


class Make(unittest.TestCase):
    def planned(self, *arguments):
        """The commands of a target in a folder without a build."""
        done = subprocess.run(
            ["make", "--dry-run", "--no-print-directory", "BUILD=not-there", *arguments],
            cwd=ROOT,
            env={**os.environ, "MAKEFLAGS": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def test_the_tests_are_built_when_they_are_asked_for(self):
        introspect = ["meson", "introspect", "--buildoptions", os.path.join(ROOT, "meson.build")]
        options = json.loads(subprocess.run(introspect, capture_output=True, check=True).stdout)
        self.assertIn(("tests", "disabled"), [(one["name"], one["value"]) for one in options])
        self.assertNotIn("-Dtests=", self.planned("all"))
        for target in ("check", "soak"):
            self.assertIn("-Dtests=enabled", self.planned(target))


if __name__ == "__main__":
    unittest.main()
