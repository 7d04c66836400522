# SPDX-License-Identifier: Apache-2.0
"""colloc-slurm on a real Slurm: jobs share GPUs by typed shards, the controller is killed, and a
job that ran out of GPU memory runs again alone; jobs over several nodes, licences and time limits;
what is wrong is said, and jobs go on."""

import os
import signal
import unittest

from daemon_case import BUILD, read

from colloc_slurm import loopback

CONTROLLER = os.path.join(BUILD, "src/slurm/colloc-slurm")
SOAK = os.environ.get("COLLOC_SOAK")
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
until [ -e FOLDER/work/stop ] || [ -e FOLDER/work/$SLURM_JOB_ID.end ]; do sleep 0.05; done
"""
CRASHING = """#!/bin/bash
#COLLOC --memory=20GiB --smact=0.2
echo $CUDA_VISIBLE_DEVICES >>FOLDER/work/$SLURM_JOB_ID.started
[ -n "$SLURM_RESTART_COUNT" ] && exit 0
until [ -e FOLDER/work/crash ]; do sleep 0.05; done
echo 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB' >&2
exit 1
"""
OVER_NODES = """#!/bin/bash
#COLLOC --memory=20GiB --smact=0.2 {options}
started=FOLDER/work/$SLURM_JOB_ID.started
srun -N2 sh -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES' | sort >$started
if [ -n "{crashes}" ] && [ -z "$SLURM_RESTART_COUNT" ]
then
    until [ -e FOLDER/work/crash ]; do sleep 0.05; done
    echo 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB'
    exit 1
fi
until [ -e FOLDER/work/stop ] || [ -e FOLDER/work/$SLURM_JOB_ID.end ]; do sleep 0.05; done
"""
ALONE = """#!/bin/bash
#COLLOC --exclusive
until [ -e FOLDER/work/$SLURM_JOB_ID.end ]; do sleep 0.1; done
"""


class ControllerCase(unittest.TestCase):
    nodes, gpus, lines = 1, 2, ()

    def setUp(self):
        self.slurm = loopback.Loopback(
            nodes=self.nodes, gpus=self.gpus, lines=self.lines, files={"job_submit.lua": WAKE}
        )
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

    def end(self, job):
        """Its script ends by itself: slurmd may miss the scancel of one that it has just started,
        and Slurm would not ask again for minutes."""
        self.touch(f"{job}.end")

    def touch(self, name):
        with open(self.slurm.path(f"work/{name}"), "w", encoding="utf-8"):
            pass


@unittest.skipIf(loopback.why_not(), loopback.why_not())
@unittest.skipUnless(os.path.exists(CONTROLLER), "colloc-slurm is not built")
class SlurmController(ControllerCase):
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
        self.end(alone)
        found = self.slurm.wait_job(waiting, "RUNNING")
        self.assertIn("shard:i0:80", found["TresPerNode"])
        self.slurm.wait_job(f"{array}_0", "RUNNING")
        self.assertEqual(self.slurm.job(f"{array}_1")["JobState"], "PENDING")
        self.touch("stop")
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
        # Slurm judges what depends on it before the controller knows that it ran out of memory.
        dependent = self.sbatch(SHARING, f"--dependency=afterok:{crashing}")
        self.controller.kill(signal.SIGSTOP)
        self.touch("crash")
        self.slurm.until(
            lambda: self.slurm.job(dependent)["Reason"] == "DependencyNeverSatisfied", "its reason"
        )
        self.controller.kill(signal.SIGCONT)
        # 22.05 pins it to the same GPU again, which the other job still has.
        self.slurm.until(lambda: self.slurm.job(crashing)["Restarts"] == "1", "the job is requeued")
        self.controller.kill()
        self.start_controller()
        again = "0" if self.slurm.version < (23, 11) else "1"  # which is idle
        if again == "1":
            self.slurm.until(lambda: self.started(crashing) == ["0", "1"], "it runs beside")
        self.touch("stop")
        found = self.slurm.wait_job(crashing, "COMPLETED")
        self.assertIn(":80", found["TresPerNode"])
        self.assertEqual(self.started(crashing), ["0", again])
        self.slurm.wait_job(other, "COMPLETED")
        self.assertEqual(self.slurm.wait_job(dependent, "COMPLETED")["Restarts"], "0")


@unittest.skipIf(loopback.why_not(), loopback.why_not())
@unittest.skipUnless(os.path.exists(CONTROLLER), "colloc-slurm is not built")
class SeveralNodes(ControllerCase):
    nodes, lines = 2, ("Licenses=matlab:1",)

    def over_nodes(self, options="", crashes="", more=()):
        script = OVER_NODES.replace("{options}", options).replace("{crashes}", crashes)
        return self.sbatch(script, "--nodes=2", "--ntasks-per-node=1", *more)

    def wait_started(self, job, *lines):
        self.slurm.until(lambda: self.started(job) == list(lines), f"job {job} on {lines}")

    def test_jobs_over_nodes(self):
        alone = self.sbatch(ALONE, "--nodelist=n0")
        self.slurm.wait_job(alone, "RUNNING")
        # GPU 0 of n0 is taken: it gets GPU 1 of both, and another one shares them.
        first = self.over_nodes("--sharing=streams")
        found = self.slurm.wait_job(first, "RUNNING")
        self.assertIn("shard:i1:20", found["TresPerNode"])
        self.assertEqual((found["NodeList"], found["NumNodes"]), ("n[0-1]", "2"))
        self.assertIn("nodes n0,n1, GPU 1 of each, 20 shards", found["Comment"])
        self.wait_started(first, "n0 1", "n1 1")
        waiting = self.over_nodes("--exclusive")
        self.controller.kill()
        self.start_controller()
        self.end(first)
        found = self.slurm.wait_job(waiting, "RUNNING")
        self.assertIn("shard:i1:80", found["TresPerNode"])
        self.assertEqual(found["NodeList"], "n[0-1]")

    @unittest.skipUnless(SOAK, "takes too long for each build")
    def test_crash_and_requeue_over_nodes(self):
        other = self.sbatch(SHARING, "--nodelist=n1")
        self.slurm.wait_job(other, "RUNNING")
        alone = self.sbatch(ALONE, "--nodelist=n0")  # GPU 0 of n0 is taken
        self.slurm.wait_job(alone, "RUNNING")
        # Its output, not its error file, says why it fails.
        crashing = self.over_nodes(crashes="yes", more=("--error=%j.err", "--output=%j.out"))
        self.wait_started(crashing, "n0 1", "n1 1")
        beside = self.sbatch(SHARING, "--nodelist=n0")
        self.slurm.wait_job(beside, "RUNNING")
        waiting = self.over_nodes("--exclusive")
        self.touch("crash")
        self.slurm.until(lambda: self.slurm.job(crashing)["Restarts"] == "1", "its requeue")
        self.end(beside)
        found = self.slurm.wait_job(crashing, "RUNNING")
        self.assertIn("shard:i1:80", found["TresPerNode"])
        # A job requeued by hand goes back to the queue, and then to two nodes again.
        self.end(crashing)
        self.slurm.wait_job(waiting, "RUNNING")
        self.slurm.run("scontrol", "requeue", waiting)
        self.slurm.until(lambda: self.slurm.job(waiting)["Restarts"] == "1", "its requeue")
        found = self.slurm.wait_job(waiting, "RUNNING")
        self.assertIn("shard:i1:80", found["TresPerNode"])

    def test_licences_are_counted(self):
        holder = self.sbatch(ALONE, "--licenses=matlab", "--nodelist=n1")
        self.slurm.wait_job(holder, "RUNNING")
        waiting = self.sbatch(ALONE, "--licenses=matlab:1", "--nodelist=n0")
        self.slurm.until(
            lambda: "waits for licences: matlab" in self.slurm.job(waiting).get("Comment", ""),
            "the reason",
        )
        self.slurm.wait_job(self.sbatch(ALONE, "--nodelist=n0"), "RUNNING")
        self.assertEqual(self.slurm.job(waiting)["Partition"], "gpu")
        self.end(holder)
        self.slurm.wait_job(waiting, "RUNNING")


@unittest.skipIf(loopback.why_not(), loopback.why_not())
@unittest.skipUnless(os.path.exists(CONTROLLER), "colloc-slurm is not built")
class TimeLimits(ControllerCase):
    nodes, gpus = 2, 1

    def test_time_limits_allow_backfill(self):
        running = self.sbatch(ALONE, "--nodelist=n0", "--time=60")
        self.slurm.wait_job(running, "RUNNING")
        # The head of the queue wants both nodes; a job that ends in time has the other meanwhile.
        head = self.sbatch(ALONE, "--nodes=2", "--ntasks-per-node=1", "--time=90")
        self.slurm.until(
            lambda: "colloc: waits" in self.slurm.job(head).get("Comment", ""), "the head waits"
        )
        unlimited = self.sbatch(ALONE, "--time=UNLIMITED")
        short = self.sbatch(ALONE, "--time=30")
        self.assertEqual(self.slurm.wait_job(short, "RUNNING")["NodeList"], "n1")
        self.assertEqual(self.slurm.job(unlimited)["Partition"], "gpu")
        self.end(short)
        self.slurm.run("scontrol", "update", f"JobId={unlimited}", "TimeLimit=20")
        self.assertEqual(self.slurm.wait_job(unlimited, "RUNNING")["NodeList"], "n1")
        self.assertEqual(self.slurm.job(head)["JobState"], "PENDING")


@unittest.skipIf(loopback.why_not(), loopback.why_not())
@unittest.skipUnless(os.path.exists(CONTROLLER), "colloc-slurm is not built")
@unittest.skipUnless(SOAK, "takes too long for each build")
class Trouble(ControllerCase):
    """What is wrong is said in the log, and jobs go on."""

    nodes, gpus = 2, 1

    def wait_log(self, text):
        self.slurm.until(lambda: text in read(self.controller.log), text)

    def set_partition(self, name, state):
        self.slurm.run("scontrol", "update", f"PartitionName={name}", f"State={state}")

    def test_trouble_is_said(self):
        running = self.sbatch(SHARING)
        self.slurm.wait_job(running, "RUNNING")
        self.slurm.slurmctld.kill()
        self.wait_log("jobs wait until it answers")
        self.slurm.start_slurmctld()
        self.wait_log("slurmctld answers again")
        self.stop_munged()
        self.slurm.until(
            lambda: read(self.controller.log).count("jobs wait until it answers") == 2,
            "a warning without munged",
        )
        self.start_munged()
        self.slurm.wait_up()
        self.set_partition("gpu", "UP")
        self.wait_log("partition gpu is UP: Slurm itself starts its jobs")
        self.set_partition("gpu", "DOWN")
        self.wait_log("the partitions are as they have to be again")
        self.slurm.wait_job(running, "RUNNING")
        self.change_a_pin_by_hand()

    def stop_munged(self):
        os.kill(int(read(self.slurm.path("munge/pid"))), signal.SIGKILL)
        os.unlink(self.slurm.path("munge/socket"))

    def start_munged(self):
        given = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed"}
        self.slurm.spawn(
            "munged",
            "--foreground",
            "--force",
            *(f"--{option}={self.slurm.path('munge/' + name)}" for option, name in given.items()),
            f"--log-file={self.slurm.path('log/munged.log')}",
            log="munged",
        )

    def change_a_pin_by_hand(self):
        self.set_partition("gpu-run", "DOWN")
        self.wait_log("partition gpu-run is not UP")
        job = self.sbatch(ALONE)
        self.slurm.until(lambda: self.slurm.job(job)["Partition"] == "gpu-run", "its pin")
        pinned = self.slurm.job(job)["ReqNodeList"]
        other = "n0" if pinned == "n1" else "n1"
        self.slurm.run("scontrol", "update", f"JobId={job}", f"ReqNodeList={other}")
        self.touch("stop")  # the job that runs ends
        self.set_partition("gpu-run", "UP")
        self.assertEqual(self.slurm.wait_job(job, "RUNNING")["NodeList"], other)
        self.wait_log(f"job {job} was changed by hand: it runs on {other} with")
        self.assertEqual(self.slurm.wait_job(self.sbatch(ALONE), "RUNNING")["NodeList"], pinned)


if __name__ == "__main__":
    unittest.main(verbosity=2)
