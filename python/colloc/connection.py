# SPDX-License-Identifier: Apache-2.0
"""HTTP over a Unix socket, and the places where the socket of collocd may be."""

from __future__ import annotations

import http.client
import os
import socket
import stat
from typing import List, Optional


class Connection(http.client.HTTPConnection):
    """An HTTP connection over the Unix socket at `path`; `timeout`: seconds of each operation."""

    def __init__(self, path: str, timeout: float):
        super().__init__("colloc", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self.path)
        except OSError as error:
            self.close()
            error.filename = self.path
            raise


def default_places() -> List[str]:
    """The sockets to try, in this order: of root's daemon, then of this user's."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return [
        "/run/colloc/collocd.sock",
        *([f"{runtime}/colloc/collocd.sock"] if runtime else []),
        f"/tmp/colloc-{os.geteuid()}/collocd.sock",
    ]


def is_trusted(path: str) -> bool:
    """Whether there is a socket that only root or this user can have created."""
    try:
        folder, status = os.stat(os.path.dirname(path)), os.stat(path)
    except OSError:
        return False
    owners = (0, os.geteuid())
    return (
        folder.st_uid in owners
        and not folder.st_mode & stat.S_IWOTH
        and stat.S_ISSOCK(status.st_mode)
        and status.st_uid in owners
    )


def answers(path: str) -> bool:
    """Whether a daemon listens there."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def find_socket(path: Optional[str] = None) -> str:
    """The socket of the daemon.

    path: returned unchanged, whether or not a daemon listens there. None: COLLOC_SOCKET if it is
        set, otherwise the first of `default_places` where a daemon listens.

    Returns its path. Raises ConnectionRefusedError if no daemon listens at any default place.
    """
    path = path or os.environ.get("COLLOC_SOCKET")
    if path:
        return path
    places = default_places()
    for place in places:
        if is_trusted(place) and answers(place):
            return place
    raise ConnectionRefusedError(
        f"cannot reach collocd at {' or '.join(places)}: start it with `colloc serve`, or give "
        "Client(socket=PATH) or COLLOC_SOCKET"
    )
