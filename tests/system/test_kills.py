# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of the task, of its helper or of collocd in each phase of the carrier (docs/carrier.md),
on emulated GPUs whose bus is so slow that each phase can be met.

    COLLOC_PHASE_KILLS=N      kills of each victim in each phase (default 1)
    COLLOC_SUSPEND_SEED=S     another order, and other instants within the phases

After each kill the task goes on in the same attempt, with its blocks as they were, or has ended
with no process and no memory of it left; and a neighbour on its GPU computes on.
"""
import itertools
import os
import random
import signal
import sys
import time
import unittest

sys.path[:0] = [
    os.path.dirname(os.path.abspath(__file__)),
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"),
]
import kill_counts  # noqa: E402
import preload_daemon as pd  # noqa: E402
import test_suspend as ts  # noqa: E402
from daemon_case import is_alive, until  # noqa: E402
from test_ranks import attempt  # noqa: E402

ROUNDS = int(os.environ.get("COLLOC_PHASE_KILLS", "1"))
PCIE_MIB_S = 400  # the 63 MiB of a training are copied in 0.16 s
LATER_S = 0.1  # a kill comes at most so long after the phase has begun

# What is asked, and the phase of the page in which the kill comes. "rest" is what follows when the
# memory is away: the driver's part, until the task is suspended; "back", until it computes.
PHASES = (
    ("suspend", "waiting"),
    ("suspend", "copying"),
    ("suspend", "releasing"),
    ("suspend", "rest"),
    ("resume", "away"),
    ("resume", "returning"),
    ("resume", "back"),
)
AFTER = {"suspend": ("waiting", "copying", "releasing", "away"), "resume": ("returning", "here")}
NAMES = {"rest": ("away",), "back": ("gate", "here")}


class InEachPhase(ts.Suspend):
    """A time-sliced task, whose context goes by the driver's checkpoint."""

    settings = {"sample-period": "100ms", "carrier": "yes", "memory-wait": "30s"}
    gpus = "1xA100-40GB"
    wait_steps, goes_on = ts.Carried.wait_steps, ts.Carried.goes_on
    bring_back = ts.Carried.bring_back
    servers = ts.CarriedClients.servers

    def start_training(self):
        """Returns the task and its process, whose memory can be carried."""
        slow = {"COLLOC_EMULATOR_PCIE": str(PCIE_MIB_S)}
        task = self.submit(f"exec {ts.TRAINING}", environment=slow)
        self.wait_steps(task, 0)
        until(lambda: self.task(task)["carried"], "its carrier")
        shims = ts.processes_with(f"{self.state}/tasks/{task}/")
        pid = until(lambda: next((p for p in self.processes() if p in shims), None), "its process")
        return task, pid

    def page(self, pid):
        find = lambda: pd.ProcessPage(pid, self.process.pid)  # noqa: E731
        return until(lambda: attempt(find), "its page of this daemon")

    def meet(self, page, verb, phase):
        """Returns the phase in which it is now."""
        order = list(AFTER[verb])
        wanted = NAMES.get(phase, (phase,))
        later = order[order.index(wanted[0]) :] if wanted[0] in order else wanted
        page.wait_phase(*wanted, *later)
        end = time.monotonic() + self.chance.random() * LATER_S * (phase != "releasing")
        while page.phase() in wanted and time.monotonic() < end:
            pass
        return page.phase()

    def kill_in(self, victim, task, pid, verb, phase):
        """Returns the phase of the page at that instant; None: it was not killed."""
        until(lambda: self.task(task)["carried"], "its carrier")  # of the next daemon, too
        if verb == "resume":
            self.colloc("suspend", str(task))
        page, connection = self.page(pid), self.connection()
        connection.request("POST", f"/v1/tasks/{task}/{verb}", "{}")
        seen = self.meet(page, verb, phase)
        killed = self.kill(victim, pid)
        page.close()
        connection.close()
        return seen if killed else None

    def kill(self, victim, pid):
        """Returns whether it was there."""
        if victim == "collocd":
            self.restart(signal.SIGKILL)
            return True
        pids = [pid] if victim == "task" else self.helpers()
        for found in pids:
            os.kill(found, signal.SIGKILL)
        return bool(pids)

    def check_ended(self, task, pid):
        self.wait_killed(task)
        until(lambda: pid not in self.processes(), "its memory to be free")
        self.assertFalse(is_alive(pid))
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def check_goes_on(self, task, pid):
        said = "\n".join(self.log[-60:]) + self.output(task)[-500:]
        self.assertTrue(is_alive(pid), said)
        self.bring_back(task)
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def run_campaign(self, victim):
        seed = ts.SEED
        self.chance = random.Random(f"{seed} {victim}")
        cases = list(itertools.product(range(ROUNDS), PHASES))
        self.chance.shuffle(cases)
        with kill_counts.of(self, seed) as killed:
            neighbour, beside = self.start_training()
            task, pid = self.start_training()
            for _, (verb, phase) in cases:
                with self.subTest(f"{victim}, {verb}: {phase}"):
                    seen = self.kill_in(victim, task, pid, verb, phase)
                    if seen:
                        killed[victim, f"{verb}: {seen}"] += 1
                    if victim == "task":
                        self.check_ended(task, pid)
                    else:
                        self.check_goes_on(task, pid)
                self.goes_on(neighbour)
                if victim == "task":
                    task, pid = self.start_training()
            self.colloc("cancel", str(task))
            self.wait(task, "CANCELLED")
            until(
                lambda: set(self.processes()) - set(self.servers()) == {beside},
                "no memory of others to be left",
                explain=lambda: self.show() + str(beside),
            )

    def test_the_task(self):
        self.run_campaign("task")

    def test_its_helper(self):
        self.run_campaign("helper")

    def test_collocd(self):
        self.run_campaign("collocd")


class Clients(InEachPhase):
    """Clients of MPS, whose contexts stay."""

    settings = {**InEachPhase.settings, "sharing": "mps"}


if __name__ == "__main__":
    unittest.main()
