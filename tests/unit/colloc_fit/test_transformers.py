# SPDX-License-Identifier: Apache-2.0
"""scripts/study-transformers: what each set has, and the intervals of an accuracy."""
import contextlib
import csv
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))

from colloc_fit import study_transformers as study  # noqa: E402


def label(number, mib, draw="published"):
    return {
        "id": f"drawn{number}",
        "number": number,
        "draw": draw,
        "batch": 8,
        "optimizer": "adam",
        "precision": "fp32",
        "mib": {study.H200: mib + 200, study.A100: mib},
        "layers": [[2, [["Linear", 8, 16, "", [8], 0, 0]]]],
    }


LABELS = [label(n, 1000 + 600 * n) for n in range(100)] + [label(200, 5000, "collected")]


class Sets(unittest.TestCase):
    def test_crashes_are_left_out_or_a_class_of_their_own(self):
        out, within = (
            list(study.published_rows(LABELS, with_crashes)) for with_crashes in (False, True)
        )
        self.assertEqual((len(out), len(within)), (67, 100))
        self.assertLessEqual(max(row["driver_mib"] for row in out), 40960)
        crashed = [row for row in within if row["driver_mib"] > 40960]
        self.assertEqual({row["driver_mib"] for row in crashed}, {42000})
        parts = {row["split"] for row in within}
        self.assertEqual(parts, {"train", "validation", "test"})

    def test_each_measured_row_is_kept_back_once(self):
        kept = [
            row["id"]
            for fold in range(study.FOLDS)
            for row in study.measured_rows(fold)
            if row["split"] == "test"
        ]
        whole = [row["id"] for row in study.measured_rows(None)]
        self.assertEqual(sorted(kept), sorted(whole))

    def test_no_label_is_kept_back_beside_measured_rows(self):
        rows = study.rows_of_set("both-1", LABELS)
        drawn = [row for row in rows if row["family"].startswith("drawn")]
        self.assertEqual({row["split"] for row in drawn}, {"train", "validation"})
        self.assertLessEqual(max(float(row["driver_mib"]) for row in drawn), study.LARGEST_MIB)
        self.assertGreater(len(drawn), 70)

    def test_measured_runs_are_compared_and_not_learned(self):
        measured = next(study.measured_rows(None))
        planned = {**label(0, 5000, "planned"), "id": measured["id"]}
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(study, "FOLDER", folder):
            path = os.path.join(folder, "labels.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                for row in (LABELS[0], planned, {"id": "x", "draw": "planned", "error": "died"}):
                    print(json.dumps(row), file=file)
            self.assertEqual([row["id"] for row in study.read_labels([path])], ["drawn0"])
            study.write_measured_labels([path])
            self.assertEqual(
                study.read_csv("measured-labels.csv"),
                [{"id": measured["id"], "precision": measured["precision"],
                  "measured_mib": measured["driver_mib"], "label_mib": "5200"}],
            )  # fmt: skip

    def test_a_table_of_which_there_is_no_label_stays(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(study, "FOLDER", folder):
            labels = os.path.join(folder, "labels.jsonl")
            with open(labels, "w", encoding="utf-8") as file:
                print(json.dumps(LABELS[0]), file=file)
            for name in ("labels.csv", "measured-labels.csv"):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write("as it was\n")
            with contextlib.redirect_stdout(io.StringIO()):
                study.judge("colloc", folder, [labels])
            for name in ("labels.csv", "measured-labels.csv"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    self.assertEqual(file.read(), "as it was\n")

    def test_the_folder_has_the_layers_of_its_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "labels.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                for row in LABELS + [{"id": "none", "draw": "published", "error": "no memory"}]:
                    print(json.dumps(row), file=file)
            study.make("crashes-in", folder, [path])
            with open(f"{folder}/runs.csv", encoding="utf-8", newline="") as file:
                models = [row["model"] for row in csv.DictReader(file)]
            with open(f"{folder}/layers.jsonl", encoding="utf-8") as file:
                layers = [json.loads(line) for line in file]
        self.assertEqual(sorted(models), sorted(line["model"] for line in layers))
        self.assertEqual({len(line["rows"]) for line in layers}, {2})
        with self.assertRaisesRegex(SystemExit, "no set crash"):
            study.make("crash", "folder", [])


class Judged(unittest.TestCase):
    def test_trainings_that_were_stopped_have_a_table_of_their_own(self):
        """Both have rows in one file; a third that is missing leaves its table without the row."""
        network = study.NETWORKS[0]
        answer = {network: {"rows": 10, "accuracy": 0.9, "under": 0.1, "commonest_class": 0.4}}
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(
            study, "FOLDER", folder
        ), mock.patch.object(study, "evaluate", lambda *_: answer):
            for name, kind in (("both", "weights"), ("both", "stopped"), ("both-0", "stopped"),
                               ("measured-0", "weights")):  # fmt: skip
                os.makedirs(f"{folder}/{name}/{kind}")
                with open(f"{folder}/{name}/runs.csv", "w", encoding="utf-8") as file:
                    file.write("split\ntrain\ntest\n")
                if kind == "stopped":
                    with open(f"{folder}/{name}/stopped/epochs.json", "w") as file:
                        json.dump({network: 14}, file)
            study.judge("colloc", folder, [])
            rows = study.read_csv("transformers.csv")
        self.assertEqual(
            [(row["set"], row["stopped_after"]) for row in rows],
            [("measured-0", ""), ("both-0", "14"), ("both", ""), ("both", "14")],
        )
        for stopped, last in ((False, ""), (True, "14")):
            table = study.accuracy_rows(rows, stopped)
            self.assertEqual([(row[0], row[-1]) for row in table], [("both", last)])
        thirds = [{**rows[-1], "set": f"both-{i}", "stopped_after": str(9 + i)} for i in range(3)]
        table = study.accuracy_rows(thirds, True)
        self.assertEqual([(row[3], row[-1]) for row in table], [("30", "9 to 11")])


class Interval(unittest.TestCase):
    def test_wilson(self):
        low, high = study.interval(0.76, 92)  # 70 of 92
        self.assertAlmostEqual(low, 0.663, delta=0.002)
        self.assertAlmostEqual(high, 0.836, delta=0.002)
        self.assertEqual(round(study.interval(1, 50)[1], 6), 1)
        self.assertLess(study.interval(1, 50)[0], 0.95)


if __name__ == "__main__":
    unittest.main()
