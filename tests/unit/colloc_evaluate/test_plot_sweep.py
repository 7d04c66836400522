# SPDX-License-Identifier: Apache-2.0
"""scripts/plot-sweep: medians over the seeds, and the policies that none beats."""

import csv
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
COLLOC = os.path.join(
    os.environ.get("COLLOC_BUILD", os.path.join(ROOT, "build")), "src", "cli", "colloc"
)
HEAD = (
    "trace,tasks,gpus,policy,estimator,known,sharing,smact_max,min_free_gib,margin_gib,resample,"
    "seed,total_s,avg_wait_s,avg_exec_s,avg_jct_s,"
    "oom,completed,failed,left_out,energy_mj,mean_smact,lower_bound_s,fault\n"
)


def row(policy, seed, total_s, oom=0):
    return (
        f"t,,4xA100-40GB,{policy},none,all,mps,0.8,5,2,0,{seed},{total_s},60,60,120,{oom},"
        f"1,0,0,{total_s / 100},0.5,1,\n"
    )


class PlotTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def plot(self, text, name="sweep.csv"):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return subprocess.run(
            [os.path.join(ROOT, "scripts", "plot-sweep"), path],
            capture_output=True,
            text=True,
            check=False,
        )

    def read(self, *path):
        with open(os.path.join(self.folder, *path), encoding="utf-8", newline="") as file:
            return file.read()

    def test_medians_and_who_is_beaten(self):
        done = self.plot(
            HEAD
            + row("slow", 1, 6000)
            + row("fast", 1, 600, oom=2)
            + row("fast", 2, 1800, oom=3)
            + row("fast", 3, 1200, oom=2)
            + row("safe", 1, 3000)
            + row("broken", 1, 1).replace(",1,60,60,120,0,", ",,,,,,")
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        points = list(csv.reader(self.read("sweep", "total-oom.csv").splitlines()))
        self.assertEqual(
            points[1:], [["slow", "100", "0"], ["fast", "20", "2"], ["safe", "50", "0"]]
        )
        page = self.read("sweep", "index.html")
        self.assertIn("3 settings, 5 runs; 1 runs gave no result.", page)
        rows = [line for line in page.splitlines() if line.startswith("<tr><td>")]
        self.assertEqual([line.split("<")[2][len("td>") :] for line in rows], ["fast", "safe"])

    def test_a_real_sweep(self):
        path = os.path.join(self.folder, "sweep.csv")
        subprocess.run(
            [
                COLLOC,
                "sweep",
                f"--trace={ROOT}/data/traces/philly-60.txt",
                "--policy=magm,lug",
                "--backfill=yes,no",
                "--seed=1:2",
                "-o",
                path,
            ],
            check=True,
        )
        self.assertEqual(self.plot(None).returncode, 0)
        for name in ("total-oom", "total-avg_wait_s", "total-energy_mj"):
            self.assertEqual(len(self.read("sweep", f"{name}.csv").splitlines()), 1 + 4)
            self.assertTrue(self.read("sweep", f"{name}.svg"))
        page = self.read("sweep", "index.html")
        self.assertIn("<th>backfill</th>", page)
        self.assertNotIn("http", page)

    def test_bad_input(self):
        for text, complaint in [
            ("a,b\n1,2\n", ":2: this is no row of a sweep"),
            (HEAD, ": no row has a result"),
            ("", ": no row has a result"),
            (HEAD + row("a", 1, 1).replace(",120,", ",x,"), ":2: this is no row"),
            (None, "No such file or directory"),
        ]:
            with self.subTest(text):
                done = self.plot(text, name="sweep.csv" if text is not None else "none.csv")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(complaint, done.stderr)
                self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
