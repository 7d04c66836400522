#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package colloc against a fake daemon."""

import os
import re
import shutil
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "tests", "lib")]

import colloc  # noqa: E402
import colloc.client  # noqa: E402
import colloc.connection  # noqa: E402
from fake_collocd import FakeDaemon, make_task  # noqa: E402


class ClientCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="colloc-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.socket = os.path.join(self.folder, "collocd.sock")
        self.daemon = self.enterContext(FakeDaemon(self.socket))
        self.client = colloc.Client(self.socket)

    def enterContext(self, context):  # of unittest since Python 3.11
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def last_body(self):
        return self.daemon.requests[-1][2]


class Submit(ClientCase):
    def test_the_request(self):
        task = self.client.submit("true\n", ["a", "b"], cwd="/tmp", environment={"A": "1"}, gpus=2)
        self.assertEqual(task, 12)
        self.assertEqual(self.daemon.requests[-1][:2], ("POST", "/v1/tasks"))
        self.assertEqual(
            self.last_body(),
            {
                "script": "true\n",
                "arguments": ["a", "b"],
                "cwd": "/tmp",
                "environment": {"A": "1"},
                "gpus": 2,
            },
        )

    def test_a_command_and_a_size(self):
        task = self.client.submit(["python", "dir/train.py", "--lr=0.1 x"], memory="4GiB")
        body = self.last_body()
        self.assertEqual(body["script"], '#!/bin/sh\nexec "$@"\n')
        self.assertEqual(body["arguments"], ["python", "dir/train.py", "--lr=0.1 x"])
        self.assertEqual((body["name"], body["memory_mib"]), ("train.py", 4096))
        self.assertEqual(body["command"], "python dir/train.py '--lr=0.1 x'")
        self.daemon.tasks = [make_task(12, state="COMPLETED")]
        self.assertEqual(task.wait()["state"], "COMPLETED")
        self.assertEqual(task.info()["id"], task)
        self.client.submit(["./train"], name="mine", memory=900)
        self.assertEqual((self.last_body()["name"], self.last_body()["memory_mib"]), ("mine", 900))
        for size, mib in (
            ("512M", 512),
            ("1.5 GiB", 1536),
            ("1GB", 1e9 / 2**20),
            ("1TiB", 2**20),
        ):
            self.assertAlmostEqual(colloc.client.mib_of(size), mib)
        for wrong in ("12", "", "GiB", "-1GiB", "1PiB", "1 GiB x"):
            with self.assertRaises(ValueError):
                self.client.submit(["true"], memory=wrong)
        with self.assertRaises(ValueError):
            self.client.submit([])

    def test_defaults_are_of_this_process(self):
        with mock.patch.dict(os.environ, {"MINE": "yes", "BROKEN": "\udcff"}):
            self.client.submit("true\n")
        self.assertEqual(self.last_body()["cwd"], os.getcwd())
        self.assertEqual(self.last_body()["environment"]["MINE"], "yes")
        self.assertNotIn("BROKEN", self.last_body()["environment"])

    def test_it_waits_as_long_as_the_daemon_may_take(self):
        with open(os.path.join(ROOT, "src", "api", "answer_time.h"), encoding="utf-8") as file:
            of_daemon = dict(re.findall(r"(ANSWER_\w+_S) = (\d+)", file.read()))
        late_s = int(of_daemon["ANSWER_LATE_S"])
        self.assertEqual(colloc.client.TIMEOUT_S, int(of_daemon["ANSWER_MAX_S"]) + late_s)
        self.assertEqual(colloc.client.MOVE_S, int(of_daemon["ANSWER_COPY_MAX_S"]) + late_s)

    def test_a_warning_of_the_daemon(self):
        self.daemon.submit_reply = (201, {"id": 13, "warnings": ["no such folder"]})
        with self.assertWarnsRegex(UserWarning, "no such folder"):
            self.assertEqual(self.client.submit("true\n"), 13)

    def test_a_refusal(self):
        error = {"code": "bad-request", "message": "gpus=65: at most 4"}
        self.daemon.submit_reply = (400, {"error": error})
        with self.assertRaises(colloc.DaemonError) as raised:
            self.client.submit("true\n", gpus=65)
        self.assertEqual((raised.exception.status, raised.exception.code), (400, "bad-request"))
        self.assertEqual(str(raised.exception), "gpus=65: at most 4")

    def test_an_error_that_is_no_json(self):
        self.daemon.submit_reply = (500, b"\xff broken")
        with self.assertRaises(colloc.DaemonError) as raised:
            self.client.submit("true\n")
        self.assertIn("HTTP 500: \ufffd broken", str(raised.exception))


class Tasks(ClientCase):
    def test_list(self):
        self.daemon.tasks = [make_task(1), make_task(2, state="COMPLETED")]
        self.assertEqual([task["id"] for task in self.client.tasks()], [1])
        self.assertEqual([task["id"] for task in self.client.tasks(state="ended")], [2])
        self.assertEqual(self.daemon.requests[-1][1], "/v1/tasks?state=ended")

    def afters(self):
        return [path.partition("after=")[2] for _, path, _ in self.daemon.requests]

    def test_a_list_with_a_limit_has_all_its_pages(self):
        ended = [make_task(task, state="FAILED", ended_at=1) for task in (4, 3, 2)]
        self.daemon.pages = [
            (200, {"tasks": ended[:2], "next": "3.3.1"}),
            (200, {"tasks": ended[2:]}),
        ]
        self.assertEqual(self.client.tasks(state="ended", user="ada", limit=3), ended)
        self.assertEqual(
            [path for _, path, _ in self.daemon.requests],
            [
                "/v1/tasks?state=ended&user=ada&limit=3",
                "/v1/tasks?state=ended&user=ada&limit=3&after=3.3.1",
            ],
        )

    def test_tasks_that_change_between_two_pages_come_once(self):
        running = [make_task(task, state="RUNNING") for task in range(5)]
        self.daemon.pages = [
            (200, {"tasks": [running[1], make_task(2)], "next": "2.2.9"}),
            (200, {"tasks": [make_task(4), make_task(1), make_task(9, ended_at=1)]}),
            (200, {"tasks": [running[2]], "next": "0.2.9"}),
            (200, {"tasks": [running[3], running[1], make_task(8)], "next": "2.8.9"}),
        ]
        self.assertEqual(
            [(task["id"], task["state"]) for task in self.client.tasks(state="all")],
            [(3, "RUNNING"), (1, "RUNNING"), *((task, "PENDING") for task in (2, 4, 9))],
        )
        self.assertEqual(self.afters(), ["", "2.2.9", "", "0.2.9"])

    def test_one_task(self):
        self.daemon.tasks = [make_task(3, name="x y")]
        self.assertEqual(self.client.task(3)["name"], "x y")
        with self.assertRaisesRegex(colloc.DaemonError, "task 4: no such task"):
            self.client.task(4)

    def test_cancel(self):
        self.daemon.tasks = [make_task(5)]
        self.assertEqual(self.client.cancel(5)["state"], "CANCELLED")
        with self.assertRaisesRegex(colloc.DaemonError, "has ended"):
            self.client.cancel(5)

    def test_hold_and_release(self):
        self.daemon.tasks = [make_task(5)]
        self.assertEqual(self.client.hold(5)["id"], 5)
        self.assertEqual(self.client.release(5)["id"], 5)
        self.assertEqual(
            [path for _, path, _ in self.daemon.requests],
            ["/v1/tasks/5/hold", "/v1/tasks/5/release"],
        )

    def test_a_latency_is_reported(self):
        self.daemon.tasks = [make_task(5)]
        self.client.report_latency(5, 12.5)
        self.assertEqual(
            self.daemon.requests[-1], ("POST", "/v1/tasks/5/latency", {"p99_ms": 12.5})
        )

    def test_suspended_moved_and_resumed(self):
        self.daemon.tasks = [make_task(5)]
        self.assertEqual(self.client.suspend(5)["state"], "SUSPENDED")
        self.assertEqual(self.client.resume(5)["state"], "RUNNING")
        self.assertEqual(self.client.move(5, ["1"])["id"], 5)
        self.assertEqual(self.daemon.requests[-1], ("POST", "/v1/tasks/5/move", {"gpus": ["1"]}))
        with self.assertRaisesRegex(colloc.DaemonError, "task 6: no such task"):
            self.client.suspend(6)

    def test_gpus(self):
        self.daemon.gpus = [{"index": "0"}]
        self.assertEqual(self.client.gpus(), [{"index": "0"}])


class Wait(ClientCase):
    def test_until_the_end(self):
        self.daemon.tasks = [make_task(1)]
        seen = []

        def on_wait(task):
            seen.append(task["state"])
            if len(seen) == 3:
                task["state"] = "FAILED"

        self.daemon.on_wait = on_wait
        self.assertEqual(self.client.wait(1)["state"], "FAILED")
        self.assertEqual(len(seen), 3)

    def test_a_suspended_or_paused_task_has_not_ended(self):
        self.daemon.tasks = [make_task(1)]
        states = iter(["SUSPENDED", "PAUSED", "RUNNING", "COMPLETED"])
        self.daemon.on_wait = lambda task: task.update(state=next(states))
        self.assertEqual(self.client.wait(1)["state"], "COMPLETED")

    def test_bounded(self):
        self.daemon.tasks = [make_task(1)]
        with self.assertRaisesRegex(TimeoutError, "task 1 is still PENDING after 0.05 s"):
            self.client.wait(1, timeout_s=0.05)


class Logs(ClientCase):
    def test_all_pieces(self):
        text = b"a line that is longer than a piece\n"
        self.daemon.tasks = [make_task(1)]
        self.daemon.logs = {(1, "stdout"): [b"first", text], (1, "stderr"): [b"", b"oh"]}
        self.assertEqual(self.client.logs(1), text)
        self.assertEqual(self.client.logs(1, attempt=1), b"first")
        self.assertEqual(self.client.logs(1, "stderr"), b"oh")

    def test_one_attempt_when_the_next_begins_meanwhile(self):
        self.daemon.tasks = [make_task(1)]
        self.daemon.logs = {(1, "stdout"): [b"0123456789"]}
        both = {(1, "stdout"): [b"0123456789", b"x" * 20]}
        self.daemon.on_log = lambda _: self.daemon.logs.update(both)
        self.assertEqual(self.client.logs(1), b"0123456789")


class Socket(ClientCase):
    def test_given_or_in_the_environment(self):
        with mock.patch.dict(os.environ, {"COLLOC_SOCKET": self.socket}):
            self.assertEqual(colloc.Client().socket, self.socket)
            self.assertEqual(colloc.Client("/elsewhere").socket, "/elsewhere")

    def test_found_where_a_daemon_listens(self):
        places = mock.patch.object(
            colloc.connection, "default_places", lambda: ["/no/such", self.socket]
        )
        with mock.patch.dict(os.environ, {"COLLOC_SOCKET": ""}), places:
            self.assertEqual(colloc.Client().socket, self.socket)
            os.chmod(self.folder, 0o777)  # any user may have put the socket there
            with self.assertRaisesRegex(ConnectionRefusedError, "/no/such or .*colloc serve"):
                colloc.Client()

    def test_the_places_of_a_user(self):
        with mock.patch.dict(os.environ, {"XDG_RUNTIME_DIR": "/run/user/7"}):
            self.assertEqual(
                colloc.connection.default_places(),
                [
                    "/run/colloc/collocd.sock",
                    "/run/user/7/colloc/collocd.sock",
                    f"/tmp/colloc-{os.geteuid()}/collocd.sock",
                ],
            )

    def test_no_daemon_is_an_os_error_that_names_the_socket(self):
        with self.assertRaisesRegex(FileNotFoundError, "/no/such"):
            colloc.Client("/no/such").gpus()


if __name__ == "__main__":
    unittest.main()
