# SPDX-License-Identifier: Apache-2.0
"""How the processes of pipelines share a GPU.

    apart           one pipeline after the other, alone
    streams         all at the same time, time-sliced by the driver
    mps             all at the same time, as clients of one MPS control daemon
    1g.18gb ...     each pipeline on a MIG instance of this profile, which has to be there;
                    1c.3g.71gb names compute instances of a GPU instance 3g.71gb
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from typing import Dict, Iterator, List, Optional

SHARED_MODES = ("streams", "mps")  # all stages on one GPU
MODES = ("apart", *SHARED_MODES)
MPS_CONTROL = "nvidia-cuda-mps-control"
PROFILE = re.compile(r"^(\d+c\.)?\d+g\.\d+gb(\+me)?$")


class SharingError(Exception):
    """Why a mode cannot be had here."""


def is_mode(text: str) -> bool:
    """Is it the name of a mode?"""
    return text in MODES or bool(PROFILE.match(text))


def find_instances(instances: str, gpu: str, profile: str) -> List[str]:
    """The UUIDs of a GPU's MIG instances of a profile, from a list `GPU/PROFILE/UUID,...`."""
    parts = (instance.split("/", 2) for instance in instances.split(","))
    return [each[2] for each in parts if len(each) == 3 and each[:2] == [gpu, profile]]


def choose_instances(instances: Optional[str], gpu: str, profile: str, n: int) -> List[str]:
    """The UUIDs of `n` instances. `instances` None: it is unknown which there are."""
    if instances is None:
        raise SharingError(f"{profile}: colloc cannot query which MIG instances there are")
    found = find_instances(instances, gpu, profile)
    if len(found) < n:
        raise SharingError(
            f"{profile}: GPU {gpu} has {len(found)} of the {n} instances that the pipelines need "
            "(`colloc mig` creates them)"
        )
    return found[:n]


def start_mps(env: Dict[str, str]) -> None:
    """Starts a control daemon in this environment. Raises SharingError."""
    program = shutil.which(MPS_CONTROL)
    if not program:
        raise SharingError(f"no MPS: {MPS_CONTROL} is not on PATH; it is part of the NVIDIA driver")
    try:
        done = subprocess.run(
            [program, "-d"],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SharingError(f"{program} -d: {error}") from None
    if done.returncode != 0:
        said = done.stdout.decode("utf-8", "replace").strip()
        raise SharingError(f"{program} ended with status {done.returncode}: {said[:200]}")


@contextlib.contextmanager
def mps_daemon(devices: str, logs: Optional[str] = None) -> Iterator[Dict[str, str]]:
    """A control daemon of our own for some GPUs, and what its clients need in their environment.

    devices: comma-separated indices or UUIDs. logs: what it logs is added to mps-control.log and
    mps-server.log in this folder; None: it is not kept.
    """
    folder = tempfile.mkdtemp(prefix="colloc-mps-", dir="/tmp")  # the path of a socket is short
    client = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    others = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_MPS_")}
    own = {**others, **client, "CUDA_VISIBLE_DEVICES": devices}
    try:
        start_mps(own)
    except SharingError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        yield client
    finally:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([MPS_CONTROL], env=own, input=b"quit\n", timeout=60, check=False)
        if logs is not None:
            keep_logs(folder, logs)
        shutil.rmtree(folder, ignore_errors=True)


def keep_logs(folder: str, logs: str) -> None:
    """Adds what MPS logged to the files in `logs`."""
    for name in ("control.log", "server.log"):
        with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb") as log:
            with open(os.path.join(logs, f"mps-{name}"), "ab") as kept:
                shutil.copyfileobj(log, kept)


@contextlib.contextmanager
def shared_envs(
    mode: str, gpu: str, instances: Optional[str], n: int, logs: str
) -> Iterator[List[Dict[str, str]]]:
    """The environments of `n` pipelines that run at the same time in this mode. What MPS
    logs goes to the folder `logs`."""
    base = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if mode == "mps":
        with mps_daemon(gpu, logs) as client:
            yield [{**base, **client, "CUDA_VISIBLE_DEVICES": "0"} for _ in range(n)]
        return
    devices = [gpu] * n
    if PROFILE.match(mode):
        devices = choose_instances(instances, gpu, mode, n)
    yield [{**base, "CUDA_VISIBLE_DEVICES": device} for device in devices]
