# SPDX-License-Identifier: Apache-2.0
"""The supervisor of one GPU.

It gives runs to workers as memory allows, samples the driver, and writes a row for each ended run.
"""
import json
import os
import select
import signal
import time

from . import worker
from .names import model_key
from .plan import CONTEXT_BYTES, reserve_bytes

MIB = 1 << 20
PERIOD_SECONDS = 0.03
RUN_SECONDS = 40
MPS = "CUDA_MPS_PIPE_DIRECTORY" in os.environ
LOOK_AHEAD = 6  # a large run at the head of the queue does not hold up small ones for long


class Worker:
    """A process that trains, and the state of its current run."""

    def __init__(self, device, others, writer):
        self.out, child_out = os.pipe()
        child_back, self.back = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                for other in others:
                    os.close(other.out)
                    os.close(other.back)
                os.close(self.out)
                os.close(self.back)
                worker.work(device, child_out, child_back, RUN_SECONDS, writer)
            finally:
                os._exit(1)
        os.close(child_out)
        os.close(child_back)
        self.runs, self.buffer, self.row = 0, b"", None
        self.told = False  # the driver has reported memory of this process

    def say(self, message):
        os.write(self.back, json.dumps(message).encode() + b"\n")

    def begin(self, row, limit_bytes, reserved, neighbours, first_try):
        self.reserved = reserved
        self.row, self.limit, self.neighbours, self.first_try = (
            row,
            limit_bytes,
            neighbours,
            first_try,
        )
        self.driver_peak = self.driver_end = 0
        self.first, self.steady_at, self.activity = None, None, {}
        self.runs += 1
        self.observed = row["alone"] or (self.runs == 1 and not MPS)
        self.say({"row": row, "limit_bytes": limit_bytes, "observed": self.observed})

    def close(self):
        os.close(self.out)
        os.close(self.back)
        _, status = os.waitpid(self.pid, 0)
        return status

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.close()


class Supervisor:
    def __init__(self, index, gpu, rows, measured, writer, options):
        self.index, self.gpu, self.writer, self.options = index, gpu, writer, options
        self.beside = [row for row in rows if not row["alone"]]
        self.alone = [row for row in rows if row["alone"]]
        self.measured = measured  # (batch, bytes) of a model's runs
        self.retries = []
        self.workers = []
        self.idle_bytes = gpu.used_bytes() or 0

    # --- starting

    def _busy(self):
        return [w for w in self.workers if w.row]

    def _budget(self):
        return int(0.95 * (self.gpu.total_bytes or 1 << 40)) - CONTEXT_BYTES * self.options.at_once

    def _reserve(self, row):
        return reserve_bytes(row, self.measured.get(model_key(row), []))

    def _begin(self, row, first_try=True):
        idle = next((w for w in self.workers if not w.row), None)
        if not idle:
            idle = Worker(self.options.device, self.workers, self.writer)
            self.workers.append(idle)
        limit = self.options.limit_bytes if first_try else self._budget()
        idle.begin(row, limit, self._reserve(row), len(self._busy()), first_try)

    def _fits(self, row):
        busy = self._busy()
        taken = sum(w.reserved for w in busy)
        return len(busy) < self.options.at_once and (
            not busy or taken + self._reserve(row) <= self._budget()
        )

    def _left(self):
        return self.options.deadline - time.monotonic()

    def _begin_what_fits(self):
        if self._left() < 4:
            return
        if self.alone and (not self.beside or self._left() < self.options.alone_seconds):
            if not self._busy():
                self._begin(self.alone.pop(0))
            return
        for row in self.beside[:LOOK_AHEAD]:
            if self._fits(row):
                self.beside.remove(row)
                self._begin(row)
        if self.retries and not self._busy():
            self._begin(self.retries.pop(0), first_try=False)

    # --- watching

    def _sample(self):
        """Only the memory of this run: a process that made earlier runs holds more."""
        observed = [w for w in self._busy() if w.observed]
        memory = self.gpu.memory_of_processes() if observed else {}
        for w in observed:
            now = memory.get(w.pid, 0)
            w.told |= now > 0
            if not w.told and len(self.workers) == 1 and self.gpu.total_bytes:
                now = max(0, self.gpu.used_bytes() - self.idle_bytes)
            w.driver_peak = max(w.driver_peak, now)
            w.driver_end = now or w.driver_end

    def _on_message(self, w, message):
        event = message.pop("event")
        if event == "steady":
            w.steady_at, w.first = time.monotonic(), self.gpu.snapshot()
            w.say("go")
        elif event == "measure":
            if w.first:
                w.activity = self.gpu.activity(w.first, self.gpu.snapshot())
                w.activity["observed_s"] = round(time.monotonic() - w.steady_at, 3)
            self._sample()
            w.say("go")
        else:
            self._finish(w, message)

    def _read(self, w):
        data = os.read(w.out, 1 << 20)
        w.buffer += data
        *lines, w.buffer = w.buffer.split(b"\n")
        for text in lines:
            self._on_message(w, json.loads(text))
        if not data:
            self._on_death(w)

    def _on_death(self, w):
        self.workers.remove(w)
        status = w.close()
        if w.row:
            timed_out = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
            self._finish(
                w, {"status": "timeout" if timed_out else "died", "error": f"wait status {status}"}
            )

    def _finish(self, w, result):
        row = w.row
        if result["status"] == "oom" and w.neighbours and w.first_try:
            self.retries.append(row)
        if result["status"] == "ok":
            self.measured.setdefault(model_key(row), []).append(
                (row["batch"], result.get("reserved_mib", 0) * MIB)
            )
        self.writer.run(
            {
                **row,
                "gpu_index": self.index,
                "neighbours": w.neighbours,
                "limit_mib": w.limit // MIB,
                "first_try": w.first_try,
                "driver_mib": w.driver_peak / MIB,
                "driver_end_mib": w.driver_end / MIB,
                "told_by_driver": w.told,
                "mps": MPS,
                **w.activity,
                **result,
            }
        )
        w.row = None
        spent = (
            w.runs >= self.options.runs_per_process
            or result["status"] != "ok"
            or result.get("left_over_mib", 0) > 8
        )
        if spent and w in self.workers:
            self.workers.remove(w)
            w.kill()

    def work(self):
        while self._left() > 0:
            self._begin_what_fits()
            if not self._busy():
                break
            ready, _, _ = select.select([w.out for w in self.workers], [], [], PERIOD_SECONDS)
            for out in ready:
                w = next((w for w in self.workers if w.out == out), None)
                if w:
                    self._read(w)
            self._sample()
        for w in self.workers:
            w.kill()
