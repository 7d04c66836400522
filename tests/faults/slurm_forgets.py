#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What stock Slurm forgets, without any part of colloc: a job that has ended runs a second time.

slurmctld saves its jobs five seconds late (SAVE_MAX_WAIT in its source). Here it is killed once it
has acknowledged the end of a job and before it saves that. Started again it shows the job as
running, until the job's node registers without it: then slurmctld requeues the job, which runs
again. With --no-requeue the job does not run again, and is booked as NODE_FAIL.

slurm_campaign.py leaves out jobs by the same lines of slurmctld's log. Exit status 0: Slurm does
this; 1: it does not, and docs/slurm.md has to change. Needs Slurm; otherwise says so.
"""

import glob
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
from colloc_slurm import loopback  # noqa: E402

JOB = "echo start >>{name}; until [ -e {name}.go ]; do sleep 0.02; done; echo end >>{name}"
TRIES = 10  # chosen: slurmctld may save just between the end and the kill
SETTINGS = {"BatchStartTimeout": 2, "MessageTimeout": 4, "MinJobAge": 1000}


class Forgetful(loopback.Loopback):
    def saved_ns(self):
        try:
            return os.stat(self.path("state/job_state")).st_mtime_ns
        except FileNotFoundError:
            return 0

    def read_work(self, name):
        with open(self.path(f"work/{name}"), encoding="ascii") as file:
            return file.read().split()

    def has_logged(self, line):
        with open(self.path("log/slurmctld.log"), encoding="utf-8", errors="replace") as file:
            return line in file.read()

    def end_forgotten(self, name, *options):
        """A job whose end slurmctld has logged and not saved; or None: it was saved."""
        options = ("--partition=gpu-run", "--output=/dev/null", *options)
        job = self.sbatch(JOB.format(name=name), *options)
        self.wait_job(job, "RUNNING")
        since_ns = time.time_ns()
        self.run("scontrol", "update", f"jobid={job}", "comment=saved with it")
        self.until(lambda: self.saved_ns() > since_ns, "a save of the running job")
        saved_ns = self.saved_ns()
        with open(self.path(f"work/{name}.go"), "w", encoding="ascii"):
            pass
        self.until(lambda: self.has_logged(f"_job_complete: JobId={job} done"), "its end")
        # slurmstepd has its answer, and does not report the end again.
        self.until(lambda: not glob.glob(self.path(f"spool/n0/n0_{job}.*")), "slurmstepd's end")
        self.slurmctld.kill()
        self.start_slurmctld()
        return job if self.saved_ns() == saved_ns else None

    def lose_end(self, name, *options):
        for i in range(TRIES):
            job = self.end_forgotten(f"{name}{i}", *options)
            if job:
                return job, f"{name}{i}"
        raise AssertionError(f"slurmctld has saved each of {TRIES} ends at once")

    def register_until(self, job, *states):
        """slurmd registers when it starts; slurmctld believes it some seconds after its own."""

        def is_there():
            self.slurmd["n0"].kill()
            self.start_slurmd("n0")
            limit = time.monotonic() + 2
            while time.monotonic() < limit:
                done = self.run("scontrol", "--oneliner", "show", "job", job, check=False)
                if any(f"JobState={state} " in done.stdout for state in states):
                    return True
            return False

        self.until(is_there, f"job {job}: {' or '.join(states)}")


def show_rerun(slurm):
    job, name = slurm.lose_end("twice")
    slurm.register_until(job, "PENDING")
    assert slurm.read_work(name) == ["start", "end"]
    assert slurm.job(job)["Restarts"] == "1"
    assert slurm.has_logged(f"Batch JobId={job} missing from batch node n0")
    slurm.run("scontrol", "update", f"jobid={job}", "starttime=now")  # not in two minutes
    slurm.wait_job(job, "COMPLETED")
    print(f"{name}: {' '.join(slurm.read_work(name))}")
    return slurm.read_work(name) == ["start", "end", "start", "end"]


def show_no_requeue(slurm):
    job, name = slurm.lose_end("once", "--no-requeue")
    slurm.register_until(job, "FAILED", "NODE_FAIL", "CANCELLED", "COMPLETED")
    assert slurm.has_logged(f"Batch JobId={job} missing from batch node n0")
    state = slurm.job(job)["JobState"]
    print(f"{name}: {' '.join(slurm.read_work(name))}, booked as {state}")
    return slurm.read_work(name) == ["start", "end"] and state == "NODE_FAIL"


def main():
    if loopback.why_not():
        print(f"slurm forgets: skipped: {loopback.why_not()}")
        return 0
    with Forgetful(nodes=1, gpus=1, shards=0, settings=SETTINGS) as slurm:
        is_shown = show_rerun(slurm) and show_no_requeue(slurm)
    print("slurm forgets: as documented" if is_shown else "slurm forgets: FAILED: it does not")
    return 0 if is_shown else 1


if __name__ == "__main__":
    sys.exit(main())
