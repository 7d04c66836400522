# SPDX-License-Identifier: Apache-2.0
"""The output of a demo: its progress, and the table of its figures."""

import shutil
import sys
import time


class Display:
    """The progress: on a terminal two lines that are overwritten, elsewhere a new line now and
    then."""

    BAR = 22
    EVERY_S = 10  # where it is no terminal

    def __init__(self, total):
        self.total, self.live, self.drawn, self.next = total, sys.stdout.isatty(), False, 0
        fine = (sys.stdout.encoding or "").lower().startswith("utf")
        self.marks = "█▒░ " if fine else "#+. "

    def bar(self, progress):
        done = progress["done"]
        ends = [
            done,
            done + progress["running"],
            done + progress["running"] + progress["waiting"],
            self.total,
        ]
        cells = [round(self.BAR * end / self.total) for end in ends]
        return "".join(
            mark * (end - begin) for mark, begin, end in zip(self.marks, [0, *cells], cells)
        )

    def line(self, server, progress, clock_s):
        counts = " ".join(
            f"{progress[key]:>2} {word}"
            for key, word in zip(
                ("done", "running", "waiting", "oom"), ("done", "running", "waiting", "OOM")
            )
        )
        return f"{server.name:<9} {hours(clock_s)}  |{self.bar(progress)}| {counts}"

    def show(self, lines, last):
        now = time.monotonic()
        if not self.live and now < self.next and not last:
            return
        self.next = now + self.EVERY_S
        if self.live and self.drawn:
            print(f"\033[{len(lines)}A", end="")
        room = shutil.get_terminal_size().columns - 1
        for line in lines:
            print("\033[2K" + line[:room] if self.live else line)
        sys.stdout.flush()
        self.drawn = True


def hours(seconds):
    return f"{int(seconds // 3600):>2}h{int(seconds % 3600 // 60):02}"


def minutes(seconds):
    return f"{seconds / 60:.1f} min"


ROWS = [
    ("Trace total time", "total_s", lambda s: f"{hours(s).strip()} ({s / 60:.0f} min)"),
    ("Average waiting", "avg_wait_s", minutes),
    ("Average execution", "avg_exec_s", minutes),
    ("Average job completion", "avg_jct_s", minutes),
    ("OOM crashes", "oom", str),
    ("Recovered tasks", "recovered", str),
    ("Completed tasks", "tasks_completed", str),
    ("Mean SMACT", "mean_smact", lambda f: f"{100 * f:.1f} %"),
    ("GPU energy", "energy_mj", lambda mj: f"{mj:.1f} MJ"),
]


def difference(before, after):
    return f"{100 * (after - before) / before:+.1f} %" if before and before != after else ""


def print_table(results):
    exclusive, magm = results["exclusive"], results["magm"]
    print(f"\n{'':<24}{'exclusive':>20}{'MAGM on MPS':>20}{'difference':>14}")
    for title, key, form in ROWS:
        before, after = exclusive[key], magm[key]
        line = f"{title:<24}{form(before):>20}{form(after):>20}{difference(before, after):>14}"
        print(line.rstrip())
