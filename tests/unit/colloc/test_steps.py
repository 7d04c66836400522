# SPDX-License-Identifier: Apache-2.0
"""colloc.step: reports where the preloaded library is, and harms no script where it is not."""

import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))

from colloc import steps  # noqa: E402


class Step(unittest.TestCase):
    def setUp(self):
        steps._report = None
        self.addCleanup(setattr, steps, "_report", None)

    def library(self, answer):
        library = mock.Mock()
        library.colloc_step.return_value = answer
        return library, mock.patch.object(steps.ctypes, "CDLL", return_value=library)

    def test_without_the_library_it_is_false(self):
        with mock.patch.object(steps.ctypes, "CDLL", return_value=object()) as load:
            self.assertIs(steps.step(), False)
            self.assertIs(steps.step(3), False)
        self.assertEqual(load.call_count, 1)  # it is looked up once

    def test_steps_are_reported(self):
        library, patch = self.library(0)
        with patch:
            self.assertIs(steps.step(), True)
            self.assertIs(steps.step(5), True)
        self.assertEqual([call.args for call in library.colloc_step.mock_calls], [(1,), (5,)])

    def test_a_library_without_a_daemon_is_false(self):
        _, patch = self.library(-1)
        with patch:
            self.assertIs(steps.step(), False)

    def test_bad_counts(self):
        for count in (0, -1, 1.5, "2", None):
            with self.subTest(count=count), self.assertRaisesRegex(ValueError, "whole number"):
                steps.step(count)


if __name__ == "__main__":
    unittest.main()
