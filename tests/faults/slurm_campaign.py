#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fault campaign for Slurm: kills the controller, the agents, slurmctld and slurmd's at random
instants while jobs share GPUs, and judges what became of the jobs.

usage: slurm_campaign.py [--seed=N] [--crashes=N]

A loopback cluster of two nodes with two GPUs each (colloc_slurm.loopback), an agent on each, and
the controller. Each crash is a SIGKILL; the process is started again up to a second later, one
slurmd in eight so late that its node is lost. Half of the kills of slurmctld come when it has just
saved its jobs. Half of the jobs run to their end; a quarter run out of GPU memory in their first
run, and the last quarter depend on the success of such a one.

What must hold at the end:
    lost      a job that sbatch acknowledged has run to its end, or is known to have failed
    twice     no two runs of a job at the same time, and none after one that succeeded
    orphaned  what depends on a job that succeeded has succeeded

Slurm itself saves its state some seconds late, so a kill of slurmctld makes it forget. What it has
forgotten is read off: right before a kill and right after the start that follows it, slurmctld
lists its jobs. A job that is not listed any more, or is listed in an earlier state than before or
than its own marks show, is Slurm's from then on, and is counted apart; so is one whose start, end
or requeue slurmctld has logged between the first list and the kill, and that the second list shows
as the first (slurm_forgets.py: stock Slurm runs a job twice whose end it has forgotten); one of
which slurmctld never heard the end, and which it ran again when its node registered without it; one
that got the id of a forgotten job, whose end Slurm takes for its own (after one kill in four; after
the others the ids go on far above); and one that depends on either. All other jobs are judged,
however near a kill was. Needs root and Slurm; otherwise says so.
"""

import argparse
import os
import random
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "system"))
from daemon_case import BUILD, program  # noqa: E402  (adds python/ to the path)

from colloc_slurm import loopback  # noqa: E402

CONTROLLER = os.path.abspath(os.path.join(BUILD, "src/slurm/colloc-slurm"))
PLUGIN = os.path.abspath(os.path.join(BUILD, "src/spank/spank_colloc.so"))
EMULATOR = os.path.dirname(program("emulator"))
SAVE_S = 10  # within which a changed state is saved (slurmctld's source: 5 s; a busy machine)
NEAR_S = 10  # of a kill of slurmctld: how many jobs something happened to is printed, no more
LOGGED = re.compile(r"(?:_job_complete|Started|Allocate|Requeuing):? JobId=(\d+)")
MISSING = re.compile(r"Batch JobId=(\d+) missing from batch node")
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
LOST_NODE_S = 12
JOBS_MAX = 24  # that are not done; chosen: more than the GPUs take at once
# Notes that it has begun, and that a former run of it has not ended.
BEGIN = """#!/bin/bash
#COLLOC {needs}
cd {marks}
before=$(cat {name}.pid 2>/dev/null)
environment=$([ -z "$before" ] || tr '\\0' '\\n' </proc/$before/environ) 2>/dev/null
if grep -qx 'SLURM_JOB_NAME={name}' <<<"$environment"
then echo "twice $(date +%s.%N) $before" >>{name}
fi
echo $$ >{name}.pid
echo "start $(date +%s.%N)" >>{name}
"""
JOB = """sleep {seconds}
if [ {crashes} = 1 ] && [ -z "$SLURM_RESTART_COUNT" ]
then echo 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB' >&2; exit 1
fi
echo "end $(date +%s.%N)" >>{name}
"""


def why_not():
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.exists(CONTROLLER) or not os.path.exists(PLUGIN):
        return "colloc-slurm is not built"
    return loopback.why_not()


class Cluster(loopback.Loopback):
    """Each node has a folder of configuration, because its plugin has a socket."""

    emulated = ("--gpus", "2xA100-80GB")
    controller_options = ()
    agent_options = ()

    def __init__(self):
        settings = {"SlurmdTimeout": 6, "MinJobAge": 100000, "MaxJobCount": 100000}
        super().__init__(nodes=2, gpus=2, settings=settings)
        self.controller, self.agents, self.first_id = None, {}, 0

    def write_files(self):
        super().write_files()
        for name in self.nodes:
            os.mkdir(self.path(f"etc/{name}"))
            for file in os.listdir(self.path("etc")):
                if file.endswith(".conf"):
                    os.symlink(self.path(f"etc/{file}"), self.path(f"etc/{name}/{file}"))
            socket = self.path(f"run/{name}.sock")
            self.write(f"etc/{name}/plugstack.conf", f"optional {PLUGIN} socket={socket}\n")
        os.mkdir(self.path("marks"))

    def node_env(self, name):
        return {
            "SLURM_CONF": self.path(f"etc/{name}/slurm.conf"),
            "PATH": f"{EMULATOR}:{self.env['PATH']}",
            "LD_LIBRARY_PATH": EMULATOR,
            "COLLOC_EMULATOR": self.path(f"work/gpus-{name}"),
        }

    def start_slurmd(self, name):
        conf = self.path(f"etc/{name}/slurm.conf")
        self.slurmd[name] = self.spawn(
            "slurmd", "-D", "-N", name, log=f"slurmd-{name}", SLURM_CONF=conf
        )

    def skip_ids(self):
        """No job gets the id of one that slurmctld has forgotten, whose end it would take for its
        own."""
        self.first_id += 10000
        with open(self.conf, "a", encoding="utf-8") as file:
            file.write(f"FirstJobId={self.first_id}\n")

    def start_colloc(self):
        (self.hub_port,) = loopback.free_ports(1)
        self.start_controller()
        for name in self.nodes:
            emulated = self.path(f"work/gpus-{name}")
            self.run(program("emulator"), "create", *self.emulated, emulated)
            self.start_agent(name)

    def start_controller(self):
        self.controller = self.spawn(
            CONTROLLER,
            "--intake-partition=gpu",
            "--run-partition=gpu-run",
            f"--state-dir={self.path('run/colloc')}",
            f"--listen=127.0.0.1:{self.hub_port}",
            f"--munge-socket={self.path('munge/socket')}",
            "--socket=none",
            "--wake-file=none",
            "--poll=300ms",
            "--settle=1ms",
            "--settle-max=1ms",
            *self.controller_options,
            log="controller",
        )

    def start_agent(self, name):
        self.agents[name] = self.spawn(
            program("collocd"),
            "--node",
            f"--controller=127.0.0.1:{self.hub_port}",
            f"--node-name={name}",
            f"--munge-socket={self.path('munge/socket')}",
            f"--node-socket={self.path(f'run/{name}.sock')}",
            f"--state-dir={self.path(f'run/state-{name}')}",
            *self.agent_options,
            log=f"agent-{name}",
            **self.node_env(name),
        )


class Campaign:
    kinds = ("controller", "agent", "slurmctld", "slurmd")

    def __init__(self, cluster, seed):
        self.cluster, self.random = cluster, random.Random(seed)
        self.submitted = {}  # name: (time of the answer, id, name that it depends on)
        self.slurmctld_kills, self.kills = [], {}
        self.forgotten = {}  # name: what Slurm has forgotten of the job
        self.changed = set()  # ids of jobs that slurmctld has changed between the list and its kill

    # ---- jobs ----

    def write_job(self, name, crashes):
        """Its script, and further options of sbatch."""
        seconds = round(self.random.uniform(0.5, 4), 2)
        begin = self.write_begin(name, "--memory=10GiB --smact=0.2")
        return begin + JOB.format(name=name, crashes=int(crashes), seconds=seconds), ()

    def write_begin(self, name, needs):
        return BEGIN.format(needs=needs, marks=self.cluster.path("marks"), name=name)

    def submit(self, crashes=False, after=None):
        name = f"job{len(self.submitted)}"
        script, more = self.write_job(name, crashes)
        options = ["--partition=gpu", f"--job-name={name}", "--output=%j.out", *more]
        if after:
            options.append(f"--dependency=afterok:{self.submitted[after][1]}")
        done = self.cluster.run("sbatch", "--parsable", *options, text=script, check=False)
        if done.returncode != 0:
            return None
        job = done.stdout.strip()
        if any(job == number for _, number, _ in self.submitted.values()):
            self.forgotten[name] = "the former job of its id"
        self.submitted[name] = (time.time(), job, after)
        return name

    def submit_some(self):
        left, _ = self.list_left()
        self.help_slurm(left)
        if len(left) > JOBS_MAX:
            return
        for _ in range(self.random.randrange(1, 4)):
            self.submit()
        crashing = self.submit(crashes=True)
        if crashing:
            self.submit(after=crashing)

    def marks(self, name):
        """[(word, time)] of the runs of a job."""
        try:
            with open(self.cluster.path(f"marks/{name}"), encoding="ascii") as file:
                return [(line.split()[0], float(line.split()[1])) for line in file]
        except FileNotFoundError:
            return []

    # ---- crashes ----

    def check_alive(self):
        """All that was not killed lives."""
        cluster = self.cluster
        daemons = [cluster.controller, *cluster.agents.values(), *cluster.slurmd.values()]
        for daemon in (*daemons, cluster.slurmctld):
            if not daemon.is_alive():
                raise AssertionError(f"process {daemon.pid} ({daemon.log}) has ended by itself")

    def crash_one(self):
        self.check_alive()
        cluster, name = self.cluster, self.random.choice(self.cluster.nodes)
        kind = self.random.choice(self.kinds)
        self.kills[kind] = self.kills.get(kind, 0) + 1
        later_s = self.random.random()
        if kind == "controller":
            cluster.controller.kill()
            time.sleep(later_s)
            cluster.start_controller()
        elif kind == "agent":
            cluster.agents[name].kill()
            time.sleep(later_s)
            cluster.start_agent(name)
        elif kind == "slurmctld":
            if self.random.random() < 0.5:
                self.wait_saved()
            logged = os.path.getsize(cluster.slurmctld.log)
            before = self.slurm_states()
            cluster.slurmctld.kill()
            self.changed = self.read_changed(logged)
            self.slurmctld_kills.append(time.time())
            time.sleep(later_s)
            if self.random.random() < 0.75:
                cluster.skip_ids()
            cluster.start_slurmctld()
            self.note_forgotten(before, self.slurm_states())
        elif kind == "job":
            self.kill_job()
        else:
            cluster.slurmd[name].kill()
            time.sleep(LOST_NODE_S if self.random.random() < 0.125 else later_s)
            cluster.start_slurmd(name)

    def wait_saved(self):
        """Until slurmctld has saved its jobs once more, so that it forgets little."""
        path, since = self.cluster.path("state/job_state"), time.time()
        while time.time() < since + SAVE_S and self.saved_at(path) < since:
            time.sleep(0.01)

    def saved_at(self, path):
        try:
            return os.stat(path).st_mtime
        except FileNotFoundError:
            return 0

    def run(self, crashes):
        for _ in range(crashes):
            self.submit_some()
            time.sleep(self.random.uniform(0, 2))
            self.crash_one()
        self.cluster.until(self.is_over, "the end of all jobs", limit_s=900)
        self.note_unheard_ends()

    def help_slurm(self, left):
        """What an administrator does where Slurm does not go on by itself: a job whose launch
        failed, because slurmd was killed then, is held; a node to which slurmctld sent a job again,
        because it had forgotten its start, is drained."""
        for line in left:
            if "launch failed" in line:
                self.cluster.run("scontrol", "release", line.split()[0], check=False)
        states = self.cluster.run("sinfo", "--noheader", "--Node", "--format=%N %T", check=False)
        for line in set(states.stdout.splitlines()):
            name, state = line.split()
            if state.startswith(("drain", "down")):
                node = f"nodename={name}"
                self.cluster.run("scontrol", "update", node, "state=resume", check=False)

    def list_left(self):
        """Lines of the jobs that may still run, and whether slurmctld has answered. A dependent
        whose job failed never runs."""
        listed = self.cluster.run("squeue", "--noheader", "--format=%i %r", check=False)
        lines = [line for line in listed.stdout.splitlines() if "DependencyNever" not in line]
        return lines, listed.returncode == 0

    def is_over(self):
        self.check_alive()
        left, is_answered = self.list_left()
        self.help_slurm(left)
        time.sleep(0.5)
        return is_answered and not left

    # ---- the judgement ---- #

    def read_changed(self, since):
        """The ids of the jobs of whose start, end or requeue slurmctld has logged a line."""
        with open(self.cluster.slurmctld.log, "rb") as file:
            file.seek(since)
            return set(LOGGED.findall(file.read().decode(errors="replace")))

    def slurm_states(self):
        """{name: the words of scontrol} of all jobs that slurmctld knows, once it answers."""
        words = ["scontrol", "--oneliner", "show", "jobs"]
        done = self.cluster.until(lambda: self.answer_of(words), "an answer of slurmctld")
        found = {}
        for line in done.stdout.splitlines():
            job = dict(word.split("=", 1) for word in line.split() if "=" in word)
            found[job.get("JobName")] = job
        return found

    def answer_of(self, words):
        done = self.cluster.run(*words, check=False)
        return done if done.returncode == 0 else None

    def note_forgotten(self, before, after):
        """What slurmctld no longer knows since its last kill."""
        for name in self.submitted:
            if name in self.forgotten:
                continue
            lost = self.find_forgotten(name, before.get(name), after.get(name))
            if lost:
                self.forgotten[name] = lost

    def find_forgotten(self, name, before, after):
        """`before`, `after`: what slurmctld says of the job before its kill and after its start."""
        if after is None or after.get("JobId") != self.submitted[name][1]:
            return "the job"
        if before is None:
            return None
        restarts = [int(words.get("Restarts", 0)) for words in (before, after)]
        if restarts[1] < restarts[0]:
            return "a requeue"
        if restarts[1] == restarts[0] and before["JobState"] in ENDED:
            return None if after["JobState"] in ENDED else "the end"
        is_waiting = after["JobState"] == "PENDING" and restarts[1] == restarts[0]
        if is_waiting and before["JobState"] != "PENDING":
            return "the start"
        is_same = restarts[1] == restarts[0] and after["JobState"] == before["JobState"]
        if is_same and before["JobId"] in self.changed:
            return "what it has logged"
        # A run that began after the list was made, and of which slurmctld has no restart.
        starts = [when for word, when in self.marks(name) if word == "start"]
        kill = self.slurmctld_kills[-1]
        if is_waiting and len(starts) > restarts[1] and any(when < kill for when in starts):
            return "the start"
        return None

    def note_unheard_ends(self):
        """Jobs that slurmctld took for running until their node registered without them, and ran
        again, though they had ended: it was killed before it heard of the end, or saved it."""
        with open(self.cluster.slurmctld.log, encoding="utf-8", errors="replace") as file:
            missing = set(MISSING.findall(file.read()))
        for name, (_, job, _) in self.submitted.items():
            has_ended = any(word == "end" for word, _ in self.marks(name))
            if job in missing and has_ended and name not in self.forgotten:
                self.forgotten[name] = "an end that it never heard of"

    def is_slurms(self, name):
        """Was it forgotten, or what it waits for?"""
        return name in self.forgotten or self.submitted[name][2] in self.forgotten

    def is_near_kill(self, name):
        """Did anything happen to the job shortly before slurmctld was killed?"""
        times = [self.submitted[name][0], *(when for _, when in self.marks(name))]
        return any(-3 < kill - at < NEAR_S for kill in self.slurmctld_kills for at in times)

    def judge(self):
        counts = dict.fromkeys(
            ("acknowledged", "succeeded", "failed", "waits for a failed one", "Slurm's"), 0
        )
        counts.update({"near a kill": 0, "runs": 0, "twice, Slurm's": 0})
        counts.update({"lost": [], "twice": [], "orphaned": []})
        states = self.slurm_states()
        for name in self.submitted:
            marks = self.marks(name)
            counts["acknowledged"] += 1
            counts["runs"] += sum(word == "start" for word, _ in marks)
            counts["near a kill"] += self.is_near_kill(name)
            if self.is_slurms(name):
                counts["Slurm's"] += 1
                counts["twice, Slurm's"] += self.ran_twice(marks)
            else:
                self.judge_job(counts, name, marks, states.get(name, {}).get("JobState"))
        counts["forgotten"] = {}
        for what in self.forgotten.values():
            counts["forgotten"][what] = counts["forgotten"].get(what, 0) + 1
        return counts

    def ran_twice(self, marks):
        ends = [when for word, when in marks if word == "end"]
        is_again = any(word == "start" and when > ends[0] for word, when in marks if ends)
        return is_again or any(word == "twice" for word, _ in marks)

    def judge_job(self, counts, name, marks, state):
        ends = [when for word, when in marks if word == "end"]
        if self.ran_twice(marks):
            counts["twice"].append(name)
        after = self.submitted[name][2]
        if ends:
            counts["succeeded"] += 1
        elif state == "FAILED":
            counts["failed"] += 1
        elif after and not any(word == "end" for word, _ in self.marks(after)):
            counts["waits for a failed one"] += 1
        elif after:
            counts["orphaned"].append(name)
        else:
            counts["lost"].append(name)


def run(name, make_cluster, make_campaign, bad):
    """bad: the lists of judge() that must be empty. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Kills the parts of a Slurm cluster with colloc.")
    parser.add_argument("--seed", type=int, default=0, help="0: a random one")
    parser.add_argument("--crashes", type=int, default=300, help="how many (default: 300)")
    args = parser.parse_args()
    reason = why_not()
    if reason:
        print(f"{name}: skipped: {reason}")
        return 0
    seed = args.seed or random.randrange(1, 1 << 32)
    print(f"{name}: --seed={seed} --crashes={args.crashes}", flush=True)
    with make_cluster() as cluster:
        campaign = make_campaign(cluster, seed)
        cluster.start_colloc()
        try:
            campaign.run(args.crashes)
        except BaseException:
            print(cluster.logs())
            raise
        counts = campaign.judge()
        print(f"crashes: {campaign.kills}\njobs: {counts}", flush=True)
        found = [job for each in bad for job in counts[each]]
        if found:
            states = campaign.slurm_states()
            for job in found:
                print(job, campaign.submitted.get(job), campaign.marks(job), states.get(job))
            print(f"kills of slurmctld: {campaign.slurmctld_kills}")
            print(f"FAILED: again with --seed={seed} --crashes={args.crashes}\n{cluster.logs()}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(run("slurm campaign", Cluster, Campaign, ("lost", "twice", "orphaned")))
