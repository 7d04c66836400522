# SPDX-License-Identifier: Apache-2.0
"""Samples the GPUs of a group while its trainings run: `colloc record --pid` beside them, whose
processes are the descendants of this one."""

import json
import os
import signal
import subprocess
import tempfile
import time
from typing import Any, Dict, List, Optional

from colloc_bench.columns import cell, open_columns
from colloc_bench.text import Fault, write_atomic

POLL_S = 0.002  # chosen: a sample is at most this old when the first training starts
END_S = 60.0  # chosen: for the last sample, on a driver that answers slowly
HOST = (
    "command_cpu_s",
    "command_host_mem_mib",
    "command_disk_read_mib",
    "command_disk_written_mib",
)


def colloc_program() -> str:
    """The colloc that started this program."""
    return os.environ.get("COLLOC_PROGRAM", "colloc")


class Recorder:
    """Records until `close`. Without GPUs it has no samples. Raises Fault."""

    def __init__(self, gpus: str, period_s: float, path: str):
        self.path = path
        self._summary = tempfile.TemporaryFile()
        self._errors = tempfile.TemporaryFile()
        with open(path, "wb"):
            pass  # of an earlier bench
        words = [
            colloc_program(),
            "record",
            "--json",
            f"--pid={os.getpid()}",
            f"--interval={period_s * 1000:.3f}ms",
            f"--gpus={gpus}",
            f"--output={path}",
            f"--summary=/dev/fd/{self._summary.fileno()}",
        ]
        # In another session: a signal of the terminal is for this program.
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=(self._summary.fileno(),),
            start_new_session=True,
        )
        while os.path.getsize(path) == 0:
            if self._process.poll() is not None:
                raise self._fault()
            time.sleep(POLL_S)

    def _fault(self) -> Fault:
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().split("\n")
        why = lines[-1] or f"it ended with status {self._process.returncode}"
        return Fault(why[len("colloc: ") :] if why.startswith("colloc: ") else why)

    def close(self) -> List[Dict[str, Any]]:
        """Takes the last sample and ends. The GPUs that were sampled, with their energy in J.
        Raises Fault."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._summary.seek(0)
        text = self._summary.read()
        try:
            if self._process.returncode != 0 or not text:
                raise self._fault()
            return json.loads(text)["gpus"]
        finally:
            self._summary.close()
            self._errors.close()


def forget_host(path: str) -> None:
    """Empties the columns of the host's use: of tasks of the daemon, which are no descendants of
    this program, it is not known."""
    columns = open_columns(path)
    at = [columns.find(name) for name in HOST]
    lines: List[List[str]] = [columns.names]
    for row in columns.rows():
        lines.append(["" if i in at else text for i, text in enumerate(row)])
    write_atomic(path, "".join(",".join(map(cell, line)) + "\n" for line in lines))


def energy_of(gpus: List[Dict[str, Any]]) -> float:
    """The energy of all of them."""
    return sum(gpu["energy_j"] for gpu in gpus)


def name_of(gpus: List[Dict[str, Any]]) -> Optional[str]:
    """What the first one is called."""
    return gpus[0]["name"] if gpus else None
