# SPDX-License-Identifier: Apache-2.0
"""Replays a trace on servers side by side."""

import subprocess
import threading
import time

from colloc_demo.trace import Trouble

STALLED = 4  # chosen: times the work of the trace without collocation: longer is a failure


class Replay(threading.Thread):
    """Hands the tasks of the trace to one server, each when its time has come."""

    def __init__(self, server, trace):
        super().__init__(daemon=True)
        self.server, self.trace, self.trouble, self.ended = server, trace, None, threading.Event()

    def run(self):
        self.server.began = time.monotonic()
        try:
            for number, (arrival_s, task) in enumerate(self.trace, 1):
                due = self.server.began + arrival_s / self.server.options.speed
                if self.ended.wait(max(0, due - time.monotonic())):
                    return
                self.server.submit(number, task)
        except (OSError, AssertionError, subprocess.SubprocessError) as error:
            self.trouble = f"submission ({self.server.name}): {error}"


def replay(servers, trace, display):
    """Waits until all tasks have ended."""
    replays = [Replay(server, trace) for server in servers]
    limit_s = (
        STALLED * sum(float(task["solo_s"]) for _, task in trace) / servers[0].options.speed + 30
    )
    clocks = {}
    for thread in replays:
        thread.start()
    try:
        while len(clocks) < len(servers):
            time.sleep(0.2)
            lines = []
            for server, thread in zip(servers, replays):
                progress, real_s = server.progress(), time.monotonic() - server.began
                if thread.trouble:
                    raise Trouble(thread.trouble)
                if real_s > limit_s:
                    raise Trouble(
                        f"{server.name}: after {real_s:.0f} s only {progress['done']}"
                        f" of {len(trace)} tasks have ended"
                    )
                if progress["done"] == len(trace):
                    clocks[server] = clocks.get(server) or server.result()["total_s"]
                clock_s = clocks.get(server, real_s * server.options.speed)
                lines.append(display.line(server, progress, clock_s))
            display.show(lines, last=len(clocks) == len(servers))
    finally:
        for thread in replays:
            thread.ended.set()
        for thread in replays:
            thread.join(1)
