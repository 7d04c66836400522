# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/promise_trial.py: speeds of the phases of its story, on the page."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "gpu"))

import promise_trial  # noqa: E402


class Phases(unittest.TestCase):
    def test_seconds_differ(self):
        ends = [0.5, 1.2, 1.4, 1.6, 2.5]
        self.assertEqual(promise_trial.span(ends, 0, 2), "2.0 (1 to 3)")

    def test_a_phase_of_less_than_a_second_has_a_mean_only(self):
        self.assertEqual(promise_trial.span([0.1, 0.3], 0, 0.5), "4.0")


if __name__ == "__main__":
    unittest.main()
