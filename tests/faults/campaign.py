#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fault campaign: a daemon is harmed while tasks of every kind are submitted, and then judged (workload.py).

usage: campaign.py [--seed=N] [--seconds=S] [PART...]

Parts: kills. A round of all parts takes about --seconds and some time for the tasks to end; with
more than ROUND_S there are several rounds, each with the next seed. The seed is printed before each round. A failure
prints it again, keeps the folder of the daemon and ends the campaign.
"""

import argparse
import random
import signal
import sys
import time
import unittest

from workload import Workload

SEED = 20261122  # chosen: any; the same in each run of CI
ROUND_S = 60


class Kills(Workload):
    """SIGKILL of the daemon and of shims at random instants."""

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
        print(f"kills: {kills} ends of the daemon, {len(self.shims_killed)} of shims: {self.judge()}", flush=True)
        self.assertGreater(kills, 0)


PARTS = {"kills": (Kills, 1.0)}  # and its share of the time


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
        print(f"FAILED: again with --seed={seed} --seconds={seconds:.0f} {' '.join(parts)}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description="Harms a daemon with a seed and judges what became of its tasks.")
    parser.add_argument("--seed", type=int, default=SEED, help="0: a random one")
    parser.add_argument("--seconds", type=float, default=30, help="how long to do harm (default: 30)")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
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
