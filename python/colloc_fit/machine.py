# SPDX-License-Identifier: Apache-2.0
"""What the studies on real GPUs share: the machine they run on, collocd, and their command line.

    nvidia_smi("index")                     ["0", "1"]: a line for each GPU
    wait_for_daemon(programs, socket, process)
    run_action(__doc__, {"draw": draw})     calls draw(FOLDER, REPORT) for "draw FOLDER REPORT"
    ForkServer(["torch"]).command()         the words before a script that starts it with PyTorch
                                            loaded
"""
import inspect
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import Callable, Dict, List, Optional, Sequence

DAEMON_STARTS_S = 20  # chosen: ten times what a start takes
LOAD_LIMIT_S = 90  # chosen: ten times what PyTorch, timm and transformers take
FORK_SERVER = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "workloads", "fork_server.py"
)


class ForkServer:
    """A process of workloads/fork_server.py, which starts scripts with `libraries` loaded.

    preloaded: the library that lets allocations wait, or None. The server has to have it, and
    counts calls for the carrier from the first one on (has_carrier): its forks are as it is.
    """

    def __init__(
        self, libraries: Sequence[str], preloaded: Optional[str] = None, has_carrier: bool = False
    ):
        self.socket = os.path.join(tempfile.mkdtemp(prefix="colloc-fork-"), "s")
        variables = {"LD_PRELOAD": preloaded} if preloaded else {}
        if preloaded and has_carrier:
            variables["COLLOC_PRELOAD_CARRIER"] = "1"
        self.process = subprocess.Popen(
            [sys.executable, FORK_SERVER, "serve", self.socket, *libraries],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )
        timer = threading.Timer(LOAD_LIMIT_S, self.process.kill)
        timer.start()
        assert self.process.stdout
        line = self.process.stdout.readline()
        timer.cancel()
        if line != "ready\n":
            raise RuntimeError("the fork server did not start")

    def command(self) -> List[str]:
        return [sys.executable, "-I", "-S", FORK_SERVER, "run", self.socket]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def nvidia_smi(*fields: str) -> List[str]:
    """The values of these fields (`nvidia-smi --help-query-gpu`), a line for each GPU, no units."""
    done = subprocess.run(
        ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def wait_for_daemon(programs: str, socket: str, process: subprocess.Popen) -> bool:
    """Waits until `process`, a collocd, answers on `socket`. False: it ended, or is silent."""
    limit = time.monotonic() + DAEMON_STARTS_S
    command = [os.path.join(programs, "colloc"), "--socket", socket, "info"]
    while subprocess.run(command, capture_output=True, check=False).returncode:
        if time.monotonic() > limit or process.poll() is not None:
            return False
    return True


def run_action(usage: str, actions: Dict[str, Callable[..., int]]) -> int:
    """Calls the action that the command line names with its other words. Returns the exit status.

    usage: printed, with status 2, when there is no such action or it takes other words
    """
    name, words = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    try:
        inspect.signature(actions[name]).bind(*words)
    except (KeyError, TypeError):
        print(usage, file=sys.stderr)
        return 2
    return actions[name](*words)
