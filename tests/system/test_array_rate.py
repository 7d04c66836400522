# SPDX-License-Identifier: Apache-2.0
"""An array of short trainings ends about as soon with nothing declared and nothing set as with the
best fixed number of them at a time, which a user would have to find by search.

    COLLOC_SOAK=1 python3 tests/system/test_array_rate.py      # 15 minutes

Trainings of a minute on one emulated GPU, 20 times as fast, as clients of MPS; settings that are
times are, too. The fixed number is the array's own limit (`--array=1-100%N`), without any caution
of placing. What the trainings lose beside each other is what src/sharing/interference.h says. The
simulator answers the same for arrays of 200 and more kinds: docs/measured/start-simulated.md.
"""

import os
import time
import unittest

from daemon_case import DaemonCase, until

SPEED, SECONDS = 20, 60
FIXED = (10, 20, 40)
AS_FAST = {
    name: f"{seconds / SPEED:.3f}s"
    for name, seconds in (
        ("sample-period", 1),
        ("settle", 10),
        ("settle-max", 60),
        ("window", 90),
    )
}
NO_CAUTION = {
    "policy": "rr",
    "settle": "1ms",
    "settle-max": "1ms",
    "min-free": "0",
    "margin": "0",
    "smact-max": "1",
    "smact-sum-max": "0",
}
LIMIT_S = 900


@unittest.skipUnless("COLLOC_SOAK" in os.environ, "a part of `make soak`")
class ArrayRate(DaemonCase):
    gpus = "1xH200"
    speed = SPEED
    settings = {**AS_FAST, "sharing": "mps"}

    def run_array(self, smact, tasks, at_a_time=None):
        """Returns the seconds of the GPU's clock until all have ended."""
        train = f"colloc-pretend-train --memory-mib=1500 --seconds={SECONDS} --ramp-seconds=5"
        limit = f"%{at_a_time}" if at_a_time else ""
        begin = time.monotonic()
        array = self.submit(f"exec {train} --smact={smact}", array=f"1-{tasks}{limit}")
        states = lambda: self.get(f"/v1/tasks/{array}")["array"]["states"]
        until(lambda: states() == {"COMPLETED": tasks}, "the array's end", limit_s=LIMIT_S)
        seconds = (time.monotonic() - begin) * SPEED
        print(f"{tasks}, smact {smact}, {at_a_time or 'default'}: {seconds:.0f} s", flush=True)
        return seconds

    def check(self, smact, tasks):
        by_default = self.run_array(smact, tasks)
        self.restart(**NO_CAUTION)
        fixed = {n: self.run_array(smact, tasks, n) for n in FIXED}
        self.assertLess(by_default, 1.05 * min(fixed.values()))

    def test_small(self):
        self.check(0.1, 200)

    def test_middle(self):
        self.check(0.35, 100)


if __name__ == "__main__":
    unittest.main()
