# SPDX-License-Identifier: Apache-2.0
"""concurrent.futures over colloc: each call is a task on a GPU.

    with colloc.Executor(memory="6GiB") as e:
        for loss in e.map(train, [0.1, 0.01, 0.001]):
            print(loss)

A `map`, or the calls that are submitted within a tenth of a second, are one array: one line in
`colloc queue`, one id for `colloc cancel`, and, where no memory is given, the tasks that wait
learn it from the first that completes. Calls and results are files in a private folder
(call_files.py). Tasks outlive this process: `Executor.attach(FOLDER)` returns their futures.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import glob
import os
import shutil
import sys
import tempfile
import threading
import time
import weakref
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from colloc import call_files
from colloc.client import LIVE_STATES, Client, DaemonError, Task, indices_of
from colloc.task_errors import RemoteTraceback, error_of_task
from colloc.task_watch import TaskWatch

Object = Dict[str, Any]

BATCH_S = 0.1  # chosen: a loop of submits is one array, and a single one hardly waits
ARRAY_MAX = 10000  # tasks of an array (docs/arrays.md)
OUTPUT_MAX = 4096  # bytes of stderr in an exception; chosen: a traceback
WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "call_worker.py")


class TaskFuture(concurrent.futures.Future):  # type: ignore[type-arg]
    """A Future whose call is a task.

    It counts as pending for concurrent.futures until the task has ended, so that `cancel` also
    ends a running task; `running` says whether the task runs.
    """

    def __init__(self) -> None:
        super().__init__()
        self._submitted = threading.Event()
        self._end = threading.Lock()  # either cancelled or finished
        self._task: Optional[Task] = None
        self.info: Optional[Object] = None

    @property
    def task(self) -> Optional[Task]:
        """The task, once it is submitted; None: the call was cancelled or refused before."""
        self._submitted.wait()
        return self._task

    def running(self) -> bool:
        """Whether the task runs now, as far as is known."""
        info = self.info
        return not self.done() and info is not None and info["state"] != "PENDING"

    def cancel(self) -> bool:
        """Cancels the task, running or not. Returns False if it has ended."""
        with self._end:
            if self.done():
                return self.cancelled()
            super().cancel()
            self.set_running_or_notify_cancel()
        if self._task is not None:
            cancel_task(self._task)
        return True

    def enter_task(self, task: Optional[Task]) -> None:
        """The call was submitted, or (None) will not be."""
        self._task = task
        self._submitted.set()
        if task is not None and self.cancelled():
            cancel_task(task)

    def finish(self, value: Any = None, error: Optional[BaseException] = None) -> None:
        """The task has ended; a cancelled future stays cancelled."""
        with self._end:
            if self.done():
                return
            self.set_running_or_notify_cancel()
        if error is None:
            self.set_result(value)
        else:
            self.set_exception(error)


def cancel_task(task: Task) -> None:
    """Unless it has ended."""
    try:
        task.cancel()
    except DaemonError as error:
        if error.status not in (404, 409):
            raise


class Call(NamedTuple):
    """A call that is not submitted yet: `data` is the contents of its file."""

    future: TaskFuture
    data: bytes
    name: str


def name_of_function(fn: Callable[..., Any]) -> str:
    """For the queue, and, with its module, for the history of its memory."""
    inner = getattr(fn, "func", fn)  # of functools.partial
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    return f"{named.__module__}.{named.__qualname__}"


def make_folder(folder: Optional[str]) -> str:
    """The folder of an executor: a new one in the user's cache, or `folder` itself."""
    if folder is None:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        parent = os.path.join(cache, "colloc", "calls")
        os.makedirs(parent, mode=0o700, exist_ok=True)
        return tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=parent)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    call_files.check_folder(folder)
    return os.path.abspath(folder)


def end_of_output(task: Task) -> str:
    """The end of what the task wrote to stderr; "": it cannot be read."""
    try:
        data = task.logs("stderr")
    except (OSError, DaemonError):
        return ""
    return data[-OUTPUT_MAX:].decode(errors="replace")


def finish_call(future: TaskFuture, folder: str, index: int, info: Object) -> None:
    """Gives the future what the ended task came to."""
    try:
        result = call_files.read_result(folder, index)
    except (Exception, SystemExit) as error:  # of the value's own code, or a damaged file
        future.finish(error=error)
        return
    if info["state"] == "COMPLETED" and result and not result.is_error:
        future.finish(result.value)
        return
    task = future.task
    if info["state"] == "FAILED" and result and result.is_error:
        result.value.__cause__ = RemoteTraceback(result.traceback)
        future.finish(error=result.value)
        return
    failed = error_of_task(info, end_of_output(task) if task is not None else "")
    if result and result.is_error:
        failed.__cause__ = RemoteTraceback(result.traceback)
    future.finish(error=failed)


class Executor(concurrent.futures.Executor):
    """An executor whose calls are tasks of colloc.

    client: of the daemon; None: Client().
    folder: of the calls and results: of this user, and writable by no other; None: a new one below
        ~/.cache/colloc/calls. A new folder is removed at shutdown if all calls have ended.
    limit: at most this many tasks of an array at a time; None: no limit.
    python: the interpreter of the tasks; None: this one.
    cwd, environment, memory, options: of the tasks, as Client.submit.
    """

    def __init__(
        self,
        client: Optional[Client] = None,
        folder: Optional[str] = None,
        limit: Optional[int] = None,
        python: Optional[str] = None,
        environment: Optional[Dict[str, str]] = None,
        **options: Any,
    ):
        self.client = client or Client()
        self.keeps_folder = folder is not None
        self.folder = make_folder(folder)
        self.limit, self.python = limit, python or sys.executable
        self.environment, self.options = environment, options
        self.watch = TaskWatch(self.client)
        self.lock = threading.RLock()  # over what follows
        self.waiting: List[Call] = []
        self.timer: Optional[threading.Timer] = None
        self.futures: List[TaskFuture] = []
        self.is_shut = False
        atexit.register(flush_at_exit, weakref.ref(self))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> TaskFuture:
        """Calls fn(*args, **kwargs) in a task. Raises PicklingError if it cannot be stored."""
        call = self._call(fn, args, kwargs)
        with self.lock:
            self._add([call])
            if self.timer is None:
                self.timer = threading.Timer(BATCH_S, self.flush)
                self.timer.daemon = True
                self.timer.start()
        return call.future

    def map(  # type: ignore[override]
        self,
        fn: Callable[..., Any],
        *iterables: Any,
        timeout: Optional[float] = None,
        chunksize: int = 1,
    ) -> Iterator[Any]:
        """As the base class: the results in the order of the arguments. All calls are one array.

        chunksize: has no effect, each call is a task.
        """
        calls = [self._call(fn, args, {}) for args in zip(*iterables)]
        with self.lock:
            self._add(calls)
            self.flush()
        end = None if timeout is None else time.monotonic() + timeout
        return results_of([call.future for call in calls], end)

    def flush(self) -> None:
        """Submits the calls that wait to be submitted. Their futures get an error if it fails."""
        with self.lock:
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None
            calls, self.waiting = self.waiting, []
            calls = [call for call in calls if self._is_wanted(call)]
            for first in range(0, len(calls), ARRAY_MAX):
                part = calls[first : first + ARRAY_MAX]
                try:
                    self._submit_array(part)
                except Exception as error:
                    for call in part:
                        call.future.enter_task(None)
                        call.future.finish(error=error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As the base class. With cancel_futures, tasks that run are cancelled as well."""
        with self.lock:
            self.is_shut = True
            futures = list(self.futures)
            if not cancel_futures:
                self.flush()
        if cancel_futures:
            for future in futures:
                future.cancel()
            self.flush()
        if wait:
            concurrent.futures.wait(futures)
            self._remove_folder(futures)

    @classmethod
    def attach(cls, folder: str, client: Optional[Client] = None) -> List[TaskFuture]:
        """The futures of all calls of an executor whose process has ended, in their order.

        folder: `Executor.folder`, which is kept if the process ended without a shutdown.
        """
        client = client or Client()
        call_files.check_folder(folder)
        watch, futures = TaskWatch(client), []
        for place in sorted(glob.glob(os.path.join(folder, "array-*")), key=number_of_folder):
            array, indices = find_array(client, place)
            futures += follow_array(watch, client, array, place, indices)
        return futures

    def _call(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Call:
        data = call_files.pack_call(fn, args, kwargs)
        return Call(TaskFuture(), data, name_of_function(fn))

    def _add(self, calls: Sequence[Call]) -> None:
        if self.is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self.waiting += calls
        self.futures += [call.future for call in calls]

    @staticmethod
    def _is_wanted(call: Call) -> bool:
        """Whether it was not cancelled before it was submitted."""
        if call.future.cancelled():
            call.future.enter_task(None)
            return False
        return True

    def _submit_array(self, calls: List[Call]) -> None:
        number = sum(1 for name in os.listdir(self.folder) if name.startswith("array-"))
        place = os.path.join(self.folder, f"array-{number}")
        os.mkdir(place, mode=0o700)
        for index, call in enumerate(calls):
            call_files.write_whole(call_files.call_path(place, index), call.data)
        limit = f"%{self.limit}" if self.limit else ""
        environment = dict(os.environ if self.environment is None else self.environment)
        name = self.options.get("name", calls[0].name)
        array = self.client.submit(
            [self.python, WORKER, name],
            array=f"0-{len(calls) - 1}{limit}",
            environment={**environment, "COLLOC_CALLS": place},
            **{"name": name, "command": shown_command(name, place), **self.options},
        )
        indices = list(range(len(calls)))
        call_files.write_array(place, int(array), indices)
        follow_array(self.watch, self.client, int(array), place, indices, [c.future for c in calls])

    def _remove_folder(self, futures: List[TaskFuture]) -> None:
        """Not while a cancelled task may still write there."""
        if not self.keeps_folder and not any(future.cancelled() for future in futures):
            shutil.rmtree(self.folder, ignore_errors=True)


def number_of_folder(place: str) -> int:
    """10 of .../array-10."""
    return int(place.rpartition("-")[2])


def shown_command(name: str, place: str) -> str:
    """What the queue shows as the command. It is unique to the array: find_array looks for it."""
    return f"{name} # {place}"


def find_array(client: Client, place: str) -> Any:
    """The array of a folder and its indices, also if its process died while it submitted it."""
    try:
        return call_files.read_array(place)
    except FileNotFoundError:
        pass
    calls = glob.glob(os.path.join(glob.escape(place), "call-*.pkl"))
    # Before the submission; the folder's own time moves on with each file.
    written = min((os.stat(call).st_mtime for call in calls), default=os.stat(place).st_mtime)
    for task in client.tasks("all", since=written - 1):
        if str(task["command"]).endswith(f"# {place}") and task["array_id"]:
            array = client.array(task["array_id"])
            return array["id"], indices_of(array["indices"])
    return None, list(range(len(calls)))


def follow_array(
    watch: TaskWatch,
    client: Client,
    array: Optional[int],
    place: str,
    indices: List[int],
    futures: Optional[List[TaskFuture]] = None,
) -> List[TaskFuture]:
    """Follows the tasks of an array, whose ids follow its own. Returns the futures."""
    futures = [TaskFuture() for _ in indices] if futures is None else futures
    followed = {}
    for i, (index, future) in enumerate(zip(indices, futures), start=1):
        if array is None:
            future.enter_task(None)
            future.finish(error=LookupError(f"{place}: its calls were never submitted"))
            continue
        future.enter_task(Task(array + i, client))
        followed[array + i] = on_change(future, place, index)
    watch.follow(followed)
    return futures


def on_change(future: TaskFuture, place: str, index: int) -> Callable[[Object], None]:
    """What a change of the task means to its future."""

    def change(info: Object) -> None:
        future.info = info
        if info["state"] not in LIVE_STATES:
            finish_call(future, place, index, info)

    return change


def results_of(futures: List[TaskFuture], end: Optional[float]) -> Iterator[Any]:
    """The results in order. Closing the iterator early cancels the rest, as in the base class."""
    try:
        while futures:
            left = None if end is None else end - time.monotonic()
            yield futures.pop(0).result(left)
    finally:
        for future in futures:
            future.cancel()


def flush_at_exit(reference: "weakref.ref[Executor]") -> None:
    """Calls that were submitted just before the program ends are not lost."""
    executor = reference()
    if executor is not None:
        executor.flush()
