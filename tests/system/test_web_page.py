# SPDX-License-Identifier: Apache-2.0
"""The web page in Chromium, against a real daemon over emulated GPUs.

Skipped where there is no node, Chromium or playwright-core (in web/node_modules, or from the npm
registry).
"""

import atexit
import functools
import gzip
import json
import os
import shutil
import subprocess
import tempfile
import unittest

from daemon_case import LIMIT_S, DaemonCase, program, until

HERE = os.path.dirname(os.path.abspath(__file__))
WEB = os.path.join(HERE, "..", "..", "web")
INSTALLS_MAX = 3  # a registry may be away for a moment
CHECK_MAX_S = 5 * LIMIT_S  # for a check of many steps, of which each may take LIMIT_S


def succeeds(command):
    """Does the command end well, in time? What it says otherwise goes to the test's output."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        print(expired, flush=True)
        return False
    if done.returncode:
        print(done.stderr[-3000:], flush=True)
    return done.returncode == 0


@functools.lru_cache()
def playwright():
    """The path of playwright-core's module; None where it cannot be had."""
    place = os.path.join("node_modules", "playwright-core", "index.mjs")
    if os.path.exists(os.path.join(WEB, place)):
        return os.path.abspath(os.path.join(WEB, place))
    if not shutil.which("npm"):
        return None
    folder = tempfile.mkdtemp(prefix="colloc-web-")
    atexit.register(shutil.rmtree, folder)
    with open(os.path.join(WEB, "package.json"), encoding="utf-8") as file:
        version = json.load(file)["devDependencies"]["playwright-core"]
    # Not `npm ci`: it refuses a lock file that lacks the packages of other platforms.
    command = "npm install --ignore-scripts --no-audit --no-fund --prefer-offline --prefix".split()
    # A registry that does not answer is given up in 10 s, not in 70.
    command += [folder, f"playwright-core@{version}", "--fetch-retry-maxtimeout=10000"]
    is_there = any(succeeds(command) for _ in range(INSTALLS_MAX))
    return os.path.join(folder, place) if is_there else None


def chromium():
    return shutil.which("chromium") or shutil.which("google-chrome")


def why_not():
    if not shutil.which("node") or not chromium():
        return "no node or no Chromium here"
    return None if playwright() else "playwright-core is not there and cannot be installed"


class WebPage(DaemonCase):
    settings = {"web": "127.0.0.1:0"}

    def setUp(self):
        if why_not():
            self.skipTest(why_not())
        super().setUp()

    def browser(self, check, **given):
        url = self.colloc("web", "--print-url").stdout.strip()
        process = subprocess.Popen(
            [
                "node",
                os.path.join(HERE, "web_page.mjs"),
                playwright(),
                chromium(),
                check,
                json.dumps({"url": url, **given}),
            ],
            env={**self.env, "HOME": self.folder},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(process.kill)
        return process

    def finish(self, process):
        try:
            out, words = process.communicate(timeout=CHECK_MAX_S)
        except subprocess.TimeoutExpired:
            process.kill()
            _, words = process.communicate()
            words += f"\nhas not ended within {CHECK_MAX_S} s"
        log = "\n".join(self.log[-30:])
        self.assertEqual(process.returncode, 0, f"{words[-20000:]}\nthe daemon's log:\n{log}")
        return out

    def await_line(self, process, line):
        found = process.stdout.readline().strip()
        if found != line:
            self.finish(process)  # says what went wrong
        self.assertEqual(found, line)

    def answer(self, process, reply):
        process.stdin.write(f"{reply}\n")
        process.stdin.flush()


TRAININGS = (  # name, MiB
    ("resnet50.sh", 9000),
    ("bert-base.sh", 11500),
    ("vit-b16.sh", 14000),
    ("gpt2.sh", 16500),
)


class Pages(WebPage):
    gpus = "2xA100-40GB"
    speed = 20

    def test_pages(self):
        # Long enough for several samples, also on a busy machine: the report has its ledger.
        self.wait(self.train(mib=3000, seconds=80, name="lenet.sh"), "COMPLETED")
        running = [
            self.train(mib=mib, seconds=1e6, memory_mib=mib, name=name) for name, mib in TRAININGS
        ]
        # All have their memory, wherever they are: so the next one is the one that crashes.
        wanted = sum(mib for _, mib in TRAININGS)
        until(
            lambda: sum(gpu["mem_used_mib"] or 0 for gpu in self.get("/v1/gpus")["gpus"]) >= wanted,
            "the trainings' memory",
        )
        crashed = self.train(mib=30000, seconds=1e6, memory_mib=12000, name="llama-7b.sh")
        for _ in range(3):
            self.submit("true", gpus=2, exclusive=True, name="ddp.sh")
        until(lambda: self.task(crashed)["oom_count"], "a GPU memory crash")
        self.finish(self.browser("pages", task=running[0], crashed=crashed))

    def test_history(self):
        array = self.submit("true", hold=True, array="1-250")
        self.act("cancel", array)
        self.wait(array + 250)
        failed = self.submit("echo 'ValueError: bad shape' >&2; exit 3")
        self.wait(failed, "FAILED")
        self.finish(self.browser("history", task=array, crashed=failed))

    def test_refused(self):
        self.finish(self.browser("refused"))

    def test_session(self):
        self.finish(self.browser("session"))


class Gpus(WebPage):
    gpus = "2xA100-40GB"
    speed = 20
    settings = {**WebPage.settings, "unused-after": "2s"}

    def test_gpus(self):
        trained = self.train(mib=9000, seconds=1e6, memory_mib=9000, name="resnet50.sh")
        self.wait_gpu(lambda g: (g["mem_used_mib"] or 0) > 8900)
        forgotten = self.submit("sleep 1000", memory_mib=1000, name="forgotten.sh")
        external = subprocess.Popen(
            [
                os.path.join(os.path.dirname(program("emulator")), "colloc-pretend-train"),
                "--memory-mib=5000",
                "--seconds=1e6",
                "--ramp-seconds=1",
            ],
            env=self.env,
            stdout=subprocess.DEVNULL,
        )
        self.addCleanup(external.wait)
        self.addCleanup(external.kill)
        for task in (trained, forgotten):
            self.wait_state(task, "RUNNING")
        self.wait_gpu(lambda g: g["foreign_processes"] and (g["mem_used_mib"] or 0) > 13000)
        self.finish(self.browser("gpus", pid=external.pid))


class Mig(WebPage):
    gpus = "A100-40GB:3g.20gb+2g.10gb"
    speed = 20

    def test_mig(self):
        self.train(mib=9000, seconds=1e6, memory_mib=9000, name="resnet50.sh")
        self.wait_gpu(lambda g: (g["mem_used_mib"] or 0) > 8900)
        self.finish(self.browser("mig"))


class Many(WebPage):
    gpus = "1xA100-40GB"

    def test_ten_thousand_tasks(self):
        self.submit("true", hold=True, array="1-10000")
        self.finish(self.browser("many"))


class Busy(WebPage):
    gpus = "1xA100-40GB"
    speed = 20

    def test_busy(self):
        task = self.train(mib=3000, seconds=1e6)
        self.wait_state(task, "RUNNING")
        self.finish(self.browser("busy", task=task))


class Live(WebPage):
    gpus = "1xA100-40GB"

    def test_live(self):
        process = self.browser("live")
        self.await_line(process, "shown")
        task = self.submit("true", hold=True)
        self.answer(process, task)
        self.await_line(process, "appeared")
        self.act("release", task)
        self.answer(process, "")
        self.assertIn("left", self.finish(process))


class Waiting(WebPage):
    gpus = "1xA100-40GB"

    def test_waiting(self):
        first = self.submit("exec sleep 1000", time_limit_s=3600, exclusive=True)
        self.wait_state(first, "RUNNING")
        waiting = self.submit("true", exclusive=True)
        process = self.browser("waiting", task=waiting)
        self.await_line(process, "shown")
        self.submit("true", exclusive=True, priority="high")
        self.answer(process, "")
        self.finish(process)


class Bundle(unittest.TestCase):
    def test_size(self):
        """Under 60 kB as it would travel compressed."""
        dist = os.path.join(WEB, "dist")
        size = 0
        for name in os.listdir(dist):
            with open(os.path.join(dist, name), "rb") as file:
                size += len(gzip.compress(file.read(), 9))
        self.assertLess(size, 60000)


if __name__ == "__main__":
    unittest.main()
