# SPDX-License-Identifier: Apache-2.0
"""A full disk, a damaged or too new log, a second daemon: a clear message, and no harm."""

import os
import shutil
import sqlite3
import subprocess
import unittest

from daemon_case import LIMIT_S, DaemonCase, cgroup_of, is_alive, program, read, until


class SecondDaemon(DaemonCase):
    def test_on_the_same_socket(self):
        status, words = self.run_daemon(state_dir=self.folder + "/other")
        self.assertEqual(status, 1)
        self.assertIn(self.socket + ": another collocd serves it", words)
        self.wait(self.submit(), "COMPLETED")

    def test_on_the_same_state(self):
        status, words = self.run_daemon(socket=self.folder + "/other")
        self.assertEqual(status, 1)
        self.assertIn(f"another collocd (process {self.process.pid})", words)
        self.assertFalse(os.path.exists(self.folder + "/other"))
        self.wait(self.submit(), "COMPLETED")

    def test_a_socket_left_behind_is_replaced(self):
        self.stop(9)
        self.assertTrue(os.path.exists(self.socket))
        self.start()
        self.wait(self.submit(), "COMPLETED")
        self.stop()
        self.assertFalse(os.path.exists(self.socket))
        self.write_socket("no socket")
        status, words = self.run_daemon()
        self.assertEqual((status, self.socket in words), (1, True), words)
        self.assertEqual(read(self.socket), "no socket")

    def write_socket(self, text):
        with open(self.socket, "w", encoding="ascii") as file:
            file.write(text)

    def test_a_file_system_without_links(self):
        """The one of cgroups takes folders, and refuses links."""
        state = os.path.join(cgroup_of("self") or "/nonexistent", f"colloc-{os.getpid()}")
        try:
            os.mkdir(state)
        except OSError as error:
            self.skipTest(f"no cgroup can be made: {error}")
        self.addCleanup(os.rmdir, state)
        status, words = self.run_daemon(socket=self.folder + "/other", state_dir=state)
        self.assertEqual(status, 1)
        self.assertIn(f"{state}: no symbolic link can be made there", words)

    def test_bad_settings(self):
        self.stop()
        for settings, word in (
            ({"policy": "best"}, "policy"),
            ({"window": "soon"}, "window"),
            ({"colour": "red"}, "colour"),
            ({"sample-period": "0"}, "sample-period"),
            ({"socket": "x" * 200}, "socket"),
            ({"config": "/no/such.yaml"}, "/no/such.yaml"),
        ):
            status, words = self.run_daemon(**settings)
            self.assertEqual(status, 2, words)
            self.assertIn(word, words)

    def test_bad_settings_files(self):
        self.stop()
        path = os.path.join(self.folder, "collocd.yaml")
        for text, word in (
            ("policy = rr\nwindow = 3s\n", ":1: 'policy = rr"),
            ("rr\n", ":1: 'rr': expected"),
            ("- policy: rr\n", ":1: a list is not expected here"),
            ("policy:\n  a: b\n", ":2: policy"),
            ("smact: 1\n", "smact"),
        ):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            status, words = self.run_daemon(config=path)
            self.assertEqual(status, 2, words)
            self.assertIn(word, words)
        status, words = self.run_daemon(config=self.folder)
        self.assertEqual((status, words), (2, f"collocd: {self.folder}: is a folder\n"))


class Log(DaemonCase):
    def database(self):
        return os.path.join(self.state, "colloc.db")

    def with_tasks(self):
        self.wait(self.submit("echo first"), "COMPLETED")
        self.submit("echo second", hold=True)
        self.stop()

    def test_newer(self):
        self.with_tasks()
        with sqlite3.connect(self.database()) as log:
            log.execute("PRAGMA user_version = 4711")
        log.close()
        before = read(self.database(), "rb")
        status, words = self.run_daemon()
        self.assertEqual(status, 1)
        self.assertIn("newer", words)
        self.assertIn("colloc.db", words)
        self.assertEqual(read(self.database(), "rb"), before)

    def test_damaged(self):
        self.with_tasks()
        size = os.path.getsize(self.database())
        for damage in (
            b"not a database at all" * 100,
            b"",
            read(self.database(), "rb")[: size // 2],
        ):
            with open(self.database(), "wb") as file:
                file.write(damage)
            status, words = self.run_daemon()
            self.assertEqual(status, 1)
            self.assertIn("colloc.db", words)
            self.assertEqual(read(self.database(), "rb"), damage)

    def test_a_log_that_is_deleted_is_missed(self):
        self.start_and_lose_log()
        log = "\n".join(self.log)
        self.assertRegex(log, "colloc.db: it is missing, and a new event log begins.* up to 3: ")
        self.assertNotIn("outlived", log)
        until(lambda: not is_alive(self.pid), "the end of its process")
        since = len(self.log)
        self.restart()  # it is said once
        self.assertNotIn("it is missing", "\n".join(self.log[since:]))

    def start_and_lose_log(self):
        for _ in range(2):
            self.wait(self.submit(), "COMPLETED")
        self.wait_state(self.submit("echo $$ > pid; exec sleep 1000"), "RUNNING")
        self.pid = int(until(lambda: self.read_if("pid"), "its start"))
        self.stop(9)
        for name in os.listdir(self.state):
            if name.startswith("colloc.db"):
                os.unlink(os.path.join(self.state, name))
        self.start()

    def test_a_new_folder_misses_nothing(self):
        self.assertNotIn("it is missing", "\n".join(self.log))

    def test_moved_away_begins_anew(self):
        self.with_tasks()
        os.mkdir(self.folder + "/away")
        for name in os.listdir(self.state):
            if name.startswith("colloc.db"):
                shutil.move(os.path.join(self.state, name), self.folder + "/away")
        self.start()
        self.assertEqual(self.tasks(state="all"), [])
        task = self.submit("echo third")
        self.wait(task, "COMPLETED")
        self.assertEqual(self.output(task), "third\n")


class KeptOutput(DaemonCase):
    """Output that goes to the state folder, for the task's folder does not take it, has a cap."""

    settings = {"kept-output": "256KiB"}
    cap = 256 << 10
    lines = 60000

    def start_writer(self):
        """A task that has written far more than the cap and waits for a line in `go`."""
        os.mkfifo(self.work + "/go")
        os.mkdir(self.work + "/colloc-1.out")
        task = self.submit(f"seq {self.lines}; echo written > done; read line < go; echo last")
        self.wait_file("done")
        path = f"{self.state}/tasks/{task}/1/stdout"
        until(lambda: os.stat(path).st_blocks * 512 <= self.cap, "the drop of the older half")
        self.assertGreaterEqual(os.stat(path).st_blocks * 512, self.cap // 2)
        self.assertGreater(os.stat(path).st_size, self.cap)
        return task

    def finish(self, task):
        self.write("go", "\n")
        self.wait(task, "COMPLETED")

    def check_lines(self, text, last):
        """The newest lines, none of them missing, behind the rest of one that is cut."""
        numbers = [int(line) for line in text.splitlines()[1 : -1 if last == "last" else None]]
        self.assertEqual(numbers, list(range(self.lines - len(numbers) + 1, self.lines + 1)))
        self.assertTrue(text.endswith(last + "\n"), text[-100:])
        self.assertNotIn("\0", text)

    def test_the_older_half_is_dropped_while_it_runs(self):
        task = self.start_writer()
        self.check_lines(self.output(task), str(self.lines))
        follower = subprocess.Popen(
            [program("colloc"), "logs", "-f", str(task)],
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.finish(task)
        out, err = follower.communicate(timeout=LIMIT_S)
        self.check_lines(out, "last")
        self.assertRegex(
            err,
            rf"colloc: task {task}: [0-9.]+ [KM]iB of its output before this were dropped "
            r"\(collocd's setting kept-output\)",
        )
        self.check_lines(self.colloc("logs", str(task)).stdout, "last")

    def test_a_follower_goes_on_where_the_file_was_emptied(self):
        """As the cap does where files cannot have holes."""
        os.mkfifo(self.work + "/go")
        os.mkdir(self.work + "/colloc-1.out")
        task = self.submit("seq 1000; echo written > done; read line < go; echo last")
        self.wait_file("done")
        with open(self.folder + "/followed", "w+", encoding="utf-8") as followed:
            follower = subprocess.Popen(
                [program("colloc"), "logs", "-f", str(task)], env=self.env, stdout=followed
            )
            until(lambda: "\n1000\n" in read(followed.name), "the lines before")
            os.truncate(f"{self.state}/tasks/{task}/1/stdout", 0)
            self.finish(task)
            self.assertEqual(follower.wait(LIMIT_S), 0)
            self.assertTrue(read(followed.name).endswith("\nlast\n"))

    def test_the_last_lines(self):
        task = self.start_writer()
        self.finish(task)
        done = self.colloc("logs", "-n", "3", str(task))
        self.assertEqual(
            (done.stdout, done.stderr), (f"{self.lines - 1}\n{self.lines}\nlast\n", "")
        )
        self.assertEqual(self.output(task, tail=5), "last\n")
        done = self.colloc("logs", "-n", str(self.lines), str(task))
        self.check_lines(done.stdout, "last")
        self.assertIn("were dropped", done.stderr)

    def test_each_piece_says_what_it_skips(self):
        task = self.start_writer()
        first = self.request("GET", f"/v1/tasks/{task}/log?offset=100")
        begin, size = int(first.headers["Colloc-Next-Offset"]) - len(first.data), len(first.data)
        self.assertEqual(int(first.headers["Colloc-Dropped"]), begin - 100)
        second = self.request("GET", f"/v1/tasks/{task}/log?offset={begin + 10}")
        self.assertEqual(
            (second.data, second.headers.get("Colloc-Dropped")), (first.data[10:], None)
        )
        end = self.request("GET", f"/v1/tasks/{task}/log?offset={begin + size}")
        self.assertEqual((end.data, end.headers.get("Colloc-Dropped")), (b"", None))
        self.finish(task)

    def test_what_a_user_names_is_the_users(self):
        task = self.submit(f"seq {self.lines}", output="named")
        self.wait(task, "COMPLETED")
        self.assertEqual(self.read("named").split(), [str(i) for i in range(1, self.lines + 1)])


class OutputMax(DaemonCase):
    """The default output file in the task's folder, and the one before it, have a limit."""

    settings = {"output-max": "256KiB"}
    lines = 60000

    def size_of(self, name):
        return os.path.getsize(os.path.join(self.work, name))

    def test_the_newest_lines_are_there_and_a_line_says_what_is_not(self):
        os.mkfifo(self.work + "/go")
        task = self.submit(f"seq {self.lines}; echo printed > done; read line < go; echo last >&2")
        self.wait_file("done")
        name, older = f"colloc-{task}.out", f"colloc-{task}.out.1"
        until(lambda: f"\n{self.lines}\n" in self.read(name), "what the task has printed")
        follower = subprocess.Popen(
            [program("colloc"), "logs", "-f", str(task)],
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
        )
        self.write("go", "\n")
        self.wait(task, "COMPLETED")
        line, *after = self.read(name).splitlines()
        before = self.read(older).splitlines()[1:]
        self.assertRegex(
            line,
            rf"^colloc: the output before this is in {older}, and [0-9.]+ MiB before that were "
            r"dropped \(setting output-max\)$",
        )
        self.assertEqual(after.pop(), "last")
        numbers = [int(number) for number in before + after]
        self.assertEqual(numbers, list(range(self.lines - len(numbers) + 1, self.lines + 1)))
        self.assertLessEqual(self.size_of(name) + self.size_of(older), 256 << 10)
        self.assertEqual(follower.communicate(timeout=LIMIT_S)[0], self.read(name))
        self.assertEqual(self.colloc("logs", str(task)).stdout, self.read(name))

    def test_one_that_is_followed_begins_anew(self):
        os.mkfifo(self.work + "/go")
        task = self.submit("seq 10000; read line < go; seq 10001 30000; echo last")
        follower = subprocess.Popen(
            [program("colloc"), "logs", "-f", str(task)],
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
        )
        for line in follower.stdout:
            if line == "10000\n":
                break
        self.write("go", "\n")
        self.assertTrue(follower.communicate(timeout=LIMIT_S)[0].endswith("30000\nlast\n"))
        self.wait(task, "COMPLETED")

    def test_the_reason_of_a_failure_is_found_behind_much_output(self):
        task = self.submit(
            f"seq {self.lines}; echo 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to "
            "allocate 2.00 GiB' >&2; exit 1",
            requeue=False,
        )
        self.assertEqual(self.wait(task)["failure"], "gpu-oom")

    def test_the_file_of_another_user_is_left_alone(self):
        os.mkdir(self.work + "/colloc-1.out.1")
        task = self.submit(f"seq {self.lines}")
        self.wait(task, "COMPLETED")
        text = self.read(f"colloc-{task}.out")
        self.assertRegex(text, r"^colloc: [0-9.]+ MiB of the output before this were dropped\n")
        self.assertTrue(text.endswith(f"\n{self.lines}\n"))

    def test_what_a_user_names_is_the_users(self):
        task = self.submit(f"seq {self.lines}", output="named")
        self.wait(task, "COMPLETED")
        self.assertEqual(self.read("named").split(), [str(i) for i in range(1, self.lines + 1)])

    def test_a_cancelled_task_leaves_no_process(self):
        task = self.submit(
            "trap 'seq 70000; exit 3' TERM; echo >ready; while true; do sleep 0.1; done"
        )
        self.wait_file("ready")
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        self.assertIn("\n70000\n", self.read(f"colloc-{task}.out"))


@unittest.skipIf(os.geteuid() != 0, "mounting a small disk needs root")
class SmallDisk(DaemonCase):
    mounted = ""  # the small disk, below the state folder
    options = "size=3m"

    def start(self, **settings):
        if not self.log:
            self.mount(self.state + self.mounted)
        super().start(**settings)

    def mount(self, folder):
        os.makedirs(folder, 0o711)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", self.options + ",mode=711", "colloc-test", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        if mounted.returncode:
            self.skipTest("cannot mount: " + mounted.stderr)

    def tear_down_daemon(self):
        if self.process and self.process.poll() is None:
            self.stop(9)
        until(lambda: not self.kill_all(), "the end of all processes")
        until(self.unmount, "the end of the mount")
        super().tear_down_daemon()

    def unmount(self):
        """The kernel may close the files of an ended process a moment later."""
        folder = self.state + self.mounted
        if os.path.ismount(folder):
            subprocess.run(["umount", folder], check=False, stderr=subprocess.DEVNULL)
        return not os.path.ismount(folder)

    def wait_deferred(self, since):
        """The lines from there on may have been read already."""
        until(lambda: any("start deferred" in line for line in self.log[since:]), "its word")

    def fill(self):
        path = self.state + self.mounted + "/ballast"
        with open(path, "ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass
        return path


class FullTasks(SmallDisk):
    """The log has room, the tasks' folders have none."""

    mounted = "/tasks"

    def test_a_start_waits_for_room(self):
        ballast = self.fill()
        tasks = [self.submit(f"echo $COLLOC_TASK_ID >> ran # {'x' * 5000}") for _ in range(3)]
        self.wait_log("task 1: start deferred.*No space left")
        self.assertEqual(self.act("cancel", tasks[1]).status, 200)
        since = len(self.log)
        self.restart(9)
        self.wait_deferred(since)
        os.unlink(ballast)
        self.wait(tasks[0], "COMPLETED")
        self.wait(tasks[1], "CANCELLED")
        self.wait(tasks[2], "COMPLETED")
        self.assertEqual(sorted(map(int, self.read("ran").split())), [tasks[0], tasks[2]])


class BarelyRoom(SmallDisk):
    """The disk is full at each page of a start: spec, script, claim, exit record."""

    mounted = "/tasks"

    def has_tried(self, task):
        """The task once it has ended, or is to be started again."""
        found = self.task(task)
        is_retried = found["reason_text"].startswith("its start is retried")
        return found if found["state"] == "COMPLETED" or is_retried else None

    def test_a_start_is_never_a_failure(self):
        deferred = 0
        for pages in range(12):
            ballast = self.fill()
            os.truncate(ballast, os.stat(ballast).st_size - pages * 4096)
            task = self.submit(f"echo $COLLOC_TASK_ID >> ran # {'x' * 5000}", output="/dev/null")
            found = until(lambda task=task: self.has_tried(task), "a start, or why not")
            self.assertIn(
                (found["state"], found["reason"]),
                (("PENDING", "Resources"), ("COMPLETED", found["reason"])),
                found,
            )
            deferred += found["state"] == "PENDING"
            os.unlink(ballast)
            self.assertEqual(self.wait(task, "COMPLETED")["attempt_count"], 1)
        self.assertGreater(deferred, 3)
        self.assertLess(deferred, 12)
        self.assertEqual(self.read("ran").split(), [str(task) for task in range(1, 13)])


class FullInodes(SmallDisk):
    """There is space, but no file can be made."""

    mounted = "/tasks"
    options = "size=3m,nr_inodes=40"

    def test_a_start_waits_as_pending(self):
        ballast = os.path.join(self.state, "tasks", "ballast")
        os.mkdir(ballast)
        with self.assertRaises(OSError):
            for i in range(1000):
                os.mkdir(f"{ballast}/{i}")
        task = self.submit("echo ran >> ran")
        self.wait_log(f"task {task}: start deferred.*No space left")
        for _ in range(3):
            found = self.task(task)
            self.assertEqual(
                (found["state"], found["reason"], found["started_at"]),
                ("PENDING", "Resources", None),
                found,
            )
            self.assertIn("No space left", found["reason_text"])
            self.assertEqual([found["id"] for found in self.tasks(state="PENDING")], [task])
            since = len(self.log)
            self.restart(9)
            self.wait_deferred(since)
        shutil.rmtree(ballast)
        self.assertEqual(self.wait(task, "COMPLETED")["attempt_count"], 1)
        self.assertEqual(self.read("ran"), "ran\n")

    def test_ended_tasks_leave_only_their_output(self):
        for _ in range(60):
            self.wait(self.submit("true", output="/dev/null"), "COMPLETED")
        until(lambda: not os.listdir(self.state + "/tasks"), "the removal of all folders")


class KeptOfUsers(SmallDisk):
    """Output in the state folder gives way: the oldest of the user that has most."""

    options = "size=20m"
    settings = {"log-reserve": "1MiB"}
    size = 1 << 20

    def write_output(self, task):
        """A task whose folder does not take its output. It waits for space, where there is none."""
        os.mkdir(f"{self.work}/colloc-{task}.out")
        body = self.body(f"yes 'one line of output' | head -c {self.size}; echo end of {task}")
        until(
            lambda: self.request("POST", "/v1/tasks", body).status == 201,
            f"space for task {task}",
        )
        self.wait(task)

    def kept(self, task):
        """Bytes on the disk."""
        return os.stat(f"{self.state}/tasks/{task}/1/stdout").st_blocks * 512

    def check_dropped(self, task):
        until(lambda: self.kept(task) <= 32 << 10, f"the drop of the output of task {task}")
        text = self.output(task)
        self.assertTrue(text.endswith(f"end of {task}\n"), text[-100:])
        self.assertLess(len(text), 32 << 10)

    def test_a_full_disk(self):
        last = 40
        for task in range(1, last + 1):
            self.write_output(task)
        self.check_dropped(1)
        self.wait_log("of output in the state folder were dropped")
        until(
            lambda: self.request("POST", "/v1/tasks", self.body("true")).status == 201,
            "space for one more task",
        )
        self.wait(last + 1, "COMPLETED")

    def test_a_limit_per_user(self):
        for task in range(1, 5):
            self.write_output(task)
        self.restart(**{"kept-output-per-user": "2.5MiB"})  # at the start, and each half minute
        self.check_dropped(1)
        self.check_dropped(2)
        self.assertGreater(self.kept(3), self.size)
        self.assertGreater(self.kept(4), self.size)


class Ending(SmallDisk):
    """Running tasks end on a full disk: by themselves, by cancel, by their time limit."""

    def running(self, script, **members):
        task = self.submit(f"echo $$ >> pid; {script}", output=self.work + "/out", **members)
        pid = until(lambda: self.read_if("pid"), "the task's start").split()[-1]
        os.unlink(self.work + "/pid")
        until(lambda: self.task(task)["started_at"], "its start")  # it may reach its limit by then
        return task, int(pid)

    def fill_log(self):
        ballast = self.fill()
        for _ in range(1000):
            if (
                self.request(
                    "POST", "/v1/tasks", self.body(f"# {os.urandom(3000).hex()}", hold=True)
                ).status
                == 507
            ):
                return ballast
        return self.fail("the disk is never full")

    def cases(self):
        os.mkfifo(self.work + "/go")
        return (
            self.running("sleep 1000"),
            self.running("sleep 1000", time_limit_s=4),
            self.running("read line < go; exit 7"),
        )

    def check(self, cases):
        (cancelled, _), (timed_out, _), (ended, _) = cases
        self.wait(cancelled, "CANCELLED")
        self.wait(timed_out, "TIMEOUT")
        self.assertEqual(self.wait(ended, "FAILED")["exit_code"], 7)
        for task in (cancelled, timed_out, ended):
            self.assertEqual(self.task(task)["attempt_count"], 1)

    def end_all(self, cases, status):
        reply = self.act("cancel", cases[0][0])
        self.assertEqual(reply.status, status, reply.data)
        self.write("go", "\n")
        for _, pid in cases:
            self.wait_gone(pid)
        return reply


class EndingWithoutReserve(Ending):
    settings = {"log-reserve": "0"}

    def test_they_end_and_it_is_recorded_later(self):
        cases = self.cases()
        ballast = self.fill_log()
        reply = self.end_all(cases, 202)
        self.assertIn("will be recorded once the disk", reply.json["note"])
        self.assertIn("will be recorded", self.colloc("cancel", str(cases[0][0])).stderr)
        for task, _ in cases:
            until(
                lambda task=task: self.task(task)["state"] not in ("RUNNING", "COMPLETING"),
                "the end of the task",
            )
        os.unlink(ballast)
        self.check(cases)

    def test_many_that_run_are_ended_and_the_waiting_are_refused(self):
        running = [self.running("sleep 1000") for _ in range(2)]
        tasks = [*(task for task, _ in running), self.submit(hold=True)]
        ballast = self.fill_log()
        results = self.request("POST", "/v1/tasks/cancel", {"tasks": tasks}).json["results"]
        self.assertEqual([result["status"] for result in results], [202, 202, 507])
        self.assertIn("will be recorded once the disk", results[0]["note"])
        self.assertIn("cannot be written", results[2]["error"]["message"])
        for _, pid in running:
            self.wait_gone(pid)
        os.unlink(ballast)
        for task in tasks:
            self.wait(task, "CANCELLED")

    def test_what_ended_is_known_after_a_kill(self):
        cases = self.cases()
        ballast = self.fill_log()
        self.end_all(cases, 202)
        self.stop(9)
        os.unlink(ballast)
        self.start()
        self.check(cases)

    def test_one_word_of_a_full_disk(self):
        self.running("sleep 1000")
        self.fill_log()
        since = len(self.log)
        self.wait_log("cannot be written", since=0)
        sampled = self.get("/v1/gpus")["sampled_at"]
        until(lambda: self.get("/v1/gpus")["sampled_at"] > sampled + 3, "3 s of samples")
        words = [line.split(" ", 2)[2] for line in self.log[since:]]
        self.assertEqual(len(words), len(set(words)), words)
        self.assertLess(len(words), 6, words)  # of samples, messages, the log and the setting


class EndingWithReserve(Ending):
    settings = {"log-reserve": "512KiB"}

    def test_they_end_and_it_is_recorded(self):
        cases = self.cases()
        ballast = self.fill_log()
        self.wait_log("nearly full|9[0-9] % full|100 % full")
        self.end_all(cases, 200)
        self.check(cases)
        self.wait_log("now uses its reserve")
        self.stop(9)
        self.start()
        self.check(cases)
        self.assertEqual(self.request("POST", "/v1/tasks", self.body()).status, 507)
        os.unlink(ballast)
        until(
            lambda: self.request("POST", "/v1/tasks", self.body()).status == 201, "room for a task"
        )
        until(lambda: os.path.exists(self.state + "/colloc.reserve"), "the reserve")
        self.assertEqual(os.stat(self.state + "/colloc.reserve").st_size, 512 << 10)


class FullDisk(SmallDisk):
    def submit_until_refused(self):
        accepted = []
        for _ in range(1000):
            reply = self.request(
                "POST", "/v1/tasks", self.body(f"true # {os.urandom(3000).hex()}", hold=True)
            )
            if reply.status != 201:
                self.assertEqual(reply.status, 507, reply.data)
                self.assertIn("nothing was queued", reply.message)
                return accepted
            accepted.append(reply.json["id"])
        self.fail("the disk is never full")

    def test_nothing_is_lost(self):
        os.mkfifo(self.work + "/go")
        running = self.submit(
            "echo $$ > pid; read line < go; echo done >> out; exit 4", output=self.work + "/out"
        )
        pid = int(self.wait_file("pid"))
        self.wait_state(running, "RUNNING")
        waiting = self.submit("echo late >> ran", output=self.work + "/late", hold=True)
        unwanted = self.submit(hold=True)
        ballast = self.fill()
        held = self.submit_until_refused()
        for task in (unwanted, waiting):
            reply = self.act("cancel", task)
            self.assertEqual(
                (reply.status, "event log cannot be written" in reply.message),
                (507, True),
                reply.data,
            )
        self.write("go", "\n")
        self.wait_gone(pid)
        self.assertEqual(self.read("out"), "done\n")
        os.unlink(ballast)
        ended = self.wait(running, "FAILED")
        self.assertEqual(ended["exit_code"], 4)
        self.wait(unwanted, "CANCELLED")
        self.act("release", waiting)
        self.wait(waiting, "COMPLETED")
        self.assertEqual(self.read("ran"), "late\n")
        self.assertEqual([task["id"] for task in self.tasks()], held)

    def test_a_start_waits_for_room(self):
        blockers = [self.submit("while :; do sleep 0.05; done", exclusive=True) for _ in range(4)]
        for task in blockers:
            self.wait_state(task, "RUNNING")
        waiting = [self.submit("echo $COLLOC_TASK_ID >> ran") for _ in range(3)]
        ballast = self.fill()
        for task in blockers:
            self.act("cancel", task)
        until(
            lambda: any("cannot be written" in line or "No space" in line for line in self.log),
            "a word of the full disk",
        )
        os.unlink(ballast)
        for task in waiting:
            self.wait(task, "COMPLETED")
        self.assertEqual(sorted(map(int, self.read("ran").split())), waiting)

    def test_killed_while_the_disk_is_full(self):
        os.mkfifo(self.work + "/go")
        running = self.submit("echo $$ > pid; read line < go; exit 4", output=self.work + "/out")
        pid = int(self.wait_file("pid"))
        self.wait_state(running, "RUNNING")
        waiting = self.submit(
            "echo late >> ran", gpus=4, exclusive=True, output=self.work + "/late"
        )
        ballast = self.fill()
        self.stop(9)
        status, words = 1, ""
        try:
            self.start()
        except AssertionError:
            status, words = self.process.wait(), self.log[-1]
            self.assertEqual(status, 1)
            self.assertIn("full", words)
        self.assertTrue(is_alive(pid))
        os.unlink(ballast)
        if self.process.poll() is not None:
            self.start()
        self.write("go", "\n")
        self.assertEqual(self.wait(running, "FAILED")["exit_code"], 4)
        self.wait(waiting, "COMPLETED")


if __name__ == "__main__":
    unittest.main()
