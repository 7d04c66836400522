# SPDX-License-Identifier: Apache-2.0
"""Says why a followed process ended without a result. Does not import PyTorch.

The reason is one line in the file `failure` of the run's folder, which the process that ends last
writes: usually the one that the user started.
"""
import atexit
import os
import re
import sys
import traceback

OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "colloc_")
LONGEST = 400  # characters of a reason, chosen: a few lines of a terminal


class _Ending:
    def __init__(self):
        self.folder = None
        self.error = None
        self.exit = None  # the script's last call of sys.exit, an _Exit
        self.progress = None  # a function that returns why an orderly end is no result


class _Exit:
    """A call of sys.exit, and the script's own frame where it was then.

    A script that catches SystemExit goes on, so that its frame moves. So it does in a `finally` of
    the script's outermost code: such an exit is then not named.
    """

    def __init__(self, reason, frame):
        self.reason, self.frame, self.place = reason, frame, frame and frame.f_lasti

    def reason_of_end(self):
        return self.reason if self.frame and self.frame.f_lasti == self.place else None


_ENDING = _Ending()


def _is_users(path):
    """Is it a file of the user's own code?"""
    return (
        "site-packages" not in path
        and "dist-packages" not in path
        and not path.startswith((sys.base_prefix + "/lib", "<"))
        and not os.path.abspath(path).startswith(OURS)
    )


def _where(frames):
    """The innermost place in the user's own code."""
    frames = [frame for frame in frames if _is_users(frame.filename)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""


def _advice(error):
    """Advice about a common error."""
    if isinstance(error, ModuleNotFoundError):
        return f" (the Python that runs the script, {sys.executable}, does not have this package)"
    if isinstance(error, EOFError):
        return " (the script reads standard input, which is closed)"
    text = f"{type(error).__name__} {error}"
    signs = ("URLError", "ConnectionError", "resolve", "Network is unreachable", "offline mode")
    if any(sign in text for sign in signs) or "HTTP" in text:
        return " (the script wants the network, which is closed: download its data before)"
    return ""


class CannotFollow(RuntimeError):
    """An error that is not the script's.

    own: why colloc cannot go on
    advice: what the user can do
    """

    def __init__(self, own, advice):
        super().__init__(advice)
        self._colloc_own = own


def theirs(error):
    """Marks an error that colloc raises in place of a library, which would raise it, too."""
    error._colloc_is_theirs = True
    return error


# Errors that no value causes: those of the script itself.
NOT_BY_VALUES = (NameError, ImportError, SyntaxError, AttributeError, TypeError)

# What PyTorch says where the pretended GPU is in its way, and why colloc cannot go on then.
SIGNS = [
    (r"Tried to instantiate dummy base class (\w+)", "{} is of PyTorch with CUDA alone"),
    (r"\bmeta (?:\w+ )?[Tt]ensor|\bMeta tensors?\b|'meta'", "it needs values of the tensors"),
    (r"\b[Ff]ake ?[Tt]ensors?\b", "it needs values of the tensors"),
    (r"no rule registered for H\w+ (\w+)", "{} has no rule of its sizes here"),
]

_values_read = set()  # places in the script where a value was read that only a GPU computes


def note_value_read():
    """A value is read that is not known. Notes the place in the user's own code."""
    frame = sys._getframe(1)
    while frame and not _is_users(frame.f_code.co_filename):
        frame = frame.f_back
    if frame:
        _values_read.add((frame.f_code.co_filename, frame.f_lineno))


def _is_ours(frame):
    return os.path.abspath(frame.filename).startswith(OURS)


def _own_of(error, text, place, innermost):
    """Why the error is the pretended GPU's; None: it is the script's.

    innermost: the frame that raised it, or called the function without frames that did
    """
    own = getattr(error, "_colloc_own", None)  # guess.py
    if own:
        return own
    if innermost and _is_ours(innermost) and not getattr(error, "_colloc_is_theirs", False):
        return f"the error is in colloc's {os.path.basename(innermost.filename)}"
    if type(error).__module__ == "torch._subclasses.fake_tensor":
        return "it needs values of the tensors"
    for pattern, reason in SIGNS:
        match = re.search(pattern, text)
        if match:
            return reason.format(*match.groups())
    if place in _values_read and not isinstance(error, NOT_BY_VALUES):
        return "it depends on a value that the GPU computes"
    return None


def reason_of(error):
    """One line about an exception."""
    text = " ".join(str(error).split())[:LONGEST]
    frames = traceback.extract_tb(error.__traceback__)
    place = _where(frames)
    users = [(f.filename, f.lineno) for f in frames if _is_users(f.filename)]
    own = _own_of(error, text, users[-1] if users else None, frames[-1] if frames else None)
    if own:
        kind = "" if isinstance(error, CannotFollow) else f"{type(error).__name__}: "
        return (
            f"{place}colloc cannot follow this line without a GPU, where it may well run: {own}: "
            f"{kind}{text}"
        )
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
        left = _ENDING.exit and _ENDING.exit.reason_of_end()
        reason = _ENDING.progress()
        if reason is not None:
            write(": ".join(filter(None, (left, reason))))


def _remember(original):
    def hook(kind, error, trace):
        _ENDING.error = error
        original(kind, error, trace)

    return hook


def _is_script(frame):
    return frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__"


def _script_frame(frame):
    """The frame of the script's outermost code; None: in a thread, which ends alone."""
    while frame and not _is_script(frame):
        frame = frame.f_back
    return frame


def _remember_exit(original):
    def leave(status=None):
        if status:
            text = f"sys.exit: {status}" if isinstance(status, str) else f"sys.exit({status})"
            place = _where(traceback.extract_stack()[:-1])
            _ENDING.exit = _Exit(place + text, _script_frame(sys._getframe(1)))
        original(status)

    return leave


def watch(folder):
    """From now on the end of this process leaves a reason in the folder."""
    _ENDING.folder, _ENDING.pid = folder, os.getpid()
    sys.excepthook = _remember(sys.excepthook)
    sys.exit = _remember_exit(sys.exit)
    atexit.register(_at_exit)


def explain_end_by(progress):
    """progress: returns why this process has no result, when it ends without an error; None: it has
    one
    """
    _ENDING.progress = progress
