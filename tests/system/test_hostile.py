# SPDX-License-Identifier: Apache-2.0
"""A fork bomb, a memory hog and an endless printer, three tasks at once: others do not notice.

Where cgroups have controllers, the daemon's limits stop them: `processes-per-task`, `--host-memory`
and `output-max`. Elsewhere the scripts limit themselves (`ulimit`), so that this machine survives
the test; what is not tested then is printed. COLLOC_SOAK=1 prints 10 GB instead of 500 MB.
"""

import os
import unittest

from daemon_case import MIB, DaemonCase, cgroup_of, processes_with, read, uid_of, until

USER = 64031  # of no other test: its processes are counted
PROCESSES, MEMORY_MIB, OUTPUT_MIB = 200, 256, 4
BOMB_SEEN = 20  # processes; more than the other tasks have together
PRINTED_MIB = 10000 if os.environ.get("COLLOC_SOAK") else 500
PRINT_LIMIT_S = 600  # a virtual machine prints 500 MB beside a fork bomb in minutes
# The task's first process forks once, before the others take all places: bash exits when it has
# found none for 15 s.
BOMB = "bomb() { bomb | bomb & }; (bomb) & exec sleep 1000"
HOG = """exec python3 -c '
hog = []
while True:
    hog.append(bytes(1 << 20))
    hog[-1] = b"x" * (1 << 20)
'"""
DAEMON_MAX_MIB = 60


@unittest.skipIf(os.geteuid() != 0, "a user whose processes can be limited apart needs root")
class Hostile(DaemonCase):
    settings = {
        "processes-per-task": str(PROCESSES),
        "output-max": f"{OUTPUT_MIB}MiB",
        "host-memory": "2GiB",
    }

    def setUp(self):
        super().setUp()
        os.chmod(self.work, 0o777)
        home = os.path.join(cgroup_of("self") or "/nonexistent", "colloc", "cgroup.subtree_control")
        self.controllers = set(read(home).split()) if os.path.exists(home) else set()
        missing = {"memory", "pids"} - self.controllers
        if missing:
            print(f"not tested without cgroup controllers: {', '.join(sorted(missing))}")

    def submit_as_user(self, script, **members):
        os.setegid(USER)
        os.seteuid(USER)
        try:
            return self.submit(script, **members)
        finally:
            os.seteuid(0)
            os.setegid(0)

    def start_bomb(self):
        limit = "" if "pids" in self.controllers else f"ulimit -u {PROCESSES}; "
        return self.submit_as_user(f"{limit}{BOMB}")

    def start_hog(self):
        if "memory" in self.controllers:
            return self.submit_as_user(HOG, host_memory_mib=MEMORY_MIB)
        return self.submit_as_user(f"ulimit -v {MEMORY_MIB * 1024}; {HOG}")

    def start_printer(self):
        return self.submit_as_user(f"yes | head -c {PRINTED_MIB}M; echo printed >&2")

    def end_bomb(self, bomb):
        """By the daemon: a kill of each process, as when a test is over, would not catch up."""
        self.act("cancel", bomb)
        self.wait(bomb, "CANCELLED")

    def bomb_processes(self):
        """The user's processes that belong to a task's cgroup or script."""
        return [pid for pid in processes_with(self.folder) if uid_of(pid) == USER]

    def daemon_mib(self):
        status = read(f"/proc/{self.process.pid}/status")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def check_output(self, printer):
        name = os.path.join(self.work, f"colloc-{printer}.out")
        sizes = [os.path.getsize(path) for path in (name, f"{name}.1")]
        self.assertLessEqual(sum(sizes), OUTPUT_MIB * MIB)
        text = read(name)
        self.assertRegex(text, r"^colloc: the output before this is in .* were dropped")
        self.assertTrue(text.endswith("y\nprinted\n"), text[-50:])

    def test_a_fourth_task_and_the_daemon_do_not_notice(self):
        bomb, hog, printer = self.start_bomb(), self.start_hog(), self.start_printer()
        self.addCleanup(self.end_bomb, bomb)
        until(lambda: len(self.bomb_processes()) > BOMB_SEEN, "the fork bomb")
        fourth = self.train(seconds=200)
        self.assertEqual(self.wait(fourth, "COMPLETED")["attempt_count"], 1)
        self.assertLessEqual(len(self.bomb_processes()), 3 * PROCESSES)
        self.assertEqual(self.task(bomb)["state"], "RUNNING")
        self.assertEqual(self.wait(hog, "OUT_OF_MEMORY")["reason"], "HostOutOfMemory")
        self.wait(printer, "COMPLETED", PRINT_LIMIT_S)
        self.check_output(printer)
        self.end_bomb(bomb)
        self.assertEqual(self.bomb_processes(), [])
        if "ASAN_OPTIONS" not in self.env:
            self.assertLess(self.daemon_mib(), DAEMON_MAX_MIB)
        self.assertEqual([line for line in self.log if " error: " in line], [])


if __name__ == "__main__":
    unittest.main()
