# SPDX-License-Identifier: Apache-2.0
"""What a task took teaches the daemon what the next one of the same network will take."""

import unittest

from daemon_case import DaemonCase, until

SUMMARY = (
    "Conv2d-1 [-1, 64, 112, 112] 9408\nBatchNorm2d-2 [-1, 64, 112, 112] 128\n"
    "Linear-3 [-1, 10] 8028170\n"
)


class History(DaemonCase):
    gpus = "1xA100-40GB"

    def train_network(self, batch, mib, options="", **members):
        return self.train(
            mib,
            400,
            options,
            **members,
            summary={"name": "net.txt", "text": SUMMARY},
            batch=batch,
            optimizer="adam",
        )

    def test_the_next_run_is_known(self):
        first = self.train_network(32, 4000)
        ended = self.wait(first, "COMPLETED")
        self.assertEqual(ended["subject"]["batch"], 32)
        self.assertIn("A100", ended["gpu_kind"])
        self.assertEqual(ended["estimate_evidence"], "summary")
        second = self.task(self.train_network(32, 4000, hold=True))  # it does not end, and count
        self.assertEqual(second["estimate_evidence"], "same run")
        shown = self.colloc("show", str(second["id"])).stdout
        self.assertRegex(shown, r"(?m)^Estimate of +same run$")
        known = second["estimate_mib"]
        self.assertGreaterEqual(known, ended["mem_peak_mib"])
        self.assertLess(known, 1.2 * ended["mem_peak_mib"])
        self.assertNotAlmostEqual(known, self.task(first)["estimate_mib"], delta=10)
        self.assertGreater(self.task(first)["p99_mib"], self.task(first)["predicted_mib"])
        self.assertRegex(
            self.colloc("estimate", "--history").stdout, r"^1 task, median error [0-9.]+ %, "
        )
        self.restart()
        self.assertEqual(self.task(second["id"])["estimate_evidence"], "same run")
        self.assertEqual(self.task(self.train_network(32, 4000))["estimate_mib"], known)

    def test_ended_tasks_of_a_period_and_state(self):
        good, bad = self.submit("true"), self.submit("exit 3")
        self.wait(good, "COMPLETED")
        ended = self.wait(bad, "FAILED")["ended_at"] - 0.001  # JSON has it to 10 us
        until(lambda: len(self.tasks(state="ended")) == 2)

        def ids(*words):
            return [
                int(line)
                for line in self.colloc("history", "--csv", "-o", "id", *words).stdout.split()[1:]
            ]

        self.assertEqual(sorted(ids("--since=1h")), [good, bad])
        self.assertEqual(ids("--until=1h"), [])
        self.assertEqual(ids("--since=1h", "-s", "completed"), [good])
        self.assertEqual([task["id"] for task in self.tasks(state="failed", since=ended)], [bad])
        self.assertEqual(self.tasks(state="Failed", until=ended), [])
        self.assertEqual(self.colloc("queue", "-s", "running").stdout, "No tasks.\n")
        shown = self.colloc("history", "-o", "id,gpu,exit").stdout.splitlines()[1:]
        self.assertIn([str(bad), "0", "3:0"], [line.split() for line in shown])
        self.refused(400, "since=x", path="/v1/tasks?state=ended&since=x", method="GET", body="")

    def test_the_first_submission(self):
        def first():
            return self.get("/v1/info")["first_submitted_at"]

        self.assertIsNone(first())
        tasks = [self.submit("true"), self.submit("exec sleep 1000")]
        submitted_at = self.task(tasks[0])["submitted_at"]
        self.assertAlmostEqual(first(), submitted_at, delta=0.01)
        self.wait(tasks[0], "COMPLETED")
        self.restart()
        self.assertAlmostEqual(first(), submitted_at, delta=0.01)

    def test_the_kind_of_gpu_survives_a_restart(self):
        self.emulator(
            "create", "--gpus", "1xA100-40GB,1xH200", "--speed", "100", self.env["COLLOC_EMULATOR"]
        )
        self.restart(policy="best-fit", sample_period="100ms")
        task = self.train(60000, 1e6, memory_mib=60000)
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 59000, index=1)
        until(lambda: "H200" in (self.task(task)["gpu_kind"] or ""), "a peak on the H200")
        self.restart()
        self.assertIn("H200", self.task(task)["gpu_kind"])
        self.act("cancel", task)
        self.wait(task, "CANCELLED")

    def test_a_crash_is_no_measure(self):
        crashed = self.train_network(32, 60000, "--ramp-seconds=90")
        had = self.wait(crashed, "OUT_OF_MEMORY")["mem_peak_mib"]
        self.assertGreater(had, self.task(crashed)["estimate_mib"])
        self.assertGreaterEqual(self.task(self.train_network(32, 4000))["estimate_mib"], had)
        self.assertLess(self.task(self.train_network(16, 4000))["estimate_mib"], had)


if __name__ == "__main__":
    unittest.main()
