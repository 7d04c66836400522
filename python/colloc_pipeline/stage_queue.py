# SPDX-License-Identifier: Apache-2.0
"""The queue before a stage: bounded, for several processes, in batches.

A batch is what waits when a process asks, at most `most` items. If that is fewer, the process waits
for more, but no longer than `wait_s` after the first. An item that finds no room waits with the
stage that offers it, which does nothing else meanwhile: so a slow stage slows those before it.
"""

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Deque, Dict, List


@dataclass
class Entry:
    """A request on its way to a stage. The times are those of statistics.Visit."""

    request: int
    item: Dict[str, Any] = field(default_factory=dict)
    offered: float = 0.0
    entered: float = 0.0


class StageQueue:
    """Of one stage; for any number of threads."""

    def __init__(self, size: int):
        self._size = size
        self._entries: Deque[Entry] = deque()
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, entry: Entry) -> bool:
        """Waits for room. False: the queue is closed, and the entry is lost."""
        entry.offered = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._entries) < self._size)
            if self._is_closed:
                return False
            entry.entered = time.monotonic()
            self._entries.append(entry)
            self._changed.notify_all()
            return True

    def take(self, most: int, wait_s: float) -> List[Entry]:
        """Waits for a batch. Empty: the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._entries)
            end = time.monotonic() + wait_s
            while not self._is_closed and len(self._entries) < most:
                left = end - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            if self._is_closed:
                return []
            batch = [self._entries.popleft() for _ in range(min(most, len(self._entries)))]
            self._changed.notify_all()
            return batch

    def close(self) -> None:
        """Ends all waiting. Items in the queue are lost."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
