# SPDX-License-Identifier: Apache-2.0
"""Arrays: one submission, indices, a limit; their names in every command; restarts."""

import contextlib
import http.client
import json
import os
import signal
import socket
import sqlite3
import threading
import unittest

from daemon_case import SANITIZED, DaemonCase, proc, until

import colloc


class Arrays(DaemonCase):
    gpus = "2xA100-40GB"

    def array(self, script="true", indices="0-3", **members):
        return self.submit(script, array=indices, **members)

    def states(self, array):
        return self.get(f"/v1/tasks/{array}")["array"]["states"]

    def wait_states(self, array, **states):
        until(lambda: self.states(array) == states, f"{states} of array {array}")

    def test_each_task_knows_its_index(self):
        script = (
            "echo $COLLOC_ARRAY_ID $COLLOC_ARRAY_INDEX $COLLOC_ARRAY_COUNT $COLLOC_ARRAY_MIN "
            "$COLLOC_ARRAY_MAX $COLLOC_TASK_ID"
        )
        array = self.array(script, "1,7-9:2")
        self.wait_states(array, COMPLETED=3)
        rows = self.colloc("history").stdout.splitlines()[1:]
        self.assertEqual({row.split()[0] for row in rows}, {f"{array}_{i}" for i in (1, 7, 9)})
        rows = self.colloc("history", "--csv", "-o", "id").stdout.splitlines()[1:]
        self.assertEqual(set(rows), {str(array + place) for place in (1, 2, 3)})
        for place, index in enumerate((1, 7, 9), start=1):
            task = self.get(f"/v1/tasks/{array}_{index}")["task"]
            self.assertEqual((task["id"], task["array_id"]), (array + place, array))
            self.assertEqual(
                self.read(f"colloc-{array}_{index}.out"),
                f"{array} {index} 3 1 9 {array + place}\n",
            )
        named = self.array("echo out", "4", output="%x-%A-%a-%j.log", name="a/b")
        self.wait_states(named, COMPLETED=1)
        self.assertEqual(self.read(f"a_b-{named}-4-{named + 1}.log"), "out\n")
        self.assertEqual(self.colloc("logs", f"{named}_4").stdout, "out\n")

    def test_its_tasks_have_one_name_everywhere(self):
        array = self.array("exec sleep 1000", "3-6", exclusive=True)
        self.wait_states(array, RUNNING=2, PENDING=2)
        last = self.submit("true", after=f"ok:{array}_6,any:{array}")
        names = [f"{array}_{index}" for index in range(3, 7)]
        queue = self.colloc("queue").stdout
        self.assertIn(f"GPUs 0, 1: tasks {names[0]}, {names[1]} have them to themselves", queue)
        self.assertIn(f"waits for ok:{names[3]}, any:{array}", queue)
        rows = self.colloc("gpus").stdout.splitlines()[1:]
        self.assertEqual(sorted(row.split("task ")[1].split()[0] for row in rows), names[:2])
        self.assertRegex(rows[0] + rows[1], f" {names[0]} .* {names[1]} ")
        self.assertIn(f"{names[2]} comes before task {names[3]}: ", self.share(names[3], names[2]))
        self.assertIn("there is no task", self.share(names[2], f"{array}_9", code=1))
        shown = self.colloc("show", names[0]).stdout
        self.assertRegex(shown, rf"^Task +{names[0]}\nIts id +{array + 1}\n")
        done = self.colloc("move", names[0], "--gpu=1", code=1)
        self.assertIn(f"task {names[0]} cannot be moved", done.stderr)
        self.colloc("cancel", str(array), str(last))

    def share(self, one, other, code=0):
        done = self.colloc("share", one, other, code=code)
        return done.stdout + done.stderr

    def test_the_limit_holds_also_over_a_restart(self):
        array = self.array("exec sleep 1000", "0-5%2")
        self.wait_states(array, RUNNING=2, PENDING=4)
        lines = self.colloc("queue").stdout.splitlines()
        self.assertEqual(len(lines), 4, lines)
        self.assertIn(f"{array}_[2-5%2]", lines[3])
        self.assertIn("(JobArrayTaskLimit)", lines[3])
        self.assertEqual(len(self.tasks()), 6)
        self.colloc("cancel", f"{array}_0")
        self.wait_states(array, RUNNING=2, PENDING=3, CANCELLED=1)
        self.restart(signal.SIGKILL)
        self.wait_states(array, RUNNING=2, PENDING=3, CANCELLED=1)
        self.assertEqual(self.get(f"/v1/tasks/{array}_0")["task"]["state"], "CANCELLED")
        self.colloc("cancel", f"{array}_[4-5]", f"{array}_1")
        self.wait_states(array, RUNNING=2, CANCELLED=4)
        done = self.colloc("cancel", str(array))
        self.assertEqual(done.stdout, f"Array {array}: 2 of 6 tasks cancelled\n")
        self.wait_states(array, CANCELLED=6)
        self.assertIn("none of its tasks", self.colloc("cancel", str(array), code=1).stderr)
        self.assertIn("6 CANCELLED", self.colloc("show", str(array)).stdout)

    def test_what_is_shown(self):
        done = self.colloc("submit", "--array=0-2", "--hold", "--", "true")
        self.assertEqual(done.stdout, "Submitted array 1 (3 tasks)\n")
        shown = self.colloc("show", "1_2").stdout
        self.assertIn("Task         1_2\nIts id       4\n", shown)
        self.assertIn("Array        0-2", shown)
        self.assertIn("3 PENDING", self.colloc("show", "1").stdout)
        self.assertEqual(json.loads(self.colloc("show", "--json", "1").stdout)["count"], 3)
        for word in ("1_", "1_[", "1_[]", "1_[x]", "1_x", "_1", "1_[0%2]", "1_0_0"):
            self.assertIn("not a task id", self.colloc("cancel", word, code=2).stderr)
        self.assertIn("no task 1_3", self.colloc("show", "1_3", code=1).stderr)
        self.assertIn("no task 9_3", self.colloc("cancel", "9_3", code=1).stderr)
        self.colloc("release", "1_[0,2]")
        self.colloc("wait", "1_2", "1_0")
        self.colloc("release", "1")
        self.assertEqual(len(self.colloc("wait", "1").stdout.splitlines()), 3)
        done = self.colloc("submit", "--wait", "--array=3-4", "--", "sh", "-c", "exit 3", code=3)
        self.assertEqual(len(done.stdout.splitlines()), 3)

    def test_dependencies_between_arrays(self):
        first = self.array("test $COLLOC_ARRAY_INDEX != 2", "1-3", hold=True)
        each = self.array(indices="1-3", after=f"each:{first}")
        every = self.submit(after=f"ok:{first}")
        any_one = self.submit(after=f"any:{first}")
        failed = self.submit(after=f"notok:{first}")
        one = self.submit(after=f"ok:{first}_3")
        self.refused(400, "same indices", array="1-4", after=f"each:{first}")
        self.refused(400, "same indices", after=f"each:{first}")
        self.refused(400, "no task", after=f"ok:{first}_7")
        self.act("release", first)
        self.wait_states(first, COMPLETED=2, FAILED=1)
        self.wait_states(each, COMPLETED=2, CANCELLED=1)
        self.assertEqual(
            self.get(f"/v1/tasks/{each}_2")["task"]["reason"], "DependencyNeverSatisfied"
        )
        self.wait(every, "CANCELLED")
        for task in (any_one, failed, one):
            self.wait(task, "COMPLETED")
        late = self.array(indices="1-3", after=f"each:{first}")
        self.wait_states(late, COMPLETED=2, CANCELLED=1)
        self.refused(400, "could never start", after=f"ok:{first}")

    def test_an_array_script_for_slurm(self):
        script = self.write(
            "sweep.sbatch",
            "#!/bin/bash\n#SBATCH --job-name=sweep --array=3-5:2%1 --gres=gpu:1\n"
            "#SBATCH --output=%x-%a.log --export=ALL,LR=0.1\n"
            "echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_JOB_ID "
            "$SLURM_JOB_NAME $SLURM_GPUS $LR\n",
        )
        self.assertIn("(2 tasks)", self.colloc("submit", "--wait", script).stdout)
        self.assertEqual(self.read("sweep-3.log"), "1 3 2 2 sweep 1 0.1\n")
        self.assertEqual(self.read("sweep-5.log"), "1 5 2 3 sweep 1 0.1\n")
        plain = self.write(
            "plain.sh", "echo $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_JOB_ID >$COLLOC_ARRAY_INDEX\n"
        )
        self.colloc("submit", "--wait", "--array=8", plain)
        self.assertEqual(self.read("8"), "8 4\n")
        rank = self.write(
            "rank.sbatch",
            "#!/bin/bash\n#SBATCH -n 2 -o %2A_%N.log\n"
            "echo $SLURM_PROCID $SLURM_NTASKS $SLURM_CPUS_ON_NODE $SLURM_JOB_GPUS\n",
        )
        self.colloc("submit", "--wait", rank)
        host = socket.gethostname().partition(".")[0]
        self.assertRegex(self.read(f"06_{host}.log"), r"^0 2 2 \d\n$")
        other = self.submit("env | grep -c SLURM")
        self.wait(other, "FAILED")
        self.assertEqual(self.output(other), "0\n")

    def test_one_name_for_all_commands(self):
        script = self.write("a.sh", "echo this is $COLLOC_ARRAY_INDEX; exit $COLLOC_ARRAY_INDEX\n")
        self.colloc("submit", "--hold", script)  # ids of arrays and tasks differ
        said = self.colloc("submit", "--array=0-4:4,7", script).stdout
        self.assertEqual(said, "Submitted array 2 (3 tasks)\n")
        waited = self.colloc("wait", "2", code=4).stdout
        self.assertEqual([line.split()[1] for line in waited.splitlines()], ["2_0", "2_4", "2_7"])
        self.assertIn("Task 2_7 FAILED", self.colloc("wait", "2_7", code=7).stdout)
        logs = self.colloc("logs", "2").stdout
        for index in (0, 4, 7):
            self.assertIn(f"==> task 2_{index} <==\nthis is {index}\n", logs)
        self.assertIn("task 2_7 FAILED", self.colloc("logs", "-f", "2").stderr)
        self.assertEqual(self.colloc("logs", "2_4").stdout, "this is 4\n")
        some = self.colloc("logs", "2_[0,7]").stdout
        self.assertEqual(some.count("==>"), 2)
        said = self.colloc("logs", "99", code=1).stderr
        self.assertIn("there is no task 99: `colloc queue` lists", said)

    def test_arrays_of_the_python_client(self):
        client = self.client
        array = client.submit(
            ["sh", "-c", "echo is $COLLOC_ARRAY_INDEX"], cwd=self.work, array="0-2,8"
        )
        self.assertIsInstance(array, colloc.Array)
        ended = array.wait(120)
        self.assertEqual([task["state"] for task in ended], ["COMPLETED"] * 4)
        self.assertEqual([task["array_index"] for task in ended], [0, 1, 2, 8])
        self.assertEqual(array.logs()[8], b"is 8\n")
        self.assertEqual(array.info()["states"], {"COMPLETED": 4})
        self.assertEqual(array.tasks()[8].info()["array_index"], 8)
        one = client.submit("true", cwd=self.work)
        self.assertNotIsInstance(one, colloc.Array)
        self.assertEqual(client.wait(one)["state"], "COMPLETED")

    def test_what_is_refused(self):
        for indices, word in (
            ("0-999999999", "at most 10000"),
            ("1000000000", "at most 999999999"),
            ("3-1", "must be indices"),
            ("", "must be indices"),
            (7, "array"),
        ):
            self.refused(400, "array", word, array=indices)

    def cancel_aside(self, array):
        """Cancels in a thread. The list gets the answer, or stays empty if there is none."""
        answers = []

        def cancel():
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = self.connection()
                connection.request("POST", f"/v1/tasks/{array}/cancel")
                answers.append(connection.getresponse().read())

        thread = threading.Thread(target=cancel)
        thread.start()
        return thread, answers

    def kill_within_a_cancel(self, array):
        """Kills the daemon once the first tasks are cancelled; what is left of the array."""
        thread, answers = self.cancel_aside(array)
        until(lambda: "CANCELLED" in self.states(array), "a cancel")
        self.stop(signal.SIGKILL)
        thread.join()
        self.start()
        left = self.states(array)
        self.assertTrue(not answers or "PENDING" not in left, "answered before it was done")
        return left

    def test_others_are_served_while_an_array_is_cancelled(self):
        """The kill may come when all is done, on a busy machine: one of a few comes earlier."""
        size = 3000
        for _ in range(5):
            array = self.array("true", f"0-{size - 1}", hold=True)
            each = self.array("true", f"0-{size - 1}", after=f"each:{array}")
            every = [self.submit(after=f"ok:{array}") for _ in range(3)]
            left = self.kill_within_a_cancel(array)
            self.assertEqual(sum(left.values()), size)
            if "PENDING" in left:
                break
        self.assertIn("PENDING", left, "nothing was answered before the last task was cancelled")
        until(lambda: self.states(each) == left, "the end of those that depend on them")
        self.colloc("cancel", str(array))
        self.wait_states(array, CANCELLED=size)
        self.wait_states(each, CANCELLED=size)
        for task in every:
            self.wait(task, "CANCELLED")

    def cpu_s(self):
        """What the daemon has taken of processors, which other programs change little."""
        times = proc(self.process.pid, "stat").rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    def test_a_large_array_is_one_event(self):
        array = self.array("true", "0-9999%1", hold=True)
        self.assertEqual(self.states(array), {"PENDING": 10000})
        self.assertEqual(len(self.colloc("queue").stdout.splitlines()), 2)
        self.restart(signal.SIGKILL)
        if not SANITIZED:
            self.assertLess(self.cpu_s(), 1.5, "each task of the array reads all others")
        self.assertEqual(self.states(array), {"PENDING": 10000})
        self.assertEqual(self.submit(hold=True), array + 10001)
        self.stop()
        with sqlite3.connect(os.path.join(self.state, "colloc.db")) as log:
            (count,) = log.execute("SELECT count(*) FROM events WHERE kind = 'SUBMIT'").fetchone()
        self.assertEqual(count, 2)
        self.start()


if __name__ == "__main__":
    unittest.main()
