# SPDX-License-Identifier: Apache-2.0
"""Tasks of every kind for a daemon under faults, and checks of what became of them.

A client thread submits tasks and cancels some. Each task appends one line per attempt to the file
`ran`, which is outside the state folder: no fault of the daemon reaches it. After the faults,
`judge` compares three accounts: the answers that the client got, the tasks that the daemon lists,
and the lines of `ran`.
Contract, checked by `judge`:
1. An acknowledged submission exists exactly once; one without an answer exists at most once.
2. No attempt ran twice. A task runs again only after an attempt that ended as in REPEATED.
3. A task ends as its script does, unless the client cancelled it or its shim was killed.
4. A service, which is run again whenever it ends, never runs twice at a time: each run locks a
   file.
5. All GPUs are empty, and `colloc check` finds the event log sound.
"""

import collections
import concurrent.futures
import contextlib
import glob
import http.client
import json
import os
import random
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from daemon_case import DaemonCase, Connection, read, until  # noqa: E402

SETTLED_S = 120  # chosen: for all tasks to end on a busy machine
BACKLOG = 40  # chosen: tasks that wait or run before the client pauses, so that a round ends soon
BURST = 10
CANCELLED = 0.12  # the share of submissions that the client cancels
SERVICES = 3  # chosen: they have no end, and leave GPUs to the others
REPEATED = ("OutOfMemory", "MpsServer", "GpuFault", "GpuGone", "NotStarted")  # docs/protocol.md


class Submission:
    """A task as its client knows it."""

    def __init__(self, name, kind, exit_code=0):
        self.name, self.kind, self.exit_code = name, kind, exit_code
        self.id, self.cancelled, self.lost = None, False, False


class Workload(DaemonCase):
    gpus = "4xA100-40GB"
    speed = 1000
    settings = {
        "sharing": "streams",
        "policy": "rr",
        "min-free": "0",
        "smact-max": "1",
        "sample-period": "50ms",
        "settle": "50ms",
        "settle-max": "300ms",
        "window": "450ms",
        "mps-linger": "1s",
    }
    seed, seconds = 0, 10
    kinds = ("exit", "sleep", "training", "memory", "mps", "burst", "service")

    def setUp(self):
        self.random, self.shims_killed = (
            random.Random(self.seed),
            set(),
        )  # the ids of those shims' tasks
        self.submissions, self.stop_submitting = [], threading.Event()
        self.begun = time.monotonic()
        super().setUp()

    @contextlib.contextmanager
    def under_harm(self):
        """The client submits while the body does harm; a failure keeps the folder."""
        self.begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(1) as pool, self.kept_on_failure():
            client = pool.submit(self.submit_until_stopped, random.Random(self.seed + 1))
            try:
                yield
            finally:
                self.stop_submitting.set()
            client.result()

    def time_is_left(self):
        return time.monotonic() < self.begun + self.seconds

    def pause(self, longest_s):
        """Lets a random time pass before the next harm."""
        threading.Event().wait(self.random.random() * longest_s)

    # ---- the client ----

    def script(self, chance, kind):
        """What the task does after it has written its line, and the exit status."""
        if kind in ("exit", "burst"):
            code = chance.randrange(3)
            return f"exit {code}", code, {"output": "/dev/null"}
        if kind == "sleep":
            return "for i in 1 2 3 4 5; do sleep 0.1; done", 0, {"output": "/dev/null"}
        if kind == "service":
            return self.service_script(chance), 0, {"service": True, "output": "/dev/null"}
        train = "exec colloc-pretend-train --ramp-seconds=5 "
        if kind == "training":
            return train + f"--memory-mib=2000 --seconds={chance.randrange(50, 500)}", 0, {}
        if kind == "memory":  # two of them do not fit on one GPU
            return train + f"--memory-mib=24000 --seconds={chance.randrange(100, 400)}", 0, {}
        return (
            train + f"--memory-mib=3000 --smact=0.1 --seconds={chance.randrange(50, 500)}",
            0,
            {"sharing": "mps"},
        )

    def service_script(self, chance):
        """Runs for a while under a lock; a run beside another of the same service is noted. Its
        children do not have the lock."""
        lock = f"{self.work}/lock-{len(self.submissions)}"
        return (
            f"exec 9>>{lock}; flock -n 9 || echo {lock} >> {self.work}/twice\n"
            f"for i in $(seq {chance.randrange(5, 40)}); do sleep 0.1 9>&-; done"
        )

    def services(self):
        return [submission for submission in self.submissions if submission.kind == "service"]

    def choose_kind(self, chance):
        kind = chance.choice(self.kinds)
        return "exit" if kind == "service" and len(self.services()) >= SERVICES else kind

    def submit_until_stopped(self, chance):
        while not self.stop_submitting.is_set():
            kind = self.choose_kind(chance)
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                connection = Connection(self.socket, timeout=5)
                with contextlib.closing(connection):
                    for _ in range(BURST if kind == "burst" else 1):
                        self.submit_one(chance, kind, connection)
                    while self.backlog(connection) > BACKLOG and not self.stop_submitting.wait(0.1):
                        pass
            self.stop_submitting.wait(chance.random() * 0.06)

    def submit_one(self, chance, kind, connection):
        script, code, members = self.script(chance, kind)
        submission = Submission(f"{kind}-{len(self.submissions)}", kind, code)
        self.submissions.append(submission)
        script = (
            f"echo {submission.name} $COLLOC_TASK_ID $COLLOC_ATTEMPT >> {self.work}/ran\n{script}"
        )
        body = json.dumps(self.body(script, name=submission.name, grace_s=1, **members))
        connection.request("POST", "/v1/tasks", body)
        reply = connection.getresponse()
        data = json.loads(reply.read())
        if reply.status != 201:
            return
        submission.id = data["id"]
        if chance.random() < CANCELLED and kind != "service":
            submission.cancelled = True  # whether or not the request arrives
            connection.request("POST", f"/v1/tasks/{submission.id}/cancel")
            connection.getresponse().read()

    @staticmethod
    def backlog(connection):
        connection.request("GET", "/v1/tasks?state=live")
        reply = connection.getresponse()
        data = json.loads(reply.read())
        return len(data["tasks"]) if reply.status == 200 else 0

    # ---- harm ----

    def kill_a_shim(self):
        """SIGKILL to the shim of a running attempt: its task may be lost, but runs only once."""
        claims = glob.glob(f"{self.state}/tasks/*/*/claim")
        if not claims:
            return
        claim = self.random.choice(claims)
        with contextlib.suppress(OSError, ValueError):
            pid = int(read(claim))
            if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "colloc-shim":
                self.shims_killed.add(int(claim.split("/")[-3]))
                os.kill(pid, signal.SIGKILL)

    # ---- the judgement ----

    def judge(self):
        with self.kept_on_failure():
            self.end_services()
            until(lambda: not self.tasks(), "the end of all tasks", SETTLED_S)
            tasks = self.all_tasks()
            lines = self.lines()
            self.judge_submissions(tasks)
            for task in tasks:
                runs = lines.get(task["id"], [])
                self.judge_runs(task, runs)
                self.judge_end(task, self.by_name[task["name"]])
            self.judge_gpus()
            self.stop()
            sound = json.loads(self.colloc("check", "--json", self.state).stdout)
            self.assertEqual((sound["sound"], sound["findings"]), (True, []))
            return self.counts(tasks, lines)

    def all_tasks(self):
        """More than the 1,000 ended ones that a list has by itself: on a fast machine there are."""
        return self.tasks(state="all", limit=1_000_000)

    def end_services(self):
        """Those that were submitted, perhaps without an answer, are there until this. Their ends
        before it were not the last."""
        names = {submission.name: submission for submission in self.services()}
        for task in self.all_tasks():
            if task["name"] in names:
                self.assertIn(task["state"], ("PENDING", "RUNNING", "COMPLETING"), task)
                names[task["name"]].cancelled = True
                self.assertEqual(self.act("cancel", task["id"]).status, 200, task)
        self.assertEqual(self.read_if("twice"), "", "services that ran twice at a time")

    @contextlib.contextmanager
    def kept_on_failure(self):
        try:
            yield
        except BaseException:
            self.keep_folder = True
            raise

    def lines(self):
        """The attempts that ran, by the task's id."""
        found = collections.defaultdict(list)
        for line in self.read_if("ran").splitlines():
            name, task, attempt = line.split()
            found[int(task)].append((name, attempt))
        return found

    def judge_submissions(self, tasks):
        self.by_name = {submission.name: submission for submission in self.submissions}
        names = collections.Counter(task["name"] for task in tasks)
        self.assertEqual(
            [name for name, count in names.items() if count > 1], [], "submissions that exist twice"
        )
        known = {task["id"]: task["name"] for task in tasks}
        for submission in self.submissions:
            if submission.id:
                self.assertEqual(
                    known.get(submission.id), submission.name, "an acknowledged task is lost"
                )

    def judge_runs(self, task, lines):
        attempts = [attempt for _, attempt in lines]
        self.assertEqual(len(attempts), len(set(attempts)), ("an attempt ran twice", task, lines))
        self.assertTrue(all(name == task["name"] for name, _ in lines), (task, lines))
        self.assertLessEqual(
            len(lines), task["attempt_count"], ("more runs than attempts", task, lines)
        )
        is_service = self.by_name[task["name"]].kind == "service"
        for attempt in task["attempts"][:-1]:
            self.assertTrue(
                is_service or attempt["reason"] in REPEATED, ("ran again", attempt, task)
            )
        if task["state"] == "COMPLETED":
            self.assertGreaterEqual(len(lines), 1, ("completed, but never ran", task))

    def judge_end(self, task, submission):
        if task["state"] == "CANCELLED":
            self.assertTrue(submission.cancelled, ("cancelled without a request", task))
        elif task["reason"] == "Lost":
            self.assertTrue(self.may_be_lost(task), ("lost though its shim was not killed", task))
        else:
            state = "FAILED" if submission.exit_code else "COMPLETED"
            self.assertEqual(
                (task["state"], task["exit_code"]), (state, submission.exit_code), task
            )

    def may_be_lost(self, task):
        return task["id"] in self.shims_killed

    def judge_gpus(self):
        def empty():
            return all(
                not gpu["tasks"] and not gpu["foreign_processes"]
                for gpu in self.get("/v1/gpus")["gpus"]
            )

        until(empty, "empty GPUs")

    def counts(self, tasks, lines):
        answered = sum(1 for submission in self.submissions if submission.id)
        ends = collections.Counter(task["state"] for task in tasks)
        words = ", ".join(f"{count} {state}" for state, count in sorted(ends.items()))
        return (
            f"{len(self.submissions)} submissions, {answered} acknowledged, {len(tasks)} tasks "
            f"({words}), {sum(map(len, lines.values()))} runs"
        )
