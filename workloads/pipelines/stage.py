# SPDX-License-Identifier: Apache-2.0
"""What the stages of the pipelines share: the protocol of python/colloc_pipeline/stage.py, and
large data between stages, which goes through files in memory ($COLLOC_PIPELINE_SHM).

    def work(items):                 # a list of {"id": ..., ...}: returns one for each, in order
    def sample(n):                   # n items as the stage gets them, for the matrix
    run_stage(work, sample)

A stage that gets SIGUSR1 writes where it is to its log: the bench sends it to a stage that hangs.
"""

import faulthandler
import json
import os
import signal
import sys

faulthandler.register(signal.SIGUSR1)  # before the stage loads its libraries


def shared_folder():
    return os.environ.get("COLLOC_PIPELINE_SHM", "/dev/shm")


def put_bytes(name, data):
    """Leaves data for the next stage. The name is part of an item."""
    path = os.path.join(shared_folder(), f"{name}-{os.getpid()}")
    with open(path, "wb") as file:
        file.write(data)
    return path


def take_bytes(path, keep=False):
    """The data that a stage left, which is gone then."""
    with open(path, "rb") as file:
        data = file.read()
    if not keep:
        os.unlink(path)
    return data


def answer(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def run_stage(work, sample, end=dict):
    """Serves until the input ends. `end`: what the stage says of its resources, as an object."""
    try:
        answer({"ready": True})
        for line in sys.stdin:
            question = json.loads(line)
            if "sample" in question:
                answer({"items": sample(question["sample"])})
            else:
                answer({"items": work(question["items"])})
        answer({"end": end()})
    except BrokenPipeError:  # the bench has ended: nothing reads the answer
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
