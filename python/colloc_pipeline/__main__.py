# SPDX-License-Identifier: Apache-2.0
"""`colloc bench PIPELINE.json ...`: runs pipelines, apart and together, and measures them.

    python3 -m colloc_pipeline [OPTION...] PIPELINE.json...
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from typing import Any, ContextManager, Dict, List

from colloc_pipeline import results
from colloc_pipeline.matrix import measure_matrix
from colloc_pipeline.recording import Recording, summarise
from colloc_pipeline.run import Settings, run_together
from colloc_pipeline.sharing import SHARED_MODES, SharingError, is_mode, shared_envs
from colloc_pipeline.spec import (
    PIPELINE_LIMITS,
    Pipeline,
    SpecError,
    find_warnings,
    read_numbers,
    read_pipeline,
)
from colloc_pipeline.stage import StageFailed

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def parse_arguments(words: List[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="colloc_pipeline", description=__doc__)
    parser.add_argument("pipelines", nargs="+", metavar="PIPELINE.json")
    parser.add_argument("--output", "-o", default="bench-results")
    parser.add_argument("--sharing", default="apart,streams,mps")
    parser.add_argument("--gpu", default="0")
    parser.add_argument("--instances", metavar="GPU/PROFILE/UUID,...")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--requests", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--matrix", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--pretend", action="store_true")
    parser.add_argument("--no-report", action="store_true")
    return parser.parse_args(words)


def read_all(arguments: argparse.Namespace) -> List[Pipeline]:
    """The pipelines, with what the command line changes."""
    given = {key: getattr(arguments, key) for key in ("requests", "rate")}
    given = {key: value for key, value in given.items() if value is not None}
    changes = read_numbers(given, PIPELINE_LIMITS, "the command line")
    pipelines = [read_pipeline(path) for path in arguments.pipelines]
    names = [pipeline.name for pipeline in pipelines]
    for i, pipeline in enumerate(pipelines):
        if names.count(names[i]) > 1:
            pipeline.name = f"{names[i]}-{names[:i].count(names[i]) + 1}"
        if "requests" in changes:
            pipeline.requests = changes["requests"]
            pipeline.warmup = min(pipeline.warmup, pipeline.requests)
        if "rate" in changes and pipeline.rate is not None:
            pipeline.rate = changes["rate"]
    return pipelines


class Bench:
    """All that is measured goes into the tables, which are replaced after each run."""

    def __init__(self, arguments: argparse.Namespace, shm: str):
        self.arguments, self.shm = arguments, shm
        self.rows: List[Dict[str, Any]] = []
        self.stages: List[Dict[str, Any]] = []
        self.cells: List[Dict[str, Any]] = []
        logs = os.path.join(arguments.output, "logs")
        os.makedirs(logs, exist_ok=True)
        self.settings = Settings(arguments.python, arguments.pretend, arguments.limit, logs)

    def _write(self) -> None:
        folder = self.arguments.output
        results.write_table(folder, "pipelines.csv", self.rows)
        results.write_table(folder, "stages.csv", self.stages)
        results.write_table(folder, "matrix.csv", self.cells)

    def _measure(self, pipelines: List[Pipeline], envs: List[Dict], mode: str, repeat: int) -> None:
        number = len(self.rows)
        recording = Recording(
            self.arguments.gpu, os.path.join(self.arguments.output, f"gpu-{number}.csv")
        )
        for env in envs:
            env["COLLOC_PIPELINE_SHM"] = self.shm
        runs = run_together(pipelines, envs, self.settings, recording)
        gpu = summarise(recording.close())
        rows = [results.result_of(run, mode, repeat, gpu) for run in runs]
        results.add_energy(rows)
        stages = [row for run in runs for row in results.stage_rows(run, mode, repeat)]
        self.rows.extend(rows)
        self.stages.extend(stages)
        self._write()
        results.print_run(rows, stages)

    def _envs(self, mode: str, n: int) -> ContextManager[List[Dict[str, str]]]:
        arguments = self.arguments
        return shared_envs(mode, arguments.gpu, arguments.instances, n, self.settings.logs)

    def run_mode(self, pipelines: List[Pipeline], mode: str, repeat: int) -> None:
        """All pipelines in one mode."""
        groups = [[pipeline] for pipeline in pipelines] if mode == "apart" else [pipelines]
        for group in groups:
            with self._envs(mode, len(group)) as envs:
                self._measure(group, envs, mode, repeat)

    def run_matrix(self, pipelines: List[Pipeline], mode: str) -> None:
        """The matrix of the stages in one mode, in which all share a GPU."""
        with self._envs(mode, 1) as envs:
            env = {**envs[0], "COLLOC_PIPELINE_SHM": self.shm}
            seconds = self.arguments.matrix
            cells = measure_matrix(pipelines, env, self.settings, mode, seconds)
            with contextlib.closing(cells):  # its processes end before the MPS server does
                for cell in cells:
                    self.cells.append(cell)
                    self._write()
                    print_cell(cell)


def print_cell(cell: Dict[str, Any]) -> None:
    """Says how much a stage is slowed down, or that it failed."""
    slowdown = "failed" if cell["slowdown"] is None else f"{cell['slowdown']:.2f}"
    print(f"{cell['mode']:>8} {cell['stage']} beside {cell['beside']}: {slowdown}", flush=True)


def run_bench(arguments: argparse.Namespace, pipelines: List[Pipeline], shm: str) -> int:
    """Returns the exit status."""
    bench = Bench(arguments, shm)
    modes = arguments.sharing.split(",")
    failed = False
    for mode in modes:
        try:
            for repeat in range(1, arguments.repeat + 1):
                bench.run_mode(pipelines, mode, repeat)
            if arguments.matrix > 0 and mode in SHARED_MODES:
                bench.run_matrix(pipelines, mode)
        except (SharingError, StageFailed) as error:
            print(f"colloc bench: {error}", file=sys.stderr)
            failed = True
    return 1 if failed or not bench.rows or any(row["error"] for row in bench.rows) else 0


def make_report(folder: str) -> None:
    """Without matplotlib there is none; the tables are there all the same."""
    try:
        from colloc_pipeline.report import write_report
    except SystemExit as missing:
        print(f"no report: {missing}", file=sys.stderr)
        return
    print(write_report(folder))


def end_by_signal(number: int, _frame: object) -> None:
    """Leaves by way of every `finally`: no stage, no MPS server and no file is left behind. Another
    signal does not interrupt these."""
    for other in END_SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def main(words: List[str]) -> int:
    """Returns the exit status."""
    for number in END_SIGNALS:
        signal.signal(number, end_by_signal)
    arguments = parse_arguments(words)
    try:
        pipelines = read_all(arguments)
        modes = arguments.sharing.split(",")
        for mode in modes:
            if not is_mode(mode):
                raise SpecError(f"--sharing={mode}: apart, streams, mps or a MIG profile")
        if arguments.matrix > 0 and not any(mode in SHARED_MODES for mode in modes):
            raise SpecError("--matrix: needs streams or mps in --sharing, in which stages share")
    except SpecError as error:
        print(f"colloc bench: {error}", file=sys.stderr)
        return 2
    for pipeline in pipelines:
        for warning in find_warnings(pipeline, len(os.sched_getaffinity(0))):
            print(f"colloc bench: warning: {warning}", file=sys.stderr)
    in_memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    shm = tempfile.mkdtemp(prefix="colloc-pipeline-", dir=in_memory)
    try:
        status = run_bench(arguments, pipelines, shm)
        if not arguments.no_report:
            make_report(arguments.output)
        return status
    finally:
        shutil.rmtree(shm, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
