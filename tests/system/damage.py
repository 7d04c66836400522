# SPDX-License-Identifier: Apache-2.0
"""Random damage to files of a daemon's state folder, and what the daemon may make of it."""

import os
import random
import shutil

from daemon_case import DaemonCase

# Makes a log one of colloc's first version.
TO_VERSION_1 = (
    "ALTER TABLE events DROP COLUMN sum",
    "ALTER TABLE ended DROP COLUMN sum",
    "ALTER TABLE records DROP COLUMN sum",
    "DROP TABLE facts",
    "DROP TABLE arrays",
    "PRAGMA user_version = 1",
)


class DamageCase(DaemonCase):
    def with_tasks(self, n=6):
        """Ended tasks and one that is held; their records."""
        for i in range(n):
            self.wait(self.submit(f"exit {i % 3}", name=f"t{i}"))
        self.submit("echo held", hold=True)
        return {task["id"]: self.lasting(task) for task in self.tasks(state="all")}

    @staticmethod
    def lasting(task):
        return {
            key: task[key]
            for key in ("name", "state", "uid", "exit_code", "evidence", "reason", "attempts")
        }

    def start_copy(self, state):
        """Does it start there? If not, the words it refused with."""
        try:
            self.start(**{"state-dir": state})
        except AssertionError:
            self.assertEqual(self.process.wait(), 1)
            return self.log[-1]
        return None

    def rounds(self, name, before, seed, count):
        """Damages that file in copies of the state folder.

        Each copy is refused with a message, reports its loss, or serves the records `before`.
        Returns how many did each.
        """
        chance = random.Random(seed)
        counts = {"refused": 0, "said": 0, "identical": 0}
        for n in range(count):
            state = f"{self.folder}/copy-{seed}-{n}"
            shutil.copytree(self.state, state)
            path = os.path.join(state, name)
            with open(path, "rb") as file:
                data = bytearray(file.read())
            self.damage_somehow(chance, data)
            with open(path, "wb") as file:
                file.write(data)
            words = self.start_copy(state)
            if words:
                self.assertIn("colloc.db", words)
                counts["refused"] += 1
            else:
                counts[self.judge(before, f"COLLOC_SEED={seed} round {n}")] += 1
                self.stop(9)
            shutil.rmtree(
                state, ignore_errors=True
            )  # a shim that a damaged log has started may still write there
        return counts

    def judge(self, before, where):
        listed = self.get("/v1/tasks?state=all")
        if "warning" in listed or self.get("/v1/info")["log_loss"]:
            return "said"
        self.assertEqual(
            {task["id"]: self.lasting(task) for task in listed["tasks"]}, before, where
        )
        return "identical"

    @staticmethod
    def damage_bytes(chance, data):
        at, n = chance.randrange(len(data)), chance.choice((1, 1, 8, 64))
        for i in range(at, min(at + n, len(data))):
            data[i] ^= chance.randrange(1, 256)

    @staticmethod
    def damage_page(chance, data):
        at = chance.randrange(len(data) // 4096) * 4096
        data[at : at + 4096] = bytes(4096)

    @staticmethod
    def damage_end(chance, data):
        del data[chance.randrange(len(data)) :]

    def damage_somehow(self, chance, data):
        chance.choice((self.damage_bytes, self.damage_bytes, self.damage_page, self.damage_end))(
            chance, data
        )
