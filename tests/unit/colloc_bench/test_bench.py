# SPDX-License-Identifier: Apache-2.0
"""The parts of `colloc bench` that run nothing: tables, what trainings print, journal, summary.

tests/data/bench-recorded has the outputs of the C program that python/colloc_bench replaced, byte
for byte: of tables, right and wrong, and of a journal.
"""

import contextlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "python"))
DATA = os.path.join(ROOT, "tests", "data")
from colloc_bench import __main__ as command  # noqa: E402
from colloc_bench import meminfo, status, summary, training_log  # noqa: E402
from colloc_bench.columns import Columns, cell  # noqa: E402
from colloc_bench.experiment import TASKS_MAX, read_experiment  # noqa: E402
from colloc_bench.journal import Journal, drop_failed  # noqa: E402
from colloc_bench.journal_read import read_journal  # noqa: E402
from colloc_bench.sweep import sweep_table  # noqa: E402
from colloc_bench.text import Fault, parse_integer  # noqa: E402
from colloc_bench.training import Defaults  # noqa: E402

MACHINE = {
    "profilers": {name: [name.replace("raw", ""), "%s"] for name in ("nsys", "nsysraw", "ncu")}
}
MACHINE["profilers"]["ncuraw"] = ["ncu", "%s"]
GROUPS = (
    "group,number,repeat,mix,sharing,gpu,gpu_name,way,tasks,failed,began_unix_s,total_s,energy_j\n"
)
TASKS = (
    "group,repeat,task,name,threads,exit_code,failure,started_unix_s,ended_unix_s,ready_unix_s,"
    "reserved_mib,epoch,epoch_s,epoch_from_unix_s,epoch_to_unix_s,samples\n"
)
SAMPLES = (
    "time_s,smact,smocc,dram_active,gract,power_w,mem_used_mib,pcie_rx_mib_per_s,"
    "pcie_tx_mib_per_s\n"
)


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def write(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode("latin-1"))
        return name


class Tables(InFolder):
    def dry_run(self, *words):
        """The exit status and both outputs, as latin-1 text."""
        outs = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
        with contextlib.redirect_stdout(outs[0]), contextlib.redirect_stderr(outs[1]):
            code = command.main([f"--machine={json.dumps(MACHINE)}", "--dry-run", *words])
            for out in outs:
                out.flush()
        return [code, *(out.buffer.getvalue().decode("latin-1") for out in outs)]

    def test_outputs_are_those_of_the_c_program(self):
        self.write("fit.py", "")
        cases = json.loads(read(DATA, "bench-recorded", "tables.json"))
        self.assertGreater(len(cases), 100)
        for number, case in enumerate(cases):
            self.write(case["name"], case["table"])
            found = self.dry_run("--workloads=/w", *case["options"], case["name"])
            found[1:] = [text.replace(self.folder, "FOLDER") for text in found[1:]]
            with self.subTest(number=number, table=case["table"]):
                self.assertEqual(found, [case["status"], case["stdout"], case["stderr"]])

    def test_any_bytes_are_read_or_refused(self):
        chance = random.Random(1)
        folders = (os.path.join(DATA, "bench"), os.path.join(ROOT, "tests/fuzz/found/bench"))
        seeds = [read(folder, name) for folder in folders for name in os.listdir(folder)]
        defaults = Defaults("python3", "w", "/", base="b", conda=None)
        refused = 0
        for _ in range(1500):
            data = bytearray(chance.choice(seeds))
            for _ in range(chance.randrange(4)):
                at = chance.randrange(len(data))
                data[at : at + chance.randrange(2)] = bytes([chance.randrange(256)])
            for name in ("table.csv", "table.yaml"):
                try:
                    self.check(read_experiment(self.write(name, bytes(data)), defaults))
                except Fault as fault:
                    self.assertTrue(str(fault))
                    refused += 1
        self.assertGreater(refused, 100)

    def check(self, experiment):
        for group in experiment.groups:
            self.assertTrue(group.name and group.mix and 1 <= len(group.tasks) <= TASKS_MAX)
            for task in group.tasks:
                self.assertTrue(task.argv[0] and 1 <= task.threads <= 100)

    def test_what_a_specification_becomes_is_a_table(self):
        table = Columns(sweep_table(os.path.join(DATA, "bench", "sweep")), "sweep")
        self.assertEqual(len(table.names), 10)
        self.assertEqual([row[-1] for row in table.rows()][0], "--a 1 --b 2")

    def test_a_long_row_and_a_long_line(self):
        defaults = Defaults("python3", "w", "/")
        for text, words in (
            (
                "mix,sharing\n" + "a" * 70000 + ",mps\n",
                "table.csv:2: the line is longer than 65534",
            ),
            (
                'mix,sharing\n"' + ("a" * 1000 + "\n") * 70 + '",mps\n',
                "table.csv:2: the row is longer",
            ),
        ):
            with self.assertRaisesRegex(Fault, words):
                read_experiment(self.write("table.csv", text), defaults)

    def test_a_cell_is_read_back(self):
        for text in ("", " a", "a,b", 'x"y', "a\nb", "#", "a|b", "plain text"):
            table = Columns(f"one,two\n{cell(text)},2\n".encode(), "t")
            self.assertEqual(next(table.rows())[0], text)

    def test_numbers(self):
        for text, value in (("5", 5), ("-1", None), ("5 ", None), ("9" * 30, None), ("+5", None)):
            self.assertEqual(parse_integer(text, 1, 10), value)


class Output(unittest.TestCase):
    def test_the_pieces_of_an_output_do_not_matter(self):
        data = read(DATA, "bench", "told") + b'{"event": "ready", "at": NaN}\n{"event": "epoch"'
        reports = []
        for size in (len(data), 3, 1):
            reports.append(training_log.Report())
            feed = training_log.LineFeed(reports[-1])
            for at in range(0, len(data), size):
                feed.feed(data[at : at + size])
        self.assertEqual(reports[0], reports[1])
        self.assertEqual(reports[0], reports[2])
        self.assertEqual([epoch.number for epoch in reports[0].epochs], [1])
        self.assertEqual(reports[0].ready_s, 1795203597.08)

    def test_a_line_that_is_too_long_is_ignored(self):
        report = training_log.Report()
        feed = training_log.LineFeed(report)
        feed.feed(b'{"event": "ready", "at": 1, "x": "' + b"x" * 4096)
        feed.feed(b'"}\n{"event": "ready", "at": 2}\n')
        self.assertEqual(report.ready_s, 2)

    def failure(self, code, text):
        """What colloc says of a program's end and its standard error."""
        with tempfile.NamedTemporaryFile() as log:
            log.write(text)
            log.flush()
            done = subprocess.run(
                [os.environ["COLLOC"], "--failure", str(code), "/dev/null", log.name],
                capture_output=True,
                check=True,
            )
        return json.loads(done.stdout)

    def test_which_failures_are_results(self):
        trace = b'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n'
        oom = b"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
        found = self.failure(1, trace + oom)
        self.assertEqual(found["class"], "gpu-oom")
        self.assertIn("torch.cuda.OutOfMemoryError", found["cause"])
        missing = b"ModuleNotFoundError: No module named 'torch'\n\n"
        found = self.failure(1, trace + missing)
        self.assertNotEqual(found["class"], "gpu-oom")
        self.assertEqual(found["cause"], "ModuleNotFoundError: No module named 'torch'")
        self.assertEqual(self.failure(-11, b""), {"class": "signal", "cause": ""})

    def test_meminfo_as_free_counts(self):
        names = "MemTotal MemFree MemAvailable Buffers Cached SwapTotal SwapFree Shmem SReclaimable"
        kib = (1000, 200, 550, 50, 300, 400, 300, 20, 40)
        text = "".join(f"{name}: {value} kB\n" for name, value in zip(names.split(), kib))
        found = {name: value * 1024 for name, value in meminfo.parse_meminfo(text).items()}
        self.assertEqual(found["buffers_cache_mib"], 390)
        self.assertEqual(found["used_mib"], 410)
        self.assertEqual(found["swap_used_mib"], 100)

    def test_meminfo_that_is_missing_is_not_known(self):
        for text in (
            "",
            "MemTotal",
            "MemTotal:",
            "MemTotal: x kB\n",
            "MemTotal:\n5\n",
            "MemFree: 5 kB\nMemTotal: 1 kB\nBuffers: 0 kB\nCached: 0 kB\nSReclaimable: 0 kB",
        ):
            found = meminfo.parse_meminfo(text)
            self.assertIsNone(found["used_mib"])
            self.assertIsNone(found["swap_used_mib"])
        self.assertEqual(found["total_mib"], 1 / 1024)


class Status(unittest.TestCase):
    def test_only_the_rows_of_the_group_change(self):
        text = 'Status,Run,x\n# c\n\n,,"a\n1"\r\n,, b \n,,last'
        outcome = status.Outcome("FINISHED a, b", "1-1.0")
        self.assertEqual(
            status.replace_rows(text, "t", {4: outcome, 7: outcome}),
            'Status,Run,x\n# c\n\n"FINISHED a, b",1-1.0,"a\n1"\r\n,, b \n'
            '"FINISHED a, b",1-1.0,last\n',
        )
        self.assertEqual(status.replace_rows(text, "t", {}), text)


class Results(InFolder):
    """A journal, and what the summary says of it."""

    def test_the_summary_is_that_of_the_c_program(self):
        shutil.copytree(os.path.join(DATA, "bench-recorded", "journal"), "journal")
        expected = read("journal", "summary.csv")
        os.remove("journal/summary.csv")
        summary.write_summary("journal")
        self.assertEqual(read("journal", "summary.csv"), expected)

    def group(self, sharing="mps", failed=0, samples=True):
        """A group of two trainings, and four samples of its GPU at 1, 11, 12 and 500 s."""
        os.makedirs("looks", exist_ok=True)
        row = f'"a,b mps",1,1,"a,b",{sharing},0,H200,processes,2,{failed},1000,60,500\n'
        self.write("groups.csv", GROUPS + row)
        self.tasks = TASKS
        if samples:
            text = (
                "1,0.1,0.1,0.1,0.1,100,1000,1,1\n11,0.8,0.4,0.3,1,400,2000,9,3\n"
                "12,0.6,0.4,0.3,1,400,2048,,3\n500,0,0,0,0,70,0,0,0\n"
            )
            self.write("looks/1-1.csv", SAMPLES + text)

    def epoch(self, task, number, from_s, to_s):
        took_s = to_s - from_s
        times = f"1000,1100,1001,900,{number},{took_s},{from_s},{to_s}"
        self.tasks += f'"a,b mps",1,{task},a,100,0,,{times},100\n'

    def without_epochs(self, *exit_codes):
        for task, code in enumerate(exit_codes):
            self.tasks += f'"a,b mps",1,{task},a,100,{code},,1000,1100,,,,,,,\n'

    def check(self, **expected):
        self.write("tasks.csv", self.tasks)
        summary.write_summary(".")
        table = Columns(read("summary.csv"), "summary.csv")
        (row,) = table.rows()
        found = dict(zip(table.names, row))
        self.assertEqual({name: found[name] for name in expected}, expected)

    def test_the_second_epoch_is_timed(self):
        self.group()
        for task in range(2):
            self.epoch(task, 1, 1000, 1099)
            self.epoch(task, 2, 1010, 1022.5)
        self.check(group="a,b mps", epoch_s="12.5", samples_per_s="16", smact="0.7")
        self.check(pcie_rx_mib_per_s="9", energy_j="500", joule_per_sample="25")

    def test_throughput_is_of_the_time_in_which_all_train(self):
        self.group()
        for task, number, from_s, to_s in (
            (0, 1, 1000, 1099),
            (0, 2, 1010, 1020),
            (0, 3, 1020, 1030),
            (1, 2, 1015, 1035),
        ):
            self.epoch(task, number, from_s, to_s)
        self.check(samples_per_s="15")  # 50 + 100 + 75 samples in 15 s

    def test_of_the_timed_epochs_where_these_saw_all_the_others(self):
        self.group()
        for task in range(2):
            self.epoch(task, 1, 1000, 1010)
            self.epoch(task, 2, 1010, 1020)
            self.epoch(task, 2, 1010, 1020)  # twice, after a crash
            self.epoch(task, 3, 1020, 1025)
        self.check(samples_per_s="20")

    def test_trainings_that_never_met_have_no_throughput(self):
        self.group()
        self.epoch(0, 2, 1030, 1040)
        self.epoch(1, 2, 1010, 1020)
        # SMACT is of the time in which any was timed.
        self.check(samples_per_s="", joule_per_sample="", epoch_s="10", smact="0.7")

    def test_one_after_the_other_has_no_throughput_of_all(self):
        self.group("serial")
        self.epoch(0, 2, 1010, 1020)
        self.epoch(1, 2, 1010, 1020)
        self.check(samples_per_s="")

    def test_epochs_that_are_missing_are_not_zero(self):
        self.group("streams", failed=2)
        self.without_epochs(1, 1)
        self.check(epoch_s="", samples_per_s="", smact="", mem_peak_mib="2048")

    def test_without_epochs_the_means_are_of_the_whole_time(self):
        self.group("streams", failed=1)
        self.without_epochs(0, 1)
        # Not the sample after the end; one of the three of PCIe is not known.
        self.check(smact="0.5", power_w="300", mem_used_mib="1682.67", mem_peak_mib="2048")
        self.check(pcie_rx_mib_per_s="5", epoch_s="", samples_per_s="", joule_per_sample="")

    def test_an_epoch_that_is_not_timed_has_no_means(self):
        self.group("streams")
        self.epoch(0, 1, 1000, 1050)
        self.check(smact="", mem_peak_mib="2048")

    def test_without_samples_nothing_of_the_gpu_is_known(self):
        self.group("streams", samples=False)
        self.without_epochs(0)
        self.check(smact="", power_w="", mem_peak_mib="")

    def test_what_is_no_journal_is_refused(self):
        self.write("groups.csv", GROUPS + "g,1,1,m,mps,0,H200,processes,x,0,1000,60,500\n")
        with self.assertRaisesRegex(Fault, 'groups.csv:2: tasks is "x"'):
            read_journal(".")
        self.write("groups.csv", "a,b\n1,2\n")
        for use in (Journal, drop_failed):
            with self.assertRaisesRegex(Fault, "journal of a bench"):
                use(".")

    def test_groups_that_failed_are_dropped(self):
        shutil.copytree(os.path.join(DATA, "bench-recorded", "journal"), "journal")
        drop_failed("journal")
        names = {name for name, _ in Journal("journal").done}
        self.assertNotIn("never mps", names)
        self.assertIn("a,b streams", names)
        self.assertNotIn(b"never", read("journal", "tasks.csv"))


if __name__ == "__main__":
    unittest.main()
