# SPDX-License-Identifier: Apache-2.0
"""colloc-checkpoint is given lines, arguments and descriptors that collocd never gives it: it calls
the driver for no process that was not named rightly, and leaves no GPU memory behind."""
import os
import re
import subprocess
import unittest

from daemon_case import BUILD, LIMIT_S, read
from emulator_case import EmulatorCase

HELPER = os.path.join(BUILD, "src", "checkpoint", "colloc-checkpoint")
INVALID, NO_PROCESS, CUT_OFF = -22, -3, 2
REPLY = re.compile(r"-?\d+ \d+ \S+ .+")


def born(pid):
    return read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[19]


class HelperLines(EmulatorCase):
    def run_helper(self, data, *words, **options):
        return subprocess.run(
            [HELPER, *words],
            input=data,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=LIMIT_S,
            check=False,
            **options,
        )

    def replies(self, *lines, **options):
        done = self.run_helper("".join(f"{line}\n" for line in lines).encode(), **options)
        replies = done.stdout.decode().splitlines()
        self.assertEqual((done.returncode, len(replies)), (0, len(lines)), done.stderr)
        for reply in replies:
            self.assertRegex(reply, REPLY)
        return replies

    def results(self, *lines, **options):
        return [int(reply.split()[0]) for reply in self.replies(*lines, **options)]

    def gpu(self):
        return self.replies("gpus")[0].split()[4].split(",")[0]

    def test_lines_that_are_no_request(self):
        gpu = self.gpu()
        lines = [
            "",
            " ",
            "nonsense",
            "gpus of others",
            "state 1",
            "state 99999999999999999999 1",
            "state -1 0",
            "lock 4711 88123 -5",
            "checkpoint 4711 88123 extra",
            "lend 4711 88123 ../../etc/passwd 1",
            f"lend 4711 88123 {gpu} 0",
            f"lend 4711 88123 {gpu} {(1 << 63) - 1}",
            f"reserve 4711 88123 {gpu} {(1 << 63) - 1}",
            "restore 4711 88123 a>b",
            "\xff\xfe state",
        ]
        self.assertEqual(self.results(*lines), [INVALID] * len(lines))

    def test_a_process_that_is_not_the_named_one(self):
        """Its number is that of another one by now: this process, as it lives."""
        pid, gpu = os.getpid(), self.gpu()
        calls = ("state", "lock", "checkpoint", "unlock", "restore", "reserve", "lend")
        more = {"lock": " 1000", "reserve": f" {gpu} 4096", "lend": f" {gpu} 4096"}
        lines = [f"{call} {pid} {int(born(pid)) + 1}{more.get(call, '')}" for call in calls]
        self.assertEqual(self.results(*lines), [NO_PROCESS] * len(lines))

    def test_memory_that_cannot_be_handed_over(self):
        """The fourth descriptor is no socket: the memory is given back at once."""
        pid, gpu = os.getpid(), self.gpu()
        line = f"lend {pid} {born(pid)} {gpu} {100 << 30}"
        for result in self.results(line, line, line):
            self.assertLess(result, 0)

    def test_a_line_without_end(self):
        for data in (b"a" * 20000, b"state 1 1", b"\0\n", b"gpus\0\n"):
            done = self.run_helper(data)
            self.assertEqual((done.returncode, done.stdout), (CUT_OFF, b""), data[:20])

    def test_arguments(self):
        for words in (["--help"], ["--probe", "1"], [""], ["4711"]):
            done = self.run_helper(b"gpus\n", *words)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn(b"usage: colloc-checkpoint", done.stderr)


if __name__ == "__main__":
    unittest.main()
