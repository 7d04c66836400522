# SPDX-License-Identifier: Apache-2.0
"""Metrics over time of tasks and GPUs: answers, the plot, and that they outlive task and daemon."""

import os
import signal
import unittest

from daemon_case import DaemonCase, until


class Series(DaemonCase):
    gpus = "2xA100-40GB"

    def series(self, path, **query):
        words = "&".join(f"{key}={value}" for key, value in query.items())
        return self.get(f"/v1/{path}/series?{words}")

    def of(self, answer, gpu):
        return next((s for s in answer["series"] if s["gpu"] == gpu), None)

    def wait_series(self, task, condition, **query):
        def found():
            answer = self.series(f"tasks/{task}", **query)
            return answer if condition(answer) else None

        return until(found, "such a series")

    def known(self, series, metric):
        return [v for v in series["values"][metric] if v is not None]

    def test_a_task_and_its_neighbour(self):
        first = self.train(mib=4000, seconds=100000)
        self.wait_gpu(lambda gpu: gpu["tasks"] and gpu["tasks"][0]["settled"])
        second = self.train(mib=3000, seconds=100000)
        self.wait_state(second, "RUNNING")
        gpu = self.task(first)["gpus"][0]
        answer = self.wait_series(
            first,
            lambda a: self.of(a, gpu)
            and max(self.known(self.of(a, gpu), "mem_used_mib"), default=0) >= 4000,
        )
        self.assertEqual(answer["task"], first)
        self.assertEqual(answer["attempts"][0]["gpus"], [gpu])
        series = self.of(answer, gpu)
        self.assertEqual(series["uuid"], self.gpu(int(gpu))["uuid"])
        self.assertEqual(sorted(series["times"]), series["times"])
        for figures in (series["values"], series["min"], series["max"]):
            self.assertEqual({len(v) for v in figures.values()}, {len(series["times"])})
        self.assertTrue(all(0 <= v <= 1 for v in self.known(series, "smact")))
        self.assertGreater(max(self.known(series, "power_w")), 30)

        # The processes' own use of the host, read by the recorder's thread.
        host = self.wait_series(
            first, lambda a: self.of(a, None) and self.known(self.of(a, None), "host_mem_mib")
        )
        self.assertGreater(max(self.known(self.of(host, None), "host_mem_mib")), 0.5)
        self.assertEqual(self.known(self.of(host, None), "net_rx_mib_s"), [])

        # One metric, without minimum and maximum, in long steps.
        answer = self.series(f"tasks/{first}", metric="smact", range="no", step_s=3600)
        self.assertEqual([list(s["values"]) for s in answer["series"]], [["smact"]])
        self.assertNotIn("min", answer["series"][0])
        self.assertEqual(answer["step_s"], 3600)
        self.assertLessEqual(len(answer["series"][0]["times"]), 2)

        # The GPU has both tasks where they share it, and each is the other's neighbour.
        whole = self.series(f"gpus/{gpu}", tasks="yes", metric="mem_used_mib")
        self.assertIn(None, [s["task"] for s in whole["series"]])
        self.assertIn(first, [s["task"] for s in whole["series"]])
        if self.task(second)["gpus"] == [gpu]:
            answer = self.wait_series(first, lambda a: a["neighbours"])
            self.assertEqual(answer["neighbours"][0]["task"], second)
        every = self.series("gpus/all", metric="power_w")
        self.assertEqual([s["gpu"] for s in every["series"]], ["0", "1"])

    def test_neighbours_on_one_gpu(self):
        self.restart(gpus="0")
        first = self.train(mib=4000, seconds=100000)
        self.wait_gpu(lambda gpu: gpu["tasks"] and gpu["tasks"][0]["settled"])
        second = self.train(mib=3000, seconds=100000)
        self.wait_state(second, "RUNNING")
        answer = self.wait_series(first, lambda a: a["neighbours"])
        self.assertEqual([n["task"] for n in answer["neighbours"]], [second])
        self.assertEqual(answer["neighbours"][0]["gpu"], "0")
        # Occupancy is the GPU's as a whole: a task's only while it is alone.
        self.wait_series(
            second,
            lambda a: self.of(a, "0") and self.known(self.of(a, "0"), "smact"),
            step_s=0.001,
        )
        seen = self.of(self.series(f"tasks/{second}", step_s=0.001), "0")
        self.assertEqual(self.known(seen, "smocc"), [])
        alone = self.of(self.series(f"tasks/{first}", step_s=0.001), "0")
        self.assertTrue(self.known(alone, "smocc"))

    def test_a_neighbour_in_an_array_has_its_name(self):
        """Also once it has ended: in the answer, in the plot and in the past of the GPU."""
        self.restart(gpus="0")
        first = self.train(mib=4000, seconds=100000)
        self.wait_gpu(lambda gpu: gpu["tasks"] and gpu["tasks"][0]["settled"])
        done = self.colloc(
            "submit",
            "--array=7",
            "--",
            *"colloc-pretend-train --memory-mib=3000 --seconds=1e6".split(),
        )
        array = int(done.stdout.split()[2])
        name = f"{array}_7"
        answer = self.wait_series(first, lambda a: a["neighbours"])
        self.assertEqual({n["label"] for n in answer["neighbours"]}, {name})
        self.colloc("cancel", name)
        second = answer["neighbours"][0]["task"]
        self.wait(second, "CANCELLED")
        answer = self.series(f"tasks/{second}")
        self.assertEqual({n["label"] for n in answer["neighbours"]}, {str(first)})
        self.assertEqual(self.of(answer, "0")["label"], name)
        self.assertIn(f"task {name}, GPU 0 ", self.colloc("show", "--plot", str(first)).stdout)
        past = self.series("gpus/0", tasks="yes", metric="mem_used_mib")["series"]
        self.assertIn((second, name), [(s["task"], s.get("label")) for s in past])

    def test_the_past_outlives_task_and_daemon(self):
        task, end = self.train_until_ended(2000)
        path = f"tasks/{task}"
        is_long = lambda a: self.of(a, "0") and len(self.of(a, "0")["times"]) > 3
        self.wait_series(task, is_long, step_s=0.001)
        end()
        self.wait(task, "COMPLETED")
        before = self.series(path, step_s=0.001)
        self.restart(signal.SIGKILL)
        after = self.series(path, step_s=0.001)
        self.assertEqual(self.of(after, "0")["times"], self.of(before, "0")["times"])
        self.assertEqual(self.of(after, "0")["values"], self.of(before, "0")["values"])
        # A database that cannot be read is put aside; the daemon starts all the same.
        self.stop(signal.SIGKILL)
        for name in os.listdir(self.state):
            if name.startswith("metrics.db"):
                os.remove(os.path.join(self.state, name))
        with open(os.path.join(self.state, "metrics.db"), "wb") as file:
            file.write(b"no database at all" * 1000)
        self.start()
        self.assertRegex("\n".join(self.log), "metrics' database was damaged.*not a database")
        self.assertEqual(self.series(path)["series"], [])

    def test_plot(self):
        task = self.train(mib=4000, seconds=300)
        self.wait(task, "COMPLETED")
        self.wait_series(task, lambda a: self.of(a, "0"))
        lines = self.colloc("show", "--plot", str(task)).stdout.splitlines()
        self.assertRegex(lines[0], r"^\d{4}-\d\d-\d\d .* to .*, a column is [\d.]+ s$")
        self.assertRegex(lines[1], r"^attempt +1+ *$")
        plot = {line[:20].strip(): line[20:] for line in lines[2:]}
        self.assertRegex(plot["GPU 0  memory"], r"█.* to [34]\.\d GiB, mean ")
        # The last column may lie behind the last sample.
        self.assertRegex(plot["GPU 0  SMACT"], r"[▁▂▃▄▅▆▇█]+·? .* % to \d+ %, mean \d+ %$")
        answer = self.colloc("show", "--plot", "--json", str(task)).stdout
        self.assertIn('"series"', answer)
        waiting = self.submit("true", hold=True)
        self.assertIn("No metrics", self.colloc("show", "--plot", str(waiting)).stdout)

    def test_refusals(self):
        self.refused(404, "no task 9", path="/v1/tasks/9/series", method="GET")
        self.refused(404, "no GPU '7'", path="/v1/gpus/7/series", method="GET")
        for query, word in (
            ("metric=smact,speed", "metric=speed"),
            ("metric=" + "smact," * 60, "metric=smact"),
            ("since=x", "since=x"),
            ("step_s=-1", "step_s=-1"),
            ("range=maybe", "range=maybe"),
            ("since=5&until=5", "since"),
        ):
            self.refused(400, word, path=f"/v1/gpus/0/series?{query}", method="GET")
        self.restart(metrics_size="0")
        self.refused(404, "metrics-size", path="/v1/gpus/0/series", method="GET")


if __name__ == "__main__":
    unittest.main()
