# SPDX-License-Identifier: Apache-2.0
"""scripts/measure-mixes: what is measured next, and how a rate is read; scripts/study-mixes: rows
of its page."""

import argparse
import csv
import os
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "python")]

from colloc_fit import measure_mixes, study_mixes  # noqa: E402

PAIR, TRIO = ("mps", ("a", "b")), ("mps", ("a", "b", "c"))


class FakeBench:
    """Measures at once: each training makes 10 steps a second alone, 5 beside others."""

    def __init__(self, **refused):
        self.refused, self.asked = refused, []

    def measure(self, mix):
        self.asked.append(" + ".join(mix[1]))
        if self.asked[-1] in self.refused:
            raise self.refused[self.asked[-1]]
        rate = 10 if len(mix[1]) == 1 else 5
        return {"rates": [rate] * len(mix[1]), "smact": 0.5, "power_w": 300}


class Steps:
    """A client whose training makes its steps four at a time, and whose SM activity reads 0."""

    def __init__(self, per_s, smact):
        self.per_s, self.smact, self.began = per_s, smact, measure_mixes.time.monotonic()

    def gpus(self):
        return [{"uuid": "GPU-1", "smact": self.smact, "power_w": 300}]

    def task(self, number):
        passed_s = measure_mixes.time.monotonic() - self.began
        steps = int(passed_s * self.per_s / 4) * 4
        return {"steps": steps, "oom_count": 0, "ended_at": None, "name": "a"}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def measuring(self, bench, gpu="GPU-1"):
        table = measure_mixes.Table(self.path("mixes.csv"), "H200", "580")
        rates = measure_mixes.Rates(self.path("alone.csv"), gpu)
        return measure_mixes.Measuring(bench, table, rates)

    def rows(self):
        with open(self.path("mixes.csv"), encoding="utf-8", newline="") as file:
            return {row["trainings"]: row for row in csv.DictReader(file)}


class Order(Case):
    def test_trainings_alone_come_before_their_mix(self):
        bench = FakeBench()
        self.assertTrue(self.measuring(bench).all(lambda is_old: [PAIR, TRIO], 60))
        self.assertEqual(bench.asked, ["a", "b", "a + b", "c", "a + b + c"])
        self.assertEqual(self.rows()["a + b"]["speeds"], "0.5 + 0.5")

    def test_the_list_is_read_again_after_each(self):
        bench, lists = FakeBench(), iter([[TRIO], [PAIR], [PAIR], [PAIR], []])
        olds = []

        def read(is_old):
            olds.append(is_old)
            return next(lists)

        self.assertTrue(self.measuring(bench).all(read, 60))
        self.assertEqual(bench.asked, ["a", "b", "a + b"])
        self.assertEqual(olds, [False, True, True, True])

    def test_a_second_run_goes_on(self):
        self.measuring(FakeBench()).all(lambda is_old: [PAIR], 60)
        bench = FakeBench()
        self.assertTrue(self.measuring(bench).all(lambda is_old: [PAIR, TRIO], 60))
        self.assertEqual(bench.asked, ["c", "a + b + c"])

    def test_speeds_alone_are_of_one_gpu(self):
        self.measuring(FakeBench()).all(lambda is_old: [PAIR], 60)
        bench = FakeBench()
        self.measuring(bench, gpu="GPU-2").all(lambda is_old: [TRIO], 60)
        self.assertEqual(bench.asked, ["a", "b", "c", "a + b + c"])

    def test_what_cannot_be_measured_is_tried_once(self):
        bench = FakeBench(b=measure_mixes.Failed("no steps of b within 40 s"))
        self.assertFalse(self.measuring(bench).all(lambda is_old: [PAIR, TRIO], 60))
        self.assertEqual(bench.asked, ["a", "b"])

    def test_a_crash_is_a_result(self):
        bench = FakeBench(**{"a + b": measure_mixes.Crashed()})
        self.assertTrue(self.measuring(bench).all(lambda is_old: [PAIR], 60))
        self.assertEqual(self.rows()["a + b"]["crashed"], "1")

    def test_the_first_visited_is_the_next(self):
        missing = self.path("missing.csv", "gpu,sharing,trainings,first_s\nH200,mps,a + b,90\n")
        later = "gpu,sharing,trainings,first_s\nH200,mps,a + b,90\nH200,mps,a + c,7\n"
        copy = f"cp {self.path('later.csv', later)} {missing}"
        found = measure_mixes.MissingMixes(missing, {"a": "", "b": "", "c": ""}, copy)
        self.assertEqual(found.read(False), [PAIR])
        self.assertEqual(found.read(True), [("mps", ("a", "c")), PAIR])
        with self.assertRaisesRegex(SystemExit, "ended with 1"):
            measure_mixes.MissingMixes(missing, {}, "false").read(True)


class Windows(Case):
    def window(self, smact):
        options = argparse.Namespace(start=5, settle=0, window=2)
        return measure_mixes.Bench(Steps(16, smact), {}, options)._window([1])

    def test_steps_that_come_four_at_a_time(self):
        found = self.window(0.4)
        self.assertAlmostEqual(found["rates"][0], 16, delta=2)
        self.assertAlmostEqual(found["smact"], 0.4)
        self.assertAlmostEqual(found["power_w"], 300)

    def test_no_activity_is_not_known_where_steps_are_made(self):
        self.assertIsNone(self.window(0)["smact"])


class Study(Case):
    def plan(self, data=None):
        before = os.environ.pop("COLLOC_EVAL_DATA", None)
        if data:
            os.environ["COLLOC_EVAL_DATA"] = data
        try:
            study_mixes.write_plan(self.folder, "H200")
        finally:
            os.environ.pop("COLLOC_EVAL_DATA", None)
            if before:
                os.environ["COLLOC_EVAL_DATA"] = before
        return dict(study_mixes.read_plan(self.folder))

    def test_a_plan_has_the_memory_of_the_published_gpu(self):
        rows = self.plan()
        self.assertEqual(list(rows), ["Exclusive", "MAGM on MPS", "LUG on MPS", "RR on MPS"])
        self.assertIn("--gpus=4xH200", rows["MAGM on MPS"])
        with open(self.path("kinds"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^kind H200 40960 624 132 700 ")
        with self.assertRaisesRegex(SystemExit, "no such kind"):
            study_mixes.write_plan(self.folder, "H2OO")

    @unittest.skipUnless(os.environ.get("COLLOC_EVAL_DATA"), "needs COLLOC_EVAL_DATA")
    def test_the_answers_are_by_the_names_of_the_traces(self):
        data = os.environ["COLLOC_EVAL_DATA"]
        self.assertIn("MAGM + GPUMemNet on MPS", self.plan(data))
        answers = study_mixes.answers_of(data)
        self.assertEqual(answers["bert_base-b32"]["gpumemnet"], "32000")
        self.assertEqual(answers["bert_base-b32"]["faketensor"], "40000")  # there is none

    def test_published_figures(self):
        self.assertEqual(study_mixes.published("table 6.5", "RR on MPS + recovery"), 6)
        self.assertIsNone(study_mixes.published("table 6.6", "LUG on MPS"))

    def test_energy_needs_the_power_of_each_training(self):
        names = {words[1] for words in study_mixes.own_rows(study_mixes.inputs.OWN_TRACES[60])[1:]}
        rows = [{"trainings": name, "power_w": "200"} for name in names]
        self.assertTrue(study_mixes.is_alone_known(rows))
        self.assertFalse(study_mixes.is_alone_known(rows[1:]))
        run = {"total_s": 60, "energy_mj": 9, "oom": 0, "mixes": {"measured": 1}}
        runs = {"Exclusive": {**run, "energy_mj": 10}, "MAGM on MPS": run}
        cells = list(study_mixes.trace_rows(runs, runs, True))[1]
        self.assertEqual(cells[5:8], ["13.3", "10.0", "10.0"])
        cells = list(study_mixes.trace_rows(runs, runs, False))[1]
        self.assertEqual(cells[5:8], ["13.3", "", ""])

    def test_rows_of_mixes(self):
        rows = [
            {"trainings": "a", "speeds": "1", "smact": "0.4", "power_w": "200"},
            {"trainings": "a + b", "speeds": "0.5 + 0.75", "smact": "0.9", "power_w": "400"},
            {"trainings": "a + a", "speeds": "", "smact": "", "power_w": ""},
        ]
        self.assertEqual(
            list(study_mixes.size_rows(rows)),
            [["2", "2", "1", "1.25 (1.25 to 1.25)", "0.62 (0.50 to 0.75)", "0.90 (0.90 to 0.90)",
              "400 (400 to 400)"]],
        )  # fmt: skip
        self.assertEqual(list(study_mixes.alone_rows(rows)), [["a", "0.40", "", "200"]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
