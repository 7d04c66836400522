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

    def row(self, part, events):
        """Its decoder makes ten steps a second from 0 to 10 s, and from 14 to 20 s."""
        ends = [i / 10 for i in (*range(0, 101), *range(140, 201))]
        return {
            "part": part,
            "alone_again_from": 12.0,
            "alone_again_to": 20.0,
            "events": events,
            "ends": [0],
            "other_ends": promise_trial.in_ms(ends, 0),
        }

    def test_a_decoder_that_comes_back_late_is_alone_from_then_on(self):
        row = self.row("missed", [[10.0, "SUSPENDED", ""], [13.7, "RESUMED", "0.3 s"]])
        self.assertAlmostEqual(promise_trial.decoder_alone([row]), 10, delta=0.2)

    def test_a_decoder_that_was_back_before_is_alone_for_the_whole_time(self):
        row = self.row("missed", [[4.0, "SUSPENDED", ""], [5.0, "RESUMED", "0.3 s"]])
        self.assertEqual(promise_trial.last_phase(row), (12.0, 20.0))

    def test_the_phases_of_a_probe(self):
        events = [[10, "PAUSE", ""], [12, "CONTINUE", ""], [12.1, "END", ""]]
        row = {"together_from": 5, "alone_from": 13, "alone_to": 20, "events": events}
        bounds = [(since, to) for _, since, to in promise_trial.probe_phases(row)]
        self.assertEqual(bounds, [(5, 10), (10, 10.5), (10.5, 12), (12.1, 13), (13, 20)])

    def test_without_a_pause_only_the_time_alone_is_shown(self):
        row = {"together_from": 5, "alone_from": 13, "alone_to": 20, "events": []}
        self.assertEqual(list(promise_trial.probe_phases(row)), [("it has left", 13, 20)])


if __name__ == "__main__":
    unittest.main()
