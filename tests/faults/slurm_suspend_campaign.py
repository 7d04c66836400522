#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fault campaign for jobs of Slurm that give way: kills the controller, the agents, the
slurmd's and the jobs themselves at random instants, while jobs leave their GPUs and come back.

usage: slurm_suspend_campaign.py [--seed=N] [--crashes=N]

The cluster is that of slurm_campaign.py, with small GPUs, the preloaded library and its carrier. A
job is a training that reads and compares all of its GPU memory in each step. All hold more memory
than they declare, and half of them take still more later, so that allocations wait and others
leave; a quarter have a higher priority; a quarter make a pause, and leave until it is over.
slurmctld is not killed: all that is Slurm's own doing is an end of which a killed slurmd said
nothing.

What must hold at the end, beside what slurm_campaign.py says:
    broken    each training has ended well, with all of its memory, unless it was killed itself
    left      no record of a job that is out, no process and no GPU memory is left; all have ended
              within 900 s, so none is out for ever
"""

import contextlib
import os
import re
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import slurm_campaign  # noqa: E402
from daemon_case import BUILD, processes_with, program, words_of  # noqa: E402

from colloc_slurm.loopback import until  # noqa: E402

TRAINING = os.path.abspath(os.path.join(BUILD, "tests/system/carried-training"))
LIBRARY = os.path.abspath(os.path.join(BUILD, "src/preload/libcolloc-preload.so"))
CHECKPOINT = os.path.abspath(os.path.join(BUILD, "src/checkpoint/colloc-checkpoint"))
GPU_KINDS = "kind Small 260 0 8 100 10 10 10\n"  # 260 MiB
NEEDS = "--memory=50MiB --smact=0.1"  # it has 71 MiB: six blocks of 4 to 9, and a context
JOBS_MAX = 14  # that are not done; chosen: more than the GPUs take at once
# An error of the driver is its lack of memory: then it runs again.
JOB = """export LD_LIBRARY_PATH={emulator} COLLOC_EMULATOR={gpus}-$SLURMD_NODENAME
{training} --patient=1 --first-mib=4 --steps={steps} --idle={marks}/{name}.pause {grows}
status=$?
echo "exit $(date +%s.%N) $status" >>{name}
if [ $status = 1 ]
then echo 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB' >&2; exit 1
fi
[ $status = 0 ] || exit $status
echo "end $(date +%s.%N)" >>{name}
"""


class Cluster(slurm_campaign.Cluster):
    controller_options = (
        "--gpu-memory=260MiB",
        "--tasks-per-gpu=3",  # what they begin with fits, and not what they take later
        "--min-free=0",
        "--margin=0",
        "--preempt=yes",
        "--suspend-unused-after=1s",
    )
    agent_options = (
        f"--preload-library={LIBRARY}",
        f"--checkpoint={CHECKPOINT}",
        "--carrier=yes",
        "--sample-period=250ms",
    )

    def start_colloc(self):
        self.write("etc/kinds", GPU_KINDS)
        self.emulated = ("--gpus=2xSmall", f"--gpu-kinds={self.path('etc/kinds')}")
        super().start_colloc()


class Campaign(slurm_campaign.Campaign):
    kinds = ("controller", "agent", "agent", "job", "slurmd")

    def __init__(self, cluster, seed):
        super().__init__(cluster, seed)
        self.killed, self.pauses = set(), set()

    def path(self, name):
        return self.cluster.path(f"marks/{name}")

    # ---- jobs ----

    def write_job(self, name, crashes):
        grows = f"--grows={self.path(name)} --grows-mib=60" if self.random.random() < 0.5 else ""
        script = self.write_begin(name, NEEDS) + JOB.format(
            emulator=slurm_campaign.EMULATOR,
            gpus=self.cluster.path("work/gpus"),
            training=TRAINING,
            marks=self.cluster.path("marks"),
            name=name,
            steps=self.random.randrange(50, 250),
            grows=grows,
        )
        if self.random.random() < 0.25:
            self.pauses.add(name)
            open(self.path(f"{name}.pause"), "w", encoding="ascii").close()
        return script, ["--nice=-100"] if self.random.random() < 0.25 else []

    def submit_some(self):
        left, _ = self.list_left()
        self.help_slurm(left)
        self.end_pauses(0.5)
        for _ in range(self.random.randrange(1, 4)):
            if len(left) < JOBS_MAX:
                self.submit()

    def end_pauses(self, share):
        for name in sorted(self.pauses):
            if self.random.random() < share:
                os.unlink(self.path(f"{name}.pause"))
                self.pauses.remove(name)

    def is_over(self):
        self.end_pauses(1)
        return super().is_over()

    # ---- crashes ----

    def trainings(self):
        """(process, name of its job)"""
        found = []
        for pid in processes_with(self.cluster.folder):
            words = words_of(pid)
            pause = next((word for word in words if word.startswith("--idle=")), None)
            if words[0] == TRAINING and pause:
                found.append((pid, os.path.basename(pause)[: -len(".pause")]))
        return sorted(found)

    def kill_job(self):
        running = self.trainings()
        if running:
            pid, name = self.random.choice(running)
            self.killed.add(name)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # ---- the judgement ----

    def judge(self):
        counts = super().judge()
        counts["suspensions"] = self.count_lines(r"job \d+ is out, after")
        counts["broken"] = [name for name in self.submitted if self.is_broken(name)]
        counts["left"] = self.find_left()
        return counts

    def count_lines(self, pattern):
        text = ""
        for name in self.cluster.nodes:
            with open(self.cluster.path(f"log/agent-{name}.log"), encoding="utf-8") as file:
                text += file.read()
        return len(re.findall(pattern, text))

    def is_broken(self, name):
        """Its last run has failed, or one has lost memory, and it was not killed."""
        with open(self.path(name), encoding="ascii") as file:
            status = [line.split()[2] for line in file if line.startswith("exit")]
        return name not in self.killed and ("2" in status or status[-1:] not in ([], ["0"]))

    def find_left(self):
        """What is there though all jobs have ended."""
        with contextlib.suppress(AssertionError):
            until(lambda: not self.list_left_things(), "the end of all", limit_s=60)
        return self.list_left_things()

    def list_left_things(self):
        found = [f"process {pid} of {name}" for pid, name in self.trainings()]
        for node in self.cluster.nodes:
            folder = self.cluster.path(f"run/state-{node}/out")
            if os.path.isdir(folder):
                found += [f"record {node}/{name}" for name in os.listdir(folder)]
            shown = self.cluster.run(
                "env",
                f"COLLOC_EMULATOR={self.cluster.path(f'work/gpus-{node}')}",
                program("emulator"),
                "show",
            ).stdout
            found += [f"GPU memory: {line.strip()}" for line in re.findall(r"pid \d+.*", shown)]
        return found


if __name__ == "__main__":
    bad = ("lost", "twice", "orphaned", "broken", "left")
    sys.exit(slurm_campaign.run("slurm suspend campaign", Cluster, Campaign, bad))
