#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real collocd over eight emulated GPUs in a temporary folder, under load (tests/bench/load.c).

usage: bench_daemon.py BUILD_FOLDER [starts|rate|peers|cli|queue|people|idle|steps|monitor ...]
Prints what tests/bench/bench.h describes. Task-spooler is run beside it where `tsp` is installed.
"""

import getpass
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))

from colloc import Connection  # noqa: E402

GPUS = 8
STARTS = 150
PEER_STARTS = 60
CLIENTS, QUEUED = 8, 10000
USERS, TASKS_OF_USER, FIRST_UID = 200, 100, 64100
IDLE_S = 20
TRAININGS = 64
SHORT_RUNS = 20
UNKNOWN, RATE_LIMIT_S = 100, 20


def quantile(values, fraction):
    values = sorted(values)
    return values[min(int(fraction * len(values)), len(values) - 1)]


def row(what, unit, target, median, p99=None):
    print(
        "\t".join([what, unit, target, f"{median:.4g}", "" if p99 is None else f"{p99:.4g}"]),
        flush=True,
    )


def row_of(what, unit, target, values):
    row(what, unit, target, quantile(values, 0.5), quantile(values, 0.99))


class BenchDaemon:
    """A folder with pretend GPUs, and the daemon there."""

    def __init__(self, build, kind="A100-40GB", settings=()):
        self.settings = settings
        self.build = os.path.abspath(build)
        self.folder = tempfile.mkdtemp(prefix="colloc-bench-")
        self.env = {
            **os.environ,
            "COLLOC_EMULATOR": os.path.join(self.folder, "gpus"),
            "LD_LIBRARY_PATH": os.path.join(self.build, "emulator"),
            "COLLOC_SOCKET": os.path.join(self.folder, "socket"),
        }
        self.run(
            "emulator/colloc-emulator",
            "create",
            f"--gpus={GPUS}x{kind}",
            self.env["COLLOC_EMULATOR"],
        )
        self.stamp = os.path.join(self.build, "tests/bench/stamp")
        self.daemon = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder)

    def run(self, program, *arguments):
        done = subprocess.run(
            [os.path.join(self.build, program), *arguments],
            env=self.env,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout

    def start(self):
        """Returns the seconds until it answered."""
        before = time.monotonic()
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.daemon = subprocess.Popen(
                [
                    os.path.join(self.build, "src/daemon/collocd"),
                    f"--socket={self.env['COLLOC_SOCKET']}",
                    f"--state-dir={self.folder}/state",
                    f"--shim={self.build}/src/exec/colloc-shim",
                    *self.settings,
                ],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        while subprocess.run(
            [os.path.join(self.build, "src/cli/colloc"), "info"],
            env=self.env,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ).returncode:
            if self.daemon.poll() is not None or time.monotonic() - before > 30:
                raise RuntimeError("collocd does not come up")
        return time.monotonic() - before

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait()

    def fill_gpus(self):
        """External memory on the GPUs, so that no task starts. Waits until the samples show it."""
        for gpu in range(GPUS):
            self.run("emulator/colloc-emulator", "set", str(gpu), "foreign-mib=39000")
        deadline = time.monotonic() + 30
        while any(
            (gpu["mem_used_mib"] or 0) < 39000
            for gpu in json.loads(self.run("src/cli/colloc", "gpus", "--json"))["gpus"]
        ):
            if time.monotonic() > deadline:
                raise RuntimeError("the GPUs do not fill")

    def load(self, *arguments):
        return [
            [float(word) for word in line.split()]
            for line in self.run(
                "tests/bench/load",
                arguments[0],
                self.env["COLLOC_SOCKET"],
                *(str(argument) for argument in arguments[1:]),
            ).splitlines()
        ]

    def resident_mib(self):
        """RSS and PSS."""
        with open(f"/proc/{self.daemon.pid}/smaps_rollup", encoding="ascii") as file:
            kib = {line.split()[0]: int(line.split()[1]) for line in file if line.endswith("kB\n")}
        return kib["Rss:"] / 1024, kib["Pss:"] / 1024

    def activity(self):
        """Seconds on a core so far, and how often it went to sleep."""
        seconds = switches = 0
        for thread in os.listdir(f"/proc/{self.daemon.pid}/task"):
            with open(f"/proc/{self.daemon.pid}/task/{thread}/schedstat", encoding="ascii") as file:
                seconds += int(file.read().split()[0]) / 1e9
            with open(f"/proc/{self.daemon.pid}/task/{thread}/status", encoding="ascii") as file:
                switches += sum(
                    int(line.split()[1]) for line in file if line.startswith("voluntary")
                )
        return seconds, switches

    def time_ms(self, program, *arguments):
        before = time.monotonic()
        self.run(program, *arguments)
        return (time.monotonic() - before) * 1e3


def measure_starts(build):
    with BenchDaemon(build) as daemon:
        row_of(
            "a task that fits: reply to submit until its first instruction",
            "ms",
            "p99 <= 50",
            [line[0] for line in daemon.load("start", daemon.stamp, STARTS)],
        )


def started_a_second(build, *settings):
    """Of UNKNOWN tasks of which nothing is known, all submitted at once: those started within
    RATE_LIMIT_S, a second. They run on after that."""
    with BenchDaemon(build, kind="H200", settings=settings) as daemon:
        at = os.path.join(daemon.folder, "began")
        os.mkdir(at)
        begin = time.monotonic()
        script = f"touch {at}/$COLLOC_TASK_ID; exec sleep {2 * RATE_LIMIT_S}"
        tasks = f"--array=1-{UNKNOWN}"
        daemon.run(
            "src/cli/colloc", "submit", tasks, "--output=/dev/null", "--", "sh", "-c", script
        )
        started = 0
        while started < UNKNOWN and time.monotonic() - begin < RATE_LIMIT_S:
            started = len(os.listdir(at))
            time.sleep(0.01)
        took_s = time.monotonic() - begin
        daemon.run("src/cli/colloc", "cancel", "--user=" + getpass.getuser())
        return started / took_s


def measure_rate(build):
    what = f"{UNKNOWN} unknown tasks submitted as an array on {GPUS} GPUs: started"
    row(what, "/s", "median >= 20", started_a_second(build))
    row(
        "the same, each held off until the one before has its memory",
        "/s",
        "",
        started_a_second(build, "--starting-max=0"),
    )


def start_ms(submit, read_stamp):
    """From the end of the submitting program to the first instruction of its task."""
    task = (
        subprocess.run(submit, check=True, stdout=subprocess.PIPE, text=True)
        .stdout.split()[-1]
        .strip(".")
    )
    returned_ns = time.time_ns()
    return (int(read_stamp(task)) - returned_ns) / 1e6


def measure_peers(build):
    """Two programs compared: each submits a task that prints when it began, and waits for it."""
    with BenchDaemon(build) as daemon:
        os.environ.update(
            daemon.env, TS_SOCKET=os.path.join(daemon.folder, "tsp"), TMPDIR=daemon.folder
        )
        colloc = os.path.join(daemon.build, "src/cli/colloc")

        def read_colloc(task):
            daemon.run("src/cli/colloc", "wait", task)
            return daemon.run("src/cli/colloc", "logs", task)

        row_of(
            "colloc submit: return until the task's first instruction",
            "ms",
            "p99 <= 50",
            [
                start_ms([colloc, "submit", "--", daemon.stamp], read_colloc)
                for _ in range(PEER_STARTS)
            ],
        )
        if shutil.which("tsp"):
            measure_task_spooler(daemon)


def measure_task_spooler(daemon):
    def read_stamp(task):
        subprocess.run(["tsp", "-w", task], check=True, stdout=subprocess.DEVNULL)
        return subprocess.check_output(["tsp", "-c", task])

    try:
        row_of(
            "task-spooler's tsp: the same",
            "ms",
            "",
            [start_ms(["tsp", daemon.stamp], read_stamp) for _ in range(PEER_STARTS)],
        )
    finally:
        subprocess.run(["tsp", "-K"], check=True)


def measure_cli(build):
    with BenchDaemon(build) as daemon:
        row_of(
            "colloc version: a program's start",
            "ms",
            "",
            [daemon.time_ms("src/cli/colloc", "version") for _ in range(SHORT_RUNS)],
        )
        row_of(
            "colloc queue, nothing queued",
            "ms",
            "",
            [daemon.time_ms("src/cli/colloc", "queue") for _ in range(SHORT_RUNS)],
        )


def measure_queue(build):
    """10,000 submitted at once by 8 clients, and what is then."""
    with BenchDaemon(build) as daemon:
        daemon.fill_gpus()
        ((rate, median_us, p99_us),) = daemon.load("submit", CLIENTS, QUEUED)
        row(f"durable submits, {CLIENTS} clients, {QUEUED:,} tasks", "/s", "median >= 2000", rate)
        row("a submit among them, submit to reply", "ms", "", median_us / 1e3, p99_us / 1e3)
        rss, pss = daemon.resident_mib()
        row(f"collocd with {QUEUED:,} queued, resident", "MiB", "median < 40", rss)
        row("the same, its proportional share (PSS)", "MiB", "", pss)
        row_of(
            f"colloc queue, {QUEUED:,} queued",
            "ms",
            "",
            [daemon.time_ms("src/cli/colloc", "queue") for _ in range(3)],
        )
        row(
            f"colloc queue has asked for {QUEUED:,}: resident",
            "MiB",
            "median < 40",
            daemon.resident_mib()[0],
        )
        daemon.stop()
        row(f"restart with {QUEUED:,} queued, until it answers", "ms", "", daemon.start() * 1e3)
        row(
            f"restarted with {QUEUED:,} queued: resident",
            "MiB",
            "median < 40",
            daemon.resident_mib()[0],
        )


def submit_as(daemon, uid, count, **members):
    """Seconds of each submission, by one connection of the user."""
    body = json.dumps(
        {"script": "#!/bin/sh\ntrue\n", "cwd": "/", "environment": {"PATH": "/bin"}, **members}
    )
    os.seteuid(uid)
    try:
        connection = Connection(daemon.env["COLLOC_SOCKET"], 600)
        connection.connect()
    finally:
        os.seteuid(0)
    took = []
    for _ in range(count):
        before = time.monotonic()
        connection.request("POST", "/v1/tasks", body)
        reply = connection.getresponse()
        data = reply.read()
        took.append((time.monotonic() - before) * 1e3)
        if reply.status != 201:
            raise RuntimeError(f"submit: {reply.status} {data}")
    connection.close()
    return took


def measure_queue_command(daemon, queued):
    """Its time, and the processor time of both sides, which other programs hardly change."""
    runs, daemon_s, client_s = 3, daemon.activity()[0], children_cpu_s()
    took = [daemon.time_ms("src/cli/colloc", "queue") for _ in range(runs)]
    daemon_s, client_s = daemon.activity()[0] - daemon_s, children_cpu_s() - client_s
    row_of(f"colloc queue, {queued:,} queued", "ms", "", took)
    row("the same: processor time of collocd", "ms", "", daemon_s / runs * 1e3)
    row("the same: processor time of colloc", "ms", "", client_s / runs * 1e3)


def measure_people(build):
    """200 users with 100 tasks each, and an array of 10,000. As root."""
    if os.geteuid() != 0:
        print("people: needs root to become other users", file=sys.stderr)
        return
    # users that the machine does not know are counted as one
    with BenchDaemon(build, settings=[f"--tasks-per-user={5 * QUEUED}"]) as daemon:
        os.chmod(daemon.folder, 0o755)
        daemon.fill_gpus()
        took, before_s = [], daemon.activity()[0]
        for user in range(USERS):
            took += submit_as(daemon, FIRST_UID + user, TASKS_OF_USER)
        queued = USERS * TASKS_OF_USER
        row_of(f"a submit, {USERS} users, up to {queued:,} queued", "ms", "", took)
        row(
            "the same: processor time of collocd",
            "ms",
            "",
            (daemon.activity()[0] - before_s) / queued * 1e3,
        )
        row(
            f"collocd with {queued:,} queued, resident",
            "MiB",
            "median < 60",
            daemon.resident_mib()[0],
        )
        measure_queue_command(daemon, queued)
        row(
            f"colloc queue has asked for {queued:,}: resident",
            "MiB",
            "median < 60",
            daemon.resident_mib()[0],
        )
        (array,) = submit_as(daemon, FIRST_UID, 1, array=f"0-{QUEUED - 1}%8")
        row(f"a submit of an array of {QUEUED:,}", "ms", "", array)
        row_of(
            f"a submit behind {queued + QUEUED:,}",
            "ms",
            "",
            submit_as(daemon, FIRST_UID + 1, TASKS_OF_USER),
        )
        row("collocd with these, resident", "MiB", "median < 60", daemon.resident_mib()[0])
        busy_s = daemon.activity()[0]
        took_ms = daemon.time_ms("src/cli/colloc", "cancel", str(queued + 1))
        row(f"the cancel of the array of {QUEUED:,}", "ms", "", took_ms)
        row("the same: processor time of collocd", "ms", "", (daemon.activity()[0] - busy_s) * 1e3)


def measure_idle(build):
    with BenchDaemon(build) as daemon:
        daemon.run("src/cli/colloc", "gpus")
        before = daemon.activity()
        time.sleep(IDLE_S)
        after = daemon.activity()
        row(
            f"idle collocd, {GPUS} GPUs, one sample a second: of one core",
            "%",
            "median < 0.2",
            (after[0] - before[0]) / IDLE_S * 100,
        )
        row("the same: goes to sleep", "/s", "", (after[1] - before[1]) / IDLE_S)


def train(daemon, gpu):
    """Busy GPUs, so that there is activity to attribute."""
    return subprocess.Popen(
        [
            os.path.join(daemon.build, "emulator/colloc-pretend-train"),
            "--memory-mib=4000",
            "--seconds=100000",
            "--smact=0.6",
        ],
        env={**daemon.env, "CUDA_VISIBLE_DEVICES": str(gpu)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def trainings_cost(build, options):
    """Of a core, in per cent: collocd with TRAININGS tasks of one process each, all known to it."""
    settings = ["--tasks-per-gpu=16", "--starting-max=8", "--policy=first-fit"]
    with BenchDaemon(build, kind="H200", settings=settings) as daemon:
        training = os.path.join(daemon.build, "emulator/colloc-pretend-train")
        daemon.run(
            "src/cli/colloc",
            "submit",
            f"--array=1-{TRAININGS}",
            "--memory=1G",
            "--smact=0.1",
            "--output=/dev/null",
            "--",
            training,
            "--memory-mib=500",
            "--seconds=100000",
            "--smact=0.1",
            *options,
        )
        deadline = time.monotonic() + 120
        while True:
            tasks = json.loads(daemon.run("src/cli/colloc", "queue", "--json"))["tasks"]
            ready = [t for t in tasks if t["steps_per_s"] or (not options and t["mem_used_mib"])]
            if len(ready) == TRAININGS:
                break
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(ready)} of {TRAININGS} trainings run")
            time.sleep(0.5)
        before = daemon.activity()[0]
        time.sleep(IDLE_S)
        cost = (daemon.activity()[0] - before) / IDLE_S * 100
        daemon.run("src/cli/colloc", "cancel", "--user=" + getpass.getuser())
        return cost


def measure_steps(build):
    """The same trainings with ten steps a second and without: the difference is the tracking."""
    without = trainings_cost(build, [])
    tracked = trainings_cost(build, ["--steps=1000000"])
    what = f"speed tracking of {TRAININGS} processes: of one core"
    row(what, "%", "median < 0.2", max(0, tracked - without))
    row(f"collocd, {GPUS} GPUs, {TRAININGS} trainings, no steps", "%", "", without)


def children_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def spawn_each_second(daemon, program, *arguments):
    """Seconds on a core that looks by programs of their own cost, one a second."""
    before, end = children_cpu_s(), time.monotonic() + IDLE_S
    while time.monotonic() < end:
        next_look = time.monotonic() + 1
        daemon.run(program, *arguments)
        time.sleep(max(0, next_look - time.monotonic()))
    return children_cpu_s() - before


def measure_recorder(daemon):
    """The monitor alone: `colloc record` of a command that does nothing."""
    path = os.path.join(daemon.folder, "summary")
    command = [
        os.path.join(daemon.build, "src/cli/colloc"),
        "record",
        "--interval=100ms",
        "--json",
        f"--summary={path}",
        "--",
        "sleep",
        str(IDLE_S),
    ]
    with subprocess.Popen(command, env=daemon.env, stdin=subprocess.DEVNULL) as recorder:
        time.sleep(IDLE_S - 2)
        own_kib = private_kib(recorder.pid)
    with open(path, encoding="utf-8") as file:
        summary = json.load(file)
    row(
        f"the monitor alone (colloc record), {GPUS} GPUs, 10 looks a second: of one core",
        "%",
        "median < 0.5",
        summary["monitor_cpu_s"] / summary["elapsed_s"] * 100,
    )
    row(
        "the same: private memory (pages that it wrote)",
        "MiB",
        "median < 4",
        own_kib / 1024,
    )


def private_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty:"))


def measure_monitor(build):
    """Sampling busy GPUs ten times a second; the reference starts a program each second."""
    with BenchDaemon(build, kind="H200", settings=["--sample-period=100ms"]) as daemon:
        tasks = [train(daemon, gpu) for gpu in range(GPUS)]
        try:
            before = daemon.activity()
            time.sleep(IDLE_S)
            row(
                f"collocd, {GPUS} busy GPUs, 10 looks a second: of one core",
                "%",
                "",
                (daemon.activity()[0] - before[0]) / IDLE_S * 100,
            )
            daemon.stop()
            measure_recorder(daemon)
            for what, program, *arguments in (
                ("an NVML program (gpu-probe, as nvidia-smi)", "tests/system/gpu-probe"),
                (
                    "dcgmi dmon -c 1 (emulated)",
                    "emulator/dcgmi",
                    "dmon",
                    "-e",
                    "203,1001,1002,1003,155",
                    "-c",
                    "1",
                ),
            ):
                row(
                    f"instead: {what} started once a second: of one core",
                    "%",
                    "",
                    spawn_each_second(daemon, program, *arguments) / IDLE_S * 100,
                )
            daemon.start()
        finally:
            for task in tasks:
                task.kill()
                task.wait()


MEASURES = {
    "starts": measure_starts,
    "rate": measure_rate,
    "peers": measure_peers,
    "cli": measure_cli,
    "queue": measure_queue,
    "people": measure_people,
    "idle": measure_idle,
    "steps": measure_steps,
    "monitor": measure_monitor,
}


def main():
    if len(sys.argv) < 2 or any(name not in MEASURES for name in sys.argv[2:]):
        print(__doc__, file=sys.stderr)
        return 2
    for name in sys.argv[2:] or MEASURES:
        MEASURES[name](sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
