# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/kernel_trial.py: older answers are joined, and askings compared."""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests", "gpu"))

import kernel_trial  # noqa: E402

TURNED = {
    "phase": "forward",
    "batch": [128, 0],
    "input": [256, 8, 8],
    "weight": [256, 128, 4, 4],
    "output": [128, 16, 16],
    "stride": [2, 2],
    "padding": [1, 1],
    "dilation": [1, 1],
    "groups": 1,
    "transposed": True,
    "dtype": "float32",
}
PLAIN = {
    **TURNED,
    "phase": "backward",
    "input": TURNED["output"],
    "output": TURNED["input"],
    "transposed": False,
}
LATER = {**TURNED, "phase": "backward"}


def asked(*scratch, tried=([900], [27, 44], [30, 35])):
    return {"batch": 128, "scratch": list(scratch), "tried": [list(one) for one in tried]}


class Joined(unittest.TestCase):
    """A transposed convolution's forward pass is the input's gradient of the plain one. The
    process that asked both in one thread tried it once."""

    export = {"batch": 128, "convs": [TURNED, PLAIN, LATER, TURNED]}

    def test_the_other_thread_tries_it_too(self):
        tried = ([900], [27, 44], [30, 35], [])
        joined = kernel_trial.with_joined_tries(self.export, asked(tried=tried))
        self.assertEqual(joined["tried"], [[900], [900, 44], [30, None], []])

    def test_what_the_asking_process_held(self):
        row = {"kernels": asked(tried=([900], [27, 44], [30, 35], [])), "end": [22, 17, 22, 646]}
        self.assertEqual(kernel_trial.kernels_of(self.export, row)["process"], 624 << 20)
        row["kernels"]["process"] = 5
        self.assertEqual(kernel_trial.kernels_of(self.export, row)["process"], 5)
        plain = {"kernels": {"batch": 128, "scratch": []}, "end": row["end"]}
        self.assertEqual(kernel_trial.kernels_of(self.export, plain), plain["kernels"])
        self.assertIsNone(kernel_trial.kernels_of(self.export, None))


class Again(unittest.TestCase):
    export = {"batch": 128, "convs": [TURNED, PLAIN, LATER]}

    def test_what_differs(self):
        first, same = asked([7], [1, 2], [3, 4]), asked([7], [1, 2], [3, 4])
        self.assertEqual(kernel_trial.differences(self.export, first, same), (5, 0, 0, 0))
        other = asked([7], [1, 9], [0, 4], tried=([901], [27, 44], [30, 35]))
        self.assertEqual(kernel_trial.differences(self.export, first, other), (5, 2, 7, 1))


class Plans(unittest.TestCase):
    def asked(self, *kinds):
        """Rows and the options of each asking."""
        rows, options = [], []

        def helper(lines, program, *given, **variables):
            options.append((len(lines), *given, variables.get("CUDA_VISIBLE_DEVICES")))
            return "cudnn 91900\nanswer 1 2 3\n", 1.0, 2.5

        trial = object.__new__(kernel_trial.Trial)
        trial.bundle, trial.output = "/bundle", "/out"
        trial.left = lambda: 100
        trial.rows = mock.Mock(write=lambda what, **row: rows.append(row["how"]))
        with tempfile.NamedTemporaryFile("w") as file, mock.patch.object(
            kernel_trial, "ask_helper", helper
        ), contextlib.redirect_stdout(io.StringIO()):
            json.dump({"batch": 128, "convs": [TURNED, PLAIN]}, file)
            file.flush()
            trial.plan("dcgan", file.name, kinds)
        return rows, options

    def test_all_plans_need_no_gpu(self):
        rows, options = self.asked(kernel_trial.ALL_PLANS)
        self.assertEqual(rows, [kernel_trial.ALL_PLANS])
        self.assertEqual(options, [(2, "--all", "--device=/out/device", "")])

    def test_the_first_plans(self):
        rows, options = self.asked("with the GPU", "without a GPU")
        self.assertEqual(rows, ["with the GPU", "without a GPU"])
        self.assertEqual(options, [(2, None), (2, "--device=/out/device", "")])


class OfCudnn(unittest.TestCase):
    def test_depthwise_kernels_are_pytorchs(self):
        line = kernel_trial.question(
            {**PLAIN, "input": [8, 4, 4], "weight": [8, 1, 3, 3], "output": [8, 4, 4]}, 1, "weight"
        )
        self.assertFalse(kernel_trial.is_of_cudnn(line))
        self.assertTrue(kernel_trial.is_of_cudnn(line.replace("nchw", "nhwc")))
        self.assertTrue(kernel_trial.is_of_cudnn(kernel_trial.question(PLAIN, 1, "weight")))


if __name__ == "__main__":
    unittest.main()
