# SPDX-License-Identifier: Apache-2.0
"""Many tasks changed at once: what becomes of each, and how often the event log is written."""

import re
import struct
import unittest

from daemon_case import DaemonCase, read, until

MANY = 150


class Many(DaemonCase):
    gpus = "1xA100-40GB"

    def transactions(self):
        """How often the event log was written: SQLite counts it in the index of its WAL."""
        return struct.unpack_from("I", read(f"{self.state}/colloc.db-shm", "rb"), 8)[0]

    def audited(self, event):
        return [
            int(found[1])
            for found in (re.search(rf"audit event={event} task=(\d+)", line) for line in self.log)
            if found
        ]

    def changed(self, verb, *words):
        """What `colloc VERB WORDS` prints, and how often it made the daemon write its log."""
        before = self.transactions()
        done = self.colloc(verb, *words)
        return done.stdout, self.transactions() - before

    def test_the_log_is_written_once_for_many(self):
        blocker = self.submit("while :; do sleep 0.1; done", exclusive=True)
        self.wait_state(blocker, "RUNNING")
        tasks = [self.submit() for _ in range(MANY)]
        dependent = self.submit(after=f"ok:{tasks[7]}")
        for verb, state in (
            ("hold", "PENDING (JobHeldUser)"),
            ("release", "PENDING"),
            ("cancel", "CANCELLED"),
        ):
            shown, written = self.changed(verb, f"{tasks[0]}-{tasks[-1]}")
            self.assertEqual(shown, "".join(f"Task {task} {state}\n" for task in tasks))
            self.assertLess(written, MANY / 3, verb)
        self.wait(dependent, "CANCELLED")
        self.wait_log(f"audit event=end task={dependent} ")
        self.assertEqual(self.audited("hold"), tasks[::-1])
        self.assertEqual(self.audited("release"), tasks)
        self.assertEqual(self.audited("cancel"), tasks[::-1])
        self.assertEqual(sorted(self.audited("end")), [*tasks, dependent])
        self.restart()
        self.assertEqual([task["id"] for task in self.tasks()], [blocker])

    def test_readers_of_metrics_share_a_text_that_takes_long(self):
        """With 40,000 tasks a text for each of its readers would keep the loop from all else."""
        self.submit("while :; do sleep 0.1; done", exclusive=True)
        for _ in range(4):
            self.submit("true", array="0-9999", exclusive=True)

        def read_wait():
            text = self.request("GET", "/v1/metrics").data.decode()
            self.assertRegex(text, r'colloc_tasks\{state="PENDING"\} 4000\d\n')
            return re.search(r"(?m)^colloc_queue_longest_wait_seconds (\S+)$", text)[1]

        waits = [read_wait() for _ in range(100)]
        self.assertLess(len(set(waits)), 50)
        until(lambda: float(read_wait()) > float(waits[-1]), "a new text")

    def results(self, verb, *tasks):
        reply = self.request("POST", f"/v1/tasks/{verb}", {"tasks": tasks})
        self.assertEqual(reply.status, 200, reply.data)
        return reply.json["results"]

    def test_each_has_the_answer_of_its_own_request(self):
        held, ended = self.submit(hold=True), self.submit()
        self.wait(ended, "COMPLETED")
        results = self.results("cancel", ended, held, 999)
        self.assertEqual([result["status"] for result in results], [409, 200, 404])
        for result, task in ((results[0], ended), (results[2], 999)):
            alone = self.act("cancel", task)
            self.assertEqual(
                (alone.status, alone.json["error"]), (result["status"], result["error"])
            )
        shown = self.task(held)
        self.assertEqual({**shown, **results[1]["task"]}, shown)
        self.assertEqual(shown["state"], "CANCELLED")
        self.assertEqual(self.results("hold", held)[0]["status"], 409)

    def test_tasks_of_an_array_by_index(self):
        array = self.submit(array="3-6", hold=True)
        names = [f"{array}_{index}" for index in (4, 6, 9, 10**12, 10**20)]
        results = self.results("cancel", *names)
        self.assertEqual([result["status"] for result in results], [200, 200, 404, 404, 404])
        self.assertEqual([result["task"]["array_index"] for result in results[:2]], [4, 6])
        for name, result in list(zip(names, results))[2:]:
            self.assertEqual(self.act("cancel", name).json["error"], result["error"])
        self.assertEqual(self.results("cancel", names[0])[0]["status"], 409)  # it has ended
        self.assertEqual(self.results("cancel", array)[0]["status"], 404)
        shown, written = self.changed("cancel", f"{array}_[3,5]")
        self.assertEqual(shown, "".join(f"Task {array}_{i} CANCELLED\n" for i in (3, 5)))
        self.assertLessEqual(written, 2)

    def test_what_is_refused(self):
        for body in (
            None,
            {},
            [],
            {"tasks": []},
            {"tasks": 7},
            {"tasks": ["7"]},
            {"tasks": ["7_"]},
            {"tasks": ["_7"]},
            {"tasks": ["0_7"]},
            {"tasks": ["7_x"]},
            {"tasks": ["7_1\u0000"]},
            {"tasks": [f"{10**30}_7"]},
            {"tasks": [1, 0]},
            {"tasks": [1, None]},
            {"tasks": [1.5]},
            {"tasks": [1] * 1001},
        ):
            reply = self.request("POST", "/v1/tasks/cancel", body)
            self.assertEqual(reply.status, 400, body)


if __name__ == "__main__":
    unittest.main()
