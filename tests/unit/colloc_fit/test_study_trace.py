# SPDX-License-Identifier: Apache-2.0
"""scripts/study-trace: which fork server starts the trainings of a way."""
import unittest
from unittest import mock

import fit_case

from colloc_fit import study_trace


class Server:
    """In place of a fork server: notes what it was started with."""

    def __init__(self, _, preloaded, has_carrier):
        self.started_with = (preloaded, has_carrier)

    def command(self):
        return [self.started_with]


class Forks(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.object(study_trace, "ForkServer", Server)
        patch.start()
        self.addCleanup(patch.stop)

    def started_with(self, *ways):
        launcher = study_trace.Launcher(study_trace.start_fork_servers("folder", ways))
        return [launcher.command_of(way)[0] for way in ways]

    def test_a_way_that_says_nothing_has_the_library_and_the_carrier(self):
        self.assertEqual(
            self.started_with("default", "predictive-mps"),
            [("folder/libcolloc-preload.so", True)] * 2,
        )

    def test_one_way_without_does_not_take_it_from_the_others(self):
        self.assertEqual(
            self.started_with("default", "slots", "anywhere-recovery", "anywhere-carrier"),
            [
                ("folder/libcolloc-preload.so", True),
                ("folder/libcolloc-preload.so", False),
                (None, False),
                ("folder/libcolloc-preload.so", True),
            ],
        )

    def test_ways_alike_share_a_server(self):
        ways = ["default", "magm-mps", "slots", "anywhere-waiting"]
        self.assertEqual(len(study_trace.start_fork_servers("folder", ways)), 2)

    def test_without_forks_each_training_starts_on_its_own(self):
        self.assertEqual(study_trace.Launcher({}).command_of("slots"), [study_trace.sys.executable])


if __name__ == "__main__":
    fit_case.main()
