# SPDX-License-Identifier: Apache-2.0
"""PyTorch's profiler, turned on from outside: the pretend processes speak libkineto's protocol."""
import glob
import os
import signal
import socket
import struct
import sys
import unittest

from daemon_case import DaemonCase, read, until

PRETEND = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pretend_kineto.py")


class TorchProfile(DaemonCase):
    gpus = "1xA100-40GB"

    def begin(self, profile, processes=1):
        """A pretend training under the profiler, which has asked its first question."""
        script = self.write(
            "train.sh",
            f"printenv KINETO_IPC_SOCKET_DIR\n{sys.executable} {PRETEND} stop {processes}\n",
        )
        done = self.colloc("submit", f"--profile={profile}", script)
        task = int(done.stdout.split()[-1])
        self.wait_state(task, "RUNNING")
        output = f"{self.work}/colloc-{task}.out"
        until(
            lambda: os.path.exists(output) and read(output).count("ready") == processes,
            "the first question",
        )
        return task, read(output).split()[0]

    def traces(self, task, count=""):
        return glob.glob(f"{self.work}/colloc-{task}.torch{count}_[0-9]*.json")

    def end(self, task):
        self.write("stop", "")
        self.wait(task, "COMPLETED")
        os.unlink(f"{self.work}/stop")

    def test_steps_that_are_known_at_the_submission(self):
        task, sockets = self.begin("torch:step=100,steps=5", processes=2)
        until(lambda: len(self.traces(task)) == 2, "a trace of each process")
        for trace in self.traces(task):
            self.assertEqual(
                read(trace),
                "PROFILE_START_ITERATION=100\nACTIVITIES_ITERATIONS=5\n"
                f"ACTIVITIES_LOG_FILE={self.work}/colloc-{task}.torch.json\n",
            )
        self.assertEqual(os.stat(sockets).st_mode & 0o777, 0o700)
        self.assertRegex(self.colloc("show", str(task)).stdout, "Profiler +torch:step=100,steps=5")
        self.end(task)
        until(lambda: not os.path.exists(sockets), "its sockets are removed")

    def test_steps_of_a_running_task(self):
        task, _ = self.begin("torch")
        self.assertEqual(self.traces(task), [])
        note = self.colloc("profile", "--steps=3", str(task)).stderr
        self.assertIn(f"writes {self.work}/colloc-{task}.torch_PID.json", note)
        self.assertNotIn("has asked", note)
        until(lambda: self.traces(task), "a trace")
        self.assertIn("PROFILE_START_ITERATION_ROUNDUP=1", read(self.traces(task)[0]))
        self.restart()
        self.colloc("profile", "--for=2s", str(task))
        until(lambda: self.traces(task, "-2"), "the second trace")
        self.assertIn("ACTIVITIES_DURATION_MSECS=2000", read(self.traces(task, "-2")[0]))
        self.end(task)
        refused = self.colloc("profile", "--steps=3", str(task), code=1).stderr
        self.assertIn("has ended", refused)

    def test_a_program_without_pytorch_has_not_asked(self):
        script = self.write("idle.sh", "exec sleep 1000\n")
        task = int(self.colloc("submit", "--profile=torch", script).stdout.split()[-1])
        self.wait_state(task, "RUNNING")
        done = self.colloc("profile", "--steps=3", str(task))
        self.assertEqual(done.stdout, f"Task {task} RUNNING\n")
        self.assertIn("no process of the task has asked what to record yet", done.stderr)
        self.act("cancel", task)
        self.wait(task, "CANCELLED")

    def test_what_cannot_be_profiled(self):
        task = self.submit("exec sleep 1000")
        self.wait_state(task, "RUNNING")
        refused = self.colloc("profile", "--steps=3", str(task), code=1).stderr
        self.assertIn("was not submitted with --profile=torch", refused)
        self.colloc("profile", str(task), code=2)
        self.colloc("profile", "--steps=3", "--for=1s", str(task), code=2)
        for body in ({}, {"steps": 0}, {"steps": 5, "for_s": 1}, {"for_s": 1e9}):
            reply = self.request("POST", f"/v1/tasks/{task}/profile", body)
            self.assertEqual(reply.status, 400, body)
        script = self.write("none.sh", "true\n")
        wrong = self.colloc("submit", "--profile=torch:step=9,steps=0", script, code=2).stderr
        self.assertIn("steps=0: steps has to be a number from 1 to 1000", wrong)

    def test_a_cancelled_task_leaves_no_responder(self):
        task, sockets = self.begin("torch")
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        until(lambda: not self.is_answered(sockets), "the end of the responder")

    def test_a_responder_that_is_killed_leaves_no_folder(self):
        task, sockets = self.begin("torch")
        os.kill(self.find_responder(sockets), signal.SIGKILL)
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        self.assertFalse(os.path.exists(sockets))

    def test_a_shim_that_is_killed_leaves_no_folder(self):
        task, sockets = self.begin("torch")
        outside = self.write("outside", "kept")
        os.symlink(outside, f"{sockets}/link")
        os.kill(self.find_responder(sockets), signal.SIGKILL)
        os.kill(int(read(f"{self.state}/tasks/{task}/1/claim")), signal.SIGKILL)
        self.assertEqual(self.wait(task, "FAILED")["reason"], "Lost")
        self.assertFalse(os.path.exists(sockets))
        self.assertEqual(read(outside), "kept")

    def find_responder(self, sockets):
        """The process that answers, as the kernel says."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            client.bind(f"{sockets}/test")
            client.connect(f"{sockets}/dynolog")
            client.settimeout(60)
            client.send(struct.pack("=Q32siiq", 16, b"ctxt", 0, os.getpid(), 0))
            _, ((_, _, credentials),), _, _ = client.recvmsg(1024, socket.CMSG_SPACE(12))
            return struct.unpack("=iII", credentials)[0]

    def is_answered(self, sockets):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
            return client.connect_ex(f"{sockets}/dynolog") == 0


if __name__ == "__main__":
    unittest.main()
