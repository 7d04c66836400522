# SPDX-License-Identifier: Apache-2.0
"""The program of a task of colloc.Executor: runs one call and stores its result.

    COLLOC_CALLS=FOLDER COLLOC_ARRAY_INDEX=7 python call_worker.py [NAME]

NAME is for people and for the daemon, which learns the GPU memory of equal command lines. An
exception goes to stderr as well and the exit status is 1, so that colloc sees how the task failed
and runs it again after a GPU memory crash; a result of an earlier attempt is removed first.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback

sys.path.pop(0)  # this folder, whose modules are of the package colloc
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from colloc import call_files  # noqa: E402  pylint: disable=wrong-import-position


def run_call(folder: str, index: int) -> bytes:
    """Calls the function. Returns the pickled value."""
    search_path, inner = call_files.read_call(folder, index)
    sys.path[:] = [*search_path, *(path for path in sys.path if path not in search_path)]
    fn, args, kwargs = pickle.loads(inner)
    return call_files.dump(fn(*args, **kwargs))


def dump_error(error: BaseException) -> bytes:
    """The exception pickled, or, where that cannot be, another one with its text."""
    try:
        data = call_files.dump(error)
        pickle.loads(data)  # many exceptions cannot be created again
        return data
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"), call_files.PROTOCOL)


def main() -> int:
    """Returns the exit status."""
    folder, index = os.environ["COLLOC_CALLS"], int(os.environ["COLLOC_ARRAY_INDEX"])
    try:
        os.unlink(call_files.result_path(folder, index))
    except FileNotFoundError:
        pass
    try:
        value = run_call(folder, index)
    except (Exception, SystemExit) as error:
        text = traceback.format_exc()
        print(text, end="", file=sys.stderr, flush=True)
        call_files.write_result(folder, index, True, dump_error(error), text)
        return 1
    call_files.write_result(folder, index, False, value, "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
