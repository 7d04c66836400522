# SPDX-License-Identifier: Apache-2.0
"""The plan and the collector itself, on the processor."""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "lib"))

from needs_torch import PYTHON_FOLDER, torch  # noqa: E402

from colloc_collect import plan, real, synthetic  # noqa: E402


class Plan(unittest.TestCase):
    def test_the_same_seed_gives_the_same_names(self):
        first, second = (plan.make_plan(3, 200, 2, 20) for _ in range(2))
        self.assertEqual(first, second)
        self.assertEqual(len({row["id"] for row in first}), len(first))
        self.assertEqual(sum(row["alone"] for row in first), 20)

    def test_every_kind_shape_and_architecture_is_there(self):
        rows = plan.make_plan(3, 600, 1, 0)
        families = {row["family"] for row in rows}
        self.assertLessEqual(
            {f"cnn-{shape}" for shape in synthetic.CNN_SHAPES}
            | {f"mlp-{shape}" for shape in synthetic.MLP_SHAPES},
            families,
        )
        self.assertEqual({row["model"] for row in rows if row["kind"] == "real"}, set(real.BY_NAME))
        self.assertGreaterEqual(len(real.BY_NAME), 60)
        self.assertGreaterEqual(len({row.family for row in real.ARCHITECTURES}), 20)

    def test_drawn_networks_run(self):
        rng = random.Random(5)
        for shape in synthetic.CNN_SHAPES:
            spec = {
                "kind": "cnn",
                "shape": shape,
                "channels": 1,
                "side": 28,
                "classes": 7,
                "filters": synthetic._cnn_filters(shape, 16, 6),
                "kernel": 3,
                "activation": "relu_inplace",
                "batch_norm": True,
                "dropout": 0.2,
                "pools": synthetic._cnn_pools(shape, 28, 6, True),
            }
            (x,), target = synthetic.make_batch(spec, 2)
            output = synthetic.make_model(spec)(x)
            self.assertEqual(tuple(output.shape), (2, 7), shape)
            torch.nn.functional.cross_entropy(output, target).backward()
        for _ in range(20):
            spec, batch, _ = synthetic.draw_mlp(rng)
            self.assertGreaterEqual(batch, 4)
            self.assertEqual(spec["output"] <= max(1, spec["input"] // 4), True)


class Collector(unittest.TestCase):
    def collect(self, out, *more):
        done = subprocess.run(
            [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "colloc_collect",
                "--out",
                out,
                "--device",
                "cpu",
                "--exporters",
                "1",
                "--alone",
                "0",
                "--synthetic",
                "0",
                "--per-architecture",
                "8",
                "--only",
                "ncf",
                "--at-once",
                "2",
                "--seconds",
                "600",
                *more,
            ],
            env={**os.environ, "PYTHONPATH": PYTHON_FOLDER},
            timeout=1200,
            check=False,
        )
        self.assertEqual(done.returncode, 0)
        with open(os.path.join(out, "runs.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_runs_are_written_once_and_a_second_call_goes_on(self):
        with tempfile.TemporaryDirectory() as out:
            first = self.collect(out, "--count", "2", "--runs-per-process", "5")
            self.assertEqual([row["status"] for row in first], ["ok", "ok"], first)
            both = self.collect(out, "--count", "1")
            self.assertEqual(len({row["id"] for row in both}), 3)


if __name__ == "__main__":
    unittest.main()
