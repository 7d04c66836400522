# SPDX-License-Identifier: Apache-2.0
"""Controller and agent together on a loopback cluster with emulated GPUs: jobs share a GPU, one
that runs out of GPU memory runs again alone and never fails, and colloc's commands show it all."""

import json
import os
import shutil
import subprocess
import tempfile
import types
import unittest

from daemon_case import BUILD, LIMIT_S, at_least, program, read, until

from colloc_demo.slurm_cluster import SlurmCluster, copy_programs
from colloc_slurm import loopback

ADA, BOB = "daemon", "games"  # accounts that every Debian has
EXCLUSIVE = "#COLLOC --exclusive\nexec sleep 1000"
TRAIN = """#COLLOC --memory=10GiB --smact=0.2
COLLOC_EMULATOR={gpus} {programs}/colloc-pretend-train --memory-mib={mib} --seconds={seconds} \\
    --smact=0.2
"""


def why_not():
    return "jobs of several users need root" if os.geteuid() else loopback.why_not()


@unittest.skipIf(why_not(), why_not())
class Cluster(unittest.TestCase):
    has_tls = False

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="colloc-test-")
        self.addCleanup(shutil.rmtree, folder)
        options = types.SimpleNamespace(
            build=os.path.abspath(BUILD), nodes=1, gpus=2, speed=20, keep=False
        )
        self.cluster = SlurmCluster(
            "test",
            copy_programs(folder, options),
            options,
            has_tls=self.has_tls,
            policy="magm",
            sharing="mps",
        )
        self.addCleanup(self.cluster.close)
        self.cluster.start()
        self.slurm = self.cluster.slurm
        self.socket = self.slurm.path("run/api/socket")

    def sbatch(self, script, *options, user):
        return self.slurm.sbatch("#!/bin/sh\n" + script, "--partition=gpu", *options, user=user)

    def train(self, mib, seconds, user, *options):
        script = TRAIN.format(
            gpus=self.cluster.gpu_file("n0"),
            programs=self.cluster.programs,
            mib=mib,
            seconds=seconds,
        )
        return self.sbatch(script, *options, user=user)

    def colloc(self, *words, user=None, status=0):
        """What the command prints to this user."""
        words = [program("colloc"), *words, f"--socket={self.socket}"]
        if user:
            words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *words]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd="/"
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def answer(self, *words):
        return json.loads(self.colloc(*words, "--json"))

    def gpus_with(self, label, mib):
        """All GPUs, once this one is reported with that much memory in use. A busy machine has
        reports without a reading in time."""
        gpus = {gpu["index"]: gpu for gpu in self.answer("gpus")["gpus"]}
        return gpus if at_least(gpus[label]["mem_used_mib"], mib) else None

    def test_out_of_memory_beside_another_job(self):
        alone = self.sbatch(EXCLUSIVE, user=ADA)
        self.slurm.wait_job(alone, "RUNNING")
        first = self.train(9000, 1000000, ADA, "--job-name=first")
        self.slurm.wait_job(first, "RUNNING")
        crashing = self.train(36000, 20, BOB)
        dependent = self.sbatch("true", f"--dependency=afterok:{crashing}", user=BOB)
        # The agent sees why it failed, and it is requeued while it still counts as running.
        self.slurm.until(lambda: self.slurm.job(crashing)["Restarts"] == "1", "its requeue")
        log, line = self.slurm.path("log/agent-n0.log"), "ran out of GPU memory beside others"
        until(lambda: line in read(log), "the agent's line, after the requeue")
        self.check_commands(first, crashing, alone)
        self.slurm.run("scancel", first)
        found = self.slurm.wait_job(crashing, "COMPLETED")
        self.assertIn(":80", found["TresPerNode"])
        self.slurm.wait_job(dependent, "COMPLETED")
        self.assertEqual(self.slurm.job(alone)["JobState"], "RUNNING")

    def check_commands(self, first, crashing, alone):
        until(lambda: self.answer("show", crashing)["oom_count"] == 1, "its crash")
        shown = self.answer("show", first)
        label = shown["gpus"][0]
        self.assertEqual((shown["state"], shown["user"], shown["name"]), ("RUNNING", ADA, "first"))
        self.assertEqual(shown["need_mib"], 10 * 1024)
        # What the agent measures.
        until(lambda: at_least(self.answer("show", first)["mem_used_mib"], 9000), "its memory")
        # A job that is requeued is COMPLETING, on its GPU, for a moment.
        until(lambda: self.answer("show", crashing)["state"] == "PENDING", "its second turn")
        gpus = until(lambda: self.gpus_with(label, 9000), "the memory that its GPU has in use")
        self.assertEqual(sorted(gpus), ["n0:0", "n0:1"])
        self.assertTrue(gpus[label]["uuid"].startswith("GPU-"))
        self.assertEqual([task["id"] for task in gpus[label]["tasks"]], [int(first)])
        other = next(gpu for index, gpu in gpus.items() if index != label)
        # Slurm 22.05 runs it again on the same index only; later ones would on this one, too.
        reasons = (
            f"job {alone} has it to itself",
            f"kept empty for job {crashing}, which recovers",
        )
        self.assertIn(other["hold_off"], reasons)
        queue = self.colloc("queue", user=ADA)
        self.assertRegex(queue, rf"(?m)^ *{first} +first +daemon +RUNNING .* {label}$")
        self.assertRegex(queue, rf"(?m)^ *{crashing} .* PENDING ")
        self.assertNotIn(" games ", self.colloc("queue", "--user=daemon"))
        self.assertIn("scancel", self.colloc("cancel", crashing, user=BOB, status=1))
        starts = self.answer("queue", "--start")["starts"]
        self.assertTrue(all(start["id"] != int(first) for start in starts), "it runs")
        self.assertIn(" START ", self.colloc("queue", "--start", user=ADA))
        self.assertIn("no job 999", self.colloc("show", "999", status=1))
        self.assertRegex(self.colloc("info"), r"slurm +yes")


class ClusterWithTls(Cluster):
    """colloc without munge, which only Slurm itself has."""

    has_tls = True


if __name__ == "__main__":
    unittest.main(verbosity=2)
