# SPDX-License-Identifier: Apache-2.0
"""Tasks of which nothing is known, simulated as scripts/simulate-start does: an array of short
trainings against the best fixed number side by side, and memory that does not fit."""

import importlib.machinery
import importlib.util
import os
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


def load_script(name):
    loader = importlib.machinery.SourceFileLoader(
        name.replace("-", "_"), os.path.join(ROOT, "scripts", name)
    )
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


script = load_script("simulate-start")


class Unknown(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.simulator = script.Simulator(os.environ["COLLOC_BUILD"], folder.name)

    def array_of(self, memory_mib, smact, *way):
        """Its total time, relative to the best fixed number side by side."""
        task = (f"short-{memory_mib}-{smact}", 60, memory_mib, smact)
        given = script.short_tasks(self.simulator, task, script.ARRAY)
        _, best_s = script.best_fixed(self.simulator, given)
        learning = (*script.NOTHING_KNOWN, "--learn", *script.AT_ONCE)
        return self.simulator.run(*given, *learning, *way)["total_s"] / best_s

    def test_an_array_ends_as_soon_as_with_the_best_number(self):
        """Under magm smact-max stops the last ones: docs/measured/start-simulated.md."""
        for memory_mib, smact in ((2000, 0.15), (4000, 0.35), (4000, 0.6), (9000, 0.25)):
            with self.subTest(memory_mib=memory_mib, smact=smact):
                way = ("--policy=predictive", script.BUSIER)
                self.assertLess(self.array_of(memory_mib, smact, *way), 1.05)
                self.assertLess(self.array_of(memory_mib, smact), 1.36)
                self.assertLess(self.array_of(memory_mib, smact, script.TOGETHER), 1.2)

    def test_memory_that_does_not_fit(self):
        task = ("big", 600, int(0.4 * script.GPU_MIB), 0.3)
        given = script.short_tasks(self.simulator, task, script.BIG)
        exact = self.simulator.run(
            *given, "--estimator=declared", "--known=none", "--preload", *script.AT_ONCE
        )
        run = self.simulator.run(*given, *script.NOTHING_KNOWN, *script.AT_ONCE)
        self.assertEqual(run["oom"], 0)
        self.assertLess(run["total_s"], 1.1 * exact["total_s"])

    def total_s(self, trace, *way):
        given = (f"--trace={ROOT}/data/traces/{trace}.txt", *script.NOTHING_KNOWN, *way)
        runs = self.simulator.run_all((*given, f"--resample={seed}") for seed in range(1, 17))
        return sum(run["total_s"] for run in runs)

    def test_long_trainings_lose_nothing(self):
        """Where several began on an idle GPU at once they took 1.2 and 2.0 % longer."""
        for trace in script.TRACES:
            with self.subTest(trace=trace):
                held_off_s = self.total_s(trace, *script.HELD_OFF)
                self.assertLess(self.total_s(trace, *script.AT_ONCE) / held_off_s, 1.005)

    def test_clients_that_the_carrier_could_suspend_run_again(self):
        """Suspended, they came back only to their GPU: one of these traces took 17 % longer."""
        plain_s, carried_s = (
            self.total_s("philly-60", "--starting-max=32", *way) for way in ((), ("--carrier",))
        )
        self.assertLess(carried_s / plain_s, 1.02)


if __name__ == "__main__":
    unittest.main()
