# SPDX-License-Identifier: Apache-2.0
"""The collocation study on this machine's GPUs: chapter 4 of the thesis, the EuroMLSys 2024 paper.

    scripts/study-collocation measure [--gpus=0,1] PROGRAMS FOLDER [TABLE ...]
        measures the tables of workloads/study (default: all), each on one GPU;
        needs GPUs, PyTorch, torchvision, timm, transformers and MPS
    scripts/study-collocation draw FOLDER REPORT
        writes one report of all that FOLDER has; runs anywhere
    scripts/study-collocation model FOLDER REPORT
        the error of the interference model for mixes of equal trainings, which it was not
        fitted to

PROGRAMS is a folder with collocd, colloc and colloc-shim (scripts/bundle makes one). The table
"compare" is measured without and with collocd. As many tables are measured at a time as there are
GPUs: their trainings share the processor, not the GPU. No setting of a GPU is changed. A study that
was interrupted continues where it stopped.
"""
import csv
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from colloc_fit.machine import nvidia_smi, run_action, wait_for_daemon

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLES = os.path.join(TOP, "workloads", "study")
BENCH = ["--interval=200ms", "--limit=120s", "--no-report"]
DAEMON = [
    "--policy=mug",
    "--smact-max=1",
    "--min-free=1MiB",
    "--settle=50ms",
    "--settle-max=100ms",
    "--sample-period=200ms",
]


def bench(programs, table, gpu, folder, *options):
    """Runs `colloc bench` on a table. Returns its exit status."""
    command = [
        os.path.join(programs, "colloc"),
        "bench",
        f"--gpu={gpu}",
        f"--output={folder}",
        *BENCH,
        *options,
        os.path.join(TABLES, f"{table}.csv"),
    ]
    with open(f"{folder}.log", "a", encoding="utf-8") as log:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stderr=log, check=False).returncode


def bench_by_daemon(programs, table, gpu, folder):
    """The same, each group submitted to a collocd of this GPU."""
    with tempfile.TemporaryDirectory(prefix="colloc-study-") as state:
        socket = os.path.join(state, "s")
        command = [
            os.path.join(programs, "collocd"),
            f"--socket={socket}",
            f"--state-dir={state}",
            f"--shim={programs}/colloc-shim",
            f"--gpus={gpu}",
            *DAEMON,
        ]
        with open(f"{folder}-collocd.log", "a", encoding="utf-8") as log:
            daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
        try:
            if not wait_for_daemon(programs, socket, daemon):
                raise RuntimeError(f"collocd does not answer, see {folder}-collocd.log")
            return bench(programs, table, gpu, folder, "--daemon", f"--socket={socket}")
        finally:
            daemon.terminate()
            daemon.wait(timeout=60)


def measure_table(programs, table, gpu, folder):
    began = time.monotonic()
    status = bench(programs, table, gpu, os.path.join(folder, table))
    if table == "compare":
        status |= bench_by_daemon(programs, table, gpu, os.path.join(folder, f"{table}-daemon"))
    failed = ", some of it failed" if status else ""
    print(
        f"{table} on GPU {gpu}: {time.monotonic() - began:.0f} s{failed}",
        file=sys.stderr,
        flush=True,
    )
    return status


def measure(first, second, *others):
    """Measures tables, one GPU for each at a time. words: the arguments of the command line."""
    arguments = (first, second, *others)
    chosen = [
        word.removeprefix("--gpus=").split(",") for word in arguments if word.startswith("--gpus=")
    ]
    programs, folder, *tables = [word for word in arguments if not word.startswith("--gpus=")]
    programs = os.path.abspath(programs)
    os.makedirs(folder, exist_ok=True)
    left, statuses = queue.Queue(), []
    for table in tables or sorted(os.path.splitext(name)[0] for name in os.listdir(TABLES)):
        left.put(table)

    def work(gpu):
        while True:
            try:
                table = left.get_nowait()
            except queue.Empty:
                return
            try:
                statuses.append(measure_table(programs, table, gpu, folder))
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                print(f"{table}: {error}", file=sys.stderr, flush=True)
                statuses.append(1)

    workers = [
        threading.Thread(target=work, args=(gpu,))
        for gpu in (chosen[0] if chosen else nvidia_smi("index"))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return 1 if any(statuses) else 0


def join_tables(folder, target):
    """Joins the journals of all tables. Groups and the files of their samples are renumbered."""
    os.makedirs(os.path.join(target, "looks"))
    number, wrote = 0, {"groups.csv": False, "tasks.csv": False, "summary.csv": False}
    for table in sorted(os.listdir(folder)):
        source = os.path.join(folder, table)
        if not os.path.exists(os.path.join(source, "groups.csv")) or table.startswith("compare"):
            continue
        most = number
        for name in wrote:
            with open(os.path.join(source, name), encoding="utf-8") as file, open(
                os.path.join(target, name), "a", encoding="utf-8", newline=""
            ) as out:
                rows = csv.DictReader(file)
                writer = csv.DictWriter(out, rows.fieldnames, lineterminator="\n")
                if not wrote[name]:
                    writer.writeheader()
                wrote[name] = True
                for row in rows:
                    row["group"] = f"{row['group']}"
                    if name == "groups.csv":
                        samples = f"{row['number']}-{row['repeat']}.csv"
                        row["number"] = number + int(row["number"])
                        most = max(most, row["number"])
                        shutil.copy(
                            os.path.join(source, "looks", samples),
                            os.path.join(target, "looks", f"{row['number']}-{row['repeat']}.csv"),
                        )
                    writer.writerow(row)
        number = most


def draw(folder, report):
    from colloc_report import bench as bench_report

    with tempfile.TemporaryDirectory() as joined:
        join_tables(folder, joined)
        bench_report.draw(joined, report)
        shutil.copy(os.path.join(joined, "summary.csv"), report)
    return 0


MEASURED = {
    "smact": "smact",
    "smocc": "smocc",
    "gract": "gract",
    "dram_active": "dram_active",
    "power_w": "power_w",
    "gpu_mem_used_mib": "mem_used_mib",
}


def equal_trainings(folder, summary):
    """Of mixes of equal trainings, the second epoch of each as a row of scripts/measure-sharing.

    A row's steps are the samples of the study.
    """
    for table in sorted(os.listdir(folder)):
        path = os.path.join(folder, table, "tasks.csv")
        if not os.path.exists(path) or table.startswith("compare"):
            continue
        with open(path, encoding="utf-8") as file:
            for row in csv.DictReader(file):
                mix, how = row["group"].rsplit(" ", 1)
                name, _, count = mix.partition("*")
                measured = summary[row["group"]]
                if (
                    row["epoch"] == "2"
                    and name.isalpha()
                    and how in ("streams", "mps")
                    and measured["samples_per_s"]
                ):
                    yield name, {
                        "how": how,
                        "mix": "+".join([name] * int(count or 1)),
                        "model": name,
                        "error": "",
                        "thread_percent": "",
                        "steps_per_s": float(row["samples"]) / float(row["epoch_s"]),
                        **{key: measured[column] for key, column in MEASURED.items()},
                    }


def check_model(folder, report):
    """Prints the errors of the interference model for each training."""
    with open(os.path.join(report, "summary.csv"), encoding="utf-8") as file:
        summary = {row["group"]: row for row in csv.DictReader(file)}
    rows = list(equal_trainings(folder, summary))
    for name in dict.fromkeys(name for name, _ in rows):
        with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8", newline="") as file:
            file.write("# NVIDIA H200\n")
            writer = csv.DictWriter(file, rows[0][1], lineterminator="\n")
            writer.writeheader()
            writer.writerows(row for model, row in rows if model == name)
            file.flush()
            print(name, flush=True)
            subprocess.run(
                [sys.executable, os.path.join(TOP, "scripts", "fit-sharing"), "--quick", file.name],
                stderr=subprocess.DEVNULL,
                check=False,
            )
    return 0


def main():
    return run_action(
        __doc__,
        {"measure": measure, "draw": draw, "model": check_model, "laws": check_model},
    )


if __name__ == "__main__":
    sys.exit(main())
