#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows of a trace of the dissertation at true speed: real imports, the daemon's own times.

    tests/gpu/window_trial.py PROGRAMS OUT.jsonl --gpus=0 --ways=exclusive,magm
                              [--seconds=540] [--from=3600] [--every=4] [--loaders=4]
                              [--alone=15] [--emulated]
    tests/gpu/window_trial.py --compare OUT.jsonl... [--mixes=mixes.csv] [--missing=missing.csv]

One GPU has every fourth task of the 60. What arrived before second --from of the trace and would
not have ended by then, one after the other, waits when the window begins; the rest arrives in time.
No task is shortened: after --seconds the window is over. So a way is judged by its progress, in
seconds of trainings alone for each second of the window, and by its energy. A task takes the share
of the GPU's memory that it took of an A100.

    alone       instead of a way: each training of the window alone, until it has made steps for
                --alone seconds. Progress is measured by these rates; needed once
    exclusive   one task at a time
    magm        MAGM under MPS, each task with its estimate from its script
    predictive  under MPS, with the same estimates
    default     as installed, nothing declared

OUT.jsonl gets a line for each training alone and for each window. Call it twice at a time, on two
GPUs, with two files. --loaders=N: trainings of images read JPEGs, decoded by N processes of each;
0: they have a batch in GPU memory. --emulated: PROGRAMS is a build folder, trainings pretend. Their
memory is not CUDA's, so that none waits for memory: with `default` some run out of it and are run
again, which on a GPU they would not.

--compare prints the ways of some files. With --mixes (tests/gpu/mixes_trial.py with the same
--loaders) it also composes each window from the mixes that were on the GPU in it, second by second:
how far are progress and energy from those that were measured? --missing writes the mixes that the
windows visited and --mixes lacks, for `mixes_trial.py --missing`.
"""
import argparse
import collections
import csv
import json
import os
import statistics
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "python")]
from mixes_trial import Daemon, Machine, task_of  # noqa: E402

from colloc import Client, DaemonError  # noqa: E402
from colloc_fit import study_trace  # noqa: E402
from colloc_fit.measure_mixes import COLUMNS, SEPARATOR, read_table  # noqa: E402
from colloc_fit.measure_mixes import mix_of as mix_of_row  # noqa: E402

TRACE = "philly-60.txt"
WAYS = {
    "exclusive": ("--policy=exclusive",),
    "magm": ("--policy=magm", "--sharing=mps"),
    "predictive": ("--policy=predictive", "--sharing=mps"),
    "default": (),
}
WITH_ESTIMATES = ("magm", "predictive")
SAMPLE_S = 1.0
FIRST_STEPS_S = 60  # chosen: longer than any training takes from its start to its first steps


# ---- which tasks ----


def waiting_at(tasks, second):
    """Tasks that have not ended at this second, when one GPU runs them one after the other; their
    arrivals count from there. A task that runs then is there as a whole."""
    free_s, left = 0.0, []
    for task in tasks:
        free_s = max(free_s, task["at_s"]) + task["alone_s"]
        if free_s > second:
            left.append({**task, "at_s": max(0.0, task["at_s"] - second)})
    return left


def window_tasks(options, gpu_mib):
    """The tasks that arrive before the end of the window."""
    catalogue = {row["task"]: task_of(row) for row in study_trace.rows_of("tasks.txt")}
    every = [
        {**catalogue[row["task"]], "at_s": float(row["arrival_s"])}
        for row in study_trace.rows_of(TRACE)
    ]
    left = waiting_at(every[:: options.every], options.begin)
    for task in left:
        task["mib"] = round(task["memory_share"] * gpu_mib)
    return [task for task in left if task["at_s"] < options.seconds]


# ---- a window ----


class Watch(threading.Thread):
    """What runs, and what the GPU does, once a second."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.rows, self.is_over = client, [], threading.Event()
        self.began = time.monotonic()

    def run(self):
        while not self.is_over.wait(SAMPLE_S):
            gpu, tasks = self.client.gpus()[0], self.client.tasks()
            running = {task["name"]: task["steps"] for task in tasks if task["state"] == "RUNNING"}
            at_s = time.monotonic() - self.began
            self.rows.append([round(at_s, 2), gpu["power_w"], gpu["smact"], running])

    def end(self):
        self.is_over.set()
        self.join()
        return self.rows


def energy_of(rows):
    """Joules from the first sample to the last one; None without power."""
    known = [row for row in rows if row[1] is not None]
    pairs = zip(known, known[1:])
    return sum((a[1] + b[1]) / 2 * (b[0] - a[0]) for a, b in pairs) if len(known) > 1 else None


class Trial:
    """The machine, the options, and the file that gets the lines."""

    def __init__(self, options, machine):
        self.options, self.machine = options, machine

    def write(self, **line):
        with open(self.options.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print({key: value for key, value in line.items() if key != "samples"}, flush=True)

    def submit(self, client, task, way, number):
        memory = f"{task['estimate_mib']}MiB" if way in WITH_ESTIMATES else None
        return client.submit(
            f"exec {self.machine.command_of(task, task['mib'])}",
            name=f"{number}:{task['name']}",
            memory=memory,
            environment=self.machine.env,
            gpus=1,
        )

    def window(self, way, tasks):
        daemon = Daemon(self.machine, WAYS[way])
        client = Client(daemon.socket)
        watch, ids = Watch(client), []
        watch.start()
        for number, task in enumerate(tasks):
            time.sleep(max(0.0, task["at_s"] - (time.monotonic() - watch.began)))
            ids.append(int(self.submit(client, task, way, number)))
        time.sleep(max(0.0, self.options.seconds - (time.monotonic() - watch.began)))
        rows, found = watch.end(), [client.task(task) for task in ids]
        self.end(client, ids)
        daemon.close()
        keys = ("name", "state", "steps", "oom_count", "attempt_count", "mem_peak_mib", "wait_s")
        self.write(
            way=way,
            measured_on=self.machine.kind_and_driver(),
            seconds=self.options.seconds,
            begin=self.options.begin,
            loaders=self.options.loaders,
            energy_j=energy_of(rows),
            tasks=[{key: task.get(key) for key in keys} for task in found],
            samples=rows,
        )

    @staticmethod
    def end(client, ids):
        for task in ids:
            try:
                client.cancel(task)
            except DaemonError:
                pass  # it has ended
        for task in ids:
            client.wait(task, timeout_s=120)

    def alone(self, task):
        """Steps a second of a training that has the GPU for itself."""
        daemon = Daemon(self.machine, WAYS["exclusive"])
        client = Client(daemon.socket)
        number = int(self.submit(client, task, "exclusive", 0))
        ends, rate, power = time.monotonic() + FIRST_STEPS_S, None, []
        while time.monotonic() < ends and not client.task(number)["steps"]:
            if client.task(number)["ended_at"] is not None:
                raise SystemExit(f"{task['name']} ended: {client.logs(number).decode()[-2000:]}")
            time.sleep(0.25)
        first, began = client.task(number)["steps"], time.monotonic()
        while first and time.monotonic() < began + self.options.alone:
            time.sleep(SAMPLE_S)
            power.append(client.gpus()[0]["power_w"])
        if first:
            rate = (client.task(number)["steps"] - first) / (time.monotonic() - began)
        self.end(client, [number])
        daemon.close()
        watts = [value for value in power if value is not None]
        self.write(
            alone=task["name"],
            steps_per_s=rate,
            power_w=statistics.fmean(watts) if watts else None,
            loaders=self.options.loaders,
        )


def estimate_each(machine, tasks):
    """What `colloc estimate` says of each script, and the memory that fills up the task's share."""
    for task in tasks:
        estimate = machine.estimated_mib(task)
        task["estimate_mib"] = max(estimate or 0, task["mib"])


def measure(options):
    with tempfile.TemporaryDirectory(prefix="colloc-window-") as scratch:
        machine = Machine(options, scratch)
        try:
            tasks = window_tasks(options, machine.gpu_mib())
            estimate_each(machine, tasks)
            trial = Trial(options, machine)
            for way in options.ways.split(","):
                if way == "alone":
                    for task in {task["name"]: task for task in tasks}.values():
                        trial.alone(task)
                else:
                    trial.window(way, tasks)
        finally:
            machine.close()
    return 0


# ---- comparison ----


def read(paths):
    """Lines of several files: rate alone of each training, and the windows."""
    alone, windows = {}, []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
        except (OSError, ValueError) as error:
            raise SystemExit(f"{path}: {error}") from None
        for line in lines:
            if "alone" in line:
                alone[line["alone"]] = line["steps_per_s"]
            else:
                windows.append(line)
    return alone, windows


def training_of(name):
    """ "3:vgg16-b128" is the fourth task of the window."""
    return name.split(":", 1)[1]


def progress_of(window, alone):
    """Seconds of trainings alone that the window was worth; None where a rate is not known."""
    total = 0.0
    for task in window["tasks"]:
        rate = alone.get(training_of(task["name"]))
        if task["steps"] and not rate:
            return None
        total += (task["steps"] or 0) / rate if rate else 0
    return total


def read_mixes(path, windows):
    """Sorted trainings -> (speeds, watts), of mixes under MPS that did not crash. Those of another
    GPU or driver than the windows' are refused."""
    places, found = {tuple(window["measured_on"]) for window in windows}, {}
    for line, row in enumerate(read_table(path, *COLUMNS), 2):
        place = row["gpu"], row["driver"]
        if places - {place}:
            of_windows = " and ".join(f"{gpu} with driver {of}" for gpu, of in sorted(places))
            raise SystemExit(f"{path}:{line}: measured on {' with driver '.join(place)}, and the "
                             f"windows on {of_windows}: measure the mixes there")  # fmt: skip
        if row["crashed"] or row["sharing"] != "mps":
            continue
        try:
            speeds = [float(speed) for speed in row["speeds"].split(SEPARATOR)]
            found[mix_of_row(row)[1]] = speeds, float(row["power_w"] or "nan")
        except ValueError as error:
            raise SystemExit(f"{path}:{line}: {error}") from None
    return found


def compose(window, mixes):
    """(progress, joules, share of the time whose mix was measured) of what was on the GPU."""
    progress = joules = known_s = busy_s = 0.0
    rows = window["samples"]
    for row, following in zip(rows, rows[1:]):
        passed_s = following[0] - row[0]
        mix = mix_of(row)
        if not mix:
            joules += (row[1] or 0) * passed_s  # idle, or starting: as it was
            continue
        busy_s += passed_s
        if mix in mixes:
            known_s += passed_s
            progress += sum(mixes[mix][0]) * passed_s
            joules += mixes[mix][1] * passed_s
    return progress, joules, known_s / busy_s if busy_s else 0.0


def mix_of(row):
    """The trainings that make steps in a sample, sorted."""
    return tuple(sorted(training_of(name) for name, steps in row[3].items() if steps))


def missing_of(windows, mixes):
    """(mix, seconds) of those not known, the longest first."""
    lasted_s = collections.Counter()
    for window in windows:
        for row, following in zip(window["samples"], window["samples"][1:]):
            lasted_s[mix_of(row)] += following[0] - row[0]
    return [(mix, lasted) for mix, lasted in lasted_s.most_common() if mix and mix not in mixes]


def write_missing(path, missing):
    """As `colloc simulate --mixes-missing` does."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow([*COLUMNS, "simulated_s"])
        for mix, lasted in missing:
            table.writerow(["", "", "mps", SEPARATOR.join(mix), "", "", "", "", round(lasted)])


def percent_off(value, truth):
    return f"{100 * (value / truth - 1):+.1f} %" if truth else "-"


def compare(paths, mixes_path, missing_path):
    alone, windows = read(paths)
    mixes = read_mixes(mixes_path, windows) if mixes_path else {}
    missing = missing_of(windows, mixes)
    if missing_path:
        write_missing(missing_path, missing)
    elif mixes_path and missing:
        longest = SEPARATOR.join(missing[0][0])
        print(f"{mixes_path} lacks {len(missing)} mixes, the longest is {longest}: "
              "--missing=FILE lists them", file=sys.stderr)  # fmt: skip
    print("| way | progress a second | kJ | kJ for 1,000 s of progress | started | crashes "
          "| mixes known | composed progress | composed energy |")  # fmt: skip
    print("|" + " --- |" * 9)
    for window in windows:
        progress, energy = progress_of(window, alone), window["energy_j"]
        composed, joules, known = compose(window, mixes)
        ran = [task for task in window["tasks"] if task["attempt_count"]]
        cells = [
            window["way"],
            f"{progress / window['seconds']:.2f}" if progress is not None else "unknown",
            f"{energy / 1000:.0f}" if energy else "unknown",
            f"{energy / progress:.0f}" if energy and progress else "unknown",
            str(len(ran)),
            str(sum(task["oom_count"] for task in window["tasks"])),
            f"{100 * known:.0f} %" if mixes else "",
            percent_off(composed, progress) if known > 0.99 else "",
            percent_off(joules, energy) if known > 0.99 else "",
        ]
        print("| " + " | ".join(cells) + " |")
    return 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", metavar="PROGRAMS OUT.jsonl")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--mixes", metavar="FILE")
    parser.add_argument("--missing", metavar="FILE")
    parser.add_argument("--gpus", default="0", help="index of the GPU")
    parser.add_argument("--ways", default="exclusive,magm,predictive,default")
    parser.add_argument("--seconds", type=float, default=540, help="of each window")
    parser.add_argument("--from", dest="begin", type=float, default=3600, metavar="SECOND")
    parser.add_argument("--every", type=int, default=4, metavar="N")
    parser.add_argument("--loaders", type=int, default=4, metavar="N")
    parser.add_argument("--alone", type=float, default=15, metavar="SECONDS")
    parser.add_argument("--emulated", action="store_true")
    options = parser.parse_args()
    if options.compare:
        return compare(options.files, options.mixes, options.missing)
    wrong = [way for way in options.ways.split(",") if way not in WAYS and way != "alone"]
    if len(options.files) != 2 or wrong:
        parser.error(f"no way {wrong[0]}" if wrong else "give PROGRAMS and OUT.jsonl")
    options.programs, options.out = options.files
    options.fork = False
    return measure(options)


if __name__ == "__main__":
    sys.exit(main())
