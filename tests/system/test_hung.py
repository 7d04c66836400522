# SPDX-License-Identifier: Apache-2.0
"""A file system or a name service that stops answering.

It costs its user a file or a name; the daemon serves all others.
"""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

from daemon_case import BUILD, LIMIT_S, DaemonCase, is_alive, proc, program, read, until
from hung_mount import HungFile, HungMount

PROMPT_S = 0.05

# Keeps its memory map locked: it maps a file whose first page waits to be read. It has its parent's
# environment, and outlives the parent.
HOLDER = """
import mmap, os, signal, sys, time
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDONLY)
def map_page():
    return mmap.mmap(file, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
if os.fork() == 0:
    map_page()[0]
    os._exit(0)
while not os.path.exists("go"):
    time.sleep(0.01)
print(os.getpid(), flush=True)
map_page()
"""

HOLDS_GPU_MEMORY = """
import ctypes as C
cuda, context, at = C.CDLL("libcuda.so.1"), C.c_void_p(), C.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(C.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(C.byref(at), C.c_size_t(64 << 20)) == 0
"""


class Answers(DaemonCase):
    def answer_s(self):
        """How long a request takes that needs nothing."""
        begin = time.monotonic()
        self.get("/v1/info")
        return time.monotonic() - begin


@unittest.skipIf(os.geteuid() != 0, "mounting needs root")
class Mounted(Answers):
    mount_kind = HungMount

    def setUp(self):
        super().setUp()
        try:
            self.mount = self.mount_kind(os.path.join(self.folder, "mount"))
        except OSError as error:
            self.skipTest(f"no FUSE here: {error}")
        self.addCleanup(self.mount.close)

    def wait_hung(self):
        self.assertTrue(self.mount.hung.acquire(timeout=LIMIT_S), "nothing came to the mount")

    def assert_prompt(self):
        """One of many is: the machine may be busy with other things. None waits for the mount."""
        self.assertTrue(any(self.answer_s() < PROMPT_S for _ in range(200)))


class FileSystem(Mounted):
    def test_a_task_whose_output_hangs_can_be_cancelled(self):
        for members in (
            {"output": f"{self.mount.folder}/out"},
            {"cwd": f"{self.mount.folder}/work"},
        ):
            task = self.submit("true", gpus=4, grace_s=600, **members)
            self.wait_hung()
            self.assert_prompt()
            self.assertEqual(self.act("cancel", task).status, 200)
            self.assertEqual(self.wait(task, "CANCELLED")["reason"], "Cancelled")
            self.wait(self.submit("true", gpus=4), "COMPLETED")

    def test_a_log_that_hangs_is_answered_with_words(self):
        """More readers than helpers: all are answered, and nothing else waits."""
        os.mkdir(self.work + "/logs")
        task = self.submit("true", output="logs/out")
        self.wait(task, "COMPLETED")
        self.assertEqual(self.output(task), "")
        os.rename(self.work + "/logs", self.work + "/before")
        os.symlink(self.mount.folder, self.work + "/logs")
        readers = [self.connection() for _ in range(20)]
        begin = time.monotonic()
        for reader in readers:
            reader.request("GET", f"/v1/tasks/{task}/log")
        self.wait_hung()
        self.assert_prompt()
        for reader in readers:
            reply = reader.getresponse()
            words = reply.read()
            self.assertEqual(reply.status, 503, words)
            self.assertIn(b"answer", words)
            reader.close()
        self.assertLess(time.monotonic() - begin, LIMIT_S / 2)
        self.assert_prompt()
        self.mount.close()
        os.unlink(self.work + "/logs")
        os.rename(self.work + "/before", self.work + "/logs")
        until(
            lambda: self.request("GET", f"/v1/tasks/{task}/log").status == 200,
            "an answer from a sound file system",
        )
        self.stop()

    def test_a_summary_that_hangs_delays_no_other(self):
        connection = self.connection()
        summary = {"name": "net.json", "path": f"{self.mount.folder}/net.json"}
        connection.request("POST", "/v1/tasks", json.dumps(self.body(summary=summary, batch=8)))
        self.wait_hung()
        self.assert_prompt()
        self.wait(self.submit("true"), "COMPLETED")
        self.mount.close()  # the file system is gone, and says so
        reply = connection.getresponse()
        self.assertEqual(reply.status, 400, reply.read())
        connection.close()

    def test_a_time_limit_ends_a_task_whose_output_hangs(self):
        task = self.submit("true", output=f"{self.mount.folder}/out", time_limit_s=0.5, grace_s=600)
        self.wait(task, "TIMEOUT")

    def test_an_end_is_known_though_the_output_hangs_by_then(self):
        """The name of the output leads to the mount when the task has ended."""
        program = (
            f"import os; os.symlink('{self.mount.folder}/out', 'next'); "
            "os.rename('next', 'out'); os._exit(3)"
        )
        task = self.submit(f'exec python3 -c "{program}"', output="out")
        self.assertEqual(self.wait(task, "FAILED")["exit_code"], 3)
        self.assertIn("did not answer", self.task(task)["evidence"])


class LockedProcess(Mounted):
    """A process whose environment cannot be read, since it waits for a file system in mmap()."""

    mount_kind = HungFile

    def lock(self, pid):
        """Waits until the process is in mmap()."""

        def is_locked():
            reader = subprocess.Popen(["cat", f"/proc/{pid}/environ"], stdout=subprocess.DEVNULL)
            try:
                reader.wait(0.5)
            except subprocess.TimeoutExpired:
                is_waiting = proc(reader.pid, "stat").rpartition(")")[2].split()[:1] == ["D"]
                reader.kill()
                reader.wait()
                return is_waiting
            return False

        until(is_locked, "the wait in mmap()")

    def test_what_a_killed_shim_left_is_looked_for_beside_the_loop(self):
        with open(self.work + "/holder.py", "w", encoding="utf-8") as file:
            file.write(HOLDER)
        task = self.submit(
            f"(setsid {sys.executable} holder.py {self.mount.folder}/f > holder &\n"
            "setsid sleep 1000 & echo $! > left); echo $PPID > shim; while :; do sleep 0.1; done"
        )
        self.wait_hung()
        with open(self.work + "/go", "w", encoding="utf-8"):
            pass
        self.lock(int(self.wait_file("holder")))
        left = int(self.wait_file("left"))
        os.kill(int(self.wait_file("shim")), signal.SIGKILL)
        until(lambda: not is_alive(left), "the end of what the task left")
        self.assert_prompt()
        self.assertEqual(self.wait(task, "FAILED")["reason"], "Lost")
        self.assert_prompt()

    def test_a_process_is_inspected_beside_the_loop(self):
        with open(self.work + "/holder.py", "w", encoding="utf-8") as file:
            file.write(HOLDS_GPU_MEMORY + HOLDER)
        task = self.submit(
            f"exec {sys.executable} holder.py {self.mount.folder}/f > holder", preload="yes"
        )
        self.wait_hung()
        with open(self.work + "/go", "w", encoding="utf-8"):
            pass
        self.lock(int(self.wait_file("holder")))
        command = [program("colloc"), "suspend", str(task)]
        with subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL) as suspend:
            until(lambda: "SUSPENDING" in str(self.task(task)["events"]), "the order")
            self.assert_prompt()
            self.assertIsNone(suspend.poll())
            until(lambda: self.task(task)["state"] == "RUNNING", "the end of the order")
            self.assertIn("could not be inspected", str(self.task(task)))
            self.mount.close()


@unittest.skipIf(
    b"__asan_init" in read(program("collocd"), "rb"), "the sanitizer wants to be loaded first"
)
class Names(Answers):
    """NSS waits for a file to go."""

    def start(self, **settings):
        self.switch = os.path.join(self.folder, "names-hang")
        self.env.update(
            LD_PRELOAD=os.path.abspath(f"{BUILD}/tests/system/libhung-names.so"),
            COLLOC_TEST_NAMES_HANG=self.switch,
        )
        super().start(**settings)
        for name in ("LD_PRELOAD", "COLLOC_TEST_NAMES_HANG"):
            self.env.pop(name)

    def hang(self):
        with open(self.switch, "w", encoding="ascii"):
            pass

    def slowest_answer_s(self, user):
        """Of a second in which names are looked up; and those who asked for them."""
        submitter, lister = self.connection(), self.connection()
        submitter.request("POST", "/v1/tasks", json.dumps(self.body("true", hold=True)))
        lister.request("GET", f"/v1/tasks?user={user}")
        end, slowest = time.monotonic() + 1, 0
        while time.monotonic() < end:
            slowest = max(slowest, self.answer_s())
        print(f"slowest of one second: {slowest * 1000:.1f} ms", flush=True)
        return slowest, submitter, lister

    def test_nothing_waits_for_a_name_service(self):
        """One of a few seconds has to be without a wait: others may be the machine's."""
        self.hang()
        begin = time.monotonic()
        for i in range(10):
            slowest, submitter, lister = self.slowest_answer_s(f"unknown{i}")
            if slowest < 0.5:
                break
        self.assertLess(slowest, 0.5)
        reply = submitter.getresponse()
        self.assertEqual(reply.status, 201)
        task = json.loads(reply.read())["id"]
        self.assertEqual(self.task(task)["user"], str(os.geteuid()))
        self.assertEqual(json.loads(lister.getresponse().read())["tasks"], [])
        submitter.close()
        lister.close()
        self.assertLess(time.monotonic() - begin, LIMIT_S / 2)

    def test_a_name_that_was_known_stays(self):
        name = self.task(self.submit("true", hold=True))["user"]
        self.hang()

        def submit_s():
            begin = time.monotonic()
            self.assertEqual(self.task(self.submit("true", hold=True))["user"], name)
            return time.monotonic() - begin

        self.assertTrue(any(submit_s() < 1 for _ in range(5)))


if __name__ == "__main__":
    unittest.main()
