# SPDX-License-Identifier: Apache-2.0
"""Ranks of NCCL that give way together (docs/carrier.md), on emulated GPUs: their blocks leave,
NCCL's memory and the contexts stay. And the campaign: a rank, collocd or its helper is killed in
each phase.

    COLLOC_RANK_KILLS=N     kills of each kind in each phase (default 1), also of clients of MPS
"""
import contextlib
import itertools
import json
import os
import random
import signal
import sqlite3
import sys
import unittest

sys.path[:0] = [
    os.path.dirname(os.path.abspath(__file__)),
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"),
]
import preload_daemon as pd  # noqa: E402
import test_suspend as ts  # noqa: E402
from daemon_case import BUILD, is_alive, processes_with, until  # noqa: E402

CLOCK = os.path.abspath(os.path.join(BUILD, "tests", "system", "libshifted-clock.so"))

# One of two ranks, each on its GPU, that wait for each other in every step.
RANKS = f"{ts.TRAINING} --device=$LOCAL_RANK --rank=$LOCAL_RANK --all-reduce=1"


def attempt(find):
    """None where the process has not met the daemon yet."""
    with contextlib.suppress(RuntimeError):
        return find()


class Ranks(ts.Suspend):
    gpus = "3xA100-40GB"
    settings = {"sample-period": "100ms", "carrier": "yes"}

    def start_ranks(self, options="", nccl_mib=0, **members):
        """nccl_mib: what NCCL takes on each GPU for itself"""
        rank = f"{RANKS} {options}"
        task = self.submit(
            f"export PRETEND_NCCL_MIB={nccl_mib}\n"
            f"for LOCAL_RANK in 0 1; do export LOCAL_RANK; {rank} & done\nwait -n; kill 0",
            gpus=2,
            **members,
        )
        self.wait_steps(task, 4)
        until(lambda: len(self.ranks(task)) == 2, "two ranks")
        until(lambda: self.task(task)["carried"], "both carriers")
        return task

    def ranks(self, task):
        shims = processes_with(f"{self.state}/tasks/{task}/")
        return [pid for pid in self.processes() if pid in shims]

    def wait_steps(self, task, before):
        until(lambda: self.output(task).count("step") > before + 6, "further steps")

    def goes_on(self, task):
        self.wait_state(task, "RUNNING")
        self.wait_steps(task, self.output(task).count("step"))

    def used_mib(self):
        return [gpu["mem_used_mib"] for gpu in self.get("/v1/gpus")["gpus"]]

    def last_event(self, kind):
        """Its body in the event log."""
        with sqlite3.connect(os.path.join(self.state, "colloc.db")) as log:
            query = "SELECT body FROM events WHERE kind = ? ORDER BY seq DESC LIMIT 1"
            return json.loads(log.execute(query, (kind,)).fetchone()[0])

    settled = ts.Suspend.settled_client

    def suspend(self, task):
        self.assertIn("SUSPENDED", self.colloc("suspend", str(task)).stdout)


class Together(Ranks):
    def test_they_give_way_and_come_back(self):
        """Only to their GPUs, though another one is free."""
        task = self.start_ranks()
        gpus = sorted(self.task(task)["gpus"])
        for _ in range(3):
            self.suspend(task)
            self.assertEqual(self.task(task)["state"], "SUSPENDED")
            self.assertTrue(self.last_event("SUSPENDED")["ranks"])  # the core recalls them
            until(lambda: max(self.used_mib()) < 100, "their memory to be free")
            self.colloc("resume", str(task))
            self.goes_on(task)
            self.assertEqual(sorted(self.task(task)["gpus"]), gpus)
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def test_what_nccl_has_is_no_reason_to_stay(self):
        """More than they have in blocks, as in a pipeline. It stays on the GPUs."""
        task = self.start_ranks(nccl_mib=200)
        self.check_stand(self.ranks(task)[0])
        self.suspend(task)
        until(lambda: max(self.used_mib()) < 300, "their memory to be free")
        self.assertGreater(sorted(self.used_mib())[1], 200)
        self.colloc("resume", str(task))
        self.goes_on(task)
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def check_stand(self, pid):
        """What the trials on GPUs note of a rank that cannot be suspended."""
        page = until(lambda: attempt(lambda: pd.ProcessPage(pid, self.process.pid)), "its page")
        stand = page.stand()
        page.close()
        self.assertEqual((stand["phase"], stand["why"], stand["under_way"][1]), ("here", "can", 0))
        self.assertGreater(
            stand["held_mib"][0] + stand["held_mib"][1], 200 + stand["blocks_mib"] - 9
        )
        ((launched, _),) = stand["launched"]
        self.assertGreater(launched, 0)
        self.assertEqual({tuple(ends) for *ends, _ in stand["messages"]}, {(0, 1), (1, 0)})

    def test_what_a_user_has_suspended_comes_back_in_time(self):
        """For the next collocd more time has passed than PyTorch's watchdog allows."""
        task = self.start_ranks()
        self.suspend(task)
        self.env.update(LD_PRELOAD=CLOCK, COLLOC_TEST_UPTIME_AHEAD_S="250")
        self.restart(signal.SIGKILL)
        self.goes_on(task)
        self.assertEqual(self.task(task)["attempt_count"], 1)


class AwayAtMost(Ranks):
    """With `suspend-ranks-max` of seconds instead of minutes: enough to be asked meanwhile."""

    settings = {**Ranks.settings, "suspend-ranks-max": "8s"}

    def test_suspended_by_a_user(self):
        task = self.start_ranks()
        self.assertEqual(self.act("suspend", task).status, 200)
        self.assertIn("after 8 s", self.task(task)["reason_text"])
        self.goes_on(task)
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def test_a_rank_for_whose_memory_the_other_waits(self):
        """Its allocation fails before PyTorch would end the ranks."""
        grows = os.path.join(self.folder, "grows")
        task = self.start_ranks(f"--grows={grows} --grows-mib=6000", requeue=False)
        for gpu in "012":
            self.train(36000, 1e6, gpu_ids=gpu)
        until(lambda: min(self.used_mib()) > 35900, "memory on each GPU")
        open(grows, "w").close()
        self.wait_log("waits for 5.9 GiB")
        self.wait(task, "FAILED")
        self.assertIn("cuMemAlloc_v2: 2", self.output(task))
        self.wait_log(r"goes on after ([89]|[1-5]\d)\.\d s")  # not after 10 minutes


class PausedRanks(ts.Suspend):
    """What has several GPUs may be ranks."""

    gpus = "2xA100-40GB"
    settings = {"suspend-ranks-max": "8s", "sharing": "mps"}

    def test_paused_by_a_user(self):
        task = self.submit(
            "colloc-pretend-train --memory-mib=3000 --seconds=1e6 --ramp-seconds=0", gpus=2
        )
        until(lambda: self.processes(), "its process")
        self.assertEqual(self.act("suspend", task).status, 200)
        found = self.task(task)
        self.assertEqual(found["state"], "PAUSED")
        self.assertIn("after 8 s", found["reason_text"])
        self.wait_state(task, "RUNNING")


class Clients(Together):
    """Ranks that are clients of MPS."""

    settings = {**Ranks.settings, "sharing": "mps"}

    def test_they_are_clients(self):
        task = self.start_ranks()
        self.assertIn("MPS", self.show())
        moved = self.colloc("move", str(task), "--gpu=1,2", code=1)
        self.assertIn("whose context stays on its GPU", moved.stderr)


class Kills(Ranks):
    """In each phase: the ranks go on, or the task ends as it would without colloc, and leaves no
    process and no memory."""

    rounds = int(os.environ.get("COLLOC_RANK_KILLS", "1"))
    # Of a phase that has gone by, the next one is met.
    away = ("held", "gate", "waiting", "copying", "releasing", "away")
    back = ("away", "returning", "here")

    def cases(self, *phases):
        chance = random.Random(int(os.environ.get("COLLOC_SUSPEND_SEED", "1")))
        cases = list(itertools.product(range(self.rounds), phases))
        chance.shuffle(cases)
        return [phase for _, phase in cases]

    @contextlib.contextmanager
    def in_phase(self, task, verb, phase):
        """While one of the ranks is in the phase; the other one, in it or near."""
        order = self.away if verb == "suspend" else self.back
        find = lambda: pd.ProcessPage(self.ranks(task)[0], self.process.pid)  # noqa: E731
        page = until(lambda: attempt(find), "its page of this daemon")
        connection = self.connection()
        connection.request("POST", f"/v1/tasks/{task}/{verb}", "{}")
        page.wait_phase(*order[order.index(phase) :])
        page.close()
        yield
        connection.close()

    def kill_rank(self, task, verb, phase):
        ranks = self.ranks(task)
        with self.in_phase(task, verb, phase):
            os.kill(ranks[1], signal.SIGKILL)
        self.wait(task, "FAILED")
        until(lambda: not self.processes(), "no process to be left")
        self.assertEqual(self.task(task)["attempt_count"], 1)
        until(lambda: max(self.used_mib()) < 16, "no memory to be left")

    def test_a_rank(self):
        for phase in self.cases(*self.away):
            with self.subTest(phase):
                self.kill_rank(self.start_ranks(requeue=False), "suspend", phase)
        for phase in self.cases(*self.back[:2]):
            with self.subTest("on the way back: " + phase):
                task = self.start_ranks(requeue=False)
                self.suspend(task)
                self.kill_rank(task, "resume", phase)

    def go_through(self, kill):
        """One task through all phases."""
        task = self.start_ranks()
        ranks = self.ranks(task)
        cases = zip(self.cases(*self.away), itertools.cycle(self.cases(*self.back[:2])))
        for phase in itertools.chain.from_iterable(cases):
            state = self.settled(task)
            verb = "resume" if state == "SUSPENDED" else "suspend"
            if phase not in (self.back if state == "SUSPENDED" else self.away):
                phase = "away"
            with self.subTest(f"{verb}: {phase}"):
                with self.in_phase(task, verb, phase):
                    kill()
                self.assertTrue(all(map(is_alive, ranks)), self.output(task)[-500:])
                if self.settled(task) == "RUNNING":
                    self.goes_on(task)
        if self.settled(task) == "SUSPENDED":
            self.act("resume", task)
        self.goes_on(task)
        self.assertEqual(self.task(task)["attempt_count"], 1)
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        until(lambda: not self.processes(), "no process to be left")

    def test_collocd(self):
        self.go_through(lambda: self.restart(signal.SIGKILL))

    def test_its_helper(self):
        def kill():
            for pid in self.helpers():
                os.kill(pid, signal.SIGKILL)

        self.go_through(kill)


@unittest.skipUnless("COLLOC_RANK_KILLS" in os.environ, "a part of `make soak`")
class KilledClients(Kills):
    settings = Clients.settings


if __name__ == "__main__":
    unittest.main()
