# SPDX-License-Identifier: Apache-2.0
"""What happened to a task: interruptions of its attempts, the plot, and the trace for Perfetto."""

import json
import re
import time
import unittest

from daemon_case import DaemonCase, processes_with, until

# The members of each phase of the trace event format that we write, and their types:
# docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. pid, tid and times are
# whole numbers, since Perfetto takes a text for a name.
ON_THREAD = {"ph": str, "name": str, "pid": int, "tid": int, "ts": int}
FORMAT = {
    "M": {"ph": str, "name": str, "pid": int, "tid": int, "args": dict},
    "X": {**ON_THREAD, "cat": str, "dur": int, "args": dict},
    "i": {**ON_THREAD, "cat": str, "s": str},
    "C": {"ph": str, "name": str, "pid": int, "ts": int, "args": dict},
    "s": {**ON_THREAD, "cat": str, "id": int},
    "f": {**ON_THREAD, "cat": str, "id": int, "bp": str},
}
# The one argument of each kind of metadata.
METADATA = {
    "process_name": ("name", str),
    "thread_name": ("name", str),
    "process_sort_index": ("sort_index", int),
    "thread_sort_index": ("sort_index", int),
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

    def check_event(self, event):
        """Of the format: the members, their types, and the values that it names."""
        kind = event["ph"]
        self.assertIn(kind, FORMAT, event)
        self.assertEqual({key: type(value) for key, value in event.items()}, FORMAT[kind], event)
        if kind == "M":
            key, of_type = METADATA[event["name"]]
            self.assertEqual([(k, type(v)) for k, v in event["args"].items()], [(key, of_type)])
        elif kind == "C":
            self.assertTrue(all(type(value) in (int, float) for value in event["args"].values()))
            self.assertTrue(event["args"], event)
        self.assertIn(event.get("s", "t"), ("g", "p", "t"))
        self.assertEqual(event.get("bp", "e"), "e")
        self.assertGreaterEqual(event.get("dur", 0), 0)
        self.assertGreater(event.get("ts", 1), 0)

    def check_order(self, events):
        """As Perfetto reads them: by time, those of one time as they are in the file. It drops a
        slice that ends after the one it begins in, and an arrow outside of any slice."""
        open_until, arrows = {}, {}
        for event in sorted((e for e in events if e["ph"] in "Xsf"), key=lambda e: e["ts"]):
            ends = open_until.setdefault((event["pid"], event["tid"]), [])
            while ends and ends[-1] <= event["ts"]:
                ends.pop()
            if event["ph"] == "X":
                end = event["ts"] + event["dur"]
                self.assertTrue(not ends or end <= ends[-1], event)
                ends.append(end)
            else:
                self.assertTrue(ends, event)
                arrows.setdefault(event["id"], []).append(event["ph"])
        self.assertEqual([ends for ends in arrows.values() if ends != ["s", "f"]], [])

    def trace(self, *arguments):
        return self.checked(json.loads(self.colloc("trace", "export", *arguments).stdout))

    def checked(self, trace):
        """The events of a trace that follows the rules of the format, and names in it."""
        events = trace["traceEvents"]
        processes, threads = {}, {}
        for event in events:
            self.check_event(event)
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
        self.check_order(events)
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
        for moment in (first["since"], listed[0]["since"] / 2 + listed[0]["until"] / 2):
            # It begins with, or in, the suspension.
            cut = self.checked(self.get(f"/v1/trace?since={moment:.6f}"))[0]
            self.assertIn("suspended", {e["name"] for e in cut if e["ph"] == "X"})
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
