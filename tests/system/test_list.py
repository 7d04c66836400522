# SPDX-License-Identifier: Apache-2.0
"""Long lists of tasks: in pages, and without making anybody else wait. Times are printed; the limits are generous, as
the machine may be busy."""

import json
import sqlite3
import statistics
import threading
import time
import unittest

from daemon_case import DaemonCase, row_sum

ENDED = 200000
PAGE = 10000
PROMPT_S = 0.05


class LongHistory(DaemonCase):
    gpus = "A100-40GB"

    def setUp(self):
        super().setUp()
        task = self.submit("true")
        self.wait(task, "COMPLETED")
        self.held = self.submit("true", hold=True)
        self.stop()
        self.make_history(task)
        self.start(history="100000d")

    def make_history(self, task):
        """As many ended tasks as that, each with the record of one that really ended."""
        with sqlite3.connect(f"{self.state}/colloc.db") as db:
            (record,) = db.execute("SELECT record FROM records WHERE task = ?", (task,)).fetchone()
            columns = [row[1] for row in db.execute("PRAGMA table_info(ended)")]
            row = db.execute(f"SELECT {', '.join(columns)} FROM ended WHERE task = ?", (task,)).fetchone()
            ended, known = dict(zip(columns, row)), json.loads(record)
            numbers = range(10, 10 + ENDED - 1)
            db.executemany(
                f"INSERT INTO ended({', '.join(columns)}) VALUES({', '.join('?' * len(columns))})",
                (tuple({**ended, "seq": ended["seq"] + n, "task": n}.values()) for n in numbers))
            db.executemany("INSERT INTO records(task, record) VALUES(?, ?)",
                           ((n, json.dumps({**known, "id": n})) for n in numbers))
            db.create_function("row_sum", -1, row_sum)
            summed = [column for column in columns if column not in ("seq", "sum")]
            db.execute(f"UPDATE ended SET sum = row_sum({', '.join(summed)})")
            db.execute("UPDATE records SET sum = row_sum(task, record)")
        db.close()

    def watch(self, call):
        """What the call gave, and the times that somebody else's requests took meanwhile."""
        found = []
        thread = threading.Thread(target=lambda: found.append(call()))
        thread.start()
        times = []
        while thread.is_alive():
            begin = time.monotonic()
            self.get("/v1/info")
            times.append(time.monotonic() - begin)
        return found[0], times

    def assert_prompt(self, what, times):
        times.sort()
        print(f"{what}: {len(times)} other requests, median {statistics.median(times) * 1000:.1f} ms, "
              f"99 % {times[int(len(times) * 0.99)] * 1000:.1f} ms, most {times[-1] * 1000:.1f} ms", flush=True)
        self.assertLess(statistics.median(times), PROMPT_S)

    def test_a_long_history_makes_nobody_wait(self):
        page, times = self.watch(lambda: self.get("/v1/tasks?state=all&limit=1000000"))
        self.assert_prompt("one page", times)
        self.assertEqual([task["id"] for task in page["tasks"]],
                         [self.held, *range(ENDED + 8, ENDED + 8 - PAGE + 1, -1)])
        last, times = self.watch(lambda: self.get(f"/v1/tasks?state=all&limit=1000000&after={page['next']}"))
        self.assertEqual(last["tasks"][0]["id"], page["tasks"][-1]["id"] - 1)
        none, times = self.watch(lambda: self.get("/v1/tasks?state=TIMEOUT&limit=1000000"))
        self.assert_prompt("none of that state", times)
        self.assertEqual(none, {"tasks": []})
        everything, times = self.watch(
            lambda: json.loads(self.colloc("queue", "--state=all", "--limit=25000", "--json").stdout)["tasks"])
        self.assert_prompt("all pages", times)
        self.assertEqual(len({task["id"] for task in everything}), 25001)

    def test_pages_end_with_the_limit(self):
        for limit, count in ((1, 1), (5, 5), (PAGE, PAGE)):
            page = self.get(f"/v1/tasks?state=ended&limit={limit}")
            self.assertEqual((len(page["tasks"]), "next" in page), (count, False))
        self.assertEqual(len(self.get("/v1/tasks?state=ended")["tasks"]), 1000)
        page = self.get(f"/v1/tasks?state=ended&limit={PAGE + 5}")
        rest = self.get(f"/v1/tasks?state=ended&limit={PAGE + 5}&after={page['next']}")
        self.assertEqual((len(page["tasks"]), len(rest["tasks"]), "next" in rest), (PAGE, 5, False))
        for after in ("", "x", "2", "2.", "2.1", "4.1.1", "2.x.1", "2.1.x", "-1.1.1", "2.99999999999999999999.1", "2.1.-1"):
            self.assertEqual(self.request("GET", f"/v1/tasks?after={after}").status, 400, after)


if __name__ == "__main__":
    unittest.main()
