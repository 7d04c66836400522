# SPDX-License-Identifier: Apache-2.0
"""colloc-dcgm over the emulated libdcgm: its rows, and every failure of that library."""
import os
import signal
import socket
import subprocess
import unittest

from daemon_case import LIMIT_S, program
from emulator_case import EMULATOR, EmulatorCase

ENGINE_ADDRESS = ("127.0.0.1", 5555)
CALLS = (
    "dcgmInit dcgmGetAllDevices dcgmGetGpuInstanceHierarchy dcgmGroupCreate "
    "dcgmGroupAddEntity dcgmFieldGroupCreate dcgmWatchFields dcgmEntitiesGetLatestValues"
).split()
NAMES = "GPUTL GRACT SMACT SMOCC TENSO DRAMA FP64A FP32A FP16A PCITX PCIRX NVLTX NVLRX POWER TOTEC"


def engine_call():
    """How colloc-dcgm comes to an engine: this machine may have one."""
    with socket.socket() as probe:
        listens = probe.connect_ex(ENGINE_ADDRESS) == 0
    return "dcgmConnect_v2" if listens else "dcgmStartEmbedded_v2"


class Dcgm(EmulatorCase):
    gpus = "A100-40GB:3g.20gb+2g.10gb,A100-40GB"

    def setUp(self):
        super().setUp()
        dcgmi = os.path.join(EMULATOR, "dcgmi")
        listed = subprocess.run(
            [dcgmi, "discovery", "-l"], env=self.env, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.split()
        self.cards = [word for word in listed if word.startswith("GPU-")]

    def start(self, *words, fault="", **env):
        child = subprocess.Popen(
            [program("dcgm"), *words],
            env={**self.env, "COLLOC_EMULATOR_DCGM": fault, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        return child

    def lines(self, count, **faults):
        first, second = self.cards
        child = self.start("100", first + "/1", first + "/2", second, "GPU-none", **faults)
        return [child.stdout.readline().split() for _ in range(count)]

    def test_entities_and_rows(self):
        first, second = self.cards
        source, *lines = self.lines(8)
        self.assertEqual(source[:3], ["source", "libdcgm.so.4", "with"])
        self.assertEqual(
            lines[:4],
            [
                ["entity", first + "/1", "GPU-I", "10"],
                ["entity", first + "/2", "GPU-I", "20"],
                ["entity", second, "GPU", "1"],
                ["#Entity", *NAMES.split()],
            ],
        )
        self.assertEqual(
            [line[:2] for line in lines[4:]], [["GPU-I", "10"], ["GPU-I", "20"], ["GPU", "1"]]
        )
        self.assertEqual(lines[4][2:5], ["N/A", "0", "0"])
        self.assertEqual(lines[6][2:5], ["0", "0", "0"])
        self.assertGreater(float(lines[6][-1]), 0)

    def test_blank_missing_and_old_values_are_not_known(self):
        for fault in ("blank", "none", "old"):
            with self.subTest(fault):
                rows = self.lines(8, fault="dcgmEntitiesGetLatestValues:" + fault)[5:]
                for row in rows:
                    self.assertEqual(row[2:], ["N/A"] * len(NAMES.split()))

    def test_a_call_that_refuses_is_named(self):
        for call in [engine_call(), *CALLS]:
            with self.subTest(call):
                child = self.start(
                    "100", self.cards[0] + "/1", self.cards[1], fault=call + ":refuse"
                )
                out, err = child.communicate(timeout=LIMIT_S)
                self.assertEqual(err, f"libdcgm.so.4: {call}: API version mismatch\n")
                self.assertEqual(child.returncode, 1)
                self.assertNotIn("GPU 1 0", out)

    def test_a_crash_is_that_of_the_child(self):
        child = self.start("100", self.cards[1], fault="dcgmGroupCreate:crash")
        child.communicate(timeout=LIMIT_S)
        self.assertNotEqual(child.returncode, 0)

    def test_a_hung_child_ends_by_itself(self):
        child = self.start("100", self.cards[1], fault="dcgmWatchFields:hang")
        child.communicate(timeout=LIMIT_S)
        self.assertEqual(child.returncode, -signal.SIGALRM)

    def test_it_ends_with_its_reader(self):
        child = self.start("100", self.cards[1])
        child.stdout.readline()
        child.stdout.close()
        self.assertNotEqual(child.wait(LIMIT_S), 0)

    def test_no_gpu_is_listed(self):
        child = self.start("100", "GPU-none")
        self.assertIn("lists none", child.communicate(timeout=LIMIT_S)[1])

    def test_no_library(self):
        child = self.start(LD_LIBRARY_PATH="")
        _, err = child.communicate(timeout=LIMIT_S)
        if child.returncode == 0 or "lib" not in err:
            self.skipTest("this machine has DCGM")
        self.assertEqual(err, "neither libdcgm.so.4 nor libdcgm.so.3 can be loaded\n")


if __name__ == "__main__":
    unittest.main()
