# SPDX-License-Identifier: Apache-2.0
"""Sends points to a bridge from a thread, so that nothing that measures waits for a server."""

from __future__ import annotations

import collections
import sys
import threading
import time
from typing import Deque, List, Sequence

from colloc.tracking.bridge import Bridge, Point, Refused

KEPT_MAX = 20000  # points, while a server does not answer; the oldest make room. Chosen: 3 hours
RETRY_S, RETRY_MAX_S = 1.0, 60.0  # chosen
BATCH_MAX = 1000


def report(text: str) -> None:
    """A line for the user."""
    print(f"colloc: {text}", file=sys.stderr, flush=True)


class Sender:
    """Takes points at any time, and sends them in order until it is closed."""

    def __init__(self, bridge: Bridge):
        self.bridge = bridge
        self.waiting: Deque[Point] = collections.deque(maxlen=KEPT_MAX)
        self.change = threading.Condition()
        self.is_closing, self.end = False, float("inf")
        self.reported = ""
        self.thread = threading.Thread(target=self._run, name=bridge.name, daemon=True)
        self.thread.start()

    def add(self, points: Sequence[Point]) -> None:
        """Queues points."""
        with self.change:
            self.waiting.extend(points)
            self.change.notify()

    def close(self, limit_s: float) -> None:
        """Sends the rest, for at most this long."""
        with self.change:
            self.is_closing, self.end = True, time.monotonic() + limit_s
            self.change.notify()
        self.thread.join(limit_s)

    def _report(self, text: str) -> None:
        """Once for the same text."""
        if text != self.reported:
            report(f"{self.bridge.name}: {text}")
        self.reported = text

    def _take(self) -> List[Point]:
        """The oldest points, once there are any; none: closed, and all are sent."""
        with self.change:
            self.change.wait_for(lambda: self.waiting or self.is_closing)
            return [self.waiting.popleft() for _ in range(min(BATCH_MAX, len(self.waiting)))]

    def _send(self, points: List[Point]) -> None:
        """Until they are taken or refused, or the time is up."""
        pause_s = RETRY_S
        while True:
            try:
                self.bridge.send(points)
                self.reported = ""
                return
            except Refused as error:
                self._report(f"not sent: {error}")
                return
            except OSError as error:
                self._report(f"{error}; trying again")
            except Exception as error:  # its text may hold a secret
                self._report(f"not sent: {type(error).__name__}")
                return
            with self.change:
                if self.is_closing and time.monotonic() + pause_s > self.end:
                    return
                self.change.wait_for(lambda: self.is_closing, pause_s)
            if self.is_closing:
                time.sleep(min(pause_s, RETRY_S))
            pause_s = min(2 * pause_s, RETRY_MAX_S)

    def _run(self) -> None:
        while True:
            points = self._take()
            if not points:
                break
            self._send(points)
        try:
            self.bridge.close()
        except Exception as error:  # of a package
            self._report(str(error))
