# SPDX-License-Identifier: Apache-2.0
"""A notebook's kernel gives way and keeps its state: the IPython kernel of Debian in a task. Its
GPU memory is memory of this machine, which others use too: it has little."""

import json
import os
import subprocess
import unittest

from daemon_case import LIMIT_S, DaemonCase, at_least, at_most, until

PYTHON = "/usr/bin/python3"  # which Debian's packages are for

# Runs cells in the kernel of a connection file: a line of JSON for each line of JSON.
CLIENT = """
import json, sys
from jupyter_client import BlockingKernelClient
client = BlockingKernelClient(connection_file=sys.argv[1])
client.load_connection_file()
client.start_channels()
client.wait_for_ready(timeout=float(sys.argv[2]))
for line in sys.stdin:
    said = []
    def on_output(message):
        content = message["content"]
        said.append(content.get("text") or content.get("data", {}).get("text/plain") or
                    "\\n".join(content.get("traceback", [])))
    client.execute_interactive(json.loads(line), output_hook=on_output,
                               timeout=float(sys.argv[2]))
    print(json.dumps("".join(text for text in said if text)), flush=True)
"""

SETUP = """
import ctypes as C
cuda, context, at = C.CDLL("libcuda.so.1"), C.c_void_p(), C.c_uint64()
results = (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(C.byref(context), 0),
           cuda.cuCtxSetCurrent(context), cuda.cuMemAlloc_v2(C.byref(at), C.c_size_t(96 << 20)))
weights = {"step": 41}
print(results)
"""


def has_kernel():
    words = [PYTHON, "-c", "import ipykernel, jupyter_client"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@unittest.skipUnless(has_kernel(), "needs python3-ipykernel")
class Notebook(DaemonCase):
    gpus = "1xA100-40GB"

    def start_kernel(self):
        file = os.path.join(self.work, "kernel.json")
        task = self.submit(f"exec {PYTHON} -m ipykernel_launcher -f {file}", preload="yes")
        until(lambda: os.path.exists(file) and os.path.getsize(file), "the connection file")
        self.client_process = subprocess.Popen(
            [PYTHON, "-c", CLIENT, file, str(LIMIT_S)],
            env={**self.env, "HOME": self.work},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.client_process.stdout.close)
        self.addCleanup(self.client_process.wait)
        self.addCleanup(self.client_process.stdin.close)
        return task

    def send(self, cell):
        self.client_process.stdin.write(json.dumps(cell) + "\n")
        self.client_process.stdin.flush()

    def answer(self):
        return json.loads(self.client_process.stdout.readline())

    def run_cell(self, cell):
        self.send(cell)
        return self.answer()

    def test_it_keeps_its_state(self):
        task = self.start_kernel()
        self.assertEqual(self.run_cell(SETUP), "(0, 0, 0, 0)\n")
        self.wait_gpu(lambda gpu: at_least(gpu["mem_used_mib"], 96), 0)
        self.colloc("suspend", str(task))
        self.wait_state(task, "SUSPENDED")
        self.wait_gpu(lambda gpu: at_most(gpu["mem_used_mib"], 95), 0)
        # Another task has the GPU meanwhile.
        other = self.submit("exec colloc-pretend-train --memory-mib=30000 --seconds=20")
        self.wait(other, "COMPLETED")
        # A cell that uses the GPU waits for the task to be resumed.
        self.send("weights['step'] += 1; print(weights['step'], cuda.cuCtxSynchronize())")
        self.assertEqual(self.task(task)["state"], "SUSPENDED")
        self.colloc("resume", str(task))
        self.assertEqual(self.answer(), "42 0\n")
        self.wait_gpu(lambda gpu: at_least(gpu["mem_used_mib"], 96), 0)
        self.assertEqual(self.run_cell("print(at.value != 0, sorted(weights))"), "True ['step']\n")


if __name__ == "__main__":
    unittest.main()
