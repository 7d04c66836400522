# SPDX-License-Identifier: Apache-2.0
"""colloc-slurm on a real Slurm: jobs share GPUs by typed shards, the controller is killed, and a
job that ran out of GPU memory runs again alone."""

import os
import unittest

from daemon_case import BUILD

from colloc_slurm import loopback

CONTROLLER = os.path.join(BUILD, "src/slurm/colloc-slurm")
USERS = ("daemon", "games") if os.geteuid() == 0 else (None, None)
WAKE = """function slurm_job_submit(job, partitions, user)
    local file = io.open("{folder}/run/wake", "a")
    file:write("submit 0\\n")
    file:close()
    return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, user)
    return slurm.SUCCESS
end
"""
SHARING = """#!/bin/bash
#COLLOC --memory=20GiB --smact=0.2
echo $CUDA_VISIBLE_DEVICES $SLURM_RESTART_COUNT >>FOLDER/work/$SLURM_JOB_ID.started
until [ -e FOLDER/work/stop ]; do sleep 0.05; done
"""
CRASHING = """#!/bin/bash
#COLLOC --memory=20GiB --smact=0.2
echo $CUDA_VISIBLE_DEVICES >>FOLDER/work/$SLURM_JOB_ID.started
[ -n "$SLURM_RESTART_COUNT" ] && exit 0
until [ -e FOLDER/work/crash ]; do sleep 0.05; done
echo 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB' >&2
exit 1
"""
ALONE = """#!/bin/bash
#COLLOC --exclusive
sleep 1000
"""


@unittest.skipIf(loopback.why_not(), loopback.why_not())
@unittest.skipUnless(os.path.exists(CONTROLLER), "colloc-slurm is not built")
class SlurmController(unittest.TestCase):
    def setUp(self):
        self.slurm = loopback.Loopback(nodes=1, gpus=2, files={"job_submit.lua": WAKE})
        self.slurm.__enter__()
        self.addCleanup(self.slurm.__exit__)
        self.start_controller()

    def start_controller(self):
        self.controller = self.slurm.spawn(
            CONTROLLER,
            "--intake-partition=gpu",
            "--run-partition=gpu-run",
            f"--wake-file={self.slurm.wake_file}",
            f"--state-dir={self.slurm.path('run/colloc')}",
            "--socket=none",
            "--settle=1ms",
            "--settle-max=1ms",
            "--margin=0",
            "--poll=500ms",
            "--policy=first-fit",
            log="controller",
        )

    def sbatch(self, script, *options, user=None):
        return self.slurm.sbatch(
            script.replace("FOLDER", self.slurm.folder), "--partition=gpu", *options, user=user
        )

    def started(self, job):
        try:
            with open(self.slurm.path(f"work/{job}.started"), encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def test_jobs_share_and_the_controller_is_killed(self):
        alone = self.sbatch(ALONE, user=USERS[0])
        found = self.slurm.wait_job(alone, "RUNNING")
        self.assertIn("shard:i0:80", found["TresPerNode"])
        # Two share the other GPU; then the controller is killed.
        jobs = [self.sbatch(SHARING, user=user) for user in USERS]
        for job in jobs:
            found = self.slurm.wait_job(job, "RUNNING")
            self.assertEqual(found["Partition"], "gpu-run")
            self.assertIn("shard:i1:20", found["TresPerNode"])
            self.assertIn("GPU 1, 20 shards", found["Comment"])
        waiting = self.sbatch(ALONE, user=USERS[1])
        array = self.sbatch(SHARING, "--array=0-3%1")
        self.controller.kill()
        late = self.sbatch(SHARING)
        self.start_controller()
        self.slurm.wait_job(late, "PENDING")
        self.slurm.run("scancel", alone)
        found = self.slurm.wait_job(waiting, "RUNNING")
        self.assertIn("shard:i0:80", found["TresPerNode"])
        self.slurm.wait_job(f"{array}_0", "RUNNING")
        self.assertEqual(self.slurm.job(f"{array}_1")["JobState"], "PENDING")
        with open(self.slurm.path("work/stop"), "w", encoding="utf-8"):
            pass
        for job in (*jobs, late, *(f"{array}_{i}" for i in range(4))):
            self.assertEqual(self.slurm.wait_job(job, "COMPLETED")["Restarts"], "0")
        for job in (*jobs, late):
            self.assertEqual(self.started(job), ["1"])

    def test_out_of_memory_runs_again_alone(self):
        crashing = self.sbatch(CRASHING, user=USERS[0])
        self.slurm.wait_job(crashing, "RUNNING")
        other = self.sbatch(SHARING, user=USERS[1])
        self.slurm.wait_job(other, "RUNNING")
        self.slurm.until(lambda: self.started(other) and self.started(crashing), "both")
        with open(self.slurm.path("work/crash"), "w", encoding="utf-8"):
            pass
        # 22.05 pins it to the same GPU again, which the other job still has.
        self.slurm.until(lambda: self.slurm.job(crashing)["Restarts"] == "1", "the job is requeued")
        self.controller.kill()
        self.start_controller()
        with open(self.slurm.path("work/stop"), "w", encoding="utf-8"):
            pass
        found = self.slurm.wait_job(crashing, "COMPLETED")
        self.assertIn(":80", found["TresPerNode"])
        self.assertEqual(self.started(crashing), ["0", "0"])
        self.slurm.wait_job(other, "COMPLETED")


if __name__ == "__main__":
    unittest.main(verbosity=2)
