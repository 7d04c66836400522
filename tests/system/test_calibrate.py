# SPDX-License-Identifier: Apache-2.0
"""`colloc calibrate` on an emulated GPU whose constants are known, and what reads its file."""

import csv
import json
import os
import re
import signal
import subprocess
import unittest

from daemon_case import LIMIT_S, DaemonCase, program, read, until

DATA = os.path.join(os.path.dirname(__file__), "..", "..", "data", "traces")

# Stands for workloads/worker.py: steps of pretend trainings, counted for the given time.
WORKER = """
import json, os, subprocess, sys, time
SMACT = {"light": 0.3, "middle": 0.55, "heavy": 0.85}
def say(**what): print(json.dumps(what), flush=True)
print("a warning of a library")
say(up=True)
for line in sys.stdin:
    command = json.loads(line)
    if command["do"] == "load":
        model = command["model"]
        if model == "broken":
            sys.exit("ModuleNotFoundError: No module named 'torchvision'")
        say(**({"error": "CUDA out of memory"} if model == "large" else {"ready": True}))
    elif command["do"] == "loader":
        say(steps_per_s=120.25 if command["processes"] == 1 else 960)
    elif command["do"] == "run":
        training = subprocess.Popen(
            ["colloc-pretend-train", "--memory-mib=900", "--seconds=100000", "--epochs=40000",
             "--startup-seconds=0", "--ramp-seconds=0", f"--smact={SMACT[model]}"],
            stdout=subprocess.PIPE, text=True)
        end, times = time.monotonic() + command["seconds"], []
        for line in training.stdout:
            times += [time.monotonic()] if line.startswith("Epoch") else []
            if time.monotonic() > end:
                break
        training.kill()
        training.wait()
        say(steps_per_s=(len(times) - 1) / (times[-1] - times[0]))
"""


class Calibrate(DaemonCase):
    gpus = "H200,H200:3g.71gb"
    speed = 100

    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.work, "workloads"))
        self.write("workloads/worker.py", WORKER)

    def start(self, **settings):
        """No daemon unless a test wants one."""

    def emulate(self, constants):
        """The same GPUs, but sharing costs something else on them."""
        kinds = self.write("kinds.txt", constants)
        os.unlink(self.env["COLLOC_EMULATOR"])
        self.emulator(
            "create", f"--gpu-kinds={kinds}", f"--gpus={self.gpus}", f"--speed={self.speed}",
            self.env["COLLOC_EMULATOR"],
        )  # fmt: skip

    def calibrate(self, *options, code=0):
        return self.colloc(
            "calibrate", f"--workloads={self.work}/workloads", "--interval=500ms",
            "--trainings=light,middle,heavy", *options, "host.txt", code=code,
        )  # fmt: skip

    def constants(self):
        found = re.findall(r"(?m)^constant (\w+) +([\d.]+)$", read(f"{self.work}/host.txt"))
        return {name: float(value) for name, value in found}

    def test_it_finds_what_sharing_costs_here(self):
        self.emulate("constant launch_cost 0\nconstant switch_cost 0.4\n")
        done = self.calibrate("--measurements=measured.csv")
        self.assertIn("light+middle+middle+heavy", done.stderr)
        self.assertEqual(done.stdout, read(f"{self.work}/host.txt"))
        self.assertIn("NVIDIA H200, driver ", done.stdout)
        self.assertIn("in mixes that were not used for the fit", done.stdout)
        found = self.constants()
        self.assertEqual(len(found), 8)
        self.assertEqual((found["decode_rate"], found["decode_most"]), (120.2, 960))
        self.assertLess(found["launch_cost"], 0.2)  # built in: 0.429
        self.assertGreater(found["switch_cost"] + found["cold_cost"], 0.25)  # built in: 0.117
        self.assertEqual(os.listdir(self.work).count("host.txt"), 1)
        self.fit_to_measurements()
        self.simulate_with_it()
        self.run_daemon_with_it(found)

    def fit_to_measurements(self):
        """scripts/fit-sharing reads the measurements."""
        with open(f"{self.work}/measured.csv", encoding="utf-8") as file:
            self.assertTrue(next(file).startswith("# NVIDIA H200, driver "))
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 2 * (3 + 6 * 2 + 3 + 3 + 4))
        alone = next(row for row in rows if row["mix"] == "heavy")
        self.assertAlmostEqual(float(alone["smact"]), 0.85, delta=0.05)

    def simulate_with_it(self):
        trace = f"--trace={DATA}/philly-60.txt"
        options = ["simulate", trace, "--policy=predictive", "--sharing=mps", "--known=all"]
        built_in = self.colloc(*options).stdout
        self.assertNotEqual(self.colloc(*options, "--gpu-kinds=host.txt").stdout, built_in)

    def run_daemon_with_it(self, found):
        settings = {"calibration": f"{self.work}/host.txt", "record_inputs": f"{self.folder}/in"}
        DaemonCase.start(self, policy="predictive", **settings)
        until(lambda: os.path.exists(f"{self.folder}/in"), "the record of inputs")
        recorded = json.loads(read(f"{self.folder}/in").split("\n")[0])["settings"]
        self.assertEqual(recorded["calibrated"], 1)
        self.assertAlmostEqual(recorded["launch_cost"], found["launch_cost"])
        self.submit_what_decodes()
        self.write("host.txt", "constant launch_cost 2\n")
        done = subprocess.run(
            [*self.command(**settings), "--check"],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("calibration: " + f"{self.work}/host.txt:1: launch_cost", done.stderr)

    def submit_what_decodes(self):
        """The daemon knows how long a script that decodes waits on this host."""
        export = json.loads(read(os.path.join(DATA, "..", "..", "tests/data/exports/small.json")))
        export["loader"] = {"workers": 1, "data": "jpeg", "pixels": 187500}
        self.write("net.json", json.dumps(export))
        done = self.colloc("submit", "--summary=net.json", "--batch=8", "--", "true")
        self.assertIn("with 120.2 samples a second", done.stderr)

    @unittest.skipUnless("COLLOC_SOAK" in os.environ, "as long as all others: make soak runs it")
    def test_without_mps_its_constants_stay_built_in(self):
        self.write("nvidia-cuda-mps-control", "#!/bin/sh\nexit 1\n")
        os.chmod(f"{self.work}/nvidia-cuda-mps-control", 0o755)
        self.env["PATH"] = f"{self.work}:{self.env['PATH']}"
        self.calibrate()
        self.assertEqual(sorted(self.constants()), ["cold_cost", "switch_cost"])
        self.assertIn("# MPS was not measured", read(f"{self.work}/host.txt"))

    def test_nothing_is_written_unless_all_was_measured(self):
        for options, words in (
            (["--trainings=broken,middle,heavy"], "No module named 'torchvision'"),
            (["--trainings=large,middle,heavy"], "a training failed: CUDA out of memory"),
            (["--python=no-such-python"], "no-such-python: No such file"),
            (["--gpu=7"], "this machine has no such GPU"),
            (["--gpu=1"], "needs a whole GPU: MIG is on"),
            (["--gpu=1:0"], "needs a whole GPU"),
        ):
            self.assertIn(words, self.calibrate(*options, code=1).stderr)
        self.assertIn("three", self.colloc("help", "calibrate").stdout)
        for trainings in ("a", "a,b,c,d", "a,,b"):
            self.calibrate(f"--trainings={trainings}", code=2)
        self.assertFalse(os.path.exists(f"{self.work}/host.txt"))

    def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(self):
        for path, why in (
            ("no/such/host.txt", "No such file or directory"),
            ("workloads", "Is a directory"),
        ):
            refused = self.colloc(
                "calibrate", f"--workloads={self.work}/workloads", "--trainings=light,middle,heavy",
                path, code=1,
            )  # fmt: skip
            self.assertEqual(refused.stderr, f"colloc: {path} cannot be written: {why}\n")

    def test_a_gpu_in_use_is_not_measured(self):
        user = subprocess.Popen(
            ["colloc-pretend-train", "--memory-mib=900", "--seconds=100000", "--startup-seconds=0"],
            env=self.env,
            stdout=subprocess.PIPE,
        )
        self.addCleanup(user.kill)
        user.stdout.readline()
        self.assertIn("GPU 0 is in use by 1 process", self.calibrate(code=1).stderr)

    def test_an_interruption_ends_the_trainings(self):
        running = subprocess.Popen(
            [
                program("colloc"), "calibrate", f"--workloads={self.work}/workloads",
                "--trainings=light,middle,heavy", "host.txt",
            ],
            env=self.env, cwd=self.work, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.assertIn("time-sliced", running.stderr.readline())
        running.send_signal(signal.SIGINT)
        self.assertIn("nothing is written", running.communicate(timeout=LIMIT_S)[1])
        self.assertEqual(running.returncode, 1)
        until(lambda: not self.kill_all(), "the end of the trainings")


if __name__ == "__main__":
    unittest.main()
