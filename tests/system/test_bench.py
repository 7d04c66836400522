# SPDX-License-Identifier: Apache-2.0
"""`colloc bench` on emulated GPUs: tables, measurements, failures, interruption, --daemon."""

import csv
import os
import signal
import subprocess
import unittest

from daemon_case import DaemonCase, program, read, until

# Stands for workloads/train.py: two epochs of a pretend training.
TRAIN = """
import json, os, subprocess, sys, time
name = sys.argv[1]
def say(**what): print(json.dumps(what), flush=True)
print("not json")
say(event="begin", at=time.time())
if name == "broken":
    sys.exit("ModuleNotFoundError: No module named 'torch'")
if name == "large":
    sys.exit("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
say(event="ready", at=time.time())
if name == "files":
    sys.stderr.write("files " + " ".join(os.listdir("/proc/self/fd")) + "\\n")
if name == "endless":
    os.execvp("sleep", ["sleep", "1000"])
for epoch in (1, 2):
    began = time.time()
    subprocess.run(["colloc-pretend-train", "--memory-mib=3000", "--seconds=30", "--smact=0.5",
                    "--epochs=1"], check=True, stdout=2)
    say(event="epoch", epoch=epoch, seconds=time.time() - began, samples=1000,
        **{"from": began, "to": time.time()})
say(event="end", at=time.time(), reserved_mib=2500, pipe=os.environ.get("CUDA_MPS_PIPE_DIRECTORY"),
    share=os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"))
share, pipe = map(os.environ.get, ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PIPE_DIRECTORY"])
sys.stderr.write(f"share {share} mps {bool(pipe)}\\n")
"""


class Bench(DaemonCase):
    gpus = "A100-40GB:3g.20gb+3g.20gb,A100-40GB"

    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.work, "workloads"))
        with open(os.path.join(self.work, "workloads", "train.py"), "w", encoding="utf-8") as file:
            file.write(TRAIN)

    def start(self, **settings):
        """No daemon unless a test wants one."""

    def arguments(self, table, *options):
        path = os.path.join(self.work, "table.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(table)
        return [
            "bench",
            f"--workloads={self.work}/workloads",
            f"--output={self.work}/out",
            "--interval=50ms",
            "--no-report",
            *options,
            path,
        ]

    def bench(self, table, *options, code=0):
        return self.colloc(*self.arguments(table, *options), code=code)

    def rows(self, name):
        with open(os.path.join(self.work, "out", name), encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_mixes_run_together_and_are_measured(self):
        done = self.bench(
            "mix,sharing,gpu,threads\none,streams,1,\none+two*2,mps,1,30/60/100\n"
            "one*2,3g.20gb,0,\none*2,serial,1,\n"
        )
        groups = {row["group"]: row for row in self.rows("groups.csv")}
        self.assertEqual(
            list(groups), ["one streams", "one+two*2 mps", "one*2 3g.20gb", "one*2 serial"]
        )
        self.assertIn("[2/4] one+two*2 mps ...", done.stderr)
        tasks = self.rows("tasks.csv")
        self.assertTrue(
            self.overlap(tasks, "one+two*2 mps") and not self.overlap(tasks, "one*2 serial")
        )
        self.assertEqual(len(tasks), 2 * (1 + 3 + 2 + 2))
        for row in tasks:
            self.assertEqual((row["failure"], row["samples"]), ("", "1000"), row)
            self.assertGreater(float(row["epoch_s"]), 0.2, row)
        self.assertEqual(
            [read(f"{self.work}/out/logs/2-1.{i}").split("\n")[-2] for i in range(3)],
            ["share 30 mps True", "share 60 mps True", "share None mps True"],
        )
        looks = self.rows("looks/2-1.csv")
        self.assertEqual(max(int(row["command_processes"]) for row in looks), 3)
        # By the interference model, with 0.5 alone, clients of 30, 60 and 100 % of the SMs run at
        # 0.33, 0.63 and 0.73 of their speed beside each other: together 0.886. No two reach 0.79.
        self.assertAlmostEqual(max(float(row["smact"] or 0) for row in looks), 0.886, delta=0.02)
        self.assertEqual(self.who_still_runs(), [])

    def who_still_runs(self):
        """Programs that were started with this test's folder among their words."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                found += [line for line in [read(f"/proc/{name}/cmdline")] if self.folder in line]
            except OSError:
                continue
        return found

    @staticmethod
    def overlap(tasks, group):
        spans = sorted(
            {
                (float(row["started_unix_s"]), float(row["ended_unix_s"]))
                for row in tasks
                if row["group"] == group
            }
        )
        return all(one[1] > other[0] for one, other in zip(spans, spans[1:]))

    def test_a_failure_is_told_and_does_not_stop_the_others(self):
        done = self.bench("mix,sharing,gpu\nbroken+one,streams,1\none,streams,1\n", code=1)
        self.assertIn(
            "1 of 2 failed (exit status 1: ModuleNotFoundError: No module named 'torch'): not done",
            done.stderr,
        )
        self.assertIn("out/logs", done.stderr)
        self.assertEqual([row["group"] for row in self.rows("groups.csv")], ["one streams"])

    def test_a_group_that_could_not_run_is_run_again_each_time(self):
        for _ in range(3):
            done = self.bench("mix,sharing,gpu\nbroken,streams,1\n", code=1)
            self.assertIn("[1/1] broken streams", done.stderr)
            self.assertIn("No module named 'torch'", done.stderr)
            self.assertFalse(os.path.exists(f"{self.work}/out/groups.csv"))

    def test_running_out_of_gpu_memory_is_a_result(self):
        done = self.bench("mix,sharing,gpu\nlarge+one,streams,1\n")
        self.assertIn(
            "1 of 2 failed (out of GPU memory: torch.cuda.OutOfMemoryError: CUDA out of memory",
            done.stderr,
        )
        row = next(row for row in self.rows("tasks.csv") if row["name"] == "large")
        self.assertEqual((row["exit_code"], row["epoch"]), ("1", ""))
        self.assertIn("out of GPU memory", row["failure"])
        self.assertNotIn("[", self.bench("mix,sharing,gpu\nlarge+one,streams,1\n").stderr)
        (summary,) = self.rows("summary.csv")
        self.assertEqual(
            (summary["group"], summary["tasks"], summary["failed"], summary["samples_per_s"]),
            ("large+one streams", "2", "1", ""),
        )
        self.assertGreater(float(summary["smact"]), 0.2)

    def test_without_pytorch_that_is_said_once(self):
        table = self.write("table.csv", "mix,sharing\nsmall,streams\nsmall*2,mps\n")
        python = self.write(
            "no-torch",
            "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n",
        )
        os.chmod(python, 0o755)
        for _ in range(2):
            done = self.colloc("bench", "--output=new", f"--python={python}", table, code=1)
            self.assertEqual(done.stderr.count("No module named 'torch'"), 1)
            self.assertNotIn("[1/2]", done.stderr)

    def test_a_training_inherits_three_files(self):
        self.bench("mix,sharing,gpu\nfiles,streams,1\n")
        self.assertIn("files 0 1 2 3\n", read(f"{self.work}/out/logs/1-1.0"))  # 3 lists the folder

    def test_a_full_disk_leaves_a_journal_that_can_be_taken_up(self):
        table = "mix,sharing,gpu\none*8,streams,1\n"
        self.bench(table)
        limit = len(read(f"{self.work}/out/tasks.csv")) + 10
        arguments = self.arguments(table + "two,streams,1\n", "--interval=1h")
        done = subprocess.run(
            [
                "sh",
                "-c",
                f"trap '' XFSZ; exec prlimit --fsize={limit} \"$@\"",
                "sh",
                program("colloc"),
                *arguments,
            ],
            env=self.env,
            cwd=self.work,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertIn("tasks.csv: File too large", done.stderr)
        self.bench(table + "two,streams,1\n")
        self.assertEqual(
            [row["group"] for row in self.rows("groups.csv")], ["one*8 streams", "two streams"]
        )
        self.assertEqual(
            {row["group"] for row in self.rows("tasks.csv")}, {"one*8 streams", "two streams"}
        )

    def test_what_cannot_be_placed_is_left_out(self):
        done = self.bench(
            "mix,sharing,gpu\none*3,3g.20gb,0\none,streams,0\none,streams,7\none,streams,1\n",
            code=1,
        )
        self.assertIn("GPU 0 has 2 instances of 3g.20gb, the group needs 3", done.stderr)
        self.assertIn("this machine has no GPU 7", done.stderr)
        self.assertEqual([row["gpu"] for row in self.rows("groups.csv")], ["1"])

    def test_a_group_that_takes_too_long_is_ended(self):
        done = self.bench(
            "mix,sharing,gpu\nendless*2,streams,1\none,streams,1\n", "--limit=3s", code=1
        )
        self.assertIn("longer than --limit", done.stderr)
        self.assertEqual(len(self.rows("groups.csv")), 1)

    def test_it_goes_on_where_it_was_broken_off(self):
        table = "mix,sharing,gpu\none,streams,1\nendless,streams,1\n"
        running = subprocess.Popen(
            [program("colloc"), *self.arguments(table)],
            env=self.env,
            cwd=self.work,
            stderr=subprocess.PIPE,
            text=True,
        )
        until(lambda: os.path.exists(f"{self.work}/out/logs/2-1.0"), "the second group")
        running.send_signal(signal.SIGINT)
        self.assertIn("the same command continues from there", running.communicate(timeout=20)[1])
        self.assertEqual(running.returncode, 1)
        before = self.rows("groups.csv")
        again = self.bench(table.replace("endless", "two"))
        self.assertNotIn("one streams", again.stderr)
        self.assertEqual(
            [row["group"] for row in self.rows("groups.csv")], ["one streams", "two streams"]
        )
        self.assertEqual(self.rows("groups.csv")[0], before[0])

    def test_what_failed_is_run_again_when_asked(self):
        table = "mix,sharing,gpu\none,streams,1\nlarge+one,streams,1\ntwo,streams,1\n"
        self.bench(table)
        groups, tasks = self.rows("groups.csv"), self.rows("tasks.csv")
        self.bench(table)
        self.assertEqual(self.rows("groups.csv"), groups)
        again = self.bench(table, "--retry-failed")
        self.assertIn("[3/3] large+one streams", again.stderr)
        self.assertEqual(
            [row["group"] for row in self.rows("groups.csv")],
            ["one streams", "two streams", "large+one streams"],
        )
        self.assertEqual(self.rows("groups.csv")[:2], [groups[0], groups[2]])
        self.assertEqual(len(self.rows("tasks.csv")), len(tasks))
        with open(os.path.join(self.work, "workloads", "train.py"), "w", encoding="utf-8") as file:
            file.write(TRAIN.replace('name == "large"', "False"))
        self.bench(table, "--retry-failed")
        self.assertEqual([row["failed"] for row in self.rows("groups.csv")], ["0"] * 3)
        self.assertEqual({row["failure"] for row in self.rows("tasks.csv")}, {""})
        self.bench("mix,sharing,gpu\none,streams,1\n", "--retry-failed", "--output=elsewhere")

    def test_the_daemon_does_it_too(self):
        DaemonCase.start(self, policy="mug", smact_max="1")
        self.bench("mix,sharing\none*2,mps\n", "--daemon")
        (group,) = self.rows("groups.csv")
        self.assertEqual((group["way"], group["failed"]), ("daemon", "0"))
        self.assertEqual(len(self.rows("tasks.csv")), 4)

    def test_tables_of_radt(self):
        head = "Experiment,Workload,Status,Run,Devices,Collocation,File,Listeners,Params\n"
        row = (
            "1,{},,,{},{},timm/train.py,smi,--model {} --data-dir /raid/cifar10/ --batch-size 32\n"
        )
        done = self.bench(
            head
            + row.format(1, 1, "-", "resnet26")
            + 2 * row.format(2, 1, "MPS", "efficientnetv2_s"),
            "--dry-run",
        )
        self.assertIn("1 resnet26 cifar10 b32 streams, GPU 1", done.stdout)
        self.assertIn("2 efficientnet cifar10 b32*2 mps, GPU 1", done.stdout)
        self.assertIn(
            "efficientnet --epochs 2 --steps 200 --batch 32 --side 32 --classes 10", done.stdout
        )
        done = self.bench(
            head + "1,1,,,1,-,timm/train.py,smi,"
            "--model-ema --batch-size-multiplier=9 --model=resnet26 --batch-size=64\n",
            "--dry-run",
        )
        self.assertIn("1 resnet26 b64 streams", done.stdout)
        done = self.bench(
            (head + row.format(1, 1, "-", "resnet26")).replace(",", "|").replace("cifar10", "a,b"),
            "--dry-run",
        )
        self.assertIn("1 resnet26 a_b b32 streams", done.stdout)
        done = self.bench(
            head + row.format(1, 1, "-", "resnet26").replace("32", "fr8"), "--dry-run", code=2
        )
        self.assertIn("--batch-size in Params is no whole number", done.stderr)
        quoted = '1,1,,,1,-,timm/train.py,smi,"--model resnet26 --data-dir /a,b/ --batch-size 32"\n'
        self.assertIn("1 resnet26 a_b b32 streams", self.bench(head + quoted, "--dry-run").stdout)

    def test_scripts_of_the_users_own_in_tables_of_radt(self):
        head = "Experiment,Workload,Status,Run,Devices,Collocation,File,Listeners,Params\n"
        os.mkdir(os.path.join(self.work, "mine"))
        self.write("mine/fit.py", TRAIN.replace("name = sys.argv[1]", "name = 'one'"))
        table = (
            head
            + '1,1,,,1,-,mine/fit.py,smi+dcgmi,"--lr 0.1 --name a,b"\n1,2,,,0+1,-,./mine/fit.py,,\n'
        )
        done = self.bench(table, "--dry-run", f"--base={self.work}")
        self.assertIn("1 fit streams, GPU 1\n", done.stdout)
        self.assertIn("mine/fit.py --lr 0.1 --name a,b\n", done.stdout)
        self.assertIn("2 fit streams (line 3), GPU 0,1\n", done.stdout)
        self.assertIn(
            "--base=FOLDER runs the script that File names",
            self.bench(table, "--dry-run", code=2).stderr,
        )
        done = self.bench(table, f"--base={self.work}", code=1)
        self.assertIn("GPU 0: MIG is on", done.stderr)
        self.assertEqual([row["group"] for row in self.rows("groups.csv")], ["fit streams"])

    def test_what_radt_finished_is_not_run_again(self):
        head = "Experiment,Workload,Status,Run,Devices,Collocation,File,Listeners,Params\n"
        row = "1,{},{},abc,1,MPS,timm/train.py,smi,--model resnet26\n"
        table = (
            head
            + 2 * row.format(1, "FINISHED")
            + row.format(2, "FINISHED")
            + row.format(2, "FAILED")
        )
        self.assertEqual(self.bench(table, "--dry-run").stdout.count("GPU 1"), 1)
        self.assertIn(
            "Status of every workload is FINISHED",
            self.bench(head + row.format(1, "FINISHED"), code=2).stderr,
        )

    def test_what_is_not_supported_of_radts_tables_is_named(self):
        head = "Experiment,Workload,Status,Run,Devices,Collocation,File,Listeners,Params\n"
        row = "1,1,,,{},{},timm/train.py,{},--model resnet26\n"
        for rows, words in (
            (row.format("0", "-", "smi+nsys"), "table.csv:2: the listener 'nsys'"),
            (
                row.format("0", "1g.5gb", "") + row.format("0", "3g.20gb", ""),
                "table.csv:3: Collocation '3g.20gb'",
            ),
            (row.format("0", "-", "").replace("train.py", ""), "table.csv:2: File is a folder"),
            (row.format("0+", "-", ""), "table.csv:2: Devices"),
            (row.format("a", "-", ""), "not 'a'"),
            (row.format("0+1", "3g.20gb", ""), "several GPUs is not supported"),
        ):
            self.assertIn(words, self.bench(head + rows, "--dry-run", code=2).stderr)

    def test_tasks_of_one_workload_on_different_gpus(self):
        head = "Experiment,Workload,Status,Run,Devices,Collocation,File,Listeners,Params\n"
        row = "1,1,,,{},-,timm/train.py,,--model resnet26\n"
        done = self.bench(head + row.format(0) + row.format(1), "--dry-run")
        self.assertIn("resnet26*2 streams, GPU 0,1\n", done.stdout)
        self.assertIn(" (GPU 1) ", done.stdout)

    def test_mistakes_are_named_with_their_line(self):
        for line, words in (
            ("one*0,streams", "1 to 64"),
            ("one,stream", "not 'stream'"),
            ("o;e,mps", "is not the name"),
            ("one,", "no sharing"),
            ("one:x,mps", "steps"),
            ("one*65,mps", "1 to 64"),
            ("one*40+one*40,mps", "more than 64"),
        ):
            done = self.bench("mix,sharing\n" + line + "\n", code=2)
            self.assertIn("table.csv:2: ", done.stderr)
            self.assertIn(words, done.stderr)
        for threads in ("0", "30/", "30/40/50", "x", "101"):
            done = self.bench(f"mix,sharing,threads\none*2,mps,{threads}\n", code=2)
            self.assertIn("table.csv:2: ", done.stderr)
        self.assertIn(
            "epochs is 1.5: it must be a whole number",
            self.bench("mix,sharing,epochs\none,mps,1.5\n", "--dry-run", code=2).stderr,
        )
        self.assertIn(
            "threads are for clients of MPS",
            self.bench("mix,sharing,threads\none,streams,30\n", code=2).stderr,
        )
        self.assertIn("neither", self.bench("a,b\n1,2\n", code=2).stderr)
        self.assertIn("no experiments", self.bench("mix,sharing\n", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
