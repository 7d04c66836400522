# SPDX-License-Identifier: Apache-2.0
"""A base class for tests of programs that see emulated GPUs, without a daemon."""
import os
import shutil
import subprocess
import tempfile
import unittest

from daemon_case import LIMIT_S, program

EMULATOR = os.path.dirname(program("emulator"))


class EmulatorCase(unittest.TestCase):
    """Each test has new GPUs.

    gpus: which, as of `colloc-emulator create --gpus`
    folder: ends with the test
    env: the whole environment of the programs
    """

    gpus = "2xH200"

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="colloc-emulated-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {
            "PATH": EMULATOR + ":" + os.environ["PATH"],
            "LD_LIBRARY_PATH": EMULATOR,
            "COLLOC_EMULATOR": self.folder + "/gpus",
            "LC_ALL": "C.UTF-8",
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        self.emulator("create", "--gpus=" + self.gpus, "--speed=100", self.env["COLLOC_EMULATOR"])

    def emulator(self, *words):
        subprocess.run([program("emulator"), *words], env=self.env, check=True, timeout=LIMIT_S)
