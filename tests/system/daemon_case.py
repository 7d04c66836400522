# SPDX-License-Identifier: Apache-2.0
"""The base class of the system tests: emulated GPUs and one collocd in a temporary folder.

`DaemonCase.setUp` creates the GPUs and starts the daemon; the clean-up kills every process that the
test started and removes the folder. Nothing sleeps for a fixed time: `until` polls with a bound,
and `wait`, `wait_log` and `wait_gone` block until the event, with the same bound.
"""

import contextlib
import hashlib
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))

from colloc import Client, Connection  # noqa: E402
from colloc_slurm.loopback import LIMIT_S, until  # noqa: E402

BUILD = os.environ.get("COLLOC_BUILD", os.path.join(os.path.dirname(__file__), "..", "..", "build"))
PROGRAMS = {
    "collocd": "src/daemon/collocd",
    "shim": "src/exec/colloc-shim",
    "colloc": "src/cli/colloc",
    "dcgm": "src/gpu/colloc-dcgm",
    "emulator": "emulator/colloc-emulator",
    "pretend-train": "emulator/colloc-pretend-train",
}
MIB = 1 << 20
# A fault that scripts/test never puts down to chance: it reads the output of this test for these.
CRASH = re.compile(r"ERROR: AddressSanitizer|LeakSanitizer|runtime error: |Assertion `.*' failed")


def program(name):
    return os.path.abspath(os.path.join(BUILD, PROGRAMS[name]))


# Answers that promise nothing and may always come on a busy machine: a helper process of the daemon
# that reads for the user, estimates, or finds out the user, has not done so in time. The estimate
# may also wait for ever, for a lock of its allocator that another thread had when it was forked:
# AddressSanitizer of clang 14 does not take it at a fork.
LATE = re.compile(
    "the file system did not answer within|files are being read that do not answer|"
    "the estimate took longer than|it takes too long to find out the user"
)


def in_time(ask, words_of):
    """The answer: of `ask` once more, as long as words_of(answer) says that a helper was late."""
    return until(
        lambda: next((answer for answer in [ask()] if not LATE.search(words_of(answer))), None),
        "an answer of a helper in time",
    )


class PatientClient(Client):
    """Asks once more where a helper was late."""

    def request(self, *arguments, **named):
        return in_time(
            lambda: super(PatientClient, self).request(*arguments, **named),
            lambda reply: reply.data.decode(errors="replace") if reply.status == 503 else "",
        )


with open(program("collocd"), "rb") as collocd:
    SANITIZED = b"__asan_init" in collocd.read()


def read(path, mode="r"):
    with open(path, mode, **({} if "b" in mode else {"errors": "replace"})) as file:
        return file.read()


def proc(pid, name):
    """/proc/PID/NAME of a process that may end at any time: empty then."""
    try:
        return read(f"/proc/{pid}/{name}")
    except OSError:
        return ""


def words_of(pid):
    """The command line of the process; [""] once it has ended."""
    return proc(pid, "cmdline").split("\0")


def uid_of(pid):
    """The process's owner, or None if it has ended."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def short_training(seconds):
    """A command whose GPU is 60 % busy for that long, almost from the start."""
    return (
        "colloc-pretend-train",
        "--memory-mib=1000",
        f"--seconds={seconds}",
        "--ramp-seconds=0.1",
        "--smact=0.6",
    )


def at_least(value, least):
    """Is the reading known, and at least that?"""
    return value is not None and value >= least


def at_most(value, most):
    """Is the reading known, and at most that?"""
    return value is not None and value <= most


def queued_s(path):
    """How long a thread has waited for a processor since it began, as the kernel counts it: which
    is not the time of what it did. The path is PID, or PID/task/THREAD; 0 where it is not known."""
    words = proc(path, "schedstat").split()
    return int(words[1]) / 1e9 if len(words) > 1 else 0


def cgroup_of(pid):
    """The folder of the process's cgroup (v2), or None."""
    mounts = [line.split() for line in read("/proc/self/mounts").splitlines()]
    mount = next((fields[1] for fields in mounts if fields[2] == "cgroup2"), None)
    own = next(
        (line[3:] for line in read(f"/proc/{pid}/cgroup").splitlines() if line.startswith("0::")),
        None,
    )
    return os.path.normpath(mount + own) if mount and own else None


def cgroups_of(state):
    """The cgroups of the attempts under a state folder: names begin with the path's FNV-1a hash."""
    name = 2166136261
    for byte in state.encode():
        name = (name ^ byte) * 16777619 & 0xFFFFFFFF
    home = os.path.join(cgroup_of("self") or "/nonexistent", "colloc")
    names = os.listdir(home) if os.path.isdir(home) else []
    return [os.path.join(home, entry) for entry in names if entry.startswith(f"{name:08x}-")]


def is_alive(pid):
    """Zombies are not."""
    return proc(pid, "stat").rpartition(")")[2].split()[:1] not in ([], ["Z"])


def processes_with(text):
    """The processes in whose environment or command line the text is."""
    found, needle = [], text.encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            if needle in read(f"/proc/{name}/environ", "rb") or needle in read(
                f"/proc/{name}/cmdline", "rb"
            ):
                found.append(int(name))
        except OSError:
            pass
    return [pid for pid in found if is_alive(pid)]


def row_sum(*values):
    """The checksum of a row of the event log (src/store/checksum.c), as an SQLite function."""
    joined = b""
    for value in values:
        data = b"" if value is None else str(value).encode()
        joined += struct.pack("=i", -1 if value is None else len(data)) + data
    return int.from_bytes(hashlib.sha256(joined).digest()[:8], "big", signed=True)


class DaemonCase(unittest.TestCase):
    gpus = "4xA100-40GB"
    speed = 100
    settings = {}
    daemon_prefix = ()  # a command that runs collocd in another way, as another user
    keep_folder = False  # set by a test that failed, for a look at what the daemon left

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="colloc-test-")
        os.chmod(self.folder, 0o755)
        self.addCleanup(self.tear_down_daemon)
        self.socket, self.state, self.work = (
            os.path.join(self.folder, name) for name in ("s", "state", "work")
        )
        os.mkdir(self.work)
        self.client = PatientClient(self.socket, LIMIT_S)
        self.env = {
            "PATH": os.path.dirname(program("emulator")) + ":" + os.environ["PATH"],
            "LD_LIBRARY_PATH": os.path.dirname(program("emulator")),
            "COLLOC_EMULATOR": os.path.join(self.folder, "gpus"),
            "COLLOC_SOCKET": self.socket,
            "HOME": self.work,
            "LC_ALL": "C.UTF-8",
            "COLLOC_TEST_FOLDER": self.folder,
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        self.process, self.log, self.log_news = None, [], threading.Condition()
        self.emulator(
            "create", "--gpus", self.gpus, "--speed", str(self.speed), self.env["COLLOC_EMULATOR"]
        )
        self.start()

    def tear_down_daemon(self):
        """Everything that was started goes, at once."""
        if self.process and self.process.poll() is None:
            self.stop(signal.SIGKILL)
        until(lambda: not self.kill_all(), "the end of all processes")
        for cgroup in cgroups_of(
            self.state
        ):  # of shims that were killed, unless a hung mount keeps a process in it
            with contextlib.suppress(OSError):
                os.rmdir(cgroup)
        crash = next((i for i, line in enumerate(self.log) if CRASH.search(line)), None)
        if crash is not None:
            print("\n".join(["the daemon's log has:", *self.log[crash : crash + 60]]), flush=True)
        if self.keep_folder:
            with open(os.path.join(self.folder, "collocd.log"), "w", encoding="utf-8") as file:
                file.write("\n".join(self.log) + "\n")
            print(f"kept: {self.folder}", flush=True)
            return
        shutil.rmtree(self.folder, onerror=lambda *_: None)
        self.assertFalse(os.path.exists(self.folder))
        self.assertIsNone(crash, "a sanitizer or an assert() reports a fault of the daemon")

    def kill_all(self):
        left = processes_with(self.folder)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return left

    # ---- the daemon ----

    def command(self, **settings):
        given = {
            "socket": self.socket,
            "state-dir": self.state,
            "shim": program("shim"),
            "sample-period": "100ms",
            "settle": "200ms",
            "settle-max": "2s",
            "window": "900ms",
            "sharing": "streams",  # most tests are about tasks that can be suspended
            **self.settings,
            **settings,
        }
        return [
            *self.daemon_prefix,
            program("collocd"),
            *(
                f"--{key.replace('_', '-')}={value}"
                for key, value in given.items()
                if value is not None
            ),
        ]

    def start(self, **settings):
        """collocd, answering."""
        self.process = subprocess.Popen(
            self.command(**settings),
            env=self.env,
            cwd=self.folder,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        reader = threading.Thread(target=self.read_log, args=(self.process,), daemon=True)
        self.process.reader, self.process.log_ended = reader, False
        reader.start()
        self.wait_log("listening on")

    def read_log(self, process):
        for line in process.stderr:
            with self.log_news:
                self.log.append(line.rstrip("\n"))
                self.log_news.notify_all()
        with self.log_news:
            process.log_ended = True
            self.log_news.notify_all()
        process.stderr.close()

    def wait_log(self, pattern, since=0):
        """Waits for a line of the logs of this test's daemons.

        Each line is found once, unless `since` is given.
        """

        def find():
            for i in range(max(since, getattr(self, "log_seen", 0)), len(self.log)):
                if re.search(pattern, self.log[i]):
                    self.log_seen = i + 1
                    return self.log[i]
            return None

        with self.log_news:
            found = self.log_news.wait_for(lambda: find() or self.process.log_ended, LIMIT_S)
        self.assertIsInstance(
            found, str, f"no '{pattern}' in the daemon's log:\n" + "\n".join(self.log[-30:])
        )
        return found

    def wait_words(self, words):
        """Until a line of the logs has the words. It may have been found before; the answer to a
        request may come before the log's thread has read what was logged for it."""
        until(lambda: any(words in line for line in self.log), f"'{words}' in the daemon's log")

    def run_daemon(self, **settings):
        """One that is expected to give up: its exit status and last words."""
        done = subprocess.run(
            self.command(**settings),
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        return done.returncode, done.stderr

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        status = self.process.wait(LIMIT_S)
        self.process.reader.join(LIMIT_S)
        if how != signal.SIGKILL:
            self.assertEqual(status, 0, "\n".join(self.log[-40:]))
        return status

    def restart(self, how=signal.SIGTERM, **settings):
        self.stop(how)
        self.start(**settings)

    # ---- requests ----

    def request(self, method, path, body=None, headers=None):
        return self.client.request(method, path, body, headers)

    def connection(self):
        """A connection for a test that reads the answer later, or never."""
        return Connection(self.socket, LIMIT_S)

    def get(self, path):
        reply = self.request("GET", path)
        self.assertEqual(reply.status, 200, reply.data)
        return reply.json

    def task_environment(self):
        """The sanitizers look for no leaks in a task's programs.

        The leak sanitizer stops a process that ends by ptrace(2), which sends SIGSTOP. The SIGCONT
        that follows SIGTERM when a task is cancelled takes that stop back, and both wait for ever.
        """
        options = self.env.get("ASAN_OPTIONS")
        return {**self.env, **({"ASAN_OPTIONS": options + ":detect_leaks=0"} if options else {})}

    def body(self, script="true", **members):
        return {
            "script": "#!/bin/bash\n" + script + "\n",
            "cwd": self.work,
            "environment": {**self.task_environment(), **members.pop("environment", {})},
            **members,
        }

    def submit(self, script="true", **members):
        """The id."""
        reply = self.request("POST", "/v1/tasks", self.body(script, **members))
        self.assertEqual(reply.status, 201, reply.data)
        return reply.json["id"]

    def train(self, mib=2000, seconds=100, options="", **members):
        """Submits a pretend training of `seconds` emulated seconds."""
        ramp = "--ramp-seconds=5"
        return self.submit(
            f"exec colloc-pretend-train --memory-mib={mib} --seconds={seconds} {ramp} {options}",
            **members,
        )

    def train_until_ended(self, mib, **members):
        """Submits a pretend training that goes on, on however slow a machine, until the returned
        function is called: then it completes."""
        name = f"end-{uuid.uuid4()}"
        task = self.submit(
            f"colloc-pretend-train --memory-mib={mib} --seconds=1e9 --ramp-seconds=5 & "
            f"while [ ! -e {name} ]; do sleep 0.02; done; kill $!; wait; exit 0",
            **members,
        )
        return task, lambda: open(os.path.join(self.work, name), "wb").close()

    def refused(self, status, *words, body=None, path="/v1/tasks", method="POST", **members):
        """What is not accepted, and that the answer names what and where."""
        reply = self.request(method, path, self.body(**members) if body is None else body)
        self.assertEqual(reply.status, status, reply.data[:500])
        for word in words:
            self.assertIn(word, reply.message)
        return reply

    def task(self, task):
        return self.get(f"/v1/tasks/{task}")["task"]

    def tasks(self, **query):
        return self.client.tasks(**query)

    def act(self, verb, task):
        return self.request("POST", f"/v1/tasks/{task}/{verb}")

    def wait(self, task, state=None, limit_s=LIMIT_S):
        """The task once it has ended."""
        found = self.client.wait(task, limit_s)
        if state and found["state"] != state:
            words = self.client.logs(task, "stderr")
            self.fail(f"task {task} is {found['state']}, not {state}: {found}\n{words}")
        return found

    def wait_killed(self, task):
        """The task once SIGKILL has ended it. When the kernel has killed a process meanwhile for
        lack of memory, as another test lets it do, the task may be one of those."""
        found = self.wait(task)
        if found["state"] == "OUT_OF_MEMORY":
            self.assertIn("perhaps for lack of host memory", found["reason_text"])
        else:
            self.assertEqual(found["state"], "FAILED", found)
        return found

    def wait_state(self, task, state):
        return until(
            lambda: next((t for t in [self.task(task)] if t["state"] == state), None),
            f"state {state} of task {task}",
        )

    def wait_reason(self, task, words):
        """Until the task waits for that. On a busy machine another reason may come first: a GPU
        without a recent reading."""
        until(
            lambda: words in (self.task(task)["reason_text"] or ""),
            f"'{words}' as what task {task} waits for",
            explain=lambda: self.task(task)["reason_text"],
        )

    def output(self, task, stream="stdout", **query):
        text = "".join(f"&{key}={value}" for key, value in query.items())
        reply = self.request("GET", f"/v1/tasks/{task}/log?stream={stream}{text}")
        self.assertEqual(reply.status, 200, reply.data)
        return reply.data.decode(errors="replace")

    def gpu(self, index=0):
        return self.get("/v1/gpus")["gpus"][index]

    def wait_gpu(self, condition, index=0, what="that state of the GPU"):
        return until(lambda: next((g for g in [self.gpu(index)] if condition(g)), None), what)

    # ---- programs ----

    def colloc(self, *arguments, code=0, text=None, prefix=(), **env):
        done = in_time(
            lambda: subprocess.run(
                [*prefix, program("colloc"), *arguments],
                env={**self.env, **env},
                cwd=self.work,
                input=text,
                text=True,
                errors="replace",
                capture_output=True,
                timeout=LIMIT_S,
                check=False,
            ),
            lambda done: done.stderr if done.returncode else "",
        )
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def emulator(self, *arguments):
        """Its output."""
        return subprocess.run(
            [program("emulator"), *arguments],
            env=self.env,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=LIMIT_S,
        ).stdout

    def write(self, name, text):
        path = os.path.join(self.work, name)
        with open(path, "w" if isinstance(text, str) else "wb") as file:
            file.write(text)
        return path

    def read(self, name):
        return read(os.path.join(self.work, name))

    def read_if(self, name):
        return self.read(name) if os.path.exists(os.path.join(self.work, name)) else ""

    def wait_file(self, name):
        """What a task has written there."""
        return until(lambda: self.read_if(name), f"text in {name}")

    def wait_gone(self, pid):
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        with os.fdopen(pidfd, "rb", closefd=True) as file:
            poll = select.poll()
            poll.register(file, select.POLLIN)
            self.assertTrue(poll.poll(LIMIT_S * 1000), f"process {pid} goes on")
