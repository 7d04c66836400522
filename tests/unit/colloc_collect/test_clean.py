# SPDX-License-Identifier: Apache-2.0
"""What the cleaning keeps, drops and says of runs."""
import csv
import json
import lzma
import os
import sys
import tempfile
import unittest

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "python")
)

from colloc_collect.clean import clean, split_of  # noqa: E402

KEYS = (
    "name",
    "type",
    "depth",
    "leaf",
    "shared",
    "args",
    "shape",
    "activations",
    "parameters",
    "trainable",
    "in_place",
)
LAYERS = {
    "model": "resnet18",
    "keys": KEYS,
    "batch": 4,
    "parameters": 30,
    "trainable": 30,
    "parameter_bytes": 120,
    "buffer_bytes": 8,
    "rows": [
        ["", "ResNet", 0, False, False, "", [4, 10], 40, 0, 0, False],
        ["conv", "Conv2d", 1, True, False, "3, 8", [4, 8, 2, 2], 128, 20, 20, False],
        ["act", "ReLU", 1, True, False, "", [4, 8, 2, 2], 128, 0, 0, True],
        ["fc", "Linear", 1, True, False, "8, 10", [4, 10], 40, 10, 10, False],
    ],
}


def run(name, **members):
    return {
        "id": name,
        "kind": "real",
        "family": "resnet",
        "model": "resnet18",
        "batch": 4,
        "sequence": None,
        "optimizer": "adam",
        "precision": "fp32",
        "alone": False,
        "neighbours": 3,
        "limit_mib": 65536,
        "first_try": True,
        "told_by_driver": True,
        "runs_before": 0,
        "status": "ok",
        "driver_mib": 1758.0,
        "driver_end_mib": 1758.0,
        "reserved_mib": 1000.0,
        "reserved_end_mib": 1000.0,
        "allocated_mib": 900.0,
        "active_mib": 900.0,
        "requested_mib": 890.0,
        "alloc_retries": 0,
        "steps": 4,
        "step_ms": 5.0,
        **members,
    }


class Cleaning(unittest.TestCase):
    def rows(self, *runs, layers=(LAYERS,), exports=(), onto=None):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "runs.jsonl"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(one) + "\n" for one in runs)
            for name, lines in (("layers.jsonl.xz", layers), ("exports-0.jsonl.xz", exports)):
                with lzma.open(os.path.join(folder, name), "wt", preset=0) as file:
                    file.writelines(json.dumps(line) + "\n" for line in lines)
            out = os.path.join(folder, "out")
            clean(
                [folder],
                out,
                "{statuses} {memory} {families} {contexts} {activity} {architectures} {n_families} "
                "{fresh} {reused} {exports} {dropped}",
                onto,
            )
            with open(os.path.join(out, "runs.csv.xz"), "rb") as file:
                # A dictionary of the text's length: that of preset 9 would make each test slow.
                lzma.decompress(file.read(), memlimit=1 << 20)
            with lzma.open(os.path.join(out, "exports.jsonl.xz"), "rt") as file:
                self.exports = [json.loads(line) for line in file]
            with lzma.open(os.path.join(out, "runs.csv.xz"), "rt", newline="") as file:
                return {row["id"]: row for row in csv.DictReader(file)}

    def test_features_of_the_layers(self):
        row = self.rows(run("a"))["a"]
        self.assertEqual(
            (row["layers"], row["n_conv"], row["n_linear"], row["activations"]),
            ("3", "1", "1", "74"),
        )
        self.assertEqual(
            (row["driver_mib"], row["driver_from"], row["context_mib"]), ("1758", "driver", "758")
        )

    def test_a_reused_process_gets_the_context_of_a_fresh_one(self):
        reused = run(
            "b",
            runs_before=7,
            reserved_mib=2000.0,
            driver_mib=9999.0,
            driver_end_mib=9999.0,
            reserved_end_mib=1500.0,
        )
        row = self.rows(run("a"), reused)["b"]
        self.assertEqual((row["driver_mib"], row["driver_from"]), ("2758", "allocator"))

    def test_out_of_memory_is_a_bound_and_no_label(self):
        rows = self.rows(
            run("a"),
            run("alone", status="oom", neighbours=0),
            run("pressed", status="oom", neighbours=5, reserved_mib=3000.0),
        )
        self.assertEqual((rows["alone"]["driver_mib"], rows["alone"]["bound_mib"]), ("", "65536"))
        self.assertEqual(rows["pressed"]["bound_mib"], "3000")

    def test_the_retry_counts(self):
        rows = self.rows(
            run("a", status="oom", neighbours=5), run("a", neighbours=0, first_try=False)
        )
        self.assertEqual(rows["a"]["status"], "ok")

    def test_a_peak_that_is_not_the_tasks_own_is_left_out(self):
        rows = self.rows(
            run("a"),
            run("dirty", runs_before=3, left_over_mib=40.0),
            run("pressed", alloc_retries=2),
        )
        self.assertEqual(list(rows), ["a"])

    def test_a_client_of_mps_has_no_context_of_its_own(self):
        row = self.rows(
            run("a"),
            run("b", mps=True, reserved_mib=2000.0, driver_mib=2100.0, driver_end_mib=2100.0),
        )["b"]
        self.assertEqual((row["driver_mib"], row["driver_from"]), ("2758", "allocator"))

    def test_what_took_too_long_is_left_out(self):
        self.assertEqual(
            list(self.rows(run("a"), run("slow", status="timeout"), run("gone", status="died"))),
            ["a"],
        )

    def test_new_runs_are_added_to_shipped_ones(self):
        export = {
            "model_key": "resnet18",
            "optimizer": "adam",
            "precision": "fp32",
            "export": {
                "optimizer": {"name": "adam"},
                "precision": "fp32",
                "every_batch": True,
                "layers": [1],
            },
        }
        with tempfile.TemporaryDirectory() as shipped:
            with open(os.path.join(shipped, "runs.jsonl"), "w", encoding="utf-8") as file:
                file.writelines(
                    json.dumps(one) + "\n"
                    for one in (run("a"), run("pressed", status="oom", neighbours=0))
                )
            for name, line in (("layers.jsonl.xz", LAYERS), ("exports.jsonl.xz", export)):
                with lzma.open(os.path.join(shipped, name), "wt", preset=0) as file:
                    file.write(json.dumps(line) + "\n")
            clean([shipped], shipped, "")
            again = run("a", reserved_mib=5.0)
            reused = run("b", model="other", runs_before=7, reserved_mib=2000.0)
            rows = self.rows(
                again,
                reused,
                run("pressed", driver_mib=3000.0),
                layers=({**LAYERS, "model": "other"},),
                onto=shipped,
            )
        self.assertEqual(
            {name: row["status"] for name, row in rows.items()},
            {"a": "ok", "b": "ok", "pressed": "ok"},
        )
        self.assertEqual((rows["a"]["reserved_mib"], rows["a"]["context_mib"]), ("1000", "758"))
        self.assertEqual(rows["b"]["driver_mib"], "2758")
        self.assertEqual([row["layers"] for row in self.exports], [[1]])

    def test_activity_only_alone(self):
        seen = {"smact": 0.5, "smocc": 0.2, "energy_j": 300.0, "observed_s": 1.5}
        rows = self.rows(run("a", alone=True, **seen), run("b", **seen))
        self.assertEqual(
            (rows["a"]["smact"], rows["a"]["power_w"], rows["a"]["step_ms"]), ("0.5", "200", "5")
        )
        self.assertEqual((rows["b"]["smact"], rows["b"]["step_ms"]), ("", ""))

    def test_a_family_is_wholly_in_or_out(self):
        for family in ("resnet", "bert", "unet"):
            self.assertEqual(len({split_of(run(str(i), family=family)) for i in range(50)}), 1)
        synthetic = [split_of(run(str(i), kind="mlp")) for i in range(2000)]
        self.assertAlmostEqual(synthetic.count("train") / 2000, 0.7, delta=0.04)

    def test_an_export_that_serves_every_batch_is_preferred(self):
        base = {"model_key": "resnet18", "optimizer": "adam", "precision": "fp32"}
        self.rows(
            run("a"),
            exports=[
                {**base, "export": {"every_batch": True}},
                {**base, "export": {"every_batch": False}},
                {**base, "export": None},
            ],
        )
        self.assertEqual([row["every_batch"] for row in self.exports], [True])


if __name__ == "__main__":
    unittest.main()
