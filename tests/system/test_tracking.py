# SPDX-License-Identifier: Apache-2.0
"""`--track` and `colloc record --mlflow`: metrics in the run that the environment names."""

import os
import sys
import unittest

from daemon_case import DaemonCase, until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fake_mlflow import FakeMlflow  # noqa: E402

GPU = "system/colloc_gpu_0_"


class Tracking(DaemonCase):
    gpus = "1xA100-40GB"
    settings = {"sample-period": "100ms"}

    def setUp(self):
        self.server = FakeMlflow()
        self.addCleanup(self.server.close)
        super().setUp()
        self.env["COLLOC_TRACK_PERIOD"] = "0.5"
        self.run_names = {
            "MLFLOW_RUN_ID": "run1",
            "MLFLOW_TRACKING_URI": self.server.uri(),
        }

    def test_a_task(self):
        events = os.path.join(self.work, "events")
        task = self.train(
            3000,
            1e6,
            "--ramp-seconds=0",
            track=f"mlflow,tensorboard:{events}",
            environment=self.run_names,
        )
        until(
            lambda: max(self.server.values(GPU + "mem_used_mib"), default=0) >= 3000, "its memory"
        )
        self.server.failures = [500]  # is tried again
        until(lambda: not self.server.failures, "the request that fails")
        before = len(self.server.metrics)
        until(lambda: len(self.server.metrics) > before, "more of it")
        until(lambda: "system/colloc_cpu_cores" in self.server.names(), "its CPU time")
        until(lambda: os.path.isdir(events) and os.listdir(events), "an event file")
        self.assertIn("Tracked by", self.colloc("show", str(task)).stdout)
        until(lambda: "HTTP 500" in self.read_if(f"colloc-{task}.out"), "the failure in its output")
        self.colloc("cancel", str(task))
        self.wait(task, "CANCELLED")
        moments = [m["timestamp"] for m in self.server.metrics if m["key"] == GPU + "mem_used_mib"]
        self.assertEqual(moments, sorted(set(moments)), "each once, in order")

    def test_a_task_ends_as_without(self):
        """Its status and children are its own, and a server that is gone does not hold it up."""
        self.server.close()
        script = "pgrep -P $$ -f colloc.tracking; (exit 3) & wait $!; exit $?"
        task = self.submit(script, track="mlflow", environment=self.run_names)
        ended = self.wait(task)
        self.assertEqual((ended["state"], ended["exit_code"]), ("FAILED", 3))
        self.assertNotRegex(self.read(f"colloc-{task}.out"), r"(?m)^\d+$")

    def test_what_is_refused(self):
        for text in ("comet", "mlflow,,wandb", "tensorboard:"):
            reply = self.request("POST", "/v1/tasks", self.body(track=text))
            self.assertEqual(reply.status, 400, text)
            self.assertIn("tensorboard:FOLDER", reply.message)
        reply = self.request("POST", "/v1/tasks", self.body(track="mlflow,"))
        self.assertEqual((reply.status, "ends in a comma" in reply.message), (400, True))
        refused = self.colloc("submit", "--track=wandb", "--", "true", code=2)
        self.assertIn("WANDB_RUN_ID", refused.stderr)
        refused = self.colloc("record", "--mlflow", "--", "true", code=125)
        self.assertIn("MLFLOW_RUN_ID", refused.stderr)

    def test_a_recorded_command(self):
        self.env.update(self.run_names)
        done = self.colloc(
            "record",
            "--interval=20ms",
            "--mlflow",
            "--output=samples.csv",
            "--",
            "colloc-pretend-train",
            "--memory-mib=4000",
            "--seconds=300",
            "--ramp-seconds=0",
        )
        self.assertIn("peak memory", done.stderr)
        self.assertIn(4000, [round(value) for value in self.server.values(GPU + "mem_used_mib")])
        self.assertIn("system/colloc_cpu_cores", self.server.names())
        self.assertIn("command_smact", self.read("samples.csv").splitlines()[0])
        emulator = self.env["PATH"].split(":")[0]
        done = self.colloc("record", "--mlflow", "--", "/bin/true", PATH=emulator)
        self.assertIn("nothing was sent: cannot start python3", done.stderr)
        self.server.close()
        done = self.colloc("record", "--mlflow", "--", "sh", "-c", "exit 4", code=4)
        self.assertIn("Time", done.stderr)


if __name__ == "__main__":
    unittest.main()
