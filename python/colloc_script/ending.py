# SPDX-License-Identifier: Apache-2.0
"""Says why a followed process ended without a result. Does not import PyTorch.

The reason is one line in the file `failure` of the run's folder, which the process that ends last
writes: usually the one that the user started.
"""
import atexit
import os
import sys
import traceback

OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "colloc_")
LONGEST = 400  # characters of a reason, chosen: a few lines of a terminal


class _Ending:
    def __init__(self):
        self.folder = None
        self.error = None
        self.exit = None  # why the script itself called sys.exit
        self.progress = None  # a function that returns why an orderly end is no result


_ENDING = _Ending()


def _where(frames):
    """The innermost place in the user's own code."""
    frames = [
        frame
        for frame in frames
        if "site-packages" not in frame.filename
        and "dist-packages" not in frame.filename
        and not frame.filename.startswith((sys.base_prefix + "/lib", "<"))
        and not frame.filename.startswith(OURS)
    ]
    return f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""


def _advice(error):
    """Advice about a common error."""
    if isinstance(error, ModuleNotFoundError):
        return " (the Python that runs the script does not have this package)"
    if isinstance(error, EOFError):
        return " (the script reads standard input, which is closed)"
    text = f"{type(error).__name__} {error}"
    signs = ("URLError", "ConnectionError", "resolve", "Network is unreachable", "offline mode")
    if any(sign in text for sign in signs) or "HTTP" in text:
        return " (the script wants the network, which is closed: download its data before)"
    return ""


def reason_of(error):
    """One line about an exception."""
    text = " ".join(str(error).split())[:LONGEST]
    place = _where(traceback.extract_tb(error.__traceback__))
    return f"{place}{type(error).__name__}: {text}{_advice(error)}"


def write(reason):
    """Leaves the reason for colloc; a later one replaces it."""
    path = os.path.join(_ENDING.folder, "failure")
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8", errors="replace") as file:
        file.write(reason.replace("\n", " ") + "\n")
    os.replace(f"{path}.{os.getpid()}", path)


def _at_exit():
    if os.getpid() != _ENDING.pid:
        return
    if _ENDING.error is not None:
        write(reason_of(_ENDING.error))
    elif _ENDING.progress is not None:
        write(": ".join(filter(None, (_ENDING.exit, _ENDING.progress()))))


def _remember(original):
    def hook(kind, error, trace):
        _ENDING.error = error
        original(kind, error, trace)

    return hook


def _remember_exit(original):
    def leave(status=None):
        if status:
            text = f"sys.exit: {status}" if isinstance(status, str) else f"sys.exit({status})"
            _ENDING.exit = _where(traceback.extract_stack()[:-1]) + text
        original(status)

    return leave


def watch(folder):
    """From now on the end of this process leaves a reason in the folder."""
    _ENDING.folder, _ENDING.pid = folder, os.getpid()
    sys.excepthook = _remember(sys.excepthook)
    sys.exit = _remember_exit(sys.exit)
    atexit.register(_at_exit)


def explain_end_by(progress):
    """progress: returns why this process has no result, when it ends without an error"""
    _ENDING.progress = progress
