#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon 14 short trainings end on one GPU: all at once by hand, and under colloc.

    tests/gpu/start_trial.py PROGRAMS OUT.json [WAY...]   # all ways take about 12 minutes
    tests/gpu/start_trial.py --page OUT.json      # the table of docs/measured/start.md

PROGRAMS: the folder that scripts/bundle makes. In one run, by MPS each:

    pace        steps a second of each kind, alone (for the number of steps: about TARGET_S alone)
    by-hand     all at once
    first       colloc, nothing declared, commands that it has not seen; RUNS times, each time a new
                daemon: first, first-2, ...
    again       the same commands once more
    declared    other commands (another number of steps), --memory=8GiB
    held        commands that it has not seen, with starting-max: 0
    one-by-one  by hand, one after the other
    by-hand-2   all at once again, at the end

OUT.json is written after each way: what was cut off is not in it.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TRAININGS = os.path.join(HERE, "start_trainings.py")
KINDS = "cnn segmentation gan characters lstm recommender checkpointed".split()
TARGET_S, PACE_STEPS, EACH, RUNS = 4.0, 60, 2, 5
PYTHON = sys.executable


def command(kind, steps):
    return [PYTHON, TRAININGS, kind, str(steps)]


def measure_pace():
    pace = {}
    for kind in KINDS:
        said = subprocess.run(command(kind, PACE_STEPS), capture_output=True, text=True).stdout
        found = re.search(r"steps ([0-9.]+) s", said)
        pace[kind] = PACE_STEPS / float(found.group(1)) if found else None
    return pace


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
        subprocess.run(
            ["nvidia-cuda-mps-control"], input="quit\n", text=True, env={**os.environ, **self.env}
        )


def run_by_hand(jobs):
    with Mps() as env:
        began = time.monotonic()
        running = [
            subprocess.Popen(job, env={**os.environ, **env}, stdout=subprocess.DEVNULL)
            for job in jobs
        ]
        codes = [process.wait() for process in running]
        return {"total_s": time.monotonic() - began, "failed": sum(code != 0 for code in codes)}


def run_one_by_one(jobs):
    with Mps() as env:
        began = time.monotonic()
        codes = [
            subprocess.run(job, env={**os.environ, **env}, stdout=subprocess.DEVNULL).returncode
            for job in jobs
        ]
        return {"total_s": time.monotonic() - began, "failed": sum(code != 0 for code in codes)}


class Daemon:
    def __init__(self, programs, folder, **settings):
        self.programs, self.folder = programs, folder
        os.makedirs(folder, exist_ok=True)
        words = [f"--{key.replace('_', '-')}={value}" for key, value in settings.items()]
        self.socket = os.path.join(folder, "collocd.sock")
        self.log = open(os.path.join(folder, "collocd.log"), "a")
        self.process = subprocess.Popen(
            [
                os.path.join(programs, "collocd"),
                f"--socket={self.socket}",
                f"--state-dir={folder}/state",
                f"--shim={programs}/colloc-shim",
                "--gpus=0",
                "--sharing=mps",
                *words,
            ],
            stdout=self.log,
            stderr=self.log,
        )
        for _ in range(300):
            if self.colloc("info").returncode == 0:
                return
            time.sleep(0.1)
        raise SystemExit(open(self.log.name).read()[-3000:])

    def colloc(self, *words):
        return subprocess.run(
            [os.path.join(self.programs, "colloc"), *words],
            capture_output=True,
            text=True,
            env={**os.environ, "COLLOC_SOCKET": self.socket},
            cwd=self.folder,
        )

    def run(self, jobs, *options):
        began, ids = time.monotonic(), []
        for job in jobs:
            done = self.colloc("submit", *options, "--", *job)
            found = re.search(r"task (\d+)", done.stdout)
            if not found:
                return {"error": done.stdout + done.stderr}
            ids.append(found.group(1))
        self.colloc("wait", *ids)
        total_s = time.monotonic() - began
        tasks = [json.loads(self.colloc("show", "--json", i).stdout) for i in ids]
        tasks = [task.get("task", task) for task in tasks]
        kept = (
            "id state need_mib estimator mem_peak_mib wait_s exec_s oom_count memory_waits".split()
        )
        return {
            "total_s": total_s,
            "states": sorted(task["state"] for task in tasks),
            "tasks": [{key: task.get(key) for key in kept} for task in tasks],
        }

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


FIRST = ["first"] + [f"first-{run}" for run in range(2, RUNS + 1)]
ROWS = {
    "by-hand": "by hand, all at once under MPS",
    "by-hand-2": "the same at the end of the run",
    "one-by-one": "by hand, one after the other",
    **{name: "colloc, nothing declared, commands never seen" for name in FIRST},
    "again": "colloc, nothing declared, the same commands again",
    "declared": "colloc, other commands, `--memory=8GiB`",
    "held": "colloc, commands never seen, `starting-max: 0`",
}


def table(results):
    """The rows of Markdown for what was measured."""
    least = min(results[name]["total_s"] for name in ("by-hand", "by-hand-2") if name in results)
    lines = ["| way | total | of by hand | longest wait |", "| --- | ---: | ---: | ---: |"]
    for name, words in ROWS.items():
        if name not in results:
            continue
        total_s = results[name]["total_s"]
        waits = [task["wait_s"] for task in results[name].get("tasks", [])]
        longest = f"{max(waits):.0f} s" if waits else "-"
        lines.append(f"| {words} | {total_s:.1f} s | {total_s / least:.2f} | {longest} |")
    return lines


def main():
    if sys.argv[1] == "--page":
        with open(sys.argv[2]) as file:
            print("\n".join(table(json.load(file))))
        return
    programs, out, ways = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    results = {"pace": measure_pace()}
    steps = {kind: max(20, int(TARGET_S * (pace or 20))) for kind, pace in results["pace"].items()}
    results["steps"] = steps

    def jobs(more=0):
        """Commands that differ for each `more`."""
        return [command(kind, steps[kind] + more) for _ in range(EACH) for kind in KINDS]

    def keep(name, measure, *words):
        if ways and name not in ways:
            return
        results[name] = value = measure(*words)
        with open(out, "w") as file:
            json.dump(results, file, indent=1)
        print(name, value.get("total_s"), value.get("states") or value, flush=True)

    def keep_colloc(ways_and_jobs, **settings):
        """Each in the same daemon, which knows nothing at first."""
        if ways and not any(name in ways for name, *_ in ways_and_jobs):
            return
        daemon = Daemon(programs, tempfile.mkdtemp(), **settings)
        for name, *words in ways_and_jobs:
            keep(name, daemon.run, *words)
        daemon.stop()

    keep("by-hand", run_by_hand, jobs())
    keep_colloc([("first", jobs()), ("again", jobs()), ("declared", jobs(1), "--memory=8GiB")])
    for name in FIRST[1:]:
        keep_colloc([(name, jobs())])
    keep_colloc([("held", jobs())], starting_max=0)
    keep("one-by-one", run_one_by_one, jobs())
    keep("by-hand-2", run_by_hand, jobs())


if __name__ == "__main__":
    main()
