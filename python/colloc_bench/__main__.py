# SPDX-License-Identifier: Apache-2.0
"""`colloc bench TABLE`, started by colloc with its options checked:

    python3 -m colloc_bench --machine=JSON [OPTION...] TABLE

Measurements are appended to a journal in the folder of the results, so a bench that runs all night
can be interrupted: the same command continues it, and does not repeat complete groups.
"""

import argparse
import os
import signal
import subprocess
import sys
from typing import List, Optional

from colloc_bench import bench
from colloc_bench.checks import check_all
from colloc_bench.conda import find_conda
from colloc_bench.experiment import Experiment, read_experiment
from colloc_bench.group import THREADS_ALL, Group, Task
from colloc_bench.journal import Journal, drop_failed
from colloc_bench.machine import Machine, read_machine
from colloc_bench.mlflow import check_server
from colloc_bench.signals import Signals
from colloc_bench.status import StatusTable
from colloc_bench.summary import write_summary
from colloc_bench.sweep import is_sweep
from colloc_bench.tasks import Daemon
from colloc_bench.text import Fault, print_error
from colloc_bench.training import Defaults

# As src/cli/command.h has them.
EXIT_OK, EXIT_REFUSED, EXIT_USAGE, EXIT_UNREACHABLE = range(4)


def parse_arguments(words: List[str]) -> argparse.Namespace:
    """The command line, which colloc has checked."""
    parser = argparse.ArgumentParser(prog="colloc_bench", description=__doc__, allow_abbrev=False)
    parser.add_argument("table")
    parser.add_argument("--machine", required=True)
    parser.add_argument("--output", default="bench-results")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--interval", type=float, default=0.5, metavar="SECONDS")
    parser.add_argument("--limit", type=float, default=7200.0, metavar="SECONDS")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--pythonpath", help="of the trainings; not given: it is not set")
    parser.add_argument("--installed", help="folder of colloc's trainings")
    for name in ("gpu", "workloads", "base", "socket", "controller"):
        parser.add_argument(f"--{name}")
    for name in ("daemon", "conda", "mlflow", "drop-caches", "retry-failed", "dry-run"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--no-report", action="store_true")
    return parser.parse_args(words)


def restore_python(pythonpath: Optional[str]) -> None:
    """Trainings look for modules where they would without colloc; so does this program, but for the
    modules that it has already: `python3 -m` looks in the current folder, too."""
    if sys.path[0] in ("", os.getcwd()):
        del sys.path[0]
    if pythonpath is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = pythonpath


def interpreter(named: str) -> str:
    """A script runs in its own folder, where a relative path of the interpreter would not be."""
    return os.path.join(os.getcwd(), named) if "/" in named and named[0] != "/" else named


def defaults_of(arguments: argparse.Namespace) -> Defaults:
    """The options are the defaults of columns that the table lacks. Raises Fault."""
    workloads = arguments.workloads or arguments.installed
    if not workloads:
        raise Fault(
            "cannot find colloc's trainings where they were installed: give their folder with "
            "--workloads"
        )
    conda = find_conda() if arguments.conda else None
    if arguments.conda and not conda:
        raise Fault("--conda: none of conda, mamba and micromamba is on PATH")
    return Defaults(
        python=interpreter(arguments.python),
        workloads=workloads,
        current=os.getcwd(),
        base=arguments.base,
        conda=conda,
        gpu=arguments.gpu,
        epochs=arguments.epochs,
        steps=arguments.steps,
    )


# ---- what is printed ----


def task_text(group: Group, task: Task, machine: Machine) -> str:
    """Only the properties of a training that differ from its group, whose line is above it."""
    parts = []
    if "/" in group.sharing:
        parts.append(f" ({task.sharing_name})")
    if task.gpus and task.gpus != group.gpu:
        parts.append(f" (GPU {task.gpus})")
    if task.threads != THREADS_ALL:
        parts.append(f" ({task.threads} % of the SMs)")
    if task.profiler:
        parts.append(f" ({machine.profilers[task.profiler][0]})")
    return f"   {''.join(parts)} {' '.join(task.argv)}\n"


def print_groups(experiment: Experiment, machine: Machine) -> None:
    """--dry-run."""
    for number, group in enumerate(experiment.groups, 1):
        finished = ": FINISHED" if group.is_finished else ""
        sys.stdout.write(f"{number} {group.name}, GPU {group.gpu}{finished}\n")
        sys.stdout.writelines(task_text(group, task, machine) for task in group.tasks)


def open_status(path: str, experiment: Experiment, journal: Journal) -> Optional[StatusTable]:
    """Prints the rows that are not run, and why the Status of a radT table will not be written."""
    groups = experiment.groups
    finished = sum(group.is_finished and not journal.has(group, 1) for group in groups)
    if finished:
        sys.stderr.write(
            f"{finished} of {len(groups)} workloads are FINISHED by their Status: empty it to run "
            "them again\n"
        )
    if not experiment.is_radt or is_sweep(path):
        return None
    try:
        return StatusTable(path)
    except Fault as fault:
        sys.stderr.write(f"the table's Status will not be written: {fault}\n")
        return None


def make_report(arguments: argparse.Namespace) -> None:
    """A report is optional: if it cannot be made, the results still exist, and the command to
    repeat it is printed. It runs in the trainings' interpreter, which may have matplotlib."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    own = os.environ.get("PYTHONPATH")
    env = {**os.environ, "PYTHONPATH": f"{folder}:{own}" if own else folder}
    words = [arguments.python, "-m", "colloc_report.bench", arguments.output]
    try:
        if subprocess.run(words, env=env, check=False).returncode == 0:
            return
    except OSError:
        pass
    print_error(
        f"cannot write the report: run `{' '.join(words)}` (with PYTHONPATH={folder}) with a "
        "Python that has matplotlib"
    )


# ---- the command ----


def check_options(arguments: argparse.Namespace) -> None:
    """Options that need something of the machine. Raises Fault."""
    if arguments.drop_caches:
        bench.check_caches()
    if arguments.mlflow and arguments.daemon:
        raise Fault("--mlflow is not supported with --daemon")
    if arguments.mlflow:
        try:
            check_server()
        except Fault as fault:
            raise Fault(f"--mlflow: {fault}") from None


def open_daemon(arguments: argparse.Namespace) -> Optional[Daemon]:
    """The daemon of the command line. Raises Fault if it does not answer."""
    if not arguments.daemon:
        return None
    names = ("socket", "controller")
    given = [f"--{name}={getattr(arguments, name)}" for name in names if getattr(arguments, name)]
    daemon = Daemon(given)
    daemon.call("gpus", "--json")
    return daemon


def run_groups(arguments: argparse.Namespace, settings: bench.Settings, journal: Journal) -> int:
    """Runs what is not done. Prints the next step for the user; without a message everything was
    measured."""
    folder = arguments.output
    status = open_status(arguments.table, settings.experiment, journal)
    with Signals() as signals:
        runner = bench.Bench(settings, journal, signals, status)
        try:
            runner.run_all()
        except bench.Interrupted:
            print_error(
                f"interrupted; the results so far are in {folder}, and the same command continues "
                "from there"
            )
            return EXIT_REFUSED
    if runner.is_incomplete:
        print_error(f"some groups were skipped (see above); the other results are in {folder}")
    elif runner.has_failed:
        print_error(
            f"trainings failed: their output is in {folder}/logs; the same command repeats their "
            "groups"
        )
    return EXIT_REFUSED if runner.is_incomplete or runner.has_failed else EXIT_OK


def write_results(arguments: argparse.Namespace, journal: Journal) -> None:
    """Every bench writes summary.csv, also without a result; the report needs one. Raises Fault."""
    write_summary(arguments.output)
    if journal.done and not arguments.no_report:
        make_report(arguments)


def measure_groups(
    arguments: argparse.Namespace, experiment: Experiment, machine: Machine, conda: Optional[str]
) -> int:
    """In this order, since each step may refuse:

    1. the journal of earlier runs in the folder is opened; with --retry-failed, failed groups are
       dropped from it;
    2. what all groups need is checked once (checks.py);
    3. the groups are run;
    4. summary.csv and the report are written, also after an interruption or an error.
    """
    check_options(arguments)
    settings = bench.Settings(
        experiment=experiment,
        machine=machine,
        repeats=arguments.repeat,
        period_s=arguments.interval,
        limit_s=arguments.limit,
        python=arguments.python,
        daemon=open_daemon(arguments),
        has_runs=arguments.mlflow,
        drops_caches=arguments.drop_caches,
    )
    if arguments.retry_failed:
        drop_failed(arguments.output)
    journal = Journal(arguments.output)
    code = EXIT_REFUSED
    try:
        installed = None if arguments.workloads else arguments.installed
        check_all(experiment, machine, conda, arguments.python, installed, arguments.daemon)
        code = run_groups(arguments, settings, journal)
    except Fault as fault:
        print_error(str(fault))
    write_results(arguments, journal)
    return code


def main(words: List[str]) -> int:
    """Returns the exit status."""
    arguments = parse_arguments(words)
    restore_python(arguments.pythonpath)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[attr-defined]
    sys.stderr.reconfigure(errors="surrogateescape")  # type: ignore[attr-defined]
    machine = read_machine(arguments.machine)
    try:
        defaults = defaults_of(arguments)
    except Fault as fault:
        print_error(str(fault))
        return EXIT_REFUSED
    try:
        experiment = read_experiment(arguments.table, defaults)
    except Fault as fault:
        print_error(str(fault))
        return EXIT_USAGE
    if arguments.dry_run:
        print_groups(experiment, machine)
        return EXIT_OK
    try:
        return measure_groups(arguments, experiment, machine, defaults.conda)
    except Fault as fault:
        print_error(str(fault))
        return getattr(fault, "code", EXIT_REFUSED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
