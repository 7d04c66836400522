# SPDX-License-Identifier: Apache-2.0
"""Tasks of unknown memory that start anywhere and together want several times what GPUs have: all
of them end, with their blocks as they were, and none stands still.

    COLLOC_FULL_ROUNDS=N      rounds of each kind; without it one of the first two kinds
    COLLOC_FULL_SEED=S        other tasks, and faults at other instants

tests/unit/core/test_full_gpus.c has thousands of drawn servers without the daemon.
"""
import os
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_suspend as ts  # noqa: E402
from daemon_case import DaemonCase, at_most, until  # noqa: E402

ROUNDS = int(os.environ.get("COLLOC_FULL_ROUNDS", "1"))
AT_LENGTH = unittest.skipUnless("COLLOC_FULL_ROUNDS" in os.environ, "with make soak")
SEED = int(os.environ.get("COLLOC_FULL_SEED", "1"))
TASKS = 8
FREE_MIB = 560  # of each GPU; a context takes 32, and 256 have to be free beside one that returns
STILL_S = 90  # a task that does not leave is not waited for after 40 s and twice what that takes


class FullGpu(DaemonCase):
    """One GPU, time-sliced: contexts stay."""

    gpus = "1xA100-40GB"
    speed = 100
    driver = "off"  # its checkpoint does not fail
    harm = ()
    settings = {
        "sample-period": "100ms",
        "policy": "rr",
        "sharing": "streams",
        "carrier": "yes",
        "smact-max": "1",
        "min-free": "0",
        "margin": "0",
        "settle": "1s",
        "settle-max": "4s",
    }
    show = ts.Suspend.show

    def setUp(self):
        super().setUp()
        self.emulator("set", "machine", f"checkpoint-fails={self.driver}")
        for gpu in range(int(self.gpus[0])):
            self.leave(gpu, FREE_MIB)
            self.wait_gpu(lambda found: at_most(found["mem_free_mib"], FREE_MIB), gpu)

    def leave(self, gpu, mib):
        """What programs of others leave there."""
        self.emulator("set", str(gpu), f"foreign-mib={ts.USABLE_MIB - mib}")

    def submit_one(self, chance):
        """At most half of what is free of a GPU, in pieces."""
        pieces = chance.randint(1, 6)
        mib = chance.randint(60, 220)
        steps = 4 * pieces + chance.randint(10, 40)
        return self.submit(
            f"exec {ts.TRAINING} --blocks=1 --first-mib=4 --steps={steps} --pieces={pieces}"
            f" --piece-mib={max(1, mib // pieces)}"
        )

    def look(self, tasks):
        """Returns what changes where something gets on: states, and how much each has printed."""
        states = [self.task(task)["state"] for task in tasks]
        return states, [
            len(self.output(task)) if s != "PENDING" else 0 for task, s in zip(tasks, states)
        ]

    def do_harm(self, chance):
        kind = chance.choice(self.harm)
        if kind == "restart":
            self.restart(signal.SIGKILL)
        elif kind == "external":
            gpu = chance.randrange(int(self.gpus[0]))
            self.leave(gpu, FREE_MIB - 60)
            time.sleep(2 * chance.random())
            self.leave(gpu, FREE_MIB)
        else:
            self.emulator("set", "machine", f"checkpoint-fails={chance.choice(('on', 'off'))}")

    def explain(self, tasks):
        shown = [self.colloc("show", str(task), code=None).stdout for task in tasks]
        return "\n".join([*shown, self.show(), *self.log[-80:]])

    def run_round(self, chance):
        tasks = [self.submit_one(chance) for _ in range(TASKS)]
        last, changed = None, time.monotonic()
        while True:
            now = self.look(tasks)
            if now != last:
                last, changed = now, time.monotonic()
            if set(now[0]) <= {"COMPLETED", "FAILED", "OUT_OF_MEMORY", "CANCELLED"}:
                break
            if time.monotonic() - changed > STILL_S:
                self.fail("nothing gets on:\n" + self.explain(tasks))
            if self.harm and chance.random() < 0.1:
                self.do_harm(chance)
            time.sleep(0.2)
        for task in tasks:
            said = self.output(task)
            found = self.task(task)
            self.assertEqual(found["state"], "COMPLETED", said[-300:] + self.explain([task]))
            self.assertEqual(said.count("whole"), 1, said[-300:])
            self.assertNotIn("lost", said)
        return tasks

    def test_all_end(self):
        waits = stops = 0
        for number in range(ROUNDS):
            seed = SEED + number
            with self.subTest(seed=seed):
                tasks = self.run_round(random.Random(f"{seed} {type(self).__name__}"))
                found = [self.task(task) for task in tasks]
                waits += sum(each["memory_waits"] for each in found)
                stops += sum(each["suspensions"] + each["moves"] for each in found)
        print(f"{type(self).__name__}: {waits} waits, {stops} stops", flush=True)
        self.assertGreater(waits, 0)
        until(lambda: not self.processes_left(), "no memory of tasks to be left")

    def processes_left(self):
        return [p for p, row in ts.Suspend.processes(self).items() if row[1]]


class TwoGpus(FullGpu):
    """Contexts leave, and tasks move."""

    gpus = "2xA100-40GB"


@AT_LENGTH
class Harmed(TwoGpus):
    """collocd is killed, others take memory, and the driver fails now and then."""

    harm = ("restart", "external", "driver")


@AT_LENGTH
class WithoutCheckpoint(FullGpu):
    """The driver refuses each checkpoint."""

    driver = "on"


@AT_LENGTH
class Clients(FullGpu):
    """Of MPS, whose contexts stay."""

    settings = {**FullGpu.settings, "sharing": "mps"}

    def processes_left(self):
        return []  # of the server of MPS, and its clients have ended


del DaemonCase  # its own module tests it


if __name__ == "__main__":
    unittest.main()
