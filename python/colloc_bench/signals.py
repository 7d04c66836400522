# SPDX-License-Identifier: Apache-2.0
"""Signals that end a bench, and those of children that have ended, for a loop that waits."""

import select
import signal
import socket
from typing import Any, List, Sequence

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """has_ended: a signal has asked the bench to end. Within `with` none of them kills it."""

    def __init__(self) -> None:
        self.has_ended = False
        self._wake, self._woken = socket.socketpair()
        for end in (self._wake, self._woken):
            end.setblocking(False)

    def _on_end(self, _number: int, _frame: object) -> None:
        self.has_ended = True

    def __enter__(self) -> "Signals":
        self._before = {number: signal.signal(number, self._on_end) for number in END_SIGNALS}
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: Any) -> None:
        signal.set_wakeup_fd(-1)
        for number, before in self._before.items():
            signal.signal(number, before)
        self._wake.close()
        self._woken.close()

    def wait(self, fds: Sequence[int], timeout_s: float) -> List[int]:
        """Waits until one of these can be read, a signal comes or the time is over. Returns those
        that can be read."""
        poll = select.poll()
        for fd in (*fds, self._woken.fileno()):
            poll.register(fd, select.POLLIN)
        ready = [fd for fd, _ in poll.poll(max(0.0, timeout_s) * 1000)]
        if self._woken.fileno() in ready:
            ready.remove(self._woken.fileno())
            while len(self._drain()) == 4096:
                pass
        return ready

    def _drain(self) -> bytes:
        try:
            return self._woken.recv(4096)
        except BlockingIOError:
            return b""
