# SPDX-License-Identifier: Apache-2.0
"""`colloc trace import`, `synth` and `info`, and `colloc simulate` of a log, started by colloc with
their options checked:

    python3 -m colloc_trace import --from=FORMAT --catalogue=FILE [OPTION...] LOG

A job of most logs has a length and GPUs, but no memory or activity. So it becomes a task of the
catalogue with the same number of GPUs and about the same length (mapping.py); with --tasks-out it
becomes a new task, which keeps its length, and what the log measured of it.
"""

import os
import sys

if sys.path[0] in ("", os.getcwd()):  # `python3 -m` would take modules of the folder of the logs
    del sys.path[0]

# pylint: disable=wrong-import-position
import argparse
import csv
from typing import List, Optional

from colloc_bench.text import Fault, print_error
from colloc_trace import synth
from colloc_trace.formats import HAS_SECOND_TABLE, READERS
from colloc_trace.jobs import SHARDS, Job, Jobs
from colloc_trace.log import BreaksOff, Log, Options, open_log
from colloc_trace.mapping import Mapping, Task, read_catalogue
from colloc_trace.parse import DAY_US, SECOND_US, format_date, parse_date
from colloc_trace.report import report_kept
from colloc_trace.select import Selection, select_jobs
from colloc_trace.statistics import Statistics, print_statistics, print_statistics_json
from colloc_trace.write import write_tasks, write_trace

EXIT_OK, EXIT_USAGE = 0, 2  # as src/cli/command.h has them
DATED_US = 365 * DAY_US  # times below are counted from the log's begin


def parse_arguments(words: List[str]) -> argparse.Namespace:
    """The options behind the action, which colloc has checked."""
    parser = argparse.ArgumentParser(prog="colloc_trace", description=__doc__, allow_abbrev=False)
    parser.add_argument("file", nargs="?", default="-")
    for name in ("from", "catalogue", "own-jobs", "from-date", "job-table", "where", "tasks-out"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--output", default="-")
    parser.add_argument("--like", default="helios")
    for name in ("from-us", "window-us", "gpus-max", "jobs", "seed", "gpu-bytes"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--processors-per-gpu", type=int, default=1)
    for name in ("sample", "arrival-scale", "days"):
        parser.add_argument(f"--{name}", type=float, default=1.0)
    for name in ("keep-partial", "json"):
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args(words)


def read_selection(arguments: argparse.Namespace) -> Selection:
    """Raises Fault."""
    from_us = arguments.from_us
    if arguments.from_date is not None:
        from_us = parse_date(arguments.from_date)
        if from_us is None:
            raise Fault(
                f"--from-time={arguments.from_date[:60]}: invalid time: give a date such as "
                '"2017-10-07 08:00", or a time after the first submission such as 2d'
            )
    return Selection(
        from_us,
        arguments.from_date is not None,
        arguments.window_us,
        arguments.gpus_max,
        arguments.sample,
        arguments.jobs,
        arguments.arrival_scale,
        arguments.seed,
    )


def read_log(arguments: argparse.Namespace) -> Log:
    """The jobs of the log; of an incomplete one with --keep-partial those before its end. Raises
    Fault."""
    form = getattr(arguments, "from")
    if arguments.job_table and form not in HAS_SECOND_TABLE:
        raise Fault(f"--job-table: a log of {form} has no second table")
    if arguments.where and form in ("philly", "swf"):
        raise Fault(f"--where: a log of {form} has no names of columns")
    column, mark, value = (arguments.where or "=").partition("=")
    if arguments.where and (not mark or not column):
        raise Fault(f"--where={arguments.where[:60]}: give COLUMN=VALUE, such as job_type=HP")
    options = Options(
        arguments.processors_per_gpu, arguments.job_table, (column, value), arguments.seed
    )
    with open_log(arguments.file) as (file, name):
        log = Log(name, options)
        try:
            READERS[form](file, name, log)
        except BreaksOff as where:
            if arguments.keep_partial:
                print_error(f"{where}: the file is incomplete")
            elif len(log.jobs) and arguments.action != "simulate":
                raise Fault(
                    f"{str(where)[:400]}: use the {len(log.jobs)} jobs before that with "
                    "--keep-partial"
                ) from None
            else:
                raise
    if log.first_mistake is not None:
        print_error(f"{log.first_mistake} (the first invalid job)")
    return log


def select(log: Log, selection: Selection, path: str) -> None:
    """An empty selection is a fault that says which period the log has: usually the date is wrong.
    Raises Fault."""
    log.jobs.sort()
    if not len(log.jobs):
        raise Fault(f"{path}: of {log.counts.read} jobs, none ran on a GPU and ended")
    first, last = format_date(log.jobs.submit_us[0]), format_date(log.jobs.submit_us[-1])
    select_jobs(log.jobs, selection, log.counts)
    if not len(log.jobs):
        raise Fault(
            f"{path}: no job matches the options: its jobs were submitted from {first} to {last}"
        )


def write(arguments: argparse.Namespace, jobs: Jobs) -> None:
    """Each job gets its task of the catalogue; with --tasks-out it becomes a new task. Raises
    Fault."""
    mapping = Mapping(read_catalogue(arguments.catalogue), arguments.seed)
    own = arguments.tasks_out is not None
    tasks: List[Task] = [
        mapping.any(gpus) if own else mapping.nearest(gpus, length_us)
        for gpus, length_us in zip(jobs.gpus, jobs.length_us)
    ]
    other = sum(task.gpus != gpus for task, gpus in zip(tasks, jobs.gpus))
    if other and not own:
        print_error(
            f"{other} jobs became tasks with another number of GPUs, because the catalogue has "
            "none with theirs"
        )
    write_trace(arguments.output, jobs, None if own else tasks)
    if own:
        write_tasks(arguments.tasks_out, jobs, tasks, arguments.gpu_bytes)


def say_source(jobs: Jobs, own: bool) -> None:
    """Where memory and activity of the tasks come from."""
    measured = sum(smact == smact for smact in jobs.smact)  # a NAN is unequal to itself
    with_memory = sum(memory > 0 for memory in jobs.memory_mib)
    shards = sum(bool(flags & SHARDS) for flags in jobs.flags)
    parts = sum(part > 0 and not flags & SHARDS for part, flags in zip(jobs.part, jobs.flags))
    if own and (parts or shards) and not measured and not with_memory:
        print_error(
            f"requested in the log: the SM activity of {parts} and the memory of {shards} of "
            f"{len(jobs)} jobs; of the others they are those of tasks of the catalogue"
        )
    elif not measured and not with_memory:
        print_error(
            "memory and activity of the jobs are not in the log: they are those of tasks of the "
            "catalogue"
        )
    elif own:
        print_error(
            f"measured in the log: the SM activity of {measured} and the memory of {with_memory} "
            f"of {len(jobs)} jobs; of the others they are those of tasks of the catalogue"
        )
    else:
        print_error(
            "the log has measured activity and memory, which --tasks-out=FILE uses: without it "
            "they are those of tasks of the catalogue"
        )


def run_import(arguments: argparse.Namespace) -> None:
    """The report comes last and says how many jobs were left out, and why. Raises Fault."""
    selection = read_selection(arguments)
    log = read_log(arguments)
    select(log, selection, arguments.file)
    write(arguments, log.jobs)
    report_kept(arguments.file, log.counts, log.jobs, arguments.json)
    say_source(log.jobs, arguments.tasks_out is not None)


def run_synth(arguments: argparse.Namespace) -> None:
    """A cluster's statistics give lengths, sizes and arrival times; the seed makes them repeatable.
    Raises Fault."""
    profile, gpus_max, days = synth.PROFILES[arguments.like], arguments.gpus_max, arguments.days
    jobs = synth.make_jobs(profile, arguments.jobs or 1000, days, gpus_max, arguments.seed)
    write(arguments, jobs)
    if not gpus_max:
        return
    gpu_s = 0.0
    for gpus, length_us in zip(jobs.gpus, jobs.length_us):
        gpu_s += gpus * (length_us / SECOND_US)
    share = synth.share_up_to(profile, gpus_max)
    if share < 1 - 1e-9:
        print_error(
            f"{100 * (1 - share):.1f} % of the jobs of {arguments.like} need more than {gpus_max} "
            "GPUs: these are skipped"
        )
    # Above 100 %, tasks share GPUs, or wait longer and longer.
    busy = 100 * gpu_s / (days * 86400 * gpus_max)
    print_error(
        f"these jobs, each alone on its GPUs, would keep {gpus_max} GPUs busy for {busy:.1f} % of "
        f"{days:g} days"
    )


def read_own(path: str) -> Jobs:
    """The jobs of a trace of colloc's own, as src/cli/trace_run.c writes them."""
    jobs = Jobs()
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        for submit_us, length_us, gpus in csv.reader(file):
            jobs.add(Job(int(submit_us), int(length_us), int(gpus)))
    return jobs


def run_info(arguments: argparse.Namespace) -> None:
    """Of a foreign log, and of a trace of colloc's own. Raises Fault."""
    log: Optional[Log] = None if arguments.own_jobs else read_log(arguments)
    jobs = log.jobs if log else read_own(arguments.own_jobs)
    if not len(jobs):
        raise Fault(f"{arguments.file}: no jobs that ran on GPUs")
    jobs.sort()
    statistics = Statistics(jobs)
    if arguments.json:
        print_statistics_json(statistics)
        return
    print_statistics(jobs, statistics, log is not None and jobs.submit_us[0] >= DATED_US)
    if log:
        report_kept(arguments.file, log.counts, jobs, False)


def run_simulate(arguments: argparse.Namespace) -> None:
    """The log where the simulator expects a trace, which is written to standard output; with
    --tasks-out the jobs, too, which then keep their lengths. Raises Fault."""
    log = read_log(arguments)
    select_jobs(log.jobs, Selection(gpus_max=arguments.gpus_max), log.counts)
    report_kept(arguments.file, log.counts, log.jobs, False)
    if not len(log.jobs):
        raise Fault(
            f"{arguments.file}: none of its jobs ran on GPUs, ended, and fits these "
            f"{arguments.gpus_max}"
        )
    write(arguments, log.jobs)
    if arguments.tasks_out:
        say_source(log.jobs, True)


def main(words: List[str]) -> int:
    """Returns the exit status."""
    actions = {
        "import": run_import,
        "synth": run_synth,
        "info": run_info,
        "simulate": run_simulate,
    }
    arguments = parse_arguments(words[1:])
    arguments.action = words[0]
    try:
        actions[arguments.action](arguments)
    except Fault as fault:
        print_error(str(fault))
        return EXIT_USAGE
    except MemoryError:
        print_error("out of memory")
        return EXIT_USAGE
    except BrokenPipeError:
        return EXIT_USAGE
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
