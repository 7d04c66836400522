# SPDX-License-Identifier: Apache-2.0
"""One process of a stage, as the runner sees it: lines of JSON through its input and output.

    it prints      {"ready": true}                       when it has loaded what it needs
    it reads       {"items": [{"id": 7, ...}, ...]}      a batch
    it prints      {"items": [{"id": 7, ...}, ...]}      the same requests, with what comes of them
    it reads       {"sample": 8}                         for the matrix: make 8 items yourself
    it prints      {"items": [...]}
    it reads       the end of its input                  and prints {"end": {"gpu_memory_mib": 812}}
    it gets        SIGUSR1, when it hangs                and may write where it is to its log

What else it prints to standard output is ignored; its standard error goes to a log.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Dict, List, Optional

END_S = 20.0  # chosen: a process that has not ended by then is killed
READY_S = 600.0  # chosen: nor one that has not loaded its data by then
WHERE_S = 1.0  # chosen: one that hangs has this long to write where it is


class StageFailed(Exception):
    """A process of a stage could not be started, has ended, or has printed something else than an
    answer."""


def host_use(pid: int) -> Dict[str, Optional[float]]:
    """CPU seconds and peak memory of a process; None: not known."""
    use: Dict[str, Optional[float]] = {"cpu_s": None, "rss_peak_mib": None}
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        use["cpu_s"] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    use["rss_peak_mib"] = int(line.split()[1]) / 1024
    except (OSError, ValueError, IndexError):
        pass
    return use


class StageProcess:
    """A process of a stage. Not for several threads at a time."""

    def __init__(self, words: List[str], folder: str, env: Dict[str, str], log: Any, cpus: int):
        self.words, self.log = words, log.name
        self.end: Dict[str, Any] = {}
        cores = sorted(os.sched_getaffinity(0))

        def limit_cpus() -> None:
            if 0 < cpus < len(cores):
                os.sched_setaffinity(0, cores[:cpus])

        try:
            self.process = subprocess.Popen(
                words,
                cwd=folder,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                preexec_fn=limit_cpus,
                start_new_session=True,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StageFailed(
                f"cannot run {words[0]} in {folder}: {reason}: install it, or correct its `program`"
            ) from None

    def _read(self, key: str) -> Any:
        """The next line with this key."""
        assert self.process.stdout
        for line in self.process.stdout:
            try:
                answer = json.loads(line)
            except ValueError:
                continue
            if isinstance(answer, dict) and key in answer:
                return answer[key]
        raise StageFailed(
            f"{' '.join(self.words)} ended (status {self.process.wait()}); "
            f"its standard error is in {self.log}"
        )

    def wait_ready(self, limit_s: float = READY_S) -> None:
        """Returns when it has loaded its data."""
        is_late = threading.Event()

        def end_it() -> None:
            is_late.set()
            self.ask_where()
            self._kill_group()

        timer = threading.Timer(limit_s, end_it)
        timer.start()
        try:
            self._read("ready")
        except StageFailed:
            if not is_late.is_set():
                raise
            raise StageFailed(
                f"{' '.join(self.words)} was not ready within {limit_s:.0f} s; where it was is in "
                f"{self.log}"
            ) from None
        finally:
            timer.cancel()

    def _ask(self, question: Dict[str, Any]) -> List[Dict[str, Any]]:
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise StageFailed(f"{' '.join(self.words)} reads no more") from None
        items = self._read("items")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise StageFailed(f"{' '.join(self.words)}: its items are no list of objects")
        return items

    def process_batch(self, items: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """The items as the stage leaves them, in their order."""
        answer = self._ask({"items": items})
        if [item.get("id") for item in answer] != [item["id"] for item in items]:
            raise StageFailed(f"{' '.join(self.words)}: it answered other items than it got")
        return answer

    def make_items(self, n: int) -> List[Dict[str, Any]]:
        """Items that the stage made itself, as its input."""
        return self._ask({"sample": n})

    def close(self) -> Dict[str, Any]:
        """Ends it. What it and the kernel say of its resources."""
        use = dict(host_use(self.process.pid))
        timer = threading.Timer(END_S, self._kill_group)  # it may not see the end of its input
        timer.start()
        try:
            assert self.process.stdin
            self.process.stdin.close()
            use.update(self._read("end"))
            self.process.wait(END_S)
        except (StageFailed, OSError, subprocess.TimeoutExpired, TypeError, ValueError):
            pass
        finally:
            timer.cancel()
        self.kill()
        return use

    def ask_where(self) -> None:
        """Lets it write to its log where it is. A program that does not know SIGUSR1 ends."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.process.pid, signal.SIGUSR1)
            time.sleep(WHERE_S)

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Ends it and what it started at once."""
        self._kill_group()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def python_words(program: List[str], python: str) -> List[str]:
    """The command: a program whose name ends in .py runs by this interpreter."""
    return [python or sys.executable, *program] if program[0].endswith(".py") else program
