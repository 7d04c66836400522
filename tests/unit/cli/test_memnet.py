# SPDX-License-Identifier: Apache-2.0
"""colloc memnet: training on a small data set, evaluating, and what it says of mistakes."""

import csv
import json
import lzma
import math
import os
import random
import stat
import sys
import unittest

import cli_case
from cli_case import CliCase
from needs_torch import PYTHON_FOLDER, torch

from colloc_memnet import feed, weights
from colloc_memnet.network import Network

COLUMNS = "id,kind,family,split,model,batch,optimizer,precision,status,driver_mib"


def make_network(rng, key):
    """A perceptron in the form of layers.jsonl, its parameters and its activations."""
    width, depth = 2 ** rng.randint(4, 12), rng.randint(2, 8)
    rows = []
    for _ in range(depth):
        rows += [
            ["Linear", float(width), width * (width + 1), "", [width], 0, 0],
            ["ReLU", float(width), 0, "", [width], 0, 0],
        ]
    return {"model": key, "rows": rows}, depth * width * (width + 1), 2 * depth * width


def load_built_in(plan, classes):
    """(network, scaling) of a file of data/memnet."""
    path = os.path.join(PYTHON_FOLDER, "..", "data", "memnet", f"{plan.name}.txt")
    with open(path, encoding="ascii") as file:
        numbers = weights.parse_numbers(file.read())
    n, t = weights.VALUES, weights.TOKEN_SIZE
    scaling = torch.tensor(numbers[: 2 * (n + t)]).split((n, n, t, t))
    network = Network(plan, classes).eval()
    network.load_numbers(numbers[2 * (n + t) :])
    return network, scaling


def network_bin(network, scaling, plan, row):
    """The most probable bin of a row."""
    mean, factor, token_mean, token_factor = scaling
    n = len(plan.values)
    values = (torch.tensor([row.values[i] for i in plan.values]) - mean[:n]) * factor[:n]
    tokens = (torch.tensor(row.tokens) - token_mean) * token_factor
    with torch.no_grad():
        return network(values[None], [tokens])[0].argmax().item()


class Memnet(CliCase):
    def make_data(self, n=120):
        """Runs whose memory follows a formula; the last two are of a real network."""
        rng = random.Random(1)
        os.mkdir(os.path.join(self.folder, "data"))
        runs, layers = [COLUMNS], []
        for i in range(n):
            network, parameters, activations = make_network(rng, f"m{i}")
            batch = 2 ** rng.randint(2, 10)
            mib = 700 + (20 * parameters + 8 * batch * activations) / 2**20
            split = "train" if i % 10 < 7 else "validation" if i % 10 < 9 else "test"
            kind = "real" if i >= n - 2 else "mlp"
            runs.append(f"r{i},{kind},mlp-uniform,{split},m{i},{batch},adam,fp32,ok,{mib:.0f}")
            layers.append(json.dumps(network))
        self.write("data/runs.csv", "\n".join(runs) + "\n")
        with lzma.open(os.path.join(self.folder, "data", "layers.jsonl.xz"), "wt") as file:
            file.write("\n".join(layers) + "\n")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return file.read()

    def train(self, folder, *words):
        return self.run_colloc(
            "memnet",
            "train",
            f"--python={sys.executable}",
            "--only=mlp-mlp",
            "--epochs=4",
            f"--output={folder}",
            *words,
            "data",
        )

    def evaluate(self, *words):
        return self.run_colloc("memnet", "eval", f"--python={sys.executable}", *words, "data")

    def read_feed(self, *words):
        """What the Python program would get on its standard input."""
        self.write("tee", "#!/bin/sh\ncat >fed\n")
        os.chmod(os.path.join(self.folder, "tee"), stat.S_IRWXU)
        done = self.run_colloc("memnet", *words, "--python=./tee", "data")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "fed"), encoding="utf-8") as file:
            return feed.read(file)

    def test_training_is_reproducible(self):
        self.make_data()
        done = self.train("once", "--jobs=1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("118 MLPs, 0 CNNs, 0 Transformers and 2 runs of real networks", done.stderr)
        self.train("again", "--jobs=2")
        self.train("other", "--seed=2")
        self.assertEqual(
            sorted(os.listdir(os.path.join(self.folder, "once"))),
            ["mlp-mlp-1gib.txt", "mlp-mlp-2gib.txt"],
        )
        self.assertEqual(self.read("once/mlp-mlp-1gib.txt"), self.read("again/mlp-mlp-1gib.txt"))
        self.assertNotEqual(self.read("once/mlp-mlp-1gib.txt"), self.read("other/mlp-mlp-1gib.txt"))

    def test_networks_without_rows_are_left_out(self):
        self.make_data()
        done = self.train("none", "--only=cnn-mlp")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(
            "cnn-mlp-8gib: skipped: 0 training rows of kind cnn: at least 20 are needed",
            done.stderr,
        )

    def test_evaluation(self):
        self.make_data()
        self.train("weights")
        words = ("--weights=weights", "--only=mlp-mlp-1gib")
        rows = json.loads(self.evaluate(*words, "--json").stdout)["memnet"]
        whole = {row["group"]: row for row in rows if row["family"] is None}
        self.assertEqual(whole["test"]["rows"], 11)
        self.assertEqual(whole["real networks"]["rows"], 2)
        self.assertEqual(whole["test"]["published"]["accuracy"], 0.9542)
        self.assertAlmostEqual(whole["test"]["accuracy"], whole["test"]["recall"])
        self.assertLessEqual(whole["test"]["covered_p50"], whole["test"]["covered_p99"])
        text = self.evaluate(*words).stdout
        self.assertIn(f"{whole['test']['accuracy']:.4f} (0.9542)", text)

    def test_weights_of_another_network(self):
        self.make_data()
        self.train("weights")
        good = self.read("weights/mlp-mlp-1gib.txt")
        words = ("memnet", "eval", "--weights=weights", "--only=mlp-mlp-1gib", "data")
        for text, complaint in [
            (
                self.read("weights/mlp-mlp-2gib.txt"),
                "of the network mlp-mlp with bins of 2048 MiB, not of mlp-mlp-1gib",
            ),
            (good[: len(good) // 2], "damaged or cut off"),
            (
                good.replace("colloc-gpumemnet 1", "colloc-gpumemnet 9"),
                "version 9; this colloc reads version 1",
            ),
            ("", "not a file of colloc's memory networks"),
        ]:
            self.write("weights/mlp-mlp-1gib.txt", text)
            done = self.run_colloc(*words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("colloc: weights/mlp-mlp-1gib.txt: weights", done.stderr)
            self.assertIn(complaint, done.stderr)

    def test_files_for_pictures(self):
        self.make_data()
        self.train("weights")
        self.evaluate("--weights=weights", "--only=mlp-mlp-1gib", "--output=out")
        answers = list(csv.DictReader(self.read("out/answers.csv").splitlines()))
        self.assertEqual(len(answers), 120)
        self.assertEqual(
            {row["part"] for row in answers}, {"training", "validation", "test", "real"}
        )
        features = list(csv.DictReader(self.read("out/features.csv").splitlines()))
        self.assertEqual(len(features), 120)
        self.assertAlmostEqual(
            float(features[0]["log_batch"]), math.log1p(int(features[0]["batch"])), places=4
        )

    def test_built_in_weights(self):
        self.make_data()
        done = self.evaluate("--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = {row["network"] for row in json.loads(done.stdout)["memnet"]}
        self.assertEqual(
            names, {"mlp-mlp-1gib", "mlp-mlp-2gib", "mlp-transformer-1gib", "mlp-transformer-2gib"}
        )

    def test_mistakes(self):
        self.make_data(30)
        self.assertIn(
            'unknown action "learn": give train or eval',
            self.complaint("memnet", "learn", "data", code=2),
        )
        self.assertIn(
            "--seed is not an option of this action",
            self.complaint("memnet", "eval", "--seed=1", "data", code=2),
        )
        self.assertIn(
            "there is neither runs.csv nor runs.csv.xz",
            self.complaint("memnet", "eval", ".", code=2),
        )
        with open(os.path.join(self.folder, "data", "runs.csv"), "a") as file:
            file.write("cut,mlp,mlp-un")
        self.assertIn(
            "data: runs.csv:32: 3 fields, where the first line names 10 columns",
            self.complaint("memnet", "train", "data", code=2),
        )

    def test_nothing_to_judge(self):
        self.make_data(30)
        os.mkdir(os.path.join(self.folder, "weights"))
        for option, complaint in (
            ("--weights=weights", "memnet: nothing to evaluate"),
            ("--only=rnn", 'memnet: no network\'s name contains "rnn"'),
        ):
            done = self.evaluate(option)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(complaint, done.stderr)

    def test_pytorch_answers_as_the_estimator_in_c(self):
        """The built-in weights in a network of PyTorch, on the inputs that training gets."""
        self.make_data()
        told, answered = self.read_feed("train"), self.read_feed("eval")
        compared = 0
        for plan in (plan for plan in told.plans if plan.family == "mlp"):
            answers = answered.answers[plan.name]
            network, scaling = load_built_in(plan, answers[0].classes)
            for row, answer in zip(told.rows, answers):
                bin_at = network_bin(network, scaling, plan, row)
                self.assertEqual((bin_at + 1) * plan.bin_bytes, answer.edge_bytes)
                compared += 1
        self.assertEqual(compared, 4 * 120)

    def test_an_interpreter_that_lacks(self):
        self.make_data(30)
        done = self.run_colloc("memnet", "eval", "--python=no-python", "data")
        self.assertEqual(done.returncode, 2)
        self.assertIn(
            "no-python: no such program: give a Python interpreter with --python", done.stderr
        )

    def test_weights_that_do_not_match(self):
        self.make_data(30)
        os.mkdir(os.path.join(self.folder, "weights"))
        self.write("weights/mlp-mlp-1gib.txt", "colloc-gpumemnet 7\n")
        done = self.run_colloc("memnet", "eval", "--weights=weights", "--only=mlp-mlp-1gib", "data")
        self.assertEqual(done.returncode, 2)
        self.assertIn(
            "weights/mlp-mlp-1gib.txt: weights: version 7; this colloc reads version 1", done.stderr
        )


if __name__ == "__main__":
    assert cli_case.COLLOC
    unittest.main()
