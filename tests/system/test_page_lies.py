# SPDX-License-Identifier: Apache-2.0
"""A task that writes anything into the page that it shares with the daemon (src/preload/page.h),
while it is suspended and resumed: it harms itself at most."""
import os
import random
import signal
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_suspend as ts  # noqa: E402
from daemon_case import read, until  # noqa: E402
import page_liar  # noqa: E402
import preload_daemon as pd  # noqa: E402

ORDERS = int(os.environ.get("COLLOC_LIES", "12"))
DAEMON_MAX_MIB = 100  # that it allocates
ROOM_MAX_MIB = 200  # for a copy, which the daemon maps while it makes the room
# Most fields have few values; the others show what a sum or a product of them does.
WORDS = [*range(8), 1 << 30, 1 << 31, (1 << 32) - 1]


@unittest.skipUnless("COLLOC_LIES" in os.environ, "a part of `make soak`")
class Lies(ts.Suspend):
    settings = {"sample-period": "100ms", "carrier": "yes"}
    start_program, wait_steps = ts.Carried.start_program, ts.Carried.wait_steps
    goes_on = ts.Carried.goes_on

    def garbage(self, chance):
        """A few words of the page, which begins with its magic number."""
        places = chance.sample(range(8, pd.PAGE_SIZE, 4), 200)
        return [(at, struct.pack("=I", chance.choice(WORDS))) for at in places]

    def order(self, task, verb, chance):
        """It is not awaited: when it would be answered is not known."""
        connection = self.connection()
        connection.request("POST", f"/v1/tasks/{task}/{verb}", "{}")
        end = time.monotonic() + chance.random() * 0.5
        until(lambda: time.monotonic() > end)
        connection.close()

    def check_daemon(self):
        self.assertEqual([line for line in self.log if " error: " in line], [])
        if "ASAN_OPTIONS" not in self.env:
            self.assertLess(self.memory_mib("RssAnon"), DAEMON_MAX_MIB)
            self.assertLess(self.memory_mib("VmHWM"), DAEMON_MAX_MIB + ROOM_MAX_MIB)

    def memory_mib(self, kind):
        status = read(f"/proc/{self.process.pid}/status")
        return int(status.split(kind + ":")[1].split()[0]) / 1024

    def test_garbage(self):
        chance = random.Random(1)
        honest, _ = self.start_program()
        liar, pid = self.start_program()
        with page_liar.tells(pid, lambda: self.garbage(chance)):
            for i in range(ORDERS):
                self.order(liar, ("suspend", "resume")[i % 2], chance)
        self.check_daemon()
        self.colloc("cancel", str(liar))
        self.wait(liar, "CANCELLED")
        until(lambda: pid not in self.processes(), "its memory to be free")
        self.restart(signal.SIGKILL)
        self.goes_on(honest)
        self.assertEqual(self.task(honest)["attempt_count"], 1)
        self.check_daemon()


@unittest.skipUnless("COLLOC_LIES" in os.environ, "a part of `make soak`")
class ClientLies(Lies):
    settings = {**Lies.settings, "sharing": "mps"}


if __name__ == "__main__":
    unittest.main()
