# SPDX-License-Identifier: Apache-2.0
"""Exports of compiled steps of JAX: against a pretend `jax` with the documented interface, since
Debian has no JAX; and that colloc reads them. tests/gpu/jax_trial.py is the test on a real one.
"""
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(HERE, "..", "..", "..", "python")
PRETEND = os.path.join(HERE, "pretend")
sys.path[0:0] = [PRETEND, PYTHON]

import jax  # noqa: E402
from colloc_export import jax_step  # noqa: E402
from colloc_export.user_code import Mistake  # noqa: E402

MIB = 1 << 20
PARAMETERS = {"w": jax.ShapeDtypeStruct((1024, 1024)), "b": jax.ShapeDtypeStruct((1024,))}
IMAGES, LABELS = jax.ShapeDtypeStruct((32, 1024)), jax.ShapeDtypeStruct((32,), jax.INT32)
LOSS = jax.ShapeDtypeStruct(())
WEIGHT, BIAS, BATCH = 4 * MIB, 4096, 32 * 4096
SCRIPT = """\
import jax
jax.ANALYSIS.temp_size_in_bytes = 8 << 20
def make(batch):
    print("a model that talks")
    w, x = jax.ShapeDtypeStruct((64, 64)), jax.ShapeDtypeStruct((batch, 64))
    return jax.jit(lambda w, x: w), w, x
def no_tuple(batch):
    return 7
"""


def train(parameters, images, labels):
    return parameters, LOSS


def analysis(**sizes):
    known = {"argument": WEIGHT + BIAS + BATCH + 128, "output": WEIGHT + BIAS + 4, "alias": 0}
    known.update(temp=10 * MIB, generated_code=3 * MIB)
    known.update(sizes)
    return types.SimpleNamespace(**{f"{name}_size_in_bytes": n for name, n in known.items()})


class Case(unittest.TestCase):
    def setUp(self):
        jax.ANALYSIS, jax.BACKEND, jax.POOL = analysis(), "gpu", None

    def export(self, step=train, **options):
        return jax_step(step, PARAMETERS, IMAGES, LABELS, **options)


class Export(Case):
    def test_sizes_of_a_step(self):
        export = self.export()
        self.assertEqual([export["batch"], export["model"]], [32, "train"])
        self.assertEqual(export["framework"]["platform"], "gpu")
        compiled = export["compiled"]
        self.assertEqual(compiled["arguments"], [BIAS, WEIGHT, BATCH, 128])
        self.assertEqual(compiled["outputs"], [[BIAS, 0], [WEIGHT, 1], [4, -1]])
        self.assertEqual([compiled["temp_bytes"], compiled["code_bytes"]], [10 * MIB, 3 * MIB])
        self.assertEqual(export["warnings"], [])

    def test_donated_arguments_are_overwritten(self):
        step = jax.jit(train, donate_argnums=(0,))
        jax.ANALYSIS = analysis(alias=WEIGHT + BIAS)
        self.assertEqual(self.export(step)["compiled"]["outputs"], [[4, -1]])

    def test_the_compiler_may_overwrite_less_than_is_donated(self):
        step = jax.jit(train, donate_argnums=(0,))
        jax.ANALYSIS = analysis(alias=BIAS)
        self.assertEqual(self.export(step)["compiled"]["outputs"], [[WEIGHT, 1], [4, -1]])

    def test_without_an_alias_size_what_is_donated_counts(self):
        step = jax.jit(train, donate_argnums=(0,))
        jax.ANALYSIS = analysis(alias=None)
        export = self.export(step)
        self.assertEqual(export["compiled"]["outputs"], [[4, -1]])
        self.assertIsNone(export["compiled"]["alias_bytes"])

    def test_unknown_is_null_and_never_zero(self):
        jax.ANALYSIS = types.SimpleNamespace(
            temp_size_in_bytes=MIB, generated_code_size_in_bytes=None
        )
        compiled = self.export()["compiled"]
        names = ["argument_bytes", "output_bytes", "alias_bytes", "code_bytes", "peak_bytes"]
        self.assertEqual([compiled[name] for name in names], 5 * [None])
        self.assertEqual(compiled["arguments"], [BIAS, WEIGHT, BATCH, 128])

    def test_without_temporaries_there_is_no_export(self):
        zeros = analysis(argument=0, output=0, temp=0)  # JAX 0.4.20 on a GPU
        for value in (
            None,
            zeros,
            analysis(temp=None),
            analysis(temp=-1),
            NotImplementedError("x"),
        ):
            jax.ANALYSIS = value
            with self.assertRaises(Mistake):
                self.export()

    def test_older_and_newer_forms_of_the_analysis(self):
        for value in ([analysis()], vars(analysis())):
            jax.ANALYSIS = value
            self.assertEqual(self.export()["compiled"]["temp_bytes"], 10 * MIB)

    def test_an_object_that_wraps_those_of_jax(self):
        """As equinox.filter_jit's."""
        inner = jax.jit(train)

        class Wrapped:
            def lower(self, *arguments):
                lowered = inner.lower(*arguments)
                compiled = types.SimpleNamespace(compiled=lowered.compile())
                return types.SimpleNamespace(lowered=lowered, compile=lambda: compiled)

        self.assertEqual(self.export(Wrapped())["compiled"], self.export()["compiled"])

    def test_without_the_results_the_compilers_sum_counts(self):
        class Silent(jax.Jitted):
            def lower(self, *arguments):
                lowered = super().lower(*arguments)
                del lowered.out_info, lowered.args_info
                return lowered

        eval_shape = jax.eval_shape
        jax.eval_shape = None
        self.addCleanup(setattr, jax, "eval_shape", eval_shape)
        jax.ANALYSIS = analysis(alias=BIAS)
        self.assertEqual(self.export(Silent(train, ()))["compiled"]["outputs"], [[WEIGHT + 4, -1]])

    def test_the_pool_when_the_compiler_has_ended(self):
        self.assertIsNone(self.export()["compiled"]["compiling"])
        jax.POOL = {"bytes_in_use": 5, "peak_bytes_in_use": 9, "pool_bytes": 16}
        known = {"in_use_bytes": 5, "peak_bytes": 9, "pool_bytes": 16, "largest_free_bytes": None}
        with mock.patch.dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false"):
            self.assertEqual(self.export()["compiled"]["compiling"], known)
        with mock.patch.dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="true"):
            in_advance = {**known, "pool_bytes": None}
            self.assertEqual(self.export()["compiled"]["compiling"], in_advance)

    def test_a_device_holds_its_part_of_a_divided_array(self):
        halved = jax.ShapeDtypeStruct((32, 1024), sharding=jax.HalvedSharding())
        export = jax_step(train, PARAMETERS, halved, LABELS)
        self.assertEqual(export["compiled"]["arguments"][2], BATCH // 2)

    def test_leaves_that_are_no_arrays(self):
        export = jax_step(train, [PARAMETERS, train, 0.1, None], IMAGES, LABELS)
        self.assertEqual(len(export["compiled"]["arguments"]), 4)

    def test_the_batch(self):
        self.assertEqual(self.export(batch=8)["batch"], 8)
        with self.assertRaisesRegex(Mistake, "batch=N"):
            jax_step(train, IMAGES, LABELS, [IMAGES, jax.ShapeDtypeStruct((7,))])
        with self.assertRaisesRegex(Mistake, "arguments"):
            jax_step(train)

    def test_the_program_is_the_same_at_another_batch(self):
        def program(batch, width=1024):
            images = jax.ShapeDtypeStruct((batch, width))
            return jax_step(train, PARAMETERS, images, jax.ShapeDtypeStruct((batch,)))["program"]

        self.assertEqual(program(32), program(64))
        self.assertNotEqual(program(32), program(32, width=512))


class CommandLine(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(os.path.join(self.folder.name, "mine.py"), "w", encoding="utf-8") as file:
            file.write(SCRIPT)

    def run_export(self, source, *paths):
        return subprocess.run(
            [sys.executable, "-S", "-m", "colloc_export", "--jax", source, "--batch=16"],
            capture_output=True, text=True, cwd=self.folder.name, check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([PYTHON, *paths])},
        )  # fmt: skip

    def test_writes_the_export_without_pytorch(self):
        done = self.run_export("mine.py:make", PRETEND)
        export = json.loads(done.stdout)
        self.assertEqual([export["batch"], export["model"]], [16, "mine.py:make"])
        self.assertIn("talks", done.stderr)

    def test_mistakes(self):
        for source, text in (
            ("make", "expected"),
            ("mine.py:no", "no"),
            ("none.py:make", "none.py"),
            ("mine.py:no_tuple", "no tuple"),
        ):
            done = self.run_export(source, PRETEND)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, f"^colloc_export: .*{text}")
        self.assertIn("needs JAX, and", self.run_export("mine.py:make").stderr)


class Estimate(Case):
    def estimate(self, export, *options, code=0):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(export, file)
            file.flush()
            done = subprocess.run(
                [os.environ["COLLOC"], "estimate", "--json", file.name, *options],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def test_colloc_reads_it(self):
        reply = self.estimate(self.export(), "--gpu=H100")
        row = reply["estimates"][0]
        live = 2 * (WEIGHT + BIAS) + BATCH + 128 + 4 + 10 * MIB
        context = 614 + 3  # that of CUDA alone, and the code
        self.assertEqual(row["evidence"], "compiled step")
        self.assertAlmostEqual(row["floor_mib"], context + live / MIB, places=3)
        self.assertGreater(row["mib"], row["floor_mib"])
        self.assertLess(row["mib"], context + 4 * live / MIB)
        self.assertLess(row["p50_mib"], row["p99_mib"])
        self.assertIn("XLA_PYTHON_CLIENT_PREALLOCATE=false", row["note"])
        self.assertNotIn("not compiled for a GPU", row["note"])
        self.assertIsNone(reply["model"]["parameters"])
        self.assertIsNone(reply["model"]["layers"])

    def mib_with(self, **figures):
        """The estimate above the context of a step with this state of the pool, in MiB."""
        export = self.export()
        export["compiled"]["compiling"] = figures or None
        row = self.estimate(export, "--gpu=H100")["estimates"][0]
        return row["mib"] - 617  # CUDA alone, and the code

    def test_the_pool_that_the_compiler_left(self):
        held = WEIGHT + BIAS + BATCH + 128 + MIB
        pool = {"in_use_bytes": held, "peak_bytes": 900 * MIB, "pool_bytes": 1030 * MIB}
        roomy = self.mib_with(**pool, largest_free_bytes=1000 * MIB)
        self.assertAlmostEqual(roomy, 1030, delta=0.01)
        full = {**pool, "pool_bytes": held + MIB, "largest_free_bytes": MIB}
        self.assertGreater(self.mib_with(**full), held / MIB + 1 + 10)  # the temporaries' region
        self.assertLess(self.mib_with(**full), 40)

    def test_what_the_compiler_tried_in_a_pool_of_unknown_size(self):
        tried = {"in_use_bytes": 10 * MIB, "peak_bytes": 310 * MIB}
        self.assertGreater(self.mib_with(**tried), self.mib_with() + 256)
        self.assertLess(self.mib_with(**tried), 600)

    def test_says_what_is_not_known(self):
        jax.BACKEND, jax.ANALYSIS = "cpu", analysis(generated_code=None)
        row = self.estimate(self.export())["estimates"][0]
        self.assertIn("not compiled for a GPU", row["note"])
        self.assertIn("code, whose size is not known", row["note"])
        self.assertIn("kernels that the compiler tries", row["note"])
        export = self.export()
        export["compiled"]["compiling"] = {"peak_bytes": MIB}
        self.assertNotIn("kernels that", self.estimate(export)["estimates"][0]["note"])

    def test_other_batches_and_other_estimators(self):
        row = self.estimate(self.export(), "--batch=64")["estimates"][0]
        self.assertIsNone(row["mib"])
        self.assertIn("compiled for a batch of 32 alone", row["note"])
        for row in self.estimate(self.export(), "--estimator=all")["estimates"]:
            if row["estimator"] != "graph":
                self.assertIsNone(row["mib"], row)

    def test_a_run_before_says_it_exactly(self):
        export = self.export()
        fingerprint = self.estimate(export)["model"]["fingerprint"]
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("fingerprint,batch,seq,optimizer,precision,gpu,peak_mib,outcome\n")
            file.write(f"{fingerprint},32,,,,,1234,completed\n")
            file.flush()
            row = self.estimate(export, f"--history={file.name}")["estimates"][0]
        self.assertEqual([row["evidence"], row["mib"]], ["same run", 1234])

    def test_broken_files(self):
        whole = self.export()

        def compiled(**members):
            return {**whole, "compiled": {**whole["compiled"], **members}}

        for export, text in (
            ({**whole, "program": ""}, "program"),
            ({**whole, "compiled": 7}, "temp_bytes"),
            (compiled(temp_bytes=None), "temp_bytes"),
            (compiled(code_bytes=-1), "code_bytes"),
            (compiled(argument_bytes=1 << 53), "argument_bytes"),
            (compiled(compiling={"peak_bytes": -1}), "peak_bytes"),
            (compiled(compiling={"in_use_bytes": 9, "pool_bytes": 8}), "smaller than its blocks"),
            (compiled(arguments=None), "arguments"),
            (compiled(arguments=[1, "x"]), "arguments[1]"),
            (compiled(outputs=[[1]]), "outputs[0]"),
            (compiled(outputs=[[1, 4]]), "outputs[0]"),
            (compiled(outputs=[[1, 0], [1, 0]]), "outputs[1]"),
            (compiled(arguments=100001 * [1]), "more than"),
            (compiled(arguments=4 * [1 << 51]), "more than any device has"),
        ):
            self.assertIn(text, self.estimate(export, code=2))


if __name__ == "__main__":
    unittest.main()
