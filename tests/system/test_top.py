# SPDX-License-Identifier: Apache-2.0
"""`colloc top` in a terminal emulator: its screen, its keys, and the terminal after it."""

import os
import re
import shutil
import signal
import subprocess
import unittest

from daemon_case import (
    LIMIT_S,
    DaemonCase,
    at_least,
    processes_with,
    program,
    read,
    until,
    words_of,
)


@unittest.skipUnless(shutil.which("tmux"), "needs tmux")
class Top(DaemonCase):
    gpus = "4xA100-40GB"

    def setUp(self):
        super().setUp()
        self.servers = 0

    def tmux(self, *arguments):
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", self.server(), *arguments],
            env={**self.env, "TERM": "xterm"},
            cwd=self.work,
            text=True,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def server(self):
        return os.path.join(self.folder, f"tmux{self.servers}")

    def open(self, columns=80, rows=24, command="colloc top --interval=100ms"):
        """A shell that runs the command between two looks at its terminal, and then waits."""
        self.servers += 1
        command = command.replace("colloc top", program("colloc") + " top")
        self.tmux(
            "-u",
            "new-session",
            "-d",
            "-x",
            str(columns),
            "-y",
            str(rows),
            f"stty -g >before; {command}; echo $? >status; stty -g >after; echo over; cat",
        )

    def screen(self):
        return self.tmux("capture-pane", "-p").split("\n")[:-1]

    def text(self):
        return "\n".join(self.screen())

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def wait_text(self, *words):
        try:
            return until(
                lambda: next((t for t in [self.text()] if all(w in t for w in words)), None)
            )
        except AssertionError:
            self.fail(f"no {words} in:\n{self.text()}")

    def wait_line(self, start, pattern=""):
        return until(
            lambda: next(
                (
                    line
                    for line in self.screen()
                    if line.startswith(start) and re.search(pattern, line)
                ),
                None,
            ),
            f"a line {start}{pattern}",
        )

    def wait_last_line(self, rows, line):
        def is_last():
            screen = self.screen()
            return len(screen) == rows and screen[-1].rstrip() == line

        until(is_last, f"the last of {rows} lines to be '{line}'")

    def top_pid(self):
        return next(pid for pid in processes_with(self.folder) if words_of(pid)[1:2] == ["top"])

    def assert_restored(self):
        self.wait_text("over")
        self.assertEqual(self.read("before"), self.read("after"))
        self.assertEqual(
            self.tmux("display", "-p", "#{alternate_on} #{cursor_flag} #{wrap_flag}"), "0 1 1\n"
        )

    # ---- the picture ----

    def test_80_columns(self):
        task = self.train(20000, 1e6, "--smact=0.6", name="resnet50")
        gpu = int(self.wait_state(task, "RUNNING")["gpus"][0])
        self.wait_gpu(lambda g: at_least(g["mem_used_mib"], 19001) and g["smact"], gpu)
        self.open()
        self.wait_text("1 running, 0 waiting", "resnet50", "MEMORY", "SMACT", "q quit")
        self.wait_line(f"{gpu}   ", r"\[█+.*\] +\d+\.\d/40\.0G \[█+.*\] +(5|6)\d% .*[▄▅▆] .* W$")
        idle = self.wait_line(f"{(gpu + 1) % 4}   ", r"\] +0% .*▁.* W$")
        self.assertNotIn("█", idle)
        self.wait_line(f"     {task} ", r" RUNNING .* GiB +(5|6)\d% \d$")
        screen = self.screen()
        self.assertEqual(len(screen), 24)
        self.assertTrue(all(len(line) <= 80 for line in screen), screen)
        self.assertTrue(screen[-1].startswith("q quit"))
        self.keys("q")
        self.assert_restored()
        self.assertEqual(self.read("status"), "0\n")

    def test_80_columns_have_the_reason_of_a_waiting_task(self):
        for _ in range(4):
            self.wait_state(self.train(20000, 1e6, exclusive=True), "RUNNING")
        task = self.submit("sleep 1000")
        self.open()
        reason = self.task(task)["reason_text"]
        self.assertGreater(len(reason), 40)
        self.wait_line(f"     {task} ", r" PENDING .*\(Resources\) GPUs 0 to 3: ")
        line = self.wait_line(f"{task} waits: ")
        self.assertIn(line.split(": ", 1)[1].rstrip("… "), reason)
        self.assertGreater(len(line), min(len(reason), 66))
        self.assertTrue(self.screen()[-1].startswith("q quit"))
        self.keys("q")
        self.assert_restored()

    def test_60_columns(self):
        task = self.train(20000, 1e6, "--smact=0.6")
        self.wait_state(task, "RUNNING")
        self.open(60)
        self.wait_line("    ID ", r" MEMORY SMACT GPU")
        self.wait_line(f"     {task} ", r" GiB +(5|6)\d% \d$")

    def test_wide_narrow_and_resized(self):
        self.open(200, 50)
        self.wait_text("NAME", "TEMP", "A100")
        self.assertEqual(len(self.wait_line("0   ").rstrip()), 200)
        self.tmux("resize-window", "-x", "80", "-y", "24")
        until(lambda: len(self.wait_line("0   ").rstrip()) == 80)
        footer = "q quit  s sort: queue  / filter  c cancel  up/down select  Enter page"
        for columns, rows in ((20, 5), (40, 3), (3, 2), (40, 1), (1, 1), (200, 6), (200, 7)):
            self.tmux("resize-window", "-x", str(columns), "-y", str(rows))
            last = footer if columns > len(footer) else footer[: columns - 1] + "…"
            self.wait_last_line(rows, last)
        self.wait_text("TEMP", "q quit", "and")
        self.keys("q")
        self.assert_restored()

    def test_unknown_is_no_zero_and_lost_is_said(self):
        self.emulator("set", "0", "gpm=off", "memory=off")
        self.emulator("set", "1", "lost=on")
        self.wait_gpu(lambda gpu: gpu["health"] == "lost", 1)
        self.open()
        self.assertNotIn("%", self.wait_line("0   ", "·"))
        self.assertIn("lost", self.wait_line("1   "))
        self.keys("q")
        self.assert_restored()

    def test_without_utf8_or_with_odd_names(self):
        self.train(2000, 1e6, name="a\x1b[31mb-ü")
        self.open(command="LC_ALL=C colloc top")
        text = self.wait_text("q quit", "a?[31mb-")
        self.assertTrue(text.isascii(), text)
        self.keys("q")
        self.assert_restored()

    def test_recently_begins_with_what_the_daemon_has(self):
        self.restart(samples="200ms:1m")
        task = self.train(20000, 1e6, "--smact=0.6")
        gpu = int(self.wait_state(task, "RUNNING")["gpus"][0])

        def rows():
            column = self.get("/v1/samples?since_s=60")["columns"].index("smact")
            return [
                row
                for row in self.get("/v1/samples?since_s=60")["gpus"][gpu]["rows"]
                if (row[column] or 0) > 0.4
            ]

        until(lambda: len(rows()) >= 25)  # 5 s of work
        self.open(command="colloc top --interval=1s")
        self.wait_text("q quit")
        self.assertRegex(self.wait_line(f"{gpu}   "), r"% [^%]*[▄▅▆]{4,}")  # in the first picture
        self.keys("q")
        self.assert_restored()

    def test_external_processes_are_named(self):
        other = subprocess.Popen(
            [program("pretend-train"), "--memory-mib=9000", "--seconds=1e6"],
            env=self.env,
            stdout=subprocess.DEVNULL,
        )
        try:
            self.open(columns=120)
            self.wait_line("", rf"external \S+: .*pretend-train.*\(pid {other.pid}\)")
        finally:
            other.kill()
            other.wait()
        self.keys("q")
        self.assert_restored()

    # ---- keys ----

    def test_sort_filter_and_cancel(self):
        small, large = self.train(2000, 1e6, name="small"), self.train(9000, 1e6, name="large")
        for task in small, large:
            self.wait_state(task, "RUNNING")
        until(lambda: (self.task(large)["mem_used_mib"] or 0) > 8000)
        self.open()
        text = self.wait_text("small", "large", "sort: queue")
        self.assertLess(text.index("small"), text.index("large"))
        self.keys("s", "s")
        text = self.wait_text("sort: memory")
        self.assertLess(text.index("large"), text.index("small"))
        self.keys("/", "smal", "Enter")
        self.wait_text("filter: smal ")
        self.assertNotIn("large", self.text())
        self.keys("c")
        self.wait_text(f"cancel task {small}? y/n")
        self.keys("n")
        self.wait_text("q quit")
        self.assertEqual(self.task(small)["state"], "RUNNING")
        self.keys("c", "y")
        self.wait(small, "CANCELLED")
        self.wait_text("no matching task")
        self.keys("Escape")
        self.wait_text("large")
        self.keys("q")
        self.assert_restored()
        self.assertEqual(self.task(large)["state"], "RUNNING")

    def test_the_page_of_a_task(self):
        self.restart(sample_period="100ms")
        task = self.train(4000, 1e6, "--ramp-seconds=0 --smact=0.6", name="large", command="fit me")
        until(lambda: (self.task(task)["mem_used_mib"] or 0) >= 4000, "its memory")
        self.open(rows=16)
        self.wait_text("large", "Enter page")
        self.keys("Enter")
        self.wait_text(f"Task {task}  large, of ", "Command      fit me", "Escape back")
        self.assertNotIn("sort:", self.text())
        past = r"(?m)^GPU 0  memory .* to 3.9 GiB"  # it comes with the daemon's next batch
        until(lambda: self.keys("NPage") or re.search(past, self.text()), "its past")
        self.keys("Home", "j", "k", "Up")
        self.wait_text(f"Task {task}  large")
        self.colloc("cancel", str(task))
        self.wait_line("State ", "CANCELLED")
        self.keys("Escape")
        self.wait_text("sort: queue", "no tasks")
        self.keys("Enter")  # no task is selected
        self.wait_text("no tasks")
        self.keys("q")
        self.assert_restored()

    def test_many_tasks_scroll(self):
        ids = [self.submit(hold=True, name=f"held-{i}") for i in range(40)]
        self.open()
        self.wait_text("held-0 ")
        self.keys("End")
        self.wait_text("held-39")
        self.assertNotIn("held-0 ", self.text())
        self.keys("Home", "Down")
        self.wait_text("held-0 ")
        self.keys("c")
        self.wait_text(f"cancel task {ids[1]}?")
        self.keys("n", "q")
        self.assert_restored()

    # ---- ends ----

    def test_signals_leave_the_terminal_as_it_was(self):
        for name, status in (("INT", 130), ("TERM", 143), ("HUP", 129), ("SEGV", 139)):
            self.open()
            self.wait_text("q quit")
            os.kill(self.top_pid(), getattr(signal, "SIG" + name))
            self.assert_restored()
            self.assertEqual(self.read("status"), f"{status}\n")

    def test_stopped_and_continued(self):
        self.open()
        self.wait_text("q quit")
        pid = self.top_pid()
        os.kill(pid, signal.SIGTSTP)
        until(lambda: self.tmux("display", "-p", "#{alternate_on}") == "0\n")
        # It has left its screen, and stops next: a SIGCONT before that would do nothing.
        until(lambda: re.search(r"\) T ", read(f"/proc/{pid}/stat")), "its stop")
        os.kill(pid, signal.SIGCONT)
        self.wait_text("q quit")
        self.keys("q")
        self.assert_restored()

    def test_a_daemon_that_goes_and_comes_back(self):
        self.open()
        self.wait_text("q quit")
        self.stop()
        until(lambda: "q quit" not in self.text())
        self.assertIn("0   ", self.text())
        self.start()
        self.wait_text("q quit")
        self.keys("q")
        self.assert_restored()

    def test_not_on_a_terminal(self):
        done = self.colloc("top", code=2)
        self.assertIn("terminal", done.stderr)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
