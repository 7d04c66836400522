# SPDX-License-Identifier: Apache-2.0
"""`colloc bench` on emulated GPUs: tables, measurements, failures, interruption, --daemon."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

from daemon_case import LIMIT_S, DaemonCase, program, read, until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fake_mlflow import FakeMlflow  # noqa: E402

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
if name == "late":
    time.sleep(1)
say(event="ready", at=time.time())
if start := os.environ.get("COLLOC_BENCH_START_FD"):
    os.read(int(start), 1)
    sys.stderr.write("began together\\n")
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


# The columns of radT's tables, and a script of a user's own that says where it runs.
HEAD = "Experiment,Workload,Status,Run,Devices,Collocation,File,Listeners,Params\n"
FIT = "name = 'one'; print('in', os.getcwd())"

# A stage of a pipeline that returns what it gets.
PIPELINE_STAGE = """
import json
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    print(line, end="", flush=True)
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
        # So long that all are seen together, also where one begins late.
        self.write("workloads/train.py", TRAIN.replace("--seconds=30", "--seconds=300"))
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
        self.assertIn('not json\n{"event": "begin"', read(f"{self.work}/out/logs/1-1.0.out"))
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

    def test_trainings_begin_together(self):
        self.bench("mix,sharing,gpu\none+late+large,streams,1\none+late,serial,1\n")
        spans = {(row["group"], row["task"]): row for row in self.rows("tasks.csv")[::-1]}
        one, late = (spans["one+late+large streams", task] for task in ("0", "1"))
        # On a busy machine the other may be the last.
        ready_s = max(float(task["ready_unix_s"]) for task in (one, late))
        for first in one, late:
            self.assertGreater(float(first["epoch_from_unix_s"]), ready_s)
        self.assertIn("began together", read(f"{self.work}/out/logs/1-1.0"))
        self.assertNotIn("began together", read(f"{self.work}/out/logs/2-1.0"))

    def test_a_killed_bench_holds_no_training_up(self):
        bench = subprocess.Popen(
            [program("colloc"), *self.arguments("mix,sharing,gpu\none+late,streams,1\n")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.env,
        )
        log = f"{self.work}/out/logs/1-1.0.out"
        until(lambda: os.path.exists(log) and '"ready"' in read(log), "the first is ready")
        bench.kill()
        bench.wait()
        until(lambda: "began together" in read(f"{self.work}/out/logs/1-1.0"))
        until(lambda: not self.who_still_runs())

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
            self.assertEqual(self.rows("summary.csv"), [])

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
            self.assertTrue(read(f"{self.work}/new/summary.csv").startswith("group,"))

    def test_a_library_that_is_missing_is_said_before_anything_runs(self):
        table = self.write("table.csv", "mix,sharing\nsmall,streams\nresnet50+small*2,mps\n")
        python = self.write(
            "no-timm",
            '#!/bin/sh\n[ "$1" = -c ] && exit 0\necho "$@" >asked\nprintf timm\nexit 1\n',
        )
        os.chmod(python, 0o755)
        done = self.colloc("bench", "--output=new", f"--python={python}", table, code=1)
        self.assertIn("no-timm lacks timm, which trainings of this experiment need", done.stderr)
        self.assertNotIn("[1/2]", done.stderr)
        self.assertRegex(read(f"{self.work}/asked"), r"/models\.py small resnet50$")

    def test_a_training_inherits_three_files(self):
        self.bench("mix,sharing,gpu\nfiles,streams,1\n")
        self.assertIn("files 0 1 2 3\n", read(f"{self.work}/out/logs/1-1.0"))  # 3 lists the folder

    def test_a_full_disk_leaves_a_journal_that_can_be_taken_up(self):
        table = "mix,sharing,gpu\none*8,streams,1\n"
        self.bench(table)
        limit = len(read(f"{self.work}/out/tasks.csv")) + 10
        os.remove(f"{self.work}/out/summary.csv")
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
        self.assertEqual([row["group"] for row in self.rows("summary.csv")], ["one*8 streams"])
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

    def test_without_mps_the_other_groups_run(self):
        programs = os.path.join(self.work, "programs")
        emulator, others = self.env["PATH"].split(":", maxsplit=1)
        os.mkdir(programs)
        os.symlink(f"{emulator}/colloc-pretend-train", f"{programs}/colloc-pretend-train")
        self.env["PATH"] = f"{programs}:{others}"
        if shutil.which("nvidia-cuda-mps-control", path=self.env["PATH"]):
            self.skipTest("this machine has MPS")
        table = "mix,sharing,gpu\none*2,mps,1\none,streams,1\n"
        done = self.bench(table, code=1)
        self.assertIn("one*2 mps ... skipped: no MPS: nvidia-cuda-mps-control is", done.stderr)
        self.assertEqual([row["group"] for row in self.rows("summary.csv")], ["one streams"])
        control = self.write("programs/nvidia-cuda-mps-control", "#!/bin/sh\necho no >&2\nexit 1\n")
        os.chmod(control, 0o755)
        done = self.bench(table, code=1)
        self.assertRegex(done.stderr, r"one\*2 mps \.\.\. skipped: .*: no")
        self.assertEqual([row["group"] for row in self.rows("summary.csv")], ["one streams"])

    def test_a_group_that_takes_too_long_is_ended(self):
        done = self.bench(
            "mix,sharing,gpu\nendless*2,streams,1\none,streams,1\n", "--limit=20s", code=1
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
        self.assertIn(
            "the same command continues from there", running.communicate(timeout=LIMIT_S)[1]
        )
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

    def test_the_table_of_figures_4_7_to_4_9(self):
        folder = os.path.join(os.path.dirname(__file__), "..", "..", "workloads", "radt")
        out = self.bench(read(os.path.join(folder, "batches.csv")), "--dry-run").stdout
        for group in (
            "4 resnet26 cifar10 b32*7 streams, GPU 0",
            "13 efficientnet cifar10 b128 mps, GPU 0",
            "24 resnet50 imagenet64 b32*7 mps, GPU 0",
        ):
            self.assertIn(group, out)

    def test_tables_of_radt(self):
        row = (
            "1,{},,,{},{},timm/train.py,smi,--model {} --data-dir /raid/cifar10/ --batch-size 32\n"
        )
        done = self.bench(
            HEAD
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
            HEAD + "1,1,,,1,-,timm/train.py,smi,"
            "--model-ema --batch-size-multiplier=9 --model=resnet26 --batch-size=64\n",
            "--dry-run",
        )
        self.assertIn("1 resnet26 b64 streams", done.stdout)
        done = self.bench(
            (HEAD + row.format(1, 1, "-", "resnet26")).replace(",", "|").replace("cifar10", "a,b"),
            "--dry-run",
        )
        self.assertIn("1 resnet26 a_b b32 streams", done.stdout)
        done = self.bench(
            HEAD + row.format(1, 1, "-", "resnet26").replace("32", "fr8"), "--dry-run", code=2
        )
        self.assertIn("--batch-size in Params is no whole number", done.stderr)
        quoted = '1,1,,,1,-,timm/train.py,smi,"--model resnet26 --data-dir /a,b/ --batch-size 32"\n'
        self.assertIn("1 resnet26 a_b b32 streams", self.bench(HEAD + quoted, "--dry-run").stdout)

    def test_scripts_of_the_users_own_in_tables_of_radt(self):
        os.mkdir(os.path.join(self.work, "mine"))
        self.write("mine/fit.py", TRAIN.replace("name = sys.argv[1]", FIT))
        table = (
            HEAD
            + '1,1,,,1,nan,mine/fit.py,smi+dcgmi+top,"--lr 0.1 --name a,b"\n'
            + "1,2,,,0+1,-,./mine/fit.py,,\n"
        )
        done = self.bench(table, "--dry-run", f"--base={self.work}")
        self.assertIn("1 fit streams, GPU 1\n", done.stdout)
        self.assertIn(f" {self.work}/mine/fit.py --lr 0.1 --name a,b\n", done.stdout)
        self.assertIn("2 fit streams (line 3), GPU 0,1\n", done.stdout)
        self.assertEqual(self.bench(table, "--dry-run").stdout, done.stdout)
        self.assertIn(
            "--base=FOLDER runs the script that File names",
            self.bench(table.replace("mine", "yours"), "--dry-run", code=2).stderr,
        )
        done = self.bench(table, code=1)
        self.assertIn("GPU 0: MIG is on", done.stderr)
        self.assertEqual([row["group"] for row in self.rows("groups.csv")], ["fit streams"])
        self.assertIn(f"in {self.work}/mine\nnot json\n", read(f"{self.work}/out/logs/1-1.0.out"))
        looks = self.rows("looks/1-1.csv")
        self.assertGreater(max(float(row["command_host_mem_mib"] or 0) for row in looks), 1)

    def test_a_script_without_epochs_has_its_activity(self):
        self.write(
            "fit.py",
            "import subprocess\nsubprocess.run(['colloc-pretend-train', '--memory-mib=3000',"
            " '--seconds=600', '--smact=0.5', '--epochs=1'], check=True)\n",
        )
        self.bench(HEAD + "1,1,,,1,-,fit.py,smi,\n")
        (row,) = self.rows("summary.csv")
        # 0.5 while it trains; the start and the end of its processes count, too.
        self.assertGreater(float(row["smact"]), 0.1)
        self.assertLess(float(row["smact"]), 0.55)
        self.assertGreater(float(row["power_w"]), 50)
        self.assertGreaterEqual(float(row["mem_peak_mib"]), 3000)
        self.assertGreaterEqual(float(row["mem_peak_mib"]), float(row["mem_used_mib"]))
        for unknown in ("epoch_s", "samples_per_s", "joule_per_sample"):
            self.assertEqual(row[unknown], "")

    def test_a_failure_on_standard_output_is_found(self):
        said = "CUDA out of memory. Tried to allocate 2 GiB"
        self.write("oom.py", f"print('{said}'); raise SystemExit(1)")
        self.bench(HEAD + "1,1,,,1,-,oom.py,,\n")
        self.assertIn("out of GPU memory", self.rows("tasks.csv")[0]["failure"])

    def test_radt_gets_its_status_written(self):
        self.write("fit.py", "print('fitted')")
        self.write("oom.py", "raise SystemExit('CUDA out of memory. Tried to allocate 2 GiB')")
        self.write("bad.py", "import no_such_module")
        head = HEAD.replace("Status", "Name,Status")
        table = head + (
            "# the first day\n\n"
            '1,1,"a, b",,,1,-,fit.py,smi,"--x ""1"""\n'
            "1,2,,,,1,MPS,fit.py,smi,\n"
            "1,3,,FINISHED brave-owl (1),0af3,1,-,fit.py,smi,\n"
            "1,2,,,,1,MPS,oom.py,smi,\r\n"
            "1,4,,,,7,-,fit.py,smi,\n"
            "1,5,,,,1,-,bad.py,smi,"
        )
        done = self.bench(table, code=1)
        self.assertIn("1 of 5 workloads are FINISHED by their Status", done.stderr)
        with open(f"{self.work}/table.csv", encoding="utf-8", newline="") as file:
            written = file.read()
        self.assertEqual(
            written,
            head + "# the first day\n\n"
            '1,1,"a, b",FINISHED fit (1),1-1.0,1,-,fit.py,smi,"--x ""1"""\n'
            "1,2,,FINISHED fit (1_A_MPS),2-1.0,1,MPS,fit.py,smi,\n"
            "1,3,,FINISHED brave-owl (1),0af3,1,-,fit.py,smi,\n"
            "1,2,,FAILED oom (1_B_MPS),2-1.1,1,MPS,oom.py,smi,\r\n"
            "1,4,,,,7,-,fit.py,smi,\n"
            "1,5,,FAILED bad (1),5-1.0,1,-,bad.py,smi,\n",
        )
        again = self.bench(written, code=1).stderr
        self.assertIn("1 of 5 workloads are FINISHED", again)  # the other one has its results
        self.assertNotIn("fit+oom", again)
        self.assertIn("this machine has no GPU 7", again)
        self.assertIn("No module named 'no_such_module'", again)

    def test_a_table_that_cannot_be_written_stays_and_is_named(self):
        self.write("fit.py", "print(open('table.csv', 'a').write('# mine\\n'))")
        table = HEAD + "1,1,,,1,-,fit.py,,\n1,2,,,1,-,fit.py,,\n"
        done = self.bench(table)
        self.assertIn("table.csv has changed while the bench ran", done.stderr)
        self.assertEqual(read(f"{self.work}/table.csv"), table + 2 * "# mine\n")
        self.assertEqual(len(self.rows("groups.csv")), 2)
        self.write("other.csv", HEAD.replace(",Run", "") + "1,1,,1,-,fit.py,,\n")
        done = self.colloc("bench", "--output=new", "--no-report", "other.csv")
        self.assertIn("Status will not be written: it has no column Run", done.stderr)

    def test_the_environment_is_recorded(self):
        self.write("fit.py", "pass")
        self.bench(HEAD + "1,1,,,1,-,fit.py,,\n")
        folder = f"{self.work}/out/environment"
        self.assertRegex(read(f"{folder}/pip.txt"), r"(?m)^python==3\.")
        self.assertIn("GPU 1: NVIDIA A100-SXM4-40GB (GPU-", read(f"{folder}/driver.txt"))
        with open(f"{folder}/pip.txt", "a", encoding="utf-8") as file:
            file.write("torch==1.0\n")
        self.bench(HEAD + "1,2,,,1,-,fit.py,-,again\n1,3,,,1,-,fit.py,,\n")
        self.assertNotIn("torch==1.0", read(f"{folder}/pip-2.txt"))

    def test_the_listener_free(self):
        self.write("fit.py", "import time; time.sleep(3)")
        self.bench(HEAD + "1,1,,,1,-,fit.py,smi+free,\n1,2,,,1,-,fit.py,smi,\n")
        samples = self.rows("looks/1-1.free.csv")
        self.assertGreater(len(samples), 3)
        with open("/proc/meminfo", encoding="ascii") as file:
            total_kib = int(file.readline().split()[1])
        for row in samples:
            self.assertAlmostEqual(float(row["total_mib"]), total_kib / 1024, delta=0.1)
            self.assertLess(float(row["used_mib"]) + float(row["free_mib"]), total_kib / 1024)
            self.assertGreater(float(row["available_mib"]), 0)
        self.assertFalse(os.path.exists(f"{self.work}/out/looks/2-1.free.csv"))

    def conda(self, *environments):
        """A conda that knows these environments and says in which one a command runs."""
        os.makedirs(os.path.join(self.work, "programs"), exist_ok=True)
        listed = "".join(f"{name}   /envs/{name}\\n" for name in environments)
        conda = self.write(
            "programs/conda",
            "#!/bin/sh\n"
            f"[ \"$*\" = 'env list' ] && printf '# conda environments:\\n{listed}' && exit\n"
            '[ "$1 $2 $3" = "run --no-capture-output -n" ] || exit 2\n'
            'export CONDA_DEFAULT_ENV=$4\nshift 4\nexec "$@"\n',
        )
        os.chmod(conda, 0o755)
        self.env["PATH"] = f"{self.work}/programs:{self.env['PATH']}"

    def test_conda_environments_of_scripts(self):
        for folder, name in (("one", "torch2"), ("two", "old-torch")):
            os.mkdir(os.path.join(self.work, folder))
            self.write(f"{folder}/fit.py", "import os; print(os.environ['CONDA_DEFAULT_ENV'])")
            self.write(f"{folder}/conda.yaml", f"channels: [main]\nname: {name}\n")
        table = HEAD + "1,1,,,1,-,one/fit.py,,--a\n1,1,,,1,-,two/fit.py,,\n"
        self.conda("torch2")
        done = self.bench(table, "--conda", "--dry-run")
        self.assertIn(
            f" conda run --no-capture-output -n torch2 python3 {self.work}/one/fit.py --a\n",
            done.stdout,
        )
        done = self.bench(table, "--conda", code=1)
        self.assertIn(
            "line 3 of the table: conda has no environment 'old-torch': create it with `conda env "
            "create -f conda.yaml`",
            done.stderr,
        )
        self.assertEqual(self.rows("summary.csv"), [])
        self.conda("base", "torch2", "old-torch")
        self.bench(table, "--conda")
        self.assertEqual(
            [read(f"{self.work}/out/logs/1-1.{i}.out") for i in (0, 1)], ["torch2\n", "old-torch\n"]
        )

    def test_conda_that_cannot_be(self):
        self.write("fit.py", "pass")
        table = HEAD + "1,1,,,1,-,fit.py,,\n"
        if not any(shutil.which(each) for each in ("conda", "mamba", "micromamba")):
            done = self.bench(table, "--conda", code=1)
            self.assertIn("--conda: none of conda, mamba and micromamba is on PATH", done.stderr)
        self.conda()
        done = self.bench(table, "--conda", code=2)
        self.assertIn("table.csv:2: --conda needs a conda.yaml beside the script", done.stderr)
        self.write("conda.yaml", "dependencies: [python]\n")
        done = self.bench(table, "--conda", code=2)
        self.assertIn("conda.yaml: it names no environment", done.stderr)
        done = self.bench("mix,sharing\none,streams\n", "--conda", code=2)
        self.assertIn("--conda is for the scripts of radT's tables", done.stderr)

    def sweep(self, text, *options, code=0):
        path = self.write("sweep.yaml", text)
        return self.colloc(*self.arguments("", *options)[:-1], path, code=code)

    def test_yaml_specifications(self):
        self.write("fit.py", "import sys; print(sys.argv[1:])")
        text = (
            "name: Sweep\nexperiment: 3\ncollocation: '-'\ndevices: 1\nlisteners: smi+top\n"
            "file: fit.py\nmethod: grid\nparameters:\n  lr:\n    values: [0.1, 1e-3]\n"
            "  amp: {values: [true, 'true', no]}\n"
        )
        listed = self.sweep(text, "--dry-run").stdout
        self.assertEqual(
            [line.split("fit.py ")[1] for line in listed.splitlines() if "fit.py " in line],
            [f"--lr {lr} --amp {amp}" for lr in ("0.1", "1e-3") for amp in ("True", "true", "no")],
        )
        done = self.sweep(text)
        self.assertNotIn("Status", done.stderr)
        self.assertEqual(len(self.rows("groups.csv")), 6)
        self.assertEqual(
            read(f"{self.work}/out/logs/6-1.0.out"), "['--lr', '1e-3', '--amp', 'no']\n"
        )

    def test_mistakes_of_specifications_are_named(self):
        begin = "file: fit.py\ndevices: 0\n"
        long = ", ".join(["1"] * 200)
        for text, words in (
            ("file: [\n", "sweep.yaml:2:"),
            ("devices: 0\n", "sweep.yaml: it names no 'file'"),
            (begin, "sweep.yaml: it has no mapping 'parameters'"),
            (begin + "parameters: {a: 1}\n", "must have a list of values, as in"),
            (begin + "parameters: {a: {values: []}}\n", "must have a list of values, as in"),
            (begin + "parameters: {a: {values: [[1]]}}\n", "a value is a list or a mapping"),
            (begin + "parameters: {'a b': {values: [1]}}\n", "name must be a word"),
            (begin + "method: random\nparameters: {}\n", "must be grid, not random"),
            (
                begin + "parameters:\n" + "".join(f"  p{i}: {{values: [{long}]}}\n" for i in "ab"),
                "more than 10000 combinations",
            ),
            (
                begin + "parameters:\n"
                f"  long: {{values: [{'x' * 900000}]}}\n"
                f"  n: {{values: [{', '.join(str(n) for n in range(100))}]}}\n",
                "its 100 combinations make a table of more than 64 MiB: give fewer or shorter",
            ),
        ):
            self.assertIn(words, self.sweep(text, "--dry-run", code=2).stderr)

    def test_caches_are_dropped_before_each_group(self):
        def dropped():
            with open("/proc/vmstat", encoding="ascii") as file:
                return dict(line.split() for line in file).get("drop_pagecache")

        table = "mix,sharing,gpu\none,streams,1\ntwo,streams,1\n"
        if os.access("/proc/sys/vm/drop_caches", os.W_OK) and dropped() is not None:
            before = int(dropped())
            self.bench(table, "--drop-caches")
            self.assertGreaterEqual(int(dropped()), before + 2)
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("refusing needs another user, and setpriv")
        os.chmod(self.folder, 0o755)
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--clear-groups", program("colloc")]
            + self.arguments(table, "--drop-caches", "--output=/tmp/never-made"),
            env=self.env, cwd="/", capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertIn("--drop-caches: /proc/sys/vm/drop_caches cannot be written", done.stderr)
        self.assertFalse(os.path.exists("/tmp/never-made"))

    def mlflow(self, **given):
        server = FakeMlflow(**given)
        self.addCleanup(server.close)
        self.env["MLFLOW_TRACKING_URI"] = server.uri()
        return server

    def test_runs_of_mlflow(self):
        server = self.mlflow()
        self.env["MLFLOW_EXPERIMENT_NAME"] = "ours"
        self.bench("mix,sharing,gpu,threads\none+large,mps,1,30/70\n", "--mlflow")
        one, large = server.runs.values()
        self.assertEqual((one["name"], large["name"]), ("(1 0) one", "(1 1) large"))
        self.assertEqual((one["experiment"], one["status"]), ("12", "FINISHED"))
        self.assertEqual(large["status"], "FAILED")
        self.assertIn("CUDA out of memory", large["tags"]["colloc.failure"])
        self.assertNotIn("mlflow.parentRunId", one["tags"])
        self.assertEqual(large["tags"]["mlflow.parentRunId"], list(server.runs)[0])
        self.assertEqual(
            (one["params"]["collocation"], one["params"]["mps_threads"], one["params"]["devices"]),
            ("mps", "30", "1"),
        )
        self.assertRegex(one["params"]["command"], r"^python3 .*/train.py one --epochs 2")
        epochs = [row for row in self.rows("tasks.csv") if row["name"] == "one"]
        sent = [each for each in one["metrics"] if each["key"] == "bench/epoch_s"]
        self.assertEqual([each["step"] for each in sent], [1, 2])
        for each, row in zip(sent, epochs):
            self.assertAlmostEqual(each["value"], float(row["epoch_s"]), places=3)
        names = {each["key"] for each in one["metrics"]}
        self.assertLessEqual(
            {"bench/samples_per_s", "bench/reserved_mib", "system/colloc_gpu_1_smact"}, names
        )
        self.assertNotIn("bench/epoch_s", {each["key"] for each in large["metrics"]})

    def test_runs_of_mlflow_of_radts_tables(self):
        server = self.mlflow()
        self.write("fit.py", "import os; print(os.environ['MLFLOW_RUN_ID'])")
        self.bench(HEAD + "12,7,,,1,MPS,fit.py,,\n12,7,,,1,MPS,fit.py,,\n", "--mlflow")
        ids = list(server.runs)
        self.assertEqual([read(f"{self.work}/out/logs/1-1.{i}.out").strip() for i in (0, 1)], ids)
        self.assertEqual(
            [(run["experiment"], run["name"]) for run in server.runs.values()],
            [("12", "(7 1_A_MPS) fit"), ("12", "(7 1_B_MPS) fit")],
        )
        self.assertIn(f"12,7,FINISHED fit (1_A_MPS),{ids[0]},1", read(f"{self.work}/table.csv"))

    def test_without_an_answer_of_mlflow(self):
        table = "mix,sharing,gpu\none,streams,1\ntwo,streams,1\n"
        done = self.bench(table, "--mlflow", code=1)
        self.assertIn("the environment names no server: set MLFLOW_TRACKING_URI", done.stderr)
        server = self.mlflow(authorization="Bearer no")
        done = self.bench(table, "--mlflow", code=1)
        self.assertRegex(done.stderr, r"--mlflow: .*http://127\.0\.0\.1/?: HTTP 401")
        self.assertFalse(os.path.exists(f"{self.work}/out/groups.csv"))
        server = self.mlflow()
        server.experiments = {"0": "Default"}
        self.env["MLFLOW_EXPERIMENT_ID"] = "0"
        running = subprocess.Popen(
            [program("colloc"), *self.arguments(table.replace("two", "endless"), "--mlflow")],
            env=self.env, cwd=self.work, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        until(lambda: os.path.exists(f"{self.work}/out/logs/2-1.0"), "the second group")
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=LIMIT_S)
        self.assertEqual([run["status"] for run in server.runs.values()], ["FINISHED", "KILLED"])
        server.failures = [200, 500]  # the first request is whether it answers
        done = self.bench(table, "--mlflow")
        self.assertRegex(done.stderr, "MLflow: .*HTTP 500")
        self.assertEqual(len(self.rows("groups.csv")), 2)
        self.assertEqual(len(server.runs), 2)
        server.runs.clear()
        # The second run of a group cannot be made: the first one is ended.
        server.failures = [None, None, None, 500]
        self.bench("mix,sharing,gpu\none+one,mps,1\n", "--mlflow")
        self.assertEqual([run["status"] for run in server.runs.values()], ["KILLED"])

    def test_profilers_of_radts_tables(self):
        self.write("fit.py", "print('fitted')")
        table = HEAD + "1,1,,,1,-,fit.py,smi+nsys,--a\n"
        self.assertIn("(nsys)", self.bench(table, "--dry-run").stdout)
        self.env["PATH"] = self.programs_without_nsys()
        done = self.bench(table, code=1)
        self.assertIn(
            "line 2 of the table: the listener nsys: there is no such program", done.stderr
        )
        self.assertEqual(self.rows("summary.csv"), [])
        nsys = self.write(
            "programs/nsys",
            "#!/bin/sh\nfor word; do case $word in --output=*)\n"
            'echo "$*" >"${word#*=}.nsys-rep"; esac; done\n'
            'while [ "${1#-}" != "$1" ] || [ "$1" = profile ]; do shift; done\nexec "$@"\n',
        )
        os.chmod(nsys, 0o755)
        self.bench(table)
        self.assertIn(f"{self.work}/fit.py --a\n", read(f"{self.work}/out/profiles/1-1.0.nsys-rep"))
        self.assertEqual(read(f"{self.work}/out/logs/1-1.0.out"), "fitted\n")

    def test_a_program_that_cannot_be_started_fails_only_its_row(self):
        self.write("fit.py", "print('fitted')")
        self.env["PATH"] = self.programs_without_nsys()
        os.chmod(self.write("programs/nsys", "#!/no/such/interpreter\n"), 0o755)
        row = "1,{},,,1,-,fit.py,{},\n"
        done = self.bench(
            HEAD + row.format(1, "nsys") + row.format(1, "") + row.format(2, ""), code=1
        )
        self.assertIn(
            "1 of 2 failed (nsys cannot be started: No such file or directory): not done",
            done.stderr,
        )
        self.assertIn("the same command repeats their groups", done.stderr)
        self.assertEqual([row["group"] for row in self.rows("groups.csv")], ["fit streams"])
        self.assertEqual(read(f"{self.work}/out/logs/1-1.1.out"), "fitted\n")
        self.assertRegex(
            read(f"{self.work}/table.csv"), r"1,1,FAILED \S.*\n1,1,FINISHED \S.*\n1,2,FINISHED"
        )

    def programs_without_nsys(self):
        """A PATH that begins with an empty folder of the test."""
        os.mkdir(os.path.join(self.work, "programs"))
        return f"{self.work}/programs:{self.env['PATH']}"

    def test_what_radt_finished_is_not_run_again(self):
        row = "1,{},{},abc,1,MPS,timm/train.py,smi,--model resnet26\n"
        done = "FINISHED resnet26 (1_A_MPS)"
        table = HEAD + 2 * row.format(1, done) + row.format(2, done) + row.format(2, "FAILED x (1)")
        listed = self.bench(table, "--dry-run").stdout
        self.assertEqual(listed.count("GPU 1: FINISHED\n"), 1)
        self.assertEqual(listed.count("GPU 1\n"), 1)
        done = self.bench(HEAD + row.format(1, done))
        self.assertIn("1 of 1 workloads are FINISHED by their Status", done.stderr)
        self.assertEqual(self.rows("summary.csv"), [])

    def test_what_is_not_supported_of_radts_tables_is_named(self):
        row = "1,1,,,{},{},timm/train.py,{},--model resnet26\n"
        for rows, words in (
            (row.format("0", "-", "smi+macmon"), "table.csv:2: the listener 'macmon' is not supp"),
            (row.format("0", "-", "smi+fre"), "table.csv:2: the listener 'fre' is not one of"),
            (row.format("0", "-", "nsys+NCU"), "table.csv:2: the listener 'NCU' is a second"),
            (row.format("0", "-", "").replace("train.py", ""), "table.csv:2: File is a folder"),
            (row.format("0+", "-", ""), "table.csv:2: Devices"),
            (row.format("a", "-", ""), "not 'a'"),
            (row.format("0", "serial", ""), "not 'serial'"),
            (row.format("0+1", "3g.20gb", ""), "several GPUs is not supported"),
        ):
            self.assertIn(words, self.bench(HEAD + rows, "--dry-run", code=2).stderr)

    def test_every_row_of_a_table_like_the_papers(self):
        """A table of the form and size of that behind the collocation paper, row by row: 198
        workloads of one to seven trainings, alone, together, by MPS, on MIG instances of one or
        several profiles; rows of a workload need not follow each other."""
        ways = ["-", "MPS", "7g.40gb", "4g.20gb", "3g.20gb", "2g.10gb", "1g.5gb"]
        models = {"resnet26": "resnet26", "efficientnetv2_s": "efficientnet"}
        rows, expected = [], {}
        for number in range(198):
            count, group = number % 7 + 1, []
            for i in range(count):
                way = ways[(number // 7 + (i if number % 5 == 0 else 0)) % 7]
                model = list(models)[(number + i) % 2]
                devices = ["0", "2", "0+1"][number % 3] if way in "-MPS" else "2"
                rows.append(
                    f"33,{number},,,{devices},{way},timm/train.py,smi+top+dcgmi,"
                    f"--model {model} --data-dir /raid/datasets/cifar10/ --warmup-epochs 0 "
                    f"--batch-size {32 * (i + 1)}\n"
                )
                shown = {"-": "streams", "MPS": "mps"}.get(way, way)
                group.append((devices.replace("+", ","), shown, models[model], 32 * (i + 1)))
            expected[number + 1] = group
        rows = rows[::2] + rows[1::2]  # each workload's rows are apart
        found = {}
        for line in self.bench(HEAD + "".join(rows), "--dry-run").stdout.splitlines():
            if not line.startswith(" "):
                number, _, rest = line.partition(" ")
                sharing, gpus = re.search(r"(\S+)(?: \(line \d+\))?, GPU (\S+)$", rest).groups()
                found[int(number)] = group = []
                continue
            own = re.search(r" \(GPU (\S+)\)", line)
            way = re.match(r"    \(([^G]\S*)\)", line)
            words = line.split()
            group.append(
                (
                    own[1] if own else gpus,
                    way[1] if way else sharing,
                    words[words.index("--epochs") - 1],
                    int(words[words.index("--batch") + 1]),
                )
            )
        self.assertEqual(len(found), 198)
        self.assertEqual(
            sorted(map(sorted, found.values())), sorted(map(sorted, expected.values()))
        )

    def test_mig_profiles_in_one_group(self):
        os.unlink(self.env["COLLOC_EMULATOR"])
        gpus = "A100-40GB:3g.20gb+2g.10gb+1g.5gb,A100-40GB"
        self.emulator("create", f"--gpus={gpus}", "--speed=100", self.env["COLLOC_EMULATOR"])
        row = "1,1,,,0,{},train.py,smi,--model {}\n"
        table = HEAD + row.format("1g.5gb", "one") + row.format("3g.20gb", "two")
        self.bench(table)
        self.assertEqual(self.rows("groups.csv")[0]["group"], "one+two 1g.5gb/3g.20gb")
        self.assertEqual([row["failed"] for row in self.rows("summary.csv")], ["0"])
        done = self.bench(
            "mix,sharing,gpu\none*2+two,3g.20gb/2g.10gb/1g.5gb,0\none*2,2g.10gb/2g.10gb,0\n",
            code=1,
        )
        self.assertIn("[1/2] one*2+two 3g.20gb/2g.10gb/1g.5gb ... ", done.stderr)
        self.assertIn("GPU 0 has 1 instance of 2g.10gb, the group needs 2", done.stderr)
        for sharing in ("3g.20gb/", "mps/mps/mps", "serial/mps", "/mps"):
            done = self.bench(f"mix,sharing,gpu\none*2,{sharing},0\n", code=2)
            self.assertIn("table.csv:2: ", done.stderr)

    def pipelines(self, *names):
        """Pipelines whose stage logs its device; their paths."""
        script = "import os, sys; sys.stderr.write(os.environ['CUDA_VISIBLE_DEVICES'] + '\\n')"
        self.write("device.py", f"{script}\n{PIPELINE_STAGE}")
        stage = {"name": "infer", "program": ["device.py"], "device": "gpu"}
        for name in names:
            self.write(f"{name}.json", json.dumps({"name": name, "requests": 5, "stages": [stage]}))
        return [f"{self.work}/{name}.json" for name in names]

    def bench_pipelines(self, sharing, *words, code=0):
        output = f"--output={self.work}/out"
        return self.colloc(
            "bench", "--no-report", output, f"--sharing={sharing}", *words, code=code
        )

    def device_of(self, name):
        return read(f"{self.work}/out/logs/{name}-infer-0").strip()

    def test_pipelines_on_mig_instances(self):
        paths = self.pipelines("one", "two")
        self.bench_pipelines("3g.20gb", *paths)
        self.assertEqual(
            [(row["pipeline"], row["error"]) for row in self.rows("pipelines.csv")],
            [("one", ""), ("two", "")],
        )
        devices = [self.device_of(name) for name in ("one", "two")]
        self.assertEqual([device[:4] for device in devices], ["MIG-", "MIG-"])
        self.assertNotEqual(devices[0], devices[1])
        done = self.bench_pipelines("3g.20gb", *paths, paths[0], code=1)
        self.assertIn("3g.20gb: GPU 0 has 2 of the 3 instances", done.stderr)
        done = self.bench_pipelines("3g.20gb", "--gpu=1", paths[0], code=1)
        self.assertIn("3g.20gb: GPU 1 has 0 of the 1 instances", done.stderr)
        del self.env["COLLOC_EMULATOR"]
        done = self.bench_pipelines("3g.20gb", paths[0], code=1)
        self.assertIn("3g.20gb: colloc cannot query which MIG instances there are", done.stderr)

    def test_pipelines_on_mig_compute_instances(self):
        os.unlink(self.env["COLLOC_EMULATOR"])
        gpus = "A100-40GB:1c.3g.20gb+2c.3g.20gb+1c.3g.20gb"
        self.emulator("create", f"--gpus={gpus}", "--speed=100", self.env["COLLOC_EMULATOR"])
        paths = self.pipelines("one", "two")
        self.bench_pipelines("1c.3g.20gb", *paths)
        self.assertEqual(
            [self.device_of(name) for name in ("one", "two")],
            [f"MIG-c0110cc0-e4a7-4a1e-9b0{place}-000000000000" for place in (1, 3)],
        )
        done = self.bench_pipelines("2c.3g.20gb", *paths, code=1)
        self.assertIn("2c.3g.20gb: GPU 0 has 1 of the 2 instances", done.stderr)

    def test_tasks_of_one_workload_on_different_gpus(self):
        row = "1,1,,,{},-,timm/train.py,,--model resnet26\n"
        done = self.bench(HEAD + row.format(0) + row.format(1), "--dry-run")
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
