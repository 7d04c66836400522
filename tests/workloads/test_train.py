# SPDX-License-Identifier: Apache-2.0
"""workloads/train.py on the CPU: its output for synthetic and real data, and its refusals."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

WORKLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "workloads")


def python_with_torch():
    """A python of the user's own may come first and lack Debian's packages."""
    for python in ("python3", "/usr/bin/python3"):
        if (
            shutil.which(python)
            and subprocess.run(
                [python, "-c", "import torch"], capture_output=True, check=False
            ).returncode
            == 0
        ):
            return python
    return None


PYTHON = python_with_torch()


def train(*arguments):
    return subprocess.run(
        [PYTHON, os.path.join(WORKLOADS, "train.py"), *arguments, "--device", "cpu"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def events(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


class Train(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def test_epochs_are_told_one_to_a_line(self):
        told = events(train("digits", "--epochs", "3", "--steps", "4", "--batch", "8"))
        self.assertEqual(
            [line["event"] for line in told], ["begin", "ready", "epoch", "epoch", "epoch", "end"]
        )
        for number, line in enumerate(told[2:5], 1):
            self.assertEqual((line["epoch"], line["samples"]), (number, 32))
            self.assertAlmostEqual(line["seconds"], line["to"] - line["from"], delta=0.05)

    def test_two_processes_train_together(self):
        done = train("digits", "--epochs=1", "--steps=4", "--batch=8", "--processes=2")
        told = events(done)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line["event"] for line in told], ["begin", "ready", "epoch", "end"])
        self.assertEqual(told[2]["samples"], 64)

    def test_all_end_when_one_of_them_fails(self):
        command = (os.path.join(WORKLOADS, "train.py"), "digits", "--epochs=1", "--steps=1000000")
        training = subprocess.Popen(
            [PYTHON, *command, "--batch=8", "--processes=2", "--device=cpu"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            for word in ("begin", "ready"):
                line = training.stdout.readline()
                self.assertTrue(
                    line, "it has ended: " + ("" if line else training.communicate()[1])
                )
                self.assertEqual(json.loads(line)["event"], word)
            with open(
                f"/proc/{training.pid}/task/{training.pid}/children", encoding="ascii"
            ) as file:
                ranks = file.read().split()
            self.assertEqual(len(ranks), 2)
            os.kill(int(ranks[1]), signal.SIGKILL)
            _, told = training.communicate(timeout=100)
        finally:
            training.kill()
        self.assertEqual(training.returncode, 1)
        self.assertIn("a process of this training failed", told)
        self.assertFalse(os.path.exists(f"/proc/{ranks[0]}"))

    def test_a_model_that_is_not_there_and_no_steps(self):
        for arguments in (("nothing",), ("digits", "--steps", "0"), ("digits", "--batch", "-1")):
            done = train(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("error: ", done.stderr)

    def write_clicks(self, count):
        with open(os.path.join(self.folder, "day_0"), "w", encoding="ascii") as log:
            for i in range(count):
                log.write("\t".join([str(i % 2), *["7"] * 12, "", *["68fd1e64"] * 25, ""]) + "\n")

    def test_so_many_batches_of_a_log_that_is_shorter(self):
        self.write_clicks(50)
        batches = self.loaded(f"Clicks(16, 1000), {self.folder!r}, steps=7")
        self.assertEqual(batches, [[[16, 13], [16, 26], [16]]] * 7)

    def test_a_log_that_is_shorter_than_a_batch(self):
        self.write_clicks(5)
        with self.assertRaises(subprocess.CalledProcessError) as caught:
            self.loaded(f"Clicks(16, 1000), {self.folder!r}, steps=7")
        self.assertIn("shorter than one batch", caught.exception.stderr)

    def test_so_many_batches_of_text(self):
        with open(os.path.join(self.folder, "a.txt"), "w", encoding="utf-8") as text:
            text.write("x" * 300)
        self.assertEqual(
            self.loaded(f"Tokens(4, 100, 256), {self.folder!r}, steps=5"),
            [[[4, 100], [4, 100]]] * 5,
        )

    def test_an_epoch_of_real_data_is_once_through_it(self):
        self.write_clicks(50)
        batches = self.loaded(f"Clicks(16, 1000), {self.folder!r}")
        self.assertEqual(batches, [[[16, 13], [16, 26], [16]]] * 3)

    def test_a_broken_log_is_named_with_its_line(self):
        path = os.path.join(self.folder, "day_0")
        with open(path, "w", encoding="ascii") as log:
            log.write("1\t2\t3\n")
        with self.assertRaises(subprocess.CalledProcessError) as caught:
            self.loaded(f"Clicks(1, 1000), {self.folder!r}")
        self.assertIn(f"{path}:1: 3 fields", caught.exception.stderr)

    def test_text_becomes_sequences(self):
        with open(os.path.join(self.folder, "a.txt"), "w", encoding="utf-8") as text:
            text.write("x" * 1000)
        self.assertEqual(
            self.loaded(f"Tokens(4, 100, 256), {self.folder!r}"), [[[4, 100], [4, 100]]] * 2
        )

    def test_pictures_for_the_calibration(self):
        """Where the Python has torchvision; else the reply says what is missing."""
        ask = "import json, worker; print(json.dumps(worker.load_pictures(%s)))"
        hidden = "import sys; sys.modules['torchvision'] = None; "
        for processes in (1, 0):
            command = {"processes": processes, "seconds": 0.2}
            reply = self.run_code(ask % command)
            if reply.keys() != {"error"} or "torchvision" not in reply["error"]:
                self.assertGreater(reply["steps_per_s"], 0)
            self.assertIn("torchvision", self.run_code(hidden + ask % command)["error"])

    def test_pictures_are_as_large_as_imagenets(self):
        code = "import pictures; print(len(pictures.make_jpegs(1, **pictures.IMAGENET)[0]))"
        self.assertAlmostEqual(self.run_code(code) / 1024, 113, delta=12)

    def loaded(self, arguments):
        return self.run_code(
            "import json; from models import *; from loaders import open_data\n"
            f"data = open_data({arguments})\n"
            "print(json.dumps([[list(tensor.shape) for tensor in batch] for batch in data]))"
        )

    def run_code(self, code):
        done = subprocess.run(
            [PYTHON, "-c", code],
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
            env={**os.environ, "PYTHONPATH": WORKLOADS},
        )
        return json.loads(done.stdout)


if __name__ == "__main__":
    if PYTHON is None:
        print("no python3 here has PyTorch")
        sys.exit(77)
    unittest.main(verbosity=2)
