# SPDX-License-Identifier: Apache-2.0
"""The base class of the tests of a Slurm node's agent: a loopback cluster of one node with two
emulated GPUs and its agent. A program that prints reports stands for the controller."""

import json
import os
import queue
import re
import struct
import subprocess
import threading
import time
import unittest

from daemon_case import BUILD, LIMIT_S, MIB, program, read, until

from colloc_slurm import loopback

PLUGIN = os.path.abspath(os.path.join(BUILD, "src", "spank", "spank_colloc.so"))
PYXIS = os.path.abspath(os.path.join(BUILD, "tests", "system", "pretend_pyxis.so"))
HUB = os.path.abspath(os.path.join(BUILD, "tests", "system", "node_hub_print"))
PROBE = os.path.abspath(os.path.join(BUILD, "tests", "preload", "probe"))
EMULATOR = os.path.dirname(program("emulator"))
LIBRARY = os.path.abspath(os.path.join(BUILD, "src", "preload", "libcolloc-preload.so"))
CHECKPOINT = os.path.abspath(os.path.join(BUILD, "src", "checkpoint", "colloc-checkpoint"))


def why_not():
    if os.geteuid() != 0:
        return "slurmd runs jobs as their users: needs root"
    return loopback.why_not()


class Hub:
    """The controller's end: the reports, newest last."""

    def __init__(self, address, munge):
        self.process = subprocess.Popen(
            [HUB, address, munge], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.address = self.process.stdout.readline().split()[1]
        self.lines = queue.Queue()
        self.thread = threading.Thread(target=self.read_lines)
        self.thread.start()

    def read_lines(self):
        for line in self.process.stdout:
            self.lines.put(line)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait(self, condition):
        """The first line from now on that fulfils the condition: a report, or other text."""
        end = time.monotonic() + LIMIT_S
        while True:
            line = self.lines.get(timeout=LIMIT_S)
            if time.monotonic() > end:
                raise AssertionError(f"it has not come within {LIMIT_S} s; the last is {line}")
            value = json.loads(line) if line.startswith("{") else line.strip()
            if condition(value):
                return value

    def wait_report(self, condition):
        return self.wait(lambda value: isinstance(value, dict) and condition(value))

    def close(self):
        self.process.stdin.close()
        self.process.wait(LIMIT_S)
        self.thread.join()
        self.process.stdout.close()


@unittest.skipIf(why_not(), why_not())
class NodeCase(unittest.TestCase):
    container_plugin = PYXIS  # and its arguments
    slurm_settings, slurm_lines = {}, ()
    speed = 1  # of the emulator

    def setUp(self):
        # Ours comes last: where it is asked, the task has joined its container by then.
        plugstack = f"required {self.container_plugin}\n"
        plugstack += f"optional {PLUGIN} socket={{folder}}/run/node.sock\n"
        self.slurm = loopback.Loopback(
            nodes=1,
            gpus=2,
            settings=self.slurm_settings,
            lines=self.slurm_lines,
            files={"plugstack.conf": plugstack},
        )
        self.slurm.__enter__()
        self.addCleanup(self.slurm.__exit__)
        self.slurm.env.update(
            PATH=f"{EMULATOR}:{self.slurm.env['PATH']}",
            LD_LIBRARY_PATH=EMULATOR,
            COLLOC_EMULATOR=self.slurm.path("work/gpus"),
        )
        self.slurm.run(
            program("emulator"),
            "create",
            "--gpus=2xA100-40GB",
            f"--speed={self.speed}",
            self.slurm.path("work/gpus"),
        )
        self.hub = Hub("127.0.0.1:0", self.slurm.path("munge/socket"))
        self.addCleanup(self.hub.close)
        self.start_agent()

    def start_agent(self, *options, **env):
        """Returns once the controller has heard of this one; all share a log."""
        before = self.count_accepted()
        self.agent = self.slurm.spawn(
            program("collocd"),
            "--node",
            f"--controller={self.hub.address}",
            "--node-name=n0",
            f"--munge-socket={self.slurm.path('munge/socket')}",
            f"--node-socket={self.slurm.path('run/node.sock')}",
            f"--state-dir={self.slurm.path('run/state')}",
            "--sample-period=200ms",
            "--mps-linger=0s",
            "--log-level=debug",
            *options,
            log="agent",
            **env,
        )
        until(lambda: self.count_accepted() > before, "the agent's first report")

    def count_accepted(self):
        path = self.slurm.path("log/agent.log")
        return read(path).count("accepts the reports") if os.path.exists(path) else 0

    def sbatch(self, script, *options, user=None):
        files = ("--output=%j.out", "--error=%j.err")
        return self.slurm.sbatch(script, "--partition=gpu-run", *files, *options, user=user)

    def output(self, job, kind="out"):
        return read(self.slurm.path(f"work/{job}.{kind}"))

    def wait_output(self, job, lines=1):
        path = self.slurm.path(f"work/{job}.out")
        self.slurm.until(
            lambda: os.path.exists(path) and len(read(path).splitlines()) >= lines, "its output"
        )

    def run_checked(self, script, *options):
        job = self.sbatch(script, *options)
        self.slurm.wait_job(job, "COMPLETED")
        return self.output(job)


class MemoryWaitCase(NodeCase):
    """Allocations of jobs wait for GPU memory: the library before a pretend libcuda, whose memory
    the test fills; the agent sees the same of the emulated GPU."""

    def setUp(self):
        super().setUp()
        uuid = self.hub.wait_report(lambda r: len(r["gpus"]) == 2)["gpus"][1]["uuid"]
        self.gpu = self.slurm.path("work/pretend-gpu")
        with open(self.gpu, "wb") as file:
            key = bytes.fromhex(uuid[4:].replace("-", ""))
            file.write(struct.pack("=8Q16s", 40000 * MIB, *[0] * 7, key))

    def fill(self, mib):
        self.slurm.run(program("emulator"), "set", "1", f"foreign-mib={mib}")
        with open(self.gpu, "r+b") as file:
            file.seek(8)
            file.write(struct.pack("=Q", mib * MIB))

    def allocating(self, mib, before=""):
        """All that the program needs is in the script: a job may have no environment."""
        return (
            f"export LD_LIBRARY_PATH={os.path.dirname(PROBE)} PRETEND_CUDA={self.gpu}; {before}\n"
            f"echo LD_PRELOAD=$LD_PRELOAD\n{PROBE} dlsym alloc {mib}"
        )

    def start_job(self, script, *options, is_pinned=True, user=None):
        job = self.sbatch(script, "--gres=shard:i1:10", "--hold", *options, user=user)
        if is_pinned:
            self.hub.say(f"pin n0 {job} streams")
            self.hub.wait(lambda value: value == "pinned 0")
        self.hub.wait_report(lambda r: True)
        self.hub.wait_report(lambda r: True)
        self.slurm.run("scontrol", "release", job)
        return job

    def wait_line(self, text):
        until(lambda: text in read(self.agent.log), text)

    def wait_waiting(self, job, gib="14.6 GiB"):
        until(
            lambda: re.search(
                rf"job {job}: process \d+ waits for {gib} of memory of GPU 1", read(self.agent.log)
            ),
            f"a wait of job {job}",
        )

    def check_end(self, job, answer="0", library=LIBRARY):
        self.slurm.wait_job(job, "COMPLETED", "FAILED")
        self.assertEqual(self.output(job).split(), [f"LD_PRELOAD={library}", answer])
