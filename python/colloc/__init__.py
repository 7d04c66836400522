# SPDX-License-Identifier: Apache-2.0
"""A client of collocd: submit training tasks from Python and follow them.

    import colloc

    client = colloc.Client()
    task = client.submit("#!/bin/bash\\npython train.py\\n", gpus=1, memory_mib=12288)
    ended = client.wait(task)
    print(ended["state"], client.logs(task).decode(errors="replace"))

The objects that the client returns are those of the daemon's interface (docs/protocol.md): their
keys carry their units, and None means unknown. Standard library only.
"""

from colloc.client import Client, DaemonError, Reply
from colloc.connection import Connection, find_socket

__all__ = ["Client", "Connection", "DaemonError", "Reply", "find_socket"]
