# SPDX-License-Identifier: Apache-2.0
"""What `srun` runs in the script of a task is a step of `sacct`, as with Slurm.

A step that the daemon has taken is there after kill -9 and after the task's end; one without an end
has the task's. What is wrong, too much or of another user's task is refused, and runs all the same.
"""

import os
import signal
import subprocess
import unittest

from daemon_case import LIMIT_S, DaemonCase, program, until

FIELDS = "JobID,JobName,NTasks,State,ExitCode"
OTHER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


class SrunSteps(DaemonCase):
    gpus = "1xA100-40GB"

    def setUp(self):
        super().setUp()
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        for name in ("srun", "sacct"):
            os.symlink(program("colloc"), os.path.join(self.bin, name))
        self.env["PATH"] = f"{self.bin}:{self.env['PATH']}"

    def sacct(self, task, fields=FIELDS):
        done = subprocess.run(
            ["sacct", "-Pn", "-j", str(task), "-o", fields],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
        return done.stdout.replace(f"{task}.", ".").splitlines()

    def exists(self, name):
        return os.path.exists(os.path.join(self.work, name))

    def touch(self, name):
        open(os.path.join(self.work, name), "wb").close()

    def test_names_ends_and_numbers(self):
        task = self.submit(
            "exec 2>/dev/null; srun true; srun -J first sh -c 'exit 3'; echo $?\n"
            "srun sh -c 'kill -9 $$'; echo $?\n"
            'srun -n 2 sh -c "echo step \\$SLURM_STEP_ID"; srun no-such-program; echo $?\n'
            'echo "$(srun echo a pipe)"',
            name="job",
        )
        self.wait(task, "COMPLETED")
        self.assertEqual(
            self.output(task).splitlines(), ["3", "137", "step 3", "step 3", "127", "a pipe"]
        )
        self.assertEqual(
            self.sacct(task),
            [
                f"{task}|job||COMPLETED|0:0",
                ".batch|batch|1|COMPLETED|0:0",
                ".0|true|1|COMPLETED|0:0",
                ".1|first|1|FAILED|3:0",
                ".2|sh|1|FAILED|0:9",
                ".3|sh|2|COMPLETED|0:0",
                ".4|no-such-program|1|FAILED|127:0",
                ".5|echo|1|COMPLETED|0:0",
            ],
        )
        steps = self.task(task)["srun_steps"]
        self.assertTrue(all(step["started_at"] <= step["ended_at"] for step in steps))
        events = [event["event"] for event in self.task(task)["events"]]
        self.assertNotIn("STEP", events, "they have a list of their own")
        self.restart(signal.SIGKILL)
        self.assertEqual(self.task(task)["srun_steps"], steps)

    def test_kill_9_of_the_daemon(self):
        """While a step runs: its end is of the next daemon, its beginning was of the one before."""
        task = self.submit(
            "srun true\n"
            "srun -J long sh -c 'touch runs; until [ -e go ]; do sleep 0.02; done; exit 4'"
        )
        until(lambda: self.exists("runs"), "the second step")
        self.assertEqual(self.sacct(task)[2:], [".0|true|1|COMPLETED|0:0", ".1|long|1|RUNNING|0:0"])
        self.restart(signal.SIGKILL)
        self.assertEqual(self.sacct(task)[2:], [".0|true|1|COMPLETED|0:0", ".1|long|1|RUNNING|0:0"])
        self.touch("go")
        self.wait(task, "FAILED")
        self.assertEqual(self.sacct(task)[3:], [".1|long|1|FAILED|4:0"])

    def test_the_end_waits_for_a_daemon_that_is_away(self):
        task = self.submit(
            "srun sh -c 'touch runs; until [ -e go ]; do sleep 0.02; done; exit 5'; touch after\n"
            "until [ -e end ]; do sleep 0.02; done"
        )
        until(lambda: self.exists("runs"), "the step")
        self.stop(signal.SIGKILL)
        self.touch("go")
        until(lambda: self.exists("after"), "the script to go on: srun waits with a bound")
        self.start()
        until(lambda: self.sacct(task)[2:] == [".0|sh|1|FAILED|5:0"], "the end of the step")
        self.touch("end")
        self.wait(task, "COMPLETED")

    def test_a_step_without_an_end_has_the_tasks(self):
        task = self.submit(
            "srun -J long tail -f /dev/null & until [ -e go ]; do sleep 0.02; done; exit 6"
        )
        srun = until(
            lambda: self.pids_of("tail")
            and len(self.pids_of("srun")) == 1
            and self.pids_of("srun"),
            "the command and srun beside it",
        )
        os.kill(srun[0], signal.SIGKILL)
        until(lambda: not self.pids_of("tail"), "the end of the command")
        self.assertEqual(self.sacct(task)[2:], [".0|long|1|RUNNING|0:0"])
        self.touch("go")
        self.wait(task, "FAILED")
        self.assertEqual(self.sacct(task)[2:], [".0|long|1|FAILED|6:0"])
        step = self.task(task)["srun_steps"][0]
        self.assertEqual(step["ended_at"], self.task(task)["ended_at"])

    def pids_of(self, name):
        """The processes of this test with that name in argv[0]."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                with open(f"/proc/{pid}/environ", "rb") as file:
                    is_ours = self.folder.encode() in file.read()
            except OSError:
                continue
            if is_ours and os.path.basename(words[0]) == name.encode():
                found.append(int(pid))
        return found

    def test_signals_reach_the_command_once(self):
        """kill of srun's process, and colloc's own SIGTERM to all processes of the task."""
        script = "trap 'echo got >> signals' TERM; touch runs; until [ -e go ]; do sleep 0.02; done"
        self.write("command", script + "\nexit 7\n")
        task = self.submit(
            "srun bash command & until [ -e runs ]; do sleep 0.02; done; kill $!\n"
            "until [ -s signals ]; do sleep 0.02; done; touch go; wait $!; exit $?"
        )
        self.wait(task, "FAILED")
        self.assertEqual(self.read("signals"), "got\n")
        self.assertEqual(self.sacct(task)[2:], [".0|bash|1|FAILED|7:0"])

    def test_a_signal_that_ends_the_command_ends_srun(self):
        task = self.submit("exec srun sh -c 'kill -SEGV $$'")
        ended = self.wait(task, "FAILED")
        self.assertEqual(ended["signal"], signal.SIGSEGV)

    def test_what_is_refused(self):
        task = self.submit("until [ -e go ]; do sleep 0.02; done; srun echo still runs")
        self.wait_state(task, "RUNNING")
        path = f"/v1/tasks/{task}/steps"
        for body in (
            {},
            {"name": ""},
            {"name": "x" * 129},
            {"name": "a", "processes": 0},
            {"step": 0},
            {"step": "0", "exit_code": 0},
            {"step": -1, "exit_code": 0},
            {"step": 0, "exit_code": 256},
            {"step": 0, "signal": 65},
            {"step": 0, "exit_code": 0, "signal": 9},
        ):
            self.assertEqual(self.request("POST", path, body).status, 400, body)
        end = {"step": 0, "exit_code": 0}
        self.assertEqual(self.request("POST", path, end).status, 409, "it has not begun")
        self.assertEqual(self.request("POST", "/v1/tasks/99/steps", {"name": "a"}).status, 404)
        self.assertEqual(self.request("POST", path, {"name": "a"}).json, {"step": 0})
        self.assertEqual(self.request("POST", path, end).status, 200)
        self.assertEqual(self.request("POST", path, end).status, 409, "it has ended")
        for number in range(1, 1000):
            self.assertEqual(self.request("POST", path, {"name": "a"}).json, {"step": number})
        self.refused(409, "1000 steps", body={"name": "a"}, path=path)
        self.touch("go")
        self.wait(task, "COMPLETED")
        self.assertEqual(self.output(task), "still runs\n")
        self.assertEqual(len(self.task(task)["srun_steps"]), 1000)
        self.assertEqual(self.request("POST", path, {"name": "a"}).status, 409, "it has ended")

    @unittest.skipUnless(os.geteuid() == 0, "needs another user")
    def test_another_users_task(self):
        task = self.submit("srun -J secret true; until [ -e go ]; do sleep 0.02; done")
        until(lambda: len(self.sacct(task)) == 3, "the step")
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); from colloc import Client\n"
            "c = Client(sys.argv[2], 60)\n"
            "print(c.request('POST', f'/v1/tasks/{sys.argv[3]}/steps', {'name': 'a'}).status,"
            " c.request('GET', f'/v1/tasks/{sys.argv[3]}').json['task']['srun_steps'])"
        )
        python = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")
        done = subprocess.run(
            [*OTHER, "/usr/bin/python3", "-c", code, python, self.socket, str(task)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.stdout, "403 []\n", done.stderr)
        self.touch("go")
        self.wait(task, "COMPLETED")
        self.assertEqual(self.sacct(task)[2:], [".0|secret|1|COMPLETED|0:0"])


if __name__ == "__main__":
    unittest.main()
