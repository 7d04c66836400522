# SPDX-License-Identifier: Apache-2.0
"""The tables in the tree are what the fit writes, and name what the C code has."""
import os
import re
import subprocess
import tempfile
import unittest

import fit_case
from colloc_fit import tables
from colloc_fit.fit_estimators import EVIDENCE
from colloc_fit.physics import FEATURES_FROM

PHYSICS = os.path.join(fit_case.ROOT, "src", "estimator", "physics")
TABLES = ("graph_weights", "calibration", "activity_rates")


def read(name):
    with open(os.path.join(PHYSICS, name), encoding="utf-8") as file:
        return file.read()


class Tables(unittest.TestCase):
    def test_all_say_what_makes_them(self):
        for name in TABLES:
            text = read(f"{name}.inc")
            self.assertTrue(text.startswith(tables.HEADS[name]), name)
            command = re.search(r"Made by (\S+)", text)[1]
            self.assertTrue(os.access(os.path.join(fit_case.ROOT, command), os.X_OK), command)

    def test_rows_read_back_are_written_the_same(self):
        text = read("graph_weights.inc")
        empty = {row: {} for row in ("WEIGHTS_EXPORT", "WEIGHTS_KERNELS")}
        self.assertEqual(tables.weight_rows({**tables.read_weight_rows(text), **empty}), text)

    def test_rows_name_each_feature_of_the_program_once(self):
        with tempfile.NamedTemporaryFile() as no_tasks:
            program = [os.path.join(fit_case.BUILD, "tools", "colloc-physics"), no_tasks.name]
            head = subprocess.run(
                program, input="", stdout=subprocess.PIPE, text=True, check=True
            ).stdout
        names = head.rstrip("\n").split("\t")[FEATURES_FROM:]
        self.assertEqual(len(names), len(set(names)))
        rows = tables.read_weight_rows(read("graph_weights.inc"))
        self.assertTrue(rows)
        for row, weights in rows.items():
            self.assertEqual(list(weights), names, row)

    def test_no_row_is_noise(self):
        """Coefficients that no printed digit shows: the fit chose no correction."""
        for row, weights in tables.read_weight_rows(read("graph_weights.inc")).items():
            self.assertGreater(max(map(abs, weights.values())), 1e-4, row)

    def test_every_kind_of_evidence_is_there_once(self):
        for name in EVIDENCE.values():
            self.assertEqual(read("calibration.inc").count(f"[{name}]"), 1)

    def test_blocks_of_a_page(self):
        page = "a\n<!-- x -->\nold\n<!-- end -->\nb\n<!-- y -->\n<!-- end -->\n"
        page = tables.replace_blocks(page, {"x": "new", "y": tables.markdown(["h"], [["1"]])})
        self.assertEqual(
            page,
            "a\n<!-- x -->\nnew\n<!-- end -->\nb\n"
            "<!-- y -->\n| h |\n| --- |\n| 1 |\n<!-- end -->\n",
        )
        with self.assertRaises(ValueError):
            tables.replace_blocks(page, {"z": ""})

    def test_a_block_is_written_into_a_page(self):
        with tempfile.NamedTemporaryFile("w+") as page:
            page.write("a\n<!-- x -->\nold\n<!-- end -->\nb\n")
            page.flush()
            tables.write_block(page.name, "x", "new")
            page.seek(0)
            self.assertEqual(page.read(), "a\n<!-- x -->\nnew\n<!-- end -->\nb\n")


if __name__ == "__main__":
    unittest.main()
