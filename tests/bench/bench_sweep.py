#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of all cores `colloc sweep` uses, of the time that other programs leave it.

usage: bench_sweep.py BUILD_FOLDER
Prints what tests/bench/bench.h describes.
"""

import os
import resource
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SEEDS = 1500


def idle_s():
    """Of all cores, since the machine began."""
    with open("/proc/stat", encoding="ascii") as file:
        idle, waiting = file.readline().split()[4:6]
    return (int(idle) + int(waiting)) / os.sysconf("SC_CLK_TCK")


def used_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main():
    command = [
        os.path.join(sys.argv[1], "src", "cli", "colloc"),
        "sweep",
        f"--seed=1:{SEEDS}",
        "--policy=magm,lug",
        f"--trace={ROOT}/data/traces/philly-90.txt",
        "--output=/dev/null",
    ]
    idle, used, began = idle_s(), used_s(), time.monotonic()
    subprocess.run(command, check=True)
    idle, used, passed_s = idle_s() - idle, used_s() - used, time.monotonic() - began
    cores = len(os.sched_getaffinity(0))
    for what, unit, target, value in [
        (
            f"sweep: use of {cores} cores, of what others leave",
            "%",
            "median >= 90",
            100 * used / (used + idle),
        ),
        (f"sweep: use of {cores} cores in all", "%", "", 100 * used / passed_s / cores),
        ("sweep: runs of 90 tasks", "per second", "", 2 * SEEDS / passed_s),
    ]:
        print("\t".join([what, unit, target, f"{value:.4g}", ""]), flush=True)


if __name__ == "__main__":
    main()
