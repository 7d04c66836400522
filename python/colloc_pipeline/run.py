# SPDX-License-Identifier: Apache-2.0
"""Runs pipelines, several at the same time, and notes when each request was where.

Each process of a stage has a thread here, which takes a batch from the stage's queue, hands it to
the process, and offers what comes back to the stages that follow. Another thread of each pipeline
lets requests in: at random times of the given rate, or as soon as one of those under way is done.
The first `warmup` requests are not counted.
"""

import os
import random
import threading
import time
from typing import Any, Dict, List, Optional, Tuple

from colloc_pipeline.recording import Recording
from colloc_pipeline.spec import Pipeline, Stage
from colloc_pipeline.stage import StageFailed, StageProcess, python_words
from colloc_pipeline.stage_queue import Entry, StageQueue
from colloc_pipeline.statistics import Visit

PRETEND = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "workloads", "pipelines", "pretend.py"
)


class Settings:
    """What holds for all pipelines of a run."""

    def __init__(self, python: str, pretend: bool, limit_s: float, logs: str):
        self.python, self.pretend, self.limit_s, self.logs = python, pretend, limit_s, logs


def start_stage(
    pipeline: Pipeline, stage: Stage, number: int, env: Dict[str, str], settings: Settings
) -> StageProcess:
    """A process of a stage, which still loads. Raises StageFailed if it cannot be started."""
    words = python_words(stage.program, settings.python)
    if settings.pretend:
        words = [settings.python, PRETEND, str(stage.pretend_ms), str(stage.pretend_item_ms)]
    path = os.path.join(settings.logs, f"{pipeline.name}-{stage.name}-{number}")
    own = dict(env)
    if stage.device == "host":
        own["CUDA_VISIBLE_DEVICES"] = ""
        own.pop("CUDA_MPS_PIPE_DIRECTORY", None)
    try:
        with open(path, "ab") as log:
            return StageProcess(words, pipeline.folder, own, log, stage.cpus)
    except StageFailed as error:
        raise StageFailed(f"{pipeline.name}: {stage.name}: {error}") from None


class Run:
    """One pipeline on its way."""

    def __init__(self, pipeline: Pipeline, env: Dict[str, str], settings: Settings):
        self.pipeline, self.env, self.settings = pipeline, env, settings
        self.queues = {stage.name: StageQueue(stage.queue) for stage in pipeline.stages}
        self.visits: Dict[str, List[Visit]] = {stage.name: [] for stage in pipeline.stages}
        self.batches: Dict[str, List[Tuple[float, float, int]]] = {n: [] for n in self.queues}
        self.begun: Dict[int, float] = {}
        self.ended: Dict[int, float] = {}
        self.use: Dict[str, List[Dict[str, Any]]] = {name: [] for name in self.queues}
        self.error: Optional[str] = None
        self._left = pipeline.requests + pipeline.warmup
        self._parts: Dict[Tuple[str, int], Tuple[int, Dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._room = threading.Semaphore(pipeline.in_flight)
        self._threads: List[threading.Thread] = []
        self.processes: List[Tuple[Stage, StageProcess]] = []

    def start_processes(self) -> None:
        """Starts the processes of all stages. After StageFailed, `close` ends the running ones."""
        for stage in self.pipeline.stages:
            for number in range(stage.processes):
                process = start_stage(self.pipeline, stage, number, self.env, self.settings)
                self.processes.append((stage, process))

    def wait_ready(self) -> None:
        """Returns once all processes have loaded."""
        for stage, process in self.processes:
            try:
                process.wait_ready()
            except StageFailed as error:
                raise StageFailed(f"{self.pipeline.name}: {stage.name}: {error}") from None

    # ---- requests ----

    def _fail(self, error: str) -> None:
        with self._lock:
            self.error = self.error or error
        self._stop()

    def _stop(self) -> None:
        self._is_over.set()
        for queue in self.queues.values():
            queue.close()
        self._room.release()

    def _offer(self, stage: Stage, request: int, item: Dict[str, Any]) -> None:
        """One part of a request for a stage; with the last part it enters the queue."""
        with self._lock:
            n, merged = self._parts.pop((stage.name, request), (0, {}))
            merged = {**merged, **item}
            if n + 1 < len(stage.after):
                self._parts[(stage.name, request)] = (n + 1, merged)
                return
        self.queues[stage.name].put(Entry(request, merged))

    def _end_request(self, request: int, n_last: int) -> None:
        with self._lock:
            n, _ = self._parts.pop(("", request), (0, {}))
            if n + 1 < n_last:
                self._parts[("", request)] = (n + 1, {})
                return
            if request >= 0:
                self.ended[request] = time.monotonic()
            self._left -= 1
            is_last = self._left == 0
        self._room.release()
        if is_last:
            self._stop()

    def _let_in(self) -> None:
        """The thread that lets requests in. Those of the warm-up have negative numbers."""
        pipeline = self.pipeline
        chance = random.Random(1)  # the same arrivals in every run
        due = time.monotonic()
        for request in range(-pipeline.warmup, pipeline.requests):
            if pipeline.rate is not None:
                due += chance.expovariate(pipeline.rate)
                self._is_over.wait(max(0.0, due - time.monotonic()))
            else:
                self._room.acquire()  # pylint: disable=consider-using-with
            if self._is_over.is_set():
                return
            if request >= 0:
                self.begun[request] = time.monotonic()
            for stage in pipeline.first():
                self._offer(stage, request, {"id": request})

    def _note_batch(self, stage: Stage, batch: List[Entry], taken: float, done: float) -> None:
        counted = [entry for entry in batch if entry.request >= 0]
        with self._lock:
            if counted:
                self.batches[stage.name].append((taken, done, len(batch)))
            for entry in counted:
                self.visits[stage.name].append(
                    Visit(entry.request, entry.offered, entry.entered, taken, done)
                )

    def _serve(self, stage: Stage, process: StageProcess) -> None:
        """The thread of one process."""
        followers = self.pipeline.followers(stage.name)
        n_last = len(self.pipeline.last())
        try:
            while True:
                batch = self.queues[stage.name].take(stage.batch, stage.wait_ms / 1e3)
                if not batch:
                    break
                taken = time.monotonic()
                items = process.process_batch([entry.item for entry in batch])
                self._note_batch(stage, batch, taken, time.monotonic())
                for item in items:
                    for follower in followers:
                        self._offer(follower, item["id"], item)
                    if not followers:
                        self._end_request(item["id"], n_last)
        except StageFailed as error:
            if not self._is_over.is_set():
                self._fail(f"{self.pipeline.name}: {stage.name}: {error}")

    # ---- life ----

    def start(self) -> None:
        """Lets the first request in."""
        targets = [(self._let_in, ())] + [(self._serve, each) for each in self.processes]
        for target, arguments in targets:
            thread = threading.Thread(target=target, args=arguments, daemon=True)
            thread.start()
            self._threads.append(thread)

    def wait(self, limit_s: float) -> None:
        """Returns when all requests are done, or at the time limit."""
        if not self._is_over.wait(limit_s):
            limit = self.settings.limit_s
            self._fail(f"{self.pipeline.name}: not done after {limit:g} s")

    def close(self) -> None:
        """Ends all processes, and notes what they used."""
        self._stop()
        if self.error:
            for _, process in self.processes:
                process.kill()
        for thread in self._threads:
            thread.join(self.settings.limit_s)
        for stage, process in self.processes:
            self.use[stage.name].append(process.close())


def run_together(
    pipelines: List[Pipeline], envs: List[Dict[str, str]], settings: Settings, recording: Recording
) -> List[Run]:
    """Runs the pipelines at the same time; an environment for each. The recording begins once all
    have loaded. If a process cannot be started or does not load, none of the pipelines runs."""
    runs = [Run(pipeline, env, settings) for pipeline, env in zip(pipelines, envs)]
    try:
        for run in runs:
            run.start_processes()
        for run in runs:
            run.wait_ready()
        recording.start()
        for run in runs:
            run.start()
        end = time.monotonic() + settings.limit_s
        for run in runs:
            run.wait(max(0.0, end - time.monotonic()))
    except StageFailed as error:
        for run in runs:
            run.error = run.error or f"not run: {error}"
    except (KeyboardInterrupt, SystemExit):
        for run in runs:
            run.error = "interrupted"  # its processes are killed, they need not finish
        raise
    finally:
        recording.close()
        for run in runs:
            run.close()
    return runs
