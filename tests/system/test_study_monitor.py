# SPDX-License-Identifier: Apache-2.0
"""The counters of the monitoring study are those of the epochs that it names."""

import os
import subprocess
import time
import types
import unittest
import unittest.mock

from daemon_case import DaemonCase, program

from colloc_fit.study_monitor import counters_of, counting


class Counters(DaemonCase):
    gpus = "H200"

    def start(self, **settings):
        """No daemon here."""

    def epoch(self, smact):
        """Four seconds of a training, as workloads/worker.py tells of them. On a busy machine a few
        samples are of its start or end, by which the means below may be off."""
        began = time.time()
        subprocess.run(
            ["colloc-pretend-train", "--memory-mib=1000", "--seconds=400", f"--smact={smact}"],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return {"epoch_s": time.time() - began, "ended_at": time.time()}

    def test_two_trainings_are_told_apart(self):
        study = types.SimpleNamespace(colloc=program("colloc"))
        with unittest.mock.patch.dict(os.environ, self.env):
            with counting(study) as samples:
                epochs = [self.epoch(0.6), self.epoch(0.2)]
        for epoch, smact in zip(epochs, (0.6, 0.2)):
            self.assertAlmostEqual(counters_of([epoch], samples)["smact"], smact, delta=0.05)
        self.assertAlmostEqual(counters_of(epochs, samples)["smact"], 0.4, delta=0.05)
        later = {"epoch_s": 2, "ended_at": time.time() + 100}
        self.assertIsNone(counters_of([later], samples)["smact"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
