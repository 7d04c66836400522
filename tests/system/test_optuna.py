# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/optuna.md, as they stand there: with the real Optuna where it is installed,
and with a stand-in for the functions of Ray Tune that the page uses."""

import importlib.util
import os
import re
import subprocess
import sys
import unittest

from daemon_case import LIMIT_S, DaemonCase, read

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
EXAMPLES = re.findall(r"```python\n(.*?)```", read(os.path.join(ROOT, "docs", "optuna.md")), re.S)

TRIALS = """
def train(lr):
    if lr > 0.09:
        raise ValueError("diverged")
    return abs(lr - 0.01)
"""

RAY_TUNE = """
class Result:
    def __init__(self, config, metrics):
        self.config, self.metrics = config, metrics

class ResultGrid(list):
    def get_best_result(self):
        return min(self, key=lambda result: result.metrics["loss"])

class TuneConfig:
    def __init__(self, metric, mode, num_samples):
        assert (metric, mode) == ("loss", "min")
        self.num_samples = num_samples

def loguniform(lower, upper):
    return lambda place: lower * (upper / lower) ** (place / 16)

def with_resources(trainable, resources):
    assert resources == {"cpu": 1}
    return trainable

class Tuner:
    def __init__(self, trainable, param_space, tune_config):
        self.parts = trainable, param_space, tune_config
    def fit(self):
        trainable, space, tune_config = self.parts
        configs = [{name: draw(place) for name, draw in space.items()}
                   for place in range(tune_config.num_samples)]
        return ResultGrid(Result(config, trainable(config)) for config in configs)
"""


class Examples(DaemonCase):
    gpus = "2xA100-40GB"

    def run_example(self, number):
        self.write("trials.py", TRIALS)
        path = self.write("example.py", EXAMPLES[number])
        env = {**self.task_environment(), "PYTHONPATH": os.path.join(ROOT, "python")}
        done = subprocess.run(
            [sys.executable, path],
            cwd=self.work,
            env=env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return eval(done.stdout.splitlines()[-1])  # pylint: disable=eval-used

    @unittest.skipUnless(importlib.util.find_spec("optuna"), "optuna is not installed")
    def test_optuna(self):
        best = self.run_example(0)
        self.assertLess(abs(best["lr"] - 0.01), 0.05)
        tasks = self.tasks(state="all")
        self.assertEqual(len(tasks), 12)
        self.assertEqual(len({task["array_id"] for task in tasks}), 3)

    def test_ray_tune(self):
        os.mkdir(os.path.join(self.work, "ray"))
        self.write("ray/__init__.py", "")
        self.write("ray/tune.py", RAY_TUNE)
        self.assertLess(self.run_example(1)["lr"], 0.09)
        self.assertEqual([task["state"] for task in self.tasks(state="all")], ["COMPLETED"] * 8)


if __name__ == "__main__":
    unittest.main()
