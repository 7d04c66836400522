# SPDX-License-Identifier: Apache-2.0
"""Allocations of tasks that wait for GPU memory: the daemon, its emulated GPUs, and the preloaded
library before a pretend libcuda, whose memory the test takes and frees."""

import os
import signal
import struct
import unittest

from daemon_case import BUILD, MIB, DaemonCase, until

TOOLS = os.path.abspath(os.path.join(BUILD, "tests", "preload"))
PROBE = os.path.join(TOOLS, "probe")


class PretendCuda(DaemonCase):
    gpus = "1xA100-40GB"

    def setUp(self):
        super().setUp()
        self.env["LD_LIBRARY_PATH"] = TOOLS + ":" + self.env["LD_LIBRARY_PATH"]
        self.env["PRETEND_CUDA"] = os.path.join(self.folder, "pretend-gpu")
        uuid = bytes.fromhex(self.get("/v1/gpus")["gpus"][0]["uuid"][4:].replace("-", ""))
        with open(self.env["PRETEND_CUDA"], "wb") as file:
            file.write(struct.pack("=8Q16s", 40000 * MIB, *[0] * 7, uuid))

    def fill(self, mib):
        """What others hold: for the daemon by NVML, for the task's process by its driver."""
        self.emulator("set", "0", f"foreign-mib={mib}")
        with open(self.env["PRETEND_CUDA"], "r+b") as file:
            file.seek(8)
            file.write(struct.pack("=Q", mib * MIB))

    def allocating(self, mib, **members):
        return self.submit(f"exec {PROBE} dlsym alloc {mib}", memory_mib=500, **members)

    def waiting(self, task):
        return until(
            lambda: next((t for t in [self.task(task)] if t["memory_waits"]), None),
            f"a wait of task {task}",
        )

    def answer_to(self, task):
        found = self.wait(task, "COMPLETED")
        return self.output(task).split(), found


class MemoryWait(PretendCuda):
    def test_it_goes_on_when_the_memory_is_free(self):
        self.fill(30000)
        task = self.allocating(15000)
        self.assertEqual(self.waiting(task)["state"], "RUNNING")
        self.wait_log(rf"task {task}: process \d+ waits for 14.6 GiB of memory of GPU 0")
        self.fill(0)
        words, found = self.answer_to(task)
        self.assertEqual(words, ["0"])
        self.assertEqual(found["memory_waits"], 1)
        self.assertGreater(found["memory_wait_s"], 0)
        self.wait_log(rf"task {task}: process \d+ goes on after")
        shown = self.colloc("show", str(task)).stdout
        self.assertRegex(shown, r"Memory waits +1\n")

    def test_what_it_can_never_have_fails_at_once(self):
        task = self.allocating(50000)
        words, found = self.answer_to(task)
        self.assertEqual((words, found["memory_waits"]), (["2"], 1))

    def test_the_wait_is_bounded(self):
        self.restart(memory_wait="500ms")
        self.fill(30000)
        words, _ = self.answer_to(self.allocating(15000))
        self.assertEqual(words, ["2"])

    def test_memory_that_the_driver_does_not_give_is_not_tried_for_ever(self):
        self.fill(30000)
        self.emulator("set", "0", "foreign-mib=0")
        words, _ = self.answer_to(self.allocating(15000))
        self.assertEqual(words, ["2"])

    def test_a_cancelled_task_does_not_wait(self):
        self.fill(30000)
        task = self.submit(
            f"trap 'echo ended; exit 0' TERM; {PROBE} dlsym alloc 15000; exit 0",
            memory_mib=500,
            grace_s=50,
        )
        self.waiting(task)
        self.act("cancel", task)
        self.wait(task, "CANCELLED")

    def test_the_next_daemon_goes_on(self):
        self.fill(30000)
        task = self.allocating(15000)
        self.waiting(task)
        self.restart(signal.SIGKILL)
        self.waiting(task)
        self.fill(0)
        self.assertEqual(self.answer_to(task)[0], ["0"])

    def test_two_tasks(self):
        self.fill(30000)
        tasks = [self.allocating(15000) for _ in range(2)]
        for task in tasks:
            self.waiting(task)
        self.fill(0)
        for task in tasks:
            self.assertEqual(self.answer_to(task)[0], ["0"])


class WithoutIt(PretendCuda):
    """Where it is not wanted, an allocation fails as ever."""

    def check(self, **members):
        self.fill(30000)
        words, found = self.answer_to(self.allocating(15000, **members))
        self.assertEqual((words, found["memory_waits"]), (["2"], 0))

    def test_the_setting(self):
        self.restart(preload="no")
        self.check()

    def test_the_tasks_option(self):
        self.check(preload="no")

    def test_an_exclusive_task(self):
        self.emulator("set", "0", "foreign-mib=0")
        words, found = self.answer_to(self.allocating(50000, exclusive=True))
        self.assertEqual((words, found["memory_waits"]), (["2"], 0))

    def test_the_option_beats_the_setting(self):
        self.restart(preload="no")
        words, found = self.answer_to(self.allocating(50000, preload="yes"))
        self.assertEqual((words, found["memory_waits"]), (["2"], 1))
        self.assertIn("Preload      yes", self.colloc("show", str(found["id"])).stdout)

    def test_a_library_that_is_not_there(self):
        self.restart(preload_library="/nowhere/lib.so")
        self.log_seen = 0  # it is logged before the daemon listens
        self.wait_log("tasks run without the preloaded library: /nowhere/lib.so")
        self.check()

    def test_libraries_of_the_user_come_after_it(self):
        own = os.path.join(TOOLS, "libinterposer.so")
        task = self.submit("echo $LD_PRELOAD", environment={"LD_PRELOAD": own})
        self.wait(task, "COMPLETED")
        first, second = self.output(task).strip().split(":")
        self.assertTrue(first.endswith("libcolloc-preload.so"))
        self.assertEqual(second, own)


if __name__ == "__main__":
    unittest.main()
