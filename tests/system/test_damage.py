# SPDX-License-Identifier: Apache-2.0
"""A log that is damaged, cut short or replaced: refused or said aloud, and never served in silence.

Random damage comes from a seed that is printed; COLLOC_SEED=N repeats a run.
"""

import json
import os
import random
import shutil
import sqlite3
import unittest

from damage import TO_VERSION_1, DamageCase

SEED = int(os.environ.get("COLLOC_SEED", random.randrange(1 << 32)))
ROUNDS = int(os.environ.get("COLLOC_ROUNDS", 20))


def setUpModule():
    print(f"COLLOC_SEED={SEED}", flush=True)


class Damage(DamageCase):
    def database(self, state=None):
        return os.path.join(state or self.state, "colloc.db")

    def change(self, *statements):
        with sqlite3.connect(self.database()) as log:
            for statement in statements:
                log.execute(statement)
        log.close()

    def check_log(self, *options, code=1):
        return json.loads(self.colloc("check", "--json", *options, self.state, code=code).stdout)

    # ---- rows ----

    def test_a_damaged_event_of_a_live_task_is_refused(self):
        self.with_tasks()
        self.stop()
        self.assertEqual(self.check_log(code=0)["findings"], [])
        self.change(
            "UPDATE events SET body = replace(body, '\"uid\":', '\"uid\":1') WHERE task = 7"
        )
        status, words = self.run_daemon()
        self.assertEqual(status, 1)
        self.assertRegex(words, r"event \d+ \(SUBMIT of task 7\): is not what was written")
        found = self.check_log()["findings"]
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], r"event \d+ \(SUBMIT of task 7\) is not what was written")

    def test_damaged_history_is_never_served_in_silence(self):
        self.with_tasks()
        self.stop()
        self.change(
            "UPDATE records SET record = replace(record, 'COMPLETED', 'CANCELLED') WHERE task = 4",
            "UPDATE events SET wall_us = wall_us + 1 WHERE task = 3 AND kind = 'EXITED'",
        )
        self.start()
        reply = self.request("GET", "/v1/tasks/4")
        self.assertEqual(reply.status, 500)
        self.assertIn("the record of task 4 is not what was written", reply.message)
        listed = self.get("/v1/tasks?state=all")
        self.assertEqual(sorted(task["id"] for task in listed["tasks"]), [1, 2, 3, 5, 6, 7])
        self.assertIn("task 4", listed["warning"])
        self.assertIn("task 4", self.colloc("history").stderr)
        self.wait_log("the record of task 4 is not what was written")
        self.assertRegex(self.task(3)["damaged"], r"event \d+ \(EXITED of task 3\)")
        self.stop()
        self.assertEqual(len(self.check_log()["findings"]), 2)

    def test_an_entry_of_another_task_is_not_left_out_in_silence(self):
        self.with_tasks()
        self.stop()
        self.change("UPDATE ended SET task = 99 WHERE task = 2")
        self.start()
        listed = self.get("/v1/tasks?state=all")
        self.assertEqual(sorted(task["id"] for task in listed["tasks"]), [1, 3, 4, 5, 6, 7])
        self.assertIn("task 99", listed["warning"])

    def test_missing_rows(self):
        self.with_tasks()
        self.stop()
        self.change(
            "DELETE FROM events WHERE task = 5 AND kind = 'PLACE'",
            "DELETE FROM ended WHERE task = 2",
            "DELETE FROM blobs WHERE id = (SELECT blob FROM blob_uses WHERE task = 7 LIMIT 1)",
        )
        found = "\n".join(self.check_log()["findings"])
        for words in (
            "task 2 has events, but is neither",
            "of task 7 is missing",
            "1 tasks are missing",
            "1 event is missing",
        ):
            self.assertIn(words, found)

    def test_each_deleted_event_is_missing(self):
        """Also one without which the others are possible, and none but forgotten ones."""
        self.with_tasks()
        self.stop()
        self.check_log(code=0)
        with sqlite3.connect(self.database()) as log:
            numbers = [seq for (seq,) in log.execute("SELECT seq FROM events ORDER BY seq")]
        log.close()
        shutil.copy(self.database(), self.folder + "/copy")
        for number in numbers[:-1]:
            self.change(f"DELETE FROM events WHERE seq = {number}")
            self.assertIn("1 event is missing", self.check_log()["findings"])
            shutil.copy(self.folder + "/copy", self.database())
        self.change(f"DELETE FROM events WHERE seq = {numbers[-1]}")
        self.assertIn("the event log ends at", "".join(self.check_log()["findings"]))

    def test_events_that_do_not_follow(self):
        self.with_tasks()
        self.stop()
        self.change("DELETE FROM events WHERE task = 5 AND kind = 'PLACE'")
        self.assertIn(
            "STARTED of task 5 is not possible after the events before it",
            self.check_log()["findings"],
        )

    # ---- a log that ends too early ----

    def test_an_older_copy(self):
        self.with_tasks(2)
        self.stop()
        shutil.copy(self.database(), self.folder + "/copy")
        self.start()
        self.wait(self.submit(), "COMPLETED")
        self.stop()
        shutil.copy(self.folder + "/copy", self.database())
        self.assertRegex(
            self.check_log()["findings"][0],
            r"ends at event \d+ and task 3, but event \d+ and task 4",
        )
        for _ in range(2):
            since = len(self.log)
            self.start()
            self.assertTrue(
                [line for line in self.log[since:] if "error" in line and "task 4 had been" in line]
            )
            self.assertIn("task 4 had been recorded", self.get("/v1/info")["log_loss"])
            self.assertIn("task 4 had been recorded", self.colloc("queue").stderr)
            self.assertGreater(self.submit(), 3)
            self.stop()
        self.check_log("--accept-loss", code=0)
        self.start()
        self.assertIsNone(self.get("/v1/info")["log_loss"])

    def test_folders_know_more(self):
        self.with_tasks(1)
        self.stop()
        os.makedirs(self.state + "/tasks/65/1")
        os.unlink(self.state + "/colloc.lock")
        self.assertIn(
            "/tasks/65: a task's folder, but the log ends at task 2",
            self.check_log()["findings"][0],
        )
        self.start()
        self.assertIn("folders of tasks up to 65", self.get("/v1/info")["log_loss"])
        self.assertEqual(self.submit(), 66)

    def test_moved_away_is_no_loss(self):
        self.with_tasks(2)
        self.stop()
        os.unlink(self.database())
        self.start()
        self.assertIsNone(self.get("/v1/info")["log_loss"])
        self.stop()
        self.assertEqual(self.check_log(code=0)["sound"], True)

    def test_an_open_log_is_not_checked(self):
        self.assertIn("stop it first", self.colloc("check", self.state, code=1).stderr)
        self.assertIn("no/such.db", self.colloc("check", "/no/such.db", code=1).stderr)

    def test_an_older_version_is_brought_up_to_date(self):
        before = self.with_tasks()
        self.stop()
        self.change(*TO_VERSION_1)
        self.assertIn("version 1 of the log", self.colloc("check", self.state, code=1).stderr)
        older = self.dump(self.database())
        backup = self.database() + ".version-1"
        os.mkdir(backup + ".part")  # it cannot be written: nothing is changed
        status, text = self.run_daemon()
        self.assertNotEqual(status, 0)
        self.assertIn("cannot be backed up before it is upgraded", text)
        self.assertEqual(self.dump(self.database()), older)
        os.rmdir(backup + ".part")
        self.start()
        self.assertEqual(
            {task["id"]: self.lasting(task) for task in self.tasks(state="all")}, before
        )
        self.assertEqual(self.dump(backup), older)
        self.assertEqual(os.stat(backup).st_mode & 0o777, 0o600)
        self.stop()
        self.assertEqual(self.check_log(code=0)["ended"], 6)
        # The backup is a log that starts, too.
        for ending in ("", "-wal", "-shm"):
            if os.path.exists(self.database() + ending):
                os.unlink(self.database() + ending)
        os.rename(backup, self.database())
        self.start()
        self.assertEqual(len(self.tasks(state="all")), len(before))

    def dump(self, path):
        """All that the log has, as SQL, and its version."""
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as log:
            return [*log.iterdump(), log.execute("PRAGMA user_version").fetchone()]

    # ---- random damage ----

    def test_random_damage_of_the_write_ahead_log(self):
        before = self.with_tasks()
        self.stop(9)
        counts = self.rounds("colloc.db-wal", before, SEED, ROUNDS)
        self.assertGreater(counts["said"] + counts["refused"], 0, counts)

    def test_random_damage_of_the_database(self):
        before = self.with_tasks()
        self.stop()
        self.rounds("colloc.db", before, SEED, ROUNDS)


if __name__ == "__main__":
    unittest.main()
