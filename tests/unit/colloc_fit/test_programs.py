# SPDX-License-Identifier: Apache-2.0
"""The programs in scripts/ that run modules of colloc_fit answer, and say what is wrong."""
import os
import subprocess
import sys
import unittest

import fit_case


def run(name, *arguments):
    program = os.path.join(fit_case.ROOT, "scripts", name)
    return subprocess.run(
        [sys.executable, program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


class Programs(unittest.TestCase):
    def test_those_with_help(self):
        for name in (
            "fit-sharing",
            "judge-predictive",
            "judge-preempt",
            "judge-waits",
            "simulated-pages",
            "study-auto",
            "study-bound",
            "study-orders",
            "study-regression",
            "study-trace",
        ):
            done = run(name, "--help")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"usage: {name}", done.stdout)

    def test_those_with_a_usage(self):
        for name, status in (
            ("fit-estimators", 1),
            ("fit-steps", 1),
            ("study-collocation", 2),
            ("study-monitor", 2),
            ("study-summaries", 1),
            ("study-timm", 1),
        ):
            done = run(name, "--no-such-option")
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(f"scripts/{name}", done.stderr)

    def test_pages_are_not_made_of_wrong_words(self):
        for words, complaint in ((("/", "nosuch"), "no part nosuch"), (("/",), "no build folder")):
            done = run("simulated-pages", *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(complaint, done.stderr)

    def test_paths_still_point_into_the_tree(self):
        sys.path.insert(0, os.path.join(fit_case.ROOT, "python"))
        from colloc_fit import fit_estimators, fit_sharing, study_collocation, study_trace

        for path in (
            fit_estimators.ROOT,
            fit_sharing.ROOT,
            study_collocation.TABLES,
            study_trace.TRAIN,
            os.path.join(fit_estimators.ROOT, "data", "memory"),
        ):
            self.assertTrue(os.path.exists(path), path)


if __name__ == "__main__":
    unittest.main()
