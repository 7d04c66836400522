#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training that writes when each of its steps ended, for promise_trial.py.

    promise_training.py WORKLOADS MODEL OUT [STEPS]

MODEL is one of WORKLOADS/models.py, trained on one batch that stays on the GPU; each step is waited
for. Without STEPS it trains until it is ended. OUT gets a line for every quarter of a second: the
ends of the steps, in seconds since 1970. Commands on its input do the same as for the worker that
scripts/measure-sharing uses: with MODEL "-" a line "load MODEL" or "run SECONDS" is answered by a
line, so that one process serves several runs.

"dry/RATE" is no model: RATE steps a second, which it reports itself, without a GPU.
"""
import ctypes
import json
import sys
import time

FLUSH_S = 0.25
WARM_UP_STEPS = 8


def dry_step(rate):
    report = getattr(ctypes.CDLL(None), "colloc_step", lambda steps: None)

    def step():
        time.sleep(1 / rate)
        report(1)

    return step


def make_step(workloads, model):
    if model.startswith("dry/"):
        return dry_step(float(model[4:]))
    sys.path.insert(0, workloads)
    import models
    import torch

    step = models.make_step(model)

    def whole():
        step()
        torch.cuda.synchronize()

    for _ in range(WARM_UP_STEPS):
        whole()
    return whole


def train(step, out, steps, end=None):
    done, ends, flushed = 0, [], time.time()
    while (steps is None or done < steps) and (end is None or time.time() < end):
        step()
        done += 1
        ends.append(round(time.time(), 4))
        if out and ends[-1] - flushed > FLUSH_S:
            flushed = ends[-1]
            out.write(" ".join(f"{t:.4f}" for t in ends) + "\n")
            out.flush()
            ends = []
    if out:
        out.write(" ".join(f"{t:.4f}" for t in ends) + "\n")
        out.flush()
    return done


def serve(workloads):
    step = None
    for line in sys.stdin:
        word, _, text = line.strip().partition(" ")
        if word == "load":
            step = make_step(workloads, text)
            answer = {"ready": text}
        else:
            begin = time.time()
            done = train(step, None, None, begin + float(text))
            answer = {"steps": done, "per_s": done / (time.time() - begin)}
        print(json.dumps(answer), flush=True)


def main(workloads, model, path=None, steps=None):
    if model == "-":
        return serve(workloads)
    with open(path, "w") as out:
        train(make_step(workloads, model), out, int(steps) if steps else None)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
