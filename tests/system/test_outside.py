# SPDX-License-Identifier: Apache-2.0
"""Processes that use a GPU outside of tasks: the message on their users' terminals, and GPUs that
are closed to them, which nothing but the daemon keeps closed."""

import os
import pwd
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from daemon_case import LIMIT_S, DaemonCase, program, until
from test_kernels import export

A_PERSON = 12345  # without a name on this machine
LISTED = 65534  # has one on every Linux, and is no system user for the filter
TEXT = "Please use `colloc run`; ask ada@example.org."

# Runs a command on a terminal of its user, and prints what else comes out there.
ON_A_TERMINAL = """
import os, pty, sys
uid = int(sys.argv[1])
if uid:
    os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
while True:
    try:
        sys.stdout.buffer.write(os.read(terminal, 4096) or sys.exit())
    except OSError:
        sys.exit()
    sys.stdout.buffer.flush()
"""


class OutsideCase(DaemonCase):
    gpus = "1xA100-40GB"

    def command(self, **settings):
        helper = os.path.join(os.path.dirname(program("shim")), "..", "message", "colloc-message")
        return super().command(**{"messenger": os.path.realpath(helper), **settings})

    def train_outside(self):
        """A training on the GPU, by a person on a terminal."""
        uid = A_PERSON if os.geteuid() == 0 else 0
        if uid:
            subprocess.run(["chmod", "-R", "a+rwX", self.folder], check=True)
        other = subprocess.Popen(
            [sys.executable, "-c", ON_A_TERMINAL, str(uid)]
            + [os.path.join(os.path.dirname(program("emulator")), "colloc-pretend-train")]
            + ["--memory-mib=1000", "--seconds=1e6"],
            env=self.env,
            stdout=subprocess.PIPE,
        )
        self.addCleanup(other.stdout.close)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        return other

    def read_until(self, process, pattern):
        seen, end = "", time.monotonic() + LIMIT_S
        while not re.search(pattern, seen):
            ready = select.select([process.stdout], [], [], max(0, end - time.monotonic()))[0]
            self.assertTrue(ready, seen)
            piece = os.read(process.stdout.fileno(), 4096).decode("utf-8", "replace")
            self.assertTrue(piece, seen)
            seen += piece
        return seen


class Messages(OutsideCase):
    settings = {"outside": "message", "outside-after": "0", "outside-text": TEXT}

    def queued(self):
        with sqlite3.connect(os.path.join(self.state, "messages.db"), timeout=LIMIT_S) as db:
            return db.execute("SELECT count(*) FROM messages").fetchone()[0]

    def check_one_message(self):
        """The terminal may have it before this test has read the log."""
        self.wait_log("its user gets a message")
        messages = [line for line in self.log if "its user gets a message" in line]
        self.assertEqual(len(messages), 1, messages)

    def test_the_user_reads_it_on_its_terminal_once(self):
        other = self.train_outside()
        seen = self.read_until(other, r"ada@example\.org\.\r+\n")
        self.assertRegex(seen, r"\aMessage from colloc:\r+\n")
        self.assertRegex(seen, r"your process colloc-pretend\S* \(pid \d+\) uses GPU 0 of \S+ ")
        self.assertIn(TEXT, seen)
        self.check_one_message()
        until(lambda: self.queued() == 0, "the end of the delivery")
        self.assertEqual([line for line in self.log if "was not delivered" in line], [])

    def test_a_task_is_not_outside(self):
        train = os.path.join(os.path.dirname(program("emulator")), "colloc-pretend-train")
        task = self.submit(f"exec {train} --memory-mib=1000 --seconds=1e6")
        self.wait_gpu(lambda gpu: [one["id"] for one in gpu["tasks"]] == [task])
        other = self.train_outside()
        self.read_until(other, r"ada@example\.org\.\r+\n")
        self.check_one_message()


class Shown(OutsideCase):
    """The setting's default: nothing is sent, nothing is closed."""

    settings = {"outside-after": "0"}

    def test_it_is_listed_only(self):
        self.train_outside()
        self.wait_gpu(lambda gpu: gpu["foreign_processes"])
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 900)
        self.assertEqual([line for line in self.log if "outside" in line], [])


class Limit(OutsideCase):
    """Device files of NVIDIA's numbers without a driver: ENXIO says that opening was allowed."""

    settings = {"outside": "limit", "outside-users": pwd.getpwuid(LISTED).pw_name}

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or os.path.exists("/dev/nvidiactl"):
            self.skipTest("needs root, and a machine without NVIDIA's driver")
        self.cgroup = self.make_cgroup()
        until(lambda: "outside: limit:" in "\n".join(self.log), "the filter")
        failed = [line for line in self.log if "GPUs stay open" in line]
        if failed:
            self.skipTest(failed[0])
        self.gpu = os.path.join(self.work, "nvidia0")
        os.mknod(self.gpu, 0o20666, os.makedev(195, 0))
        os.chmod(self.gpu, 0o666)
        subprocess.run(["chmod", "-R", "a+rX", self.folder], check=True)

    def make_cgroup(self):
        """A cgroup beside that of the daemon, as a login has one."""
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mount = next(line.split()[4] for line in file if " - cgroup2 " in line)
        path = os.path.join(mount, f"outside-login-{os.getpid()}")
        os.mkdir(path)
        self.addCleanup(lambda: until(lambda: self.removed(path), "an empty cgroup"))
        return path

    @staticmethod
    def removed(path):
        try:
            os.rmdir(path)
        except FileNotFoundError:
            pass
        except OSError:
            return False
        return True

    def open_as(self, uid):
        """What a process of the user outside of tasks gets from opening the GPU."""
        script = (
            "import os,sys\n"
            "open(sys.argv[1] + '/cgroup.procs', 'w').write('0')\n"
            "uid = int(sys.argv[2]); os.setresuid(uid, uid, uid)\n"
            "try: os.open(sys.argv[3], os.O_RDONLY)\n"
            "except OSError as error: print(os.strerror(error.errno))\n"
        )
        command = [sys.executable, "-c", script, self.cgroup, str(uid), self.gpu]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def test_persons_are_refused_and_tasks_are_not(self):
        until(lambda: self.open_as(A_PERSON) == "Operation not permitted", "the filter")
        self.assertEqual(self.open_as(0), "No such device or address")
        self.assertEqual(self.open_as(LISTED), "No such device or address")  # a listed user
        task = self.submit(f"(exec <{self.gpu}) 2>&1 | grep -o 'No such.*\\|Operation.*'")
        self.wait(task, "COMPLETED")
        self.assertEqual(self.output(task).strip(), "No such device or address")

    def test_helpers_of_the_daemon_are_not_refused(self):
        """colloc-cudnn is no task, and not root's: here a script is in its place."""
        opened = os.path.join(self.work, "opened")
        os.mkdir(opened, 0o777)
        os.chmod(opened, 0o777)
        script = self.write(
            "asking",
            f"#!/bin/sh\nexec setpriv --reuid={A_PERSON} --regid={A_PERSON} --clear-groups "
            f"sh -c '(exec <{self.gpu}) 2>{opened}/said'\n",
        )
        os.chmod(script, 0o755)
        until(lambda: self.open_as(A_PERSON) == "Operation not permitted", "the filter")
        self.restart(cudnn_program=script)
        until(lambda: self.open_as(A_PERSON) == "Operation not permitted", "the filter")

        def ask():  # once the GPU has a sample
            self.submit("true", summary={"name": "net.json", "text": export()})
            return os.path.exists(f"{opened}/said")

        until(ask, "the script")
        with open(f"{opened}/said", encoding="utf-8") as file:
            self.assertIn("No such device or address", file.read())

    def test_it_goes_with_suspension_and_ends_with_the_daemon(self):
        until(lambda: self.open_as(A_PERSON) == "Operation not permitted", "the filter")
        self.assertNotIn("suspend: no", "\n".join(self.log))
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        until(lambda: self.open_as(A_PERSON) == "No such device or address", "its end")
        self.start()
        until(lambda: self.open_as(A_PERSON) == "Operation not permitted", "the filter")


if __name__ == "__main__":
    unittest.main()
