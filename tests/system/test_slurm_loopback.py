# SPDX-License-Identifier: Apache-2.0
"""The loopback Slurm cluster: it starts, pins jobs to GPUs by typed shards, and leaves nothing."""

import os
import signal
import subprocess
import sys
import unittest

from daemon_case import LIMIT_S, processes_with, until

from colloc_slurm import loopback

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
KILLED = """import sys
sys.path.insert(0, "python")
from colloc_slurm.loopback import Loopback
with Loopback(nodes=1) as slurm:
    job = slurm.sbatch("sleep 1000", "--partition=gpu-run")
    slurm.wait_job(job, "RUNNING")
    print(slurm.folder, flush=True)
    sys.stdin.read()
"""


@unittest.skipIf(loopback.why_not(), loopback.why_not())
class LoopbackSlurm(unittest.TestCase):
    def test_typed_shards_pin(self):
        script = "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"
        with loopback.Loopback(nodes=2) as slurm:
            asked = ["--nodelist=n1", "--output=%j.out", "--partition=gpu-run"]
            jobs = [
                slurm.sbatch(script, *asked, f"--gres={gres}")
                for gres in ("shard:i2:20", "shard:i2:60", "shard:i0:20,shard:i3:10", "gpu:i1:1")
            ]
            found = []
            for job in jobs:
                slurm.wait_job(job, "COMPLETED")
                with open(slurm.path(f"work/{job}.out"), encoding="utf-8") as file:
                    found.append(file.read().split())
            self.assertEqual(found, [["n1", "2"], ["n1", "2"], ["n1", "0,3"], ["n1", "1"]])
            # One job more than fits waits.
            slurm.sbatch("sleep 1000", *asked, "--gres=shard:i2:50")
            slurm.wait_job(slurm.sbatch("sleep 1000", *asked, "--gres=shard:i3:80"), "RUNNING")
            waits = slurm.sbatch("true", *asked, "--gres=shard:i2:31")
            reason = slurm.until(
                lambda: (slurm.job(waits)["Reason"] != "None") and slurm.job(waits)["Reason"],
                "a reason",
            )
            self.assertIn(reason, ("Resources", "Priority"))
            # slurmctld and slurmd come back after a kill.
            slurm.slurmctld.kill()
            slurm.slurmd["n0"].kill()
            slurm.start_slurmctld()
            slurm.start_slurmd("n0")
            slurm.wait_up()
            folder = slurm.folder
        self.assertEqual(processes_with(folder), [])
        self.assertFalse(os.path.exists(folder))

    def test_its_program_is_killed(self):
        program = subprocess.Popen(
            [sys.executable, "-c", KILLED],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        folder = program.stdout.readline().strip()
        self.assertTrue(os.path.isdir(folder), folder)
        program.send_signal(signal.SIGKILL)
        program.communicate(timeout=LIMIT_S)
        # The guard removes the folder, then ends itself.
        until(lambda: not os.path.exists(folder), "the end of the cluster's folder")
        until(lambda: not processes_with(folder), "the end of all processes")


if __name__ == "__main__":
    unittest.main(verbosity=2)
