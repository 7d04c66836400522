# SPDX-License-Identifier: Apache-2.0
"""Drawn Transformers, and their labels by the estimate of the export."""
import argparse
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "lib"))

from needs_torch import PYTHON_FOLDER  # noqa: E402

from colloc_collect import folded, labels, plan, transformers_published  # noqa: E402

SPEC = {**labels.TINY, "layers": 3}
# Answers as `colloc estimate --json` does, with the batch as the memory.
ESTIMATE = """#!/bin/sh
for word in "$@"; do
    case $word in
    --batch=*) batch=${word#--batch=} ;;
    --gpu=*H200*) batch=9$batch ;;
    esac
done
test "$batch" != 93 || { echo "no estimate of batch 3" >&2; exit 1; }
test "$batch" != 97 || { echo '{"estimates": [{"mib": null, "note": "not known"}]}'; exit; }
echo "{\\"estimates\\": [{\\"mib\\": $batch}]}"
"""

# Notes which processes compute gradients: PyTorch's threads for them do not survive a fork.
WATCHED = """
import os, runpy, sys
import torch
of_torch = torch.Tensor.backward
def watched(self, *arguments, **options):
    with open(sys.argv[1] + ".pids", "a") as file:
        print(os.getpid(), file=file)
    return of_torch(self, *arguments, **options)
torch.Tensor.backward = watched
print(os.getpid())
runpy.run_module("colloc_collect.labels", run_name="__main__", alter_sys=True)
"""


def dies_of_batch_3(_, row):
    if row["batch"] == 3:
        os.abort()
    return {**row, "pid": os.getpid()}


class Draws(unittest.TestCase):
    def test_the_seed_and_the_number_decide(self):
        for kind in labels.DRAWS:
            self.assertEqual(labels.draw(kind, 1, 7), labels.draw(kind, 1, 7))
            self.assertNotEqual(labels.draw(kind, 1, 7)["id"], labels.draw(kind, 2, 7)["id"])
        rows = [labels.draw("published", 1, number) for number in range(2000)]
        self.assertEqual(len({row["id"] for row in rows}), len(rows))

    def test_those_of_a_plan_have_the_names_of_data_memory(self):
        rows = list(labels.read_plan(20, 30))
        self.assertEqual(len(rows), 10)
        for row in rows:
            named = plan.make_configuration(
                "transformer", "transformer", row["spec"], row["batch"], row["spec"]["sequence"],
                row["optimizer"], row["precision"],
            )  # fmt: skip
            self.assertEqual(row["id"], named["id"])

    def test_the_ranges_are_the_published_ones(self):
        rows = [labels.draw("published", 1, number) for number in range(4000)]
        small, large = transformers_published.CAMPAIGNS
        for row in rows:
            spec = row["spec"]
            self.assertEqual(spec["width"] % spec["heads"], 0)
            self.assertTrue(2 * spec["width"] <= spec["hidden"] < 4 * spec["width"])
            self.assertTrue(50_000 <= spec["vocabulary"] < 1_000_000)
            self.assertEqual((row["optimizer"], row["precision"]), ("adam", "fp32"))
        for key, of in (
            ("width", large.widths),
            ("sequence", large.sequences),
            ("heads", large.heads),
        ):
            self.assertEqual({row["spec"][key] for row in rows}, set(of), key)
        self.assertEqual({row["batch"] for row in rows}, set(large.batches))
        self.assertEqual({row["spec"]["layers"] for row in rows}, set(range(2, 40)))
        deep = sum(row["spec"]["layers"] > small.layers[1] for row in rows) / len(rows)
        self.assertAlmostEqual(deep, large.share * 28 / 38, delta=0.03)


class Layers(unittest.TestCase):
    def test_repeated_blocks_are_written_once(self):
        block = [["Linear", 1], ["Dropout", 2], ["Dropout", 2], ["LayerNorm", 3]]
        rows = [["Embedding", 0]] + 39 * block + [["Linear", 9]]
        short = folded.fold(rows)
        self.assertEqual(folded.unfold(short), rows)
        self.assertLess(sum(len(block) for _, block in short), 8)
        self.assertEqual(folded.unfold(folded.fold([])), [])

    def test_activations_are_of_one_sample(self):
        layer = {"type": "Linear", "parameters": 6, "args": "", "shape": [5], "leaf": True}
        layer.update(in_place=False, shared=False)
        every = {"every_batch": True, "batch": 8, "layers": [{**layer, "activations": [0, 5]}]}
        alone = {"every_batch": False, "batch": 8, "layers": [{**layer, "activations": [40, 0]}]}
        self.assertEqual(labels.layer_rows(every), [["Linear", 5, 6, "", [5], 0, 0]])
        self.assertEqual(labels.layer_rows(alone), labels.layer_rows(every))


class Labels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = os.path.join(folder.name, "out.jsonl")
        self.given = os.path.join(folder.name, "given.jsonl")
        self.colloc = os.path.join(folder.name, "colloc")
        with open(self.colloc, "w", encoding="ascii") as file:
            file.write(ESTIMATE)
        os.chmod(self.colloc, stat.S_IRWXU)

    def run_labels(self, *batches, jobs=1):
        with open(self.given, "w", encoding="ascii") as file:
            print("# a comment", *transformers_published.PROPERTIES, sep="\n# ", file=file)
            print(*transformers_published.PROPERTIES, "batch", "memory_mib", sep=",", file=file)
            for batch in batches:
                values = [SPEC[name] for name in transformers_published.PROPERTIES]
                print(*values, batch, 1, sep=",", file=file)
        done = subprocess.run(
            [sys.executable, "-m", "colloc_collect.labels", self.out, f"--given={self.given}",
             f"--colloc={self.colloc}", f"--jobs={jobs}", "--on-data"],
            env={**os.environ, "PYTHONPATH": PYTHON_FOLDER}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def lines(self):
        with open(self.out, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_a_label_of_each_and_the_reason_without_one(self):
        self.run_labels(2, 3, 7, jobs=2)
        first, second, third = sorted(self.lines(), key=lambda row: row["number"])
        self.assertEqual(first["mib"], {"NVIDIA H200": 92, "NVIDIA A100-SXM4-40GB": 2})
        kinds = [row[0] for row in folded.unfold(first["layers"])]
        self.assertEqual(kinds.count("MultiheadAttention"), SPEC["layers"])
        self.assertEqual(first["parameters"], sum(r[2] for r in folded.unfold(first["layers"])))
        self.assertIn("no estimate of batch 3", second["error"])
        self.assertNotIn("mib", second)
        self.assertIn("not known", third["error"])
        self.assertNotIn("mib", third)

    def work(self, jobs):
        of_labels, labels.label = labels.label, dies_of_batch_3
        self.addCleanup(setattr, labels, "label", of_labels)
        rows = [{"id": str(batch), "batch": batch} for batch in (2, 6, 3, 4, 5)]
        options = argparse.Namespace(out=self.out, colloc="", jobs=jobs, within=600)
        self.assertEqual(labels.write_labels(options, rows), 5)
        return {row["batch"]: row for row in self.lines()}

    def test_numbers_of_processes_are_above_zero(self):
        for words in (
            ("labels", self.out, f"--colloc={self.colloc}", "--count=1", "--on-data", "--jobs=0"),
            ("kernels", f"--data={self.out}", f"--out={self.out}", "--at-once=0"),
            ("__main__", f"--out={self.out}", "--device=cpu", "--at-once=-1"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", f"colloc_collect.{words[0]}", *words[1:]],
                env={**os.environ, "PYTHONPATH": PYTHON_FOLDER}, capture_output=True, text=True,
                check=False, timeout=240,
            )  # fmt: skip
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, "invalid number above 0")

    def test_a_process_that_dies_costs_one_label(self):
        found = {batch: row.get("error") for batch, row in self.work(jobs=2).items()}
        self.assertEqual(found, {2: None, 6: None, 3: "its process died", 4: None, 5: None})

    def test_a_process_labels_one_after_the_other(self):
        pids = {batch: row.get("pid") for batch, row in self.work(jobs=1).items()}
        self.assertEqual((pids[2], pids[4]), (pids[6], pids[5]))
        self.assertNotEqual(pids[2], pids[4])

    def test_the_parent_computes_no_gradient(self):
        done = subprocess.run(
            [sys.executable, "-c", WATCHED, self.out, f"--colloc={self.colloc}", "--count=0"],
            env={**os.environ, "PYTHONPATH": PYTHON_FOLDER}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        self.assertRegex(done.stderr, "0 labels written|does not run on fake tensors")
        with open(self.out + ".pids", encoding="ascii") as file:
            self.assertNotIn(done.stdout, file.readlines())

    def test_it_goes_on_behind_a_line_that_was_cut_off(self):
        self.run_labels(2, 4)
        with open(self.out, encoding="utf-8") as file:
            whole = file.read()
        with open(self.out, "w", encoding="utf-8") as file:
            file.write(whole[:-20])
        self.assertIn("1 labels written", self.run_labels(2, 4))
        with open(self.out, encoding="utf-8") as file:
            self.assertEqual(file.read(), whole)


if __name__ == "__main__":
    unittest.main()
