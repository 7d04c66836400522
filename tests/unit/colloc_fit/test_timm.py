# SPDX-License-Identifier: Apache-2.0
"""The study of a table of timm's networks: which runs count, the constant, and the page."""
import contextlib
import io
import json
import lzma
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "python")
)

from colloc_fit import study_timm  # noqa: E402
from colloc_fit import timm_training  # noqa: E402
from colloc_fit.fused_norms import with_fused_norms  # noqa: E402
from colloc_fit.joined_sums import with_joined_sums  # noqa: E402

HEAD = "timm_model,batch,measured_mib,faketensor_mib\n"
CONSTANT = 1000  # MiB of the device


def row(model, batch, measured, fake):
    return {"model": model, "batch": batch, "measured_mib": measured, "faketensor_mib": fake}


def answer_of(_, export, *__):
    """As colloc's: with kernels that are tried it is 100 MiB more."""
    with open(export, encoding="utf-8") as file:
        more = 100 * bool(json.load(file)["flags"].get("cudnn_benchmark"))
    known = {"mib": 2000, "p90_mib": 2100, "p99_mib": 2200, "floor_mib": 1900}
    return {"estimates": [{key: value + more for key, value in known.items()}]}


def empty_export():
    return {
        "tensors": [],
        "classes": ["param", "grad", "temp"],
        "convs": [],
        "phases": [],
        "ticks": 2,
        "flags": {},
    }


class Sheet(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def sheet(self, text):
        path = os.path.join(self.folder, "sheet.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_runs_that_ran_out_of_memory_do_not_count(self):
        rows = study_timm.read_sheet(
            self.sheet(
                HEAD + "a,8,3000,900\na,16,2500,2600\na,32,39000,9\na,64,2800,9\na,128,2800,9\n"
            )
        )
        self.assertEqual(
            [one["batch"] for one in study_timm.usable_runs(rows["a"])], [8]
        )  # 16: less than its live tensors, 32: the device is full, 64: as much as 128

    def test_another_table_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "the first line is not timm_model,batch"):
            study_timm.read_sheet(self.sheet("model,batch\na,8\n"))

    def test_the_constant_is_that_of_the_other_half(self):
        names = [f"net{i}" for i in range(20)]
        rows = [
            {**row(name, 8, 2000 + CONSTANT, 500), "mib": 2000, "p90_mib": 2100, "p99_mib": 2200}
            for name in names
        ]
        half = study_timm.rank(names[0]) % 2
        others = [one for one in rows if study_timm.rank(one["model"]) % 2 != half]
        for one in others:
            one["measured_mib"] += 300
        study_timm.add_constants(rows)
        self.assertEqual(rows[0]["constant_mib"], CONSTANT + 300)
        self.assertAlmostEqual(rows[0]["error"], 300 / 3000)
        self.assertEqual((others[0]["constant_mib"], others[0]["above_p99"]), (CONSTANT, True))

    def test_runs_above_their_neighbours(self):
        """At 16 the line from 1,000 at 8 to 4,000 at 32 has 2,000."""
        networks = {
            "straight": [
                row("straight", 8 << i, 1000 + 1000 * (2**i - 1), 500) for i in range(4)
            ],
            "jumping": [
                row("jumping", 8, 1000, 500),
                row("jumping", 16, 4100, 500),
                row("jumping", 32, 4000, 500),
            ],
            "alone": [row("alone", 8, 1000, 500)],
        }
        self.assertEqual(study_timm.jumps(networks), ([("jumping", 16)], 3, 1))

    def test_growth_is_told_of_networks_with_small_and_large_batches(self):
        rows = [
            {**row("a", batch, 1000 + excess, 0), "mib": 1000}
            for batch, excess in ((8, 10), (64, 500), (128, 160))
        ]
        self.assertEqual(study_timm.growth(rows), 150)
        self.assertIsNone(study_timm.growth(rows[:2]))

    def test_the_page(self):
        page = os.path.join(self.folder, "page.md")
        names = ("counts", "errors", "steps", "sources", "batches", "families", "jumps", "halves",
                 "h200", "widths", "too high", "below", "outputs")  # fmt: skip
        with open(page, "w", encoding="utf-8") as file:
            file.writelines(f"<!-- {name} -->\n\nold\n\n<!-- end -->\n" for name in names)
        exports = os.path.join(self.folder, "exports")
        os.mkdir(exports)
        lines = []
        for i in range(12):
            with open(os.path.join(exports, f"net{i}.json"), "w", encoding="utf-8") as file:
                convs = 5 * [{"phase": "forward", "tick": 1}]
                shape = [1, 1024, 1024]
                description = {**empty_export(), "inputs": [{"shape": shape}], "convs": convs}
                description["layers"] = [{"shape": [512 if i == 3 else 1000]}]
                json.dump(description, file)
            lines.append(f"net{i},8,{3000 if i < 10 else 4500},900\n")  # the last two jump
        with mock.patch.object(study_timm, "ask", answer_of), mock.patch.object(
            study_timm, "unpack_exports", lambda *_: {}
        ), mock.patch.object(study_timm, "LEAST_RUNS", 10), contextlib.redirect_stdout(
            io.StringIO()
        ):
            study_timm.judge(
                "colloc", self.sheet(HEAD + "".join(lines)), exports, self.folder, page
            )
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("old", text)
        self.assertIn("12 of 12 networks, 12 of 12 runs", text)
        self.assertIn("| `graph`, from an export | 0.0% | 33.3% | 33.3% | 16.7% | 16.7% |", text)
        self.assertIn("| plain momentum | 0.0% | 33.3% |  | 1000 |", text)
        self.assertIn("| and cuDNN tries kernels | 0.0% | 33.3% |  | 900 |", text)
        self.assertIn("| and the loader's batches | 0.0% | 33.3% |  | 828 |", text)
        self.assertIn("| this study, in view | 12 | 0.0% |", text)
        self.assertIn("| net | 12 | 0.0% |", text)
        self.assertIn("| fewer than 1,000 | 1 | 1 | 0 | 0 | 0.0% |", text)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "runs.csv")))

    def test_exports_of_a_file(self):
        """Those of the table's networks alone, in fp32 and with its optimizer."""
        path = os.path.join(self.folder, "exports.jsonl.xz")
        momentum, adam = {"name": "momentum"}, {"name": "adam"}
        rows = [
            {"model": "a", "precision": "fp32", "optimizer": momentum},
            {"model": "b", "model_key": "c", "precision": "fp32", "optimizer": momentum},
            {"model": "d", "precision": "amp", "optimizer": momentum},
            {"model": "e", "precision": "fp32", "optimizer": adam},
            {"model": "f", "precision": "fp32", "optimizer": momentum},
        ]
        rows = [{**one, "tensors": [], "phases": []} for one in rows]
        with lzma.open(path, "wt") as file:
            file.writelines(json.dumps(one) + "\n" for one in rows)
        again = os.path.join(self.folder, "again.jsonl.xz")
        with lzma.open(again, "wt") as file:
            file.write(json.dumps({**rows[0], "model": "b"}) + "\n")
        networks = {"a", "b", "c", "d", "e"}
        found, sources = study_timm.read_exports(f"{path},{again}", networks, self.folder)
        self.assertEqual(
            sources,
            {"a": study_timm.IN_VIEW, "c": study_timm.IN_VIEW, "b": study_timm.NOT_IN_VIEW},
        )
        with open(found["c"], encoding="utf-8") as file:
            self.assertEqual(json.load(file), rows[1])
        self.assertEqual(study_timm.read_exports(self.folder, found, "")[0], found)

    def test_runs_beside_an_h200(self):
        path = os.path.join(self.folder, "tries.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for batch, benchmark, most in ((8, False, 900), (8, True, 1800), (16, False, 1000),
                                           (16, True, 1900)):  # fmt: skip
                line = {"name": "a", "batch": batch, "benchmark": benchmark, "mib": most}
                file.write(json.dumps(line) + "\n")
        taken = study_timm.read_h200(path)
        self.assertEqual(taken["a", 8], {False: 900, True: 1800})
        export = os.path.join(self.folder, "a.json")
        with open(export, "w", encoding="utf-8") as file:
            json.dump({**empty_export(), "convs": [{"phase": "forward", "tick": 1}]}, file)
        asked = []

        def answer(_, path, batch, gpu):
            asked.append((batch, gpu))
            return {"estimates": [{**dict.fromkeys(study_timm.ASKED, 890), "p99_mib": 2000}]}

        with mock.patch.object(study_timm, "ask", answer):
            rows = study_timm.estimate_h200("colloc", {"a": export}, taken)
        self.assertEqual(asked, [(8, "H200"), (16, "H200")])
        table = study_timm._beside_h200({"a": [row("a", 8, 900 + 2048, 500)]}, rows)
        self.assertEqual(
            table.splitlines()[2:],
            ["| a | 8 | 900 | 890 | 1,800 | 2,000 | +2.0 GiB |",
             "| a | 16 | 1,000 | 890 | 1,900 | 2,000 |  |"],
        )  # fmt: skip
        self.assertEqual(study_timm.estimate_h200("colloc", {}, taken), [])

    def test_sums_are_joined_in_files(self):
        """Autograd adds the second gradient to the first: A ends when the sum S is there, B one
        tick later. Storages of another size, or before the backward pass, are no sums."""
        before = [[8, 0, 1, 4, 0], [8, 0, 2, 5, 0], [8, 0, 3, 6, 0]]
        a, b, total = [64, 2, 11, 16, 1], [64, 2, 13, 17, 1], [64, 2, 15, 19, 1]
        other = [9, 0, 14, 18, 1]
        export = {
            "tensors": [*before, a, b, total, other],
            "phases": [{"forward": 0, "backward": 10, "optimizer": 20, "end": 30}],
        }
        joined = with_joined_sums(export)["tensors"]
        self.assertEqual(joined[:3], before)
        self.assertEqual(joined[3:], [[64, 2, 11, 19, 1], b, [0, 0, 15, 16, 1], other])
        self.assertEqual(export["tensors"][3], [64, 2, 11, 16, 1])
        apart = {**export, "tensors": [a, [64, 2, 13, 18, 1], total]}
        self.assertEqual(with_joined_sums(apart)["tensors"], apart["tensors"])

    def test_norms_are_cuda_s_kernel_in_files(self):
        """The first rms_norm of vit_base_patch16_xp_224, as a CPU's PyTorch 2.11 ran it; the first
        layer norm of a network without any; one in Python frees the square before the root."""
        square, mean, normalized = (
            [0, 605184, 122, 129, 5],
            [0, 788, 123, 130, 5],
            [0, 605184, 131, 2696, 4],
        )
        before, root, output = (
            [0, 605184, 119, 2722, 4],
            [0, 788, 128, 2713, 4],
            [0, 605184, 132, 2684, 4],
        )
        phases = [{"forward": 117, "backward": 690}]
        export = {"tensors": [before, square, mean, root, normalized, output], "phases": phases}
        fused = [
            before,
            [0, 0, 122, 129, 5],
            [0, 0, 123, 130, 5],
            root,
            [0, 0, 131, 2696, 4],
            output,
        ]
        self.assertEqual(with_fused_norms(export), {"tensors": fused, "phases": phases})
        self.assertEqual(export["tensors"][1], square)
        later = {**export, "phases": [{"forward": 130, "backward": 690}]}
        self.assertEqual(with_fused_norms(later), later)
        layer_norm = [[0, 605184, 157, 1552, 4], [0, 605184, 160, 1540, 4], [0, 788, 161, 1553, 4],
                      [0, 788, 162, 1554, 4], [0, 605184, 165, 1532, 4]]  # fmt: skip
        in_python = [[0, 605184, 122, 124, 5], [0, 788, 123, 126, 5], [0, 788, 125, 2713, 4],
                     [0, 605184, 127, 2696, 4]]  # fmt: skip
        for tensors in (layer_norm, in_python):
            other = {"tensors": tensors, "phases": phases}
            self.assertEqual(with_fused_norms(other), other)

    def test_runs_that_are_too_high(self):
        networks = {"a": [row("a", 8, 1000, 400), row("a", 16, 1100, 500), row("a", 32, 90, 700)]}
        rows = [  # the first took as much as its tensors and the device do
            {**row("a", 8, 1000, 400), "mib": 600, "error": 0.2, "floor_mib": 400},
            {**row("a", 16, 1100, 500), "mib": 900, "error": 0.3, "floor_mib": 501},
            {**row("b", 8, 1000, 400), "mib": 400, "error": -0.5, "floor_mib": 399},
        ]
        rows = [{**one, "constant_mib": 600} for one in rows]
        self.assertEqual(
            study_timm._too_high(rows, networks).splitlines()[2:],
            ["| median of all |  |  |  |  | 3.00 |", "| a | 2 | +30.0% | 1 | 1 | 3.00 |"],
        )
        self.assertEqual(
            study_timm._below_tensors(rows),
            "1 of 2 runs that are more than 12% too high took less than that, and 0 of the other "
            "1.\n",
        )
        self.assertEqual(study_timm._too_high(rows[2:], networks).count("\n"), 2)

    def test_networks_with_fewer_outputs_than_classes(self):
        """Of two, one run did not end well and another took less than its tensors."""
        networks = {"a": [row("a", 8, 100, 400), row("a", 16, 1100, 500)], "b": [row("b", 8, 9, 1)]}
        rows = [{**row("a", 16, 1100, 500), "constant_mib": 600, "floor_mib": 501}]
        lines = study_timm._by_outputs(rows, networks, {"a": 512, "b": 1000}).splitlines()
        self.assertEqual(
            lines[2:],
            ["| fewer than 1,000 | 1 | 2 | 1 | 1 | 100.0% |",
             "| 1,000 or more | 1 | 1 | 1 | 0 | 100.0% |"],
        )  # fmt: skip

    def test_widths(self):
        rows = [{"source": study_timm.IN_VIEW, "mib": 100, "p90_mib": 110, "p99_mib": mib}
                for mib in (120, 200, 160)]  # fmt: skip
        line = study_timm._widths(rows).splitlines()[2]
        self.assertEqual(line, "| this study, in view | 3 | 1.10 | 1.10 | 1.60 | 1.60 |")

    def test_families(self):
        for name, family in (("resnet50d", "resnet"), ("tf_mixnet_l", "tf_mixnet")):
            self.assertEqual(study_timm.family_of(name), family)


class Training(unittest.TestCase):
    def test_weights_decay_in_tensors_until_the_end_of_the_step(self):
        """A weight of 32 KiB, and a bias, whose gradients come before the step at tick 4."""
        description = {
            **empty_export(),
            "tensors": [[32768, 0, 0, -1, 0], [64, 0, 1, 9, 1], [32768, 0, 2, 8, 1],
                        [32768, 0, 4, -1, 0]],
            "convs": [{"phase": "forward", "tick": 3}, {"phase": "forward", "tick": 7}],
            "phases": [{"forward": 2, "optimizer": 4, "zero_grad": 5, "end": 10}],
            "ticks": 10,
        }  # fmt: skip
        changed = timm_training.as_timm_trains(description, (timm_training.DECAY,))
        self.assertEqual(
            changed["tensors"],
            [[32768, 0, 0, -1, 0], [64, 0, 1, 11, 1], [32768, 0, 2, 10, 1], [32768, 0, 4, 6, 2],
             [32768, 0, 5, -1, 0]],
        )  # fmt: skip
        self.assertEqual([conv["tick"] for conv in changed["convs"]], [3, 9])
        self.assertEqual(
            changed["phases"], [{"forward": 2, "optimizer": 4, "zero_grad": 7, "end": 12}]
        )
        self.assertEqual((changed["ticks"], changed["flags"]), (12, {}))

    def test_the_ways_of_a_training(self):
        tries = timm_training.as_timm_trains(empty_export(), (timm_training.TRIES,))
        self.assertEqual(tries, {**empty_export(), "flags": {"cudnn_benchmark": True}})
        shape = {"inputs": [{"shape": [1, 1024, 1024]}]}
        self.assertEqual(timm_training.loader_mib(shape, 8), 72)


if __name__ == "__main__":
    unittest.main()
