# SPDX-License-Identifier: Apache-2.0
"""What the studies on real GPUs share: the machine they run on, collocd, and their command line.

    nvidia_smi("index")                     ["0", "1"]: a line for each GPU
    wait_for_daemon(programs, socket, process)
    run_action(__doc__, {"draw": draw})     calls draw(FOLDER, REPORT) for "draw FOLDER REPORT"
"""
import inspect
import os
import subprocess
import sys
import time
from typing import Callable, Dict, List

DAEMON_STARTS_S = 20  # chosen: ten times what a start takes


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
