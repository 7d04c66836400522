# SPDX-License-Identifier: Apache-2.0
"""Memory that NVML lists for a process that has ended, while a process forked from it lives."""

import json
import os
import signal
import subprocess
import sys
import unittest

from daemon_case import DaemonCase, program, read, until

# Opens the device, and forks a worker, whose number it prints.
PARENT = """
import os, signal, sys, time
device = open(sys.argv[1])
if os.fork() == 0:
    os.write(1, b"%d\\n" % os.getpid())
    while True:
        signal.pause()
while True:
    signal.pause()
"""

# Starts a process with the number argv[1] (clone3(2) with set_tid), which prints it and goes on.
AGAIN = """
import ctypes, os, signal, struct, sys
CLONE3, wanted = 435, int(sys.argv[1])
tid = (ctypes.c_int * 1)(wanted)
args = struct.pack("11Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(tid), 1, 0)
child = ctypes.CDLL(None, use_errno=True).syscall(CLONE3, args, len(args))
if child == 0:
    print(os.getpid(), flush=True)
    while True:
        signal.pause()
print("none" if child < 0 else "", end="", flush=True)
if child > 0:
    os.waitpid(child, 0)
"""


class LeftMemory(DaemonCase):
    gpus = "1xA100-40GB"

    def setUp(self):
        super().setUp()
        self.devices = os.path.join(self.folder, "devices")
        os.mkdir(self.devices)
        self.device = os.path.join(self.devices, "nvidia0")
        open(self.device, "wb").close()
        self.stop()
        self.env["COLLOC_DEVICE_FOLDER"] = self.devices
        self.start()

    def training(self):
        """A process with a worker that was forked from it; NVML lists the first. Returns it, and
        the worker's pid."""
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, self.device],
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "COLLOC_TEST_FOLDER": self.folder},
        )
        self.addCleanup(parent.stdout.close)
        self.addCleanup(parent.wait)
        self.addCleanup(parent.kill)
        worker = int(parent.stdout.readline())
        self.list_pid(parent.pid)
        return parent, worker

    def list_pid(self, pid):
        self.listed = pid
        self.emulator("set", "0", "foreign-mib=9000", f"foreign-pid={pid}")

    def external(self):
        """The process that NVML lists for the memory; None: it does not. (`colloc doctor` has
        processes on the GPU, too.)"""
        listed = [one for one in self.gpu()["foreign_processes"] or [] if one["pid"] == self.listed]
        return listed[0] if listed else None

    def kill(self, parent):
        parent.kill()
        parent.wait()

    def doctor(self):
        done = subprocess.run(
            [program("colloc"), "doctor", "--json"],
            env=self.env,
            capture_output=True,
            text=True,
        )
        return next(c for c in json.loads(done.stdout)["checks"] if c["name"] == "left-memory")

    def test_a_worker_holds_the_memory_of_its_parent(self):
        parent, worker = self.training()
        until(lambda: (self.external() or {}).get("pid") == parent.pid)
        alive = self.external()
        self.assertIsNone(alive["left_behind"])
        self.assertTrue(alive["name"].startswith("python"))
        self.assertTrue(self.doctor()["ok"])
        self.kill(parent)
        until(lambda: ((self.external() or {}).get("left_behind") or {}).get("holder"))
        left = self.external()
        self.assertEqual((left["pid"], left["mem_used_mib"]), (parent.pid, 9000))
        self.assertEqual([left[key] for key in ("name", "uid", "started_at")], [None, None, None])
        self.assertIsNone(left["left_behind"]["task"])
        holder = left["left_behind"]["holder"]
        self.assertEqual((holder["pid"], holder["uid"]), (worker, os.getuid()))
        self.assertTrue(holder["name"].startswith("python"))
        self.assertRegex(
            self.colloc("gpus").stdout,
            rf"8\.8 GiB left behind by an ended process \(pid {parent.pid}\), held by pid {worker} "
            r"\(\S+: python\S*\): end that process",
        )
        check = self.doctor()
        self.assertFalse(check["ok"])
        self.assertIn(f"8.8 GiB of process {parent.pid}, which is not in /proc", check["detail"])
        self.assertIn(f"process {worker} (python", check["advice"])
        self.wait_log(f"8.8 GiB left behind by process {parent.pid}, which has ended")
        os.kill(worker, signal.SIGKILL)  # now the driver releases it
        self.emulator("set", "0", "foreign-mib=0")
        until(lambda: self.external() is None)
        self.assertTrue(self.doctor()["ok"])

    def test_what_a_task_leaves_behind(self):
        """It is the task's as long as the task runs, and has its name afterwards."""
        task = self.submit("sleep 1000 & echo $! >pid; sleep 1000")
        until(lambda: self.file("pid").strip())
        pid = int(self.file("pid"))
        self.list_pid(pid)
        used = lambda: (self.gpu()["tasks"] or [{}])[0].get("mem_used_mib")
        until(lambda: used() == 9000)
        os.kill(pid, signal.SIGKILL)
        killed = self.get("/v1/gpus")["sampled_at"]
        until(lambda: self.get("/v1/gpus")["sampled_at"] > killed + 6, "6 s of samples")
        self.assertEqual((used(), self.external()), (9000, None))
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        until(lambda: ((self.external() or {}).get("left_behind") or {}).get("task") == task)
        self.assertRegex(
            self.colloc("gpus").stdout,
            rf"8\.8 GiB left behind by task {task} \(pid {pid}\); `colloc doctor` names the holder",
        )

    def check_number_of_another(self, between):
        """A process ends, and one of a task has its number. `between(replace)` calls `replace`,
        which does both."""
        parent = subprocess.Popen(
            ["sleep", "1000"]
        )  # leads no session, which would keep its number
        self.addCleanup(parent.wait)
        self.addCleanup(parent.kill)
        self.list_pid(parent.pid)
        with open(os.path.join(self.work, "again.py"), "w", encoding="utf-8") as file:
            file.write(AGAIN)
        again = f"{sys.executable} again.py {parent.pid} >got || echo none >got"
        task = self.submit(f"echo >ready; while [ ! -e go ]; do sleep 0.02; done; {again}")
        until(lambda: self.file("ready"))
        until(lambda: (self.external() or {}).get("pid") == parent.pid)

        def replace():
            self.kill(parent)
            open(os.path.join(self.work, "go"), "wb").close()
            until(lambda: self.file("got").strip())

        between(replace)
        if self.file("got").strip() != str(parent.pid):
            self.skipTest("this machine gives no process a chosen number")
        until(lambda: (self.external() or {}).get("left_behind"))
        left = self.external()
        self.assertEqual((left["pid"], left["name"]), (parent.pid, None))
        used = lambda: [(one["id"], one["mem_used_mib"]) for one in self.gpu()["tasks"]]
        until(lambda: used() == [(task, 0)], "a sample of the task")
        self.assertIn("left behind by an ended process", self.colloc("gpus").stdout)

    def test_another_process_with_that_number_has_none_of_it(self):
        self.check_number_of_another(lambda replace: replace())

    def test_another_process_has_that_number_before_it_is_checked(self):
        def while_the_daemon_sleeps(replace):
            self.process.send_signal(signal.SIGSTOP)
            replace()
            self.process.send_signal(signal.SIGCONT)

        self.check_number_of_another(while_the_daemon_sleeps)

    def file(self, name):
        path = os.path.join(self.work, name)
        return read(path) if os.path.exists(path) else ""


if __name__ == "__main__":
    unittest.main()
