# SPDX-License-Identifier: Apache-2.0
"""Measures trainings that share a GPU, for `colloc simulate --mixes` (docs/mixes.md).

    colloc simulate TRACE --gpus=4xH200 --mixes-missing=missing.csv
    scripts/measure-mixes --programs=programs.csv missing.csv mixes.csv
    scripts/measure-mixes --programs=programs.csv missing.csv mixes.csv --refresh="colloc simulate
        TRACE --gpus=4xH200 --mixes=mixes.csv --mixes-missing=missing.csv"

Runs each mix of missing.csv on a running daemon with one GPU, which starts all trainings at once:

    collocd --gpus=0 --policy=rr --starting-max=64 --smact-max=1 --min-free=0 --margin=0

programs.csv has the columns training and command (for sh). Each training must run longer than its
windows take, and its steps must be known to colloc (docs/steps.md). The trainings of a mix are
measured alone, and then together: --settle seconds after all of them make steps, for --window
seconds. The speed of a training is its steps a second there over those alone. Rows are appended to
mixes.csv as they come; a mix that stands there already is not measured again, so that an
interrupted run goes on. With --alone=FILE nor is a training alone, while the GPU is the same.

A measured mix changes what the trace visits after it. With --refresh the command, which is run
without a shell, writes missing.csv anew after each measurement, and the mix that the trace visits
first is the next: all before it is known, so it will be visited. Without it the order is that of
missing.csv.
"""
import argparse
import csv
import os
import shlex
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from colloc import Client, DaemonError

SEPARATOR = " + "
COLUMNS = ["gpu", "driver", "sharing", "trainings", "speeds", "smact", "power_w", "crashed"]
RATE_COLUMNS = ["gpu_uuid", "sharing", "training", "steps_per_s"]
POLL_S = 0.25
FASTER = 1.05  # than alone: no mix is; chosen
Mix = Tuple[str, Tuple[str, ...]]  # how it shares, sorted trainings


class Crashed(Exception):
    """A training of the mix ran out of GPU memory."""


class Failed(Exception):
    """The mix cannot be measured, with the reason."""


def read_table(path: str, *needed: str) -> List[Dict[str, str]]:
    """Rows of a comma-separated table, which must have the columns `needed`."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows, names = list(reader), reader.fieldnames or []
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror}") from None
    for column in needed:
        if column not in names:
            raise SystemExit(f"{path}: no column {column}")
    return rows


def mix_of(row: Dict[str, str]) -> Mix:
    return row["sharing"], tuple(sorted(row["trainings"].split(SEPARATOR)))


def slope(times: Sequence[float], counts: Sequence[int]) -> float:
    """Counts a second, by least squares: a loader of N processes hands over N batches at a time, so
    the first and the last count alone would be off by some steps."""
    middle, mean = sum(times) / len(times), sum(counts) / len(counts)
    spread = sum((time - middle) ** 2 for time in times)
    return sum((t - middle) * (n - mean) for t, n in zip(times, counts)) / spread if spread else 0


class Bench:
    """Measures on the only GPU of a daemon."""

    def __init__(self, client: Client, commands: Dict[str, str], options: argparse.Namespace):
        self.client, self.commands = client, commands
        self.start_s, self.settle_s, self.window_s = options.start, options.settle, options.window

    def gpu(self) -> Any:
        gpus = self.client.gpus()
        if len(gpus) != 1:
            raise SystemExit(f"the daemon has {len(gpus)} GPUs: start it with --gpus=INDEX")
        return gpus[0]

    def _running(self, tasks: Sequence[int]) -> List[Any]:
        """The tasks' figures, while all of them run."""
        found = [self.client.task(task) for task in tasks]
        for task in found:
            if task["oom_count"]:
                raise Crashed
            if task["ended_at"] is not None:
                raise Failed(f"{task['name']} ended ({task['state']}) within its window")
        return found

    def _wait_for_steps(self, tasks: Sequence[int]) -> None:
        end = time.monotonic() + self.start_s
        while not all(task["steps_per_s"] for task in self._running(tasks)):
            if time.monotonic() > end:
                silent = [t["name"] for t in self._running(tasks) if not t["steps_per_s"]]
                raise Failed(f"no steps of {', '.join(silent)} within {self.start_s:g} s")
            time.sleep(POLL_S)

    def _window(self, tasks: Sequence[int]) -> Dict[str, Any]:
        """Steps a second of each task, and the GPU's mean activity (0 to 1) and power (W)."""
        readings: Dict[str, List[float]] = {"smact": [], "power_w": []}
        counts: List[List[int]] = []  # steps of each task so far
        times: List[float] = []
        began = time.monotonic()
        while time.monotonic() < began + self.window_s:
            times.append(time.monotonic() - began)
            counts.append([task["steps"] for task in self._running(tasks)])
            gpu = self.gpu()
            for key, values in readings.items():
                if gpu[key] is not None:
                    values.append(gpu[key])
            time.sleep(POLL_S)
        # Trainings that make steps are active: an H200 read 0 for a window of 6 s, drawing 261 W.
        means = {key: sum(v) / len(v) if any(v) else None for key, v in readings.items()}
        rates = [slope(times, steps) for steps in zip(*counts)]
        if not all(rate > 0 for rate in rates):
            raise Failed(f"no step within {self.window_s:g} s: give a longer --window")
        return {"rates": rates, **means}

    def measure(self, mix: Mix) -> Dict[str, Any]:
        """Runs the trainings of a mix together. Raises Crashed or Failed."""
        sharing, trainings = mix
        tasks: List[int] = []
        try:
            for training in trainings:
                command = self.commands[training]
                tasks.append(
                    int(self.client.submit(f"exec {command}", name=training[:60], sharing=sharing))
                )
            self._wait_for_steps(tasks)
            time.sleep(self.settle_s)
            return self._window(tasks)
        finally:
            for task in tasks:
                try:
                    self.client.cancel(task)
                except DaemonError:
                    pass  # it has ended
            for task in tasks:
                self.client.wait(task, timeout_s=120)


class Table:
    """mixes.csv: what stands there, and new rows at its end."""

    def __init__(self, path: str, gpu: str, driver: str):
        self.path, self.gpu, self.driver = path, gpu, driver
        is_new = not os.path.exists(path) or os.path.getsize(path) == 0
        self.head: List[Sequence[str]] = []
        rows = [] if is_new else read_table(path, *COLUMNS)
        self.done = {mix_of(row) for row in rows}
        for row in rows:
            if (row["gpu"], row["driver"]) != (gpu, driver):
                raise SystemExit(
                    f"{path}: measured on {row['gpu']} with driver {row['driver']}, and here is "
                    f"{gpu} with {driver}: use one file for each"
                )
        if is_new:
            self.head = [COLUMNS]  # written with the first row: without one it is no table of mixes

    def _append(self, fields: Sequence[Any]) -> None:
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([*self.head, fields])
        self.head = []

    def add(
        self, mix: Mix, speeds: Optional[Sequence[float]], smact: Any = None, power_w: Any = None
    ) -> None:
        """speeds: of the sorted trainings, relative to alone; None: the mix crashed."""
        text = SEPARATOR.join(f"{speed:.4g}" for speed in speeds or ())
        figures = ["" if value is None else f"{value:.4g}" for value in (smact, power_w)]
        crashed = "1" if speeds is None else ""
        self._append(
            [self.gpu, self.driver, mix[0], SEPARATOR.join(mix[1]), text, *figures, crashed]
        )
        self.done.add(mix)


class Rates:
    """Steps a second of each training alone, by how it shares; kept in a file, if one is given.

    They are of one GPU: two of a kind differ by some per cent.
    """

    def __init__(self, path: Optional[str], gpu_uuid: str):
        self.path, self.gpu_uuid = path, gpu_uuid
        self.known: Dict[Tuple[str, str], float] = {}
        if path and not (os.path.exists(path) and os.path.getsize(path)):
            self._append(RATE_COLUMNS)
        for row in read_table(path, *RATE_COLUMNS) if path else ():
            if row["gpu_uuid"] == gpu_uuid:
                self.known[row["sharing"], row["training"]] = float(row["steps_per_s"])

    def _append(self, fields: Sequence[Any]) -> None:
        if self.path:
            with open(self.path, "a", encoding="utf-8", newline="") as file:
                csv.writer(file).writerow(fields)

    def add(self, sharing: str, training: str, steps_per_s: float) -> None:
        self.known[sharing, training] = steps_per_s
        self._append([self.gpu_uuid, sharing, training, f"{steps_per_s:.6g}"])


class MissingMixes:
    """The list of mixes that are wanted, of trainings that have a command."""

    def __init__(self, path: str, commands: Dict[str, str], refresh: Optional[str]):
        self.path, self.commands, self.refresh = path, commands, refresh
        self.without: Set[str] = set()  # trainings without a command, as said

    def _say_without(self, names: Set[str]) -> None:
        if names - self.without:
            said = ", ".join(sorted(names - self.without))
            print(f"no command, left out: {said}", file=sys.stderr)
            self.without |= names

    def read(self, is_old: bool) -> List[Mix]:
        """The mixes, the next one first. is_old: something was measured since the list was made."""
        if self.refresh and is_old:
            words = shlex.split(self.refresh)
            done = subprocess.run(words, stdout=subprocess.DEVNULL, check=False)
            if done.returncode:
                raise SystemExit(f"--refresh: the command ended with {done.returncode}")
        rows = read_table(self.path, "gpu", "sharing", "trainings")
        if self.refresh:
            rows.sort(key=lambda row: float(row["first_s"]))
        mixes = [mix_of(row) for row in rows]
        self._say_without({name for _, names in mixes for name in names} - set(self.commands))
        return [mix for mix in mixes if not set(mix[1]) & self.without]


class Measuring:
    """Measures what is missing, one after the other."""

    def __init__(self, bench: Bench, table: Table, rates: Rates):
        self.bench, self.table, self.rates = bench, table, rates
        self.failed: Set[Mix] = set()

    def next_of(self, mixes: Sequence[Mix]) -> Optional[Mix]:
        """What to measure for the first of the mixes that is not known: a training of it alone, if
        there is one to measure yet."""
        for mix in mixes:
            alone = [(mix[0], (training,)) for training in mix[1]]
            if mix in self.table.done and len(mix[1]) > 1 or self.failed & {mix, *alone}:
                continue
            for one in alone:
                if (mix[0], one[1][0]) not in self.rates.known:
                    return one
            if mix not in self.table.done:
                return mix
        return None

    def _add(self, mix: Mix, found: Dict[str, Any]) -> List[float]:
        if len(mix[1]) == 1:
            self.rates.add(mix[0], mix[1][0], found["rates"][0])
        alone = [self.rates.known[mix[0], training] for training in mix[1]]
        speeds = [rate / one for rate, one in zip(found["rates"], alone)]
        if mix not in self.table.done:
            self.table.add(mix, speeds, found["smact"], found["power_w"])
        return speeds

    def one(self, mix: Mix) -> None:
        """Measures a mix, or a training alone, and says what was found."""
        label = f"{SEPARATOR.join(mix[1])} ({mix[0]})"
        try:
            speeds = self._add(mix, self.bench.measure(mix))
        except Crashed:
            self.failed.add(mix)
            if mix not in self.table.done:
                self.table.add(mix, None)
            print(f"{label}: crashed", flush=True)
        except Failed as error:
            self.failed.add(mix)
            print(f"{label}: {error}", file=sys.stderr, flush=True)
        else:
            print(f"{label}: {SEPARATOR.join(f'{s:.2f}' for s in speeds)}", flush=True)
            if max(speeds) > FASTER:
                print(f"{label}: faster than alone: the host was busy then, or the window is short",
                      file=sys.stderr, flush=True)  # fmt: skip

    def all(self, read: Callable[[bool], Sequence[Mix]], within_s: float) -> bool:
        """Measures until nothing is missing, or no time is left. Returns whether all is known."""
        ends = time.monotonic() + within_s
        mix = self.next_of(read(bool(self.table.done)))
        while mix:
            if time.monotonic() > ends:
                print(f"{SEPARATOR.join(mix[1])} ({mix[0]}) and those after it: no time is left",
                      file=sys.stderr)  # fmt: skip
                return False
            self.one(mix)
            mix = self.next_of(read(bool(self.table.done)))
        return not any(mix not in self.table.done for mix in self.failed)


def main() -> int:
    """Reads the options and measures; 1: some mixes were not measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", required=True, metavar="FILE")
    parser.add_argument("--gpu-name", metavar="NAME", help="as colloc simulate --gpus has it")
    parser.add_argument("--driver", default="", metavar="VERSION")
    parser.add_argument("--window", type=float, default=20, metavar="SECONDS")
    parser.add_argument("--start", type=float, default=120, metavar="SECONDS",
                        help="how long the first steps may take")  # fmt: skip
    parser.add_argument("--settle", type=float, default=5, metavar="SECONDS",
                        help="from the first steps of all to the window")  # fmt: skip
    parser.add_argument("--within", type=float, default=1e9, metavar="SECONDS")
    parser.add_argument("--alone", metavar="FILE", help="keeps the speeds of trainings alone")
    parser.add_argument("--refresh", metavar="COMMAND", help="writes MISSING anew")
    parser.add_argument("missing")
    parser.add_argument("mixes")
    options = parser.parse_args()
    commands = {
        row["training"]: row["command"]
        for row in read_table(options.programs, "training", "command")
    }
    missing = MissingMixes(options.missing, commands, options.refresh)
    names = {row["gpu"] for row in read_table(options.missing, "gpu", "sharing", "trainings")}
    if not options.gpu_name and len(names) > 1:
        parser.error("the list is of several kinds of GPUs: give --gpu-name")
    bench = Bench(Client(), commands, options)
    gpu = options.gpu_name or next(iter(names), "")
    table = Table(options.mixes, gpu, options.driver)
    rates = Rates(options.alone, bench.gpu()["uuid"])
    known = Measuring(bench, table, rates).all(missing.read, options.within)
    return 0 if known else 1


if __name__ == "__main__":
    raise SystemExit(main())
