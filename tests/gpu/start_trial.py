#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon short trainings end on one GPU or several: all at once by hand, and under colloc.

    tests/gpu/start_trial.py PROGRAMS OUT.jsonl [--gpus=0,1] [--within=S] [--each=S] [--kinds=N]
                             [--array=N] [--array-each=S] [--array-kind=KIND] [--array-steps=N]
                             [--pace-steps=N] [--fork=LIBRARY,...] [--ways=A,B,...] [--emulated]
    tests/gpu/start_trial.py --page OUT.jsonl[.xz]  # the tables of docs/measured/start*.md

PROGRAMS: the folder that scripts/bundle makes; with --emulated a build folder: the GPUs are the
emulator's, and an array's trainings pretend. Seven kinds of trainings, three of each; no two of
the commands are equal, so no task is known by an earlier one. Each way by colloc has a new daemon
without a history. The ways, in the order of WAYS; one that comes more than once is repeated:

    warm        one process runs some steps of each kind: files are read, kernels are loaded
    by-hand     all at once, by MPS, in turn on each GPU
    default     colloc, nothing declared, by MPS
    held        the same with the cautions that were the default before: settle, settle-max and
                starting-max 0. Ended after HELD_TIMES the time of `default`
    declared    colloc, --memory=5GiB
    streams     as `default`, but time-sliced
    auto        as `default`, but colloc chooses the way of sharing
    unset       colloc without any setting, nothing declared
    one-by-one  by hand, one after the other

An array is --array equal trainings of --array-kind, which compute --array-each seconds alone, or
make --array-steps steps; with --fork in forks of a process that has loaded these libraries, so that
imports are no part of the times (needs root and cgroups):

    pace        one of them alone, --pace-steps long, to know how many steps that is
    array       colloc without any setting, `colloc submit --array`, nothing declared
    fixed-N     by hand, by MPS, N at a time on each GPU: where one ends the next one starts

A way is left out when it is not expected to end within the time that is left. OUT.jsonl has a line
for each way, written when it has ended.
"""
import argparse
import concurrent.futures
import contextlib
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "python"), HERE]

from carrier_tasks import FOLDERS
from colloc_fit.machine import ForkServer
from start_page import is_of_array, tables

TRAININGS = os.path.join(HERE, "start_trainings.py")
PYTHON = sys.executable
# Steps a second of each kind alone on an H200, measured in an earlier run of this trial.
PACE = {
    "cnn": 41.4,
    "segmentation": 60.6,
    "gan": 68.2,
    "characters": 29.6,
    "lstm": 51.7,
    "recommender": 113.2,
    "checkpointed": 15.1,
}
OF_EACH_KIND = 3
WAYS = (
    "warm by-hand default default default held by-hand declared streams auto default default "
    "one-by-one"
).split()
EMULATED_TRAINING = (
    "colloc-pretend-train --memory-mib=980 --ramp-seconds=1 --smact=0.06 --steps=600".split()
)
HELD_TIMES = 4.6  # chosen: above the 4.5 times that it has to be slower
START_S = 8.0  # imports and a context, alone: docs/measured/start.md
FORKED_START_S = 2.0  # chosen: a context, beside others
FAILURES = "FAILED CANCELLED TIMEOUT OUT_OF_MEMORY STOPPED".split()
ENDS = ["COMPLETED", *FAILURES]
OUTPUT = "%j.log"  # of a task of an array, in the daemon's folder
SPENT = "batches_s gpu_s processor_s".split()
CAUTIONS = {"starting_max": 0, "settle": "10s", "settle_max": "60s"}


def commands(kinds, seconds, more=0):
    """Commands that all differ; those of another `more` differ from these."""
    return [
        [PYTHON, TRAININGS, kind, str(max(5, int(PACE[kind] * seconds)) + turn + more)]
        for turn in range(OF_EACH_KIND)
        for kind in kinds
    ]


# ---- processes ----


def pids_with(variable):
    """Processes whose environment has this text."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if variable.encode() in file.read():
                        found.append(int(name))
            except OSError:
                pass
    return found


def end_processes(folder):
    """Ends what is left of a way: its trainings, and its MPS control daemon and server."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids_with(folder):
            try:
                os.kill(pid, number)
            except OSError:
                pass
        end = time.monotonic() + 5
        while pids_with(folder) and time.monotonic() < end:
            time.sleep(0.2)


class Processors:
    """How busy this machine's processors are, and how fast one is: they may be shared."""

    LOOP = 20000  # additions, some tenths of a millisecond

    def __init__(self):
        self.times = self.read()

    @staticmethod
    def read():
        with open("/proc/stat", encoding="ascii") as file:
            return [int(word) for word in file.readline().split()[1:9]]

    def since(self):
        """Since the last call: the parts of all time that were used and that another machine had,
        and the milliseconds that the loop takes."""
        before, self.times = self.times, self.read()
        spent = [now - then for now, then in zip(self.times, before)]
        all_time, idle, stolen = sum(spent), spent[3] + spent[4], spent[7]
        parts = [None, None]  # a sandbox may tell zeros only
        if all_time > 0:
            parts = [round(1 - idle / all_time, 3), round(stolen / all_time, 3)]
        began = time.perf_counter()
        sum(range(self.LOOP))
        return [*parts, round(1000 * (time.perf_counter() - began), 2)]


class Watch(threading.Thread):
    """Notes each second of the GPUs: used MiB, GPU utilisation, power, SM clock of each; and of
    the processors (Processors.since)."""

    def __init__(self, gpus):
        super().__init__(daemon=True)
        self.gpus, self.ended, self.rows, self.host = gpus, threading.Event(), [], []

    def run(self):
        begin, processors = time.monotonic(), Processors()
        query = "memory.used,utilization.gpu,power.draw,clocks.sm"
        words = [
            "nvidia-smi",
            "-i",
            ",".join(self.gpus),
            f"--query-gpu={query}",
            "--format=csv,noheader,nounits",
        ]
        while not self.ended.wait(1):
            now = round(time.monotonic() - begin, 1)
            self.host.append([now, *processors.since()])
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                said = subprocess.run(words, capture_output=True, text=True, timeout=10).stdout
                self.rows.append([now, *said.strip().replace("\n", ", ").split(", ")])

    def stop(self):
        self.ended.set()
        self.join()
        return {"gpu": self.rows, "host": self.host}


# ---- what trainings say of themselves ----


def progress_in(text):
    """The line of JSON that a training of ours prints; None where it printed none."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


def steps_at(marks, moment):
    """Between two moments at which the number of steps is known, in proportion."""
    before = (marks[0][0], 0)
    for mark in marks:
        if mark[0] > moment:
            part = (moment - before[0]) / (mark[0] - before[0]) if mark[0] > before[0] else 0
            return before[1] + max(0, part) * (mark[1] - before[1])
        before = mark
    return before[1]


def together(texts, began):
    """What trainings printed, in seconds since `began` of the clock. {} where none is ours."""
    found = [one for one in map(progress_in, texts) if one]
    if not found:
        return {}
    seconds = range(int(max(one["ended"] for one in found) - began) + 2)
    steps = [sum(steps_at(one["steps"], began + second) for one in found) for second in seconds]
    return {
        "steps_at": [round(number) for number in steps],
        "trainings": [
            {
                **{key: round(one[key] - began, 2) for key in ("began", "computes", "ended")},
                **{key: round(one[key], 2) for key in SPENT if key in one},
                "switched_out": one["switched_out"],
                "steps": one["steps"][-1][1],
                "ends": [round(end - began, 4) for end in one.get("ends", [])],
            }
            for one in found
        ],
    }


# ---- emulated GPUs ----


def emulate(build, gpus, folder):
    """What is started from now on has GPUs of the emulator, made in the folder."""
    emulator = os.path.join(os.path.abspath(build), "emulator")
    os.environ.update(
        PATH=f"{emulator}:{os.environ['PATH']}",
        LD_LIBRARY_PATH=emulator,
        COLLOC_EMULATOR=os.path.join(folder, "gpus"),
    )
    words = ["create", f"--gpus={len(gpus)}xH200", os.environ["COLLOC_EMULATOR"]]
    subprocess.run(["colloc-emulator", *words], check=True, stdout=subprocess.DEVNULL)


def is_emulated():
    return "COLLOC_EMULATOR" in os.environ


def program(programs, name):
    return os.path.join(programs, FOLDERS[name] if is_emulated() else "", name)


# ---- by hand ----


class Mps:
    """A control daemon of ours, for the trainings by hand."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        self.env = {
            "CUDA_MPS_PIPE_DIRECTORY": self.folder,
            "CUDA_MPS_LOG_DIRECTORY": self.folder,
        }
        subprocess.run(
            ["nvidia-cuda-mps-control", "-d"], env={**os.environ, **self.env}, check=True
        )
        return self.env

    def __exit__(self, *_):
        try:
            subprocess.run(
                ["nvidia-cuda-mps-control"],
                input="quit\n",
                text=True,
                env={**os.environ, **self.env},
                timeout=20,
            )
        except subprocess.TimeoutExpired:
            pass
        end_processes(self.folder)


def uuid_of(gpu):
    """gpu: its index in nvidia-smi. The emulator's MPS server counts as the machine does."""
    if is_emulated():
        return gpu
    command = ["nvidia-smi", "-i", gpu, "--query-gpu=uuid", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def left_of(limit_s, began):
    return max(0.1, limit_s - (time.monotonic() - began))


class ByHand:
    """Trainings by MPS, `at_once` at a time on each GPU."""

    def __init__(self, gpus, at_once):
        self.running = {uuid_of(gpu): [] for gpu in gpus}
        self.at_once, self.codes, self.outputs = at_once, [], []

    def start(self, job, env):
        """Where fewest run, if one more may; returns whether it has started."""
        gpu = min(self.running, key=lambda gpu: len(self.running[gpu]))
        if len(self.running[gpu]) >= self.at_once:
            return False
        # By its UUID: an MPS server that has one GPU counts it from 0.
        env = {**os.environ, **env, "CUDA_VISIBLE_DEVICES": gpu}
        self.outputs.append(tempfile.TemporaryFile("w+"))
        self.running[gpu].append(subprocess.Popen(job, env=env, stdout=self.outputs[-1]))
        return True

    def collect(self):
        for running in self.running.values():
            for process in list(running):
                if process.poll() is not None:
                    self.codes.append(process.returncode)
                    running.remove(process)

    def printed(self):
        """What each training printed."""
        for file in self.outputs:
            file.seek(0)
        texts = [file.read() for file in self.outputs]
        for file in self.outputs:
            file.close()
        return texts

    def cut_off(self):
        for process in sum(self.running.values(), []):
            process.kill()
            process.wait()

    def run(self, jobs, env, limit_s):
        began, clock, left = time.monotonic(), time.time(), list(jobs)
        while time.monotonic() - began < limit_s:
            while left and self.start(left[0], env):
                left.pop(0)
            if len(self.codes) == len(jobs):
                break
            time.sleep(0.02)
            self.collect()
        total_s = time.monotonic() - began
        self.cut_off()
        return {
            "total_s": total_s,
            "failed": sum(code != 0 for code in self.codes),
            "cut_off": len(jobs) - len(self.codes),
            **together(self.printed(), clock),
        }


def run_by_hand(jobs, limit_s, gpus, at_once):
    with Mps() as env:
        return ByHand(gpus, at_once).run(jobs, env, limit_s)


def run_one_by_one(jobs, limit_s):
    with Mps() as env:
        began, codes = time.monotonic(), []
        for job in jobs:
            try:
                done = subprocess.run(
                    job,
                    env={**os.environ, **env},
                    stdout=subprocess.DEVNULL,
                    timeout=left_of(limit_s, began),
                )
                codes.append(done.returncode)
            except subprocess.TimeoutExpired:
                break
        return {
            "total_s": time.monotonic() - began,
            "failed": sum(code != 0 for code in codes),
            "cut_off": len(jobs) - len(codes),
        }


# ---- by colloc ----


class Daemon:
    def __init__(self, programs, log, gpus, **settings):
        self.programs, self.folder, self.log = programs, tempfile.mkdtemp(), log
        words = [f"--{key.replace('_', '-')}={value}" for key, value in settings.items()]
        self.socket = os.path.join(self.folder, "collocd.sock")
        self.process = subprocess.Popen(
            [
                program(programs, "collocd"),
                f"--socket={self.socket}",
                f"--state-dir={self.folder}/state",
                f"--shim={program(programs, 'colloc-shim')}",
                f"--gpus={','.join(gpus)}",
                *words,
            ],
            stdout=log,
            stderr=log,
        )
        for _ in range(300):
            if self.colloc("info").returncode == 0:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError("collocd does not answer")

    def colloc(self, *words, timeout=60):
        return subprocess.run(
            [program(self.programs, "colloc"), *words],
            capture_output=True,
            text=True,
            env={**os.environ, "COLLOC_SOCKET": self.socket},
            cwd=self.folder,
            timeout=timeout,
        )

    def watch(self, ids, began, limit_s):
        """Waits for the tasks; the queue goes into the log. Returns whether all have ended."""
        while time.monotonic() - began < limit_s:
            try:
                self.colloc("wait", *ids, timeout=min(3, left_of(limit_s, began)))
                return True
            except subprocess.TimeoutExpired:
                said = self.colloc("queue", "--state=pending", "--limit=3").stdout
                self.log.write(f"after {time.monotonic() - began:.1f} s\n{said}")
                self.log.flush()
        return False

    def submit(self, job, *options):
        """Returns the ids: of an array its tasks'."""
        done = self.colloc("submit", "--json", *options, "--", *job)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        said = json.loads(done.stdout)
        first, count = said["id"], said.get("tasks")
        return [str(first + 1 + k) for k in range(count)] if count else [str(first)]

    def run(self, jobs, limit_s, *options):
        """jobs: each is submitted by itself."""
        began, ids = time.monotonic(), []
        for job in jobs:
            ids += self.submit(job, *options)
        return self.follow(ids, began, limit_s)

    def run_array(self, job, count, limit_s):
        began, options = time.monotonic(), (f"--array=0-{count - 1}", f"--output={OUTPUT}")
        return self.follow(self.submit(job, *options), began, limit_s)

    def printed(self, number):
        try:
            path = os.path.join(self.folder, OUTPUT.replace("%j", number))
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:  # it has not started
            return ""

    def follow(self, ids, began, limit_s):
        clock = time.time() - (time.monotonic() - began)
        submitted_s = time.monotonic() - began
        is_done = self.watch(ids, began, limit_s)
        total_s = time.monotonic() - began
        tasks = [json.loads(self.colloc("show", "--json", i).stdout) for i in ids]
        tasks = [task.get("task", task) for task in tasks]
        for task in tasks:  # those of its last attempt; of an ended task there are no others
            task["gpus"] = [attempt.get("gpus") for attempt in task.get("attempts") or []][-1:]
        kept = (
            "id state reason_text need_mib estimator mem_peak_mib wait_s exec_s oom_count requeues "
            "memory_waits sharing gpus smact"
        ).split()
        states = [task["state"] for task in tasks]
        if not is_done:
            self.colloc("cancel", *ids)
        return {
            "total_s": total_s,
            "submitted_s": submitted_s,
            "failed": sum(state in FAILURES for state in states),
            "cut_off": sum(state not in ENDS for state in states),
            "tasks": [{key: task.get(key) for key in kept if key in task} for task in tasks],
            **together(map(self.printed, ids), clock),
        }

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        end_processes(self.folder)


# ---- the trial ----


class Trial:
    def __init__(self, options):
        self.options, self.began = options, time.monotonic()
        self.jobs = commands(list(PACE)[: options.kinds], options.each)
        self.log = open(os.path.splitext(options.out)[0] + ".log", "w")
        self.took = {}
        library = os.path.join(os.path.abspath(options.programs), "libcolloc-preload.so")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:  # imports take their time
            # By hand no task has the preloaded library.
            self.by_hand_fork, self.fork = pool.map(self.fork_server, (None, library))
        steps = options.array_steps
        self.array_job = self.array_of(steps) if steps else None
        if is_emulated():
            self.array_job = [*EMULATED_TRAINING, f"--seconds={options.array_each}"]

    def fork_server(self, preloaded):
        libraries = self.options.fork
        return ForkServer(libraries, preloaded, bool(preloaded)) if libraries else None

    def array_of(self, steps):
        return [TRAININGS, self.options.array_kind, str(steps)]

    @staticmethod
    def start_of(fork):
        """The words before a training's."""
        if is_emulated():
            return []
        return fork.command() if fork else [PYTHON]

    def close(self):
        for fork in (self.by_hand_fork, self.fork):
            if fork:
                fork.close()

    def left_s(self):
        return self.options.within - (time.monotonic() - self.began)

    def expected_s(self, way):
        """From the ways before; the first of all are tried whatever they take."""
        options, by_hand = self.options, max(self.took.get("by-hand", [0]))
        at_once = options.array
        if way.startswith("fixed-"):
            at_once = min(options.array, int(way.split("-")[1]) * len(options.gpus))
        start_s = FORKED_START_S if options.fork else START_S
        array = -(-options.array // at_once) * (start_s + options.array_each)
        arrays = [s for way, took in self.took.items() if is_of_array(way) for s in took]
        array = max([array, min(arrays, default=0)])
        guess = {
            "warm": 0,
            "pace": 0,
            "array": array,
            "held": by_hand / 2,  # it is ended early anyway
            "by-hand": by_hand,
            "one-by-one": len(self.jobs) * (START_S + options.each),
            "streams": 1.5 * by_hand,
        }.get(way, array if is_of_array(way) else 1.1 * by_hand)
        return max(self.took.get(way, [guess]))

    def warm(self, start, kinds, steps, limit_s):
        began = time.monotonic()
        done = subprocess.run(
            [*start, TRAININGS, ",".join(kinds), str(steps)],
            capture_output=True,
            text=True,
            timeout=limit_s,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": self.options.gpus[0]},
        )
        return {
            "total_s": time.monotonic() - began,
            "failed": int(done.returncode != 0),
            "said": (done.stdout + done.stderr)[-2000:],
        }

    def pace(self, limit_s):
        options = self.options
        start = self.start_of(self.by_hand_fork)
        value = self.warm(start, [options.array_kind], options.pace_steps, limit_s)
        found = re.search(r" steps ([0-9.]+) s", value["said"])
        if found:
            steps = int(options.pace_steps / float(found.group(1)) * options.array_each)
            self.array_job = self.array_of(steps)
            value.update(steps=steps, array=options.array, gpus=len(options.gpus))
            value["processors"] = len(os.sched_getaffinity(0))
        return value

    @contextlib.contextmanager
    def daemon(self, **settings):
        programs = os.path.abspath(self.options.programs)
        daemon = Daemon(programs, self.log, self.options.gpus, **settings)
        try:
            yield daemon
        finally:
            daemon.stop()

    def by_colloc(self, limit_s, *options, **settings):
        with self.daemon(**settings) as daemon:
            return daemon.run(self.jobs, limit_s, *options)

    def run_array(self, way, limit_s):
        if not self.array_job:
            raise RuntimeError("the pace of one training is not known")
        if way == "array":
            with self.daemon() as daemon:
                job = [*self.start_of(self.fork), *self.array_job]
                return daemon.run_array(job, self.options.array, limit_s)
        at_once, gpus = int(way.split("-")[1]), self.options.gpus
        job = [*self.start_of(self.by_hand_fork), *self.array_job]
        return run_by_hand([job] * self.options.array, limit_s, gpus, at_once)

    def run(self, way, limit_s):
        if way == "held" and "default" in self.took:
            limit_s = min(limit_s, HELD_TIMES * max(self.took["default"]))
        if is_of_array(way):
            return self.run_array(way, limit_s)
        return {
            "warm": lambda: self.warm([PYTHON], PACE, 20, limit_s),
            "pace": lambda: self.pace(limit_s),
            "by-hand": lambda: run_by_hand(self.jobs, limit_s, self.options.gpus, len(self.jobs)),
            "one-by-one": lambda: run_one_by_one(self.jobs, limit_s),
            "default": lambda: self.by_colloc(limit_s, sharing="mps"),
            "unset": lambda: self.by_colloc(limit_s),
            "streams": lambda: self.by_colloc(limit_s, sharing="streams"),
            "auto": lambda: self.by_colloc(limit_s, sharing="auto"),
            "held": lambda: self.by_colloc(limit_s, sharing="mps", **CAUTIONS),
            "declared": lambda: self.by_colloc(limit_s, "--memory=5GiB", sharing="mps"),
        }[way]()

    def take(self, way):
        left_s, expected_s = self.left_s(), self.expected_s(way)
        # Until a way has ended, its processes and its daemon have to be ended, too.
        if left_s < expected_s + 8:
            print(f"{way}: left out, {left_s:.0f} s left, {expected_s:.0f} s expected", flush=True)
            return
        self.log.write(f"---- {way}\n")
        self.log.flush()
        watch, value = Watch(self.options.gpus), {}
        watch.start()
        try:
            value = self.run(way, left_s - 8)
        except Exception as fault:  # the other ways go on
            value = {"error": repr(fault)[:2000]}
        kind = {"kind": self.options.array_kind} if is_of_array(way) or way == "pace" else {}
        value = {"way": way, **kind, "at_s": time.monotonic() - self.began, **value}
        value.update(watch.stop())
        with open(self.options.out, "a") as file:
            file.write(json.dumps(value) + "\n")
        if "error" not in value and not value.get("cut_off"):
            self.took.setdefault(way, []).append(value["total_s"])
        waits = [task.get("wait_s") or 0 for task in value.get("tasks", [])]
        print(
            f"{way:10} {value.get('total_s', 0):6.1f} s failed {value.get('failed', '-')}"
            f" cut off {value.get('cut_off', 0)} longest wait {max(waits, default=0):.1f} s"
            f" {value.get('error', '')}",
            flush=True,
        )


def main():
    if sys.argv[1:2] == ["--page"]:
        path = sys.argv[2]
        with lzma.open(path, "rt") if path.endswith(".xz") else open(path) as file:
            print("\n".join(tables([json.loads(line) for line in file])))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("out")
    parser.add_argument("--gpus", type=lambda text: text.split(","), default=["0"])
    parser.add_argument("--within", type=float, default=900, help="seconds for all ways")
    parser.add_argument("--each", type=float, default=2, help="seconds that a training computes")
    parser.add_argument("--kinds", type=int, default=len(PACE))
    parser.add_argument("--array", type=int, default=40, help="trainings of the array")
    parser.add_argument("--array-each", type=float, default=5, help="seconds that each computes")
    parser.add_argument("--array-kind", default="small", help="of start_trainings.py")
    parser.add_argument("--array-steps", type=int, help="of each; default: by the way pace")
    parser.add_argument("--pace-steps", type=int, default=1000, help="some seconds long")
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--fork", type=lambda text: text.split(","), default=[], metavar="LIBRARY,")
    parser.add_argument("--ways", type=lambda text: text.split(","), default=WAYS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.emulated:
            emulate(options.programs, options.gpus, folder)
        with contextlib.closing(Trial(options)) as trial:
            for way in options.ways:
                trial.take(way)
    if os.path.exists(options.out):  # not where there was no time for any way
        with open(options.out) as file:
            print("\n".join(tables([json.loads(line) for line in file])))


if __name__ == "__main__":
    main()
