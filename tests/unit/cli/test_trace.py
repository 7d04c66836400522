#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""colloc trace: logs of other clusters and made-up jobs into traces that colloc simulate runs, and
bad logs.
"""

import csv
import datetime
import io
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import unittest

from cli_case import COLLOC, CliCase

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))
# pylint: disable=wrong-import-position
from colloc_bench.text import Fault  # noqa: E402
from colloc_trace import log as trace_log  # noqa: E402
from colloc_trace.formats import READERS  # noqa: E402
from colloc_trace.jobs import LENGTH_MAX_US  # noqa: E402

CATALOGUE = """task,gpus,solo_s,memory_mib,smact
short,1,60,2000,0.3
long,1,3600,4000,0.6
pair,2,1000,4000,0.5
"""

SACCT = """JobID|JobName|Submit|Elapsed|State|AllocTRES|ReqTRES
101|train|2024-03-01T10:00:00|01:00:00|COMPLETED|billing=4,gres/gpu:a100=1,gres/gpu=1,mem=16G|
101.batch|batch|2024-03-01T10:00:00|01:00:00|COMPLETED|cpu=4,gres/gpu=1|
101.extern|extern|2024-03-01T10:00:00|01:00:00|COMPLETED|billing=4,gres/gpu=1|
101.0|python|2024-03-01T10:00:00|01:00:00|COMPLETED|cpu=4,gres/gpu=1|
102_7|array|2024-03-01T09:59:00|1-02:00:00|CANCELLED by 1000|cpu=4,gres/gpu:a100=1,gres/gpu:v100=1|
103|cpu|2024-03-01T10:01:00|00:10:00|COMPLETED|cpu=4,mem=16G,node=1|cpu=4
104_[1-9%2]|waits|2024-03-01T10:02:00|00:00:00|PENDING||cpu=1,gres/gpu=1
105|runs|2024-03-01T10:02:00|00:10:00|RUNNING|gres/gpu=1|gres/gpu=1
106|never|2024-03-01T10:02:00|00:00:00|CANCELLED by 0||gres/gpu=1
107+0|het|2024-03-01T10:03:00|00:16:00|COMPLETED|cpu=1,gres/gpu=1|
107+0.batch|batch|2024-03-01T10:03:00|00:16:00|COMPLETED|cpu=1,gres/gpu=1|
107+1|het|2024-03-01T10:03:00|00:16:40|COMPLETED|cpu=1,gres/gpu=1|
108|odd|Unknown|00:16:40|COMPLETED|cpu=1,gres/gpu=1|
109|odd|2024-03-01T10:03:00|UNLIMITED|COMPLETED|cpu=1,gres/gpu=1|
110|a|b|2024-03-01T10:03:00|00:16:40|COMPLETED|cpu=1,gres/gpu=1|
111|large|2024-03-01T10:04:00|00:01:00|TIMEOUT||billing=9,gres/gpu:h100=8
"""

SWF = """; Version: 2.2
; UnixStartTime: 1000000000
; MaxProcs: 128
1 0 5 60 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1
2 100.5 5 3600 -1 -1 -1 2 -1 -1 0 1 1 -1 1 -1 -1 -1
3 200 5 -1 1 -1 -1 1 -1 -1 5 1 1 -1 1 -1 -1 -1
4 300 5 60 1 -1 -1 1 -1 -1 2 1 1 -1 1 -1 -1 -1
5 400 5 60 -1 -1 -1 -1 -1 -1 1 1 1 -1 1 -1 -1 -1
6 -1 5 60 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1
7 500 5 60 1 -1 -1 1 -1
8 600 5 70 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1
"""


HELIOS = """\
job_id,user,vc,jobname,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,\
queue
1,uA,vc1,a,1,4,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 19:41:01,3600,0
2,uB,vc1,"b, again",2,8,1,FAILED,2020-06-09 18:41:11,2020-06-09 18:42:00,2020-06-09 18:58:40,1000,49
3,uA,vc1,c,1,4,1,CANCELLED,2020-06-09 18:41:21,None,2020-06-09 18:42:21,,0
4,uA,vc1,d,0,4,1,COMPLETED,2020-06-09 18:41:31,2020-06-09 18:41:31,2020-06-09 18:42:31,60,0
5,uA,vc1,e,1,4,1,FAILED,2020-06-09 18:41:41,2020-06-09 18:41:41,,,0
6,uA,vc1,f,1,4,1,RUNNING,2020-06-09 18:41:51,2020-06-09 18:41:51,,100,0
7,,vc1,g,1,4,1,NODE_FAIL,2020-06-09 18:42:01,2020-06-09 18:42:01,2020-06-09 18:43:01,,0
8,uA,vc1,h,half,4,1,COMPLETED,2020-06-09 18:42:11,2020-06-09 18:42:11,2020-06-09 18:43:11,60,0
9,uA,vc1,i,1,4,1,COMPLETED,soon,2020-06-09 18:42:11,2020-06-09 18:43:11,60,0
10,uA,vc1,j,1.5,4,1,COMPLETED,2020-06-09 18:42:11,2020-06-09 18:42:11,2020-06-09 18:43:11,60,0
11,uA,vc1,k,1,4,1,COMPLETED,2020-06-09 18:42:11,2020-06-09 18:43:11,2020-06-09 18:42:11,,0
12,uA,vc1,l
"""

PAI_HEADER = (
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
)
# In order: a quarter of a GPU; two tasks of one job apart from each other, one without GPUs; eight
# GPUs; a failed task without an end; one that waits; one that never started; no GPU; mistakes.
PAI_TASKS = """quarter,tensorflow,1.0,Terminated,1000.0,1060.0,600.0,29.29,25.0,MISC
halves,worker,3.0,Terminated,2000.0,2900.0,400.0,29.29,50.0,V100
halves,ps,1.0,Terminated,1990.0,5000.0,400.0,29.29,,
eight,worker,1.0,Failed,3000.0,3060.0,400.0,29.29,800.0,V100
failed,worker,1.0,Failed,3000.0,,400.0,29.29,100.0,V100
waits,worker,1.0,Waiting,,,400.0,29.29,100.0,V100
never,worker,1.0,Failed,0.0,0.0,400.0,29.29,100.0,V100
cpu,worker,9.0,Terminated,3000.0,3060.0,400.0,29.29,0.0,MISC
halves,chief,1.0,Terminated,2010.0,3000.0,400.0,29.29,50.0,V100
odd,worker,1.0,Terminated,3000.0,2000.0,400.0,29.29,100.0,V100
odd,worker,many,Terminated,3000.0,4000.0,400.0,29.29,100.0,V100
,worker,1.0,Terminated,3000.0,4000.0,400.0,29.29,100.0,V100
short,worker
"""
PAI_JOBS = """eight,i8,u8,Failed,2500.0,3060.0
quarter,i1,u1,Terminated,940.0,1060.0
unknown,i0,u0,Terminated,1.0,2.0
halves,i2,u8,Terminated,,3000.0
broken
"""

ACME = """\
job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,\
start_time,end_time,fail_time,stop_time,duration,queue,gpu_time
a,uA,1,1,16,100,10.0,Evaluation,COMPLETED,2023-05-17 11:00:00+00:00,2023-05-17 11:10:00+00:00,\
2023-05-17 11:11:00+00:00,,,660,600.0,660.0
b,uB,1,2,16,100,10.0,Pretrain,FAILED,2023-05-17 12:00:00+01:00,2023-05-17 12:00:10+01:00,\
2023-05-17 12:16:50+01:00,,,1010,10.0,2020.0
c,uA,1,1,16,100,10.0,Other,CANCELLED,2023-05-17 11:02:00+00:00,,2023-05-17 11:03:00+00:00,,,0,60.0,0
d,uA,1,1,16,100,10.0,Other,FAILED,2023-05-17 11:03:00+00:00,2023-05-17 11:05:00+00:00,\
2023-05-17 11:04:00+00:00,,,60,60.0,0
e,uA,0,0,16,100,10.0,Other,COMPLETED,2023-05-17 11:03:00+00:00,2023-05-17 11:05:00+00:00,\
2023-05-17 11:06:00+00:00,,,60,60.0,0
"""

SPOT = """\
job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
1,13,A10,20,1,1,0,60,HP
2,57,A100-SXM4-80GB,15,1,2,10,1000,Spot
3,57,A10,15,0.5,3,20,1000,Spot
4,57,A10,15,1,1,30,nan,Spot
5,57,A10,15,-1,1,40,60,Spot
6,57,A10,15,1,1,-50,60,Spot
7,57,A10,15,0,1,60,60,Spot
"""

PODS_2023 = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
scheduled_time
a,12000,16384,1,1000,,LS,Running,0,70,10
b,6000,12288,1,460,,LS,Failed,100,1100,100
c,6000,12288,2,1000,V100M16|V100M32,BE,Succeeded,200,1200,200
d,6000,12288,0,0,,LS,Running,300,400,300
e,6000,12288,1,460,,LS,Pending,400,500,
f,6000,12288,1,460,,LS,Failed,400,390,395
g,6000,12288,1,460,,LS,Failed,400,NaN,400
h,6000,12288,1,1500,,LS,Failed,400,500,400
i,6000,12288,1,460,,LS,Failed,soon,500,400
"""

PODS_2025 = """\
instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,creation_time,\
scheduled_time,deletion_time
i0,HN,app_0,12,12,1,1,,,60.0
i1,HN,app_1,12,12,2,2,100.0,120.0,1120.0
i2,CN,app_2,64,64,0,0,100.0,100.0,200.0
i3,HN,app_0,12,12,1,1,100.0,100.0,
i4,HN,app_0,12,12,1,1,,,NaN
i5,HN,app_0,12,12,1,1,100.0,90.0,200.0
"""

# p1: half an hour, then a whole one, on two GPUs. p2: half of a GPU, measured once. p3: waits for
# an hour. p4: nothing measured. p5: no GPU. Then mistakes: no id, no such hour, activity below 0.
PODS_2026 = """\
pod_id,priority_class,state_public,gpu_request,used_gpu_hours,avg_gpu_sm_util,avg_gpu_mem_gib,day,\
hour
p1,HP,Running,2.0,1.0,90.0,60.0,109,07
p4,LP,Running,1.0,,NaN,null,109,07
p2,LP,Running,0.5,0.5,30.0,,109,06
p3,LP,Pending,1.0,0.0,0.0,0.0,109,06
p2,LP,Failed,0.5,0.25,nan,10.0,109,07
p1,HP,Running,2.0,2.0,130.0,64.0,109,08
p3,LP,Running,1.0,1.0,250.0,20.0,109,07
p5,LP,Running,0.0,0.0,0.0,0.0,109,07
,LP,Running,1.0,1.0,10.0,1.0,109,07
p6,LP,Running,1.0,1.0,10.0,1.0,109,24
p7,LP,Running,1.0,1.0,-10.0,1.0,109,07
"""
SUMMARY_2026 = """\
pod_id,workload_id,duration_hours,schedule_delay_sec
p2,w1,3.0,600
p9,w1,3.0,600
p1,,,
"""


def philly_job(submitted, *attempts, number=1):
    return {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": f"application_{number}",
        "user": "ce2f4c",
        "submitted_time": submitted,
        "attempts": [
            {
                "start_time": start,
                "end_time": end,
                "detail": [{"ip": "m1", "gpus": [f"gpu{i}" for i in range(gpus)]}],
            }
            for start, end, gpus in attempts
        ],
    }


PHILLY = [
    philly_job("2017-10-07 02:00:00", ("2017-10-07 02:10:00", "2017-10-07 02:11:00", 1)),
    philly_job(
        "2017-10-07 01:11:39",
        ("2017-10-07 01:12:00", "2017-10-07 01:22:00", 2),
        ("2017-10-07 02:00:00", "2017-10-07 02:06:40", 2),
    ),
    philly_job("2017-10-07 03:00:00"),
    philly_job("2017-10-07 03:00:00", ("2017-10-07 03:00:00", None, 1)),
    philly_job("2017-10-07 03:00:00", ("2017-10-07 03:00:00", "None", 1)),
    philly_job(
        "2017-10-07 03:00:00",
        (None, "2017-10-07 04:00:00", 1),
        ("2017-10-07 05:00:00", "2017-10-07 06:00:00", 1),
    ),
    philly_job("2017-10-07 03:00:00", ("2017-10-07 05:00:00", "2017-10-07 04:00:00", 1)),
    {"status": "Pass"},
]


class TraceCase(CliCase):
    def setUp(self):
        super().setUp()
        self.tasks = self.write("catalogue.csv", CATALOGUE)

    def trace(self, text, *words, code=0):
        """The rows that `trace import` writes, and what it says."""
        done = self.run_colloc(
            "trace", "import", *words, "--tasks", self.tasks, self.write("log", text)
        )
        self.assertEqual(done.returncode, code, done.stderr)
        said = done.stderr.replace(self.folder + "/", "").replace("colloc: ", "")
        rows = csv.DictReader(io.StringIO(done.stdout))
        return [(row["submit_s"], row["task"]) for row in rows], said

    def users(self, text, *words):
        """The column user that `trace import` writes, or None where there is none."""
        done = self.run_colloc(
            "trace", "import", *words, "--tasks", self.tasks, self.write("log", text)
        )
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        return [row["user"] for row in rows] if "user" in rows[0] else None

    def refusal(self, text, *words):
        return self.complaint("trace", "import", *words, self.write("log", text), code=2).replace(
            self.folder + "/", ""
        )


class Users(TraceCase):
    def test_a_log_without_users_makes_no_column(self):
        self.assertIsNone(self.users(SACCT, "--from=sacct"))

    def test_sacct(self):
        log = (
            "JobID|User|Submit|Elapsed|AllocTRES\n"
            "7|ada|2024-03-01T10:00:00|00:01:01|gres/gpu=1\n"
            "8||2024-03-01T10:00:01|00:01:01|gres/gpu=1\n"
            "9|bo,b|2024-03-01T10:00:02|00:01:01|gres/gpu=1\n"
            "10|ada|2024-03-01T10:00:03|00:01:01|gres/gpu=1\n"
        )
        self.assertEqual(self.users(log, "--from=sacct"), ["ada", "", "bo,b", "ada"])

    def test_philly(self):
        jobs = [
            dict(philly_job("2017-10-07 02:00:00", ("2017-10-07 02:10:00", None, 1)), user=user)
            for user in ("ce2f4c", 7)
        ]
        for job in jobs:
            job["attempts"][0]["end_time"] = "2017-10-07 02:11:00"
        self.assertEqual(self.users(json.dumps(jobs), "--from=philly"), ["ce2f4c", ""])

    def test_swf(self):
        line = "1 0 5 60 1 -1 -1 1 -1 -1 1 {} 1 -1 1 -1 -1 -1\n"
        self.assertEqual(
            self.users("".join(line.format(user) for user in (12, -1, 12)), "--from=swf"),
            ["u12", "", "u12"],
        )


class Import(TraceCase):
    def test_sacct(self):
        rows, said = self.trace(SACCT, "--from=sacct")
        self.assertEqual(rows, [("0", "pair"), ("60", "long"), ("240", "pair"), ("300", "pair")])
        self.assertEqual(
            said.splitlines(),
            [
                'log:14: Submit is "Unknown": YYYY-MM-DDTHH:MM:SS is needed (the first invalid '
                "job)",
                "1 jobs became tasks with another number of GPUs, because the catalogue has none "
                "with theirs",
                "log: 11 jobs read, 4 kept",
                "  skipped: 3 not understood",
                "  skipped: 2 had not ended",
                "  skipped: 1 never ran",
                "  skipped: 1 without GPUs",
                "memory and activity of the jobs are not in the log: they are those of tasks of "
                "the catalogue",
            ],
        )
        shown, said = self.trace(SACCT)  # the first line shows the format
        self.assertEqual(shown, rows)
        self.assertEqual(
            said.splitlines()[0], "log: read as --from=sacct, which its first line shows"
        )
        self.assertEqual(self.trace(SWF)[0], self.trace(SWF, "--from=swf")[0])
        self.assertEqual(
            self.trace(json.dumps(PHILLY))[0], self.trace(json.dumps(PHILLY), "--from=philly")[0]
        )

    def test_own_lengths(self):
        out = self.folder + "/tasks.csv"
        rows, _ = self.trace(SACCT, "--from=sacct", "--tasks-out", out)
        self.assertEqual(rows, [("0", "j1"), ("60", "j2"), ("240", "j3"), ("300", "j4")])
        with open(out, encoding="utf-8") as file:
            tasks = [(row["task"], row["gpus"], row["solo_s"]) for row in csv.DictReader(file)]
        self.assertEqual(
            tasks,
            [("j1", "2", "93600"), ("j2", "1", "3600"), ("j3", "2", "1000"), ("j4", "8", "60")],
        )

    def test_what_a_catalogue_leaves_out_stays_unknown(self):
        out = self.folder + "/tasks.csv"
        self.tasks = self.write("catalogue.csv", "task,gpus,solo_s,memory_mib\na,1,60,2000\n")
        self.trace(SWF, "--from=swf", "--tasks-out", out)
        with open(out, encoding="utf-8") as file:
            self.assertEqual(
                [(row["memory_mib"], row["smact"]) for row in csv.DictReader(file)],
                [("2000", "")] * 3,
            )

    def test_sacct_with_other_columns(self):
        text = (
            "JobIDRaw|ElapsedRaw|Submit|AllocGRES\n7|61|2024-03-01T10:00:00|gpu:2\n8|3600|"
            "2024-03-01T10:00:01|gpu:a100:1\n"
        )
        self.assertEqual(self.trace(text, "--from=sacct")[0], [("0", "pair"), ("1", "long")])

    def test_sacct_with_a_long_list_of_resources(self):
        licences = "".join(f"license/some-compiler-{i}=1," for i in range(60))
        text = (
            "JobID|Submit|Elapsed|AllocTRES\n7|2024-03-01T10:00:00|00:01:01|billing=8,"
            f"{licences}gres/gpu=2\n"
        )
        self.assertEqual(self.trace(text, "--from=sacct")[0], [("0", "pair")])

    def test_sacct_with_parts_of_gpus(self):
        """Jobs that colloc shares GPUs of have shards; instances of MIG are parts of a GPU."""
        head = "JobID|Submit|Elapsed|AllocTRES\n"
        for tres, gpus in (
            ("cpu=1,gres/shard=57", "1"),
            ("cpu=1,gres/shard:i0=57,gres/shard:i3=57,gres/shard=114", "2"),
            ("gres/shard=160", "2"),
            ("gres/gpu:1g.10gb=1,gres/gpu=1", "1"),
            ("gres/gpu:nvidia_a100_80gb_pcie_3g.40gb=1,gres/gpu=1", "1"),
            ("gres/gpu:a100=2,gres/gpu=2,gres/gpumem=0,gres/gpuutil=0", "2"),
        ):
            out = self.folder + "/tasks.csv"
            self.trace(
                f"{head}7|2024-03-01T10:00:00|01:00:00|{tres}\n", "--from=sacct", "--tasks-out", out
            )
            with open(out, encoding="utf-8") as file:
                self.assertEqual([row["gpus"] for row in csv.DictReader(file)], [gpus], tres)

    def test_shards_are_memory(self):
        text = (
            "JobID|Submit|Elapsed|AllocTRES\n"
            "7|2024-03-01T10:00:00|01:00:00|gres/shard=57\n"
            "8|2024-03-01T10:00:00|01:00:00|gres/shard=160\n"
            "9|2024-03-01T10:00:00|01:00:00|gres/gpu:1g.10gb=1,gres/gpu=1\n"
        )
        out = self.folder + "/tasks.csv"
        for options, memory in (((), "29184"), (("--gpu-memory=80GiB",), "58368")):
            self.trace(text, "--from=sacct", "--tasks-out", out, *options)
            with open(out, encoding="utf-8") as file:
                shards, two, instance = csv.DictReader(file)
            self.assertEqual(shards["memory_mib"], memory)
            self.assertEqual(int(two["memory_mib"]), round(int(memory) * 80 / 57))
            # The part is of the memory: the activity is that of a task of the catalogue.
            self.assertNotEqual(shards["smact"], "0.7125")
            self.assertNotEqual(instance["memory_mib"], memory)
            self.assertAlmostEqual(float(instance["smact"]), 1 / 7, places=4)

    def test_sacct_counts_parts_apart(self):
        head = "JobID|Submit|Elapsed|AllocTRES\n"
        job = "{}|2024-03-01T10:00:00|01:00:00|{}\n"
        text = head + "".join(
            job.format(7 + i, tres)
            for i, tres in enumerate(
                (
                    "gres/gpu:nvidia_a100_80gb_pcie_1g.10gb=2,gres/gpu=2",
                    "gres/gpu:7g.80gb=1,gres/gpu=1",
                    "gres/shard=40",
                    "gres/gpu:a100=1,gres/gpu=1",
                )
            )
        )
        said = self.trace(text)[1]
        self.assertIn("  2 had instances of MIG: each is its compute slices of 7, not a GPU", said)
        self.assertIn("  1 requested parts of GPUs that others may share", said)
        info = json.loads(self.colloc("trace", "info", "--json", self.write("log", text)))
        self.assertAlmostEqual(info["gpu_hours"], 2 / 7 + 1 + 0.5 + 1, places=4)
        self.assertNotIn("MIG", self.trace(SACCT)[1])

    def test_components_of_a_job_add_up_parts(self):
        text = (
            "JobID|Submit|Elapsed|AllocTRES\n"
            "7+0|2024-03-01T10:00:00|01:00:00|gres/shard=40\n"
            "7+1|2024-03-01T10:00:00|01:00:00|gres/gpu=1\n"
        )
        info = json.loads(self.colloc("trace", "info", "--json", self.write("log", text)))
        self.assertAlmostEqual(info["gpu_hours"], 1.5, places=4)

    def test_sacct_without_parsable2(self):
        text = (
            "JobID        Submit              Elapsed    AllocTRES\n"
            "------------ ------------------- ---------- ----------\n"
            "7            2024-03-01T10:00:00 00:01:01   billing=1+\n"
        )
        self.assertIn("run sacct again with --parsable2", self.refusal(text, "--from=sacct"))

    def test_helios_with_zones(self):
        text = (
            "job_id,user,gpu_num,state,submit_time,start_time,end_time,duration\n"
            "a,u,2,COMPLETED,2023-05-17 11:00:00+00:00,2023-05-17 11:01:00+00:00,"
            "2023-05-17 11:02:01+00:00,\n"
        )
        self.assertEqual(self.trace(text, "--from=helios")[0], [("0", "pair")])

    def test_swf(self):
        rows, said = self.trace(SWF, "--from=swf")
        self.assertEqual(rows, [("0", "short"), ("100.5", "pair"), ("600", "short")])
        self.assertIn(
            "log:9: the submit time, the run time or the number of processors cannot be", said
        )
        for words in ["7 jobs read, 3 kept", "2 not understood", "1 never ran", "1 without GPUs"]:
            self.assertIn(words, said)
        self.assertEqual(
            self.trace(SWF, "--from=swf", "--processors-per-gpu=2")[0][1], ("100.5", "long")
        )
        self.assertEqual(
            self.trace(SWF, "--from=swf", "--from-time=2001-09-09 01:49:00")[0], [("0", "short")]
        )

    def test_philly(self):
        rows, said = self.trace(json.dumps(PHILLY, indent=2), "--from=philly")
        self.assertEqual(rows, [("0", "pair"), ("2901", "short"), ("6501", "long")])
        for words in ["8 jobs read, 3 kept", "2 not understood", "2 had not ended", "1 never ran"]:
            self.assertIn(words, said)

    def test_philly_that_ran_longer_than_64_bits_of_microseconds(self):
        longest, all_s = ("1970-01-01 00:00:00", "2199-12-31 23:59:59", 1), 2**64 // 10**6 + 61
        n, rest = divmod(all_s, 7258118399)  # together one minute, if they wrapped round
        last = str(datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=rest))
        job = philly_job("2017-10-07 01:00:00", *[longest] * n, ("1970-01-01 00:00:00", last, 1))
        rows, said = self.trace(json.dumps([job, *PHILLY[:1]]), "--from=philly")
        self.assertEqual(len(rows), 1)
        self.assertIn("1 not understood", said)

    def test_helios(self):
        rows, said = self.trace(HELIOS, "--from=helios")
        self.assertEqual(rows, [("0", "long"), ("10", "pair"), ("60", "short")])
        self.assertIn('log:9: gpu_num is "half", which is not a number', said)
        for words in [
            "12 jobs read, 3 kept",
            "5 not understood",
            "2 had not ended",
            "1 never ran",
            "1 without GPUs",
        ]:
            self.assertIn(words, said)
        self.assertEqual(self.users(HELIOS, "--from=helios"), ["uA", "uB", ""])

    def test_helios_with_other_columns(self):
        text = (
            "start_time,end_time,gpu_num,submit_time\n"
            "2020-06-09 18:00:00,2020-06-09 18:16:40,2,2020-06-09 17:00:00\n"
        )
        self.assertEqual(self.trace(text, "--from=helios")[0], [("0", "pair")])

    def test_alibaba(self):
        for text in (PAI_TASKS, PAI_HEADER + PAI_TASKS):
            rows, said = self.trace(text, "--from=alibaba")
            self.assertEqual(rows, [("0", "short"), ("1000", "pair"), ("2000", "pair")])
            line = 10 + text.startswith("job_name")
            self.assertIn(f"log:{line}: end_time is before start_time", said)
            for words in [
                "10 jobs read, 3 kept",
                "3 not understood",
                "2 had not ended",
                "1 never ran",
                "1 without GPUs",
            ]:
                self.assertIn(words, said)

    def test_alibaba_submissions_and_users(self):
        jobs = "--job-table=" + self.write("jobs", PAI_JOBS)
        rows, said = self.trace(PAI_TASKS, "--from=alibaba", jobs, "--keep-partial")
        self.assertEqual(rows, [("0", "short"), ("1060", "pair"), ("1560", "pair")])
        self.assertIn("10 jobs read, 3 kept", said)
        self.assertEqual(
            self.users(PAI_TASKS, "--from=alibaba", jobs, "--keep-partial"), ["u1", "u8", "u8"]
        )

    def test_a_part_of_a_gpu_is_its_activity(self):
        out = self.folder + "/tasks.csv"
        self.trace(PAI_TASKS, "--from=alibaba", "--tasks-out", out)
        with open(out, encoding="utf-8") as file:
            tasks = list(csv.DictReader(file))
        self.assertEqual(
            [(row["gpus"], row["solo_s"], row["smact"]) for row in tasks],
            [("1", "60", "0.25"), ("2", "1000", "0.5"), ("8", "60", "0.5")],
        )
        self.assertEqual([row["dram"] for row in tasks[:1]], [""])
        log = self.write("log", "a,w,1.0,Terminated,10,3610,1,1,25.0,V100\n" * 2)
        said = json.loads(self.colloc("trace", "info", "--from=alibaba", "--json", log))
        self.assertEqual(said["gpu_hours"], 0.5)

    def test_a_trace_of_shared_gpus_is_simulated(self):
        tasks, trace = self.folder + "/tasks.csv", self.folder + "/T.csv"
        log = "".join(f"j{i},w,1,Terminated,{i},{i + 3600},1,1,25.0,V100\n" for i in range(1, 5))
        self.trace(log, "--from=alibaba", "--tasks-out", tasks, "-o", trace)
        result = json.loads(
            self.colloc(
                "simulate", "--trace", trace, "--tasks", tasks, "--json", "--policy=magm",
                "--sharing=mps", "--gpus=1xA100-40GB",
            )
        )  # fmt: skip
        self.assertEqual(result["completed"], 4)
        self.assertLess(result["total_s"], 2 * 3600)  # together, not one after the other

    def test_selection(self):
        log = json.dumps(PHILLY)
        self.assertEqual(
            self.trace(log, "--from=philly", "--gpus=1")[0], [("0", "short"), ("3600", "long")]
        )
        self.assertEqual(
            self.trace(log, "--from=philly", "--gpus=1xA100-40GB")[0],
            [("0", "short"), ("3600", "long")],
        )
        self.assertEqual(
            self.trace(log, "--from=philly", "--from-time=2017-10-07 01:30", "--window=1h")[0],
            [("0", "short")],
        )
        self.assertEqual(self.trace(log, "--from=philly", "--from-time=1h")[0], [("0", "long")])
        self.assertEqual(
            self.trace(log, "--from=philly", "--jobs=2", "--arrival-scale=0.1")[0],
            [("0", "pair"), ("290.1", "short")],
        )

    def test_standard_input_and_files(self):
        out = self.folder + "/T.csv"
        done = self.run_colloc(
            "trace",
            "import",
            "--from=swf",
            "--tasks",
            self.tasks,
            "-o",
            out,
            "--json",
            "-",
            stdin=SWF,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            json.loads(done.stdout),
            {
                "read": 7,
                "kept": 3,
                "left_out": {"not understood": 2, "never ran": 1, "without GPUs": 1},
            },
        )
        result = json.loads(
            self.colloc("simulate", "--trace", out, "--tasks", self.tasks, "--json")
        )
        self.assertEqual(result["completed"], 3)


class BrokenLogs(TraceCase):
    def test_philly_that_breaks_off(self):
        log = json.dumps(PHILLY, indent=2)
        log = log[: log.index("application_1", log.index("application_1") + 20)]
        line = log.count("\n") + 1
        complaint = self.refusal(log, "--from=philly")
        self.assertRegex(
            complaint,
            rf"^log:{line}: the log breaks off within job 2, which begins in line \d+: "
            "use the 1 jobs before that with --keep-partial$",
        )
        rows, said = self.trace(log, "--from=philly", "--keep-partial")
        self.assertEqual(rows, [("0", "short")])
        self.assertIn(f"log:{line}: the log breaks off", said)

    def test_other_logs_that_break_off(self):
        cut = SWF[: SWF.rindex(" 70 1")]
        self.assertEqual(
            self.refusal(cut, "--from=swf"),
            "the log breaks off: log:11: a job must have 18 fields: use the 2 jobs before that "
            "with --keep-partial",
        )
        self.assertIn(
            "the log breaks off: log:17: 3 fields, where the first line names 7 columns: use the ",
            self.refusal(SACCT[: SACCT.index("2024-03-01T10:04:00") + 7], "--from=sacct"),
        )
        self.assertEqual(len(self.trace(cut, "--from=swf", "--keep-partial")[0]), 2)

    def test_tables_that_break_off(self):
        cut = HELIOS[: HELIOS.index("7,,vc1") + 20]
        self.assertEqual(
            self.refusal(cut, "--from=helios"),
            "the log breaks off: log:8: 8 fields, where the first line names 13 columns: use the "
            "2 jobs before that with --keep-partial",
        )
        cut = PAI_TASKS[: PAI_TASKS.index("eight") + 20]
        self.assertEqual(
            self.refusal(cut, "--from=alibaba"),
            "the log breaks off: log:4: 4 fields, where such a table has 10 columns: use the "
            "2 jobs before that with --keep-partial",
        )
        self.assertEqual(len(self.trace(cut, "--from=alibaba", "--keep-partial")[0]), 2)

    def test_no_logs(self):
        for log, form, complaint in [
            ("", "philly", 'log:1: the list of jobs must begin with "["'),
            ('{"a": 1}', "philly", 'log:1: the list of jobs must begin with "["'),
            ("[]", "philly", "log: of 0 jobs, none ran on a GPU and ended"),
            (
                "",
                "sacct",
                "log: the file is empty: a line with the names of the columns is missing",
            ),
            (
                "JobID|State\n",
                "sacct",
                "log:1: the first line must name JobID, Submit, Elapsed and AllocTRES or ReqTRES: "
                "sacct --allusers --parsable2 --format=JobID,User,Submit,Elapsed,State,AllocTRES,"
                "ReqTRES --starttime=...",
            ),
            ("; nothing\n", "swf", "log: of 0 jobs, none ran on a GPU and ended"),
            ("x" * 70000 + "\n", "swf", "log:1: the line is too long, or binary"),
            (
                "job_id,gpu_num,duration\n1,1,60\n",
                "helios",
                "log:1: the first line must name submit_time, gpu_num, and duration or start_time "
                "and end_time, as that of Helios' cluster_log.csv does",
            ),
            ("", "alibaba", "log: of 0 jobs, none ran on a GPU and ended"),
            (
                "job_name,status,start_time,end_time\n",
                "alibaba",
                "log:1: the first line names no plan_gpu: the table must have the columns of "
                "pai_task_table.header, or no such line",
            ),
        ]:
            with self.subTest(log[:30], form=form):
                self.assertEqual(self.refusal(log, f"--from={form}"), complaint)

    def test_nothing_left(self):
        self.assertEqual(
            self.refusal(json.dumps(PHILLY[:6]), "--from=philly", "--from-time=2018-01-01"),
            "log: no job matches the options: its jobs were submitted from 2017-10-07 01:11:39 to "
            "2017-10-07 03:00:00",
        )

    def test_large_logs_take_no_more_memory(self):
        """A log of 64 MB in 56 MB beyond what the program takes by itself, and where it breaks."""
        job = json.dumps(
            philly_job(
                "2017-10-07 02:00:00", *[("2017-10-07 02:10:00", "2017-10-07 02:11:00", 8)] * 100
            )
        )
        log = self.folder + "/large"
        jobs = (64 << 20) // len(job)
        with open(log, "w", encoding="utf-8") as file:
            file.write("[" + (job + ",\n") * jobs + job[:500])
        limit = (56 << 20) + self.address_space()
        done = subprocess.run(
            [COLLOC, "trace", "import", "--from=philly", log],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertIn(
            f"large:{jobs + 1}: the log breaks off within job {jobs + 1}, which begins in line "
            f"{jobs + 1}",
            done.stderr,
        )

    def address_space(self):
        """What the program takes to say its version, to 4 MiB; a sanitizer's shadow is beyond any
        limit.
        """
        for limit in range(4 << 20, 256 << 20, 4 << 20):
            done = subprocess.run(
                [COLLOC, "version"],
                capture_output=True,
                check=False,
                preexec_fn=lambda most=limit: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
            )
            if done.returncode == 0:
                return limit
        return self.skipTest("a sanitizer needs more address space than can be limited")


class Public(TraceCase):
    """Logs of Acme and of four clusters of Alibaba, in their columns."""

    def catalogue(self, text, *words):
        """The tasks that `trace import --tasks-out` writes, their submissions, and what it says."""
        out = self.folder + "/tasks.csv"
        rows, said = self.trace(text, "--tasks-out", out, *words)
        with open(out, encoding="utf-8") as file:
            return [row for row in csv.DictReader(file)], [row[0] for row in rows], said

    def assert_said(self, said, *parts):
        for part in parts:
            self.assertIn(part, said)

    def test_acme(self):
        rows, said = self.trace(ACME)
        # The duration of `a` counts from its submission: it ran for one minute.
        self.assertEqual(rows, [("0", "short"), ("0", "pair")])
        self.assert_said(
            said,
            "log: read as --from=acme, which its first line shows",
            "5 jobs read, 2 kept",
            "1 not understood",
            "1 never ran",
            "1 without GPUs",
            "a job of 1 GPUs and -60 s cannot be",
        )
        self.assertEqual(self.users(ACME), ["uA", "uB"])
        self.assertEqual(self.trace(ACME, "--where=type=Pretrain")[0], [("0", "pair")])

    def test_acme_of_slurm_without_times(self):
        text = "gpu_num,submit_time,duration,gpu_time\n2,2023-03-01 00:18:22+08:00,1000,2000.0\n"
        self.assertEqual(self.trace(text)[0], [("0", "pair")])

    def test_spot(self):
        tasks, times, said = self.catalogue(SPOT)
        self.assertEqual(times, ["0", "10", "20"])
        self.assertEqual(
            [(task["gpus"], task["solo_s"]) for task in tasks],
            [("1", "60"), ("2", "1000"), ("2", "1000")],
        )
        self.assertEqual(tasks[2]["smact"], "0.75")  # three halves on two GPUs
        self.assert_said(
            said,
            "read as --from=alibaba-spot",
            "7 jobs read, 3 kept",
            "3 not understood",
            "1 without GPUs",
            "log:5: the job lacks gpu_request, worker_num, submit_time or duration",
        )
        self.assertEqual(self.users(SPOT), ["13", "57", "57"])
        said = self.trace(SPOT, "--where=job_type=HP")
        self.assertEqual(said[0], [("0", "short")])
        self.assertIn("6 with other values than --where", said[1])

    def test_pods_of_2023(self):
        tasks, times, said = self.catalogue(PODS_2023)
        self.assertEqual(times, ["0", "100", "200"])
        self.assertEqual(
            [(task["gpus"], task["solo_s"]) for task in tasks],
            [("1", "60"), ("1", "1000"), ("2", "1000")],
        )
        self.assertEqual(tasks[1]["smact"], "0.46")
        self.assert_said(
            said,
            "read as --from=alibaba-2023",
            "requested in the log: the SM activity of 1 and the memory of 0 of 3 jobs",
            "9 jobs read, 3 kept",
            "3 not understood",
            "1 had not ended",
            "1 never ran",
            "1 without GPUs",
            "log:7: scheduled_time is before creation_time",
        )

    def test_instances_of_2025(self):
        tasks, times, said = self.catalogue(PODS_2025)
        self.assertEqual(times, ["0", "100"])
        self.assertEqual(
            [(task["gpus"], task["solo_s"]) for task in tasks], [("1", "60"), ("2", "1000")]
        )
        self.assert_said(
            said,
            "read as --from=alibaba-2025",
            "6 jobs read, 2 kept",
            "1 not understood",
            "2 had not ended",
            "1 without GPUs",
        )
        self.assertEqual(self.users(PODS_2025), ["app_0", "app_1"])

    def test_measured_pods_of_2026(self):
        tasks, times, said = self.catalogue(PODS_2026)
        # In order of submission: p2 from 6:00, p4 from 7:00, p3 from 7:00, p1 from 7:30.
        self.assertEqual(times, ["0", "3600", "3600", "5400"])
        by = dict(zip(("p2", "p4", "p3", "p1"), tasks))
        self.assertEqual((by["p1"]["gpus"], by["p1"]["solo_s"]), ("2", "5400"))
        self.assertAlmostEqual(float(by["p1"]["smact"]), (45 * 0.5 + 65) / 1.5 / 100, places=5)
        self.assertEqual(by["p1"]["memory_mib"], str(32 * 1024))
        self.assertEqual((by["p2"]["solo_s"], by["p2"]["smact"]), ("5400", "0.3"))
        self.assertEqual(by["p2"]["memory_mib"], str(10 * 1024))
        self.assertEqual((by["p3"]["solo_s"], by["p3"]["smact"]), ("3600", "1"))
        # Nothing was measured: a task of the catalogue says it, never 0.
        self.assertIn(
            (by["p4"]["memory_mib"], by["p4"]["smact"]), (("2000", "0.3"), ("4000", "0.6"))
        )
        self.assertEqual(by["p1"]["dram"], "")
        self.assert_said(
            said,
            "read as --from=alibaba-2026",
            "8 jobs read, 4 kept",
            "3 not understood",
            "1 without GPUs",
            "log:10: an hour of a pod has a day, an hour and a pod_id",
            "measured in the log: the SM activity of 3 and the memory of 3 of 4 jobs",
        )
        self.assertIn("which --tasks-out=FILE uses", self.trace(PODS_2026)[1])

    def test_where_in_its_hour_a_short_pod_began_is_drawn(self):
        row = "{},1,0.1,50,10,1,00\n"
        text = "pod_id,gpu_request,used_gpu_hours,avg_gpu_sm_util,avg_gpu_mem_gib,day,hour\n"
        text += "".join(row.format(f"p{i}") for i in range(20))
        one, same, other = (self.trace(text, f"--seed={seed}")[0] for seed in (1, 1, 2))
        self.assertEqual(one, same)
        self.assertNotEqual(one, other)
        self.assertLess(max(float(time) for time, _ in one), 0.9 * 3600)

    def test_summary_of_2026(self):
        summary = "--job-table=" + self.write("summary", SUMMARY_2026)
        tasks, times, _ = self.catalogue(PODS_2026, summary)
        self.assertEqual(tasks[0]["solo_s"], "10800")  # p2
        self.assertEqual(times, ["0", "4200", "4200", "6000"])  # it was submitted 600 s earlier
        self.assertIn(
            "the first line names no duration_hours",
            self.refusal(PODS_2026, "--job-table=" + self.write("wrong", "pod_id,x\np1,2\n")),
        )

    def test_measured_pods_are_simulated(self):
        tasks, trace = self.folder + "/tasks.csv", self.folder + "/T.csv"
        head = "pod_id,gpu_request,used_gpu_hours,avg_gpu_sm_util,avg_gpu_mem_gib,day,hour\n"
        totals = []
        for sm_util in (20, 95):
            rows = "".join(f"p{i},1,1,{sm_util},9,1,00\n" for i in range(4))
            self.trace(head + rows, "--tasks-out", tasks, "-o", trace)
            words = ("--policy=magm", "--sharing=mps", "--gpus=1xA100-40GB", "--json")
            result = json.loads(self.colloc("simulate", "--trace", trace, "--tasks", tasks, *words))
            self.assertEqual(result["completed"], 4)
            totals.append(result["total_s"])
        self.assertLess(totals[0], 1.5 * 3600)  # four share the GPU
        self.assertGreater(totals[1], 3 * 3600)  # each fills it

    def test_missing_columns(self):
        for text, form in (
            (SPOT, "alibaba-spot"),
            (PODS_2023, "alibaba-2023"),
            (PODS_2025, "alibaba-2025"),
            (PODS_2026, "alibaba-2026"),
        ):
            with self.subTest(form=form):
                self.assertRegex(
                    self.refusal("a,b\n1,2\n", f"--from={form}"), "^log:1: the first line names no "
                )
                self.assertIn("the file is empty", self.refusal("", f"--from={form}"))
                cut = text[: text.index("\n", text.index("\n", 150) + 1) + 3]
                self.assertIn("breaks off", self.refusal(cut, f"--from={form}"))

    def test_where_that_cannot_be(self):
        for text, form, where, complaint in (
            (SPOT, "alibaba-spot", "type=HP", "--where=type: the first line names no such column"),
            (SPOT, "alibaba-spot", "HP", "--where=HP: give COLUMN=VALUE, such as job_type=HP"),
            (SWF, "swf", "a=b", "--where: a log of swf has no names of columns"),
        ):
            self.assertIn(complaint, self.refusal(text, f"--from={form}", f"--where={where}"))

    def test_a_pod_of_many_hours_takes_no_more_memory(self):
        """480,000 rows of 40 pods in 56 MB beyond what the program takes by itself."""
        log, row = self.folder + "/large", "p{},1,1,50,10,{},{:02d}\n"
        with open(log, "w", encoding="utf-8") as file:
            file.write(
                "pod_id,gpu_request,used_gpu_hours,avg_gpu_sm_util,avg_gpu_mem_gib,day,hour\n"
            )
            for day in range(500):
                file.write(
                    "".join(row.format(i, day, hour) for hour in range(24) for i in range(40))
                )
        limit = (56 << 20) + BrokenLogs.address_space(self)
        done = subprocess.run(
            [COLLOC, "trace", "info", "--json", "--from=alibaba-2026", log],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["jobs"], 40)


class Mutations(TraceCase):
    def test_any_bytes_are_answered(self):
        """Pieces of the logs are replaced, by fixed chances: a job, a message or an end."""
        chance = random.Random(7)
        logs = {
            "sacct": SACCT,
            "swf": SWF,
            "helios": HELIOS,
            "acme": ACME,
            "alibaba": PAI_TASKS,
            "alibaba-spot": SPOT,
            "alibaba-2023": PODS_2023,
            "alibaba-2025": PODS_2025,
            "alibaba-2026": PODS_2026,
            "philly": json.dumps(PHILLY),
        }
        pieces = [
            b"\0",
            b"\xff",
            b'"',
            b",",
            b"\n",
            b"-",
            b"9" * 30,
            b"nan",
            b"1e999",
            b"[{",
            b"\r",
            b"",
        ]
        with tempfile.TemporaryDirectory() as folder:
            for form, text in logs.items():
                for _ in range(60):
                    data = bytearray(text.encode())
                    for _ in range(chance.randrange(1, 6)):
                        at = chance.randrange(len(data))
                        data[at : at + chance.randrange(4)] = chance.choice(pieces)
                    path = os.path.join(folder, "log")
                    with open(path, "wb") as file:
                        file.write(data)
                    log = trace_log.Log(path, trace_log.Options())
                    try:
                        with trace_log.open_log(path) as (file, name):
                            READERS[form](file, name, log)
                    except Fault as fault:
                        self.assertTrue(str(fault))
                    for i in range(len(log.jobs)):
                        job = log.jobs.get(i)
                        self.assertTrue(0 < job.length_us <= LENGTH_MAX_US and job.gpus > 0, job)
                        self.assertTrue(job.submit_us >= 0 and 0 <= job.part < 1, job)


class Options(TraceCase):
    def test_mistakes(self):
        log = self.write("log", SWF)
        for words, complaint in [
            (["draw"], "trace: unknown action draw: give import, synth, info or export"),
            (
                ["import", "--from=swf"],
                "trace import: no file given: give its name, or - for standard input",
            ),
            (
                ["import", "-"],
                "trace import: the first line shows no known format: add --from=philly, helios, "
                "acme, alibaba, alibaba-2023, alibaba-2025, alibaba-2026, alibaba-spot, sacct or "
                "swf",
            ),
            (
                ["import", "--from=swf", "--job-table=jobs.csv", log],
                "--job-table: a log of swf has no second table",
            ),
            (["synth", log], "trace synth: unexpected file: this action reads none"),
            (["synth"], "trace synth: no catalogue file given: add --tasks-out=FILE"),
            (
                ["info", "--seed=1", log],
                "trace info: --seed is not an option of this action (see `colloc help trace`)",
            ),
            (
                ["import", "--from=swf", "--json", log],
                "trace import: --json prints its report on standard output: give a file for the "
                "trace with -o",
            ),
            (
                ["import", "--from=swf", "--from-time=soon", log],
                '--from-time=soon: invalid time: give a date such as "2017-10-07 08:00", or a '
                "time after the first submission such as 2d",
            ),
            (
                ["import", "--from=swf", "--gpus=0", log],
                "--gpus=0: invalid number of GPUs: give 1 to 100000",
            ),
            (
                ["import", "--from=swf", "--gpus=4xB100", log],
                '--gpus=4xB100: no GPU is called "B100"; there are: A100-40GB, A100-80GB, H100, '
                "H200, V100-16GB, V100-32GB, T4, A10, A30, A40, L4, L40S, A6000, RTX-3090, "
                "RTX-4090, RTX-5090, B200, A100-40GB-DGX-Station",
            ),
            (
                ["import", "--from=swf", "--sample=2", log],
                "--sample=2: invalid number: give one from 0 to 1",
            ),
            (
                ["import", "--from=swf", "--arrival-scale=nan", log],
                "--arrival-scale=nan: invalid number: give one from 0 to 1000",
            ),
            (
                ["synth", "--tasks-out=x", "--days=-1"],
                "--days=-1: invalid number: give one from 0.001 to 36500",
            ),
            (
                ["import", "--from=swf", self.folder + "/none"],
                self.folder + "/none: No such file or directory",
            ),
        ]:
            with self.subTest(words):
                self.assertEqual(self.complaint("trace", *words, code=2), complaint)

    def test_unwritable_output(self):
        log = self.write("log", SWF)
        self.assertIn(
            "could not all be written",
            self.complaint("trace", "import", "--from=swf", "-o", "/dev/full", log, code=2),
        )


class Synth(TraceCase):
    def synth(self, *words):
        trace, tasks = self.folder + "/T.csv", self.folder + "/TASKS.csv"
        self.colloc("trace", "synth", "-o", trace, "--tasks-out", tasks, *words)
        return ["--tasks", tasks, "--json"], trace

    def test_like_helios(self):
        words, trace = self.synth("--jobs=20000", "--days=30", "--seed=3")
        info = json.loads(self.colloc("trace", "info", trace, *words))
        shares = {size["gpus"]: size["share"] for size in info["sizes"]}
        self.assertAlmostEqual(shares[1], 0.525, delta=0.015)
        self.assertAlmostEqual(shares[8], 0.226, delta=0.015)
        self.assertAlmostEqual(info["under_ten_minutes"], 0.5, delta=0.015)
        self.assertEqual(info["jobs"], 20000)

    def test_feeds_the_simulator(self):
        words, trace = self.synth("--jobs=300", "--days=1", "--gpus=8", "--seed=1")
        result = json.loads(
            self.colloc("simulate", "--trace", trace, "--gpus=8xA100-40GB", "--policy=magm", *words)
        )
        self.assertEqual(result["completed"], 300)

    def test_a_whole_cluster(self):
        """A tenth of one: `make bench` has it whole."""
        words, trace = self.synth("--jobs=11732", "--days=75", "--gpus=249", "--seed=1")
        result = json.loads(
            self.colloc(
                "simulate", "--trace", trace, "--gpus=249xA100-40GB", "--policy=magm", *words
            )
        )
        self.assertEqual(result["completed"], 11732)

    def test_a_seed_decides(self):
        texts = []
        for seed in (1, 1, 2):
            words, trace = self.synth("--jobs=200", f"--seed={seed}")
            with open(trace, encoding="utf-8") as one, open(words[1], encoding="utf-8") as other:
                texts.append(one.read() + other.read())
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])


class Info(TraceCase):
    def test_trace(self):
        trace = self.write("T.csv", "submit_s,task\n0,short\n10,pair\n100,long\n100,short\n")
        info = json.loads(self.colloc("trace", "info", "--json", "--tasks", self.tasks, trace))
        self.assertEqual((info["jobs"], info["span_s"], info["under_ten_minutes"]), (4, 100, 0.5))
        self.assertEqual(
            [info["length_s"][key] for key in ("mean", "p25", "p50", "p75", "p100")],
            [1180, 60, 60, 1000, 3600],
        )
        self.assertAlmostEqual(info["gpu_hours"], 5720 / 3600)
        self.assertEqual(
            [(size["gpus"], size["jobs"], size["share"]) for size in info["sizes"]],
            [(1, 3, 0.75), (2, 1, 0.25)],
        )
        lines = self.colloc("trace", "info", "--tasks", self.tasks, trace).splitlines()
        self.assertEqual(lines[0], "Jobs      4 in 1:40")
        self.assertEqual(lines[-1].split(), ["2", "1", "25.0", "%", "35.0", "%"])

    def test_log(self):
        done = self.run_colloc("trace", "info", "--from=sacct", self.write("log", SACCT))
        self.assertIn("From      2024-03-01 09:59:00 to 2024-03-01 10:04:00", done.stdout)
        self.assertIn("jobs read, 4 kept", done.stderr)

    def test_sacct_without_the_columns(self):
        default = "JobID JobName Partition Account AllocCPUS State ExitCode\n"
        for head in (default, default.replace(" ", "|")):
            self.assertIn(
                ":1: the first line must name JobID, Submit, Elapsed and AllocTRES or ReqTRES",
                self.complaint("trace", "info", self.write("log", head), code=2),
            )

    def test_task_that_is_not_there(self):
        trace = self.write("T.csv", "submit_s,task\n0,j1\n")
        self.assertEqual(
            self.complaint("trace", "info", trace, code=2),
            trace + ':2: the catalogue of tasks (--tasks) has no "j1"',
        )


if __name__ == "__main__":
    unittest.main()
