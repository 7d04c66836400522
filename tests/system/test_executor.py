# SPDX-License-Identifier: Apache-2.0
"""colloc.Executor: functions as tasks, their results, and every way to end without one."""

import concurrent.futures
import os
import pickle
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

from daemon_case import LIMIT_S, DaemonCase, until

import colloc
from colloc import call_files

TRIALS = """
import os, pathlib, signal, subprocess, sys, time

def square(x, plus=0):
    return x * x + plus

def refuse(x):
    raise LookupError(f"no {x}")

class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a)

def odd():
    raise Odd(1, 2)

def leave():
    os._exit(7)

class Leaving:
    def __reduce__(self):
        return sys.exit, ("read",)

def leave_when_read():
    return Leaving()

def leave_politely():
    sys.exit("enough")

def killed():
    os.kill(os.getpid(), signal.SIGKILL)

def sleep():
    pathlib.Path("sleeps").touch()
    time.sleep(1000)

def unreadable():
    return lambda: 1

def where():
    return os.getcwd(), os.environ["COLLOC_ARRAY_INDEX"], sys.executable

def train(mib):
    return subprocess.call(["colloc-pretend-train", f"--memory-mib={mib}", "--seconds=300"])

def out_of_memory():
    text = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
    print(text, file=sys.stderr)
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
"""


class ExecutorCase(DaemonCase):
    gpus = "2xA100-40GB"

    def setUp(self):
        super().setUp()
        self.write("trials.py", TRIALS)
        sys.path.insert(0, self.work)
        self.addCleanup(sys.path.remove, self.work)
        sys.modules.pop("trials", None)
        self.trials = __import__("trials")
        self.calls = os.path.join(self.folder, "calls")
        os.mkdir(self.calls, 0o700)

    def executor(self, **options):
        given = {"client": self.client, "cwd": self.work, "environment": self.task_environment()}
        return colloc.Executor(**{**given, "folder": self.calls, **options})

    def error_of(self, fn, *args, **options):
        """The exception of a call, and its future."""
        with self.executor(**options) as e:
            future = e.submit(fn, *args)
            return future.exception(LIMIT_S), future


class Executor(ExecutorCase):
    def test_a_map_is_one_array(self):
        with self.executor(limit=2, memory="1GiB") as e:
            self.assertEqual(list(e.map(self.trials.square, range(5))), [0, 1, 4, 9, 16])
            self.assertEqual(list(e.map(self.trials.square, [])), [])
        (array,) = {task["array_id"] for task in self.tasks(state="all")}
        info = self.client.array(array)
        self.assertEqual((info["limit"], info["states"]), (2, {"COMPLETED": 5}))
        self.assertEqual(info["name"], "trials.square")

    def test_submits_of_a_moment_are_one_array(self):
        with self.executor() as e:
            futures = [e.submit(self.trials.square, x, plus=1) for x in range(3)]
            done = concurrent.futures.wait(futures, LIMIT_S)
            self.assertEqual({f.result() for f in done.done}, {1, 2, 5})
            place = e.submit(self.trials.where)
            self.assertEqual(place.result(LIMIT_S), (self.work, "0", sys.executable))
            self.assertEqual(place.task.info()["state"], "COMPLETED")
        self.assertEqual(len({f.task.info()["array_id"] for f in futures}), 1)
        with self.assertRaisesRegex(RuntimeError, "after shutdown"):
            e.submit(self.trials.square, 1)

    def test_an_exception_has_its_traceback(self):
        error, future = self.error_of(self.trials.refuse, "way")
        self.assertIsInstance(error, LookupError)
        self.assertEqual(str(error), "no way")
        self.assertIn("in refuse", str(error.__cause__))
        self.assertEqual(future.info["state"], "FAILED")
        odd, _ = self.error_of(self.trials.odd)
        self.assertIsInstance(odd, RuntimeError)
        self.assertIn("Odd: 1", str(odd))

    def test_a_process_that_ends_without_a_result(self):
        error, _ = self.error_of(self.trials.leave)
        self.assertIsInstance(error, colloc.TaskCrashed)
        self.assertEqual((error.task["exit_code"], error.task["state"]), (7, "FAILED"))
        error, _ = self.error_of(self.trials.killed)
        self.assertEqual((type(error), error.task["signal"]), (colloc.TaskCrashed, 9))
        error, _ = self.error_of(self.trials.square, 1, python="/nonexistent/python")
        self.assertIsInstance(error, colloc.TaskCrashed)
        self.assertIn("/nonexistent/python", str(error))
        for leave in (self.trials.leave_politely, self.trials.leave_when_read):
            error, _ = self.error_of(leave)
            self.assertIsInstance(error, SystemExit)

    def test_states_are_exceptions(self):
        error, _ = self.error_of(self.trials.out_of_memory)
        self.assertIsInstance(error, colloc.TaskOutOfMemory)
        self.assertIsInstance(error, MemoryError)
        self.assertIn("in out_of_memory", str(error.__cause__))
        error, _ = self.error_of(self.trials.sleep, time_limit_s=1)
        self.assertIsInstance(error, colloc.TaskTimeout)
        self.assertIsInstance(error, TimeoutError)
        self.assertIn("TIMEOUT", str(error))
        with self.executor() as e:
            future = e.submit(self.trials.sleep)
            self.wait_state(future.task, "RUNNING")
            self.colloc("cancel", str(int(future.task)))
            self.assertIsInstance(future.exception(LIMIT_S), colloc.TaskCancelled)

    def test_cancel_ends_a_running_task(self):
        with self.executor() as e:
            future = e.submit(self.trials.sleep)
            until(future.running, "a running future")
            self.assertTrue(future.cancel())
            self.assertTrue(future.cancel())
            self.assertTrue(future.cancelled())
            self.wait(future.task, "CANCELLED")
            early = e.submit(self.trials.sleep)
            self.assertTrue(early.cancel())
            e.flush()
            self.assertIsNone(early.task)
            with self.assertRaises(concurrent.futures.CancelledError):
                early.result(0)

    def test_shutdown_cancels_what_runs(self):
        e = self.executor()
        futures = [e.submit(self.trials.sleep) for _ in range(2)]
        self.wait_state(futures[0].task, "RUNNING")
        e.shutdown(cancel_futures=True)
        for future in futures:
            self.wait(future.task, "CANCELLED")

    def test_what_cannot_be_stored_is_refused_at_once(self):
        def inner():
            return 1

        main = type(sys)("__main__")
        exec("def of_main(): return 1", main.__dict__)  # pylint: disable=exec-used
        with self.executor() as e, mock.patch.object(call_files, "cloudpickle", None):
            with self.assertRaisesRegex(pickle.PicklingError, "cloudpickle"):
                e.submit(lambda: 1)
            with self.assertRaisesRegex(pickle.PicklingError, "cloudpickle"):
                e.submit(inner)
            with self.assertRaisesRegex(pickle.PicklingError, "main program.*cloudpickle"):
                e.submit(main.of_main)
        self.assertEqual(self.tasks(state="all"), [])

    def test_the_daemon_refuses(self):
        with self.executor(memory="1000GiB") as e:
            error = e.submit(self.trials.square, 1).exception(LIMIT_S)
            self.assertIsInstance(error, colloc.DaemonError)

    def test_a_restart_of_the_daemon(self):
        with self.executor() as e:
            future = e.submit(self.trials.sleep)
            until(lambda: os.path.exists(os.path.join(self.work, "sleeps")), "the call")
            self.stop(signal.SIGKILL)
            self.start()
            self.colloc("cancel", str(int(future.task)))
            self.assertIsInstance(future.exception(LIMIT_S), colloc.TaskCancelled)

    def test_memory_is_learned_from_the_first(self):
        with self.executor(limit=1) as e:
            results = e.map(self.trials.train, [3000] * 3)
            self.assertEqual(list(results), [0, 0, 0])
            last = e.futures[-1].task.info()
            again = e.submit(self.trials.train, 3000).task.info()
        self.assertEqual(last["estimator"], "same-command")
        self.assertGreaterEqual(last["need_mib"], 3000)
        self.assertEqual(again["estimator"], "same-command")

    def test_a_retried_call_leaves_no_old_result(self):
        place = os.path.join(self.calls, "array-0")
        os.mkdir(place, 0o700)
        call_files.write_result(place, 0, False, pickle.dumps("old"), "")
        call_files.write_whole(
            call_files.call_path(place, 0), call_files.pack_call(self.trials.leave, (), {})
        )
        environment = {**os.environ, "COLLOC_CALLS": place, "COLLOC_ARRAY_INDEX": "0"}
        done = subprocess.run(
            [sys.executable, colloc.executor.WORKER], env=environment, check=False, timeout=LIMIT_S
        )
        self.assertEqual(done.returncode, 7)
        self.assertIsNone(call_files.read_result(place, 0))


class Files(ExecutorCase):
    MAIN = (
        "import os, sys, colloc, trials\n"
        "e = colloc.Executor(folder=sys.argv[1])\n"
        "fs = [e.submit(trials.square, x) for x in (3, 4)]\n"
        "fs[0].task\n"
        "os._exit(9)\n"
    )

    def test_the_main_program_dies(self):
        python = os.path.dirname(os.path.dirname(colloc.__file__))
        env = {**self.task_environment(), "PYTHONPATH": f"{python}:{self.work}"}
        command = [sys.executable, "-c", self.MAIN, self.calls]
        done = subprocess.run(command, env=env, cwd=self.work, check=False, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 9)
        futures = colloc.Executor.attach(self.calls, self.client)
        self.assertEqual([future.result(LIMIT_S) for future in futures], [9, 16])
        place = os.path.join(self.calls, "array-0")
        os.unlink(os.path.join(place, "task.json"))  # died while it submitted
        os.utime(place, (time.time() + 5, time.time() + 5))  # a result that came later
        futures = colloc.Executor.attach(self.calls, self.client)
        self.assertEqual([future.result(LIMIT_S) for future in futures], [9, 16])

    def test_it_died_before_it_submitted(self):
        place = os.path.join(self.calls, "array-0")
        os.mkdir(place, 0o700)
        call_files.write_whole(call_files.call_path(place, 0), b"")
        (future,) = colloc.Executor.attach(self.calls, self.client)
        self.assertIn("never submitted", str(future.exception(LIMIT_S)))

    def test_damaged_files(self):
        with self.executor() as e:
            self.assertEqual(e.submit(self.trials.square, 3).result(LIMIT_S), 9)
        place = os.path.join(self.calls, "array-0")
        path = call_files.result_path(place, 0)
        whole = call_files.read_result(place, 0)
        self.assertEqual(whole.value, 9)
        with open(path, "rb") as file:
            data = file.read()
        for size in range(len(data)):
            with open(path, "wb") as file:
                file.write(data[:size])
            with self.assertRaises(ValueError):
                call_files.read_result(place, 0)
        with open(path, "wb") as file:
            file.write(pickle.dumps(["other"]))
        (future,) = colloc.Executor.attach(self.calls, self.client)
        self.assertIsInstance(future.exception(LIMIT_S), ValueError)

    def test_a_folder_that_others_can_write_is_not_read(self):
        os.chmod(self.calls, 0o777)
        with self.assertRaises(PermissionError):
            self.executor()
        with self.assertRaises(PermissionError):
            colloc.Executor.attach(self.calls, self.client)

    def test_a_folder_that_others_replace_is_not_read(self):
        """Others can write the folder above, and rename this one once it has been checked."""
        moved, other = f"{self.calls}-moved", f"{self.calls}-other"
        os.mkdir(other)
        for folder, value in ((self.calls, "own"), (other, "of another user")):
            call_files.write_result(folder, 0, False, call_files.dump(value), "")

        def look(find):
            def looked(*words):
                status = find(*words)
                if not os.path.exists(moved):
                    os.rename(self.calls, moved)
                    os.rename(other, self.calls)
                return status

            return looked

        with mock.patch.object(call_files.os, "stat", look(os.stat)), mock.patch.object(
            call_files.os, "fstat", look(os.fstat)
        ):
            self.assertEqual(call_files.read_result(self.calls, 0).value, "own")
        self.assertEqual(call_files.read_result(self.calls, 0).value, "of another user")
        os.rename(call_files.result_path(moved, 0), self.folder + "/elsewhere")
        os.symlink(self.folder + "/elsewhere", call_files.result_path(moved, 0))
        with self.assertRaises(OSError):
            call_files.read_result(moved, 0)


if __name__ == "__main__":
    unittest.main()
