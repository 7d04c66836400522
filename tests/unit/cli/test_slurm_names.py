# SPDX-License-Identifier: Apache-2.0
"""squeue, sacct, scancel and scontrol as programs call them.

The command lines are those that the tools send, read from their sources. The headers and the values
of a job without accounts, licences and so on are those that Slurm 22.05.8 printed of a job.
"""

import os
import resource
import socket
import subprocess
import unittest

from cli_case import COLLOC, CliCase
from fake_collocd import make_task

HOST = socket.gethostname()
T = 1796000000  # 2026-11-30 00:53:20 UTC

# squeue 22.05.8: letter: header, what it printed of a waiting job
SLURM = {
    "a": ("ACCOUNT", "(null)"),
    "b": ("TRES_PER_NODE", "gres:gpu:1"),
    "c": ("MIN_CPUS", "1"),
    "d": ("MIN_TMP_DISK", "0"),
    "e": ("END_TIME", "N/A"),
    "f": ("FEATURES", "(null)"),
    "h": ("OVER_SUBSCRIBE", "OK"),
    "i": ("JOBID", "1"),
    "j": ("NAME", "net"),
    "k": ("COMMENT", "(null)"),
    "l": ("TIME_LIMIT", "1:30:00"),
    "n": ("REQ_NODES", ""),
    "q": ("QOS", "(null)"),
    "r": ("REASON", "Resources"),
    "t": ("ST", "PD"),
    "u": ("USER", "root"),
    "v": ("RESERVATION", "(null)"),
    "w": ("WCKEY", "(null)"),
    "x": ("EXC_NODES", ""),
    "y": ("NICE", "0"),
    "z": ("S:C:T", "*:*:*"),
    "A": ("JOBID", "1"),
    "B": ("EXEC_HOST", "n/a"),
    "C": ("CPUS", "1"),
    "D": ("NODES", "1"),
    "E": ("DEPENDENCY", "(null)"),
    "F": ("ARRAY_JOB_ID", "1"),
    "g": ("GROUP", "root"),
    "G": ("GROUP", "0"),
    "H": ("SOCKETS_PER_NODE", "*"),
    "I": ("CORES_PER_SOCKET", "*"),
    "J": ("THREADS_PER_CORE", "*"),
    "K": ("ARRAY_TASK_ID", "N/A"),
    "L": ("TIME_LEFT", "1:30:00"),
    "M": ("TIME", "0:00"),
    "N": ("NODELIST", ""),
    "O": ("CONTIGUOUS", "0"),
    "R": ("NODELIST(REASON)", "(Resources)"),
    "S": ("START_TIME", "N/A"),
    "T": ("STATE", "PENDING"),
    "U": ("UID", "0"),
    "V": ("SUBMIT_TIME", "2026-11-30T00:53:20"),
    "W": ("LICENSES", "(null)"),
    "X": ("CORE_SPEC", "N/A"),
    "Y": ("SCHEDNODES", "(null)"),
}


class SlurmNames(CliCase):
    def setUp(self):
        super().setUp()
        started = {"started_at": T + 7, "exec_s": 95, "gpus": ["0"], "reason": "None"}
        self.daemon.tasks = [
            make_task(
                1,
                name="net",
                user="root",
                uid=0,
                state="PENDING",
                reason="Resources",
                submitted_at=T,
                time_limit_s=5400,
                exec_s=0,
                gpus_requested=1,
            ),
            make_task(
                2, name="run", user="root", uid=0, state="RUNNING", submitted_at=T, **started
            ),
            make_task(
                3,
                name="other",
                user="ada",
                state="PAUSED",
                submitted_at=T,
                **{**started, "reason": "SuspendedByUser"},
            ),
        ]

    def run_as(self, name, *words, code=0, **environment):
        link = os.path.join(self.folder, name)
        if not os.path.lexists(link):
            os.symlink(os.path.abspath(COLLOC), link)
        self.daemon.requests.clear()
        done = subprocess.run(
            [link, *words],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**self.environment, **environment},
            timeout=60,
            check=False,
        )
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done.stdout if code == 0 else done.stderr

    def test_each_letter_is_as_slurm_prints_it(self):
        for letter, (header, value) in SLURM.items():
            lines = self.run_as("squeue", "-j", "1", "-o", "%" + letter).split("\n")
            self.assertEqual(lines, [header, value, ""], letter)

    def test_widths_and_the_default_of_squeue(self):
        self.assertEqual(
            self.run_as("squeue", "-h", "-j1", "-o", "%.8i|%-5t|%3j|%10M|", code=1)[:7], "squeue:"
        )
        self.assertEqual(
            self.run_as("squeue", "-h", "-j1", "-o", "%.8i|%5t|%2j|x%%"[:-2]),
            "       1|PD   |ne|x\n",
        )
        self.assertEqual(
            self.run_as("squeue", "-j", "2"),
            "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
            f"                 2    colloc      run     root  R       1:35      1 {HOST}\n",
        )
        self.assertEqual(self.run_as("squeue", "-h", "-t", "all", "-n", "x"), "")
        self.assertIn("Invalid job state", self.run_as("squeue", "-t", "bogus", code=1))

    def test_submitit(self):
        # submitit 1.5.4, submitit/slurm/slurm.py: SlurmInfoWatcher._make_command,
        # SlurmJob._interrupt and SlurmJobEnvironment._requeue
        text = self.run_as(
            "sacct", "-o", "JobID,State,NodeList", "--parsable2", "-j", "1", "-j", "2"
        )
        self.assertEqual(
            text,
            "JobID|State|NodeList\n1|PENDING|None assigned\n"
            f"2|RUNNING|{HOST}\n2.batch|RUNNING|{HOST}\n",
        )
        same = self.run_as("sacct", "-o", "JobID,State,NodeList", "--parsable2", "-j", "1,2")
        self.assertEqual(same, text)
        self.run_as("scancel", "2")
        self.assertEqual(self.daemon.requests[0][1], "/v1/tasks/2/cancel")
        self.assertIn("SIGTERM", self.run_as("scancel", "2", "--signal", "USR1", code=2))
        self.run_as("scontrol", "requeue", "2")
        self.assertEqual(self.daemon.requests[0][1], "/v1/tasks/2/requeue")

    def test_a_task_that_gives_way_is_running(self):
        """Tools take a suspended job for an ended one: findings/suspended-is-ended.sh."""
        for state in ("SUSPENDED", "PAUSED"):
            for reason, name in (
                ("Suspended", "RUNNING"),
                ("SuspendedUnused", "RUNNING"),
                ("SuspendedByUser", "SUSPENDED"),
            ):
                self.daemon.tasks[1].update(state=state, reason=reason)
                queue = self.run_as("squeue", "-h", "-j", "2", "-o", "%T %t %B")
                self.assertEqual(queue, f"{name} {name[0]} {HOST}\n")
                account = self.run_as("sacct", "-nPX", "-o", "State", "-j", "2")
                self.assertEqual(account, f"{name}\n")
                only = self.run_as("squeue", "-h", "-t", "S", "-o", "%i", "-j", "2")
                self.assertEqual(only, "2\n" if name == "SUSPENDED" else "")

    def test_a_task_that_is_being_ended(self):
        """COMPLETING is a word of squeue: sacct has the state that comes of it."""
        for reason, name in (
            ("Cancelled", "CANCELLED"),
            ("Stopped", "CANCELLED"),
            ("TimeLimit", "TIMEOUT"),
            ("Requeued", "RUNNING"),
            ("GpuGone", "RUNNING"),
        ):
            self.daemon.tasks[1].update(state="COMPLETING", reason=reason)
            queue = self.run_as("squeue", "-h", "-j", "2", "-o", "%T %t")
            self.assertEqual(queue, "COMPLETING CG\n")
            account = self.run_as("sacct", "-nPX", "-o", "State", "-j", "2")
            self.assertEqual(account, f"{name}\n")
            only = self.run_as("sacct", "-nPX", "-s", name, "-o", "JobID", "-j", "2")
            self.assertEqual(only, "2\n")

    def test_snakemakes_executor_plugin(self):
        # snakemake-executor-plugin-slurm 2.7.1: job_status_query.py, accounts.py,
        # job_cancellation.py and submit_string.py
        text = self.run_as(
            *"sacct -X --parsable2 --clusters all --noheader --format=JobIdRaw,State".split(),
            *"--starttime 2026-11-28T00:00 --endtime now --name run".split(),
        )
        self.assertEqual(text, "2|RUNNING\n")
        text = self.run_as(
            *"squeue --format=%i|%T --states=all --noheader --name run".split(),
        )
        self.assertEqual(text, "2|RUNNING\n")
        self.assertIn(
            "MinJobAge               = 300 sec\n", self.run_as("scontrol", "show", "config")
        )
        text = self.run_as(*"sacctmgr -n -s list user ada format=account%256".split())
        self.assertEqual(text, "colloc".rjust(256) + " \n")
        self.assertEqual(self.run_as("sinfo", "-o", "%P"), "PARTITION\ncolloc*\n")
        self.assertTrue(self.run_as("scontrol", "show", "partition").startswith("PartitionName="))
        done = self.run_as(
            *"sbatch --parsable --job-name run --output".split(),
            os.path.join(self.folder, "%j.log"),
            *"--export=ALL --comment rule_a -A colloc -p colloc -t 60 --mem 1000".split(),
            *"--gpus=1 --ntasks=1 --cpus-per-task=2 -D".split(),
            self.folder,
            "--wrap=python -m snakemake --target-jobs 'a:'",
        )
        self.assertEqual(done, "12\n")
        body = [body for method, path, body in self.daemon.requests if method == "POST"][-1]
        self.assertEqual((body["gpus"], body["cpus"], body["time_limit_s"]), (1, 2, 3600))
        self.run_as("scancel", "1", "2", "--clusters=all")
        cancelled = [body["tasks"] for _, path, body in self.daemon.requests if "cancel" in path]
        self.assertEqual(cancelled, [[1, 2]])

    def test_snakemake_7_21_of_debian(self):
        # snakemake 7.21.0 (Debian 12): snakemake/executors/slurm/slurm_submit.py
        self.assertEqual(
            self.run_as("sacct", "-nu", "root", "-o", "Account%20"), (" " * 21 + "\n") * 3
        )
        default = [name for name in self.run_as("sinfo", "-o", "%P").split() if "*" in name]
        self.assertEqual(default, ["colloc*"])
        done = self.run_as(
            *"sbatch -J job-a -o .snakemake/slurm_logs/rule_a/%j.log --export=ALL -A a".split(),
            *"-p colloc -t 60 --mem 1000 --cpus-per-task=2 -D".split(),
            self.folder,
            "--wrap=python -m snakemake --target-jobs 'a:'",
        )
        self.assertEqual(done.split(" ")[-1], "12\n")
        body = [body for method, path, body in self.daemon.requests if method == "POST"][-1]
        self.assertEqual(
            (body["cpus"], body["host_memory_mib"], body["time_limit_s"], body["cwd"]),
            (2, 1000, 3600, self.folder),
        )
        self.assertEqual(body["environment"]["COLLOC_SLURM_SCRIPT"], "1")
        text = self.run_as(*"sacct -P -n --format=JobIdRaw,State -j 2".split())
        self.assertEqual(text, "2|RUNNING\n2.batch|RUNNING\n")
        text = self.run_as(*"scontrol show jobid -dd 2".split())
        self.assertIn("JobState=RUNNING ", text)

    def test_variables_of_sbatch(self):
        script = os.path.join(self.folder, "v.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n#SBATCH --time=5 --gres=gpu:2 -J line\ntrue\n")
        variables = {"SBATCH_TIMELIMIT": "10", "SBATCH_JOB_NAME": "variable", "LR": "1"}
        self.run_as("sbatch", "-J", "given", script, SBATCH_EXPORT="NONE", **variables)
        body = [body for method, path, body in self.daemon.requests if method == "POST"][-1]
        self.assertEqual((body["time_limit_s"], body["gpus"], body["name"]), (600, 2, "given"))
        self.assertNotIn("LR", body["environment"])

    def test_nextflow(self):
        # Nextflow at 06e3c4a, modules/nextflow/src/main/groovy/nextflow/executor/
        # SlurmExecutor.groovy: queueStatusCommand, getDirectives and getSubmitCommandLine
        text = self.run_as("squeue", "--noheader", "-o", "%i %t", "-t", "all", "-u", "root")
        self.assertEqual(text, "1 PD\n2 R\n")
        queue = "squeue --noheader -o".split() + ["%i %t"] + "-t all -p colloc -u root".split()
        self.assertEqual(self.run_as(*queue), text)
        script = os.path.join(self.folder, ".command.run")
        with open(script, "w", encoding="utf-8") as file:
            file.write(
                "#!/bin/bash\n"
                "#SBATCH -J nf-train_(1)\n"
                f"#SBATCH -o {self.folder}/.command.log\n"
                "#SBATCH --no-requeue\n"
                "#SBATCH --signal B:USR2@30\n"
                "#SBATCH -c 2\n"
                "#SBATCH -t 01:30:00\n"
                "#SBATCH --mem 1000M\n"
                "#SBATCH -p colloc\n"
                "true\n"
            )
        done = self.run_as("sbatch", ".command.run")
        self.assertEqual(done, "Submitted batch job 12\n")
        body = [body for method, path, body in self.daemon.requests if method == "POST"][-1]
        self.assertEqual(
            (body["name"], body["cpus"], body["time_limit_s"], body["host_memory_mib"]),
            ("nf-train_(1)", 2, 5400, 1000),
        )
        self.run_as("scancel", "1", "2")
        cancelled = [body["tasks"] for _, path, body in self.daemon.requests if "cancel" in path]
        self.assertEqual(cancelled, [[1, 2]])

    def test_batchspawner(self):
        # batchspawner 1.3.1.dev (451dcf1), batchspawner/batchspawner.py:
        # SlurmSpawner.batch_query_cmd
        self.assertEqual(self.run_as("squeue", "-h", "-j", "2", "-o", "%T %B"), f"RUNNING {HOST}\n")
        self.assertEqual(self.run_as("squeue", "-h", "-j", "1", "-o", "%T %B"), "PENDING n/a\n")
        text = self.run_as("squeue", "-h", "-j", "77", "-o", "%T %B", code=1)
        self.assertEqual(text, "slurm_load_jobs error: Invalid job id specified\n")
        self.assertEqual(self.run_as("squeue", "-h", "-j", "77,1", "-o", "%i"), "1\n")
        # SlurmSpawner.state_unknown_re: anything else is the end of the server for the hub
        away = {"COLLOC_SOCKET": os.path.join(self.folder, "no-daemon")}
        text = self.run_as("squeue", "-h", "-j", "2", "-o", "%T %B", code=3, **away)
        self.assertRegex(text, "^slurm_load_jobs error: Unable to contact slurm controller")
        text = self.run_as("scontrol", "show", "job", "2", code=3, **away)
        self.assertRegex(text, "^slurm_load_jobs error: Unable to contact slurm controller")

    def test_open_ondemand(self):
        # OSC/ood_core until 0.31.0, lib/ood_core/job/adapters/slurm.rb: letters by -o
        letters = [letter for letter in SLURM if letter != "b"] + ["P", "Q", "o", "m", "Z", "b"]
        text = self.run_as(
            *"squeue --all --states=all --noconvert -o".split(),
            "\x1e" + "\x1f".join("%" + letter for letter in letters),
            *"-u root -j 1 -M colloc".split(),
        )
        cluster, header, job = text.split("\x1e")
        self.assertEqual(cluster, "CLUSTER: colloc\n")
        fields = dict(zip(letters, job.rstrip("\n").split("\x1f")))
        self.assertEqual((fields["A"], fields["t"], fields["b"]), ("1", "PD", "gres:gpu:1"))
        self.assertEqual(len(header.split("\x1f")), len(letters))
        text = self.run_as(
            *"sacct -P --delimiter \x1f -n --units G --allocations -o".split(" "),
            "User,Group,JobId,JobName,Elapsed,ReqMem,AllocCPUS,ReqCPUS,Timelimit,State,TotalCPU,"
            "MaxRSS,Partition,Submit,Start,End,ReqTRES",
            *"--state RUNNING -j 2".split(),
        )
        self.assertEqual(
            text.rstrip("\n").split("\x1f")[2:10],
            ["2", "run", "00:01:35", "0", "1", "1", "UNLIMITED", "RUNNING"],
        )
        for verb in ("hold", "release"):
            self.run_as("scontrol", verb, "1", "-M", "colloc")
            self.assertEqual(self.daemon.requests[0][1], f"/v1/tasks/1/{verb}")

    def test_open_ondemand_by_names(self):
        # OSC/ood_core 0.31.1, lib/ood_core/job/adapters/slurm.rb: squeue_args, all_squeue_fields,
        # get_cluster_info, nodes, queues and accounts. Headers and values are those that Slurm
        # 22.05.8 printed of a held job, but for ExcNodes, which it does not know.
        fields = (
            "Account JobID BatchHost MinCpus NumCPUs MinTmpDisk NumNodes EndTime Dependency "
            "Feature ArrayJobID GroupName GroupID OverSubscribe Sockets JobArrayID Cores Name "
            "Threads Comment ArrayTaskID TimeLimit TimeLeft MinMemory TimeUsed ReqNodes "
            "NodeList Command Contiguous QOS Partition PriorityLong Reason StartTime "
            "StateCompact State UserName UserID Reservation SubmitTime WCKey Licenses ExcNodes "
            "CoreSpec Nice SchedNodes SCT WorkDir tres-alloc tres-per-node"
        ).split()
        text = self.run_as(
            *"squeue --all --states=all --noconvert -O".split(),
            ":\x1f,".join(fields) + ":\x1f,",
            *"-u root -j 1 -M colloc".split(),
        )
        head, job = text.split("\x1f\n")[:2]
        cluster, header = head.split("\n")
        self.assertEqual(cluster, "CLUSTER: colloc")
        headers = dict(zip(fields, header.split("\x1f")))
        values = dict(zip(fields, job.split("\x1f")))
        self.assertEqual(len(header.split("\x1f")), len(fields))
        self.assertEqual(len(job.split("\x1f")), len(fields))
        expected = {
            "Account": ("ACCOUNT", "(null)"),
            "JobID": ("JOBID", "1"),
            "BatchHost": ("EXEC_HOST", "n/a"),
            "MinTmpDisk": ("MIN_TMP_DISK", "0"),
            "Sockets": ("SOCKETS_PER_NODE", "*"),
            "Cores": ("CORES_PER_SOCKET", "*"),
            "Threads": ("THREADS_PER_CORE", "*"),
            "Contiguous": ("CONTIGUOUS", "0"),
            "TimeLimit": ("TIME_LIMIT", "1:30:00"),
            "PriorityLong": ("PRIORITY", values["PriorityLong"]),
            "StateCompact": ("ST", "PD"),
            "CoreSpec": ("CORE_SPEC", "N/A"),
            "SchedNodes": ("SCHEDNODES", "(null)"),
            "SCT": ("S:C:T", "*:*:*"),
            "tres-alloc": ("TRES_ALLOC", values["tres-alloc"]),
            "tres-per-node": ("TRES_PER_NODE", "gres:gpu:1"),
        }
        for name, pair in expected.items():
            self.assertEqual((headers[name], values[name]), pair, name)
        self.assertIn("cpu=1", values["tres-alloc"])
        self.daemon.gpus = [{"index": "0", "tasks": [{"id": 2}]}, {"index": "1", "tasks": []}]
        cpus = os.sysconf("SC_NPROCESSORS_ONLN")
        self.assertEqual(self.run_as("sinfo", "-aho", "%F/%C"), f"1/0/0/1/0/{cpus}/0/{cpus}\n")
        names = "nodehost:100,gres:20,gresused:30,statelong"
        text = self.run_as("sinfo", "-ahNO", names, "-M", "colloc")
        self.assertEqual(text, f"{HOST:100}{'gpu:2':20}{'gpu:1':30}{'mixed':20}\n")
        text = self.run_as("sinfo", "-O", "StateCompact:.6,partition")
        self.assertEqual(text, f" STATE{'PARTITION':20}\n   mix{'colloc*':20}\n")
        for wrong in ("bogus", "gres:-3", "gres:999999", ":"):
            self.assertIn("Invalid node format", self.run_as("sinfo", "-O", wrong, code=1))
        text = self.run_as(
            *"sacctmgr -nP show users withassoc format=account,qos where user=ada".split(),
            "cluster=colloc",
        )
        self.assertEqual(text, "colloc|\n")
        self.assertTrue(self.run_as("scontrol", "show", "part", "-o").startswith("PartitionName="))

    def test_widths_and_suffixes_of_names(self):
        # as squeue 22.05.8 prints a job called net with -O "JobID:8:,Name:.6|,State:"
        text = self.run_as("squeue", "-j1", "-O", "JobID:8:,Name:.6|,State:")
        self.assertEqual(text, "JOBID   :  NAME|STATE\n1       :   net|PENDING\n")

    def test_sacct_in_columns(self):
        self.assertEqual(
            self.run_as("sacct", "-Xj", "2", "--format", "JobID,JobName%5,State,Elapsed"),
            "JobID        JobN+      State    Elapsed \n"
            + "------------ ----- ---------- ---------- \n"
            + "2              run    RUNNING   00:01:35 \n",
        )
        self.assertIn('"Nonsense"', self.run_as("sacct", "-j2", "-oJobID,Nonsense", code=1))
        names = self.run_as("sacct", "--helpformat").split()
        self.assertIn("JobIDRaw", names)
        self.assertEqual(names, sorted(set(names), key=str.lower), "each once, as sacct lists them")
        self.assertIn("Invalid time", self.run_as("sacct", "-n", "-S", "soon", code=1))

    def test_steps_of_sacct(self):
        self.daemon.tasks[1].update(state="COMPLETED", exit_code=0)
        fields = "JobID,JobIDRaw,JobName,Partition,User,State,ExitCode,Elapsed,Timelimit"
        self.assertEqual(
            self.run_as("sacct", "-Pn", "-j1,2", "-o", fields).splitlines(),
            [
                "1|1|net|colloc|root|PENDING|0:0|00:00:00|01:30:00",
                "2|2|run|colloc|root|COMPLETED|0:0|00:01:35|UNLIMITED",
                "2.batch|2.batch|batch|||COMPLETED|0:0|00:01:35|",
            ],
        )
        self.assertEqual(self.run_as("sacct", "-Pnj2.batch", "-oJobID"), "2.batch\n")
        self.assertEqual(self.run_as("sacct", "-Pnj2.7", "-oJobID"), "")
        self.assertEqual(self.run_as("sacct", "-XPnj2", "-oJobID%30"), "2\n")

    def test_steps_of_srun(self):
        """Their own name, state, exit and times; the job's state where they have no end."""
        step = {"step": 0, "name": "python", "processes": 2, "started_at": T + 10}
        done = {**step, "ended_at": T + 13.9, "state": "COMPLETED", "exit_code": 0, "signal": None}
        failed = {**done, "step": 1, "name": "a\nb", "state": "FAILED", "exit_code": 3}
        killed = {**done, "step": 2, "state": "FAILED", "exit_code": None, "signal": 9}
        self.daemon.tasks[1].update(
            state="CANCELLED", cancelled_by="root", signal=15, srun_steps=[done, failed, killed]
        )
        fields = "JobID,JobName,NTasks,User,State,ExitCode,Start,End,Elapsed"
        self.assertEqual(
            self.run_as("sacct", "-Pn", "-j2", "-o", fields, TZ="UTC").splitlines()[1:],
            [
                "2.batch|batch|1||CANCELLED|0:15|2026-11-30T00:53:27|Unknown|00:01:35",
                "2.0|python|2||COMPLETED|0:0|2026-11-30T00:53:30|2026-11-30T00:53:33|00:00:03",
                "2.1|a?b|2||FAILED|3:0|2026-11-30T00:53:30|2026-11-30T00:53:33|00:00:03",
                "2.2|python|2||FAILED|0:9|2026-11-30T00:53:30|2026-11-30T00:53:33|00:00:03",
            ],
        )
        self.assertEqual(self.run_as("sacct", "-Pnj2.1,2.7,2.batch", "-oJobID"), "2.1\n2.batch\n")
        self.assertEqual(self.run_as("sacct", "-XPnj2", "-oJobID"), "2\n")
        self.assertEqual(self.run_as("sacct", "-XPnj2,1,2", "-oJobID"), "2\n1\n")
        self.assertEqual(self.run_as("sacct", "-Pnj2.1,2.1", "-oJobID"), "2.1\n")
        self.assertEqual(self.run_as("squeue", "-htall", "-j2,2", "-o%i"), "2\n")

    def test_order_and_names_of_squeue(self):
        numbers = ["squeue", "-h", "-t", "all", "-o", "%i", "-S"]
        self.assertEqual(self.run_as(*numbers, "-i").split(), ["3", "2", "1"])
        self.assertEqual(self.run_as(*numbers, "u,-i").split(), ["3", "2", "1"])
        self.assertEqual(self.run_as(*numbers, "t,-i").split(), ["1", "2", "3"])
        self.assertEqual(self.run_as(*numbers, "-M,i").split(), ["2", "3", "1"])
        self.assertIn("Invalid sort", self.run_as(*numbers, "i,?", code=1))
        # Every pair of names has an order, and that of three is no ring: numbers come first.
        for task, name in zip(self.daemon.tasks, ("1_5", "10", "2")):
            task["name"] = name
        names = ["squeue", "-h", "-t", "all", "-o", "%j", "-S"]
        self.assertEqual(self.run_as(*names, "j").split(), ["2", "10", "1_5"])
        self.assertEqual(self.run_as(*names, "-j").split(), ["1_5", "10", "2"])
        text = self.run_as("squeue", "-j2", "-O", "JobID:8,StateCompact:.4,UserName,TimeUsed:.6")
        self.assertEqual(
            text, "JOBID     STUSER                  TIME\n2          Rroot                  1:35\n"
        )
        self.assertIn("Unrecognized", self.run_as("squeue", "-j2", "-OJobID,bogus", code=1))

    def test_many_tasks_are_sorted_soon(self):
        """Four times as many take not much longer than four times as long, whatever runs beside."""

        def user_s(n):
            self.daemon.tasks = [make_task(id) for id in range(1, n + 1)]
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            ids = self.run_as("squeue", "-h", "-t", "all", "-o", "%i", "-S", "-i").split()
            self.assertEqual(ids, [str(id) for id in range(n, 0, -1)])
            return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

        self.assertLess(user_s(10000), 8 * user_s(2500))

    def test_scontrol_shows_the_node(self):
        self.daemon.gpus = [{"index": "0", "tasks": [{"id": 2}]}, {"index": "1", "tasks": []}]
        text = self.run_as("scontrol", "show", "node", HOST)
        tokens = dict(token.split("=", 1) for token in text.split() if "=" in token)
        self.assertEqual(
            [tokens[name] for name in ("NodeName", "State", "Gres", "Partitions")],
            [HOST, "MIXED", "gpu:2", "colloc"],
        )
        self.assertEqual(tokens["CPUTot"], str(os.sysconf("SC_NPROCESSORS_ONLN")))
        self.assertEqual(self.run_as("scontrol", "-o", "show", "nodes").count("\n"), 1)
        self.assertEqual(self.run_as("scontrol", "show", "node", "other", code=1), "")

    def test_accounts(self):
        # snakemake 7.21.0 (Debian 12), snakemake/executors/slurm/slurm_submit.py: test_account
        text = self.run_as("sacctmgr", "-n", "-s", "list", "user", "ada", "format=account%20")
        self.assertEqual(text, " " * 14 + "colloc \n")
        self.assertEqual(
            self.run_as("sacctmgr", "show", "user", "ada", "format=user,account%7"),
            "      User Account \n---------- ------- \n       ada  colloc \n",
        )
        self.assertEqual(
            self.run_as("sacctmgr", "-nP", "show", "assoc", "user=ada", "format=acc,u"),
            "colloc|ada\n",
        )
        self.assertIn("one account", self.run_as("sacctmgr", "add", "account", "x", code=2))
        self.assertIn(
            "Unknown field", self.run_as("sacctmgr", "list", "user", "format=odd", code=1)
        )

    def test_names_of_others_are_one_field_in_one_line(self):
        self.daemon.tasks[0]["name"] = "a\n2|COMPLETED"
        text = self.run_as("sacct", "-Pn", "-j1", "-o", "JobID,JobName")
        self.assertEqual(text, "1|a?2|COMPLETED\n")

    def test_scontrol_shows_a_job(self):
        text = self.run_as("scontrol", "show", "job", "2")
        self.assertTrue(
            text.startswith(
                "JobId=2 JobName=run\n   UserId=root(0) GroupId=root(0) MCS_label=N/A\n"
            )
        )
        self.assertIn("\n   RunTime=00:01:35 TimeLimit=UNLIMITED TimeMin=N/A\n", text)
        self.assertIn(f"\n   NodeList={HOST}\n   BatchHost={HOST}\n", text)
        waiting = self.run_as("scontrol", "show", "job", "1")
        self.assertIn("\n   RunTime=00:00:00 TimeLimit=01:30:00 TimeMin=N/A\n", waiting)
        self.assertIn("\n   StartTime=Unknown EndTime=Unknown Deadline=N/A\n", waiting)
        self.assertIn("\n   NodeList=\n   NumNodes=1", waiting)
        self.assertIn("\n   JobState=RUNNING Reason=None Dependency=(null)\n", text)
        self.assertEqual(self.run_as("scontrol", "show", "job", "-o", "2").count("\n"), 1)
        self.assertIn("Invalid job id", self.run_as("scontrol", "show", "job", "77", code=1))

    def test_sinfo_of_one_partition(self):
        self.daemon.gpus = [{"index": "0", "tasks": [{"id": 2}]}, {"index": "1", "tasks": []}]
        self.assertEqual(self.run_as("sinfo", "-h", "-o", "%P"), "colloc*\n")
        text = self.run_as("sinfo", "-ho", "\x1e%c\x1f%n\x1f%f", "-M", "colloc")
        self.assertEqual(text, f"\x1e{os.sysconf('SC_NPROCESSORS_ONLN')}\x1f{HOST}\x1f(null)\n")
        text = self.run_as("sinfo", "-o", "%9P %.5a %.10l %.6D %.6t %N|%T|%G")
        self.assertEqual(
            text,
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST|STATE|GRES\n"
            f"colloc*      up   infinite      1    mix {HOST}|mixed|gpu:2\n",
        )
        self.assertIn("Invalid node format", self.run_as("sinfo", "-o", "%i", code=1))

    def test_scontrol_updates_a_job(self):
        self.run_as("scontrol", "update", "JobId=1", "TimeLimit=60", "JobName=other")
        method, path, body = self.daemon.requests[-1]
        self.assertEqual(
            (path, body), ("/v1/tasks/1/update", {"time_limit_s": 3600, "name": "other"})
        )
        self.run_as("scontrol", "update", "job", "1", "timelimit=1-00:00:00")
        self.assertEqual(self.daemon.requests[-1][2], {"time_limit_s": 86400})
        self.assertIn("StartTime", self.run_as("scontrol", "update", "JobId=1", "Nice=3", code=2))

    def test_scontrol_shows_the_partition_and_the_configuration(self):
        text = self.run_as("scontrol", "show", "part", "-o")
        tokens = dict(token.split("=", 1) for token in text.split())
        self.assertEqual(
            (tokens["PartitionName"], tokens["AllowAccounts"], tokens["QoS"], tokens["State"]),
            ("colloc", "ALL", "N/A", "UP"),
        )
        self.assertEqual(text.count("\n"), 1)
        text = self.run_as("scontrol", "show", "config")
        self.assertRegex(text, r"(?m)^AccountingStorageType\s+= accounting_storage/slurmdbd$")

    def test_lists_of_many_ids(self):
        ids = list(range(1, 1000))
        self.daemon.tasks = [make_task(id) for id in ids]
        self.run_as("scancel", ",".join(map(str, ids)))
        sent = [
            id
            for _, path, body in self.daemon.requests
            if path.endswith("/cancel")
            for id in body["tasks"]
        ]
        self.assertEqual(sent, ids)
        self.run_as("scontrol", "hold", ",".join(map(str, ids)))
        self.assertEqual(len(self.daemon.requests[-1][2]["tasks"]), len(ids))

    def test_scancel_of_nothing(self):
        """`scancel -u $USER` ends scripts with `set -e`, also when nothing is left."""
        for words in (["-n", "nosuch"], ["-u", "root", "-n", "nosuch"], ["-t", "SUSPENDED"]):
            self.assertEqual(self.run_as("scancel", *words), "")
        self.assertNotIn("POST", [method for method, _, _ in self.daemon.requests])
        self.assertIn("77", self.run_as("scancel", "77", code=1))

    def test_states_of_scancel(self):
        self.run_as("scancel", "-t", "PD", "-u", "root")
        self.assertEqual(self.daemon.requests[-1][1], "/v1/tasks/1/cancel")
        self.assertIn("PENDING", self.run_as("scancel", "--state=odd", "-u", "root", code=2))
        self.run_as("scancel", "-s", "TERM", "2")
        self.assertEqual(self.daemon.requests[-1][1], "/v1/tasks/2/cancel")


if __name__ == "__main__":
    unittest.main()
