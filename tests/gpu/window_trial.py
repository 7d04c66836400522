#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows of a trace of the dissertation at true speed: real imports, the daemon's own times.

    tests/gpu/window_trial.py PROGRAMS OUT.jsonl --gpus=0 --ways=exclusive,magm
                              [--seconds=540] [--from=3600] [--every=4] [--loaders=4] [--emulated]
    tests/gpu/window_trial.py --compare OUT.jsonl... [--mixes=mixes.csv] [--missing=missing.csv]

One GPU has every fourth task of the 60. What arrived before second --from of the trace and would
not have ended by then, one after the other, waits when the window begins; the rest arrives in time.
No task is shortened: after --seconds the window is over. So a way is judged by its progress, in
seconds of trainings alone for each second of the window, and by its energy. A task takes the share
of the GPU's memory that it took of an A100.

    alone       each training of the window alone on the GPU, one after the other, with an equal
                part of --seconds: progress is measured by these rates
    exclusive   one task at a time. In nine minutes that is the first task or two, and no other: the
                row of --compare is composed from `alone`, where each training counts for as long as
                the trace has it
    magm        MAGM under MPS, each task with its estimate from its script
    predictive  under MPS, with the same estimates
    default     as installed, nothing declared

OUT.jsonl gets a line for each training alone, and of a window a line when it begins, each second
and at its end, so that a window that is cut off has all until then. Such a one shows its mixes, but
no sums. Call it again with the same file for other ways, or twice at a time, on two GPUs, with two
files. --loaders=N: trainings of images read JPEGs, decoded by N processes of each;
0: they have a batch in GPU memory. --emulated: PROGRAMS is a build folder, trainings pretend. Their
memory is not CUDA's, so that none waits for memory: with `default` some run out of it and are run
again, which on a GPU they would not.

--compare prints the ways of some files. With --mixes (tests/gpu/mixes_trial.py with the same
--loaders) it also composes each window from the mixes that were on the GPU in it, second by second:
how far are progress and energy from those that were measured? --missing writes the mixes that the
windows visited and --mixes lacks, for `mixes_trial.py --missing`, also of one that was cut off.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import os
import signal
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
MEASURE_S = 9  # of a mix by mixes_trial.py --fork, with its start
HEADS = [
    "way",
    "progress a second",
    "kJ",
    "kJ for 1,000 s of progress",
    "started",
    "crashes",
    "mixes known",
    "composed progress",
    "composed energy",
]
STEPS_S = 5  # chosen: a rate of fewer seconds than this is not written


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
    """What runs, how it shares, and what the GPU does, once a second: each row is written at once.
    A row: seconds, W, SMACT, {name: steps} of what runs, and "mps", "streams" or both."""

    def __init__(self, client, write):
        super().__init__(daemon=True)
        self.client, self.write, self.rows = client, write, []
        self.is_over, self.began = threading.Event(), time.monotonic()

    def run(self):
        while not self.is_over.wait(SAMPLE_S):
            gpu, tasks = self.client.gpus()[0], self.client.tasks()
            running = [task for task in tasks if task["state"] == "RUNNING"]
            steps = {task["name"]: task["steps"] for task in running}
            sharing = "+".join(sorted({task["sharing"] for task in running}))
            at_s = round(time.monotonic() - self.began, 2)
            self.rows.append([at_s, gpu["power_w"], gpu["smact"], steps, sharing])
            self.write(sample=self.rows[-1])

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
        if "sample" not in line:
            print(line, flush=True)

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
        self.write(
            window=way,
            measured_on=self.machine.kind_and_driver(),
            seconds=self.options.seconds,
            begin=self.options.begin,
            loaders=self.options.loaders,
        )
        daemon = Daemon(self.machine, WAYS[way])
        client = Client(daemon.socket)
        watch, ids = Watch(client, self.write), []
        watch.start()
        try:
            for number, task in enumerate(tasks):
                time.sleep(max(0.0, task["at_s"] - (time.monotonic() - watch.began)))
                ids.append(int(self.submit(client, task, way, number)))
            time.sleep(max(0.0, self.options.seconds - (time.monotonic() - watch.began)))
            rows, found = watch.end(), [client.task(task) for task in ids]
            keys = (
                "name",
                "state",
                "steps",
                "oom_count",
                "attempt_count",
                "mem_peak_mib",
                "wait_s",
            )
            tasks_then = [{key: task.get(key) for key in keys} for task in found]
            self.write(ended=way, energy_j=energy_of(rows), tasks=tasks_then)
        finally:
            watch.end()
            self.end(client, ids)
            daemon.close()

    @staticmethod
    def end(client, ids):
        for task in ids:
            try:
                client.cancel(task)
            except DaemonError:
                pass  # it has ended
            except OSError:
                return  # so has the daemon: a signal to the whole group
        for task in ids:
            client.wait(task, timeout_s=120)

    def alone_each(self, tasks):
        """Each training with an equal part of the time that is left."""
        ends, kinds = time.monotonic() + self.options.seconds, {}
        for task in tasks:
            kinds.setdefault(task["name"], []).append(task)
        for left, of_kind in zip(range(len(kinds), 0, -1), kinds.values()):
            self.alone(of_kind, (ends - time.monotonic()) / left)

    def alone(self, of_kind, within_s):
        """Steps a second and watts of a training that has the GPU for itself, and what its start
        takes. of_kind: its tasks in the window."""
        daemon = Daemon(self.machine, WAYS["exclusive"])
        client, began, number = Client(daemon.socket), time.monotonic(), None
        rows, first = [], None  # as those of Watch, with the steps alone; the first one with steps
        try:
            number = int(self.submit(client, of_kind[0], "exclusive", 0))
            while time.monotonic() < began + within_s:
                found, watts = client.task(number), client.gpus()[0]["power_w"]
                if found["ended_at"] is not None:
                    raise SystemExit(f"{found['name']}: {client.logs(number).decode()[-2000:]}")
                rows.append((time.monotonic() - began, watts, found["steps"] or 0))
                first = len(rows) - 1 if first is None and rows[-1][2] else first
                time.sleep(SAMPLE_S / 4)
        finally:
            self.end(client, [number] if number is not None else [])
            daemon.close()
        self.write(alone=of_kind[0]["name"], **alone_figures(rows, first),
                   measured_on=self.machine.kind_and_driver(), loaders=self.options.loaders,
                   trace_s=[task["alone_s"] for task in of_kind])  # fmt: skip


def alone_figures(rows, first):
    """Of rows (seconds, watts, steps). first: of the first row with steps; None: no row has any."""
    begin = rows[first] if first is not None else None
    if not begin or rows[-1][0] - begin[0] < STEPS_S:
        return {"steps_per_s": None, "power_w": None, "start_s": None, "start_j": None}
    watts = [power for _, power, _ in rows[first:] if power is not None]
    return {
        "steps_per_s": (rows[-1][2] - begin[2]) / (rows[-1][0] - begin[0]),
        "power_w": statistics.fmean(watts) if watts else None,
        "start_s": begin[0],
        "start_j": energy_of(rows[: first + 1]),
    }


def estimate_each(machine, tasks):
    """What `colloc estimate` says of each script, and the memory that fills up the task's share."""
    kinds = {task["name"]: task for task in tasks}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(kinds, pool.map(machine.estimated_mib, kinds.values())))
    for task in tasks:
        task["estimate_mib"] = max(found[task["name"]], task["mib"])


def measure(options):
    with tempfile.TemporaryDirectory(prefix="colloc-window-") as scratch:
        machine = Machine(options, scratch)
        try:
            tasks = window_tasks(options, machine.gpu_mib())
            estimate_each(machine, tasks)
            trial = Trial(options, machine)
            for way in options.ways.split(","):
                if way == "alone":
                    trial.alone_each(tasks)
                else:
                    trial.window(way, tasks)
        finally:
            machine.close()
    return 0


# ---- comparison ----


def lines_of(path):
    """The lines of a file. The last one may be cut off."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        return [json.loads(line) for line in lines[:-1]]
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: {error}") from None


def read(paths):
    """Lines of several files: what each training does alone, by its name, and the windows. One that
    was cut off has no energy and no tasks."""
    alone, windows = {}, []
    for path in paths:
        for line in lines_of(path):
            if "alone" in line:
                alone[line["alone"]] = line
            elif "window" in line:
                windows.append({"way": line.pop("window"), "samples": [], **line})
            elif not windows:
                raise SystemExit(f"{path}: samples of no window")
            elif "sample" in line:
                windows[-1]["samples"].append(line["sample"])
            else:
                windows[-1].update(energy_j=line["energy_j"], tasks=line["tasks"])
    check_one_place([*alone.values(), *windows])
    return alone, windows


def check_one_place(lines):
    """Speeds of two GPUs, drivers or numbers of loaders are not compared."""
    places = {(*line["measured_on"], line["loaders"]) for line in lines}
    if len(places) > 1:
        said = " and ".join(f"{gpu} with driver {of}, {n} loaders" for gpu, of, n in sorted(places))
        raise SystemExit(f"measured on {said}: compare those of one")


def is_cut(window):
    return "tasks" not in window


def training_of(name):
    """ "3:vgg16-b128" is the fourth task of the window."""
    return name.split(":", 1)[1]


def rate_of(alone, name):
    return alone[name]["steps_per_s"] if name in alone else None


def progress_of(window, alone):
    """Seconds of trainings alone that the window was worth; None where a rate is not known."""
    total = 0.0
    for task in window["tasks"]:
        rate = rate_of(alone, training_of(task["name"]))
        if task["steps"] and not rate:
            return None
        total += (task["steps"] or 0) / rate if rate else 0
    return total


def exclusive_of(alone):
    """(progress a second, joules for a second of progress) of the window's tasks one after the
    other, each for its time in the trace after its start; None where a figure is not known."""
    progress_s = took_s = joules = 0.0
    for line in alone.values():
        if None in (line["steps_per_s"], line["power_w"], line["start_j"]):
            return None
        for trained_s in line["trace_s"]:
            progress_s += trained_s
            took_s += line["start_s"] + trained_s
            joules += line["start_j"] + line["power_w"] * trained_s
    return (progress_s / took_s, joules / progress_s) if took_s else None


def read_mixes(path, windows):
    """(sharing, sorted trainings) -> (speeds, watts), of mixes that did not crash. Those of another
    GPU or driver than the windows' are refused."""
    places, found = {tuple(window["measured_on"]) for window in windows}, {}
    for line, row in enumerate(read_table(path, *COLUMNS), 2):
        place = row["gpu"], row["driver"]
        if places - {place}:
            of_windows = " and ".join(f"{gpu} with driver {of}" for gpu, of in sorted(places))
            raise SystemExit(f"{path}:{line}: measured on {' with driver '.join(place)}, and the "
                             f"windows on {of_windows}: measure the mixes there")  # fmt: skip
        if row["crashed"]:
            continue
        try:
            speeds = [float(speed) for speed in row["speeds"].split(SEPARATOR)]
            found[mix_of_row(row)] = speeds, float(row["power_w"] or "nan")
        except ValueError as error:
            raise SystemExit(f"{path}:{line}: {error}") from None
    return found


def mix_of(row):
    """How the trainings that make steps in a sample share, and their names; None: there are none.
    One that is alone is a mix too."""
    _, _, _, steps, sharing = row
    names = tuple(sorted(training_of(name) for name, made in steps.items() if made))
    return (sharing, names) if names else None


def compose(window, mixes):
    """(progress, joules, share of the time whose mix was measured) of what was on the GPU."""
    progress = joules = known_s = busy_s = 0.0
    rows = window["samples"]
    for row, following in zip(rows, rows[1:]):
        passed_s, mix = following[0] - row[0], mix_of(row)
        if not mix:
            joules += (row[1] or 0) * passed_s  # idle, or starting: as it was
            continue
        busy_s += passed_s
        if mix in mixes:
            known_s += passed_s
            progress += sum(mixes[mix][0]) * passed_s
            joules += mixes[mix][1] * passed_s
    return progress, joules, known_s / busy_s if busy_s else 0.0


def missing_of(windows, mixes):
    """(mix, seconds) of those not known, the longest first. Trainings that share in two ways at a
    time are left out: a table of mixes has none of these."""
    lasted_s = collections.Counter()
    for window in windows:
        for row, following in zip(window["samples"], window["samples"][1:]):
            lasted_s[mix_of(row)] += following[0] - row[0]
    return [
        (mix, lasted)
        for mix, lasted in lasted_s.most_common()
        if mix and "+" not in mix[0] and mix not in mixes
    ]


def write_missing(path, missing):
    """As `colloc simulate --mixes-missing` does."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow([*COLUMNS, "simulated_s"])
        for (sharing, names), lasted in missing:
            table.writerow(["", "", sharing, SEPARATOR.join(names), "", "", "", "", round(lasted)])


def percent_off(value, truth):
    return f"{100 * (value / truth - 1):+.1f} %" if truth else "-"


def say_missing(mixes_path, missing):
    (sharing, names), lasted = missing[0]
    takes_s = MEASURE_S * (len(missing) + len({name for mix, _ in missing for name in mix[1]}))
    print(f"{mixes_path} lacks {len(missing)} mixes, which takes about {takes_s} s to measure; the "
          f"longest, {lasted:.0f} s, is {SEPARATOR.join(names)} ({sharing}): --missing=FILE lists "
          "all", file=sys.stderr)  # fmt: skip


def cells_of(window, alone, mixes):
    """A row of the table. Of a window that was cut off there are no sums to be compared."""
    composed, joules, known = compose(window, mixes)
    share = f"{100 * known:.0f} %" if mixes else ""
    if is_cut(window):
        lasted = window["samples"][-1][0] if window["samples"] else 0
        of_s = f"cut off after {lasted:.0f} of {window['seconds']:.0f} s"
        return [f"{window['way']}, {of_s}", "", "", "", "", "", share, "", ""]
    progress, energy = progress_of(window, alone), window["energy_j"]
    return [
        window["way"],
        f"{progress / window['seconds']:.2f}" if progress is not None else "unknown",
        f"{energy / 1000:.0f}" if energy else "unknown",
        f"{energy / progress:.0f}" if energy and progress else "unknown",
        str(sum(1 for task in window["tasks"] if task["attempt_count"])),
        str(sum(task["oom_count"] for task in window["tasks"])),
        share,
        percent_off(composed, progress) if known > 0.99 else "",
        percent_off(joules, energy) if known > 0.99 else "",
    ]


def rows_of(alone, windows, mixes):
    """The table of --compare, below HEADS."""
    rows, exclusive = [], exclusive_of(alone)
    if exclusive:
        figures = [f"{exclusive[0]:.2f}", "", f"{exclusive[1]:.0f}"]
        rows.append(["exclusive, composed of each alone", *figures, *[""] * 5])
    return rows + [cells_of(window, alone, mixes) for window in windows]


def compare(paths, mixes_path, missing_path):
    alone, windows = read(paths)
    mixes = read_mixes(mixes_path, windows) if mixes_path else {}
    missing = missing_of(windows, mixes)
    if missing_path:
        write_missing(missing_path, missing)
    elif mixes_path and missing:
        say_missing(mixes_path, missing)
    for cells in (HEADS, ["---"] * len(HEADS), *rows_of(alone, windows, mixes)):
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
    parser.add_argument("--seconds", type=float, default=540, help="of each window, or of alone")
    parser.add_argument("--from", dest="begin", type=float, default=3600, metavar="SECOND")
    parser.add_argument("--every", type=int, default=4, metavar="N")
    parser.add_argument("--loaders", type=int, default=4, metavar="N")
    parser.add_argument("--emulated", action="store_true")
    options = parser.parse_args()
    if options.compare:
        return compare(options.files, options.mixes, options.missing)
    wrong = [way for way in options.ways.split(",") if way not in WAYS and way != "alone"]
    if len(options.files) != 2 or wrong:
        parser.error(f"no way {wrong[0]}" if wrong else "give PROGRAMS and OUT.jsonl")
    options.programs, options.out = options.files
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before its time"))
    options.fork = False
    return measure(options)


if __name__ == "__main__":
    sys.exit(main())
