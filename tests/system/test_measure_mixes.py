# SPDX-License-Identifier: Apache-2.0
"""scripts/measure-mixes: trainings on an emulated GPU, and a simulation with what it measured."""

import csv
import os
import subprocess
import sys
import unittest

from daemon_case import DaemonCase

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PRETEND = "colloc-pretend-train --ramp-seconds=5 --seconds=100000 --steps=1000000"
PROGRAMS = f"""training,command
small,{PRETEND} --memory-mib=2000 --smact=0.4
busy,{PRETEND} --memory-mib=3000 --smact=0.9
brief,colloc-pretend-train --memory-mib=2000 --seconds=1
"""
MISSING = """gpu,driver,sharing,trainings,speeds,smact,power_w,crashed,simulated_s
H200,,mps,busy,,,,,200
H200,,mps,busy + small,,,,,100
H200,,mps,small,,,,,70
H200,,mps,brief + small,,,,,50
H200,,mps,unlisted + small,,,,,10
"""
TASKS = """task,gpus,solo_s,memory_mib,smact
small,1,100,2000,0.4
busy,1,100,3000,0.9
"""


class MeasureMixes(DaemonCase):
    gpus = "H200"
    settings = {
        "policy": "rr",
        "sharing": "mps",
        "starting-max": "64",
        "smact-max": "1",
        "min-free": "0",
        "margin": "0",
    }

    def measure(self, *words):
        return subprocess.run(
            [
                sys.executable,
                os.path.join(ROOT, "scripts", "measure-mixes"),
                "--programs",
                self.write("programs.csv", PROGRAMS),
                "--window=2",
                "--driver=580",
                *words,
                self.write("missing.csv", MISSING),
                self.mixes(),
            ],
            env={**os.environ, **self.env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )

    def mixes(self):
        return os.path.join(os.path.dirname(self.write("missing.csv", MISSING)), "mixes.csv")

    def rows(self):
        with open(self.mixes(), encoding="utf-8") as file:
            return {row["trainings"]: row for row in csv.DictReader(file)}

    def test_the_mix_is_measured_and_simulated(self):
        done = self.measure()
        self.assertEqual(done.returncode, 1, done.stderr)  # brief was too short
        self.assertIn("no command, left out: unlisted", done.stderr)
        self.assertRegex(done.stderr, "brief ended|no steps of brief")
        rows = self.rows()
        self.assertEqual(set(rows), {"small", "busy", "busy + small"})
        speeds = [float(speed) for speed in rows["busy + small"]["speeds"].split(" + ")]
        self.assertEqual(len(speeds), 2)
        # a window of 2 s is a few per cent off where the machine has other work
        self.assertTrue(all(0.2 < speed < 1.2 for speed in speeds) and min(speeds) < 0.95, speeds)
        self.assertGreater(float(rows["busy + small"]["smact"]), float(rows["small"]["smact"]))
        self.assertEqual([task["state"] for task in self.tasks() if not task["ended_at"]], [])
        before = len(self.tasks())
        self.measure()  # what stands there is not measured again: brief alone is tried
        self.assertLess(len(self.tasks()) - before, 4)
        found = self.colloc(
            "simulate",
            self.write("trace.csv", "submit_s,task\n0,small\n0,busy\n"),
            f"--tasks={self.write('tasks.csv', TASKS)}",
            f"--mixes={self.mixes()}",
            "--gpus=H200",
            "--policy=rr",
            "--smact-max=1",
        ).stdout
        self.assertIn("measured for 100.0 %", found)

    def test_a_table_of_another_driver(self):
        self.write("mixes.csv", "gpu,driver,sharing,trainings,speeds,smact,power_w,crashed\n"
                   "H200,535,mps,small,1,0.4,200,\n")  # fmt: skip
        self.assertIn("use one file for each", self.measure().stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
