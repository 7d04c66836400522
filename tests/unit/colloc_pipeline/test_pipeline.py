# SPDX-License-Identifier: Apache-2.0
"""Pipelines: their files, what times come to, whole runs of pretend stages, bad stages."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "tests", "system")]

from colloc_pipeline import matrix, recording, results, sharing, spec, statistics  # noqa: E402
from colloc_pipeline.stage import StageFailed, StageProcess  # noqa: E402
from colloc_pipeline.stage_queue import Entry, StageQueue  # noqa: E402
from colloc_slurm.loopback import until  # noqa: E402
from daemon_case import processes_with  # noqa: E402

BUILD = os.environ.get("COLLOC_BUILD", os.path.join(ROOT, "build"))
COLLOC = os.path.join(BUILD, "src", "cli", "colloc")
EXAMPLES = os.path.join(ROOT, "workloads", "pipelines")
PRETEND = ["pretend.py", "0", "0"]
LIMIT_S = 120


def stage(name, *after, **more):
    return {"name": name, "program": PRETEND, "after": list(after), **more}


def pipeline(*stages, **more):
    return {"name": "p", "requests": 20, "warmup": 2, "in_flight": 4, "stages": stages, **more}


def is_in_a_file(folder, text):
    for root, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
                if text in file.read():
                    return True
    return False


class Spec(unittest.TestCase):
    def wrong(self, source, *words):
        text = source if isinstance(source, str) else json.dumps(source)
        with self.assertRaises(spec.SpecError) as caught:
            spec.parse_pipeline(text, "x.json")
        for word in ("x.json", *words):
            self.assertIn(word, str(caught.exception))

    def test_the_examples(self):
        for name in ("image-training", "serving", "rag"):
            read = spec.read_pipeline(os.path.join(EXAMPLES, name + ".json"))
            self.assertEqual(read.name, name)
            for each in read.stages:
                self.assertTrue(os.path.exists(os.path.join(read.folder, each.program[0])), each)

    def test_what_is_wrong(self):
        self.wrong("{", "not JSON")
        self.wrong([], "not an object")
        self.wrong(pipeline(), "1 to 100")
        self.wrong(pipeline(stage("a"), rate="fast"), "rate")
        self.wrong(pipeline(stage("a"), rate=0), "rate: a number from 0.001 to")
        self.wrong(pipeline(stage("a"), rate=-1), "rate")
        self.wrong(pipeline(stage("a"), rate=None), "rate")
        self.wrong(pipeline(stage("a"), requests=1.5), "a whole number")
        self.wrong(pipeline(stage("a"), requests=True), "requests")
        self.wrong(pipeline(stage("a"), stage("a")), "two stages")
        self.wrong(pipeline(stage("a", "b")), "no stage b")
        self.wrong(pipeline(stage("a", "b"), stage("b", "a")), "wait for each other: a, b")
        self.wrong(pipeline(stage("a"), stage("b", "a", "a")), "b: after: a is there twice")
        self.wrong(pipeline(stage("a", batch=0)), "batch")
        self.wrong(pipeline(stage("a", colour="red")), "colour")
        self.wrong(pipeline(stage("a", device="tpu")), "host or gpu")
        self.wrong(pipeline(stage("../a")), "name")
        self.wrong(pipeline({"name": "a", "program": []}), "program")
        self.wrong(pipeline({"name": "a", "program": "x"}), "list of texts")

    def test_without_a_rate(self):
        read = spec.parse_pipeline(json.dumps(pipeline(stage("a"))), "x.json")
        self.assertIsNone(read.rate)

    def test_more_cpus_than_there_are(self):
        source = pipeline(stage("a", cpus=3), stage("b", "a", cpus=2), stage("c", "b"))
        read = spec.parse_pipeline(json.dumps(source), "x.json")
        (warning,) = spec.find_warnings(read, 2)
        self.assertIn("p: a: cpus is 3, but only 2", warning)
        self.assertEqual(spec.find_warnings(read, 3), [])

    def test_a_file_that_is_not_there(self):
        with self.assertRaises(spec.SpecError):
            spec.read_pipeline("/nonexistent.json")


class Figures(unittest.TestCase):
    def test_quantiles(self):
        values = list(range(100, 0, -1))
        self.assertEqual([statistics.quantile(values, q) for q in (0.5, 0.99, 1)], [50, 99, 100])
        self.assertIsNone(statistics.quantile([], 0.5))

    def test_a_stage(self):
        visits = [statistics.Visit(i, i, i + 0.1, i + 0.3, i + 1) for i in range(10)]
        row = statistics.stage_row(visits, [(i + 0.3, i + 1, 1) for i in range(10)])
        self.assertAlmostEqual(row["latency_p99_ms"], 1000)
        self.assertAlmostEqual(row["blocked_p50_ms"], 100)
        self.assertAlmostEqual(row["waiting_p50_ms"], 200)
        self.assertAlmostEqual(row["items_per_s"], 1)
        self.assertAlmostEqual(row["busy"], 0.7)
        empty = statistics.stage_row([], [])
        self.assertIsNone(empty["latency_p50_ms"])
        self.assertIsNone(empty["busy"])

    def test_where_time_is_lost(self):
        visits = {
            "a": [statistics.Visit(0, 0, 0, 1, 2)],
            "b": [statistics.Visit(0, 2, 2, 8, 9)],
        }
        self.assertEqual(statistics.find_loss(visits), ("b", "waiting", 6 / 9))
        self.assertEqual(statistics.find_loss({}), ("", "", None))

    def test_energy_is_of_the_counter(self):
        samples = [
            {"time_s": "0.0", "energy_j": "10", "smact": ""},
            {"time_s": "2.0", "energy_j": "210", "smact": "0.5"},
        ]
        self.assertEqual(
            recording.summarise(samples), {"power_w": 100, "smact": 0.5, "energy_j": 200}
        )
        cut = [*samples, {"time_s": "3", "smact": "0.5", "power_w": None, "energy_j": None}]
        self.assertEqual(recording.summarise(cut)["power_w"], 100)  # the recorder ended within it
        unknown = {"power_w": None, "smact": None, "energy_j": None}
        self.assertEqual(recording.summarise([]), unknown)
        self.assertEqual(recording.summarise([{}, {}]), unknown)

    def test_energy_is_power_by_time_over_the_same_requests(self):
        rows = [
            {"power_w": 100, "requests": 300, "seconds": 2},
            {"power_w": 100, "requests": 100, "seconds": 4},
        ]
        results.add_energy(rows)
        self.assertEqual([row["energy_per_request_j"] for row in rows], [1, 1])
        for unknown in (
            {"power_w": None, "requests": 1, "seconds": 2},
            {"power_w": 100, "requests": 0, "seconds": 0},
            {"power_w": 100, "requests": 1, "seconds": None},
        ):
            results.add_energy([unknown])
            self.assertIsNone(unknown["energy_per_request_j"])

    def test_modes(self):
        for mode in ("apart", "streams", "mps", "1g.18gb", "1c.3g.71gb", "1g.18gb+me"):
            self.assertTrue(sharing.is_mode(mode), mode)
        for mode in ("", "MPS", "1g", "c.3g.71gb", "1c.1c.3g.71gb", "1g.18gb,mps", "1g.18gb+"):
            self.assertFalse(sharing.is_mode(mode), mode)

    def test_instances(self):
        text = (
            "0/1g.18gb/MIG-a,0/3g.71gb/MIG-b,1/1g.18gb/MIG-c,0/1g.18gb/MIG-GPU-d/7/0,"
            "0/1c.3g.71gb/MIG-e"
        )
        self.assertEqual(
            sharing.choose_instances(text, "0", "1g.18gb", 2), ["MIG-a", "MIG-GPU-d/7/0"]
        )
        self.assertEqual(sharing.choose_instances(text, "1", "1g.18gb", 1), ["MIG-c"])
        self.assertEqual(sharing.choose_instances(text, "0", "3g.71gb", 1), ["MIG-b"])
        self.assertEqual(sharing.choose_instances(text, "0", "1c.3g.71gb", 1), ["MIG-e"])
        with self.assertRaisesRegex(
            sharing.SharingError, "1g.18gb: GPU 1 has 1 of the 2 instances"
        ):
            sharing.choose_instances(text, "1", "1g.18gb", 2)
        for bad in ("", ",", "0", "0/1g.18gb", "\0/\n,/"):
            with self.assertRaisesRegex(sharing.SharingError, "GPU 0 has 0 of the 1"):
                sharing.choose_instances(bad, "0", "1g.18gb", 1)
        with self.assertRaisesRegex(sharing.SharingError, "cannot query"):
            sharing.choose_instances(None, "0", "1g.18gb", 1)


class Queue(unittest.TestCase):
    def test_who_offers_waits_for_room(self):
        queue = StageQueue(1)
        self.assertTrue(queue.put(Entry(1)))
        second = Entry(2)
        thread = threading.Thread(target=queue.put, args=(second,))
        thread.start()
        self.assertEqual([entry.request for entry in queue.take(8, 0)], [1])
        thread.join(LIMIT_S)
        self.assertEqual([entry.request for entry in queue.take(8, 0)], [2])
        self.assertGreaterEqual(second.entered, second.offered)

    def test_closed(self):
        queue = StageQueue(1)
        found = []
        thread = threading.Thread(target=lambda: found.append(queue.take(1, 60)))
        thread.start()
        queue.close()
        thread.join(LIMIT_S)
        self.assertEqual(found, [[]])
        self.assertFalse(queue.put(Entry(1)))


def hanging_process(case, text):
    """A process of a stage whose program is this text; its log."""
    folder = tempfile.TemporaryDirectory()
    case.addCleanup(folder.cleanup)
    program, log = os.path.join(folder.name, "hanging.py"), os.path.join(folder.name, "log")
    with open(program, "w", encoding="utf-8") as file:
        file.write(f"import sys, time\nsys.path.insert(0, {EXAMPLES!r})\n{text}")
    with open(log, "ab") as file:
        process = StageProcess([sys.executable, program], folder.name, dict(os.environ), file, 0)
    case.addCleanup(process.kill)
    return process


HANGS_IN_WORK = """
from stage import run_stage
def never_ends(items):
    time.sleep(1000)
run_stage(never_ends, lambda n: [{"id": i} for i in range(n)])
"""
HANGS_WHILE_IT_LOADS = """
from stage import run_stage
def never_loads():
    time.sleep(1000)
never_loads()
"""


class NotedStage:
    """Notes when it is started and when the bench waits for it; makes nothing."""

    def __init__(self, notes):
        self.notes = notes
        notes.append("started")

    def wait_ready(self):
        self.notes.append("ready")

    def make_items(self, n):
        return [{"id": i} for i in range(n)]

    def process_batch(self, items):
        return items

    def kill(self):
        pass


class Matrix(unittest.TestCase):
    def test_processes_load_one_after_the_other(self):
        text = json.dumps(pipeline(stage("embed"), stage("infer", "embed")))
        notes, one = [], spec.parse_pipeline(text, "x.json")
        with unittest.mock.patch.object(matrix, "start_stage", lambda *_: NotedStage(notes)):
            cells = list(matrix.measure_matrix([one], {}, None, "mps", 0.01))
        self.assertEqual(notes, ["started", "ready"] * 4)
        self.assertEqual(len(cells), 4)

    def test_a_stage_that_hangs_says_where(self):
        process = hanging_process(self, HANGS_IN_WORK)
        process.wait_ready()
        with unittest.mock.patch.object(matrix, "ANSWER_S", 0.5):
            with self.assertRaisesRegex(StageFailed, re.escape(process.log)):
                matrix.measure_rates([(spec.Stage("infer", PRETEND), process)], 0.01)
        with open(process.log, encoding="utf-8") as log:
            self.assertIn("in never_ends", log.read())

    def test_a_stage_that_does_not_get_ready_says_where(self):
        process = hanging_process(self, HANGS_WHILE_IT_LOADS)
        with self.assertRaisesRegex(StageFailed, "not ready within 1 s; where it was is in"):
            process.wait_ready(1.0)
        with open(process.log, encoding="utf-8") as log:
            self.assertIn("in never_loads", log.read())


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, source, name="p.json"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(source, file)
        return path

    def bench(self, *words, code=0):
        done = subprocess.run(
            [
                COLLOC,
                "bench",
                "--output",
                self.folder + "/out",
                f"--python={sys.executable}",
                *words,
            ],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def table(self, name):
        with open(f"{self.folder}/out/{name}", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def test_the_examples_with_pretend_stages(self):
        files = [os.path.join(EXAMPLES, n + ".json") for n in ("image-training", "serving", "rag")]
        self.bench(
            "--pretend", "--sharing=apart,streams", "--requests=12", "--rate=1000",
            "--matrix=50ms", "--no-report", *files,
        )  # fmt: skip
        rows = self.table("pipelines.csv")
        self.assertEqual(
            [(row["mode"], row["pipeline"]) for row in rows],
            [
                (mode, n)
                for mode in ("apart", "streams")
                for n in ("image-training", "serving", "rag")
            ],
        )
        for row in rows:
            self.assertEqual((row["requests"], row["error"]), ("12", ""))
            self.assertLessEqual(float(row["p50_ms"]), float(row["p99_ms"]))
        stages = self.table("stages.csv")
        self.assertEqual(len(stages), 22)
        self.assertEqual({row["items"] for row in stages}, {"12"})
        generate = [row for row in stages if row["stage"] == "generate"][0]
        self.assertGreaterEqual(float(generate["service_p50_ms"]), 90)
        cells = self.table("matrix.csv")
        self.assertEqual(len(cells), 25)  # the five stages on the GPU, beside each other
        self.assertTrue(all(float(cell["beside_per_s"]) > 0 for cell in cells))

    def test_edges_that_part_and_join(self):
        path = self.write(
            pipeline(
                stage("a"), stage("b", "a"), stage("c", "a"), stage("d", "b", "c"), stage("e", "a")
            )
        )
        self.bench("--pretend", "--sharing=streams", "--no-report", path)
        self.assertEqual({row["items"] for row in self.table("stages.csv")}, {"20"})
        self.assertEqual(self.table("pipelines.csv")[0]["requests"], "20")

    def test_more_cpus_than_there_are_is_a_warning(self):
        path = self.write(pipeline(stage("a", cpus=1024), stage("b", "a", cpus=1)))
        done = self.bench("--pretend", "--sharing=streams", "--no-report", path)
        self.assertIn("warning: p: a: cpus is 1024, but only ", done.stderr)
        self.assertNotIn("p: b: cpus", done.stderr)

    def test_the_same_pipeline_twice(self):
        path = self.write(pipeline(stage("a")))
        self.bench("--pretend", "--sharing=streams", "--no-report", path, path)
        self.assertEqual([row["pipeline"] for row in self.table("pipelines.csv")], ["p-1", "p-2"])

    def test_a_stage_that_fails(self):
        for script in ("import sys; sys.exit(3)", "print('{\"ready\": true}'); input()"):
            with self.subTest(script):
                source = pipeline({"name": "a", "program": [sys.executable, "-c", script]})
                done = self.bench("--sharing=streams", "--no-report", self.write(source), code=1)
                self.assertIn("FAILED", done.stdout)
                self.assertIn("a", self.table("pipelines.csv")[0]["error"])

    def test_a_program_that_is_not_there(self):
        sleep = ["sleep", f"9999{os.getpid()}"]
        missing = self.write(
            pipeline({"name": "a", "program": sleep}, {"name": "b", "program": ["no-such-program"]})
        )
        other = self.write({**pipeline({"name": "c", "program": sleep}), "name": "q"}, "q.json")
        done = self.bench("--sharing=streams", "--no-report", other, missing, code=1)
        self.assertNotIn("Traceback", done.stderr)
        error = "not run: p: b: cannot run no-such-program in "
        for line in done.stdout.splitlines():
            if "FAILED" in line:
                self.assertIn(error, line)
                self.assertIn("No such file or directory: install it, or correct", line)
        self.assertEqual(len(self.table("pipelines.csv")), 2)
        self.assertEqual(done.stdout.count(error), 2)
        self.assertEqual(processes_with("\0".join(sleep)), [])

    def test_a_program_that_is_not_there_in_the_matrix(self):
        # It is there for the run of the pipeline, and removes itself.
        program = os.path.join(self.folder, "vanishing")
        with open(program, "w", encoding="utf-8") as file:
            file.write(
                f"#!/bin/sh\nrm -f {program}\nexec {sys.executable} {EXAMPLES}/pretend.py 0 0\n"
            )
        os.chmod(program, 0o755)
        path = self.write(pipeline({"name": "a", "program": [program]}, requests=1, warmup=0))
        done = self.bench("--sharing=streams", "--matrix=10ms", "--no-report", path, code=1)
        self.assertNotIn("Traceback", done.stderr)
        self.assertIn(f"p: a: cannot run {program} in ", done.stderr)

    def test_a_stage_that_answers_something_else(self):
        script = (
            "import sys\nprint('noise'); print('{\"ready\": true}', flush=True)\n"
            'for line in sys.stdin: print(\'{"items": [{"id": -77}]}\', flush=True)'
        )
        source = pipeline({"name": "a", "program": [sys.executable, "-c", script]})
        done = self.bench("--sharing=streams", "--no-report", self.write(source), code=1)
        self.assertIn("other items", done.stdout)

    def test_a_limit(self):
        source = pipeline(stage("a", pretend_ms=60000))
        done = self.bench(
            "--pretend",
            "--sharing=streams",
            "--limit=1s",
            "--no-report",
            self.write(source),
            code=1,
        )
        self.assertIn("not done after 1 s", done.stdout)

    def test_a_signal_leaves_nothing_behind(self):
        """A stage that ignores the end of its input, too."""
        marker = f"marker-{os.getpid()}"
        script = (
            "import sys, time\nprint('{\"ready\": true}', flush=True)\n"
            "sys.stdin.readline(); print('works', file=sys.stderr, flush=True); time.sleep(600)"
        )
        words = [sys.executable, "-c", script, marker]
        path = self.write(pipeline({"name": "a", "program": words}))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            output = os.path.join(self.folder, f"by-{number}")
            command = [COLLOC, "bench", "--sharing=streams", "--no-report", "-o", output, path]
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as bench:
                until(lambda: processes_with(marker) and is_in_a_file(output, "works"), "the stage")
                bench.send_signal(number)
                self.assertNotEqual(bench.wait(LIMIT_S), 0)
            until(lambda: not processes_with(marker), "the stage's end")
            until(lambda: not processes_with(output), "the recording's end")

    def test_no_file_of_many_is_left_out(self):
        path, last = self.write(pipeline(stage("a"))), self.write([], "last.json")
        self.assertIn("last.json: not an object", self.bench(*[path] * 200, last, code=2).stderr)

    def test_an_interpreter_that_cannot_be_started(self):
        broken = os.path.join(self.folder, "python")
        with open(broken, "w", encoding="utf-8") as file:
            file.write("#!/nonexistent/python\n")
        os.chmod(broken, 0o755)
        done = self.bench(f"--python={broken}", self.write(pipeline(stage("a"))), code=1)
        self.assertIn(f"cannot run {broken}: No such file or directory", done.stderr)

    def test_numbers_of_the_command_line_have_the_limits_of_a_file(self):
        path = self.write(pipeline(stage("a"), rate=100))
        for option, reason in (
            ("--rate=0", "the command line: rate: a number from 0.001"),
            ("--rate=-1", "rate"),
            ("--rate=nan", "rate"),
            ("--requests=0", "the command line: requests: a whole number from 1"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "colloc_pipeline", f"-o{self.folder}/out", option, path],
                env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")},
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(reason, done.stderr)

    def test_what_is_refused(self):
        path = self.write(pipeline(stage("a")))
        self.assertIn("--matrix", self.bench("--sharing=apart", "--matrix=1s", path, code=2).stderr)
        self.assertIn("--sharing=sideways", self.bench("--sharing=sideways", path, code=2).stderr)
        self.assertIn("--daemon", self.bench("--daemon", path, code=2).stderr)
        self.assertIn("--rate", self.bench("--rate=5", self.folder + "/table.csv", code=2).stderr)
        self.assertIn("table.csv", self.bench(path, self.folder + "/table.csv", code=2).stderr)
        self.assertIn("not an object", self.bench(self.write([], "q.json"), code=2).stderr)


if __name__ == "__main__":
    unittest.main()
