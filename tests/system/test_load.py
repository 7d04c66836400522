# SPDX-License-Identifier: Apache-2.0
"""Many clients at once, many tasks. Figures that depend on the machine are printed, not checked."""

import json
import subprocess
import time
import unittest

from daemon_case import BUILD, DaemonCase, program, read, until

TASKS = 10000
UNENDING = 10**6  # more than are submitted in the time that a test has


class Load(DaemonCase):
    gpus = "A100-40GB"

    def test_a_flood_of_submits_stops_no_samples(self):
        """The GPU is looked at while 48 clients submit without a pause."""
        self.emulator("set", "0", "foreign-mib=39000")
        self.wait_gpu(lambda gpu: (gpu["mem_free_mib"] or 1e9) < 5120)
        with subprocess.Popen(
            [f"{BUILD}/tests/bench/load", "submit", self.socket, "48", str(UNENDING)],
            env=self.env,
            stdout=subprocess.DEVNULL,
        ) as flood:
            try:
                until(lambda: len(self.tasks()) > 1000, "1000 tasks in the queue")
                begin = self.get("/v1/gpus")["sampled_at"]
                until(
                    lambda: self.get("/v1/gpus")["sampled_at"] > begin + 0.5,
                    "half a second of samples",
                )
                self.assertIsNone(flood.poll(), "the flood has ended")
            finally:
                flood.kill()  # the end of `with` waits for it
        self.restart()
        self.assertGreater(len(self.tasks()), 1000)
        self.stop()


class LongQueue(DaemonCase):
    gpus = "1xA100-40GB"

    def resident_mib(self):
        lines = read(f"/proc/{self.process.pid}/status").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def submit_many(self, count):
        connection = self.connection()
        body = json.dumps(self.body(hold=False))
        for _ in range(count):
            connection.request("POST", "/v1/tasks", body)
            reply = connection.getresponse()
            self.assertEqual(reply.status, 201)
            reply.read()
        connection.close()

    def timed(self, what, call):
        begin = time.monotonic()
        found = call()
        print(
            f"{what}: {time.monotonic() - begin:.2f} s, {self.resident_mib():.0f} MiB resident",
            flush=True,
        )
        return found

    def test_ten_thousand_waiting(self):
        blocker = self.submit("while :; do sleep 1; done", exclusive=True)
        self.timed(f"{TASKS} submits", lambda: self.submit_many(TASKS))
        tasks = self.timed("the whole queue", self.tasks)
        self.assertEqual([task["id"] for task in tasks], list(range(1, TASKS + 2)))
        self.assertEqual(tasks[-1]["position"], TASKS)
        if b"__asan_init" not in read(program("collocd"), "rb"):
            self.assertLess(self.resident_mib(), 60)
        self.timed("a restart", lambda: self.restart(9))
        self.assertEqual(len(self.tasks()), TASKS + 1)
        self.assertEqual(self.task(blocker)["state"], "RUNNING")
        self.act("cancel", blocker)
        self.wait(blocker, "CANCELLED")
        self.stop(9)


if __name__ == "__main__":
    unittest.main()
