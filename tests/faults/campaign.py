#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fault campaign: injects faults while tasks of every kind run, and checks the result.

usage: campaign.py [--seed=N] [--seconds=S] [PART...]

Parts (default: all): kills, system-calls, power-cuts (needs root and a loop device), corruption. A
round injects faults for --seconds; its tasks need some more time to end. With more than ROUND_S
there are several rounds, each with the next seed, which is printed before. A failure prints the
seed again, keeps the daemon's folder and ends the campaign. workload.py has the tasks and the
checks.
"""

import argparse
import collections
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from workload import Workload  # first: it adds tests/system to the path
from daemon_case import BUILD, LIMIT_S, processes_with, program, read, until
from damage import DamageCase

SEED = 20261122  # chosen: any; the same in each run of CI
ROUND_S = 60


class Kills(Workload):
    """SIGKILL of the daemon and of shims at random instants.

    Every fourth shim starts up to 0.5 s late, as on a machine short of memory: the next daemon has
    often started before it.
    """

    SLOW_SHIM = '#!/bin/bash\n((RANDOM % 4)) || sleep 0.$((RANDOM % 5))\nexec {} "$@"\n'

    def command(self, **settings):
        slow = os.path.join(self.folder, "slow-shim")
        if not os.path.exists(slow):
            with open(
                slow, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o755)
            ) as file:
                file.write(self.SLOW_SHIM.format(program("shim")))
        return super().command(shim=slow, **settings)

    def test_kills(self):
        kills = 0
        with self.under_harm():
            while self.time_is_left():
                self.pause(0.4)
                if self.random.random() < 0.3:
                    self.kill_a_shim()
                    continue
                self.restart(signal.SIGTERM if self.random.random() < 0.15 else signal.SIGKILL)
                kills += 1
        print(
            f"kills: {kills} ends of the daemon, {len(self.shims_killed)} of shims: {self.judge()}",
            flush=True,
        )
        self.assertGreater(kills, 0)


@unittest.skipIf(
    "ASAN_OPTIONS" in os.environ,
    "the address sanitizer does not go with a library loaded before it",
)
class SystemCalls(Workload):
    """System calls of the daemon fail by chance (faulty.c), and it is killed now and then."""

    rates_per_million = (
        3000,
        10000,
    )  # chosen: each daemon gets through its start about every second time
    nth_call = (1, 300)  # chosen: at the start or soon after it

    def start(self, **settings):
        """With faults, unless it gives up at its start three times in a row: then without."""
        self.faults_log = os.path.join(self.folder, "faults")
        for _ in range(3):
            rate = self.random.randint(*self.rates_per_million)
            nth = f"@{self.random.randint(*self.nth_call)}"
            seed, which = self.random.randrange(1 << 30), self.random.choice((rate, rate, nth))
            faulty = {
                "LD_PRELOAD": os.path.abspath(
                    os.path.join(BUILD, "tests", "faults", "libfaulty.so")
                ),
                "COLLOC_TEST_FAULTS": f"{seed}:{which}",
                "COLLOC_TEST_FAULTS_LOG": self.faults_log,
            }
            try:
                return self.start_with(faulty, settings)
            except AssertionError:
                self.assertEqual(self.process.wait(LIMIT_S), 1, "\n".join(self.log[-40:]))
        return self.start_with({}, settings)

    def start_with(self, faulty, settings):
        self.env.update(faulty)
        try:
            super().start(**settings)
        finally:
            for name in faulty:
                self.env.pop(name)

    def test_system_calls(self):
        starts = 1
        with self.under_harm():
            while self.time_is_left():
                self.pause(1.5)
                self.assertIsNone(
                    self.process.poll(), "the daemon ended:\n" + "\n".join(self.log[-40:])
                )
                self.stop(signal.SIGKILL)
                self.start()
                starts += 1
        self.stop(signal.SIGKILL)
        self.start_with({}, {})
        faults = collections.Counter(read(self.faults_log).split())
        print(
            f"system calls: {starts} daemons, {sum(faults.values())} faults {dict(faults)}:",
            self.judge(),
            flush=True,
        )
        self.assertGreater(sum(faults.values()), 0)


@unittest.skipIf(os.geteuid() != 0, "mounting a loop device needs root")
class PowerCuts(Workload):
    """The state folder is a mounted file system, whose device is copied while all is stopped.

    The copy has what was written to the device, without what the kernel still had in memory. All
    processes are killed, and the daemon continues from the copy. The file `ran` is not on that
    device: it keeps what really ran.
    """

    settings = {**Workload.settings, "log-reserve": "1MiB"}
    image_mib = 96

    def setUp(self):
        self.mounted, self.ended, self.last_cut_at = False, {}, 0
        super().setUp()

    def start(self, **settings):
        if not self.mounted:
            self.image = os.path.join(self.folder, "disk-0")
            with open(self.image, "wb") as file:
                file.truncate(self.image_mib << 20)
            subprocess.run(
                ["mkfs.ext4", "-q", "-F", self.image], check=True, stdin=subprocess.DEVNULL
            )
            self.mount()
        super().start(**settings)

    def mount(self):
        os.makedirs(self.state, 0o711, exist_ok=True)
        done = subprocess.run(
            ["mount", "-o", "loop", self.image, self.state],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode and not self.process:
            self.skipTest("cannot mount a loop device here: " + done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.mounted = True

    def unmount(self):
        until(
            lambda: subprocess.run(
                ["umount", self.state], stderr=subprocess.DEVNULL, check=False
            ).returncode
            == 0,
            "the unmounting of the state folder",
        )
        self.mounted = False

    def tear_down_daemon(self):
        if self.process and self.process.poll() is None:
            self.stop(signal.SIGKILL)
        until(lambda: not self.kill_all(), "the end of all processes")
        if self.mounted:
            self.unmount()
        super().tear_down_daemon()

    def see_ends(self):
        """What a client sees of ended tasks must stay so after a cut."""
        for task in self.tasks(state="ended", limit=10000):
            self.ended[task["id"]] = self.lasting(task)

    @staticmethod
    def lasting(task):
        return {
            key: task[key]
            for key in ("name", "state", "reason", "exit_code", "attempt_count", "submitted_at")
        }

    def stop_everything(self):
        """Stops processes until none runs: a task may start another one meanwhile."""
        stopped = set()
        while new := set(processes_with(self.folder)) - stopped:
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= new

    def cut(self, number):
        self.process.send_signal(signal.SIGSTOP)
        self.stop_everything()
        self.last_cut_at = time.time()
        copy = os.path.join(self.folder, f"disk-{number}")
        subprocess.run(["cp", "--sparse=always", self.image, copy], check=True)
        self.stop(signal.SIGKILL)
        until(lambda: not self.kill_all(), "the end of all processes")
        self.unmount()
        os.unlink(self.image)
        self.image = copy
        self.mount()
        self.start()
        now = {task["id"]: self.lasting(task) for task in self.all_tasks()}
        changed = {
            task: (end, now.get(task)) for task, end in self.ended.items() if now.get(task) != end
        }
        self.assertEqual(changed, {}, "ends that clients had seen")

    def may_be_lost(self, task):
        return task["submitted_at"] < self.last_cut_at

    def test_power_cuts(self):
        cuts = 0
        with self.under_harm():
            while self.time_is_left():
                self.pause(1.5)
                self.see_ends()
                self.pause(0.3)
                cuts += 1
                self.cut(cuts)
        print(
            f"power cuts: {cuts} cuts, {len(self.ended)} ends seen before one: {self.judge()}",
            flush=True,
        )
        self.assertGreater(cuts, 0)


class Corruption(DamageCase):
    """The damage of tests/system/damage.py, with as many rounds as there is time for."""

    seed, seconds = 0, 10

    def damage_until(self, name, before, chance):
        """Runs half of the time. Returns how many daemons refused, reported loss, or served all."""
        end, total = time.monotonic() + self.seconds / 2, collections.Counter()
        while time.monotonic() < end:
            total.update(self.rounds(name, before, chance.randrange(1 << 32), 1))
        return total

    def test_corruption(self):
        before, chance, total = self.with_tasks(), random.Random(self.seed), collections.Counter()
        try:
            self.stop(signal.SIGKILL)
            total += self.damage_until("colloc.db-wal", before, chance)
            self.start()
            self.stop()
            total += self.damage_until("colloc.db", before, chance)
        except BaseException:
            self.keep_folder = True
            raise
        print(f"corruption: {dict(total)}", flush=True)
        self.assertGreater(total["said"] + total["refused"], 0)


# And their shares of the time.
PARTS = {
    "kills": (Kills, 0.35),
    "system-calls": (SystemCalls, 0.25),
    "power-cuts": (PowerCuts, 0.25),
    "corruption": (Corruption, 0.15),
}


def run_round(parts, seed, seconds):
    """All parts with that seed. Returns whether each held."""
    print(f"\n--seed={seed} --seconds={seconds:.0f} {' '.join(parts)}", flush=True)
    shares = sum(PARTS[name][1] for name in parts)
    suite = unittest.TestSuite()
    for name in parts:
        case, share = PARTS[name]
        case.seed, case.seconds = seed, seconds * share / shares
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    good = unittest.TextTestRunner(verbosity=2, failfast=True).run(suite).wasSuccessful()
    if not good:
        print(
            f"FAILED: again with --seed={seed} --seconds={seconds:.0f} {' '.join(parts)}",
            flush=True,
        )
    return good


def main():
    parser = argparse.ArgumentParser(
        description="Harms a daemon with a seed and judges what became of its tasks."
    )
    parser.add_argument("--seed", type=int, default=SEED, help="0: a random one")
    parser.add_argument(
        "--seconds", type=float, default=30, help="how long to do harm (default: 30)"
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)"
    )
    args = parser.parse_args()
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    seed, end = args.seed or random.randrange(1 << 32), time.monotonic() + args.seconds
    while run_round(args.parts or list(PARTS), seed, min(args.seconds, ROUND_S)):
        seed += 1
        if end - time.monotonic() < ROUND_S / 2:
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
