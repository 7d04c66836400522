# SPDX-License-Identifier: Apache-2.0
"""scripts/bench over a pretend meson: the tests are configured when they were not, and no table is
an error.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts", "bench"
)
# Answers from the folder it is in, and lists the benchmarks only once the tests are enabled.
MESON = f"""#!{sys.executable}
import json, os, sys
here = os.path.dirname(__file__)
enabled = os.path.exists(os.path.join(here, "enabled"))
if sys.argv[1] == "configure":
    open(os.path.join(here, "enabled"), "w").close()
elif sys.argv[2] == "--buildoptions":
    print(json.dumps([{{"name": "tests", "value": "enabled" if enabled else "auto"}}]))
else:
    print(open(os.path.join(here, "benchmarks")).read() if enabled else "[]")
"""


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.program("meson", MESON)
        self.program("ninja", "#!/bin/sh\nexit 0\n")

    def program(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def bench(self, *programs):
        listed = [
            {"cmd": [self.program(f"bench_{i}", text)], "env": {}}
            for i, text in enumerate(programs)
        ]
        with open(os.path.join(self.folder, "benchmarks"), "w", encoding="utf-8") as file:
            json.dump(listed, file)
        return subprocess.run(
            [sys.executable, BENCH, "--runs=1", self.folder],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": self.folder + ":" + os.environ["PATH"]},
        )

    def test_a_folder_without_tests_is_configured_with_them(self):
        done = self.bench("#!/bin/sh\nprintf 'submit\\tms\\tmedian < 9\\t3\\t4\\n'\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\| submit +\| ms +\| median < 9 +\| 3 +\| 4 ")
        self.assertTrue(os.path.exists(os.path.join(self.folder, "enabled")))

    def test_each_comparison_of_a_target(self):
        figures = [("< 3", "MISS"), ("<= 3", "yes"), ("> 3", "MISS"), (">= 3", "yes")]
        rows = "".join(f"row\\tms\\tmedian {target}\\t3\\t\\n" for target, _ in figures)
        done = self.bench(f"#!/bin/sh\nprintf '{rows}'\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        for target, verdict in figures:
            self.assertRegex(done.stdout, rf"median {target} .*\| {verdict} ")

    def test_no_figure_is_an_error(self):
        for programs in ([], ["#!/bin/sh\necho nothing\n"]):
            done = self.bench(*programs)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("gave a figure", done.stderr)

    def test_a_program_that_fails_is_an_error_with_a_table(self):
        done = self.bench("#!/bin/sh\nprintf 'submit\\tms\\t\\t3\\t\\n'\n", "#!/bin/sh\nexit 3\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| submit", done.stdout)
        self.assertIn("bench_1: exit status 3", done.stderr)

    def test_tests_that_cannot_be_built_are_said(self):
        self.program("ninja", "#!/bin/sh\nexit 1\n")
        done = self.bench()
        self.assertEqual(done.returncode, 1)
        self.assertIn("make deps", done.stderr)


if __name__ == "__main__":
    unittest.main()
