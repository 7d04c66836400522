#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills in each phase of the carrier, and eight trainings in slots of 5 s (docs/carrier.md), on one
or two GPUs. Writes JSON lines, each when its result is known.

    tests/gpu/carrier_ends_trial.py PROGRAMS OUT.jsonl [--seconds=S] [--part=NAME] [--gpus=0,1]
                                    [--emulated]

PROGRAMS: a folder made by scripts/bundle; with --emulated a build folder: the GPUs are the
emulator's and the trainings tests/system/carried_training.c, so that the program itself can be
tried without a GPU. Without --emulated it needs a GPU and a python3 with PyTorch and torchvision.

    kills-streams, kills-mps    the task, its helper (colloc-checkpoint) or collocd is killed while
                                its memory is copied, away, or on its way back. Rounds of all of
                                these, at most TIMES, until the part's time is over
    slots                       EIGHT trainings, the longest first and each 0.7 times as long as the
                                one before: one after the other, and in slots of 5 s, time-sliced
                                and as MPS clients. With two GPUs the first two at the same time

Without --part each has a third of S (default: 420). After a kill of the task it must have ended,
with none of its memory left; after another one it must compute on in the same attempt, and its
losses must be those of a run that nothing has disturbed (`equal`).
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]
import preload_daemon as pd  # noqa: E402
from groups_trial import ENDED, is_running, until, write  # noqa: E402

PARTS = ("kills-streams", "kills-mps", "slots")
TIMES, EIGHT, SHORTER = 10, 8, 0.7
VICTIMS, PHASES = ("task", "helper", "collocd"), ("copying", "away", "returning")
STEP_S = 0.012  # of the emulated training, about
CALM_S = 0.2  # chosen: after a kill, before the GPU's memory is read
FOLDERS = {
    "collocd": "src/daemon",
    "colloc": "src/cli",
    "colloc-shim": "src/exec",
    "colloc-checkpoint": "src/checkpoint",
    "libcolloc-preload.so": "src/preload",
}


class Machine:
    """The GPUs, the programs and the trainings."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.programs = os.path.abspath(options.programs)
        self.env = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8")
        if options.emulated:
            emulator = f"{self.programs}/emulator"
            self.env.update(
                PATH=f"{emulator}:{os.environ['PATH']}",
                LD_LIBRARY_PATH=emulator,
                COLLOC_EMULATOR=f"{folder}/gpus",
            )
            command = [f"{emulator}/colloc-emulator", "create", "--gpus=2xH200", "--speed=100"]
            subprocess.run([*command, f"{folder}/gpus"], env=self.env, check=True)

    def program(self, name):
        return os.path.join(self.programs, FOLDERS[name] if self.options.emulated else "", name)

    def training(self, name, seconds, stop):
        """The words of its command. `seconds`: about; it ends before, once the file `stop` is
        there."""
        if self.options.emulated:
            training = f"{self.programs}/tests/system/carried-training"
            return [training, f"--steps={int(seconds / STEP_S)}", f"--end={stop}"]
        steps = int(seconds * {"resnet18": 40, "resnet50": 25}[name])  # a second, on an H200
        words = [sys.executable, f"{HERE}/groups_trainings.py", name, f"--steps={steps}"]
        return [*words, "--batch=16", f"--stop={stop}"]


class Daemon:
    """One collocd in a folder."""

    def __init__(self, machine, gpus, **settings):
        self.machine, self.folder = machine, tempfile.mkdtemp(dir=machine.folder)
        self.socket, self.log = f"{self.folder}/s", open(f"{self.folder}/log", "a")
        given = {
            "socket": self.socket,
            "state_dir": f"{self.folder}/state",
            "shim": machine.program("colloc-shim"),
            "preload_library": machine.program("libcolloc-preload.so"),
            "checkpoint": machine.program("colloc-checkpoint"),
            "gpus": gpus,
            "carrier": "yes",
            "sample_period": "500ms",
            "settle": "1s",
            "settle_max": "2s",
            "smact_max": "1",
            **settings,
        }
        self.tasks = []
        self.command = [machine.program("collocd")]
        self.command += [f"--{key.replace('_', '-')}={value}" for key, value in given.items()]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=self.log, env=self.machine.env)
        until(lambda: self.ask("info").returncode == 0, 30, "collocd to answer", 0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        """Tasks outlive their daemon: they are ended first."""
        for task in self.tasks:
            self.ask("cancel", str(task))
        for task in self.tasks:
            until(lambda: self.show(task)["state"] in ENDED, 30, "its end", 0.05)
        self.process.terminate()
        self.process.wait()

    def words(self, *words):
        return [self.machine.program("colloc"), f"--socket={self.socket}", *words]

    def ask(self, *words):
        return subprocess.run(
            self.words(*words),
            env=self.machine.env,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def show(self, task):
        return json.loads(self.ask("show", str(task), "--json").stdout)

    def used_mib(self):
        return [
            gpu["mem_used_mib"] for gpu in json.loads(self.ask("gpus", "--json").stdout)["gpus"]
        ]

    def helper(self):
        """The pid of its colloc-checkpoint; None: it runs none."""
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        for pid in open(children).read().split():
            if "colloc-checkpoint" in open(f"/proc/{pid}/cmdline").read():
                return int(pid)
        return None


class Task:
    """A training under a daemon."""

    def __init__(self, daemon, name, seconds, *options):
        self.daemon, self.stop_file = daemon, tempfile.mktemp(dir=daemon.folder)
        words = daemon.machine.training(name, seconds, self.stop_file)
        options = (*options, "--requeue=no", "--json")
        done = daemon.ask("submit", *options, "--", *words)
        if done.returncode:
            raise RuntimeError(done.stderr)
        self.id = json.loads(done.stdout)["id"]
        daemon.tasks.append(self.id)

    def show(self):
        return self.daemon.show(self.id)

    def state(self):
        return self.show()["state"]

    def output(self):
        return self.daemon.ask("logs", str(self.id)).stdout.splitlines()

    def losses(self):
        """Of the emulated training: nothing but that a step has found all as it was."""
        return [" ".join(line.split()[4:5]) for line in self.output() if line.startswith("step")]

    def wait_steps(self, more):
        aim = len(self.losses()) + more

        def has_come():
            if self.state() in ENDED:
                raise RuntimeError(f"it has ended: {self.output()[-5:]}")
            return len(self.losses()) >= aim

        until(has_come, 60, "its steps", 0.05)

    def wait(self, *states, limit_s=60):
        return until(lambda: (s := self.state()) in states and s, limit_s, str(states), 0.05)

    def pid(self):
        """Of the process that has a page of the daemon."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                environment = open(f"/proc/{pid}/environ").read().split("\0")
                pages = pd.ProcessPage.pages_of(pid)
            except OSError:
                continue
            is_of_task = f"COLLOC_TASK_ID={self.id}" in environment
            if is_of_task and pages and any(self.daemon.folder in e for e in environment):
                return int(pid)
        return None


# ---- kills ----


def kill_one(task, victim, phase):
    """Returns what is seen then. The task runs before."""
    daemon = task.daemon
    pid = until(task.pid, 30, "its page")
    page = pd.ProcessPage(pid, daemon.process.pid)
    if phase == "returning":
        daemon.ask("suspend", str(task.id))
        if task.wait("SUSPENDED", "RUNNING", "PAUSED") != "SUSPENDED":
            return {"not_tried": task.show()["suspension_error"]}
    verb = "resume" if phase == "returning" else "suspend"
    asking = subprocess.Popen(
        daemon.words(verb, str(task.id)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    result = {"phase_seen": page.wait_phase(phase)}
    pids = {"task": pid, "helper": daemon.helper(), "collocd": daemon.process.pid}
    if pids[victim] is None:
        result["not_tried"] = "collocd runs no helper now"
    elif victim == "collocd":
        daemon.kill()
    else:
        os.kill(pids[victim], signal.SIGKILL)
    begin = time.monotonic()
    asking.wait(60)
    if victim == "collocd":
        daemon.start()
    if victim == "task":
        result["state"] = task.wait(*ENDED)
        result["is_left"] = is_running(pid)
    else:
        result["state"] = task.wait("RUNNING", "SUSPENDED", *ENDED)
        if result["state"] == "SUSPENDED":
            daemon.ask("resume", str(task.id))
            task.wait("RUNNING", *ENDED)
        task.wait_steps(3)
        result["attempts"] = task.show()["attempt_count"]
    result["settled_after_s"] = round(time.monotonic() - begin, 2)
    return result


def run_kills(machine, out, seconds, sharing):
    end = time.monotonic() + seconds
    daemon = Daemon(machine, machine.options.gpus.split(",")[0], sharing=sharing)
    want = ("--memory=6GiB", "--smact=0.1")
    reference = Task(daemon, "resnet50", 3600, *want)
    reference.wait_steps(3)
    task, before = None, None
    for round_number in range(TIMES):
        for victim in VICTIMS:
            for phase in PHASES:
                if time.monotonic() > end - 15:
                    write(out, {"result": f"kills, {sharing}: time is over", "round": round_number})
                    daemon.close()
                    return
                row = {"result": f"kill {victim} {phase}, {sharing}", "round": round_number}
                try:
                    if task is None:
                        before = daemon.used_mib()
                        task = Task(daemon, "resnet50", 3600, *want)
                        task.wait_steps(3)
                        until(lambda: task.show()["carried"], 20, "its carrier", 0.05)
                    row.update(kill_one(task, victim, phase))
                    pairs = list(zip(task.losses(), reference.losses()))
                    row.update(equal=all(a == b for a, b in pairs), compared=len(pairs))
                    if row["state"] in ENDED:
                        time.sleep(CALM_S)
                        row.update(before_mib=before, after_mib=daemon.used_mib())
                except Exception as error:  # noqa: BLE001 - a part of the result
                    row["error"] = repr(error)[-300:]
                write(out, row)
                if task and (row.get("error") or row.get("state") in ENDED):
                    daemon.ask("cancel", str(task.id))
                    task = None
    daemon.close()


# ---- slots ----

WAYS = {
    "one after the other": {"sharing": "streams", "policy": "exclusive"},
    "slots, time-sliced": {"sharing": "streams", "slots": "yes", "slot_length": "5s"},
    "slots, MPS": {"sharing": "mps", "slots": "yes", "slot_length": "5s"},
}


def start_way(machine, way, gpu, longest_s):
    daemon = Daemon(machine, gpu, tasks_per_gpu="1", **WAYS[way])
    lengths = [longest_s * SHORTER**i for i in range(EIGHT)]
    tasks = [Task(daemon, "resnet18", s, "--memory=4GiB", "--smact=0.1") for s in lengths]
    return {"way": way, "daemon": daemon, "tasks": tasks, "begin": time.monotonic(), "ends": {}}


def note_ends(run):
    for task in run["tasks"]:
        if task.id not in run["ends"] and task.state() in ENDED:
            run["ends"][task.id] = round(time.monotonic() - run["begin"], 2)


def report_way(out, run):
    shown = [task.show() for task in run["tasks"]]
    ends = [run["ends"].get(task.id) for task in run["tasks"]]
    is_whole = None not in ends
    shorter = [e for e in ends[EIGHT // 2 :] if e is not None]
    write(
        out,
        {
            "result": f"eight trainings, {run['way']}",
            "is_whole": is_whole,
            "ends_s": ends,
            "total_s": max(ends) if is_whole else None,
            "shorter_half_mean_s": round(sum(shorter) / len(shorter), 2) if shorter else None,
            "states": [s["state"] for s in shown],
            "suspensions": [s["suspensions"] for s in shown],
            "suspension_cost_s": [s["suspension_cost_s"] for s in shown],
            "attempts": [s["attempt_count"] for s in shown],
        },
    )
    run["daemon"].close()


def run_slots(machine, out, seconds):
    gpus = machine.options.gpus.split(",")
    at_once = [list(WAYS)[i : i + len(gpus)] for i in range(0, len(WAYS), len(gpus))]
    all_of_one = sum(SHORTER**i for i in range(EIGHT))
    longest_s = (seconds / len(at_once) - 15) / all_of_one / 1.3  # turns may cost something
    for ways in at_once:
        end = time.monotonic() + seconds / len(at_once)
        runs = [start_way(machine, way, gpu, longest_s) for way, gpu in zip(ways, gpus)]
        while time.monotonic() < end - 5 and any(len(r["ends"]) < EIGHT for r in runs):
            for run in runs:
                note_ends(run)
            time.sleep(0.1)
        for run in runs:
            report_way(out, run)


# ---- all ----


def read_options():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("programs")
    parser.add_argument("out")
    parser.add_argument("--seconds", type=float, default=420)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--gpus", default="0")
    parser.add_argument("--emulated", action="store_true")
    return parser.parse_args()


def main():
    options = read_options()
    parts = [options.part] if options.part else PARTS
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        machine = Machine(options, folder)
        for part in parts:
            seconds = options.seconds / len(parts)
            write(options.out, {"result": f"part {part}", "seconds": seconds})
            if part == "slots":
                run_slots(machine, options.out, seconds)
            else:
                run_kills(machine, options.out, seconds, part.split("-")[1])


if __name__ == "__main__":
    main()
