# SPDX-License-Identifier: Apache-2.0
"""Power and activity of a GPU while pipelines run: `colloc record` samples it beside them.

It is started when all stages have loaded, and waited for: the first sample is at the first
request, the last one after the last.
"""

import contextlib
import csv
import os
import signal
import subprocess
import time
from typing import Dict, List, Optional

PERIOD = "200ms"
START_S = 20.0  # chosen: NVML takes seconds to start on some hosts


class Recording:
    """Samples one GPU until it is closed. Without `colloc` or a GPU it records nothing."""

    def __init__(self, gpu: str, path: str):
        self.path, self.gpu = path, gpu
        self.process: Optional[subprocess.Popen] = None

    def start(self) -> None:
        """Returns when it samples, or when it will not."""
        program = os.environ.get("COLLOC_PROGRAM", "colloc")
        words = ["record", f"--interval={PERIOD}", f"--gpus={self.gpu}", f"--output={self.path}"]
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)  # of an earlier bench
        try:
            self.process = subprocess.Popen(
                [program, *words, "--summary=/dev/null", "--", "sleep", "100000"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return
        end = time.monotonic() + START_S
        while not has_begun(self.path) and time.monotonic() < end:
            if self.process.poll() is not None:
                return
            time.sleep(0.05)

    def close(self) -> List[Dict[str, str]]:
        """Ends it. The samples."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return read_samples(self.path)


def has_begun(path: str) -> bool:
    """Is the first line there? It is written once the GPUs are known."""
    return os.path.exists(path) and os.path.getsize(path) > 0


def read_samples(path: str) -> List[Dict[str, str]]:
    """The rows of a file of `colloc record`. None when there is no file."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError:
        return []


def read_number(row: Dict[str, str], key: str) -> Optional[float]:
    """A value of a sample; None: unknown."""
    try:
        return float(row.get(key) or "")
    except ValueError:
        return None


def summarise(samples: List[Dict[str, str]]) -> Dict[str, Optional[float]]:
    """Energy between the first sample and the last, mean power and SM activity; None: not known."""
    found: Dict[str, Optional[float]] = {"power_w": None, "smact": None, "energy_j": None}
    smact = [value for value in (read_number(row, "smact") for row in samples) if value is not None]
    if smact:
        found["smact"] = sum(smact) / len(smact)
    energies = [
        (time_s, energy_j)
        for time_s, energy_j in (
            (read_number(row, "time_s"), read_number(row, "energy_j")) for row in samples
        )
        if time_s is not None and energy_j is not None
    ]  # not that of the last row, if the recorder was ended within it
    if len(energies) < 2:
        return found
    seconds, energy_j = (energies[-1][i] - energies[0][i] for i in range(2))
    found["energy_j"] = energy_j
    found["power_w"] = energy_j / seconds if seconds > 0 else None
    return found
