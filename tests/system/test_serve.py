# SPDX-License-Identifier: Apache-2.0
"""`colloc serve`: finds collocd where colloc was built; `--emulate` brings GPUs.

scripts/try uses it.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from daemon_case import BUILD, LIMIT_S, processes_with, program, read, until

TRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "try")


class Serve(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="colloc-serve-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.socket, self.state = os.path.join(self.folder, "s"), os.path.join(self.folder, "state")
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)
        self.env = {
            **{
                key: value
                for key, value in os.environ.items()
                if not key.startswith("COLLOC_") or key == "COLLOC_BUILD"
            },
            "TMPDIR": self.temporary,
        }

    def serve(self, *options, before=(), **env):
        log = open(os.path.join(self.folder, "log"), "wb")
        with log:
            process = subprocess.Popen(
                [program("colloc"), *before, "serve", *options],
                env={**self.env, **env},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        self.addCleanup(self.end, process)
        until(lambda: process.poll() is not None or "listening on" in self.log(), "listening")
        return process

    def log(self):
        return read(os.path.join(self.folder, "log"))

    def end(self, process, how=signal.SIGTERM):
        if process.poll() is None:
            process.send_signal(how)
        return process.wait(LIMIT_S)

    def colloc(self, *arguments, code=0, **env):
        done = subprocess.run(
            [program("colloc"), *arguments],
            env={**self.env, **env},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr + self.log())
        return done.stdout

    def test_pretend_gpus_from_one_command(self):
        process = self.serve(
            "--emulate=4xA100-40GB",
            f"--socket={self.socket}",
            f"--state-dir={self.state}",
            "--sharing=streams",
        )
        self.assertIsNone(process.poll(), self.log())
        self.assertEqual(self.colloc("--socket=" + self.socket, "gpus").count("A100-SXM4-40GB"), 4)
        self.assertIn("A100", self.colloc("gpus", COLLOC_SOCKET=self.socket))
        train = os.path.join(os.path.dirname(program("emulator")), "colloc-pretend-train")
        at = ["--socket=" + self.socket]
        self.colloc(*at, "submit", "--wait", "--", train, "--memory-mib=2000", "--seconds=1")
        self.assertIn("COMPLETED", self.colloc(*at, "history"))
        self.colloc(*at, "submit", "--", train, "--memory-mib=2000", "--seconds=100000")
        until(lambda: "RUNNING" in self.colloc(*at, "queue"), "the start")
        until(lambda: re.search(r"Memory now +[1-9]", self.colloc(*at, "show", "2")), "memory")
        self.assertIn("SUSPENDED", self.colloc(*at, "suspend", "2"))
        self.assertIn("RUNNING", self.colloc(*at, "resume", "2"))
        process.send_signal(signal.SIGHUP)
        until(lambda: "nothing has changed" in self.log(), "the reload")
        self.assertEqual(self.end(process), 0, self.log())
        until(lambda: not processes_with(self.folder), "the end of all processes")
        self.assertEqual(os.listdir(self.temporary), [])

    def test_an_interrupt_and_several_kinds(self):
        process = self.serve(
            "--emulate",
            "1xH200,2xA100-80GB",
            f"--state-dir={self.state}",
            before=["--socket", self.socket],
        )
        self.assertEqual(
            self.colloc("--socket=" + self.socket, "gpus", "--json").count('"uuid"'), 3
        )
        self.assertEqual(self.end(process, signal.SIGINT), 0)
        self.assertEqual(os.listdir(self.temporary), [])

    def test_bad_lists_are_said(self):
        for gpus, words in (
            ("4xFoo", "Foo: unknown GPU; known: A100-40GB"),
            ("0xA100-40GB", "1 to 64"),
            ("9999xA100-40GB", "1 to 64"),
            ("", "known: A100-40GB"),
        ):
            process = self.serve(
                "--emulate=" + gpus, f"--socket={self.socket}", f"--state-dir={self.state}"
            )
            self.assertEqual(process.wait(LIMIT_S), 2)
            self.assertIn(words, self.log())
        self.assertEqual(os.listdir(self.temporary), [])

    def test_a_daemon_that_cannot_start_is_its_exit_status(self):
        process = self.serve("--emulate=1xH200", f"--socket={self.socket}", "--margin=x")
        self.assertEqual(process.wait(LIMIT_S), 2)
        self.assertIn("margin: ", self.log())
        self.assertEqual(os.listdir(self.temporary), [])

    def test_a_shell_with_gpus(self):
        words = (
            "colloc gpus\n"
            "colloc submit --wait -- colloc-pretend-train --memory-mib=2000 --seconds=1\n"
            "colloc submit -- sleep 1000\ncolloc history\ncolloc record -- true\n"
            "colloc submit -- colloc-pretend-train --memory-mib=2000 --seconds=100000 "
            "--ramp-seconds=0\n"
            "while ! colloc show 3 | grep -q 'Memory now *[1-9]'; do sleep 0.05; done\n"
            "colloc suspend 3 && colloc resume 3 && colloc move --gpu=3 3 && echo all well\n"
            "exit 7\n"
        )
        done = subprocess.run(
            [TRY],
            env={**self.env, "BUILD": BUILD},
            cwd=self.folder,
            input=words,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("A100-SXM4-40GB"), 4, done.stdout)
        self.assertIn("COMPLETED", done.stdout)
        self.assertIn("all well", done.stdout, done.stderr)
        self.assertNotIn("no NVIDIA management library", done.stdout + done.stderr)
        self.assertIn("colloc submit -- colloc-pretend-train", done.stdout.splitlines()[1])
        until(lambda: not processes_with(self.temporary), "the end of all processes")
        self.assertEqual(os.listdir(self.temporary), [])


if __name__ == "__main__":
    unittest.main()
