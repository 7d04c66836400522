# SPDX-License-Identifier: Apache-2.0
"""Measures trainings that share a GPU, for `colloc simulate --mixes` (docs/mixes.md).

    colloc simulate TRACE --gpus=4xH200 --mixes-missing=missing.csv
    scripts/measure-mixes --programs=programs.csv missing.csv mixes.csv

Runs each mix of missing.csv on a running daemon with one GPU, which starts all trainings at once:

    collocd --gpus=0 --policy=rr --starting-max=64 --smact-max=1 --min-free=0 --margin=0

programs.csv has the columns training and command (for sh). Each training must run longer than its
windows take, and its steps must be known to colloc (docs/steps.md). First each training is measured
alone, then each mix: once all of its trainings make steps, for --window seconds. The speed of a
training is its steps a second there over those alone. Rows are appended to mixes.csv as they come;
a mix that stands there already is not measured again, so that an interrupted run goes on.
"""
import argparse
import csv
import os
import sys
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

from colloc import Client, DaemonError

SEPARATOR = " + "
COLUMNS = ["gpu", "driver", "sharing", "trainings", "speeds", "smact", "power_w", "crashed"]
POLL_S = 0.25
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


class Bench:
    """Measures on the only GPU of a daemon."""

    def __init__(self, client: Client, commands: Dict[str, str], window_s: float, limit_s: float):
        self.client, self.commands = client, commands
        self.window_s, self.limit_s = window_s, limit_s

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
        end = time.monotonic() + self.limit_s
        while not all(task["steps_per_s"] for task in self._running(tasks)):
            if time.monotonic() > end:
                silent = [t["name"] for t in self._running(tasks) if not t["steps_per_s"]]
                raise Failed(f"no steps of {', '.join(silent)} within {self.limit_s:g} s")
            time.sleep(POLL_S)

    def _window(self, tasks: Sequence[int]) -> Dict[str, Any]:
        """Steps a second of each task, and the GPU's mean activity (0 to 1) and power (W)."""
        readings: Dict[str, List[float]] = {"smact": [], "power_w": []}
        first, began = self._running(tasks), time.monotonic()
        while time.monotonic() < began + self.window_s:
            gpu = self.gpu()
            for key, values in readings.items():
                if gpu[key] is not None:
                    values.append(gpu[key])
            time.sleep(POLL_S)
        last, passed_s = self._running(tasks), time.monotonic() - began
        means = {key: sum(v) / len(v) if v else None for key, v in readings.items()}
        rates = [(b["steps"] - a["steps"]) / passed_s for a, b in zip(first, last)]
        if not all(rates):
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
        rows = [] if is_new else read_table(path, *COLUMNS)
        self.done = {mix_of(row) for row in rows}
        for row in rows:
            if (row["gpu"], row["driver"]) != (gpu, driver):
                raise SystemExit(
                    f"{path}: measured on {row['gpu']} with driver {row['driver']}, and here is "
                    f"{gpu} with {driver}: use one file for each"
                )
        if is_new:
            self._append(COLUMNS)

    def _append(self, fields: Sequence[Any]) -> None:
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerow(fields)

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


def wanted_mixes(rows: Sequence[Dict[str, str]], commands: Dict[str, str]) -> List[Mix]:
    """The mixes of the list whose trainings have a command; says which have none."""
    mixes = [mix_of(row) for row in rows]
    unknown = sorted({name for _, names in mixes for name in names if name not in commands})
    if unknown:
        print(f"no command, left out: {', '.join(unknown)}", file=sys.stderr)
    return [mix for mix in mixes if not set(mix[1]) & set(unknown)]


def measure_all(bench: Bench, table: Table, mixes: Sequence[Mix], within_s: float) -> int:
    """Measures what is not in the table yet. Returns how many could not be measured."""
    alone: Dict[Tuple[str, str], float] = {}
    ends, failed = time.monotonic() + within_s, 0

    def rate_alone(sharing: str, training: str) -> float:
        if (sharing, training) not in alone:
            mix = (sharing, (training,))
            found = bench.measure(mix)
            alone[sharing, training] = found["rates"][0]
            if mix not in table.done:
                table.add(mix, [1], found["smact"], found["power_w"])
        return alone[sharing, training]

    for number, mix in enumerate(mixes, 1):
        label = f"{number}/{len(mixes)} {SEPARATOR.join(mix[1])} ({mix[0]})"
        if mix in table.done:
            continue
        if time.monotonic() > ends:
            print(f"{label}: and those after it: no time is left", file=sys.stderr)
            return failed + 1
        try:
            speeds_alone = [rate_alone(mix[0], training) for training in mix[1]]
            if mix in table.done:  # a training alone
                continue
            found = bench.measure(mix)
        except Crashed:
            table.add(mix, None)
            print(f"{label}: crashed", flush=True)
        except Failed as error:
            failed += 1
            print(f"{label}: {error}", file=sys.stderr)
        else:
            speeds = [rate / one for rate, one in zip(found["rates"], speeds_alone)]
            table.add(mix, speeds, found["smact"], found["power_w"])
            print(f"{label}: {SEPARATOR.join(f'{s:.2f}' for s in speeds)}", flush=True)
    return failed


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
    parser.add_argument("--within", type=float, default=1e9, metavar="SECONDS")
    parser.add_argument("missing")
    parser.add_argument("mixes")
    options = parser.parse_args()
    commands = {
        row["training"]: row["command"]
        for row in read_table(options.programs, "training", "command")
    }
    rows = read_table(options.missing, "gpu", "sharing", "trainings")
    bench = Bench(Client(), commands, options.window, options.start)
    bench.gpu()
    names = {row["gpu"] for row in rows}
    if not options.gpu_name and len(names) > 1:
        parser.error("the list is of several kinds of GPUs: give --gpu-name")
    gpu = options.gpu_name or next(iter(names), "")
    table = Table(options.mixes, gpu, options.driver)
    return 1 if measure_all(bench, table, wanted_mixes(rows, commands), options.within) else 0


if __name__ == "__main__":
    raise SystemExit(main())
