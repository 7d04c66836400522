# SPDX-License-Identifier: Apache-2.0
"""colloc-physics as the fits ask it, and the texts that describe networks to it."""
import os
import re
import subprocess
import tempfile
import unittest

import fit_case
from colloc_fit import memory_runs
from colloc_fit.fit_steps import RATES, START, Step, fit, half_of, is_of_the_host
from colloc_fit.physics import Physics, constants_line

PROGRAM = os.path.join(fit_case.BUILD, "tools", "colloc-physics")
LAYERS = [
    {"depth": 0, "name": "", "type": "Net", "shape": [10], "parameters": 0, "shared": False},
    {
        "depth": 1,
        "name": "stem",
        "type": "Conv2d",
        "shape": [8, 32, 32],
        "parameters": 216,
        "shared": False,
    },
    {
        "depth": 1,
        "name": "stem",
        "type": "Conv2d",
        "shape": [8, 32, 32],
        "parameters": 0,
        "shared": True,
    },
    {
        "depth": 1,
        "name": "head",
        "type": "Linear",
        "shape": [10],
        "parameters": 81930,
        "shared": False,
    },
]


def row_of(**more):
    return {
        "batch": 64,
        "sequence": 0,
        "driver_mib": 1500,
        "allocated_mib": 60,
        "family": "f",
        "kind": "real",
        "precision": "fp32",
        "optimizer": "adam",
        **more,
    }


def built_in():
    """The constants of activity_rates.inc."""
    with open(RATES, encoding="utf-8") as file:
        return {name: float(cell) for name, cell in re.findall(r"\.(\w+) = (\S+),", file.read())}


class Asked(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.summary = os.path.join(self.folder.name, "net")
        with open(self.summary, "w", encoding="utf-8") as file:
            file.write(memory_runs.torchinfo_text(LAYERS, 82146))

    def physics(self, rows, **options):
        program = Physics(
            fit_case.BUILD,
            [(row, self.summary, row["optimizer"], row["precision"]) for row in rows],
            self.folder.name,
            **options,
        )
        self.addCleanup(program.close)
        return program

    def ask_raw(self, constants):
        with open(os.path.join(self.folder.name, "tasks"), "w", encoding="utf-8") as tasks:
            tasks.write(f"{self.summary}\t64\tadam\tfp32\t0\tNVIDIA H200\n")
        return subprocess.run(
            [PROGRAM, tasks.name],
            input=constants,
            text=True,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def test_answers_each_line_of_constants(self):
        program = self.physics([row_of(), row_of(batch=128)])
        few, many = (program.points({"kernel_us": us}) for us in (5, 500))
        self.assertEqual(len(few), 2)
        self.assertEqual(few[0].evidence, "declared")
        self.assertEqual(len(few[0].features), len(program.feature_names))
        self.assertEqual(program.feature_names[0], "ONE")
        self.assertEqual(few[0].features[0], 1)
        self.assertEqual(many[0].reserved, few[0].reserved)

    def test_the_constants_decide_about_the_step(self):
        program = self.physics([row_of()], point=Step)
        few, many = (program.points({"kernel_us": us})[0] for us in (5, 500))
        self.assertGreater(many.gpu, 10 * few.gpu)
        self.assertEqual(many.host, few.host)
        self.assertEqual(many.step, max(many.gpu, many.host))

    def test_an_empty_line_means_the_built_in_constants(self):
        done = self.ask_raw(f"\n{constants_line(built_in())}\n")
        head, first, named = done.stdout.splitlines()
        self.assertEqual(head.split("\t")[:2], ["context", "reserved"])
        self.assertEqual(first, named)

    def test_refuses_what_is_no_constant(self):
        for wrong in (
            "launch=5",
            "kernel_us",
            "5 0.3 0.5",
        ):
            done = self.ask_raw(wrong + "\n")
            self.assertEqual(done.returncode, 1, wrong)
            self.assertIn("not NAME=VALUE of a known constant", done.stderr)

    def test_the_silent_are_counted(self):
        program = self.physics([row_of(), row_of()])
        with open(self.summary, "w", encoding="utf-8") as file:
            file.write("nothing\n")
        silent = self.physics([row_of()])
        self.assertEqual(len(program.points()), 2)
        self.assertEqual(silent.points(), [])
        self.assertEqual(sum(silent.silent.values()), 1)

    def test_the_table_names_all_that_can_be_fitted(self):
        with open(
            os.path.join(fit_case.ROOT, "src/estimator/physics/activity_rates.h"), encoding="utf-8"
        ) as file:
            names = re.findall(r"^    X\((\w+)\)", file.read(), re.M)
        self.assertEqual(list(built_in()), names)
        self.assertEqual(list(START), names)


class Fit(unittest.TestCase):
    class Program:
        """Answers with a step of `a` ms on the GPU and `b` on the host."""

        row = {"busy_ms": 3, "host_ms": [8, 1, 1], "step_ms": 10, "smact": 0.3}

        def points(self, chosen):
            host = 1000 * chosen["b"]
            phases = [0.8 * host, 0.1 * host, 0.1 * host]
            cells = [0, 0, 0, 0, host, 1000 * chosen["a"], host, *phases, 0.3, 0]
            return [Step(self.row, cells)]

    def test_finds_the_least_error(self):
        chosen, least = fit(self.Program(), {"a": 1, "b": 1, "c": 1}, ["a", "b"])
        self.assertAlmostEqual(chosen["a"], 3, delta=0.2)
        self.assertAlmostEqual(chosen["b"], 10, delta=0.6)
        self.assertEqual(chosen["c"], 1)
        self.assertLess(least, 0.2)

    def test_shares_stay_below_one(self):
        class Greedy(self.Program):
            def points(self, chosen):
                return super().points({"a": chosen["a_share"], "b": 10})

        chosen, _ = fit(Greedy(), {"a_share": 0.5}, ["a_share"])
        self.assertLessEqual(chosen["a_share"], 1)

    def test_a_host_that_waits_for_the_gpu_is_not_counted(self):
        self.assertTrue(is_of_the_host({"busy_ms": 3, "host_ms": [1, 1, 2]}))
        self.assertFalse(is_of_the_host({"busy_ms": 5, "host_ms": [1, 1, 2]}))

    def test_a_family_is_in_one_half(self):
        halves = [half_of(name) for name in ("resnet", "vgg", "bert", "gpt2", "swin", "dpn")]
        self.assertEqual(
            halves, [half_of(n) for n in ("resnet", "vgg", "bert", "gpt2", "swin", "dpn")]
        )
        self.assertEqual(set(halves), {0, 1})


class Texts(unittest.TestCase):
    def test_torchsummary_leaves_out_what_has_no_shape(self):
        rows = [
            ["Conv2d", 0, 216, 0, [8, 4, 4], False, False],
            ["Fold", 0, 0, 0, None, False, False],
            ["Conv2d", 0, 216, 0, [8, 4, 4], False, True],
        ]
        self.assertEqual(
            memory_runs.torchsummary_text({"rows": rows}),
            "Conv2d-1  [-1, 8, 4, 4]  216\nConv2d-3  [-1, 8, 4, 4]  0\n",
        )

    def test_torchinfo_marks_what_runs_again(self):
        text = memory_runs.torchinfo_text(LAYERS, 82146)
        self.assertIn("├─Conv2d (stem): 1-1  [-1, 8, 32, 32]  216", text)
        self.assertIn("├─Conv2d (stem): 1-2  [-1, 8, 32, 32]  (recursive)", text)
        self.assertIn("Total params: 82,146", text)

    def test_numbers(self):
        self.assertEqual(
            [memory_runs.number(cell) for cell in ("1.5", "", "adam")], [1.5, None, "adam"]
        )


if __name__ == "__main__":
    unittest.main()
