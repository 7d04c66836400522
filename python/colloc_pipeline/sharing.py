# SPDX-License-Identifier: Apache-2.0
"""How the processes of pipelines share a GPU.

    apart           one pipeline after the other, alone
    streams         all at the same time, time-sliced by the driver
    mps             all at the same time, as clients of one MPS control daemon
    1g.18gb ...     each pipeline on a MIG instance of this profile, which has to be there
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from typing import Dict, Iterator, List

SHARED_MODES = ("streams", "mps")  # all stages on one GPU
MODES = ("apart", *SHARED_MODES)
PROFILE = re.compile(r"^\d+g\.\d+gb$")
INSTANCE = re.compile(r"MIG (\S+)\s+Device\s+\d+:\s+\(UUID: (MIG-[0-9a-f/-]+|MIG-GPU-[^)]+)\)")


class SharingError(Exception):
    """Why a mode cannot be had here."""


def is_mode(text: str) -> bool:
    """Is it the name of a mode?"""
    return text in MODES or bool(PROFILE.match(text))


def find_instances(listing: str, profile: str) -> List[str]:
    """The UUIDs of the MIG instances of a profile, from the output of `nvidia-smi -L`."""
    return [uuid for name, uuid in INSTANCE.findall(listing) if name == profile]


def list_gpus() -> str:
    """The output of `nvidia-smi -L`."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SharingError(f"MIG instances are not known: nvidia-smi -L: {error}") from None
    return done.stdout


@contextlib.contextmanager
def mps_daemon(gpu: str, logs: str) -> Iterator[Dict[str, str]]:
    """A control daemon of our own for one GPU, and the environment of its clients. Its logs are
    added to those in `logs`, as mps-control.log and mps-server.log."""
    folder = tempfile.mkdtemp(prefix="colloc-mps-")
    env = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    own = {**os.environ, **env, "CUDA_VISIBLE_DEVICES": gpu}
    control = "nvidia-cuda-mps-control"
    try:
        subprocess.run([control, "-d"], env=own, capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise SharingError(f"MPS cannot be had: {control} -d: {error}") from None
    try:
        yield {**env, "CUDA_VISIBLE_DEVICES": "0"}
    finally:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([control], env=own, input=b"quit\n", timeout=60, check=False)
        for name in ("control.log", "server.log"):
            with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb") as log:
                with open(os.path.join(logs, f"mps-{name}"), "ab") as kept:
                    shutil.copyfileobj(log, kept)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def shared_envs(mode: str, gpu: str, n: int, logs: str) -> Iterator[List[Dict[str, str]]]:
    """The environments of `n` pipelines that run at the same time in this mode. What MPS
    logs goes to the folder `logs`."""
    base = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if mode == "mps":
        with mps_daemon(gpu, logs) as client:
            yield [{**base, **client} for _ in range(n)]
        return
    devices = [gpu] * n
    if PROFILE.match(mode):
        devices = find_instances(list_gpus(), mode)
        if len(devices) < n:
            raise SharingError(f"{mode}: {len(devices)} instances are there, {n} are needed")
    yield [{**base, "CUDA_VISIBLE_DEVICES": devices[i]} for i in range(n)]
