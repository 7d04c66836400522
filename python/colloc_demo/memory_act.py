# SPDX-License-Identifier: Apache-2.0
"""An act of the demo on Slurm: two jobs whose memory does not fit on their GPU together. The second
one's allocation waits, the first leaves the GPU meanwhile, and both end well; to Slurm both run."""

import os
import types

from colloc_demo.server import PROGRAMS
from colloc_demo.slurm_cluster import SlurmCluster, suspends
from colloc_demo.trace import Trouble

KIND = "Small"
GPU_KINDS = f"kind {KIND} 1000 0 8 100 10 10 10\n"  # 1000 MiB: the contents are in host memory
TRAINING = """
import ctypes as C, os, sys, time
cuda, context = C.CDLL("libcuda.so.1"), C.c_void_p()
def check(result):
    if result:
        sys.exit(f"CUDA error {result}")
check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(C.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
def take(mib):
    at = C.c_uint64()
    check(cuda.cuMemAlloc_v2(C.byref(at), C.c_size_t(mib << 20)))
    return at
name, first_mib, later_mib = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
take(first_mib)
value = C.c_int()
block = take(1)
step = 0
while not os.path.exists(name + ".end"):
    step += 1
    check(cuda.cuMemcpyHtoD_v2(block, C.byref(C.c_int(step)), C.c_size_t(4)))
    check(cuda.cuMemcpyDtoH_v2(C.byref(value), block, C.c_size_t(4)))
    if value.value != step:
        sys.exit("its memory is lost")
    print("step", flush=True)
    time.sleep(0.02)
    if later_mib and os.path.exists(name + ".more"):
        take(later_mib)
        later_mib = 0
        print("has more", flush=True)
"""


class MemoryAct:
    def __init__(self, folder, programs, options):
        kinds = os.path.join(folder, "kinds")
        with open(kinds, "w", encoding="utf-8") as file:
            file.write(GPU_KINDS)
        size = types.SimpleNamespace(**{**vars(options), "nodes": 1, "gpus": 1, "speed": 20})
        settings = {"gpu-memory": "1000MiB", "min-free": "0", "margin": "0", "policy": "magm"}
        self.cluster = SlurmCluster(
            "memory",
            programs,
            size,
            agents={"n0": suspends(programs, options)},
            kind=(KIND, kinds),
            **settings,
        )

    def path(self, name):
        return self.cluster.slurm.path(f"work/{name}")

    def create(self, name):
        with open(self.path(name), "w", encoding="utf-8"):
            pass

    def submit(self, name, first_mib, later_mib):
        script = (
            "#!/bin/sh\n#COLLOC --memory=300MiB --smact=0.1\n"
            f"export LD_LIBRARY_PATH={os.path.dirname(self.cluster.program(PROGRAMS['emulator']))}"
            f" COLLOC_EMULATOR={self.cluster.gpu_file('n0')}\n"
            f"exec /usr/bin/python3 {self.path('train.py')} {self.path(name)}"
            f" {first_mib} {later_mib}\n"
        )
        output = f"--output={self.path(name)}.out"
        return self.cluster.slurm.sbatch(script, "--partition=gpu", f"--job-name={name}", output)

    def lines(self, name):
        try:
            with open(self.path(f"{name}.out"), encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def wait_steps(self, name):
        before = len(self.lines(name))
        self.cluster.slurm.until(lambda: len(self.lines(name)) > before + 3, f"steps of {name}")

    def agent_says(self, text):
        log = self.cluster.agents["n0"].log
        with open(log, encoding="utf-8", errors="replace") as file:
            return any(text in line for line in file)

    def run(self, tell):
        """Calls `tell` with a line for each thing that happens. Raises Trouble, AssertionError."""
        try:
            self.cluster.start()
            self.play(tell)
        finally:
            self.cluster.close()

    def play(self, tell):
        slurm = self.cluster.slurm
        slurm.write("work/train.py", TRAINING)
        first = self.submit("first", 400, 0)
        self.wait_steps("first")
        second = self.submit("second", 400, 300)
        self.wait_steps("second")
        tell("Two jobs have 400 MiB each on a GPU of 1000 MiB; the second takes 300 MiB more.")
        self.create("second.more")
        slurm.until(lambda: self.agent_says(f"job {first} is out"), "the first job to give way")
        slurm.until(lambda: "has more" in self.lines("second"), "the second job's memory")
        tell(
            f"Its allocation waits; the first leaves the GPU, and is {slurm.job(first)['JobState']}"
            " to Slurm; the second goes on."
        )
        self.create("second.end")
        slurm.wait_job(second, "COMPLETED")
        slurm.until(lambda: self.agent_says(f"job {first} is back"), "the first job to come back")
        self.wait_steps("first")
        self.create("first.end")
        slurm.wait_job(first, "COMPLETED")
        for job in (first, second):
            if slurm.job(job)["Restarts"] != "0":
                raise Trouble(f"job {job} has crashed")
        tell("The second ends, the first comes back and ends: both completed, none crashed.")
