#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the mixes that the dissertation's 60-task trace visits, on one GPU at true speed
(docs/mixes.md), for the tables of scripts/study-mixes.

    tests/gpu/mixes_trial.py PROGRAMS FOLDER [--seconds=S] [--gpus=0] [--fork] [--emulated]
                             [--plan=FOLDER] [--missing=FILE] [--loaders=N]

PROGRAMS: a folder made by scripts/bundle; with --emulated a build folder: the GPU is the emulator's
and the trainings pretend, so that the program itself can be tried without a GPU. Without it, a GPU
and a python3 with PyTorch, torchvision, timm and transformers are needed; with --fork also root:
trainings start with these libraries loaded (workloads/fork_server.py), in 1 s instead of 9.

FOLDER gets programs.csv, mixes.csv, a row when it is known, and alone.csv, the steps a second of
each training alone on this GPU. Started again with the same FOLDER it goes on. The rows of the plan
(scripts/study-mixes --plan) are simulated one after the other with what is measured so far, and
what a row visits is measured before the next one; without --plan it is made here, without the rows
of the estimators of COLLOC_EVAL_DATA. Trainings have a batch in GPU memory, with --loaders those of
images read JPEGs; one of two GPUs runs as one of its two processes.
"""
import argparse
import csv
import os
import shlex
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(TOP, "python")]
from colloc_fit import study_mixes, study_trace  # noqa: E402
from colloc_fit.machine import ForkServer, nvidia_smi, wait_for_daemon  # noqa: E402
from colloc_fit.measure_mixes import SEPARATOR, read_table  # noqa: E402

EMULATED_MIB = 143771  # of the emulator's H200
FOREVER = ("--epochs=1", "--steps=100000000")
# Every training starts at once, beside whatever is there.
SETTINGS = ("--policy=rr", "--starting-max=64", "--smact-max=1", "--min-free=0", "--margin=0",
            "--preload=yes", "--sample-period=200ms", "--window=1s")  # fmt: skip
ENDING_S = 20  # kept for the end of the last mix
BETWEEN_S = 9  # of a mix beside its window, with --fork
WINDOW_S = (5, 60)  # chosen: of a mix, where the time for all is divided
FOLDERS = {"collocd": "src/daemon", "colloc": "src/cli", "colloc-shim": "src/exec"}


class Machine:
    """The programs, the GPU, and what a training's command is."""

    def __init__(self, options, folder):
        self.options, self.folder, self.estimates = options, folder, {}
        self.env, self.fork_server, self.loading = dict(os.environ), None, None
        if options.loaders and not options.emulated:
            self.loading = study_trace.Loading(options.loaders, 1)
        if options.emulated:
            self._emulate()
        elif options.fork:
            library = self.program("libcolloc-preload.so")
            self.fork_server = ForkServer(study_trace.LIBRARIES, library)

    def _emulate(self):
        emulator = os.path.abspath(os.path.join(self.options.programs, "emulator"))
        self.env.update(
            PATH=f"{emulator}:{os.environ['PATH']}",
            LD_LIBRARY_PATH=emulator,
            COLLOC_EMULATOR=f"{self.folder}/gpus",
        )
        command = [f"{emulator}/colloc-emulator", "create", "--gpus=1xH200", f"{self.folder}/gpus"]
        subprocess.run(command, env=self.env, check=True)

    def program(self, name):
        inner = FOLDERS.get(name, "src/preload") if self.options.emulated else ""
        return os.path.abspath(os.path.join(self.options.programs, inner, name))

    def kind_and_driver(self):
        if self.options.emulated:
            return "H200", "emulated"
        return study_trace.kind_of(nvidia_smi("name")[0]), nvidia_smi("driver_version")[0]

    def gpu_mib(self):
        return EMULATED_MIB if self.options.emulated else float(nvidia_smi("memory.total")[0])

    def words_of(self, task):
        """What workloads/train.py is called with."""
        is_image = self.loading and task["is_imagenet"]
        return [*task["arguments"], *(self.loading.options() if is_image else ())]

    def command_of(self, task, mib=None, *more):
        """The command of a training, for sh. mib: the memory that it takes in the end at least;
        more: options of workloads/train.py."""
        if self.options.emulated:
            mib = mib or task["memory_share"] * EMULATED_MIB
            return (
                f"colloc-pretend-train --memory-mib={mib:.0f} --smact={task['smact']} "
                "--ramp-seconds=1 --seconds=100000 --steps=1000000"
            )
        launch = self.fork_server.command() if self.fork_server else [sys.executable]
        ballast = (
            [f"--ballast-gib={max(0, mib - self.estimated_mib(task)) / 1024:.2f}"] if mib else []
        )
        words = [*self.words_of(task), *FOREVER, *ballast, *more]
        return " ".join([*launch, study_trace.TRAIN, *words])

    def estimated_mib(self, task):
        """What the training takes by its script; 0 where that is not followed."""
        if self.options.emulated:
            return 0
        if task["arguments"] not in self.estimates:
            words = {**task, "data": self.words_of(task)[len(task["arguments"]) :]}
            kind = self.kind_and_driver()[0]
            found = study_trace.estimated_mib(self.options.programs, words, kind)
            self.estimates[task["arguments"]] = found or 0
        return self.estimates[task["arguments"]]

    def close(self):
        if self.fork_server:
            self.fork_server.close()
        if self.loading:
            self.loading.close()


def task_of(row):
    """A row of tasks.txt as study_trace has its tasks."""
    task = study_trace.task_of(row, 0, 1, study_trace.catalogue_arguments_of)
    return {**task, "smact": row["smact"]}


def write_programs(machine, path):
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("training", "command"))
        for row in study_trace.rows_of("tasks.txt"):
            command = machine.command_of(task_of(row), None, "--report-steps")
            table.writerow((row["task"], command))


class Row:
    """A row of the plan: a way of placing the trace's tasks."""

    def __init__(self, machine, plan, folder, name, words):
        self.machine, self.plan, self.folder, self.name, self.words = (
            machine, plan, folder, name, words,
        )  # fmt: skip

    def command(self):
        """Writes missing.csv by what mixes.csv has."""
        mixes = f"{self.folder}/mixes.csv"
        known = [f"--mixes={mixes}"] if os.path.exists(mixes) else []
        missing = f"--mixes-missing={self.folder}/missing.csv"
        return [self.machine.program("colloc"), *self.words, *known, missing]

    def write_missing(self):
        """Returns what the simulator says of the mixes."""
        done = subprocess.run(
            self.command(), cwd=self.plan, env=self.machine.env, stdout=subprocess.PIPE, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"colloc simulate ended with {done.returncode}: it says why above")
        said = [line for line in done.stdout.splitlines() if line.startswith("Mixes")]
        return " ".join([f"{self.name}:", *said])


class Daemon:
    """One collocd on the machine's GPU."""

    def __init__(self, machine, settings):
        folder = tempfile.mkdtemp(dir=machine.folder)
        self.socket = os.path.join(folder, "s")
        self.log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [machine.program("collocd"), f"--socket={self.socket}",
             f"--state-dir={folder}/state", f"--shim={machine.program('colloc-shim')}",
             f"--preload-library={machine.program('libcolloc-preload.so')}",
             f"--gpus={machine.options.gpus}", *settings],
            stdin=subprocess.DEVNULL, stderr=self.log, env=machine.env,
        )  # fmt: skip
        colloc = os.path.dirname(machine.program("colloc"))
        if not wait_for_daemon(colloc, self.socket, self.process):
            self.log.seek(0)
            raise SystemExit("collocd does not answer: " + self.log.read()[-3000:])

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def window_of(missing, within_s):
    """Seconds of each mix, and of each training alone, so that all of them fit."""
    mixes = [row["trainings"] for row in read_table(missing, "trainings")]
    count = len(mixes) + len({name for mix in mixes for name in mix.split(SEPARATOR)})
    least, most = WINDOW_S
    return min(max(within_s / max(count, 1) - BETWEEN_S, least), most)


def measure(machine, daemon, folder, missing, within_s, *more):
    """scripts/measure-mixes with the files of the folder. Returns its exit code."""
    options, (kind, driver) = machine.options, machine.kind_and_driver()
    window_s = options.window or window_of(missing, within_s)
    return subprocess.run(
        [sys.executable, os.path.join(TOP, "scripts", "measure-mixes"),
         f"--programs={folder}/programs.csv", f"--gpu-name={kind}", f"--driver={driver}",
         f"--window={window_s:.1f}", f"--start={options.start}", f"--within={within_s:.0f}",
         f"--alone={folder}/alone.csv", *more, missing, f"{folder}/mixes.csv"],
        env={**machine.env, "COLLOC_SOCKET": daemon.socket}, check=False,
    ).returncode  # fmt: skip


def measure_plan(machine, daemon, folder, ends):
    """The mixes of each row of the plan, until the time is over. Returns 1 if some are missing."""
    plan = os.path.abspath(machine.options.plan or f"{folder}/plan")
    if not os.path.exists(plan):
        study_mixes.write_plan(plan, machine.kind_and_driver()[0])
    code = 0
    for name, words in study_mixes.read_plan(plan):
        row = Row(machine, plan, folder, name, words)
        print(row.write_missing(), flush=True)
        refresh = ["env", f"--chdir={plan}", *row.command()]
        # the table that the first mix makes
        refresh += [] if "--mixes=" in " ".join(refresh) else [f"--mixes={folder}/mixes.csv"]
        within_s = ends - time.monotonic() - ENDING_S
        code |= measure(machine, daemon, folder, f"{folder}/missing.csv", within_s,
                        f"--refresh={shlex.join(refresh)}")  # fmt: skip
        print(row.write_missing(), flush=True)
    return code


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", metavar="PROGRAMS")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--gpus", default="0", help="index of the GPU")
    parser.add_argument("--fork", action="store_true")
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--loaders", type=int, default=0, help="processes that decode JPEGs")
    parser.add_argument("--plan", metavar="FOLDER", help="rows by scripts/study-mixes --plan")
    parser.add_argument("--missing", metavar="FILE", help="these mixes, not those of a plan")
    parser.add_argument(
        "--window",
        type=float,
        default=5,
        help="seconds of each mix; 0: as long as there is time for",
    )
    parser.add_argument("--start", type=float, default=40, help="seconds until its first steps")
    options = parser.parse_args()
    if options.missing:
        read_table(options.missing, "gpu", "sharing", "trainings")
    ends, folder = time.monotonic() + options.seconds, os.path.abspath(options.folder)
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="colloc-mixes-") as scratch:
        machine = Machine(options, scratch)
        write_programs(machine, f"{folder}/programs.csv")
        daemon = Daemon(machine, SETTINGS)
        try:
            if options.missing:
                within_s = ends - time.monotonic() - ENDING_S
                code = measure(machine, daemon, folder, options.missing, within_s)
            else:
                code = measure_plan(machine, daemon, folder, ends)
        finally:
            daemon.close()
            machine.close()
    return code


if __name__ == "__main__":
    sys.exit(main())
