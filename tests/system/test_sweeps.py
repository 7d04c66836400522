# SPDX-License-Identifier: Apache-2.0
"""Early stop of arrays: ranks at the rungs, the state STOPPED everywhere, restarts."""

import json
import os
import signal
import unittest

from daemon_case import DaemonCase, until

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

    def rank(self, task, step, value):
        stop = self.report(task, step, value)
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
            self.client.metric("acc", 1, value, array + 1 + i)["stop_rank"]["rank"]
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
