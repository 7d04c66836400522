# SPDX-License-Identifier: Apache-2.0
"""A test case with a fake daemon, and ways to run colloc: in a pipe, and on a terminal of a given
width.
"""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "lib"))

from fake_collocd import FakeDaemon  # noqa: E402

COLLOC = os.environ["COLLOC"]


class CliCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="colloc-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.daemon = FakeDaemon(os.path.join(self.folder, "collocd.sock"))
        self.daemon.__enter__()
        self.addCleanup(self.daemon.__exit__)
        self.environment = {
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm",
            "TZ": "UTC",
            "COLLOC_SOCKET": self.daemon.socket_path,
        }

    def run_colloc(self, *words, stdin="", **environment):
        return subprocess.run(
            [COLLOC, *words],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**self.environment, **environment},
            timeout=60,
            check=False,
        )

    def start_colloc(self, *words):
        return subprocess.Popen(
            [COLLOC, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment,
        )

    def colloc(self, *words, code=0, **environment):
        """Runs colloc, checks the exit code, returns stdout."""
        done = self.run_colloc(*words, **environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def complaint(self, *words, code, **environment):
        """Runs colloc, which must end with `code` and print nothing but a complaint; returns that.
        Runs colloc, which must end with `code` and print nothing but a complaint; returns that.
        """
        done = self.run_colloc(*words, **environment)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertTrue(done.stderr.startswith("colloc: "), done.stderr)
        return done.stderr[len("colloc: ") :].rstrip("\n")

    def screen(self, columns, *words, **environment):
        """What colloc writes to a terminal so wide, with its escape sequences."""
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        with subprocess.Popen(
            [COLLOC, *words],
            stdin=follower,
            stdout=follower,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env={**self.environment, **environment},
        ) as process:
            os.close(follower)
            chunks = []
            while True:
                try:
                    chunk = os.read(leader, 65536)
                except OSError:
                    break
                if not chunk:
                    break
                chunks.append(chunk)
            self.assertEqual(process.wait(60), 0, b"".join(chunks))
        os.close(leader)
        return b"".join(chunks).decode().replace("\r\n", "\n")

    def screen_lines(self, columns, *words):
        lines = re.sub(r"\x1b\[[0-9;]*m", "", self.screen(columns, *words)).splitlines()
        for line in lines:
            self.assertLessEqual(len(line.rstrip()), columns, "\n".join(lines))
        return [line.rstrip() for line in lines]

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path
