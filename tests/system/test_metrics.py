# SPDX-License-Identifier: Apache-2.0
"""`GET /v1/metrics`: what Prometheus would read, and that it would not complain."""

import re
import unittest

from daemon_case import MIB, DaemonCase, at_least, until

LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
SAMPLE = re.compile(rf"([a-z_:][a-z0-9_:]*)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)$")


class Metrics(DaemonCase):
    gpus = "2xA100-40GB"

    def read_metrics(self):
        """{name: {labels: value}} of a text that follows the rules of the format."""
        reply = self.request("GET", "/v1/metrics")
        self.assertEqual(reply.status, 200)
        self.assertEqual(reply.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        text = reply.data.decode()
        self.assertTrue(text.endswith("\n"))
        families, types, current = {}, {}, None
        for line in text[:-1].split("\n"):
            if line.startswith("# HELP "):
                current, words = line.split(" ", 3)[2:]
                self.assertNotIn(current, families, "a family stands in one place")
                self.assertTrue(words.endswith("."), line)
                families[current] = {}
            elif line.startswith("# TYPE "):
                name, types[current] = line.split(" ")[2:]
                self.assertEqual(name, current)
                self.assertIn(types[current], ("gauge", "counter"))
                self.assertEqual(types[current] == "counter", current.endswith("_total"))
            else:
                match = SAMPLE.fullmatch(line)
                self.assertTrue(match, f"no sample: {line}")
                self.assertEqual(match[1], current)
                labels = tuple(sorted(found[:2] for found in re.findall(LABEL, match[2] or "")))
                self.assertNotIn(labels, families[current], "a series is listed once")
                families[current][labels] = float(match.groups()[-1])
        self.assertEqual(set(families), set(types))
        return families

    def of(self, families, family, /, **labels):
        """The value of the one series with these labels, or None."""
        found = [
            value
            for series, value in families[family].items()
            if set(labels.items()) <= set(series)
        ]
        self.assertLessEqual(len(found), 1)
        return found[0] if found else None

    def test_without_tasks(self):
        self.wait_gpu(lambda gpu: gpu["smact"] == 0)
        seen = self.read_metrics()
        self.assertEqual(self.of(seen, "colloc_gpu_info", gpu="0", health="ok"), 1)
        self.assertEqual(
            self.of(seen, "colloc_gpu_memory_total_bytes", gpu="1"),
            self.gpu(1)["mem_total_mib"] * MIB,
        )
        self.assertEqual(self.of(seen, "colloc_gpu_sm_active_ratio", gpu="0"), 0)
        self.assertEqual(self.of(seen, "colloc_gpu_tasks", gpu="0"), 0)
        self.assertEqual(self.of(seen, "colloc_tasks", state="RUNNING"), 0)
        self.assertEqual(seen["colloc_task_memory_used_bytes"], {})
        energy = self.of(seen, "colloc_gpu_energy_joules_total", gpu="0")
        until(
            lambda: self.of(self.read_metrics(), "colloc_gpu_energy_joules_total", gpu="0") > energy
        )

    def test_a_task_with_an_odd_name(self):
        task = self.train(9000, 1e6, "--smact=0.6", name='a "b" \\ c\nd ü')
        self.submit(hold=True)
        gpu = self.wait_state(task, "RUNNING")["gpus"][0]
        until(lambda: (self.task(task)["mem_used_mib"] or 0) >= 9000)
        name = {"task": str(task), "name": 'a \\"b\\" \\\\ c\\nd ü'}

        def active_metrics():
            found = self.read_metrics()
            active = self.of(found, "colloc_task_gpu_sm_active_ratio", gpu=gpu, **name)
            return found if at_least(active, 0.55) else None

        seen = until(active_metrics, "the activity of the task")
        for metric in ("memory_used_bytes", "memory_peak_bytes", "gpu_memory_used_bytes"):
            self.assertAlmostEqual(
                self.of(seen, f"colloc_task_{metric}", **name) / MIB,
                self.task(task)["mem_used_mib"],
            )
        self.assertEqual(
            self.of(seen, "colloc_task_gpu_memory_used_bytes", gpu=gpu, **name),
            self.of(seen, "colloc_task_memory_used_bytes", **name),
        )
        self.assertGreater(self.of(seen, "colloc_task_execution_seconds", **name), 0)
        active = self.of(seen, "colloc_task_gpu_sm_active_ratio", gpu=gpu, **name)
        self.assertLess(active, 0.65)
        energy = self.of(seen, "colloc_task_energy_joules_total", **name)
        self.assertGreater(energy, 0)
        until(
            lambda: self.of(self.read_metrics(), "colloc_task_energy_joules_total", **name) > energy
        )
        self.assertEqual(self.of(seen, "colloc_gpu_tasks", gpu=gpu), 1)
        self.assertEqual(self.of(seen, "colloc_tasks", state="PENDING"), 1)

    def test_what_is_not_known_has_no_line(self):
        self.emulator("set", "0", "lost=on")
        self.emulator("set", "1", "gpm=off", "power=off", "processes=off")
        self.wait_gpu(lambda gpu: gpu["health"] == "lost")
        self.wait_gpu(lambda gpu: gpu["power_w"] is None, 1)
        seen = self.read_metrics()
        self.assertEqual(self.of(seen, "colloc_gpu_info", gpu="0", health="lost"), 1)
        for metric in ("memory_used_bytes", "sm_active_ratio", "power_watts", "foreign_processes"):
            self.assertIsNone(self.of(seen, "colloc_gpu_" + metric, gpu="0"))
        for metric in ("sm_active_ratio", "power_watts", "foreign_processes"):
            self.assertIsNone(self.of(seen, "colloc_gpu_" + metric, gpu="1"))
        task = self.train(2000, 1e6)
        self.wait_state(task, "RUNNING")
        seen = self.read_metrics()
        self.assertIsNotNone(self.of(seen, "colloc_task_execution_seconds", task=str(task)))
        self.assertIsNone(self.of(seen, "colloc_task_gpu_sm_active_ratio", task=str(task)))
        self.assertIsNotNone(self.of(seen, "colloc_gpu_memory_used_bytes", gpu="1"))


if __name__ == "__main__":
    unittest.main()
