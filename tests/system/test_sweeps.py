# SPDX-License-Identifier: Apache-2.0
"""Early stop of arrays: ranks at the rungs, the state STOPPED everywhere, restarts."""

import json
import os
import shutil
import signal
import unittest

from daemon_case import DaemonCase, program, until

import colloc

RULE = "asha:metric=val_loss,min,rung=3"
WAITS = "exec sleep 1000"


class Sweeps(DaemonCase):
    gpus = "4xA100-40GB"

    def sweep(self, indices="0-5", rule=RULE, script=WAITS, running=None, **members):
        array = self.submit(script, array=indices, stop=rule, memory_mib=1000, **members)
        if running:
            until(lambda: self.states(array).get("RUNNING") == running, f"{running} that run")
        return array

    def states(self, array):
        return self.client.array(array)["states"]

    def report(self, task, step, value, name="val_loss"):
        return self.client.metric(name, step, value, task)["stop_rank"]

    def judged(self, task, step, value, **options):
        """A task is RUNNING from its placement on; it is judged once it has been started."""
        return until(lambda: self.report(task, step, value, **options), f"task {task} to be judged")

    def rank(self, task, step, value):
        stop = self.judged(task, step, value)
        return stop["rank"], stop["of"], stop["stopped"]

    def test_a_losing_task_is_stopped_with_its_rank(self):
        array = self.sweep(running=6)
        self.assertIsNone(self.report(array + 1, 2, 0.1))
        self.assertIsNone(self.report(array + 1, 3, 0.1, name="accuracy"))
        self.assertEqual(self.rank(array + 1, 3, 0.9), (1, 1, False))
        self.assertEqual(self.rank(array + 2, 3, 0.5), (1, 2, False))
        self.assertEqual(self.rank(array + 3, 4, 0.7), (2, 3, True))
        stopped = self.wait(array + 3, "STOPPED")
        self.assertEqual(
            stopped["stop_rank"],
            {"metric": "val_loss", "step": 3, "rank": 2, "of": 3, "stopped": True},
        )
        self.assertEqual(stopped["reason"], "Stopped")
        self.assertEqual(stopped["failure"], "cancelled")
        self.assertIn("rank 2 of 3 by val_loss (min) at step 3", stopped["reason_text"])
        shown = self.colloc("show", str(array + 3)).stdout
        self.assertIn("rank 2 of 3 at rung 1", shown)
        self.assertIn("0.7 at rung 1", shown)
        self.assertNotIn("0.9 at rung 1", shown)
        self.assertIn("asha:metric=val_loss", shown)
        self.assertEqual(self.states(array), {"RUNNING": 5, "STOPPED": 1})
        self.assertEqual(self.rank(array + 2, 3, 99), (1, 2, False), "a rung is judged once")
        self.assertEqual(self.rank(array + 2, 9, float("nan")), (1, 1, False))
        self.assertEqual(self.rank(array + 4, 27, 0.1), (1, 1, False))
        self.assertEqual(self.rank(array + 5, 3, float("inf")), (4, 4, True))

    def test_max_and_another_factor(self):
        array = self.sweep("0-3", "asha:max,factor=2,rung=1,metric=acc", running=4)
        ranks = [
            self.judged(array + 1 + i, 1, value, name="acc")["rank"]
            for i, value in enumerate((0.5, 0.6, 0.55, float("nan")))
        ]
        self.assertEqual(ranks, [1, 1, 2, 4])
        until(lambda: self.states(array).get("STOPPED") == 2, "two that are stopped")
        self.assertEqual(self.task(array + 4)["state"], "STOPPED")

    def test_reports_survive_a_kill(self):
        array = self.sweep("0-3", running=4)
        self.rank(array + 1, 3, 0.2)
        self.assertEqual(self.rank(array + 2, 3, 0.3), (2, 2, True))
        self.wait(array + 2, "STOPPED")
        self.restart(signal.SIGKILL)
        self.assertEqual(self.rank(array + 3, 3, 0.25), (2, 3, True))
        self.wait(array + 3, "STOPPED")
        self.assertEqual(self.rank(array + 1, 3, 9), (1, 1, False), "it has reported there")
        self.assertEqual(self.client.task(array + 2)["stop_rank"]["rank"], 2)

    def test_dependencies_and_commands(self):
        array = self.sweep("0-1", running=2)
        after = self.submit(after=f"ok:{array}")
        never = self.submit(after=f"notok:{array}")
        self.rank(array + 1, 3, 1)
        self.rank(array + 2, 3, 2)
        self.wait(array + 2, "STOPPED")
        self.assertEqual(self.colloc("wait", f"{array}_1").returncode, 0)
        self.act("cancel", array + 1)
        self.wait(after, "CANCELLED")
        second = self.sweep("0-1", script="test $COLLOC_ARRAY_INDEX = 0 || exec sleep 1000")
        self.wait(second + 1, "COMPLETED")
        self.wait(never, "COMPLETED")
        late = self.submit(after=f"ok:{array}_1")
        self.wait(late, "COMPLETED")
        listed = self.colloc("history", "--state=stopped", "--csv", "-o", "id").stdout
        self.assertEqual(listed.splitlines()[1:], [str(array + 2)])

    def test_a_task_reports_by_command_and_python(self):
        python = os.path.dirname(os.path.dirname(colloc.__file__))
        script = (
            "colloc metric val_loss 3 0.$COLLOC_ARRAY_INDEX\n"
            f"PYTHONPATH={python} python3 -c "
            '\'import colloc; colloc.metric("val_loss", 9, float("nan"))\'\n'
        )
        array = self.sweep("1", script=script)
        task = self.wait(array + 1, "COMPLETED")
        self.assertEqual((task["stop_rank"]["step"], task["stop_rank"]["of"]), (9, 1))
        self.colloc("metric", "val_loss", "3", "x", "--task=1", code=2)
        self.colloc("metric", "val_loss", "-1", "1", "--task=1", code=2)
        self.assertIn("give --task", self.colloc("metric", "val_loss", "3", "1", code=2).stderr)
        self.assertIn(
            "has ended",
            self.colloc("metric", "a", "3", "1", f"--task={array + 1}", code=1).stderr,
        )

    # ---- --metric-from ----

    def follow(self, source, script, values=(0.5, 0.9), **members):
        """An array whose tasks report a value each at step 3, the first before the others."""
        head = "export V=$(echo %s | cut -d' ' -f$((COLLOC_ARRAY_INDEX + 1)))\n" % (
            " ".join(str(value) for value in values)
        )
        wait = f"test $COLLOC_ARRAY_INDEX = 0 || until [ -e {self.work}/go ]; do sleep 0.05; done\n"
        array = self.sweep(
            f"0-{len(values) - 1}",
            script=head + wait + script + "\nexec sleep 1000",
            metric_from=source,
            running=len(values),
            **members,
        )
        until(lambda: self.task(array + 1)["stop_rank"], "the first task's report")
        with open(os.path.join(self.work, "go"), "w", encoding="utf-8"):
            pass
        self.wait(array + 2, "STOPPED")
        shown = self.task(array + 2)["stop_rank"]
        self.assertEqual((shown["rank"], shown["of"], shown["step"]), (2, 2, 3))
        self.assertEqual(self.task(array + 1)["state"], "RUNNING")
        return array

    def test_event_files_of_tensorboard(self):
        python = os.path.dirname(os.path.dirname(colloc.__file__))
        script = (
            f"PYTHONPATH={python} python3 - <<'E'\n"
            "import os, time\n"
            "from colloc.tracking.bridge import Point\n"
            "from colloc.tracking.event_file import EventFile\n"
            "file = EventFile('runs/' + os.environ['COLLOC_ARRAY_INDEX'] + '/version_0')\n"
            "send = lambda name, at, step, v: file.send([Point(name, v, at, step)])\n"
            "send('val_loss', time.time() - 3600, 3, -1.0)\n"  # of an earlier attempt
            "send('other', time.time(), 3, -1.0)\n"
            "send('val_loss', time.time(), 2, -1.0)\n"
            "send('val_loss', time.time(), 3, float(os.environ['V']))\n"
            "E"
        )
        array = self.follow("tensorboard:runs/%a", script)
        shown = self.colloc("show", str(array + 2)).stdout
        self.assertIn("tensorboard:runs/%a", shown)

    def test_a_store_of_mlflow_that_tasks_share(self):
        script = (
            "run=mlruns/0/run$COLLOC_TASK_ID; mkdir -p $run/metrics $run/tags\n"
            "printf '%s 0 3\\n' $(date +%s000) >mlruns/none\n"
            "printf '%s %s 3\\n' $(date +%s000) $V >>$run/metrics/val_loss\n"
            "printf '%s' $COLLOC_TASK_ID >$run/tags/colloc.task"
        )
        self.follow("mlflow:mlruns", script)
        self.read_late(script)
        other = self.sweep("0", script="sleep 2", metric_from="mlflow:mlruns")
        self.wait(other + 1, "COMPLETED")
        self.assertIsNone(self.task(other + 1)["stop_rank"])
        self.assertIn("needs the tag colloc.task", self.read(f"colloc-{other}_0.out"))

    def read_late(self, script):
        """On a machine that starts the reader two seconds after the program."""
        folder = os.path.join(self.work, "slow")
        os.mkdir(folder)
        shim = shutil.copy(program("shim"), folder)
        colloc_path = self.write(
            "slow/colloc", f'#!/bin/sh\nsleep 2\nexec {program("colloc")} "$@"\n'
        )
        os.chmod(colloc_path, 0o755)
        self.restart(shim=shim)
        array = self.sweep("0", script=f"V=1; {script}; {WAITS}", metric_from="mlflow:mlruns")
        until(lambda: self.task(array + 1)["stop_rank"], "the report of a late reader")
        self.restart()

    def test_lines_of_the_output(self):
        script = 'printf "epoch 2: val_loss=0\\repoch 3: val_loss=$V\\n"; echo x 0 >&2'
        source = "output:epoch {step}: val_loss={value}"
        self.follow(source, script)
        os.remove(os.path.join(self.work, "go"))
        self.follow(source, f"({script}) >&2", error="error-%a")

    def test_lines_while_the_daemon_restarts(self):
        """The reader outlives the daemon, and the task's end is not held up by it."""
        begun = f"{self.work}/begun-"
        script = (
            f": >{begun}$COLLOC_ARRAY_INDEX; until [ -e {self.work}/go ]; do sleep 0.05; done; "
        )
        script += "echo loss=1; "
        array = self.sweep(
            "0-1",
            "asha:metric=val_loss,min,rung=1",
            script=script + "test $COLLOC_ARRAY_INDEX = 1 || exec sleep 1000",
            metric_from="output:loss={value}",
            running=2,
        )
        until(lambda: all(os.path.exists(f"{begun}{i}") for i in range(2)), "both to have begun")
        self.task(array + 1)  # that they have is in the log, too
        self.restart(signal.SIGKILL)
        with open(os.path.join(self.work, "go"), "w", encoding="utf-8"):
            pass
        until(lambda: self.task(array + 1)["stop_rank"], "the report")
        ended = self.wait(array + 2, "COMPLETED")
        self.assertEqual(ended["stop_rank"]["step"], 1)

    def test_what_is_refused(self):
        self.refused(400, "only an array", stop=RULE)
        for rule in (
            "asha",
            "asha:",
            "asha:metric=a,min",
            "asha:metric=a,rung=3",
            "asha:min,rung=3",
            "asha:metric=a,min,max,rung=3",
            "asha:metric=a,min,rung=0",
            "asha:metric=a,min,rung=3,factor=1",
            "asha:metric=a,min,rung=3,factor=101",
            "asha:metric=,min,rung=3",
            "asha:metric=a b,min,rung=3",
            "asha:metric=" + "a" * 64 + ",min,rung=3",
            "asha:metric=a,min,rung=3,",
            "other:metric=a,min,rung=3",
        ):
            self.refused(400, "stop=", array="0-1", stop=rule)
        self.refused(400, "give stop, too", array="0-1", metric_from="mlflow:m")
        for source in ("tensorboard:runs", "output:loss", "wandb:x", "mlflow:"):
            self.refused(400, "metric-from=", array="0-1", stop=RULE, metric_from=source)
        array = self.sweep("0", running=1)
        path = f"/v1/tasks/{array + 1}/metric"
        for body in (
            {},
            {"name": "val_loss", "step": 1.5, "value": 1},
            {"name": "val_loss", "step": -1, "value": 1},
            {"name": "val_loss", "step": 1 << 60, "value": 1},
            {"name": "val_loss", "step": 3, "value": "x"},
            {"name": 3, "step": 3, "value": 1},
        ):
            self.refused(400, "give name", body=json.dumps(body), path=path)
        single = self.submit(WAITS)
        self.wait_state(single, "RUNNING")
        self.assertIsNone(self.report(single, 3, 1), "a task of no array is not compared")


if __name__ == "__main__":
    unittest.main()
