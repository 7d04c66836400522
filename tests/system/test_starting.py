# SPDX-License-Identifier: Apache-2.0
"""How soon tasks start of which nothing is known: at once where their allocations wait, one after
the other where they do not (src/policy/starting.c)."""

import unittest

from daemon_case import LIMIT_S, until
from test_memory_wait import TAKES, Takes

TASKS = 21
# As by default: in a GPU's queue each of the tasks would wait that long for the one before it.
SETTLE_S = 60


class Unknown(Takes):
    gpus = "2xH200"
    settings = {"settle": f"{SETTLE_S}s", "settle-max": f"{SETTLE_S}s"}

    def setUp(self):
        super().setUp()
        self.takes = self.write("takes.py", TAKES)  # once: the tasks before may be reading it

    def hold(self, **members):
        """A task that takes its memory at once, and ends when it may."""
        return self.submit(f"exec {self.python} {self.takes} 1500 {self.path('end')}", **members)

    def states(self, tasks):
        return [self.task(task)["state"] for task in tasks]

    def test_all_start_at_once(self):
        """Without the rule the last starts after 10 times SETTLE_S: long after `until` gives up."""
        self.assertGreater(TASKS // 2 * SETTLE_S, 2 * LIMIT_S)
        tasks = [self.hold() for _ in range(TASKS)]
        until(lambda: set(self.states(tasks)) == {"RUNNING"}, "all tasks run")
        self.go("end")
        for task in tasks:
            self.wait(task, "COMPLETED")

    def test_an_array_is_spread_over_the_gpus(self):
        """Not put beside the task that has started first: all are placed before it has."""
        array = self.hold(array=f"0-{TASKS - 2}")
        tasks = range(array + 1, array + TASKS)
        until(lambda: set(self.states(tasks)) == {"RUNNING"}, "all tasks run")
        placed = [self.task(task)["gpus"] for task in tasks]
        self.assertEqual([placed.count(gpu) for gpu in (["0"], ["1"])], [10, 10], placed)
        self.go("end")
        for task in tasks:
            self.wait(task, "COMPLETED")

    def test_without_the_library_one_after_the_other(self):
        first, second = self.hold(), self.hold()
        until(lambda: self.states([first, second]) == ["RUNNING"] * 2, "a task on each GPU")
        third = self.hold(preload="no")
        until(lambda: "still taking" in self.task(third)["reason_text"], "the third waits")
        self.go("end")
        for task in (first, second, third):
            self.wait(task, "COMPLETED")

    def test_the_first_of_a_user_without_it_holds_the_next_off(self):
        """A program that ignores the library: as a container that has no file of this name."""
        tasks = [self.bare(), self.bare()]
        until(
            lambda: all(self.task(task)["mem_used_mib"] for task in tasks), "both have GPU memory"
        )
        third = self.hold()
        until(lambda: "still taking" in self.task(third)["reason_text"], "the third waits")
        self.go("end")
        for task in (*tasks, third):
            self.wait(task, "COMPLETED")

    def bare(self):
        """Holds memory without the library, which its shell takes from its environment."""
        program = f"unset LD_PRELOAD; exec {self.python} {self.takes} 1500 {self.path('end')}"
        return self.submit(program)


if __name__ == "__main__":
    unittest.main()
