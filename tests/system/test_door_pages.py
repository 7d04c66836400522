# SPDX-License-Identifier: Apache-2.0
"""The commands of README and at the head of the pages of doors, typed on emulated GPUs.

A page for people who come from another tool starts with commands (tests/unit/cli/test_docs.py).
Each of their lines is run here, or is in ELSEWHERE with the place that runs it, so that a page
cannot keep a command that has changed. The test gives what a reader has: a script, a log, another
program, for which stand-ins are on PATH. A task's number on the pages is 12.
"""

import glob
import os
import re
import socket
import subprocess
import sys
import unittest

from daemon_case import LIMIT_S, DaemonCase, program, read, until

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FIRST = 12  # the number of the first task that a page submits

# Lines that another test runs, or that act on another machine: page: beginning of the line: where
ELSEWHERE = {
    "executor": {},
    "hydra": {
        "pip install": "scripts/test-container installs the packages",
        "python train.py": "test_hydra.py, with the real Hydra where it is installed",
    },
    "notebooks": {
        "c.": "jupyterhub_config.py: test_slurm_tools.py starts a hub",
    },
    "optuna": {"python3 search.py": "test_optuna.py runs both programs of the page"},
    "outside": {},
    "slurm-commands": {"meson setup": "scripts/test-packages; the names are links here"},
    "ssh": {
        "": "test_ssh.py, with the real ssh and sshd: they are typed on another machine",
    },
}

# README's train.py: it ends when the queue has been shown, on however slow a machine.
TRAINING = """
import os, sys, time
print(*sys.argv[1:])
while not os.path.exists("queue-was-shown"):
    time.sleep(0.05)
"""

LOGS = {
    "january.txt": "JobID|User|Submit|Elapsed|State|AllocTRES|ReqTRES\n"
    "7|ada|2026-01-01T10:00:00|00:01:40|COMPLETED|gres/gpu=1|gres/gpu=1\n"
    "8|bob|2026-01-01T10:00:10|00:05:00|COMPLETED|gres/gpu=2|gres/gpu=2\n",
    "openb_pod_list_default.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,"
    "pod_phase,creation_time,deletion_time,scheduled_time\n"
    "a,12000,16384,1,1000,,LS,Running,0,70,10\nb,6000,12288,1,460,,LS,Failed,100,1100,100\n",
    "job_info_df.csv": "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,"
    "submit_time,duration,job_type\n1,13,A10,20,1,1,0,60,HP\n"
    "2,57,A100-SXM4-80GB,15,1,2,10,1000,Spot\n",
    "pods.csv": "pod_id,priority_class,state_public,gpu_request,used_gpu_hours,avg_gpu_sm_util,"
    "avg_gpu_mem_gib,day,hour\np1,HP,Running,2.0,1.0,90.0,60.0,109,07\n"
    "p2,LP,Running,0.5,0.5,30.0,,109,06\n",
    "summary.csv": "pod_id,workload_id,duration_hours,schedule_delay_sec\np2,w1,3.0,600\n",
    "trace_seren.csv": "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,"
    "type,state,submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n"
    "a,uA,1,1,16,100,10.0,Evaluation,COMPLETED,2023-05-17 11:00:00+00:00,"
    "2023-05-17 11:10:00+00:00,2023-05-17 11:11:00+00:00,,,660,600.0,660.0\n",
}


def lines_of(page):
    """The lines of the page's first block: comments are cut, continued lines are one."""
    text = read(os.path.join(ROOT, "docs", page + ".md"))
    block = re.search(r"(?m)^ {4}.*\n(?:(?: {4}.*)?\n)*", text)[0]
    joined = re.sub(r" *\\\n\s*", " ", block)
    lines = [re.sub(r"(^|\s+)# .*$", "", line[4:]).rstrip() for line in joined.splitlines()]
    return [line for line in lines if line]


class Page(DaemonCase):
    gpus = "2xA100-40GB"

    def setUp(self):
        super().setUp()
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        for name in ("colloc", "sbatch", "squeue", "sacct", "scontrol"):
            os.symlink(program("colloc"), os.path.join(self.bin, name))
        os.symlink(program("collocd"), os.path.join(self.bin, "collocd"))
        os.symlink(sys.executable, os.path.join(self.bin, "python"))
        self.env["PATH"] = f"{self.bin}:{self.env['PATH']}"
        self.env["PYTHONPATH"] = os.path.join(ROOT, "python")

    def put(self, name, text):
        """A program on PATH."""
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def lead_to_first(self):
        """The next task is number 12, as on the pages."""
        for _ in range(FIRST - 1):
            self.submit("true", gpus=0)

    def here(self, page):
        """The lines that are to be run. Each of ELSEWHERE is on the page."""
        lines, apart = lines_of(page), ELSEWHERE.get(page, {})
        for beginning in apart:
            self.assertTrue(any(line.startswith(beginning) for line in lines), (page, beginning))
        return [line for line in lines if not line.startswith(tuple(apart))]

    def type(self, line, code=0):
        """Runs the line in a shell, and returns what it printed."""
        done = subprocess.run(
            ["bash", "-c", line],
            env=self.task_environment(),
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, code, f"{line}: {done.stdout}{done.stderr}")
        self.assertNotIn("warning", done.stderr, line)
        return done.stdout

    def type_all(self, lines, expected):
        """`expected`: for each line its beginning, and what it prints."""
        self.assertEqual(len(lines), len(expected), lines)
        for line, (beginning, printed) in zip(lines, expected):
            self.assertTrue(line.startswith(beginning), (line, beginning))
            self.assertRegex(self.type(line), printed, line)

    def test_readme(self):
        """Its script is all that its commands need, beside the reader's train.py."""
        text = read(os.path.join(ROOT, "README.md"))
        shown = re.search(r"(?m)^ {4}\$ cat train.sh\n((?: {4}.*\n)+)", text)[1]
        lines = [re.sub(r"\s+# .*$", "", line[4:]) for line in shown.splitlines()]
        first = next(i for i, line in enumerate(lines) if line.startswith("$ "))
        self.write("train.sh", "\n".join(lines[:first]) + "\n")
        self.write("train.py", TRAINING)
        commands = [line[2:] for line in lines[first:] if line.startswith("$ ")]
        self.assertEqual(len(commands), 3, commands)
        self.lead_to_first()
        self.assertEqual(self.type(commands[0]), f"Submitted task {FIRST}\n")
        self.assertIn(
            self.type(commands[1]).splitlines()[0].split(), [row.split() for row in lines]
        )
        self.write("queue-was-shown", "")
        self.assertEqual(self.type(commands[2]), "--batch-size 128\n")

    def test_slurm_commands(self):
        self.lead_to_first()
        self.write("job.sh", "#!/bin/bash\nwhile [ ! -e end ]; do sleep 0.05; done\n")
        lines = self.here("slurm-commands")
        self.assertEqual(len(lines), 4, lines)
        self.assertEqual(self.type(lines[0]), f"{FIRST}\n")
        until(lambda: self.task(FIRST)["state"] == "RUNNING", "its start")
        self.assertEqual(self.type(lines[1]), f"RUNNING {socket.gethostname()}\n")
        self.type(lines[2])
        until(lambda: self.task(FIRST)["attempt_count"] == 2, "its second run")
        self.write("end", "")
        self.wait(FIRST, "COMPLETED")
        self.assertRegex(self.type(lines[3]), rf"^{FIRST}\|COMPLETED\|\d\d:\d\d:\d\d\n$")

    def test_containers(self):
        self.put("podman", '#!/bin/sh\necho "podman $@"\n')
        self.write("train.py", "")
        lines = self.here("containers")
        in_task = [line for line in lines if line.startswith("colloc container")]
        self.assertEqual(len(lines), 3, lines)
        self.assertEqual(len(in_task), 1, lines)
        done = self.type(lines[0])
        task = int(done.split()[-1])
        self.wait(task, "COMPLETED")
        self.assertRegex(self.read(f"colloc-{task}.out"), "podman run .*nvidia.com/gpu=[01] .*")
        task = self.submit(in_task[0])
        self.wait(task, "COMPLETED")
        self.assertIn("podman run ", self.read(f"colloc-{task}.out"))
        self.assertIn("A100", self.type(lines[2]))

    def test_sweeps(self):
        self.lead_to_first()
        lines = self.here("sweeps")
        reports = [line for line in lines if line.startswith("colloc metric ")]
        self.assertEqual(len(reports), 1, lines)
        lines.remove(reports[0])
        # Later trials lose; each keeps its GPU until the first rung.
        self.write(
            "sweep.sh",
            "#!/bin/bash\nfor epoch in 1 2 3; do\n"
            f"loss=0.$((100 + COLLOC_ARRAY_INDEX))\n{reports[0]}\ndone\n"
            "sleep 0.2\n",
        )
        self.assertEqual(len(lines), 4, lines)
        self.assertIn(f"array {FIRST} (64 tasks)", self.type(lines[0]))
        until(
            lambda: self.client.array(FIRST)["states"].get("STOPPED"),
            "a trial that is stopped",
        )
        self.assertIn(f"{FIRST}_7", self.type(lines[1]))
        self.assertIn("STOPPED", self.type(lines[2]))
        self.assertIn("(64 tasks)", self.type(lines[3]))

    def test_executor(self):
        self.write("trials.py", "def train(lr, epochs=1):\n    return lr * epochs\n")
        code = "\n".join(lines_of("executor"))
        self.write("sweep.py", code + "\nprint(losses)\n")
        printed = self.type("python sweep.py").splitlines()
        self.assertEqual(printed[-1], "[0.1, 0.01, 0.001]")
        self.assertRegex(printed[-2], r"^\d+ 1\.5$")

    def test_notebooks(self):
        self.restart(**{"suspend-without-gate": "yes"})
        lines = self.here("notebooks")
        settings = [line for line in lines if re.match(r"[a-z-]+: ", line)]
        self.assertEqual(settings, ["suspend-unused-after: 30m"])
        self.check_settings(settings)
        lines = [line for line in lines if line not in settings]
        self.assertEqual(len(lines), 2, lines)
        ready = 'echo "http://127.0.0.1:8899/lab?token=x" >&2'
        self.put(
            "jupyter-lab",
            f"#!/bin/sh\n{ready}\nexec colloc-pretend-train --memory-mib=900 --seconds=1e9\n",
        )
        self.assertIn("ssh -L 8899:", self.type(lines[0]))
        self.assertIn("colloc suspend ID; colloc resume ID", lines[1])
        until(lambda: self.task(1).get("mem_used_mib"), "its memory")
        self.assertRegex(self.type(lines[1].replace("ID", "1")), "SUSPENDED(.|\n)*RUNNING")

    def check_settings(self, settings):
        path = self.write("collocd.yaml", "\n".join(settings) + "\n")
        self.assertIn("fine", self.type(f"collocd --check --config={path} 2>&1"))

    def test_optuna(self):
        self.assertEqual(self.here("optuna"), ["colloc queue"])
        self.type("colloc queue")

    def test_outside(self):
        lines = self.here("outside")
        settings = [line for line in lines if re.match(r"outside[a-z-]*: ", line)]
        self.assertGreater(len(settings), 3)
        known = re.sub("outside-users: .*", "outside-users: root", "\n".join(settings))
        self.check_settings(known.splitlines())
        self.assertEqual(
            [line for line in lines if line not in settings],
            [
                "colloc gpus",
                "sudo collocd --check && sudo systemctl reload collocd",
                "sudo colloc doctor",
            ],
        )
        self.assertIn("NOTES", self.type("colloc gpus"))
        done = self.colloc("doctor", code=None)
        self.assertRegex(done.stdout, "(?m)^outside ")

    def test_cluster_logs(self):
        for name, text in LOGS.items():
            self.write(name, text)
        lines = self.here("cluster-logs")
        asked = lines.pop(0)
        columns = re.search(r"--format=(\S+) > january.txt$", asked)[1]
        self.assertEqual(LOGS["january.txt"].splitlines()[0].split("|"), columns.split(","))
        self.type(asked.replace("> january.txt", ""))  # our sacct takes the same words
        self.type_all(
            lines,
            [
                ("colloc simulate january.txt", "(?i)wait"),
                ("colloc trace import --gpus=4", "^$"),
                ("colloc simulate --trace=T.csv", "2 completed"),
                *[("colloc trace import", "^$")] * 4,
                ("colloc trace info T.csv", "(?i)gpu"),
            ],
        )

    def test_pages_of_other_tests(self):
        """What is in ELSEWHERE only."""
        self.assertEqual(self.here("ssh"), [])
        tests = "".join(read(path) for path in glob.glob(os.path.join(ROOT, "tests/system/*.py")))
        for option in re.findall(r"ssh-proxy (--\S+ --\S+)", "\n".join(lines_of("ssh"))):
            for word in re.findall(r"--[a-z]+", option):
                self.assertIn(word, tests)
        for line in self.here("hydra"):
            self.assertEqual(line, "")


if __name__ == "__main__":
    unittest.main()
