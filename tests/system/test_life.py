# SPDX-License-Identifier: Apache-2.0
"""A task's way from submit to its end, as its user sees it."""

import json
import os
import signal
import socket
import subprocess
import unittest

from daemon_case import LIMIT_S, DaemonCase, at_least, is_alive, program, read, until


class Life(DaemonCase):
    def test_rerun(self):
        script = self.write(
            "r.sh", "#COLLOC --time=1h --name=again\necho $LR $1 $COLLOC_ARRAY_INDEX\n"
        )
        words = ("submit", "--wait", "--cpus=2", "--begin=2020-01-01", "--output=%j.log")
        self.colloc(*words, script, "a b", LR="0.1")
        os.unlink(script)
        self.assertEqual(self.colloc("rerun", "1", LR="0.2").stdout, "Submitted task 2\n")
        self.assertEqual(self.wait(2, "COMPLETED")["time_limit_s"], 3600)
        self.assertEqual(self.read("2.log"), "0.1 a b\n")
        task = self.task(2)
        self.assertEqual((task["cpus"], task["name"]), (2, "again"))
        self.assertEqual(task["command"], self.task(1)["command"])
        script = self.write("a.sh", "echo is $COLLOC_ARRAY_INDEX\n")
        self.colloc("submit", "--wait", "--array=3,5", script)
        self.assertEqual(self.colloc("rerun", "3").stdout, "Submitted array 6 (2 tasks)\n")
        self.assertEqual(self.colloc("rerun", "3_5").stdout, "Submitted array 9 (1 tasks)\n")
        self.colloc("wait", "9")
        self.assertEqual(self.read("colloc-9_5.out"), "is 5\n")
        self.assertIn("no task 99", self.colloc("rerun", "99", code=1).stderr)
        self.restart()
        self.colloc("rerun", "2", "1")
        self.wait(12, "COMPLETED")
        self.assertEqual(self.read("12.log"), "0.1 a b\n")
        request = self.get("/v1/tasks/1/request")["request"]
        self.assertEqual(request["arguments"], ["a b"])
        self.assertEqual(request["environment"]["LR"], "0.1")

    def test_a_script_for_slurm_requeues_itself(self):
        os.symlink(program("colloc"), os.path.join(self.work, "scontrol"))
        script = self.write(
            "q.sbatch",
            "#!/bin/bash\n#SBATCH --gres=gpu:1 --time=1:00:00 --output=%j.log\n"
            "trap './scontrol requeue $SLURM_JOB_ID; exit 0' USR1\n"
            "echo $SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} >>starts\n"
            "./scontrol show hostnames\n"
            'test "${SLURM_RESTART_COUNT:-0}" = 2 && exit 0\n'
            "echo $$ >pid${SLURM_RESTART_COUNT:-0}; sleep 1000 & wait\n",
        )
        self.colloc("submit", "--hold", "--", "true")  # so that ids are not counts
        self.colloc("submit", script)
        for name in ("pid0", "pid1"):
            os.kill(int(self.wait_file(name)), signal.SIGUSR1)
        task = self.wait(2, "COMPLETED")
        self.assertEqual(self.read("starts"), "2 0\n2 1\n2 2\n")
        self.assertEqual((task["attempt_count"], task["requeue_count"]), (3, 0))
        self.assertEqual([a["reason"] for a in task["attempts"]], ["Requeued", "Requeued", "None"])
        self.assertEqual(self.read("2.log").splitlines()[-1], socket.gethostname())
        texts = [e["text"] for e in self.task(2)["events"] if e["event"] == "REQUEUE"]
        self.assertEqual(texts, ["it was ended to be run again"] * 2)

    def test_a_task_without_a_gpu_waits_for_none(self):
        busy = [
            self.train(seconds=100000, gpus=4, exclusive=True),
            self.submit("true", gpus=4, exclusive=True),
        ]
        self.wait_state(busy[0], "RUNNING")
        script = self.write(
            "cpu.sbatch",
            "#!/bin/bash\n#SBATCH --gres=gpu:0 --output=%j.log\n"
            'echo "[$CUDA_VISIBLE_DEVICES][$COLLOC_GPUS][${SLURM_JOB_GPUS-unset}]"\n'
            "echo $$ >pid; sleep 1000\n",
        )
        task = int(self.colloc("submit", script).stdout.split()[-1])
        pid = int(self.wait_file("pid"))
        found = self.wait_state(task, "RUNNING")
        self.assertEqual((found["gpus"], found["gpus_requested"]), ([], 0))
        self.assertEqual(self.read(f"{task}.log"), "[][][unset]\n")
        self.assertEqual(self.task(busy[1])["state"], "PENDING")
        self.assertRegex(self.colloc("queue").stdout, rf"(?m)^ *{task} .* 0 .* no GPU$")
        self.assertRegex(self.colloc("show", str(task)).stdout, r"GPUs asked +no GPU")
        self.assertIn("never suspended", self.colloc("suspend", str(task), code=1).stderr)
        self.stop(signal.SIGKILL)
        self.start()
        self.assertEqual(self.wait_state(task, "RUNNING")["attempt_count"], 1)
        self.assertTrue(is_alive(pid))
        self.colloc("cancel", str(task))
        self.wait(task, "CANCELLED")
        self.assertIn("no GPU", self.colloc("history", "-o", "gpu").stdout)
        shares = self.get("/v1/share")["users"]
        self.assertEqual(shares[0]["gpus"], 4)
        limited = self.submit("sleep 1000", gpus=0, time_limit_s=1, grace_s=0)
        self.wait(limited, "TIMEOUT")
        for wrong in ({"gpu_kinds": "A100"}, {"service": True}):
            self.refused(400, "gpus=0: a ", gpus=0, **wrong)

    def test_slurms_commands_of_programs(self):
        def call(name, *words, text=None):
            link = os.path.join(self.work, name)
            if not os.path.lexists(link):
                os.symlink(program("colloc"), link)
            return subprocess.run(
                [link, *words],
                env=self.env,
                cwd=self.work,
                input=text,
                text=True,
                capture_output=True,
                timeout=LIMIT_S,
                check=True,
            ).stdout

        script = "#!/bin/sh\n#SBATCH --gres=gpu:1 -J spawned\necho $SLURM_JOB_ID >id; sleep 1000\n"
        task = call("sbatch", "--parsable", text=script).strip()
        host = socket.gethostname()
        until(
            lambda: call("squeue", "-h", "-j", task, "-o", "%T %B") == f"RUNNING {host}\n",
            "the answer that batchspawner waits for",
        )
        self.assertEqual(self.wait_file("id"), f"{task}\n")
        self.assertIn(" JobName=spawned\n", call("scontrol", "show", "job", task))
        call("scancel", "-n", "spawned", "-u", os.environ.get("USER") or "root")
        self.wait(int(task), "CANCELLED")
        self.assertEqual(call("squeue", "-h", "-j", task, "-o", "%T %B"), "")
        self.assertRegex(
            call("sacct", "-X", "-P", "-n", "-j", task, "-o", "JobID,State"),
            rf"^{task}\|CANCELLED( by [0-9]+)?\n$",
        )
        wrap = "--wrap=echo $SLURM_JOB_ID; exit 3"
        array = call("sbatch", "--parsable", "-a", "3-4", "--gres=gpu:0", wrap).strip()
        self.wait(f"{array}_4", "FAILED")
        self.wait(f"{array}_3", "FAILED")
        # Where people and scripts look for the output of what sbatch has submitted.
        self.assertEqual(self.read(f"slurm-{array}_3.out"), f"{int(array) + 1}\n")
        self.assertEqual(self.read(f"slurm-{task}.out"), "")
        text = call("sacct", "-P", "-n", "-j", array, "-o", "JobID,State,ExitCode,ReqTRES")
        self.assertEqual(
            sorted(text.splitlines()),
            sorted(
                f"{array}_{i}{row}"
                for i in (3, 4)
                for row in ("|FAILED|3:0|billing=1,cpu=1,node=1", ".batch|FAILED|3:0|")
            ),
        )
        self.assertEqual(call("sinfo", "-h", "-o", "%P %t %G"), "colloc* idle gpu:4\n")

    def test_gpu_ids_name_the_gpus(self):
        uuids = {gpu["index"]: gpu["uuid"] for gpu in self.get("/v1/gpus")["gpus"]}
        script = "echo $COLLOC_GPUS >gpus$COLLOC_TASK_ID; sleep 1000"
        self.colloc("submit", "--gpu-ids=1,3", "--", "sh", "-c", script)
        self.assertEqual(self.wait_file("gpus1"), "1,3\n")
        self.colloc("submit", "--gpu-ids", uuids["2"], "--exclusive", "--", "sh", "-c", script)
        self.assertEqual(self.wait_file("gpus2"), "2\n")
        self.colloc("submit", "--gpu-ids=2", "--", "sh", "-c", script)
        shown = self.colloc("show", "3").stdout
        self.assertIn("waits for a GPU that it names (--gpu-ids): GPU 2: task 2 has it to", shown)
        self.assertRegex(shown, r"GPU ids +2\n")
        for options, words in (
            (("--gpu-ids=0,9",), "there is no GPU '9' here"),
            (("--gpu-ids=0,",), "there is no GPU '' here"),
            (("--gpu-ids=0", "--gpus=2"), "takes 2 of the GPUs that it names, and only 1"),
            (("--gpu-ids=0", "--gpu-kind=A100"), "need no gpu_kinds"),
            (("--gpu-ids=0", "--gpus=0"), "gpus=0"),
        ):
            done = self.colloc("submit", *options, "--", "true", code=None)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
        self.stop(signal.SIGKILL)
        self.start()
        self.assertEqual(self.task(3)["state"], "PENDING")
        self.colloc("cancel", "2")
        self.assertEqual(self.wait_file("gpus3"), "2\n")

    def test_requeue_ends_a_running_task_and_keeps_it(self):
        task = self.submit("trap '' TERM; echo $$ >pid; while :; do sleep 0.1; done", grace_s=1000)
        pid = int(self.wait_file("pid"))
        self.colloc("requeue", str(task))
        self.colloc("requeue", str(task))  # nothing more
        self.assertEqual(self.wait_state(task, "COMPLETING")["failure"], None)
        self.stop(signal.SIGKILL)
        os.unlink(os.path.join(self.work, "pid"))
        self.start()  # the request is in the log
        os.kill(pid, signal.SIGKILL)
        self.wait_file("pid")
        self.assertEqual(self.wait_state(task, "RUNNING")["attempt_count"], 2)
        self.client.cancel(task)
        self.client.cancel(self.submit("true", hold=True))
        for wrong in ("2", "9", "1_3"):
            self.colloc("requeue", wrong, code=1)
        ended = self.submit("true")
        self.wait(ended, "COMPLETED")
        self.assertIn("`colloc rerun`", self.colloc("requeue", str(ended), code=1).stderr)
        once = self.submit("sleep 1000", requeue=False)
        self.wait_state(once, "RUNNING")
        self.assertIn("--requeue=no", self.colloc("requeue", str(once), code=1).stderr)

    def test_logs_show_both_streams_and_why_it_failed(self):
        script = "echo out; echo ValueError: no such label >&2; exit 3"
        both = self.submit(script, output="both.log")
        apart = self.submit(script, output="out.log", error="err.log")
        for task in (both, apart):
            self.wait(task, "FAILED")
        done = self.colloc("logs", str(both))
        self.assertEqual(done.stdout, "out\nValueError: no such label\n")
        self.assertEqual(
            done.stderr,
            f"colloc: task {both} FAILED (NonZeroExitCode): ValueError: no such label\n",
        )
        self.assertEqual(
            self.colloc("logs", str(apart)).stdout,
            "out\n\n==> stderr <==\nValueError: no such label\n",
        )
        self.assertEqual(self.colloc("logs", str(apart), "--stdout").stdout, "out\n")
        self.assertEqual(
            self.colloc("logs", "-n1", str(both), str(apart), "--stderr").stdout.count(
                "ValueError"
            ),
            2,
        )
        self.assertIn(
            f"attempt 3: task {both} was started 1 time",
            self.colloc("logs", "--attempt=3", str(both), code=1).stderr,
        )
        held = self.submit(hold=True)
        self.assertIn(
            "has not been started", self.colloc("logs", "--attempt=1", str(held), code=1).stderr
        )
        self.act("cancel", held)
        self.refused(400, "stream", method="GET", body="", path=f"/v1/tasks/{both}/log?stream=x")
        self.refused(400, "offset", method="GET", body="", path=f"/v1/tasks/{both}/log?offset=x")
        self.refused(
            400, "tail", method="GET", body="", path=f"/v1/tasks/{both}/log?tail=1&offset=1"
        )
        self.assertEqual(self.output(both, tail=5), "abel\n")

    def test_submit_run_complete(self):
        script = self.write(
            "job.sh",
            "#!/bin/bash\n#COLLOC --name=first --gpus=2\necho out $1 $2\necho err >&2\nexit 0\n",
        )
        done = self.colloc("submit", "--wait", script, "a b", "c")
        self.assertIn("Submitted task 1", done.stdout)
        task = self.task(1)
        self.assertEqual(
            (task["state"], task["exit_code"], task["name"], task["gpus_requested"]),
            ("COMPLETED", 0, "first", 2),
        )
        self.assertEqual(self.read("colloc-1.out"), "out a b c\nerr\n")
        self.assertEqual(self.output(1), "out a b c\nerr\n")
        self.assertEqual(self.colloc("logs", "1").stdout, "out a b c\nerr\n")
        self.assertEqual(os.listdir(self.state + "/tasks"), [])
        self.assertIn("COMPLETED", self.colloc("history").stdout)
        self.assertEqual(
            [event["event"] for event in task["events"]],
            ["SUBMIT", "PLACE", "STARTED", "EXITED", "END"],
        )
        self.assertEqual(task["events"][3]["text"], "exit code 0")

    def test_cancel_of_several_says_what_becomes_of_each(self):
        running, held, ended = (
            self.submit("exec sleep 1000"),
            self.submit(hold=True),
            self.submit("true"),
        )
        self.wait_state(running, "RUNNING")
        self.wait(ended, "COMPLETED")
        done = self.colloc("cancel", str(running), str(held), str(ended), code=1)
        self.assertEqual(
            done.stdout,
            f"Task {running} COMPLETING (its processes are being ended)\nTask {held} CANCELLED\n",
        )
        self.assertEqual(
            done.stderr, f"colloc: task {ended} is COMPLETED: it cannot be cancelled\n"
        )
        self.wait(running, "CANCELLED")

    def test_what_cannot_be_says_why(self):
        running, held = self.submit("exec sleep 1000"), self.submit(hold=True)
        self.wait_state(running, "RUNNING")
        done = self.colloc("hold", str(running), code=1)
        self.assertIn("only one that waits can; `colloc suspend` takes one off", done.stderr)
        done = self.colloc("logs", str(held))
        self.assertEqual(done.stdout, "")
        self.assertIn(f"task {held} has not started: PENDING (JobHeldUser)", done.stderr)
        self.assertEqual(self.colloc("logs", str(running)).stderr, "")
        self.act("cancel", running)

    def test_exit_codes_and_signals(self):
        failed, killed = self.submit("exit 7"), self.submit("kill -SEGV $$")
        self.assertEqual(self.wait(failed, "FAILED")["exit_code"], 7)
        self.assertEqual(self.wait(failed)["reason"], "NonZeroExitCode")
        killed = self.wait(killed, "FAILED")
        self.assertEqual(
            (killed["signal"], killed["reason"], killed["exit_code"]), (11, "RaisedSignal", None)
        )
        self.assertEqual(self.colloc("wait", str(failed), code=None).returncode, 7)

    def test_wait_answers_at_the_end_or_in_time(self):
        os.mkfifo(self.work + "/go")
        task = self.submit(f"read < {self.work}/go")
        self.assertIn(
            self.get(f"/v1/tasks/{task}/wait?timeout_s=0.05")["task"]["state"],
            ("PENDING", "RUNNING"),
        )
        self.wait_state(task, "RUNNING")
        self.write("go", "\n")
        self.wait(task, "COMPLETED")

    def test_script_and_summary_stay_as_at_submit(self):
        script = self.write(
            "job.sh", "#!/bin/bash\n#COLLOC --summary=model.txt --batch=4 --hold\necho before\n"
        )
        summary = self.write(
            "model.txt",
            read(
                os.path.join(
                    os.path.dirname(__file__), "..", "data", "summaries", "torchinfo_columns.txt"
                )
            ),
        )
        self.colloc("submit", script)
        estimate = self.task(1)["estimate_mib"]
        self.assertGreater(estimate, 0)
        self.write("job.sh", "#!/bin/bash\necho after\n")
        os.unlink(summary)
        self.restart()
        self.assertEqual(self.task(1)["estimate_mib"], estimate)
        self.colloc("release", "1")
        self.wait(1, "COMPLETED")
        self.assertEqual(self.output(1), "before\n")

    def test_runs_where_and_as_it_was_submitted(self):
        os.mkdir(self.work + "/there")
        task = self.submit(
            'pwd; umask; echo "$GREETING"; echo $CUDA_VISIBLE_DEVICES; echo "$COLLOC_TASK_ID"; '
            "env | wc -l",
            cwd=self.work + "/there",
            umask=0o27,
            gpus=2,
            environment={"GREETING": "h\u00e9 'o'\nb"},
        )
        self.wait(task, "COMPLETED")
        lines = self.output(task).splitlines()
        self.assertEqual(lines[:4], [self.work + "/there", "0027", "h\u00e9 'o'", "b"])
        indices = [gpu["index"] for gpu in self.get("/v1/gpus")["gpus"]]
        self.assertEqual(len(set(lines[4].split(",")) & set(indices)), 2)
        self.assertEqual(lines[5], str(task))

    def test_output_files(self):
        task = self.submit("echo one; echo two >&2", output="out-%j.txt", error="err-%j.txt")
        both = self.submit("echo one; echo two >&2", output="both.txt")
        self.wait(task, "COMPLETED")
        self.wait(both, "COMPLETED")
        self.assertEqual(
            (self.read(f"out-{task}.txt"), self.read(f"err-{task}.txt")), ("one\n", "two\n")
        )
        self.assertEqual(sorted(self.read("both.txt").splitlines()), ["one", "two"])
        self.assertEqual(self.output(task, "stderr"), "two\n")

    def test_what_cannot_start_says_why(self):
        for members, word in (
            ({"cwd": "/no/such/folder"}, "/no/such/folder"),
            ({"output": "/no/such/x"}, "/no/such/x"),
        ):
            task = self.wait(self.submit("true", **members), "FAILED")
            self.assertEqual((task["reason"], task["failure"]), ("Launch", "launch"))
            self.assertIn(word, task["reason_text"])
        reply = self.request(
            "POST", "/v1/tasks", {**self.body(), "script": "#!/no/such/interpreter\n"}
        )
        task = self.wait(reply.json["id"], "FAILED")
        self.assertEqual(task["reason"], "Launch")
        self.assertIn("interpreter", task["reason_text"])

    def test_a_daemon_without_its_shim_refuses_to_start(self):
        done = subprocess.run(
            self.command(shim="/no/such/shim", socket=self.socket + "2"),
            env=self.env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/shim: No such file or directory: no task could start", done.stderr)

    def test_many_at_once_each_once(self):
        ids = [self.submit("echo $COLLOC_TASK_ID >> ran") for _ in range(30)]
        for task in ids:
            self.wait(task, "COMPLETED")
        self.assertEqual(sorted(map(int, self.read("ran").split())), ids)


class Limits(DaemonCase):
    daemon_prefix = ("prlimit", "--nofile=200:4000")

    def test_the_daemons_raised_limit_is_not_the_tasks(self):
        self.assertIn(
            " 4000 ",
            next(
                line
                for line in read(f"/proc/{self.process.pid}/limits").splitlines()
                if "open files" in line
            ),
        )
        task = self.submit("ulimit -Sn; ulimit -Hn")
        self.wait(task, "COMPLETED")
        self.assertEqual(self.output(task), "200\n4000\n")


class Ending(DaemonCase):
    TREE = """
        trap '' TERM
        (setsid bash -c 'trap "" TERM; echo $BASHPID >> pids; while :; do sleep 1000; done' &)
        (setsid bash -c 'echo $BASHPID >> pids; exec sleep 1000' &) &
        echo $$ >> pids
        while :; do sleep 1000; done"""

    def tree(self, **members):
        task = self.submit(self.TREE, **members)
        pids = self.until_lines("pids", 3)
        self.wait_state(task, "RUNNING")
        return task, pids

    def until_lines(self, name, n):
        return list(
            map(
                int,
                until(
                    lambda: (lambda w: w if len(w) >= n else None)(self.read_if(name).split()),
                    f"{n} lines in {name}",
                ),
            )
        )

    def test_cancel_ends_the_whole_tree(self):
        task, pids = self.tree(grace_s=0.2)
        self.assertEqual(self.act("cancel", task).status, 200)
        ended = self.wait(task, "CANCELLED")
        self.assertEqual((ended["reason"], ended["signal"]), ("Cancelled", 9))
        self.assertEqual([pid for pid in pids if is_alive(pid)], [])

    def test_what_waits_is_answered_when_the_daemon_goes(self):
        task = self.submit("while :; do sleep 0.01; done")
        waiting = [self.connection() for _ in range(5)]
        for connection in waiting:
            connection.request("GET", f"/v1/tasks/{task}/wait")
        self.wait_state(task, "RUNNING")
        self.restart()
        for connection in waiting:
            self.assertEqual(connection.getresponse().status, 503)
            connection.close()
        self.assertEqual(self.task(task)["state"], "RUNNING")

    def test_cancel_is_polite_first(self):
        task = self.submit(
            "trap 'echo saved; exit 3' TERM; echo ready > ready; while :; do sleep 0.01; done",
            grace_s=50,
        )
        self.wait_file("ready")
        self.act("cancel", task)
        self.assertEqual(self.wait(task, "CANCELLED")["exit_code"], 3)
        self.assertEqual(self.output(task).splitlines()[-1], "saved")

    def test_cancel_of_what_waits_is_held_or_has_ended(self):
        blockers = [self.train(30000, 1e6, exclusive=True) for _ in range(4)]
        waiting, held = self.submit(), self.submit(hold=True)
        for task in blockers:
            self.wait_state(task, "RUNNING")
        self.assertEqual(self.task(held)["reason"], "JobHeldUser")
        self.assertEqual([task["id"] for task in self.tasks(state="PENDING")], [waiting, held])
        for task in (waiting, held):
            self.assertEqual(self.act("cancel", task).json["task"]["state"], "CANCELLED")
            self.assertEqual(self.act("cancel", task).status, 409)
            self.assertEqual(self.task(task)["attempt_count"], 0)
        self.assertEqual(self.act("cancel", 99).status, 404)
        self.assertEqual(self.act("hold", blockers[0]).status, 409)

    def test_hold_and_release(self):
        task = self.submit("echo ran", hold=True)
        other = self.submit("echo other")
        self.wait(other, "COMPLETED")
        self.assertEqual(self.task(task)["state"], "PENDING")
        self.assertEqual(self.act("release", task).status, 200)
        self.assertEqual(self.act("release", task).status, 409)
        self.wait(task, "COMPLETED")

    def test_time_limit(self):
        """A busy machine may take longer than the first limit to start the whole tree."""
        for limit_s in (0.5, 5, 50):
            self.write("pids", "")
            task = self.submit(self.TREE, grace_s=0.1, time_limit_s=limit_s)
            ended = self.wait(task, "TIMEOUT")
            pids = [int(word) for word in self.read_if("pids").split()]
            self.assertEqual(ended["reason"], "TimeLimit")
            self.assertEqual([pid for pid in pids if is_alive(pid)], [])
            self.assertGreaterEqual(ended["exec_s"], limit_s)
            if len(pids) >= 3:
                return
        self.fail("the tree was not started")

    def test_what_a_task_leaves_behind_goes_with_it(self):
        task = self.submit("(setsid sleep 1000 & echo $! > left); exit 0")
        self.wait(task, "COMPLETED")
        self.assertFalse(is_alive(int(self.read("left"))))


class NoGpus(DaemonCase):
    settings = {"nvml-library": "/nowhere/libnvidia-ml.so.1"}

    def test_who_submits_is_told_why_there_are_none(self):
        self.refused(400, "no task can run here: ", "/nowhere/libnvidia-ml.so.1")
        self.assertIn("/nowhere/libnvidia-ml.so.1", self.get("/v1/gpus")["why_none"])


class Seen(DaemonCase):
    def test_the_cli_over_everything(self):
        for _ in range(3):
            self.train(3000, 1e6)
        self.submit(gpus=4, exclusive=True)
        self.wait_state(1, "RUNNING")
        queue = json.loads(self.colloc("queue", "--json").stdout)["tasks"]
        self.assertEqual([task["id"] for task in queue], [1, 2, 3, 4])
        self.assertIn("PENDING", self.colloc("queue").stdout)
        self.wait_reason(4, "GPU")
        gpus = json.loads(self.colloc("gpus", "--json").stdout)["gpus"]
        self.assertEqual(len(gpus), 4)
        self.wait_gpu(
            lambda gpu: (gpu["mem_used_mib"] or 0) >= 3000 and (gpu["smact_window"] or 0) > 0
        )
        self.wait_gpu(
            lambda gpu: gpu["tasks"]
            and all(at_least(t["mem_used_mib"], 3000) for t in gpu["tasks"])
        )
        self.assertEqual(json.loads(self.colloc("show", "1", "--json").stdout)["id"], 1)
        self.colloc("cancel", "1", "2", "3", "4")
        self.wait(1, "CANCELLED")

    def test_lists(self):
        done = [self.submit() for _ in range(5)] + [self.submit("exit 1")]
        for task in done:
            self.wait(task)
        held = self.submit(hold=True)

        def ids(state, **query):
            return [task["id"] for task in self.tasks(state=state, **query)]

        self.assertEqual(ids("live"), [held])
        self.assertEqual(ids("PENDING"), [held])
        self.assertEqual(ids("FAILED"), [done[-1]])
        self.assertEqual(sorted(ids("all")), done + [held])
        self.assertEqual(len(ids("ended", limit=2)), 2)
        user = self.task(held)["user"]
        self.assertEqual(len(ids("ended", limit=3, user=user)), 3)
        self.assertEqual(ids("all", user="no-such-user"), [])
        (short,) = self.get("/v1/tasks?short=1")["tasks"]
        full = self.task(held)
        for key in ("id", "name", "user", "state", "reason", "gpus_requested", "need_mib"):
            self.assertEqual(short[key], full[key])
        self.assertLess(len(short), len(full) / 2)
        self.assertGreater(
            self.task(held)["submitted_at"] % 1 + self.task(done[0])["submitted_at"] % 1, 0
        )


if __name__ == "__main__":
    unittest.main()
