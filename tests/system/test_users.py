# SPDX-License-Identifier: Apache-2.0
"""Several users on one machine: who may do what. As root, with users that need no names."""

import contextlib
import grp
import itertools
import json
import os
import pty
import pwd
import signal
import socket
import sqlite3
import stat
import subprocess
import time
import tty
import unittest

from damage import TO_VERSION_1
from daemon_case import LIMIT_S, DaemonCase, at_least, is_alive, program, read, until

ADA, BOB = 64001, 64002  # without names: their limits count together
KNOWN = pwd.getpwnam("nobody").pw_uid  # check-words: allow (the name of an account)

# System calls on the session keyring (-3) by number, which differs between x86-64 and aarch64:
# keyctl(1) may not be installed.
KEYS = """import ctypes, os, platform, sys
add_key, keyctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[platform.machine()]
call = ctypes.CDLL(None).syscall
call.restype = ctypes.c_long
if sys.argv[1] == "join":
    joined = call(keyctl, 1, None)
    if len(sys.argv) > 2:
        os.execv(sys.argv[2], sys.argv[2:])
    print(min(joined, 0), flush=True)
elif sys.argv[1] == "add":
    print(call(add_key, b"user", b"colloc-test", b"SECRET", 6, -3), flush=True)
elif sys.argv[1] == "revoke":
    print(call(keyctl, 3, -3), flush=True)
else:
    text = ctypes.create_string_buffer(7)
    key = call(keyctl, 10, -3, b"user", b"colloc-test", 0)
    found = key >= 0 and call(keyctl, 11, key, text, 6) >= 0
    print(text.value.decode() if found else key, flush=True)
"""


def become(uid):
    return ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups")


def may_run(uid):
    """May this user reach the programs of the build?"""
    done = subprocess.run(
        [*become(uid), program("collocd"), "--version"], capture_output=True, check=False
    )
    return done.returncode == 0


@unittest.skipIf(os.geteuid() != 0, "becoming other users needs root")
class Several(DaemonCase):
    def setUp(self):
        super().setUp()
        os.chmod(self.work, 0o777)

    @contextlib.contextmanager
    def user(self, uid):
        """What connects meanwhile is that user."""
        os.setegid(uid)
        os.seteuid(uid)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)

    def submit_as(self, uid, script="true", **members):
        with self.user(uid):
            return self.submit(script, **members)

    def request_as(self, uid, method, path, body=None):
        with self.user(uid):
            return self.request(method, path, body)


class OutOfMemory(Several):
    """The kernel ends tasks before the daemon and their shims."""

    def test_the_daemon_and_its_shims_are_protected(self):
        def score(pid):
            return read(f"/proc/{pid}/oom_score_adj").strip()

        if score(self.process.pid) == "0":
            self.skipTest("this machine does not allow it")
        self.assertEqual(score(self.process.pid), "-900")
        for uid in (ADA, 0):
            task = self.submit_as(
                uid,
                "cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj; "
                'python3 -c \'open("/proc/self/oom_score_adj", "w").write("-1")\' '
                "2> /dev/null && echo lowered; true",
            )
            self.wait(task, "COMPLETED")
            lines = self.output(task).split()
            self.assertEqual(lines[:2], ["0", "-900"])
            self.assertEqual("lowered" in lines, uid == 0)


class Users(Several):
    def test_command_lines_are_their_owners(self):
        task = self.submit_as(ADA, command="train --token=secret")
        self.wait(task, "COMPLETED")
        for uid, shown in [(ADA, "train --token=secret"), (BOB, None), (0, "train --token=secret")]:
            self.assertEqual(
                self.request_as(uid, "GET", f"/v1/tasks/{task}").json["task"]["command"], shown
            )
            listed = self.request_as(uid, "GET", "/v1/tasks?state=ended").json["tasks"]
            self.assertEqual([one["command"] for one in listed], [shown])
        self.refused(400, "command", command=7)
        self.refused(400, "command", command="x" * 1025)

    def test_tasks_run_as_their_submitter(self):
        task = self.submit_as(ADA, "id -u; id -g; id -G; touch made; cat $0 > copy", output="out")
        self.wait(task, "COMPLETED")
        self.assertEqual(self.read("out").splitlines(), [str(ADA)] * 3)
        for name in ("made", "out"):
            status = os.stat(f"{self.work}/{name}")
            self.assertEqual((status.st_uid, status.st_gid), (ADA, ADA))
        self.assertEqual(self.task(task)["uid"], ADA)

    def test_others_may_look_but_not_touch(self):
        task = self.submit_as(
            ADA, "echo secret; while :; do sleep 0.05; done", environment={"TOKEN": "secret"}
        )
        held = self.submit_as(ADA, hold=True)
        self.wait_state(task, "RUNNING")
        for number in (task, held):
            for verb in ("cancel", "hold", "release"):
                self.assertEqual(
                    self.request_as(BOB, "POST", f"/v1/tasks/{number}/{verb}").status, 403
                )
        for verb in ("cancel", "hold", "release"):
            many = self.request_as(BOB, "POST", f"/v1/tasks/{verb}", {"tasks": [task, held]})
            self.assertEqual([result["status"] for result in many.json["results"]], [403, 403])
            self.assertNotIn(b"secret", many.data)
        self.assertEqual(self.request_as(BOB, "GET", f"/v1/tasks/{task}/log").status, 403)
        seen = self.request_as(BOB, "GET", f"/v1/tasks/{task}")
        self.assertEqual(seen.status, 200)
        self.assertFalse(
            set(seen.json["task"]) & {"script", "cwd", "arguments", "events", "environment"}
        )
        self.assertNotIn(b"secret", seen.data)
        self.assertEqual(self.task(task)["state"], "RUNNING")
        self.assertIn(
            "secret", self.request_as(ADA, "GET", f"/v1/tasks/{task}").json["task"]["script"]
        )
        self.assertEqual(self.request_as(ADA, "POST", f"/v1/tasks/{held}/release").status, 200)
        self.wait(held, "COMPLETED")
        self.assertEqual(self.act("cancel", task).status, 200)
        self.wait(task, "CANCELLED")
        self.assertEqual(self.request_as(BOB, "GET", f"/v1/tasks/{task}/log").status, 403)
        self.assertEqual(self.request_as(ADA, "GET", f"/v1/tasks/{task}/log").data, b"secret\n")

    def test_all_of_mine_are_mine_without_a_name_too(self):
        others, own = self.submit_as(BOB, hold=True), self.submit_as(ADA, hold=True)
        done = self.colloc("cancel", "--mine", prefix=become(ADA))
        self.assertEqual(done.stdout, f"Task {own} CANCELLED\n", done.stderr)
        self.assertEqual(self.task(others)["state"], "PENDING")

    def test_a_line_of_a_log_is_its_owners(self):
        line = "FileNotFoundError: /home/ada/secret"
        task = self.submit_as(
            ADA, f"while [ ! -e go ]; do sleep 0.02; done; echo '{line}' >&2; exit 1"
        )
        with self.user(BOB):
            waits = self.connection()
            waits.request("GET", f"/v1/tasks/{task}/wait")
        self.wait_state(task, "RUNNING")
        self.write("go", "")
        self.wait(task, "FAILED")
        paths = f"/v1/tasks/{task}", f"/v1/tasks/{task}/wait", "/v1/tasks?state=all"
        with contextlib.closing(waits):
            seen = [
                waits.getresponse().read(),
                *(self.request_as(BOB, "GET", path).data for path in paths),
            ]
        for data in seen:
            self.assertIn(b'"FAILED"', data)
            self.assertNotIn(b"secret", data)
        for path in paths:
            self.assertGreaterEqual(self.request_as(ADA, "GET", path).data.count(line.encode()), 2)

    def test_output_of_others_does_not_control_roots_terminal(self):
        script = "printf 'one\\033]0;title\\007\\302\\233J\\233K\\0\\ttwo\\r\\nthree\\n'"
        theirs, own = self.submit_as(ADA, script), self.submit(script)
        for task in (theirs, own):
            self.wait(task, "COMPLETED")
        escaped = "one\\x1b]0;title\\x07\\x9bJ?K?\ttwo\r\nthree\n"
        as_it_is = "one\x1b]0;title\x07\x9bJ\ufffdK\0\ttwo\r\nthree\n"
        self.assertEqual(self.on_terminal("logs", str(theirs)), escaped)
        self.assertEqual(self.on_terminal("logs", "-f", str(theirs)), escaped)
        self.assertEqual(self.on_terminal("logs", str(own)), as_it_is)
        self.assertEqual(self.colloc("logs", str(theirs)).stdout, as_it_is.replace("\r\n", "\n"))

    def on_terminal(self, *words):
        """What colloc prints to a terminal that passes everything on."""
        terminal, slave = pty.openpty()
        tty.setraw(slave)
        with os.fdopen(terminal, "rb", buffering=0) as screen:
            command = [program("colloc"), *words]
            subprocess.run(command, env=self.env, stdout=slave, timeout=LIMIT_S, check=True)
            os.close(slave)
            text = b""
            with contextlib.suppress(OSError):  # its other end is closed
                while piece := screen.read(4096):
                    text += piece
        return text.decode(errors="replace")

    def test_files_of_a_task_are_no_door(self):
        """What a user names is opened as that user; what the daemon keeps others cannot read."""
        root_file = self.write("root-only", "root's")
        os.chmod(root_file, 0o600)
        task = self.wait(self.submit_as(ADA, "echo mine", output=root_file), "FAILED")
        self.assertEqual(task["reason"], "Launch")
        self.assertEqual(self.request_as(ADA, "GET", f"/v1/tasks/{task['id']}/log").status, 403)
        self.assertEqual(self.read("root-only"), "root's")
        link = os.path.join(self.work, "link")
        task = self.submit_as(
            ADA,
            f"rm -f {self.work}/log; ln -s {root_file} {link}; mv {link} {self.work}/log",
            output="log",
        )
        self.wait(task, "COMPLETED")
        self.assertNotIn(b"root's", self.request_as(ADA, "GET", f"/v1/tasks/{task}/log").data)
        task = self.submit_as(ADA, "echo secret")
        self.wait(task, "COMPLETED")
        for name in ("script", "spec", "stdout"):
            peek = subprocess.run(
                [*become(BOB), "cat", f"{self.state}/tasks/{task}/1/{name}"],
                capture_output=True,
                check=False,
            )
            self.assertNotEqual(peek.returncode, 0, name)
        peek = subprocess.run(
            [*become(BOB), "cat", f"{self.state}/colloc.db"], capture_output=True, check=False
        )
        self.assertNotEqual(peek.returncode, 0)

    def test_what_the_system_shows_of_the_daemon_is_no_log(self):
        self.env["ROOTS_TOKEN"] = "secret"
        self.restart()
        self.env.pop("ROOTS_TOKEN")
        private = {}
        for name in os.listdir(f"/proc/{self.process.pid}/fd"):
            path = f"/proc/{self.process.pid}/fd/{name}"
            with contextlib.suppress(FileNotFoundError):  # closed since it was listed
                if not os.stat(path).st_mode & 0o4:
                    private[path] = os.readlink(path)
        self.assertTrue(any(link.endswith("colloc.db") for link in private.values()))
        for path in (
            "/proc/self/environ",
            "/proc/self/maps",
            f"/proc/{self.process.pid}/environ",
            "/proc/kmsg",
            *private,
        ):
            task = self.wait(self.submit_as(ADA, "echo mine", output=path))
            reply = self.request_as(ADA, "GET", f"/v1/tasks/{task['id']}/log")
            self.assertTrue(
                reply.status in (403, 409, 500) or reply.data == b"",
                (path, reply.status, reply.data[:200]),
            )

    def test_keys_of_one_user_are_not_anothers(self):
        """Tasks of all users descend from one daemon, but must not share its session keyring."""
        done = subprocess.run(
            ["python3", "-c", KEYS, "join"], capture_output=True, text=True, check=False
        )
        if done.stdout != "0\n":
            self.skipTest("the kernel or a sandbox refuses keyrings: " + done.stdout)
        self.daemon_prefix = ("python3", "-c", KEYS, "join")  # as a service manager does it
        self.restart()
        keys = self.write("keys.py", KEYS)
        mine = self.submit_as(
            ADA, f"python3 {keys} add; while [ ! -e go ]; do sleep 0.02; done; python3 {keys} find"
        )
        until(lambda: self.output(mine).strip(), "the key")
        self.assertGreater(int(self.output(mine)), 0)
        other = self.submit_as(BOB, f"python3 {keys} find; python3 {keys} revoke")
        self.wait(other, "COMPLETED")
        self.assertEqual(self.output(other).split(), ["-1", "0"])
        self.write("go", "")
        self.wait(mine, "COMPLETED")
        self.assertEqual(self.output(mine).split()[1], "SECRET")
        later = self.submit_as(ADA, f"python3 {keys} add")
        self.wait(later, "COMPLETED")
        self.assertGreater(int(self.output(later)), 0)

    def test_others_mps_is_not_mine(self):
        for verb in ("start", "stop"):
            for owner in (ADA, 0):
                reply = self.request_as(BOB, "POST", f"/v1/mps/{verb}", {"uid": owner})
                self.assertEqual(
                    (reply.status, reply.message), (403, f"user {owner}'s MPS is not yours")
                )
        self.assertEqual(self.get("/v1/mps")["daemons"], [])

    def test_a_fifo_as_output_blocks_no_other_task(self):
        task = self.submit_as(ADA, f"rm -f {self.work}/log; mkfifo {self.work}/log", output="log")
        self.wait(task, "COMPLETED")
        self.assertEqual(self.request_as(ADA, "GET", f"/v1/tasks/{task}/log").status, 409)

    def test_a_fifo_without_a_reader_does_not_hold_a_gpu(self):
        fifo = os.path.join(self.work, "fifo")
        os.mkfifo(fifo)
        os.chown(fifo, ADA, ADA)
        os.chmod(fifo, 0o200)
        task = self.wait(self.submit_as(ADA, output=fifo), "FAILED")
        self.assertEqual(task["reason"], "Launch")
        self.assertIn(fifo, task["reason_text"])

    def test_connections_of_one_user_do_not_take_all(self):
        silent = []
        with self.user(BOB):
            for _ in range(600):
                client = socket.socket(socket.AF_UNIX)
                client.connect(self.socket)
                silent.append(client)
        begin = time.monotonic()
        self.wait(self.submit_as(KNOWN), "COMPLETED")
        self.get("/v1/info")
        self.assertLess(time.monotonic() - begin, LIMIT_S)
        self.assertLess(len(os.listdir(f"/proc/{self.process.pid}/fd")), 320)
        for client in silent:
            client.close()
        until(
            lambda: len(os.listdir(f"/proc/{self.process.pid}/fd")) < 256,
            "the end of BOB's connections",
        )
        self.wait(self.submit_as(BOB), "COMPLETED")

    def test_bodies_of_one_user_do_not_take_all_memory(self):
        halves = []
        with self.user(BOB):
            for _ in range(9):
                client = self.connection()
                client.putrequest("POST", "/v1/tasks")
                client.putheader("Content-Length", str(16 << 20))
                client.endheaders(b" " * (8 << 20))
                halves.append(client)
        self.assertEqual(self.request_as(BOB, "GET", "/v1/info").status, 200)
        with self.user(BOB):
            self.refused(503, "pending requests")
        self.wait(self.submit_as(KNOWN), "COMPLETED")
        for client in halves:
            client.close()
        until(
            lambda: self.request_as(BOB, "POST", "/v1/tasks", self.body()).status == 201,
            "room for BOB",
        )

    def test_long_estimates_of_one_user_do_not_delay_others(self):
        blocks = 490 if "ASAN_OPTIONS" not in os.environ else 50
        layers = "".join(
            f"    (l{i}): Linear(in_features={64 + i * 37 % 1900}, "
            f"out_features={64 + i * 61 % 1900}, bias=True)\n"
            for i in range(100)
        )
        summary = {
            "name": "many.txt",
            "text": f"Net(\n  (0-{blocks - 1}): {blocks} x Block(\n{layers}  )\n)\n",
        }
        with self.user(BOB):
            floods = [self.connection() for _ in range(4)]
            for flood in floods:
                flood.connect()
        with self.user(ADA):
            mine = self.connection()
            mine.connect()
        self.get("/v1/info")
        self.process.send_signal(signal.SIGSTOP)  # so that all are there when it goes on
        for flood in floods:
            flood.request(
                "POST", "/v1/tasks", json.dumps(self.body(hold=True, batch=32, summary=summary))
            )
        mine.request("POST", "/v1/tasks", json.dumps(self.body()))
        self.process.send_signal(signal.SIGCONT)
        task = json.loads(mine.getresponse().read())["id"]
        self.assertLessEqual(task, len(floods))  # not the last; each takes some 10 ms
        self.assertEqual({flood.getresponse().status for flood in floods}, {201})
        self.wait(task, "COMPLETED")
        for connection in (mine, *floods):
            connection.close()

    def test_cancel_reaches_what_changed_its_session_only_of_its_own_task(self):
        other = self.submit_as(BOB, "echo $$ > bob; while :; do sleep 0.05; done")
        mine = self.submit_as(
            ADA, "(setsid sleep 1000 & echo $! > ada); while :; do sleep 0.05; done", grace_s=0.2
        )
        ada, bob = int(self.wait_file("ada")), int(self.wait_file("bob"))
        self.wait_state(mine, "RUNNING")
        self.assertEqual(self.request_as(ADA, "POST", f"/v1/tasks/{mine}/cancel").status, 200)
        self.wait(mine, "CANCELLED")
        self.assertFalse(is_alive(ada))
        self.assertTrue(is_alive(bob))
        self.act("cancel", other)

    def test_user_names_and_lists(self):
        for uid in (ADA, BOB, ADA):
            self.wait(self.submit_as(uid), "COMPLETED")
        self.wait(self.submit(), "COMPLETED")
        self.assertEqual({task["uid"] for task in self.tasks(state="all", user=ADA)}, {ADA})
        self.assertEqual(len(self.tasks(state="ended", limit=2, user=ADA)), 2)
        self.assertEqual(len(self.tasks(state="ended", limit=1, user="root")), 1)

    def test_the_web_page_is_for_users_with_a_name(self):
        """Each user has many uids without one, and would have connections and sessions for each."""
        reply = self.request_as(ADA, "POST", "/v1/web")
        self.assertEqual(reply.status, 403)
        self.assertIn(f"user {ADA} is not in the user database", reply.message)
        named = pwd.getpwnam("daemon").pw_uid
        self.assertNotEqual(self.request_as(named, "POST", "/v1/web").status, 403)


@unittest.skipIf(os.geteuid() != 0, "becoming other users needs root")
class Operators(Several):
    gpus = "2xA100-40GB"
    name = pwd.getpwuid(KNOWN).pw_name
    settings = {"operators": name, "suspend-without-gate": "yes"}

    def run_as(self, *words, uid=KNOWN, code=0):
        return self.colloc(*words, prefix=become(uid), code=code)

    def audited(self, event, task):
        by = f"by={self.name} by_uid={KNOWN}"
        self.wait_log(f"audit event={event} task={task} user={ADA} uid={ADA} {by}( |$)")

    def test_waiting_tasks_of_others(self):
        task = self.submit_as(ADA, hold=True, begin=time.time() + 1000)
        # The first request of the operator: the user database is asked meanwhile.
        self.run_as("release", str(task))
        self.run_as("hold", str(task))
        self.run_as("update", "--priority=high", "--name=soon", str(task))
        self.assertEqual(self.task(task)["priority"], "high")
        self.run_as("cancel", f"--user={ADA}")
        self.assertEqual(self.wait(task, "CANCELLED")["cancelled_by"], self.name)
        self.assertIn(f"cancelled by {self.name}", self.colloc("show", str(task)).stdout)
        for event in ("release", "hold", "update", "cancel"):
            self.audited(event, task)
        self.restart(signal.SIGKILL)
        self.assertEqual(self.task(task)["cancelled_by"], self.name)

    def test_arrays_of_others(self):
        self.submit_as(ADA, hold=True, array="0-2")
        first = min(task["id"] for task in self.tasks())
        self.run_as("update", "--priority=high", "1")
        self.run_as("cancel", "1")
        self.audited("cancel", first + 2)
        self.assertFalse(self.tasks())

    def test_running_tasks_of_others(self):
        with self.user(ADA):
            task = self.train(3000, 1e6, "--ramp-seconds=0")
        self.wait_state(task, "RUNNING")
        until(lambda: at_least(self.gpu()["mem_used_mib"], 3000), "its memory")
        self.run_as("suspend", str(task))
        self.assertEqual(self.task(task)["state"], "SUSPENDED")
        self.run_as("resume", str(task))
        here = self.wait_state(task, "RUNNING")["gpus"]  # GPU 1 as well: GPU 0 was just left
        done = self.run_as("move", f"--gpu={here[0]}", str(task), code=1)
        self.assertIn(f"task {task} is on that GPU already", done.stderr)
        other = "1" if here == ["0"] else "0"
        # A GPU that was just left takes a task when its memory is seen to be free.
        move = ("move", f"--gpu={other}", str(task))
        until(lambda: self.run_as(*move, code=None).returncode == 0)
        self.assertEqual(self.task(task)["gpus"], [other])
        self.run_as("update", "--time=9:00:00", str(task))
        self.run_as("update", "--time=10:00:00", str(task))  # a longer one
        self.run_as("requeue", str(task))
        for event in ("suspend-request", "resume-request", "move-request", "run-again"):
            self.audited(event, task)

    def test_operators_are_not_root(self):
        with self.user(ADA):
            task = self.submit(
                "echo secret; exec sleep 1000", environment={"TOKEN": "secret"}, command="a secret"
            )
        roots = self.submit(hold=True)
        self.wait_state(task, "RUNNING")
        seen = self.request_as(KNOWN, "GET", f"/v1/tasks/{task}")
        self.assertEqual(seen.status, 200)
        self.assertNotIn(b"secret", seen.data)
        held = self.request_as(KNOWN, "POST", f"/v1/tasks/{task}/update", {"name": "shown"})
        self.assertEqual(held.status, 200)
        self.assertNotIn(b"secret", held.data)
        for path in (f"/v1/tasks/{task}/log", f"/v1/tasks/{task}/request"):
            self.assertEqual(self.request_as(KNOWN, "GET", path).status, 403)
        for path, body in (
            (f"/v1/tasks/{task}/profile", {"steps": 1}),
            (f"/v1/tasks/{task}/latency", {"p99_ms": 1}),
            (f"/v1/tasks/{roots}/cancel", None),
            (f"/v1/tasks/{roots}/update", {"name": "mine"}),
            ("/v1/gpus/clear", {"gpu": "0"}),
        ):
            reply = self.request_as(KNOWN, "POST", path, body)
            self.assertEqual(reply.status, 403, path)
        many = self.request_as(KNOWN, "POST", "/v1/tasks/cancel", {"tasks": [roots]})
        self.assertEqual(many.json["results"][0]["status"], 403)

    def test_other_users_are_no_operators(self):
        task = self.submit_as(ADA, hold=True)
        done = self.run_as("cancel", str(task), uid=BOB, code=1)
        self.assertIn(f"task {task} is not yours", done.stderr)
        self.restart(operators=f"{BOB}, nosuch-user")  # a number is no name
        self.run_as("cancel", str(task), uid=BOB, code=1)
        self.run_as("cancel", str(task), code=1)
        self.assertEqual(self.task(task)["state"], "PENDING")


class FewBytes(Several):
    settings = {"bytes-per-user": "64KiB"}

    def test_texts_of_one_user_are_limited(self):
        script = "#!/bin/sh\n# " + "x" * 30000
        first = [self.submit_as(ADA, script, hold=True) for _ in range(2)]
        for restarted in (False, True):
            if restarted:
                self.restart(9)
            refused = self.request_as(ADA, "POST", "/v1/tasks", self.body(script))
            self.assertEqual(
                (refused.status, "bytes-per-user" in refused.message), (503, True), refused.data
            )
        self.assertEqual(
            self.request_as(BOB, "POST", "/v1/tasks", self.body(script)).status,
            503,
            "users without a name count together",
        )
        self.submit_as(KNOWN, script)
        self.submit("# " + "x" * 100000)
        with self.user(ADA):
            self.act("cancel", first[0])
        refused = self.request_as(ADA, "POST", "/v1/tasks", self.body(script))
        self.assertEqual(
            (refused.status, "ended in the last 24 hours" in refused.message),
            (503, True),
            refused.data,
        )

    def test_submit_and_cancel_does_not_fill_the_log(self):
        for uid in (ADA, KNOWN):
            statuses = []
            for _ in range(6):
                reply = self.request_as(
                    uid, "POST", "/v1/tasks", self.body("# " + "x" * 20000, hold=True)
                )
                statuses.append(reply.status)
                if reply.status == 201:
                    with self.user(uid):
                        self.assertEqual(self.act("cancel", reply.json["id"]).status, 200)
            self.assertEqual((statuses[0], statuses[-1]), (201, 503), statuses)

    def test_arguments_count_too(self):
        body = self.body("true", hold=True, arguments=["x" * 40000])
        statuses = [self.request_as(KNOWN, "POST", "/v1/tasks", body).status for _ in range(2)]
        self.assertEqual(statuses, [201, 503])

    def test_changes_count_too(self):
        task = self.submit_as(KNOWN, hold=True)
        change, path = {"name": "n" * 200}, f"/v1/tasks/{task}/update"
        statuses = [self.request_as(KNOWN, "POST", path, change).status for _ in range(100)]
        self.assertEqual(statuses, sorted(statuses))
        self.assertEqual((statuses[0], statuses[-1]), (200, 409))
        self.restart(9)
        refused = self.request_as(KNOWN, "POST", path, change)
        self.assertEqual((refused.status, "bytes-per-user" in refused.message), (409, True))
        self.assertEqual(self.request("POST", path, change).status, 200, "root may change it")


class ChangesOfArrays(Several):
    """Each change of each task is an event of the log, whatever a request is."""

    limit = 256 << 10
    settings = {"bytes-per-user": "256KiB"}

    def test_holds_and_releases_count(self):
        with self.user(KNOWN):
            first = self.submit(hold=True)
            array = self.submit(array="0-19", hold=True, after=f"any:{first}")
            verbs = itertools.cycle(["release", "hold"])
            until(lambda: self.act(next(verbs), array).status >= 400, "a refusal")
        with sqlite3.connect(self.state + "/colloc.db") as log:
            kinds = dict(log.execute("SELECT kind, count(*) FROM events GROUP BY kind"))
        log.close()
        self.assertGreater(kinds["RELEASE"], 100)
        self.assertLess((kinds["HOLD"] + kinds["RELEASE"]) * 500, self.limit)


@unittest.skipIf(os.geteuid() != 0, "becoming other users needs root")
class Changes(Several):
    def change(self, connection, task, verb, body=None):
        connection.request("POST", f"/v1/tasks/{task}/{verb}", json.dumps(body or {}))
        reply = connection.getresponse()
        reply.read()
        return reply.status

    def test_a_task_is_changed_at_most_so_often(self):
        task = self.submit_as(KNOWN, hold=True)
        array = self.submit_as(KNOWN, hold=True, array="0-1")
        with self.user(KNOWN):
            connection = self.connection()
            connection.connect()
        with contextlib.closing(connection):
            for each in (task, array):
                for _ in range(1000):
                    self.assertEqual(self.change(connection, each, "update", {"name": "a"}), 200)
                before = self.task(f"{each}_0" if each == array else each)
                self.assertEqual(self.change(connection, each, "update", {"name": "b"}), 409)
                after = self.task(f"{each}_0" if each == array else each)
                self.assertEqual(after["name"], "a")
                self.assertEqual(len(before["events"]), len(after["events"]))
            self.assertEqual(self.change(connection, task, "release"), 200)


@unittest.skipIf(os.geteuid() != 0, "becoming other users needs root")
class Output(Several):
    """Output without a name goes to the task's folder; to the state folder where that fails."""

    def check_kept(self, task, why):
        self.wait(task, "COMPLETED")
        with self.user(ADA):
            first, _, rest = self.output(task).partition("\n")
        self.assertIn("colloc: the output is kept here: ", first)
        self.assertIn(why, first)
        self.assertEqual(rest, "out\nerr\n")

    def submit_both(self, **members):
        return self.submit_as(ADA, "echo out; echo err >&2", **members)

    def test_the_folder_of_the_task(self):
        task = self.submit_both()
        self.wait(task, "COMPLETED")
        path = f"{self.work}/colloc-{task}.out"
        self.assertEqual((read(path), os.stat(path).st_uid), ("out\nerr\n", ADA))

    def test_a_folder_that_cannot_be_written(self):
        os.chmod(self.work, 0o755)
        self.check_kept(self.submit_both(), "Permission denied")
        failed = self.wait(self.submit_as(ADA, "echo boom >&2; exit 3"), "FAILED")
        self.assertEqual((failed["exit_code"], failed["evidence"]), (3, "boom"))
        self.assertEqual(os.listdir(self.work), [])

    def test_another_users_file_or_link(self):
        task = self.submit_both(hold=True)
        with self.user(ADA):
            with open(self.work + "/precious", "wb") as file:
                file.write(b"precious")
        with self.user(BOB):
            os.symlink("precious", f"{self.work}/colloc-{task}.out")
            os.mkfifo(f"{self.work}/colloc-{task + 1}.out", 0o666)
            os.close(os.open(f"{self.work}/colloc-{task + 2}.out", os.O_CREAT | os.O_WRONLY, 0o666))
        os.chmod(f"{self.work}/colloc-{task + 1}.out", 0o666)
        os.chmod(f"{self.work}/colloc-{task + 2}.out", 0o666)
        with self.user(ADA):
            self.act("release", task)
        self.check_kept(task, "symbolic links")
        self.check_kept(self.submit_both(), "File exists")
        self.check_kept(self.submit_both(), "File exists")
        self.assertEqual(self.read("precious"), "precious")

    def test_a_task_of_before_keeps_its_streams_apart(self):
        task = self.submit_both(hold=True)
        self.stop()
        with sqlite3.connect(self.state + "/colloc.db") as log:
            for statement in (
                "UPDATE events SET detail = json_remove(detail, '$.output', '$.output_is_default')",
                *TO_VERSION_1,
            ):
                log.execute(statement)
        log.close()
        self.start()
        with self.user(ADA):
            self.act("release", task)
        self.wait(task, "COMPLETED")
        with self.user(ADA):
            self.assertEqual((self.output(task), self.output(task, "stderr")), ("out\n", "err\n"))
        self.assertEqual(os.listdir(self.work), [])


@unittest.skipIf(os.geteuid() != 0, "becoming other users needs root")
class Many(Several):
    settings = {"tasks-per-user": "3"}

    def test_one_user_does_not_fill_the_queue(self):
        tasks = [self.submit_as(ADA, hold=True) for _ in range(3)]
        refused = self.request_as(ADA, "POST", "/v1/tasks", self.body("true"))
        self.assertEqual(refused.status, 503, refused.data)
        self.assertIn("3 tasks of yours have not ended", refused.json["error"]["message"])
        self.assertEqual(
            self.request_as(BOB, "POST", "/v1/tasks", self.body("true")).status,
            503,
            "users without a name count together",
        )
        self.submit_as(KNOWN, hold=True)
        self.request_as(ADA, "POST", f"/v1/tasks/{tasks[0]}/cancel")
        self.submit_as(ADA, hold=True)
        self.restart(signal.SIGKILL)
        self.assertEqual(self.request_as(ADA, "POST", "/v1/tasks", self.body("true")).status, 503)
        for _ in range(4):
            self.submit(hold=True)


class MpsClients(Several):
    settings = {"sharing": "mps"}

    def setUp(self):
        if not may_run(ADA):
            self.skipTest("the build is not open to other users")
        super().setUp()
        os.chmod(self.env["COLLOC_EMULATOR"], 0o666)

    def trains(self, uid):
        return self.submit_as(
            uid,
            "exec colloc-pretend-train --memory-mib=3000 --seconds=1e6 --ramp-seconds=1 "
            "--smact=0.1",
        )


class MpsOnAnInstance(MpsClients):
    gpus = "1xA100-40GB:2g.10gb"

    def test_users_have_their_own_control_daemons(self):
        first, second = self.trains(ADA), self.trains(BOB)
        why = f"GPU 0:0: task {first} of another user shares it by MPS"
        until(lambda: why in self.task(second)["reason_text"], why)
        self.restart(mps_users_together="yes")
        until(lambda: "(MPS)" in self.output(second), "a client of MPS")
        owners = [
            (d["uid"], d["gpu"], os.stat(d["pipe_directory"]).st_uid)
            for d in self.get("/v1/mps")["daemons"]
            if d["state"] == "running"
        ]
        self.assertEqual(sorted(owners), [(ADA, "0:0", ADA), (BOB, "0:0", BOB)])
        for task in (first, second):
            self.act("cancel", task)
            self.wait(task, "CANCELLED")


class Mps(MpsClients):
    gpus = "1xA100-40GB"

    def test_another_user_s_tasks_are_kept_apart_and_the_reason_is_shown(self):
        first, second = self.trains(ADA), self.trains(BOB)
        why = f"GPU 0: task {first} of another user shares it by MPS"
        until(lambda: why in self.task(second)["reason_text"], why)
        third = self.submit_as(BOB, "true", sharing="streams")
        self.act("cancel", first)
        self.wait_state(second, "RUNNING")
        self.wait(third, "COMPLETED")
        self.act("cancel", second)
        self.wait(second, "CANCELLED")

    def test_what_runs_as_the_user_has_nothing_of_roots_environment(self):
        self.env["ROOTS_TOKEN"] = "secret"
        self.restart()
        self.env.pop("ROOTS_TOKEN")
        task = self.trains(ADA)
        until(lambda: "(MPS)" in self.output(task), "a client of MPS")
        with open(
            f"{self.state}/mps/{ADA}/pipe/nvidia-cuda-mps-control.pid", encoding="ascii"
        ) as file:
            environment = read(f"/proc/{int(file.read())}/environ").split("\0")
        self.assertIn("PATH=" + self.env["PATH"], environment)
        self.assertNotIn("ROOTS_TOKEN=secret", environment)
        self.act("cancel", task)
        self.wait(task, "CANCELLED")

    def test_it_has_all_groups_of_the_user(self):
        found = next(
            ((pwd.getpwnam(name), group) for group in grp.getgrall() for name in group.gr_mem), None
        )
        if not found:
            self.skipTest("no user here is in a second group")
        user, group = found
        self.colloc("mps", "start", f"--user={user.pw_name}")
        with open(
            f"{self.state}/mps/{user.pw_uid}/pipe/nvidia-cuda-mps-control.pid", encoding="ascii"
        ) as file:
            status = read(f"/proc/{int(file.read())}/status")
        groups = status.partition("\nGroups:")[2].partition("\n")[0].split()
        self.assertIn(str(group.gr_gid), groups)
        self.assertNotIn("0", groups)
        self.colloc("mps", "stop", f"--user={user.pw_name}")

    def test_an_unknown_uid_gets_no_group_of_root(self):
        self.assertIn(
            "no such user is known here", self.colloc("mps", "start", "--user=64077", code=1).stderr
        )
        self.assertFalse(os.path.exists(f"{self.state}/mps/64077"))
        task = self.trains(ADA)
        until(lambda: "(MPS)" in self.output(task), "a client of MPS")
        self.colloc("mps", "start", f"--user={ADA}")
        self.act("cancel", task)
        self.wait(task, "CANCELLED")

    def test_each_user_has_a_server(self):
        self.restart(mps_users_together="yes")
        tasks = [(uid, self.trains(uid)) for uid in (ADA, BOB)]
        for uid, task in tasks:
            self.wait_state(task, "RUNNING")
            self.assertEqual(os.stat(f"{self.state}/mps/{uid}").st_uid, uid)
        self.wait_gpu(lambda gpu: len(gpu["tasks"]) == 2 and (gpu["mem_used_mib"] or 0) > 5900)
        for _, task in tasks:
            self.act("cancel", task)
            self.wait(task, "CANCELLED")


class MpsDisturbed(DaemonCase):
    """What starts a user's MPS is that user's process: he may signal it at any moment."""

    settings = {"sharing": "mps"}

    def start(self, **settings):
        self.programs = os.path.join(self.folder, "bin")
        os.makedirs(self.programs, exist_ok=True)
        self.env["PATH"] = self.programs + ":" + self.env["PATH"]
        super().start(**settings)

    def replace_program(self, script):
        with open(f"{self.programs}/nvidia-cuda-mps-control", "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(file.name, 0o755)

    def disturb(self, name):
        self.replace_program(f"kill -{name} $PPID")
        task = self.submit()
        self.wait_log("shares by time slices")
        self.wait(task, "COMPLETED")

    def test_a_stop_delays_others_only_shortly(self):
        self.disturb("STOP")

    def test_one_that_is_stopped_keeps_nothing_from_the_next_collocd(self):
        self.replace_program(f"kill -STOP $PPID; echo $PPID > {self.work}/stopped")
        self.submit()
        child = int(self.wait_file("stopped"))
        self.replace_program("exit 1")  # stops no process of the next one, whose log must end
        self.process.kill()
        self.process.wait()
        self.start()
        self.assertTrue(is_alive(child))

    def test_a_sigterm_ends_only_what_it_is_sent_to(self):
        self.disturb("TERM")
        self.assertEqual(self.get("/v1/info")["pid"], self.process.pid)
        self.assertNotIn("going down", "\n".join(self.log))


@unittest.skipIf(os.geteuid() != 0, "becoming other users needs root")
class OwnDaemon(DaemonCase):
    """One that a user runs for himself."""

    daemon_prefix = become(ADA)

    def start(self, **settings):
        if not may_run(ADA):
            self.skipTest("the build is not open to other users")
        for path in (self.folder, self.work, self.env["COLLOC_EMULATOR"]):
            os.chown(path, ADA, ADA)
        super().start(**settings)

    def test_is_of_its_user_only(self):
        self.assertEqual(stat.S_IMODE(os.stat(self.socket).st_mode), 0o600)
        task = subprocess.run(
            [*become(BOB), program("colloc"), "queue"],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertNotEqual(task.returncode, 0)
        done = subprocess.run(
            [*become(ADA), program("colloc"), "submit", "--wait", "--", "id", "-u"],
            env=self.env,
            cwd=self.work,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.output(1), f"{ADA}\n")

    def test_refuses_a_socket_folder_of_another_user(self):
        self.stop()
        place = os.path.join(self.folder, "place")
        os.mkdir(place)
        for owner, mode in ((BOB, 0o777), (ADA, 0o777)):
            os.chown(place, owner, owner)
            os.chmod(place, mode)
            status, words = self.run_daemon(socket=place + "/s")
            self.assertEqual(status, 1)
            self.assertIn(place + ": ", words)
            self.assertEqual(os.listdir(place), [])

    def test_the_cli_does_not_use_a_folder_of_another_user(self):
        """BOB made the folder of ADA's socket, with a link to a socket that is hers."""
        env = {key: value for key, value in self.env.items() if key != "COLLOC_SOCKET"}
        runtime = os.path.join(self.folder, "run")
        os.makedirs(runtime + "/colloc")
        os.symlink(self.socket, runtime + "/colloc/collocd.sock")
        for owner, works in ((ADA, True), (BOB, False)):
            os.chown(runtime + "/colloc", owner, owner)
            done = subprocess.run(
                [*become(ADA), program("colloc"), "queue"],
                env={**env, "XDG_RUNTIME_DIR": runtime},
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode == 0, works, done.stderr)

    def test_refuses_a_state_folder_of_another_user(self):
        self.stop()
        os.chown(self.state, BOB, BOB)
        status, words = self.run_daemon()
        self.assertEqual(status, 1)
        self.assertIn(self.state, words)


if __name__ == "__main__":
    unittest.main()
