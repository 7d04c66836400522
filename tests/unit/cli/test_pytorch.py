#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""colloc estimate --pytorch: a model of the user's run by a Python program of ours, and whatever
can go wrong with that.
"""

import json
import os
import shutil
import subprocess
import sys
import time
import unittest

from cli_case import COLLOC, CliCase

EXPORT = os.path.join(os.path.dirname(__file__), "..", "..", "data", "exports", "small.json")
MODEL = """\
import os
print("a model that talks")
from torch import nn

def make():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
    nn.Flatten(), nn.Linear(8, 5))

def broken():
    raise ValueError("no such thing \\x1b[2J")
"""


def python_with_torch():
    for program in (sys.executable, "/usr/bin/python3"):
        if (
            os.path.exists(program)
            and subprocess.run(
                [program, "-c", "import torch"], capture_output=True, check=False
            ).returncode
            == 0
        ):
            return program
    return None


class Case(CliCase):
    WORDS = ["--pytorch=mine.py:make", "--input=3x32x32", "--batch=16"]

    def rows(self, *words, **environment):
        reply = json.loads(self.colloc("estimate", "--json", *words, **environment))
        return reply, {row["estimator"]: row for row in reply["estimates"]}


class FakeInterpreter(Case):
    """A program of any kind in Python's place."""

    def interpreter(self, text):
        path = self.write("interpreter", "#!/bin/sh\n" + text)
        os.chmod(path, 0o700)
        return f"--python={path}"

    def export(self, **more):
        with open(EXPORT, encoding="utf-8") as file:
            return self.write("export.json", json.dumps({**json.load(file), **more}))

    def complaint_of(self, text, *words):
        """The last line, after whatever the program itself said."""
        done = self.run_colloc("estimate", *self.WORDS, self.interpreter(text), *words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("colloc: --pytorch=mine.py:make: ", done.stderr)
        return done.stderr

    def test_what_it_is_called_with(self):
        self.export()
        program = self.interpreter('printf "%s\\n" "$@" > words; cat export.json')
        self.rows(
            *self.WORDS,
            program,
            "--optimizer=adamw",
            "--precision=amp",
            "--seq=12",
            "--classes=0",
            "--labels",
            "--kernels",
            "--input=a=4:int64:9,b=2",
            "--estimator=all",
        )
        with open(os.path.join(self.folder, "words"), encoding="utf-8") as file:
            self.assertEqual(
                file.read().split("\n"),
                [
                    "-m",
                    "colloc_export",
                    "--batch=16",
                    "--optimizer=adamw",
                    "--precision=amp",
                    "--sequence=12",
                    "--classes=0",
                    "--labels",
                    "--kernels",
                    "--with-fake",
                    "--input=a=4:int64:9",
                    "--input=b=2",
                    "--",
                    "mine.py:make",
                    "",
                ],
            )

    def test_the_exporter_is_asked_for_what_it_knows(self):
        self.export()
        program = self.interpreter('printf "%s\\n" "$@" > words; cat export.json')
        for precision, word in (("bf16", "amp"), ("half", "amp"), ("tf32", "fp32")):
            self.rows(*self.WORDS, program, f"--precision={precision}")
            with open(os.path.join(self.folder, "words"), encoding="utf-8") as file:
                self.assertIn(f"--precision={word}", file.read().split("\n"))

    def test_no_shell(self):
        self.export()
        source = "$(touch ran);`touch ran`;--output=ran"
        self.rows(
            f"--pytorch={source}",
            "--batch=1",
            self.interpreter('for word; do last=$word; done; echo "$last" > last; cat export.json'),
        )
        with open(os.path.join(self.folder, "last"), encoding="utf-8") as file:
            self.assertEqual(file.read(), source + "\n")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "ran")))

    def test_an_export_like_any_other(self):
        file = self.export(faketensor={"batch": 16, "method": "fake", "peak_bytes": 3 << 20})
        run, rows = self.rows(
            *self.WORDS, self.interpreter("cat export.json; echo noise >&2"), "--estimator=all"
        )
        read, _ = self.rows(f"--export={file}", "--batch=16", "--estimator=all")
        self.assertEqual(run, read)
        self.assertEqual(rows["faketensor"]["mib"], 3)
        self.assertIn("no CUDA context", rows["faketensor"]["note"])
        self.assertEqual(run["model"]["format"], "export")

    def test_figure_of_another_batch_or_none(self):
        figure = {"batch": 16, "method": "cpu", "peak_bytes": 3 << 20}
        for words, more, mib, note in [
            ("--batch=16", {"faketensor": figure}, 3, "does not run on fake tensors"),
            ("--batch=17", {"faketensor": figure}, None, "batch 16 alone: export again for 17"),
            ("--batch=16", {}, None, "--pytorch"),
        ]:
            _, rows = self.rows(f"--export={self.export(**more)}", words, "--estimator=faketensor")
            self.assertEqual(rows["faketensor"]["mib"], mib)
            self.assertIn(note, rows["faketensor"]["note"])

    def test_kernels_that_a_gpu_told(self):
        file = self.export(kernels={"batch": 16, "gpu": "NVIDIA H200", "scratch": [[64 << 20]]})
        for words, evidence, note in [
            ((), "export with kernels", ""),
            (("--gpu=NVIDIA H200",), "export with kernels", ""),
            (("--gpu=NVIDIA A100-SXM4-40GB",), "export", "on NVIDIA H200 at a batch of 16"),
            (("--batch=32",), "export", "on NVIDIA H200 at a batch of 16"),
        ]:
            _, rows = self.rows(f"--export={file}", "--batch=16", *words)
            self.assertEqual(rows["graph"]["evidence"], evidence)
            self.assertIn(note, rows["graph"]["note"])
            self.assertEqual(bool(note), "workspaces" in rows["graph"]["note"])

    def test_kernels_are_nearer_than_another_batch(self):
        file = self.export(kernels={"batch": 16, "gpu": "NVIDIA H200", "scratch": [[64 << 20]]})
        words = [f"--export={file}", "--batch=16"]
        reply, before = self.rows(*words)
        for batch, evidence in ((8, "export with kernels"), (16, "same run")):
            history = self.write(
                "history.csv",
                "fingerprint,batch,seq,optimizer,precision,gpu,peak_mib,outcome\n"
                f"{reply['model']['fingerprint']},{batch},,adam,fp32,NVIDIA H200,5000,completed\n",
            )
            _, rows = self.rows(*words, f"--history={history}")
            self.assertEqual(rows["graph"]["evidence"], evidence)
            self.assertEqual(rows["graph"]["mib"] == before["graph"]["mib"], batch == 8)

    def test_figures_that_are_none(self):
        for figure in [
            7,
            {},
            {"batch": 0, "peak_bytes": 1},
            {"batch": 1, "peak_bytes": -1},
            {"batch": 1, "peak_bytes": 1.5},
            {"batch": 1, "peak_bytes": 2**60},
        ]:
            text = self.complaint(
                "estimate", f"--export={self.export(faketensor=figure)}", "--batch=1", code=2
            )
            self.assertIn("faketensor: must be an object with batch and peak_bytes", text)

    def test_what_the_exporter_warns_of_is_shown(self):
        path = self.export(warnings=["valid for batch 8 only\x1b[2J", 5])
        done = self.run_colloc("estimate", f"--export={path}", "--batch=8")
        self.assertEqual(done.stderr, f"colloc: warning: {path}: valid for batch 8 only\\x1b[2J\n")

    def test_failures(self):
        self.assertIn(
            "exited with status 3: second",
            self.complaint_of("echo first >&2; echo second >&2; exit 3"),
        )
        self.assertTrue(
            self.complaint_of("echo first >&2; echo second >&2; exit 3").startswith("    first\n")
        )
        self.assertIn("was killed by signal 9", self.complaint_of("kill -9 $$"))
        self.assertRegex(self.complaint_of("exit 1"), "exited with status 1\n$")
        self.assertIn("\\x1b[2J", self.complaint_of('printf "\\033[2J" >&2; exit 1'))

    def test_what_is_no_answer(self):
        for said in [
            "printf ''",
            "echo '{'",
            "echo '[1]'",
            "echo '{\"colloc_export\": 2}'",
            "head -c 1000 /dev/urandom",
            "head -c 9 /dev/zero",
            "head -c 100 export.json",
            "echo 'Linear-1 [-1, 8] 72'",
        ]:
            self.export()
            done = self.run_colloc("estimate", *self.WORDS, self.interpreter(said))
            self.assertEqual((done.returncode, done.stdout), (2, ""), said)
            self.assertRegex(done.stderr, "^colloc: [^\n]+\n$", said)

    def test_says_too_much(self):
        self.assertIn("wrote more than 64 MiB", self.complaint_of("exec yes"))
        said = self.complaint_of("yes noise | head -c 3000000 >&2; echo the end >&2; exit 1")
        self.assertIn("exited with status 1: the end", said)
        self.assertLess(len(said), 100000)

    def test_takes_too_long(self):
        """A busy machine may take longer than the first limit to start both processes."""
        program = "sleep 1000 & echo $$ $! > pids; wait"
        path, pids = os.path.join(self.folder, "pids"), []
        for limit_s in (1, 10, 50):
            started = time.monotonic()
            complaint = self.complaint_of(program, f"--limit={limit_s}s")
            self.assertIn(f"did not end within {limit_s} s", complaint)
            self.assertLess(time.monotonic() - started, limit_s + 30)
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    pids = [int(word) for word in file.read().split()]
            if pids:
                break
        self.assertEqual(len(pids), 2)
        for pid in pids:
            self.wait_gone(pid)

    def wait_gone(self, pid):
        """Killed; its new parent may not have reaped it yet."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                        return
            except FileNotFoundError:
                return
            os.sched_yield()
        self.fail(f"process {pid} is still there")

    def test_a_child_that_stays_is_not_waited_for(self):
        self.export()
        started = time.monotonic()
        self.rows(*self.WORDS, self.interpreter("sleep 1000 & cat export.json"))
        self.assertLess(time.monotonic() - started, 30)

    def test_where_its_program_lies(self):
        self.export()
        for colloc, python in [("bin/colloc", "share/colloc/python"), ("colloc", "python")]:
            for folder in (os.path.dirname(colloc), python):
                os.makedirs(os.path.join(self.folder, folder), exist_ok=True)
            shutil.copy(COLLOC, os.path.join(self.folder, colloc))
            done = subprocess.run(
                [
                    os.path.join(self.folder, colloc),
                    "estimate",
                    *self.WORDS,
                    self.interpreter('echo "$PYTHONPATH" > path; cat export.json'),
                ],
                capture_output=True,
                text=True,
                cwd=self.folder,
                env={**self.environment, "PYTHONPATH": "/of/the/user"},
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(self.folder, "path"), encoding="utf-8") as file:
                self.assertEqual(
                    file.read(),
                    os.path.realpath(os.path.join(self.folder, python)) + ":/of/the/user\n",
                )
            shutil.rmtree(os.path.join(self.folder, python))
            os.remove(os.path.join(self.folder, colloc))

    def test_without_its_program(self):
        colloc = os.path.join(self.folder, "colloc")
        shutil.copy(COLLOC, colloc)
        done = subprocess.run(
            [colloc, "estimate", *self.WORDS],
            capture_output=True,
            text=True,
            env=self.environment,
            check=False,
        )
        self.assertIn("cannot find colloc's Python programs where they were installed", done.stderr)

    def test_mistakes(self):
        self.write("net.txt", "Linear-1 [-1, 8] 72\n")
        for words, text in [
            (
                [*self.WORDS, "--python=/none"],
                "/none: no such program: give a Python interpreter with --python",
            ),
            (["--pytorch=mine.py:make"], "--pytorch needs the batch size: add --batch=N"),
            ([*self.WORDS, "--summary=net.txt"], "give one of them"),
            ([*self.WORDS, "--export=net.txt"], "give one of them"),
            (["--labels", "--memory=1G"], "--labels needs --pytorch"),
            (["--limit=1m", "--memory=1G"], "--limit needs --pytorch"),
            ([*self.WORDS, "--input=3,,4"], "--input=3,,4: empty value in the list"),
            ([*self.WORDS, "--input=" + "3," * 16 + "3"], "--input: more than 16 inputs"),
        ]:
            self.assertIn(text, self.complaint("estimate", *words, code=2))
        fake = json.dumps({"colloc_faketensor": 1, "peak_bytes": 1})
        text = self.complaint("estimate", f"--export={self.write('fake.json', fake)}", code=2)
        self.assertIn(
            "made with --fake, which is one figure and no layers: make it with --with-fake", text
        )


@unittest.skipUnless(python_with_torch(), "no PyTorch here")
class RealInterpreter(Case):
    def setUp(self):
        super().setUp()
        self.write("mine.py", MODEL)
        self.python = f"--python={python_with_torch()}"

    def test_a_model_of_the_users(self):
        reply, rows = self.rows(*self.WORDS, "--classes=5", "--estimator=all", self.python)
        self.assertEqual(reply["model"]["parameters"], 3 * 8 * 9 + 8 + 16 + 8 * 5 + 5)
        # Three maps of 8 x 30 x 30 floats live at once when the activation's gradient is made.
        self.assertGreaterEqual(rows["faketensor"]["mib"], 16 * 3 * 4 * 8 * 30 * 30 / 2**20)
        self.assertLess(rows["faketensor"]["mib"], rows["graph"]["mib"])
        self.assertEqual(reply["warnings"], [])

    def test_failures(self):
        done = self.run_colloc(
            "estimate", "--pytorch=mine.py:broken", "--input=3x32x32", "--batch=16", self.python
        )
        self.assertEqual(done.returncode, 2)
        self.assertTrue(
            done.stderr.endswith("exited with status 1: ValueError: no such thing \\x1b[2J\n"),
            done.stderr,
        )
        self.assertIn("in broken", done.stderr)
        done = self.run_colloc(
            "estimate", "--pytorch=mine.py:nothing", "--input=3x32x32", "--batch=16", self.python
        )
        self.assertIn("has no attribute 'nothing'", done.stderr)

    def test_a_python_without_pytorch(self):
        os.mkdir(os.path.join(self.folder, "torch"))
        self.write("torch/__init__.py", "raise ImportError('not here')\n")
        done = self.run_colloc("estimate", *self.WORDS, self.python)
        self.assertIn("colloc_export needs PyTorch", done.stderr)


if __name__ == "__main__":
    unittest.main()
