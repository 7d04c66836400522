# SPDX-License-Identifier: Apache-2.0
"""Fair share: two users take turns, the standing of each user, and the file of shares. As root."""

import json
import os
import signal
import subprocess
import unittest

from daemon_case import DaemonCase, program, until
from test_users import ADA, BOB, Several

SHARES = "project vision 3\nproject speech\nuser 64001 vision 2\nuser 64002 speech\n"


class Turns(Several):
    gpus = "1xA100-40GB"
    settings = {"gpu-hours-window": "30d"}

    def user_of(self, uid):
        return next(u for u in self.get("/v1/share")["users"] if u["uid"] == uid)

    def share(self, *words):
        return self.colloc("share", *words).stdout

    def test_a_flood_leaves_the_other_user_a_turn(self):
        flood = [
            self.submit_as(ADA, "until [ -e go ]; do sleep 0.05; done", exclusive=True)
            for _ in range(3)
        ]
        self.wait_state(flood[0], "RUNNING")
        other = self.submit_as(BOB, "exec sleep 1000", exclusive=True)
        self.assertEqual(self.task(other)["position"], 1)
        self.assertEqual(self.task(flood[2])["position"], 3)
        self.wait_reason(flood[2], "1 of other users, who come first by fair share")
        self.assertEqual(
            self.share(str(flood[1]), str(other)).strip(),
            f"task {other} comes before task {flood[1]}: its user's fair rank is 1, that of the "
            "other's is 2",
        )
        ada, bob = self.user_of(ADA), self.user_of(BOB)
        self.assertEqual((ada["fair_rank"], ada["running"], ada["pending"]), (2, 1, 2))
        self.assertEqual((bob["fair_rank"], bob["running"], bob["pending"]), (1, 0, 1))
        self.assertEqual((ada["project"], ada["shares"]), ("default", 1))
        self.act("cancel", flood[0])
        self.wait_state(other, "RUNNING")
        used, in_window = self.user_of(ADA)["usage"], self.user_of(ADA)["window_usage"]
        self.assertGreater(used, 0)
        self.assertAlmostEqual(in_window, used, delta=used / 100)
        self.restart(signal.SIGKILL)
        self.assertAlmostEqual(self.user_of(ADA)["usage"], used, delta=used / 100)
        self.assertEqual(self.user_of(ADA)["window_usage"], in_window)
        self.assertIn("WINDOW", self.share().splitlines()[0])
        self.assertEqual([line.split()[0] for line in self.share().splitlines()[1:]], ["1", "2"])
        for task in (*flood[1:], other):
            self.act("cancel", task)
            self.wait(task, "CANCELLED")

    def test_the_window_of_gpu_hours(self):
        self.assertEqual(self.get("/v1/share")["window_s"], 30 * 86400)
        self.assertEqual(self.get("/v1/info")["settings"]["gpu_hours_window_s"], 30 * 86400)
        self.stop()
        for wrong in ("0", "0h", "-1d", "366d", "30", "7200", "59m", "7x", "d"):
            status, said = self.run_daemon(**{"gpu-hours-window": wrong})
            self.assertEqual(status, 2)
            self.assertIn(f"gpu-hours-window: invalid value '{wrong}': give none or a time", said)
        self.start(**{"gpu-hours-window": "none"})
        self.assertEqual(self.get("/v1/share")["window_s"], 0)
        self.assertNotIn("WINDOW", self.share())

    def test_what_is_asked_wrongly(self):
        self.assertIn("give two tasks", self.colloc("share", "1", code=2).stderr)
        self.refused(400, "two ids such as 12,15", path="/v1/share?tasks=1", method="GET")
        self.assertIn("there is no task 7", self.share("7", "8"))


class Report(DaemonCase):
    gpus = "2xA100-40GB"

    def test_a_run_in_the_report(self):
        task = self.train(2000, 100)
        ended = self.wait(task, "COMPLETED")
        report = json.loads(self.colloc("report", "--json", "--from=1h").stdout)
        self.assertEqual((report["gpus"], report["co2_g_per_kwh"]), (2, 473))
        row = report["rows"][0]
        run_h = (ended["ended_at"] - ended["started_at"]) / 3600
        self.assertAlmostEqual(row["gpu_hours_held"], run_h, delta=run_h / 20)
        self.assertAlmostEqual(row["energy_kwh"], ended["energy_j"] / 3.6e6, places=6)
        self.assertEqual(row["tasks"], 1)
        self.assertIn(row["user"], self.colloc("report").stdout)


class Shares(DaemonCase):
    gpus = "1xA100-40GB"

    def start(self, **settings):
        self.shares = self.write("shares", SHARES)
        super().start(shares=self.shares, **settings)

    def projects(self):
        return {p["project"]: p["shares"] for p in self.get("/v1/share")["projects"]}

    def reload(self, text, pattern):
        self.write("shares", text)
        self.process.send_signal(signal.SIGHUP)
        self.wait_log(pattern)

    def test_the_file_is_read_and_read_again(self):
        self.assertEqual(self.projects(), {"default": 1, "vision": 3, "speech": 1})
        self.reload("project vision 5\nuser root vision\n", "1 projects and 1 users are read from")
        self.assertEqual(self.projects(), {"default": 1, "vision": 5})
        for text, says in (
            ("project vision -1\n", r"stay as they are: shares: \S+:1: '-1': shares are a whole"),
            ("user no-such-user default\n", r":1: 'no-such-user': there is no such user"),
            ("user root\n", r":1: expected 'user NAME PROJECT \[SHARES\]"),
        ):
            self.reload(text, says)
            self.assertEqual(self.projects(), {"default": 1, "vision": 5})
        os.remove(self.shares)
        self.process.send_signal(signal.SIGHUP)
        self.wait_log("stay as they are: shares: .*No such file")

    def test_a_promise_by_default(self):
        """Of the user's tasks that name none; a task that was submitted keeps its own."""
        before = self.train(2000, 1e6)
        self.reload("project vision max-slowdown=2\nuser root vision 1\n", "1 users are read")
        promise = lambda task: self.task(task)["max_slowdown"]
        by_default = self.train(2000, 1e6)
        self.assertEqual(promise(by_default), 2)
        self.assertEqual(promise(self.train(2000, 1e6, max_slowdown=1.25)), 1.25)
        self.assertIsNone(promise(before))
        self.assertEqual(self.get("/v1/share")["users"][0]["max_slowdown"], 2)
        self.reload("project vision max-slowdown=2\nuser root vision max-slowdown=none\n", "read")
        shown = lambda: self.get("/v1/share")["users"][0]["max_slowdown"]
        until(lambda: shown() is None, "no promise by default")
        self.assertIsNone(promise(self.train(2000, 1e6)))
        self.restart(signal.SIGKILL)
        self.assertEqual(promise(by_default), 2)

    def test_a_mistake_is_found_before_the_start(self):
        self.stop()
        self.write("shares", "project vision 3\nuser no-such-user vision\n")
        status, said = self.run_daemon(shares=self.shares)
        self.assertEqual(status, 2)
        self.assertIn(":2: 'no-such-user': there is no such user", said)
        done = subprocess.run(
            [program("collocd"), "--check", f"--shares={self.shares}"],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn(":2: 'no-such-user': there is no such user", done.stderr)


if __name__ == "__main__":
    unittest.main()
