# SPDX-License-Identifier: Apache-2.0
"""`colloc run`, `shell` and `attach`: tasks at a terminal, which is a pty of this test."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from daemon_case import LIMIT_S, DaemonCase, program, until

CTRL_C, DETACH = b"\x03", b"\x1dd"
TASK = 1  # the first one of a daemon


class Terminal:
    """A program in a terminal: what it printed so far is `seen`."""

    def __init__(self, command, rows=30, columns=100, **options):
        self.fd, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            **options,
        )
        self.slave = slave
        self.seen = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, limit_s):
        if not select.select([self.fd], [], [], limit_s)[0]:
            return False
        try:
            self.seen += os.read(self.fd, 65536)
        except OSError:
            return False
        return True

    def until(self, pattern):
        end = time.monotonic() + LIMIT_S
        while True:
            found = re.search(pattern.encode(), self.seen)
            if found:
                self.seen = self.seen[found.end() :]
                return found
            has_ended = self.process.poll() is not None  # before the look: nothing comes later
            if not self.read(1) and has_ended or time.monotonic() > end:
                raise AssertionError(f"no {pattern!r} in {self.seen.decode(errors='replace')}")

    def read_all(self):
        """Reads until the program has ended and all that it printed is seen."""
        has_ended = False
        while self.read(0.1) or not has_ended:
            has_ended = self.process.poll() is not None

    def type(self, keys):
        os.write(self.fd, keys if isinstance(keys, bytes) else keys.encode())

    def wait(self):
        """The exit status."""
        end = time.monotonic() + LIMIT_S
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        return self.process.wait(1)

    def is_as_before(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.fd)
        os.close(self.slave)


class Interactive(DaemonCase):
    gpus = "1xA100-40GB"

    def terminal(self, *words, **options):
        terminal = Terminal(
            [program("colloc"), *words],
            env={**self.env, "PS1": "ready> ", "SHELL": "/bin/sh", "TERM": "xterm"},
            cwd=self.work,
            **options,
        )
        self.addCleanup(terminal.close)
        return terminal


class Run(Interactive):
    def test_output_and_exit_status_are_the_commands(self):
        words = "echo to stdout; echo to stderr >&2; exit 7"
        done = self.colloc("run", "--error=e.txt", "--", "sh", "-c", words, code=7)
        self.assertEqual(done.stdout, "to stdout\n")
        self.assertRegex(done.stderr, r"^to stderr\ncolloc: task 1 FAILED")
        self.assertEqual(self.colloc("run", "true").stdout, "")

    def test_it_says_why_it_waits(self):
        blocker = self.submit("exec sleep 1000", exclusive=True)
        self.wait_state(blocker, "RUNNING")
        terminal = self.terminal("run", "echo", "now")
        terminal.until(r"task 2 waits \(Resources\): GPU 0: ")
        self.act("cancel", blocker)
        terminal.until("now")
        self.assertEqual(terminal.wait(), 0)

    def test_an_interrupt_cancels_it_wherever_it_is(self):
        running = self.terminal("run", "--exclusive", "sh", "-c", "echo here; exec sleep 1000")
        running.until("here")
        waiting = self.terminal("run", "true")
        waiting.until("task 2 waits")
        for terminal, task in (waiting, 2), (running, 1):
            terminal.type(CTRL_C)
            terminal.until("is cancelled")
            self.assertEqual(terminal.wait(), 130)
            self.wait(task, "CANCELLED")

    def test_what_cannot_run_is_said(self):
        self.assertIn("no-such-program", self.colloc("run", "no-such-program", code=2).stderr)
        self.assertIn("no terminal", self.colloc("run", "--pty", "true", code=2).stderr)
        self.assertIn("no terminal", self.colloc("shell", code=2).stderr)
        task = self.submit("exec sleep 1000")
        terminal = self.terminal("attach", str(task))
        terminal.until("only tasks of")
        self.assertEqual(terminal.wait(), 1)


class Jupyter(Interactive):
    def pretend(self, script):
        """Puts a program jupyter-lab on PATH."""
        path = self.write("jupyter-lab", "#!/bin/sh\n" + script + "\n")
        os.chmod(path, 0o755)
        return {"PATH": f"{self.work}:{self.env['PATH']}"}

    def test_its_address_has_a_token_that_only_its_user_can_read(self):
        path = self.pretend(
            'echo "$JUPYTER_TOKEN" > token; echo "$@" > arguments; umask > mask\n'
            'echo "[I] http://127.0.0.1:8899/lab?token=..." >&2; exec sleep 1000'
        )
        done = self.colloc("jupyter", "--idle=2h", "--", "--notebook-dir=x", **path)
        token = self.wait_file("token").strip()
        self.assertRegex(token, "^[0-9a-f]{32}$")
        self.assertTrue(done.stdout.startswith(f"http://127.0.0.1:8899/?token={token}\n"))
        self.assertIn("ssh -L 8899:127.0.0.1:8899 ", done.stdout)
        self.assertEqual(os.stat(os.path.join(self.work, "colloc-1.out")).st_mode & 0o777, 0o600)
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(int(self.wait_file("mask"), 8), mask)
        arguments = self.wait_file("arguments")
        self.assertIn("--ServerApp.shutdown_no_activity_timeout=7200 ", arguments)
        self.assertTrue(arguments.endswith(" --notebook-dir=x\n"))
        self.assertEqual(self.task(TASK)["state"], "RUNNING")

    def test_without_jupyter_it_says_what_to_do(self):
        done = self.colloc("jupyter", code=2, PATH="/nowhere")
        self.assertIn("neither jupyter-lab nor jupyter-notebook is on PATH", done.stderr)

    def test_one_that_does_not_start_is_said(self):
        path = self.pretend("echo no module named tornado >&2; exit 4")
        done = self.colloc("jupyter", code=4, **path)
        self.assertIn("no module named tornado", done.stdout)


class Shell(Interactive):
    def open_shell(self, *words):
        terminal = self.terminal("shell", *words)
        terminal.until("ready> ")
        return terminal

    def test_a_session(self):
        terminal = self.open_shell()
        terminal.type("tty; stty size; echo on GPU $CUDA_VISIBLE_DEVICES\r")
        terminal.until(r"/dev/pts/\d+")
        terminal.until("30 100")
        terminal.until("on GPU 0")
        terminal.until("ready> ")
        terminal.resize(40, 120)
        until(lambda: self.size_seen(terminal) == "40 120", "the new size")
        terminal.type("sleep 1000\r")
        until(lambda: "sleep" in self.programs(), "the program in the shell")
        terminal.type(CTRL_C)
        terminal.until("ready> ")
        terminal.type("exit 5\r")
        self.assertEqual(terminal.wait(), 5)
        self.assertTrue(terminal.is_as_before())
        task = self.wait(TASK, "FAILED")
        self.assertEqual((task["exit_code"], task["name"]), (5, "sh"))
        self.assertIn("on GPU 0", self.output(task["id"]))

    def size_seen(self, terminal):
        """What the command takes for the size of its terminal."""
        terminal.type("stty size\r")
        size = terminal.until(r"\n(\d+ \d+)\r").group(1).decode()
        terminal.until("ready> ")
        return size

    def programs(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if f"COLLOC_TASK_ID={TASK}\0".encode() not in file.read():
                        continue
                with open(f"/proc/{pid}/comm") as file:
                    found.append(file.read().strip())
            except OSError:
                pass
        return found

    def test_left_and_returned_to(self):
        terminal = self.open_shell()
        terminal.type("kept=42\r")
        terminal.until("ready> ")
        terminal.type(DETACH)
        terminal.until("left task")
        self.assertEqual(terminal.wait(), 0)
        self.assertTrue(terminal.is_as_before())
        again = self.terminal("attach", str(TASK))
        again.until("kept=42")  # what was on the screen before
        again.type("echo kept is $kept\r")
        again.until("kept is 42")
        third = self.terminal("attach", str(TASK))
        again.until("another terminal has attached")
        self.assertEqual(again.wait(), 1)
        third.type("exit\r")
        self.assertEqual(third.wait(), 0)
        self.wait(TASK, "COMPLETED")

    def test_a_lost_terminal_ends_it_after_a_time(self):
        terminal = self.open_shell("--keep=1s")
        terminal.process.kill()
        self.wait(TASK)
        self.assertIn("no terminal was attached for 1 s", self.output(TASK))

    def test_a_lost_terminal_may_return(self):
        terminal = self.open_shell("--keep=0s")
        terminal.type("echo $((6*7))\r")
        terminal.until("\n42")
        terminal.process.kill()
        again = self.terminal("attach", str(TASK))
        again.until("\n42")
        again.type("exit 3\r")
        self.assertEqual(again.wait(), 3)

    def test_cancelled_by_others(self):
        terminal = self.open_shell()
        self.act("cancel", TASK)
        self.assertEqual(terminal.wait(), 130)
        self.assertTrue(terminal.is_as_before())
        self.wait(TASK, "CANCELLED")

    def test_it_outlives_the_daemon(self):
        terminal = self.open_shell()
        self.restart(how=signal.SIGKILL)
        terminal.type("echo $((6*7))\r")
        terminal.until("\n42")
        terminal.type("exit 4\r")
        self.assertEqual(terminal.wait(), 4)

    def test_a_signal_is_the_tasks(self):
        terminal = self.terminal("run", "--pty", "--", "sh", "-c", "kill -9 $$")
        self.assertEqual(terminal.wait(), 137)
        self.assertEqual(self.wait_killed(TASK)["signal"], 9)

    def test_a_short_command_is_seen_before_it_is_gone(self):
        for i in range(3):
            terminal = self.terminal("run", "--pty", "--", "echo", f"word {i}")
            terminal.until(f"word {i}")
            self.assertEqual(terminal.wait(), 0)

    def test_much_output_and_input(self):
        lines = 20000
        terminal = self.terminal("run", "--pty", "--", "seq", str(lines))
        terminal.read_all()
        self.assertEqual(
            [int(line) for line in terminal.seen.split(b"\r\n") if line.isdigit()],
            list(range(1, lines + 1)),
        )
        keys = b"".join(b"%063d\r" % i for i in range(400))
        program_text = (
            "import sys, tty; tty.setraw(0); print('go', flush=True)\n"
            f"data = sys.stdin.buffer.read({len(keys)}); print(hash(data) == hash({keys!r}))"
        )
        self.write("reads.py", program_text)
        terminal = self.terminal("run", "--pty", "--", "python3", "reads.py")
        terminal.until("go")
        for i in range(0, len(keys), 1000):
            terminal.type(keys[i : i + 1000])
        terminal.until("True")
        self.assertEqual(terminal.wait(), 0)

    def test_another_user_has_no_way_in(self):
        if os.geteuid() != 0:
            self.skipTest("needs another user")
        self.open_shell()
        with open("/proc/net/unix") as file:
            name = re.search(r"@(colloc-terminal-[0-9a-f]{32})", file.read()).group(1)
        probe = (
            "import os, socket; os.setuid(65534)\n"
            "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
            f"s.connect('\\0{name}')\n"
            "try: s.send(b'dtouch taken\\r')\n"
            "except OSError: pass\n"
            "print(s.recv(100))"
        )
        done = subprocess.run(["python3", "-c", probe], capture_output=True, timeout=LIMIT_S)
        self.assertNotIn(b"ready", done.stdout)
        self.assertFalse(os.path.exists(os.path.join(self.work, "taken")))


if __name__ == "__main__":
    unittest.main()
