# SPDX-License-Identifier: Apache-2.0
"""Jobs that give way, with all that a cluster has: slurmctld, slurmd, colloc-slurm and an agent, on
small emulated GPUs. To Slurm each job runs all the time, and it ends with all of its memory."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import types
import unittest

from daemon_case import BUILD, LIMIT_S, program, read, until

from colloc_demo.slurm_cluster import SlurmCluster, copy_programs, suspends
from colloc_slurm import loopback

TRAINING = os.path.abspath(os.path.join(BUILD, "tests", "system", "carried-training"))
EMULATOR = os.path.dirname(program("emulator"))
KIND = "Small"
GPU_KINDS = f"kind {KIND} 1000 0 8 100 10 10 10\n"  # 1000 MiB
OUT = "its GPU memory is in host memory"


def why_not():
    if os.geteuid() != 0:
        return "slurmd runs jobs as their users: needs root"
    return loopback.why_not()


@unittest.skipIf(why_not(), why_not())
class GivesWayCase(unittest.TestCase):
    gpus = 1
    settings = {}
    agent = {}

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="colloc-test-")
        self.addCleanup(shutil.rmtree, folder)
        kinds = os.path.join(folder, "kinds")
        with open(kinds, "w", encoding="utf-8") as file:
            file.write(GPU_KINDS)
        options = types.SimpleNamespace(
            build=os.path.abspath(BUILD), nodes=1, gpus=self.gpus, speed=20, keep=False
        )
        programs = copy_programs(folder, options)
        settings = {"gpu-memory": "1000MiB", "min-free": "0", "margin": "0", **self.settings}
        self.cluster = SlurmCluster(
            "test",
            programs,
            options,
            agents={"n0": suspends(programs, options, **self.agent)},
            kind=(KIND, kinds),
            policy="magm",
            **settings,
        )
        self.addCleanup(self.cluster.close)
        self.cluster.start()
        self.slurm = self.cluster.slurm

    def path(self, name):
        return self.slurm.path(f"work/{name}")

    def create(self, name):
        open(self.path(name), "w", encoding="utf-8").close()

    def start_training(self, name, *options, declared="--memory=300MiB --smact=0.1", first_mib=60):
        """Of six blocks. Ends once the file of its name exists; idle as long as NAME-idle does."""
        training = self.training(name, first_mib)
        return self.start(name, f"#COLLOC {declared}", f"exec {training}", *options)

    def training(self, name, first_mib=60):
        return (
            f"{TRAINING} --first-mib={first_mib} --end={self.path(name)}"
            f" --idle={self.path(name)}-idle --grows={self.path(name)}-grows --grows-mib=400"
        )

    def start(self, name, declared, command, *options):
        script = (
            f"{declared}\n"
            f"export LD_LIBRARY_PATH={EMULATOR} COLLOC_EMULATOR={self.cluster.gpu_file('n0')}\n"
            f"{command}\n"
        )
        words = ["--partition=gpu", f"--output={self.path(name)}.out", "--open-mode=append"]
        return self.slurm.sbatch("#!/bin/bash\n" + script, *words, *options)

    def lines(self, name):
        try:
            with open(self.path(f"{name}.out"), encoding="utf-8") as file:
                return file.read().split("\n")
        except FileNotFoundError:
            return []

    def goes_on(self, name):
        before = self.lines(name).count("step")
        self.slurm.until(lambda: self.lines(name).count("step") > before + 3, f"steps of {name}")

    def colloc(self, *words):
        done = subprocess.run(
            [program("colloc"), *words, f"--socket={self.slurm.path('run/api/socket')}"],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
        return done.stdout

    def show(self, job):
        return json.loads(self.colloc("show", job, "--json"))

    def used_mib(self):
        return json.loads(self.colloc("gpus", "--json"))["gpus"][0]["mem_used_mib"] or 0

    def is_out(self, job):
        found = self.show(job)
        return OUT in (found["reason_text"] or "") and found["suspensions"] > 0 and found

    def wait_out(self, job, name):
        """Its memory has left its GPU, and to Slurm it runs."""
        found = self.slurm.until(lambda: self.is_out(job), f"{name} to be out")
        steps = self.lines(name).count("step")
        self.assertEqual(self.slurm.job(job)["JobState"], "RUNNING")
        self.assertEqual(found["state"], "RUNNING")
        self.assertEqual(self.lines(name).count("step"), steps)
        return found["reason_text"]

    def end(self, job, name):
        self.create(name)
        self.check_ended(job, name)

    def check_ended(self, job, name):
        self.slurm.wait_job(job, "COMPLETED")
        self.assertEqual(self.lines(name)[-2:], ["whole", ""])
        self.assertEqual(self.lines(name).count("whole"), 1)
        self.assertEqual(self.slurm.job(job)["Restarts"], "0")

    def check_records(self):
        folder = self.slurm.path("run/agent-n0/out")
        until(lambda: not os.path.isdir(folder) or not os.listdir(folder), "no record to be left")


class MemoryWait(GivesWayCase):
    def check_copy_room(self, job):
        """Its agent has made host memory ready, and the controller shows it."""
        shown = self.slurm.until(lambda: self.show(job)["copy_room_text"], "memory for its copy")
        self.assertIn("its user has", shown)

    def test_a_job_makes_room_for_an_allocation(self):
        first = self.start_training("first")
        self.goes_on("first")
        second = self.start_training("second")
        self.goes_on("second")
        self.check_copy_room(second)
        self.create("second-grows")
        self.slurm.until(lambda: "grew" in self.lines("second"), "its memory")
        self.assertEqual(self.wait_out(first, "first"), f"{OUT}: it gives way to job {second}")
        self.goes_on("second")
        self.end(second, "second")
        self.goes_on("first")
        self.end(first, "first")
        self.check_records()


class Unused(GivesWayCase):
    settings = {"suspend-unused-after": "2s"}

    def test_a_job_that_calls_no_cuda_leaves_until_it_does(self):
        job = self.start_training("job")
        self.goes_on("job")
        self.create("job-idle")
        self.assertEqual(self.wait_out(job, "job"), f"{OUT} until it calls CUDA again")
        os.unlink(self.path("job-idle"))
        self.goes_on("job")
        self.end(job, "job")
        self.check_records()


class Ranks(GivesWayCase):
    gpus = 2
    settings = {"suspend-unused-after": "2s", "suspend-ranks-max": "4s"}
    agent = {"suspend-ranks-max": "4s"}

    def start_ranks(self, name):
        """Two that wait for each other in each step, each on one of the job's GPUs."""
        rank = f"{self.training(name)} --device=$LOCAL_RANK --rank=$LOCAL_RANK --all-reduce=1"
        command = f"for LOCAL_RANK in 0 1; do export LOCAL_RANK; {rank} & done\nwait -n; kill 0"
        declared = "#COLLOC --memory=300MiB --smact=0.1"
        job = self.start(name, declared, command, "--gres=gpu:2", "--no-requeue")
        self.goes_on(name)
        return job

    def agent_says(self, words):
        log = self.slurm.path("log/agent-n0.log")
        self.slurm.until(lambda: re.search(words, read(log)), f"'{words}' in the agent's log")

    def test_they_are_back_in_time(self):
        """Though they still do not call CUDA."""
        job = self.start_ranks("job")
        self.create("job-idle")
        self.wait_out(job, "job")
        self.agent_says(f"job {job} is back")
        os.unlink(self.path("job-idle"))
        self.goes_on("job")
        self.slurm.run("scancel", job)
        self.slurm.wait_job(job, "CANCELLED")
        self.check_records()

    def test_a_rank_for_whose_memory_the_other_waits(self):
        """Nothing on its GPU can leave: it fails before PyTorch would end the ranks."""
        options = ("--colloc-preload=no", "--gres=gpu:2")
        first = self.start_training("first", *options, first_mib=80)
        self.goes_on("first")
        job = self.start_ranks("job")
        self.create("job-grows")
        self.agent_says(f"job {job}: process [0-9]+ waits for")
        self.agent_says(f"job {job}: process [0-9]+ waits no longer, after ([4-9]|[1-5][0-9])[. ]")
        self.slurm.wait_job(job, "FAILED")
        self.end(first, "first")


class Priority(GivesWayCase):
    settings = {"preempt": "yes"}

    def test_a_job_makes_room_for_one_of_a_higher_priority(self):
        first = self.start_training("first", first_mib=110)  # more than it declares
        self.goes_on("first")
        self.slurm.until(lambda: self.used_mib() > 700, "its memory in a report")
        second = self.start_training("second", "--nice=-100", declared="--memory=400MiB")
        self.goes_on("second")
        self.wait_out(first, "first")
        self.end(second, "second")
        self.goes_on("first")
        self.end(first, "first")
        self.check_records()


class ByDriver(MemoryWait):
    """Without the carrier NVIDIA's driver takes all of it."""

    agent = {"carrier": "no"}

    def check_copy_room(self, job):
        self.assertIsNone(self.show(job)["copy_room_text"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
