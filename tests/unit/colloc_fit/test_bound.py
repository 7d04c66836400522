# SPDX-License-Identifier: Apache-2.0
"""The bound of study-bound on tasks whose shortest schedule is known, and against colloc's own."""
import json
import os
import subprocess
import unittest

import fit_case
from colloc_fit import study_bound
from colloc_fit.study_bound import Gpu, Type, total_bound

COLLOC = os.path.join(fit_case.BUILD, "src", "cli", "colloc")


def task_type(name, solo_s=100, gpus=1, memory_mib=1, count=1):
    return Type(name, gpus, solo_s, memory_mib, None, count)


def undisturbed(mix):
    return [1] * len(mix)


def taking_turns(mix):
    return [1 / len(mix)] * len(mix)


class KnownOptimum(unittest.TestCase):
    def bound(self, speeds, types, arrivals=None, n_gpus=1, capacity_mib=10, enough=1000):
        arrivals = arrivals or [(0, t) for t in range(len(types))]
        return total_bound(arrivals, Gpu(types, capacity_mib, speeds), n_gpus, enough)

    def assert_bound(self, expected_s, *arguments, **more):
        self.assertAlmostEqual(self.bound(*arguments, **more)[0], expected_s, places=6)

    def test_two_that_do_not_disturb_each_other(self):
        self.assert_bound(100, undisturbed, [task_type("a"), task_type("b")])

    def test_two_that_halve_each_other(self):
        self.assert_bound(200, taking_turns, [task_type("a"), task_type("b")])

    def test_two_that_do_not_fit_together(self):
        types = [task_type("a", memory_mib=6), task_type("b", memory_mib=6)]
        self.assert_bound(200, undisturbed, types)

    def test_a_mix_has_no_more_tasks_of_a_type_than_there_are(self):
        self.assert_bound(100, undisturbed, [task_type("a")])
        self.assert_bound(50, undisturbed, [task_type("a", count=2)], [(0, 0), (0, 0)], n_gpus=2)

    def test_a_task_on_two_gpus_has_work_on_each(self):
        self.assert_bound(100, taking_turns, [task_type("a", gpus=2)], n_gpus=2)

    def test_time_counts_from_the_first_arrival(self):
        types = [task_type("a"), task_type("b")]
        self.assert_bound(200, taking_turns, types, [(1000, 0), (1050, 1)])

    def test_after_a_late_arrival_only_what_can_be_left_counts(self):
        types = [task_type("a"), task_type("b")]
        self.assert_bound(530, taking_turns, types, [(0, 0), (430, 1)])
        self.assert_bound(200, taking_turns, types, [(0, 0), (30, 1)])

    def test_larger_mixes_are_grown(self):
        types = [task_type(name) for name in "abcd"]
        bound_s, mixes, complete = self.bound(undisturbed, types, enough=1)
        self.assertAlmostEqual(bound_s, 100, places=6)
        self.assertEqual((mixes, complete), ([(0,), (1,), (2,), (3,)], False))
        _, mixes, complete = self.bound(undisturbed, types)
        self.assertEqual((len(mixes), mixes[-1], complete), (15, (0, 1, 2, 3), True))


class Traces(unittest.TestCase):
    def test_the_tables_are_read_as_colloc_reads_them(self):
        """Tasks, arrivals and activity give the bound of src/sim/bound.c, a queue for the SMs."""
        model = study_bound.shipped_model(fit_case.BUILD)
        for name in study_bound.TRACES:
            path = os.path.join(fit_case.ROOT, "data", "traces", f"{name}.txt")
            arrivals, types = study_bound.read_trace(model, path)
            through_s = 0
            for at_s, t in arrivals:
                work = types[t].gpus * types[t].solo_s * types[t].demand.smact
                through_s = max(through_s, at_s) + work / study_bound.GPUS
            run = subprocess.run(
                [COLLOC, "simulate", f"--trace={path}", "--policy=exclusive", "--json"],
                stdout=subprocess.PIPE,
                check=True,
            )
            self.assertAlmostEqual(through_s, json.loads(run.stdout)["lower_bound_s"], places=2)

    def test_no_mix_does_more_than_its_gpu_can(self):
        model = study_bound.shipped_model(fit_case.BUILD)
        path = os.path.join(fit_case.ROOT, "data", "traces", "philly-60.txt")
        _, types = study_bound.read_trace(model, path)
        capacity_mib = study_bound.capacity_of(study_bound.KIND)
        gpu = Gpu(types, capacity_mib, study_bound.mps_speeds(model, types))
        mixes, _ = gpu.all_mixes(200)
        for mix, speeds in zip(mixes, map(gpu.speeds, mixes)):
            self.assertLessEqual(sum(types[t].memory_mib for t in mix), capacity_mib)
            self.assertLessEqual(sum(v * types[t].demand.smact for t, v in zip(mix, speeds)), 1)


if __name__ == "__main__":
    unittest.main()
