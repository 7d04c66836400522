# SPDX-License-Identifier: Apache-2.0
"""Keeps what cuDNN answered, so that nothing is asked twice. Does not import PyTorch.

An answer holds for one kind of GPU, one driver and one version of cuDNN; each combination has a
file of JSON in the user's cache folder. Without a GPU the newest file of that kind of GPU and
version of cuDNN serves, whatever the driver was.
"""
import contextlib
import glob
import json
import os
import re
import tempfile

MOST = 100_000  # answers of a file; chosen: 20 MB, some hundred networks


def folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "colloc", "kernels")


def driver_version():
    """Of this machine, or "unknown"."""
    with contextlib.suppress(OSError), open("/sys/module/nvidia/version", encoding="ascii") as file:
        return file.read().strip()
    return "unknown"


def _plain(text):
    return re.sub(r"[^A-Za-z0-9.]+", "-", str(text))


def _is_answer(value):
    """[[bytes, ...]], or [[bytes, ...], [tried bytes, ...]]."""
    return (
        isinstance(value, list)
        and len(value) in (1, 2)
        and all(
            isinstance(part, list) and all(isinstance(number, int) for number in part)
            for part in value
        )
    )


def _read(path):
    """The answers of a file; none of one that is broken."""
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        known = json.load(file)
        if isinstance(known, dict):
            return {key: value for key, value in known.items() if _is_answer(value)}
    return {}


class Kept:
    """The answers of a kind of GPU.

    driver: None: of this kind on another machine, the newest file
    """

    def __init__(self, gpu, cudnn, driver=None):
        begin = os.path.join(folder(), f"{_plain(gpu)}_{_plain(cudnn)}_")
        if driver is None:
            found = sorted(glob.glob(glob.escape(begin) + "*.json"), key=os.path.getmtime)
            self.path = found[-1] if found else None
        else:
            self.path = f"{begin}{_plain(driver)}.json"
        self.answers = _read(self.path) if self.path else {}
        self._new = {}

    def get(self, question):
        return self.answers.get(question)

    def put(self, question, answer):
        """An answer that lacks a number, since the GPU was full, holds for this time only."""
        self.answers[question] = answer
        if not any(number is None for numbers in answer for number in numbers):
            self._new[question] = answer

    def save(self):
        """Adds the new answers to the file. What another process has added meanwhile stays."""
        if not self._new:
            return
        place = os.path.dirname(self.path)
        try:
            os.makedirs(place, mode=0o700, exist_ok=True)
            known = {**_read(self.path), **self._new}
            kept = dict(list(known.items())[-MOST:])
            with tempfile.NamedTemporaryFile("w", dir=place, delete=False) as file:
                json.dump(kept, file)
            os.replace(file.name, self.path)
        except OSError:
            return  # a cache that cannot be written is asked again
        self._new = {}
