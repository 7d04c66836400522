# SPDX-License-Identifier: Apache-2.0
"""Calls and their results as files, between a main program and the tasks that run its calls.

    FOLDER/                mode 0700, of one array
        call-7.pkl         ("colloc-call-1", sys.path, pickled (fn, args, kwargs))
        result-7.pkl       ("colloc-result-1", "ok" | "error", pickled value, traceback as text)
        task.json          the id of the array, once it is submitted

The outer layer has plain values only: it can be read before the function's modules can be found. A
file is written under another name, synchronised, and renamed, so a reader finds all of it or none,
whenever a process or the machine ends. Pickles run code when they are read, so a folder that others
can write is refused.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import stat
import sys
import tempfile
from types import ModuleType
from typing import Any, BinaryIO, Callable, Dict, List, NamedTuple, Optional, Tuple

CALL, RESULT = "colloc-call-1", "colloc-result-1"
PROTOCOL = 4  # of Python 3.8, the oldest that the package runs on

try:
    import cloudpickle as found_cloudpickle  # type: ignore

    cloudpickle: Optional[ModuleType] = found_cloudpickle
except ImportError:
    cloudpickle = None


class PlainPickler(pickle.Pickler):
    """pickle, but it refuses what only the main program has: a task could not find it."""

    def reducer_override(self, obj: Any) -> Any:
        """Called for every function and class, and for objects that are no plain values."""
        if callable(obj) and getattr(obj, "__module__", "") == "__main__" and has_name(obj):
            raise pickle.PicklingError(
                f"{obj.__qualname__} is defined in the main program, where a task cannot find it: "
                "install cloudpickle, or move it into a module"
            )
        return NotImplemented


def has_name(obj: Any) -> bool:
    """Whether it is a function or a class, which pickle stores by name."""
    return hasattr(obj, "__qualname__")


def dump(value: Any) -> bytes:
    """The value pickled, by cloudpickle where this Python has it. Raises PicklingError."""
    if cloudpickle:
        return cloudpickle.dumps(value, protocol=PROTOCOL)
    file = io.BytesIO()
    try:
        PlainPickler(file, PROTOCOL).dump(value)
    except pickle.PicklingError:
        raise
    except (AttributeError, TypeError) as error:  # as pickle reports lambdas, locks and files
        raise pickle.PicklingError(
            f"{error}: pickle cannot store it; cloudpickle, if installed, stores more"
        ) from error
    return file.getvalue()


def write_whole(path: str, data: bytes) -> None:
    """Creates or replaces a file at once."""
    handle, name = tempfile.mkstemp(prefix=".", dir=os.path.dirname(path))
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def check_folder(folder: str) -> None:
    """Raises PermissionError unless only this user can write into the folder."""
    os.close(open_folder(folder))


def open_folder(folder: str) -> int:
    """A descriptor of the folder, for the caller to close. Raises as check_folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        check_status(folder, os.fstat(handle))
    except BaseException:
        os.close(handle)
        raise
    return handle


def open_file(folder: str, name: str) -> BinaryIO:
    """Opens a file of a folder that only this user can write. Others who can rename the folder
    could put one of theirs in its place, so open_folder holds the folder that it has checked, and
    the file is opened in that one. A link is refused."""
    place = open_folder(folder)
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        return open(os.open(name, flags, dir_fd=place), "rb")
    finally:
        os.close(place)


def check_status(folder: str, status: os.stat_result) -> None:
    """Raises PermissionError unless only this user can write into what has this status."""
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{folder}: other users can write there, so it is not read")


def call_path(folder: str, index: int) -> str:
    """The file of a call."""
    return os.path.join(folder, call_name(index))


def result_path(folder: str, index: int) -> str:
    """The file of its result."""
    return os.path.join(folder, result_name(index))


def call_name(index: int) -> str:
    """The name of the file of a call."""
    return f"call-{index}.pkl"


def result_name(index: int) -> str:
    """The name of the file of its result."""
    return f"result-{index}.pkl"


def pack_call(fn: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> bytes:
    """The contents of the file of a call. Raises PicklingError."""
    inner = dump((fn, args, kwargs))
    return pickle.dumps((CALL, [os.path.abspath(path) for path in sys.path], inner), PROTOCOL)


def read_record(folder: str, name: str, kind: str) -> Tuple[Any, ...]:
    """A file's outer layer. Raises ValueError for a file that is none."""
    with open_file(folder, name) as file:
        try:
            record = pickle.load(file)
        except Exception as error:
            raise ValueError(f"{folder}/{name}: not a whole file of colloc: {error}") from error
    if not isinstance(record, tuple) or record[:1] != (kind,):
        raise ValueError(f"{folder}/{name}: not a file of colloc, or of another version of it")
    return record[1:]


def read_call(folder: str, index: int) -> Tuple[List[str], bytes]:
    """sys.path of the main program, and what pack_call pickled."""
    search_path, inner = read_record(folder, call_name(index), CALL)
    return search_path, inner


class Result(NamedTuple):
    """What a call came to: the value, or the exception and its traceback."""

    is_error: bool
    value: Any
    traceback: str


def write_result(folder: str, index: int, is_error: bool, value: bytes, text: str) -> None:
    """Stores what a call came to; `value` is pickled."""
    record = (RESULT, "error" if is_error else "ok", value, text)
    write_whole(result_path(folder, index), pickle.dumps(record, PROTOCOL))


def read_result(folder: str, index: int) -> Optional[Result]:
    """What the call came to; None: it left no result. Raises what unpickling the value raises."""
    try:
        how, value, text = read_record(folder, result_name(index), RESULT)
    except FileNotFoundError:
        return None
    return Result(how == "error", pickle.loads(value), text)


def write_array(folder: str, array: int, indices: List[int]) -> None:
    """Stores that the folder's calls were submitted."""
    record = json.dumps({"array": array, "indices": indices}).encode()
    write_whole(os.path.join(folder, "task.json"), record)


def read_array(folder: str) -> Tuple[int, List[int]]:
    """As write_array stored it. Raises FileNotFoundError, or ValueError for another text."""
    with open_file(folder, "task.json") as file:
        record = json.load(file)
    try:
        return int(record["array"]), [int(index) for index in record["indices"]]
    except (LookupError, TypeError) as error:
        raise ValueError(f"{folder}/task.json: not a file of colloc: {error}") from error
