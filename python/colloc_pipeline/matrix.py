# SPDX-License-Identifier: Apache-2.0
"""How much each stage slows each other one down: a matrix.

One process of each stage works on items that it makes itself, one batch after the other: alone,
then beside each stage in turn. Before that both processes of each stage work once without being
measured: none is measured on processors and memory that it has not used yet. The slowdown is the
stage's items per second alone by those beside the other:

                beside infer   beside train
    infer               1.9            2.6
    train               1.2            2.0
"""

import threading
import time
from typing import Any, Dict, Generator, List, Tuple

from colloc_pipeline.run import Settings, start_stage
from colloc_pipeline.spec import Pipeline, Stage
from colloc_pipeline.stage import StageFailed, StageProcess

WARMUP_BATCHES = 2
ANSWER_S = 60.0  # chosen: a stage that has not answered so long after the end hangs


def work_until(
    stage: Stage, process: StageProcess, end: float, ret_rates: List[float], slot: int
) -> None:
    """The thread of one process: batches until `end`, at least one; its items per second; negative:
    it failed."""
    items, began = 0, 0.0
    try:
        for number in range(1 << 30):
            if number == WARMUP_BATCHES:
                items, began = 0, time.monotonic()
            if number > WARMUP_BATCHES and time.monotonic() >= end:
                break
            process.process_batch(process.make_items(stage.batch))
            items += stage.batch
        ret_rates[slot] = items / (time.monotonic() - began)
    except StageFailed:
        ret_rates[slot] = -1.0


def measure_rates(pairs: List[Tuple[Stage, StageProcess]], seconds: float) -> List[float]:
    """Items per second of processes that work at the same time. Raises StageFailed where one hangs:
    under MPS one client that hangs can hold up all, and then nothing more can be measured."""
    rates = [0.0] * len(pairs)
    end = time.monotonic() + seconds
    threads = [
        threading.Thread(target=work_until, args=(stage, process, end, rates, slot), daemon=True)
        for slot, (stage, process) in enumerate(pairs)
    ]
    for thread in threads:
        thread.start()
    for thread, (stage, process) in zip(threads, pairs):
        thread.join(max(0.0, end + ANSWER_S - time.monotonic()))
        if thread.is_alive():
            process.ask_where()
            raise StageFailed(
                f"{stage.name}: no answer within {ANSWER_S:.0f} s: the matrix ends here; where it "
                f"was is in {process.log}; under MPS see mps-server.log"
            )
    return rates


def measure_matrix(
    pipelines: List[Pipeline], env: Dict[str, str], settings: Settings, mode: str, seconds: float
) -> Generator[Dict[str, Any], None, None]:
    """Yields a row for each stage beside each other one, itself included, as soon as it is
    measured; only stages on the GPU where any is there. Its caller closes it, which ends the
    processes."""
    stages = [(pipeline, stage) for pipeline in pipelines for stage in pipeline.stages]
    if any(stage.device == "gpu" for _, stage in stages):
        stages = [(pipeline, stage) for pipeline, stage in stages if stage.device == "gpu"]
    started: List[Tuple[str, Stage, List[StageProcess]]] = []
    try:
        for pipeline, stage in stages:
            pair: List[StageProcess] = []
            started.append((f"{pipeline.name}/{stage.name}", stage, pair))
            for i in range(2):  # one after the other: ten that loaded at once hung under MPS
                pair.append(start_stage(pipeline, stage, 90 + i, env, settings))
                pair[-1].wait_ready()
        for _, stage, pair in started:
            measure_rates([(stage, process) for process in pair], seconds)
        alone = [measure_rates([(stage, pair[0])], seconds)[0] for _, stage, pair in started]
        for i, (name, stage, pair) in enumerate(started):
            for other_name, other, other_pair in started[i:]:
                j = [each[0] for each in started].index(other_name)
                rates = measure_rates([(stage, pair[0]), (other, other_pair[1])], seconds)
                yield make_row(mode, name, other_name, alone[i], rates[0])
                if i != j:
                    yield make_row(mode, other_name, name, alone[j], rates[1])
    finally:
        for _, _, pair in started:
            for process in pair:
                process.kill()


def make_row(mode: str, stage: str, beside: str, alone: float, rate: float) -> Dict[str, Any]:
    """One cell of the matrix."""
    is_known = alone > 0 and rate > 0
    return {
        "mode": mode,
        "stage": stage,
        "beside": beside,
        "alone_per_s": alone if alone > 0 else None,
        "beside_per_s": rate if rate > 0 else None,
        "slowdown": alone / rate if is_known else None,
    }
