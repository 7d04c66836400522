# SPDX-License-Identifier: Apache-2.0
"""Copies of suspended tasks that lie in free memory of a neighbour GPU (docs/carrier.md)."""
import os
import signal
import struct
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_suspend as ts  # noqa: E402
from daemon_case import DaemonCase, at_least, at_most, processes_with, until  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import page_liar  # noqa: E402
import preload_daemon as pd  # noqa: E402

BIG_MIB = 110  # declared: two such tasks do not fit into what is free of GPU 0
FREE_MIB = 215


class Neighbour(DaemonCase):
    """A task gives way to one of a higher priority on GPU 0, which NVLink joins with GPU 1."""

    gpus = "2xA100-40GB"
    speed = 100
    settings = {
        "sample-period": "100ms",
        "carrier": "yes",
        "sharing": "mps",
        "neighbour-memory": "yes",
        "preempt": "yes",
        "margin": "16MiB",
        "min-free": "16MiB",
        "smact-max": "1",
        "settle": "5s",  # longer than a busy machine takes between two blocks of a training
        "settle-max": "60s",
    }

    def start(self, **settings):
        self.emulator("set", "0", "nvlink=1:4")
        super().start(**settings)

    def setUp(self):
        super().setUp()
        self.wait_gpu(lambda gpu: gpu["mem_free_mib"])
        taken = int(self.gpu(0)["mem_free_mib"] - FREE_MIB)
        self.emulator("set", "0", f"foreign-mib={taken}")
        self.wait_gpu(lambda gpu: at_most(gpu["mem_free_mib"], FREE_MIB))

    show, processes = ts.Suspend.show, ts.Suspend.processes
    wait_steps, goes_on = ts.Carried.wait_steps, ts.Carried.goes_on

    def training(self, fails="", gpu="0", memory_mib=BIG_MIB, **members):
        script = f"{fails} exec {ts.TRAINING}"
        return self.submit(script, gpu_ids=gpu, memory_mib=memory_mib, **members)

    def pid_of(self, task):
        shims = processes_with(f"{self.state}/tasks/{task}/")
        return next((p for p in self.processes() if p in shims), None)

    def wait_near(self, *tasks):
        """Returns the task whose copy lies on GPU 1."""

        def find():
            for task in tasks:
                shown = self.task(task)
                if shown["state"] == "SUSPENDED" and "lies on GPU 1" in shown["reason_text"]:
                    return task
            return None

        return until(find, "a copy on GPU 1")

    def begin_first(self, fails=""):
        """It has been suspended once, so that the size of its context is known."""
        first = self.training(fails)
        self.wait_steps(first, 0)
        until(lambda: self.task(first)["carried"], "its carrier")
        self.colloc("suspend", str(first))
        self.colloc("resume", str(first))
        self.check_goes_on(first)
        until(lambda: self.task(first)["carried"], "its carrier")
        self.server_mib = self.gpu(1)["mem_used_mib"]  # of the server of MPS, which stays
        return first

    def begin(self):
        """Returns the task whose copy lies on GPU 1, and that to which it has given way."""
        first = self.begin_first()
        second = self.training(priority="high")
        self.wait_near(first)
        return first, second

    def check_goes_on(self, task):
        self.wait_steps(task, self.output(task).count("step"))
        self.assertNotIn("wrong", self.output(task))

    def wait_nothing_left(self):
        self.wait_gpu(
            lambda gpu: at_most(gpu["mem_used_mib"], self.server_mib), 1, "nothing left there"
        )

    def come_back(self, near, other):
        self.colloc("cancel", str(other))
        self.wait(other, "CANCELLED")
        self.wait_state(near, "RUNNING")
        self.check_goes_on(near)

    def test_it_lies_there_and_comes_back(self):
        near, other = self.begin()
        self.wait_gpu(lambda gpu: at_least(gpu["mem_used_mib"], self.server_mib + 1), 1, "the copy")
        self.assertIn("lies on GPU 1", self.colloc("show", str(near)).stdout)
        self.check_goes_on(other)
        self.come_back(near, other)
        self.wait_nothing_left()
        self.assertLess(self.task(near)["mem_peak_mib"], 2 * BIG_MIB - 16, "without its copy")
        self.assertFalse([line for line in self.log if "was not given" in line])

    def test_a_task_wants_the_memory(self):
        """It waits only as long as the copy takes to the host."""
        near, other = self.begin()
        free = int(self.gpu(1)["mem_free_mib"])
        wants = self.training(gpu="1", memory_mib=free)
        self.wait_steps(wants, 0)
        self.assertNotIn("GPU 1", self.task(near)["reason_text"])
        self.come_back(near, other)

    def test_memory_that_cannot_be_used(self):
        """The copy goes to the host, and the neighbour is not tried again."""
        fails = "COLLOC_EMULATOR_FAILS=cuMemcpyDtoDAsync_v2"
        first = self.begin_first(fails)
        second = self.training(priority="high")
        self.wait_log("its copy goes to the host, not to a neighbour GPU")
        self.check_goes_on(second)
        self.assertNotIn("GPU 1", self.task(first)["reason_text"])
        self.come_back(first, second)

    def test_a_process_that_claims_more(self):
        """It is lent what the driver says that it has, and its claim is in no log."""
        for claimed in (8 << 30, 1 << 62):
            first = self.begin_first()
            lie = [(pd.CARRY_BYTES, struct.pack("=Q", claimed))]
            with page_liar.tells(self.pid_of(first), lambda: lie):
                second = self.training(priority="high")
                self.wait_near(first)
                self.wait_gpu(
                    lambda gpu: at_least(gpu["mem_used_mib"], self.server_mib + 1), 1, "the copy"
                )
                lent_mib = self.gpu(1)["mem_used_mib"] - self.server_mib
            self.assertLess(lent_mib, 2 * BIG_MIB)
            self.restart(signal.SIGKILL)
            self.come_back(first, second)
            self.colloc("cancel", str(first))
            self.wait(first, "CANCELLED")

    def test_killed_while_it_lies_there(self):
        near, other = self.begin()
        os.kill(self.pid_of(near), signal.SIGKILL)
        self.wait_killed(near)
        self.colloc("cancel", str(other))
        self.wait(other, "CANCELLED")
        self.wait_nothing_left()

    def test_the_daemon_is_killed(self):
        near, other = self.begin()
        self.restart(signal.SIGKILL)
        self.wait_reason(near, "lies on GPU 1")
        self.come_back(near, other)

    def test_the_neighbour_is_lost(self):
        """What lies there is lost with it: the task is ended and run again."""
        near, other = self.begin()
        self.emulator("set", "1", "lost=on")
        self.wait_state(near, "PENDING")
        self.colloc("cancel", str(other))
        until(lambda: self.task(near)["attempt_count"] > 1, "another attempt")
        self.assertIn("its GPU is gone", self.colloc("show", str(near)).stdout)


del DaemonCase  # its own module tests it


if __name__ == "__main__":
    unittest.main()
