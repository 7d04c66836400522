# SPDX-License-Identifier: Apache-2.0
"""An upgrade from version 0.1: a daemon of that version is killed, and one of today goes on.

`Recorded` starts on the log that the older version left. `Real` runs the older version's programs,
from a build folder that COLLOC_OLD_BUILD names; without it, it is skipped.
"""

import os
import signal
import sqlite3
import subprocess
import unittest

from daemon_case import PROGRAMS, DaemonCase, is_alive, until

DATA = os.path.join(os.path.dirname(__file__), "..", "data", "upgrade", "0.1.sql")
OLD_BUILD = os.environ.get("COLLOC_OLD_BUILD", "")
# What a task waits for, so that it runs as long as the test wants.
UNTIL_GO = "echo began; echo $PPID > shim-$COLLOC_TASK_ID; until [ -e go ]; do sleep 0.05; done"


def old_program(name):
    return os.path.join(OLD_BUILD, PROGRAMS[name])


class Recorded(DaemonCase):
    gpus = "2xA100-40GB"

    def start(self, **settings):
        os.mkdir(self.state, 0o711)
        with open(DATA, encoding="utf-8") as file:
            log = file.read().replace("@WORK@", self.work).replace("@FOLDER@", self.folder)
        for key, own in (("uid", os.getuid()), ("gid", os.getgid())):
            log = log.replace(f'"{key}":0', f'"{key}":{own}')
        with sqlite3.connect(f"{self.state}/colloc.db") as db:
            db.executescript(log)
        db.close()
        super().start(**settings)

    def test_each_task_is_there(self):
        self.assertRegex("\n".join(self.log), "version 1 of the log; upgraded .* backup is .*-1")
        failed, completed = self.task(1), self.task(2)
        self.assertEqual((failed["state"], failed["exit_code"]), ("FAILED", 3))
        self.assertEqual((completed["state"], completed["name"]), ("COMPLETED", "ends"))
        for task in (3, 4):  # their processes are gone, unlike those of a real upgrade
            lost = self.wait(task)
            self.assertEqual((lost["state"], lost["reason"]), ("FAILED", "Lost"))
        self.wait(5, "COMPLETED")
        self.assertEqual(self.task(6)["reason"], "JobHeldUser")
        self.act("release", 6)
        self.wait(6, "COMPLETED")
        self.assertEqual(len(self.tasks(state="all")), 6)


@unittest.skipUnless(OLD_BUILD, "COLLOC_OLD_BUILD names no build of an older version")
class Real(DaemonCase):
    gpus = "2xA100-40GB"
    old = False

    def start(self, **settings):
        """First the older version, over its own emulator; later today's."""
        if self.process:
            super().start(**settings)
            return
        emulator = os.path.dirname(old_program("emulator"))
        today, self.env = self.env, {**self.env, "LD_LIBRARY_PATH": emulator}
        self.env["PATH"] = emulator + ":" + self.env["PATH"]
        self.env["COLLOC_EMULATOR"] += "-old"
        command = [old_program("emulator"), "create", "--gpus", self.gpus]
        subprocess.run([*command, self.env["COLLOC_EMULATOR"]], check=True)
        self.old = True
        super().start(shim=old_program("shim"), **settings)
        self.today = today

    def command(self, **settings):
        words = super().command(**settings)
        return [old_program("collocd"), *words[1:]] if self.old else words

    def test_running_waiting_and_ended_tasks_are_there(self):
        ended = [self.submit("echo out; exit 3", name="fails"), self.submit("true", name="ends")]
        for task in ended:
            self.wait(task)
        running = [self.submit(UNTIL_GO, exclusive=True, name=f"runs-{i}") for i in range(2)]
        for task in running:
            self.wait_state(task, "RUNNING")
        shims = [int(self.wait_file(f"shim-{task}")) for task in running]
        waiting = self.submit("echo began; exit 0", exclusive=True, name="waits")
        held = self.submit("true", hold=True, name="held")
        before = {task["id"]: task for task in self.tasks(state="all")}
        self.stop(signal.SIGKILL)
        self.env, self.old = self.today, False
        self.start()
        after = {task["id"]: task for task in self.tasks(state="all")}
        self.assertEqual(set(after), set(before))
        for task, old in before.items():
            for key in ("name", "user", "state", "submitted_at", "gpu_uuids", "exit_code"):
                self.assertEqual(after[task][key], old[key], (task, key))
        self.assertTrue(all(map(is_alive, shims)))
        self.write("go", "")
        for task in [*running, waiting]:
            self.assertEqual(self.wait(task, "COMPLETED")["attempt_count"], 1)
            self.assertEqual(self.client.logs(task), b"began\n")
        self.assertEqual(self.client.logs(ended[0]), b"out\n")
        self.assertEqual(self.task(ended[0])["exit_code"], 3)
        self.act("release", held)
        self.wait(held, "COMPLETED")
        until(lambda: not any(map(is_alive, shims)), "the end of the older version's shims")


if __name__ == "__main__":
    unittest.main()
