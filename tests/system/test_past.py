# SPDX-License-Identifier: Apache-2.0
"""What happened to a task: interruptions of its attempts, the plot, and the trace for Perfetto."""

import json
import re
import time
import unittest

from daemon_case import DaemonCase, processes_with, until

# What the trace event format asks of each phase that we write.
REQUIRED = {
    "M": {"name", "pid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "i": {"name", "pid", "tid", "ts", "s"},
    "C": {"name", "pid", "ts", "args"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
}


class PastCase(DaemonCase):
    gpus = "2xA100-40GB"
    settings = {"sample-period": "100ms", "suspend-without-gate": "yes"}

    def start_task(self, mib=3000, seconds=1e6, **members):
        """A training that has its memory: from then on it can be suspended."""
        task = self.train(mib, seconds, "--ramp-seconds=0", **members)
        until(
            lambda: (self.task(task)["mem_used_mib"] or 0) >= mib and processes_with(f"/{task}/"),
            f"the memory of task {task}",
        )
        return task

    def interruptions(self, task):
        return self.task(task)["attempts"][-1]["interruptions"]

    def trace(self, *arguments):
        """The events of a trace that follows the rules of the format."""
        done = self.colloc("trace", "export", *arguments)
        events = json.loads(done.stdout)["traceEvents"]
        processes, threads, depth = {}, {}, {}
        for event in events:
            self.assertIn(event["ph"], REQUIRED, event)
            self.assertLessEqual(REQUIRED[event["ph"]], set(event), event)
            if event["name"] == "process_name":
                self.assertNotIn(event["pid"], processes)
                processes[event["pid"]] = event["args"]["name"]
            elif event["name"] == "thread_name":
                self.assertNotIn((event["pid"], event["tid"]), threads)
                threads[event["pid"], event["tid"]] = event["args"]["name"]
        for event in events:
            self.assertIn(event["pid"], processes)
            if event["ph"] in "Xisf":
                self.assertIn((event["pid"], event["tid"]), threads)
            if event["ph"] == "X":
                self.assertGreaterEqual(event["dur"], 0)
                depth.setdefault((event["pid"], event["tid"]), []).append(
                    (event["ts"], event["ts"] + event["dur"])
                )
        for spans in depth.values():  # slices of a thread are apart or nested
            for a in spans:
                for b in spans:
                    self.assertFalse(a[0] < b[0] < a[1] < b[1], (a, b))
        self.assertEqual(
            [e["id"] for e in events if e["ph"] == "s"], [e["id"] for e in events if e["ph"] == "f"]
        )
        return events, processes, threads


class Interruptions(PastCase):
    def test_suspended_moved_and_found_again(self):
        task = self.start_task(name="wanderer")
        source = self.task(task)["gpus"][0]
        target = str(1 - int(source))
        self.colloc("suspend", str(task))
        first = self.interruptions(task)[0]
        self.assertEqual((first["kind"], first["reason"]), ("suspended", "user"))
        self.assertIsNone(first["until"])
        self.restart()
        self.assertEqual(self.interruptions(task)[0]["since"], first["since"])
        self.colloc("resume", str(task))
        self.wait_state(task, "RUNNING")
        if self.task(task)["gpus"] != [target]:
            self.colloc("move", f"--gpu={target}", str(task))
        listed = self.interruptions(task)
        self.assertEqual(listed[-1]["gpus"], [target])
        for one in listed:
            self.assertLess(one["since"], one["until"])
            self.assertLess(abs(one["since"] - time.time()), 3600, "shown as wall time")
        crashed = self.submit("exit 3", name="crashes")
        self.wait(crashed)
        self.submit("true", hold=True, name="waits")

        # The plot marks them, once there are samples.
        def plot(pattern):
            lines = self.colloc("show", "--plot", str(task)).stdout.splitlines()
            return next((line for line in lines if re.match(pattern, line)), None)

        until(lambda: plot(r"attempt .*>"), "the move in the plot")

        def counters():
            return {event["name"] for event in self.trace("--since=1h")[0] if event["ph"] == "C"}

        wanted = {"memory (MiB)", "SM activity (%)", "power (W)"}
        until(lambda: wanted <= counters(), "the counters in the trace")

        # The trace has the same as slices, an arrow and counters.
        events, processes, threads = self.trace("--since=1h")
        names = {e["name"] for e in events if e["ph"] == "X" and e["tid"] == task}
        self.assertLessEqual({"waits", "attempt 1", "suspended"}, names)
        stays = {
            processes[e["pid"]].split()[1]
            for e in events
            if e["ph"] == "X" and e["name"] == "attempt 1" and e["tid"] == task
        }
        self.assertEqual(stays, {source, target})
        self.assertTrue([e for e in events if e["ph"] == "s" and e["tid"] == task])
        self.assertIn("NonZeroExitCode", {e["name"] for e in events if e["ph"] == "i"})
        self.assertIn("wanderer", " ".join(threads.values()))
        self.assertIn("waits", " ".join(threads.values()))
        self.colloc("suspend", str(task))
        until(lambda: plot(r"attempt .*/ *$"), "the suspension in the plot")
        # What ended before is left out.
        self.colloc("cancel", str(task))
        self.wait(task, "CANCELLED")
        self.assertEqual(self.task(task)["attempts"][-1]["interruptions"][0]["kind"], "suspended")
        moment = f"@{int(time.time()) + 10}"
        events, _, threads = self.trace("--since=1h", f"--until={moment}")
        self.assertIn("wanderer", " ".join(threads.values()))
        refused = self.colloc("trace", "export", "--since=1h", "--until=2h", code=2)
        self.assertIn("not before", refused.stderr)


class Trace(PastCase):
    settings = {"metrics-size": "0"}

    def test_without_metrics_and_with_odd_names(self):
        task = self.submit("exit 1", name='a "b" \\ \x07 ü' + "é" * 110)
        self.wait(task)
        events, _, threads = self.trace()
        self.assertIn('a "b" \\ \x07 ü', "".join(threads.values()))
        self.assertEqual([e for e in events if e["ph"] == "C"], [])
        done = self.colloc("trace", "export", "-o", "t.json")
        self.assertIn("it has no counters", done.stderr)
        self.assertIn("metrics-size", done.stderr)
        trace = json.loads(self.read("t.json"))
        self.assertEqual(trace["displayTimeUnit"], "ms")
        self.assertEqual(trace["otherData"]["tasks"], 1)
        for wrong, message in (
            (("--since=never",), "invalid time"),
            (("-o", "none/t.json"), "No such file"),
            (("file",), "reads none"),
            (("--gpus=4",), "not an option"),
        ):
            self.assertIn(message, self.colloc("trace", "export", *wrong, code=2).stderr)
        for query in ("since=x", "until=nan", "since=5&until=5", "since=1e300"):
            self.assertEqual(self.request("GET", f"/v1/trace?{query}").status, 400, query)
        before = self.get("/v1/trace?since=1000&until=2000")
        self.assertEqual(before["otherData"]["tasks"], 0)
        refused = self.colloc("trace", "synth", "--socket=/x", "--tasks-out=t", code=2)
        self.assertIn("asks no daemon", refused.stderr)


if __name__ == "__main__":
    unittest.main()
