# SPDX-License-Identifier: Apache-2.0
"""Trains several networks at the same time, one process for each.

A network is trained by one process with one thread, so that its weights do not depend on how many
are trained beside it.
"""

import multiprocessing
import time

import torch

from colloc_memnet import examples, training

REPORT_S = 0.5  # between two reports of a process's progress


def _work(feed, plan, seed, epochs_max, events):
    """One process: puts (plan's name, kind, payload) on the queue; the last kind is not "epoch"."""
    torch.set_num_threads(1)
    reported = [0.0]

    def on_epoch(progress):
        if time.monotonic() - reported[0] >= REPORT_S:
            reported[0] = time.monotonic()
            events.put((plan.name, "epoch", progress))

    try:
        events.put((plan.name, "trained", training.train(feed, plan, seed, epochs_max, on_epoch)))
    except examples.NoData as why:
        events.put((plan.name, "skipped", str(why)))
    except Exception as error:  # the parent reports it and ends the others
        events.put((plan.name, "failed", f"{type(error).__name__}: {error}"))


def train_all(feed, plans, seed, jobs, epochs_max):
    """Yields (name, kind, payload) as it happens: "epoch" with a training.Progress, "trained" with
    (text, classes), "skipped" and "failed" with the reason. Ends all processes when it is closed.
    """
    context = multiprocessing.get_context("fork")
    events = context.SimpleQueue()
    waiting, running = list(plans), {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                plan = waiting.pop(0)
                running[plan.name] = context.Process(
                    target=_work, args=(feed, plan, seed, epochs_max, events), daemon=True
                )
                running[plan.name].start()
            yield from _take_events(events, running)
    finally:
        for process in running.values():
            process.kill()


def _take_events(events, running):
    """Yields events until a process has ended, which also one that was killed does."""
    while True:
        while not events.empty():
            name, kind, payload = events.get()
            if kind != "epoch":
                running.pop(name).join()
            yield name, kind, payload
            if kind != "epoch":
                return
        dead = [name for name, process in running.items() if not process.is_alive()]
        if dead and events.empty():
            process = running.pop(dead[0])
            yield dead[0], "failed", f"its process ended with status {process.exitcode}"
            return
        multiprocessing.connection.wait(
            [events._reader, *(process.sentinel for process in running.values())]
        )
