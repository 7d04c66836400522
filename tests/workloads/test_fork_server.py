# SPDX-License-Identifier: Apache-2.0
"""workloads/fork_server.py: a script in a fork of the server is as if `run` ran it."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FORK_SERVER = os.path.join(HERE, "..", "..", "workloads", "fork_server.py")
LIMIT_S = 60
SCRIPT = """
import os, signal, sys, time
way = sys.argv[1]
print(way, os.environ.get("FRUIT"), os.getcwd(), "json" in sys.modules, os.getpid(), flush=True)
if way == "fail":
    raise ValueError("a mistake")
if way == "exit":
    sys.exit(7)
if way == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if way == "wait":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    print("waits", flush=True)
    time.sleep(1000)
"""


class ForkServer(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.socket = os.path.join(self.folder, "s")
        self.script = os.path.join(self.folder, "script.py")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        self.server = subprocess.Popen(
            [sys.executable, FORK_SERVER, "serve", self.socket, "json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.end)
        self.assertEqual(self.server.stdout.readline(), "ready\n")

    def end(self):
        self.server.kill()
        self.server.communicate(timeout=LIMIT_S)

    def start(self, way, **environment):
        return subprocess.Popen(
            [sys.executable, "-I", "-S", FORK_SERVER, "run", self.socket, self.script, way],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **environment},
        )

    def run_way(self, way, **environment):
        client = self.start(way, **environment)
        out, err = client.communicate(timeout=LIMIT_S)
        return client.returncode, out.split(), err

    def test_arguments_environment_folder_and_libraries(self):
        code, out, err = self.run_way("plain", FRUIT="pear")
        self.assertEqual((code, out[:4], err), (0, ["plain", "pear", self.folder, "True"], ""))

    def test_it_ends_as_the_script_ends(self):
        self.assertEqual(self.run_way("exit")[0], 7)
        self.assertEqual(self.run_way("kill")[0], -signal.SIGKILL)
        code, _, err = self.run_way("fail")
        self.assertEqual(code, 1)
        self.assertIn("ValueError: a mistake", err)

    def test_a_signal_reaches_the_script(self):
        client = self.start("wait")
        self.assertIn("wait", client.stdout.readline())
        self.assertEqual(client.stdout.readline(), "waits\n")
        client.send_signal(signal.SIGTERM)
        client.communicate(timeout=LIMIT_S)
        self.assertEqual(client.returncode, 3)

    def test_the_script_dies_with_the_one_that_runs_it(self):
        client = self.start("wait")
        pid = int(client.stdout.readline().split()[4])
        client.kill()
        client.communicate(timeout=LIMIT_S)  # ends when the script has closed its streams
        end = time.monotonic() + LIMIT_S
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
            time.sleep(0.01)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_a_broken_request_is_dropped(self):
        import socket

        for text in (b"", b"x", b"\xff\xff\xff\xff{}"):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(self.socket)
                connection.sendall(text)
        self.assertEqual(self.run_way("plain")[0], 0)

    def test_without_a_server(self):
        self.end()
        code, _, err = self.run_way("plain")
        self.assertNotEqual(code, 0)
        self.assertIn("refused", err)


if __name__ == "__main__":
    unittest.main()
