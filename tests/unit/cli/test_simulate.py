# SPDX-License-Identifier: Apache-2.0
"""colloc simulate: what it answers to traces of which the answer is known, and to bad ones."""

import csv
import json
import math
import os
import random
import unittest

from cli_case import CliCase

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
# The GPU always has kernels of theirs (gract 1), so that MPS costs them nothing while they are
# alone.
TASKS = """task,gpus,solo_s,memory_mib,smact,gract,dram,power_w,careful_mib
small,1,100,4000,0.3,1,0.1,135,6000
large,1,200,30000,0.6,1,0.1,185,
pair,2,300,4000,0.5,1,0.1,185,
giant,1,100,50000,0.5,1,0.1,185,
"""
ORDERS = ("fair", "fifo")
KEYS = [
    "total_s",
    "avg_wait_s",
    "avg_exec_s",
    "avg_jct_s",
    "oom",
    "completed",
    "energy_mj",
    "mean_smact",
    "lower_bound_s",
    "failed",
    "left_out",
]
GIVING_WAY = ["suspensions", "moves", "max_stretch", "memory_waits", "memory_wait_s"]


def laws():
    with open(os.path.join(ROOT, "data", "sharing", "interference.txt"), encoding="utf-8") as file:
        return {
            line.split()[1]: float(line.split()[2]) for line in file if line.startswith("constant ")
        }


def slowdown_beside(smact, other):
    """Of one of two clients of MPS with gract 1: the formulae of src/sharing/interference.c."""
    law = laws()
    work, others_work = (
        a * (1 + law["cache_cost"] * (1 - a / (smact + other))) for a in (smact, other)
    )
    grip = (other / (1 - other) / (smact / (1 - smact))) ** law["weight_power"]
    return 1 - smact + work * (1 + grip * others_work / (1 - other + others_work))


class SimulateCase(CliCase):
    def setUp(self):
        super().setUp()
        self.tasks = self.write("tasks.csv", TASKS)

    def trace(self, *arrivals):
        return self.write(
            "trace.csv", "submit_s,task\n" + "".join(f"{time},{task}\n" for time, task in arrivals)
        )

    def simulate(self, *arrivals, gpus="1xA100-40GB", policy="magm", **options):
        words = [
            f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
            for name, value in options.items()
        ]
        return json.loads(
            self.colloc(
                "simulate",
                "--trace",
                self.trace(*arrivals),
                "--tasks",
                self.tasks,
                "--gpus",
                gpus,
                "--policy",
                policy,
                "--json",
                *words,
            )
        )

    def complaint_of(self, *words, trace=None, tasks=None):
        trace = self.write("trace.csv", trace) if trace is not None else self.trace((0, "small"))
        tasks = self.write("bad.csv", tasks) if tasks is not None else self.tasks
        return self.complaint(
            "simulate", "--trace", trace, "--tasks", tasks, *words, code=2
        ).replace(self.folder + "/", "")


class Services(SimulateCase):
    """A service beside trainings. Its GPU always has kernels of it while it answers a request."""

    HEAD = "task,class,solo_s,memory_mib,smact,gract,dram,power_w,rate,request_ms,p99_ms\n"
    SERVICE = "web,service,{solo},{memory},0.3,1,0.1,135,{rate},10,{target}\n"
    TRAINING = "train,training,{solo},8000,{smact},1,0.1,185,-,-,-\n"

    def run_service(
        self, *arrivals, rate=50, target=1000, solo="-", memory=4000, smact=0.6, words=()
    ):
        tasks = self.write(
            "services.csv",
            self.HEAD
            + self.SERVICE.format(solo=solo, memory=memory, rate=rate, target=target)
            + self.TRAINING.format(solo=2000, smact=smact),
        )
        words = (f"--trace={self.trace(*arrivals)}", f"--tasks={tasks}") + tuple(words)
        return words + ("--gpus=1xA100-40GB",)

    def result(self, *arrivals, **options):
        result = json.loads(
            self.colloc("simulate", "--json", *self.run_service(*arrivals, **options))
        )
        (result["service"],) = result.pop("services")
        return result

    def events(self, *arrivals, words=(), **options):
        path = os.path.join(self.folder, "events")
        self.result(*arrivals, words=tuple(words) + ("--trace-out=" + path,), **options)
        with open(path, encoding="utf-8") as file:
            return file.read()

    @staticmethod
    def p99_ms(load, request_ms):
        """The formula of src/sim/request_queue.c."""
        root = -3 * math.log(load)
        for _ in range(50):
            root -= (load * math.expm1(root) - root) / (load * math.exp(root) - 1)
        return request_ms * (1 + math.log(100 * (1 - load) / (load + root - 1)) / root)

    def test_alone(self):
        result = self.result((0, "web"), solo=2000)
        service = result["service"]
        self.assertEqual(result["total_s"], 2000)
        self.assertEqual(result["completed"], 0)
        self.assertAlmostEqual(service["requests"], 50 * 1980, delta=250)
        self.assertAlmostEqual(service["p99_ms"] / self.p99_ms(0.5, 10), 1, delta=0.03)
        self.assertEqual((service["within_target"] > 0.9999, service["target_met"]), (True, 1))
        # A load of one half: half of its activity, but for the 20 s in which it takes its memory.
        self.assertAlmostEqual(result["mean_smact"], 0.15, delta=0.005)

    def test_requests_take_longer_beside_a_training(self):
        result = self.result((0, "web"), (1, "train"), words=("--service-hold=1s",))
        expected = 10 * slowdown_beside(0.3, 0.6)
        service = result["service"]
        self.assertAlmostEqual(
            service["p99_ms"] / self.p99_ms(50 * expected / 1000, expected), 1, delta=0.05
        )
        self.assertEqual((result["completed"], result["suspensions"]), (1, 0))
        # The service does not end the run.
        self.assertLess(result["total_s"], 2 * 2000)
        self.assertLess(service["up_s"], result["total_s"])

    def test_trainings_give_way(self):
        # At 80 requests a second the p99 alone is within the target, beside the training it is not.
        words = ("--trace-out=" + os.path.join(self.folder, "events"),)
        arrivals = ((0, "web"), (1, "train"))
        result = self.result(*arrivals, rate="20;600:80;2400:20", target=130, words=words)
        with open(os.path.join(self.folder, "events"), encoding="utf-8") as file:
            events = file.read()
        first = events.index("place train")
        self.assertRegex(events[first:], r"t=6\d\d pause train#2 for service 1")
        self.assertRegex(events[first:], r"continue train#2")
        self.assertGreaterEqual(result["suspensions"], 2)
        self.assertEqual(result["completed"], 1)
        self.assertGreater(result["service"]["within_target"], 0.95)
        unprotected = self.result(*arrivals, rate="20;600:80;2400:20", target="-")
        self.assertEqual(unprotected["suspensions"], 0)
        self.assertLess(unprotected["total_s"], result["total_s"])
        self.assertGreater(unprotected["service"]["p99_ms"], 2 * 130)
        self.assertIsNone(unprotected["service"]["within_target"])
        self.assertIsNone(unprotected["service"]["target_ms"])

    def test_time_sliced_trainings_are_suspended(self):
        words = ("--sharing=streams",)
        arrivals = ((0, "web"), (1, "train"))
        events = self.events(*arrivals, rate="20;600:80;2400:20", target=130, words=words)
        self.assertIn("suspending train#2", events)

    def test_more_requests_than_can_be_answered(self):
        service = self.result((0, "web"), rate=150, target=100, solo=1020)["service"]
        self.assertAlmostEqual(service["target_met"], 0, delta=0.01)
        # A third of the requests is in line at the end: 50,000 of 10 ms.
        self.assertAlmostEqual(service["p99_ms"] / 495e3, 1, delta=0.03)

    def test_trainings_that_never_end_beside_a_service(self):
        words = self.run_service((0, "web"), (1, "train"), rate=150, target=100)
        self.assertIn("1 tasks never ended", self.complaint("simulate", *words, code=2))

    def test_a_service_that_crashes_ends(self):
        # It needs more memory than the GPU has: no attempt of it reaches its time.
        options = {"memory": 60000, "solo": 1000, "words": ("--estimator=none",)}
        result = self.result((0, "web"), **options)
        self.assertGreater(result["oom"], 1)
        self.assertAlmostEqual(result["total_s"], 1000, delta=1.001)
        result = self.result((0, "web"), (1, "train"), **options)
        self.assertEqual(result["completed"], 1)

    def test_trainings_wait_for_a_change_of_a_service(self):
        # The p99 at 50 requests a second is beyond the target even without the training.
        for options in ({"solo": 100000}, {"rate": "50;100000:1"}):
            result = self.result((0, "web"), (1, "train"), target=30, **options)
            self.assertEqual(result["completed"], 1, options)
            self.assertGreater(result["avg_wait_s"], 99990, options)
            self.assertLess(result["total_s"], 110000, options)

    def test_trainings_that_never_end_in_order(self):
        # On whole GPUs the training would wait for the service, and the service for the training.
        words = ("--policy=predictive", "--preempt")
        result = self.result((0, "web"), (1, "train"), words=words)
        self.assertEqual((result["completed"], result["moves"]), (1, 0))
        self.assertIsNone(result["max_stretch"])
        out = self.colloc("simulate", *self.run_service((0, "web"), (1, "train"), words=words))
        self.assertRegex(out, r"Preemption +\d+ suspensions, 0 moves\n")
        # With a time the service ends.
        result = self.result((0, "web"), (1, "train"), solo=2000, words=words)
        self.assertGreater(result["max_stretch"], 0)

    def test_trainings_that_never_end_on_the_share_of_a_user(self):
        # On one GPU, the share of user a, a's training could only run beside a's service.
        trace = self.write("users.csv", "submit_s,task,user\n0,web,a\n10,train,b\n10,train,a\n")
        _, tasks, _ = self.run_service(target=30)
        words = (f"--trace={trace}", tasks, "--gpus=2xA100-40GB")
        a, b = json.loads(self.colloc("simulate", "--json", *words))["users"]
        self.assertEqual((a["user"], a["tasks"], b["user"], b["tasks"]), ("a", 1, "b", 1))
        self.assertIsNone(a["finish_time_fairness"])
        self.assertIsNone(a["avg_wait_alone_s"])
        self.assertAlmostEqual(b["finish_time_fairness"], 1, delta=0.01)

    def test_rows(self):
        out = self.colloc("simulate", *self.run_service((0, "web"), (1, "train")))
        self.assertRegex(out, r"web +\d+ +\d+ +1000 ms +\d+\.\d+ % +\d+\.\d %")
        self.assertRegex(out, "Trainings gave way 0 times")
        self.assertRegex(out, r"Total time +\d+:\d\d, 1\.\d\d times the lower bound \(33:21\)\n")

    def test_services_alone_have_no_lower_bound(self):
        out = self.colloc("simulate", *self.run_service((0, "web"), solo=2000))
        self.assertRegex(out, r"Total time +33:20\n")

    def test_the_end_of_a_service_is_a_signal(self):
        events = self.events((0, "web"), (1, "train"))
        self.assertRegex(events, r"exit train#2 none code=0\n")
        self.assertRegex(events, r"exit web#1 cancelled signal=15\n")
        events = self.events((0, "web"), solo=100)
        self.assertRegex(events, r"t=100 exit web#1 time-limit signal=15\n")

    def test_catalogues(self):
        for row, expected in (
            ("a,server,1,1,1,1,1,1,1,1,1", 'class "server" is neither training nor service'),
            ("a,service,1,1,1,1,1,1,-,1,1", "needs rate"),
            ("a,service,1,1,1,1,1,1,1,-,1", "needs rate"),
            ("a,service,1,1,1,1,1,1,1,0,1", "needs rate"),
            ("a,service,1,1,1,1,1,1,1;0:1,1,1", 'invalid rate "1;0:1"'),
            ("a,training,1,1,1,1,1,1,-,-,1", "p99_ms is of services only"),
            ("a,,1,1,1,1,1,1,5,-,-", "rate is of services only"),
        ):
            self.assertIn(expected, self.complaint_of(tasks=self.HEAD + row + "\n"), row)


class Users(SimulateCase):
    """Two users on four GPUs: one has 500 tasks at once, the other some hours' work each hour."""

    TASKS = "task,gpus,solo_s,memory_mib,smact\nhour,1,3600,30000,0.9\nshort,1,600,30000,0.9\n"

    def rows(self, task, seed=1, load=0.9, hours=48):
        """Of bob alone: as much as `load` of two GPUs can do."""
        chance, time = random.Random(seed), 0
        length = {"hour": 3600, "short": 600}[task]
        while (time := time + chance.expovariate(2 * load / length)) < hours * 3600:
            yield f"{time:.3f},{task},bob"

    def run_users(self, rows, *words):
        trace = self.write("users.csv", "submit_s,task,user\n" + "\n".join(rows) + "\n")
        tasks = self.write("hours.csv", self.TASKS)
        return json.loads(
            self.colloc("simulate", f"--trace={trace}", f"--tasks={tasks}", "--json", *words)
        )

    def bob(self, rows, *words):
        users = self.run_users(rows, *words)["users"]
        return next(user for user in users if user["user"] == "bob")

    def test_a_flood_does_not_make_the_other_wait(self):
        flood = ["0,hour,ada"] * 500
        for task in ("hour", "short"):
            for policy in ("exclusive", "magm", "predictive"):
                rows = flood + list(self.rows(task))
                words = (f"--policy={policy}", "--gpus=4xA100-40GB", "--known=all")
                bob = self.bob(rows, *words, "--order=fair")
                alone = self.bob(self.rows(task), *words[:1], "--gpus=2xA100-40GB", "--known=all")
                self.assertEqual(bob["tasks"], alone["tasks"])
                self.assertAlmostEqual(bob["avg_wait_alone_s"], alone["avg_wait_s"], delta=1)
                self.assertLessEqual(bob["avg_wait_s"], 1.2 * alone["avg_wait_s"], policy)
                by_age = self.bob(rows, *words, "--order=fifo")
                self.assertGreater(by_age["avg_wait_s"], 10 * bob["avg_wait_s"], policy)
                self.assertGreater(by_age["finish_time_fairness"], 2)
                self.assertLess(bob["finish_time_fairness"], 1.2)

    def test_what_is_known_of_users(self):
        result = self.run_users(["0,short,ada", "0,hour,", "1,short,bob"], "--gpus=1xA100-40GB")
        users = {user["user"]: user for user in result["users"]}
        self.assertEqual(list(users), ["", "ada", "bob"])
        self.assertEqual(users["ada"]["avg_wait_s"], 0)
        self.assertEqual(users["ada"]["slowdown"], 1)
        self.assertEqual(users["bob"]["avg_wait_alone_s"], 0)
        one = self.run_users(["0,short,ada"])["users"]
        self.assertIsNone(one[0]["finish_time_fairness"])
        self.assertNotIn("users", self.simulate((0, "small")))

    def test_one_user_has_the_same_run_in_either_order(self):
        rows = list(self.rows("hour"))
        for policy in ("exclusive", "magm", "predictive", "las"):
            runs = [self.run_users(rows, f"--policy={policy}", f"--order={o}") for o in ORDERS]
            self.assertEqual(runs[0], runs[1])

    def test_a_limit_of_gpu_hours_in_a_window(self):
        """The hour is charged when it ends: a bucket from 1 h on, or, of two hours, from 0 on."""
        rows = ["0,hour,ada", "3700,hour,ada", "7500,hour,bob"]
        words = ("--policy=exclusive", "--gpus=1xA100-40GB", "--gpu-hours-per-user=1")
        waits = {
            window: [u["avg_wait_s"] for u in self.run_users(rows, *words, *window)["users"]]
            for window in ((), ("--gpu-hours-window=32h",), ("--gpu-hours-window=64h",))
        }
        self.assertEqual(waits[("--gpu-hours-window=32h",)], [(33 * 3600 - 3700) / 2, 0])
        self.assertEqual(waits[("--gpu-hours-window=64h",)], [(64 * 3600 - 3700) / 2, 0])
        self.assertEqual(waits[()], [0, 0])  # its usage has decayed
        alone = self.run_users(rows[:2], *words, "--gpu-hours-window=32h")
        self.assertEqual(alone["users"][0]["avg_wait_s"], (33 * 3600 - 3700) / 2)

    def test_a_window_without_sense(self):
        for wrong in ("0", "0h", "59m", "366d", "-1d", "7x"):
            said = self.complaint_of(f"--gpu-hours-window={wrong}")
            self.assertIn("--gpu-hours-window", said)

    def test_an_unknown_order(self):
        self.assertIn("--order", self.complaint_of("--order=random"))

    def test_the_table_of_users(self):
        trace = self.write("users.csv", "submit_s,task,user\n0,hour,ada\n0,hour,bob\n")
        tasks = self.write("hours.csv", self.TASKS)
        text = self.colloc("simulate", f"--trace={trace}", f"--tasks={tasks}")
        self.assertRegex(text, r"USER +TASKS +WAIT +SLOWDOWN +FAIRNESS\nada +1 +0:00 +1.00 +1.00\n")


class Restrictions(SimulateCase):
    """Tasks that need a kind of GPU, CPUs or main memory: of equal length, alone on their GPUs."""

    HEAD = "task,gpus,solo_s,memory_mib,smact,cpus,host_memory_mib,gpu_kind\n"

    def total_s(self, tasks, *arrivals, gpus="2xA100-40GB", **options):
        self.tasks = self.write("tasks.csv", self.HEAD + tasks)
        return self.simulate(*arrivals, gpus=gpus, policy="exclusive", **options)["total_s"]

    def test_cpus_and_main_memory_are_waited_for(self):
        tasks = "a,1,100,4000,0.3,6,-,-\nb,1,100,4000,0.3,4,3000,-\n"
        self.assertEqual(self.total_s(tasks, (0, "a"), (0, "b")), 100)
        self.assertEqual(self.total_s(tasks, (0, "a"), (0, "b"), host_cpus=8), 200)
        self.assertEqual(self.total_s(tasks, (0, "a"), (0, "b"), host_cpus=10), 100)
        self.assertEqual(self.total_s(tasks, (0, "b"), (0, "b"), host_memory_gib=4), 200)
        self.assertEqual(self.total_s(tasks, (0, "b"), (0, "b"), host_memory_gib=6), 100)

    def test_a_kind_is_waited_for(self):
        tasks = "a,1,100,4000,0.3,-,-,A100\nv,1,100,4000,0.3,-,-,V100\n"
        gpus = "A100-40GB,V100-16GB"
        self.assertEqual(self.total_s(tasks, (0, "a"), (0, "v"), gpus=gpus), 100)
        self.assertEqual(self.total_s(tasks, (0, "a"), (0, "a"), (0, "v"), gpus=gpus), 200)

    def test_what_can_never_start_is_left_out(self):
        self.tasks = self.write("tasks.csv", self.HEAD + "h,1,1,1,1,-,-,H100\nc,1,1,1,1,9,-,-\n")
        result = self.simulate((0, "h"), (0, "c"), host_cpus=8)
        self.assertEqual(result["left_out"], 2)

    def test_bad_values(self):
        for row, complaint in [
            ("1.5,-,-", "bad.csv:2: cpus is 1.5: it must be a whole number"),
            ("-1,-,-", "bad.csv:2: cpus is -1: it must be between 0 and 10000"),
            ("-,x,-", 'bad.csv:2: host_memory_mib is "x", which is not a number'),
            ("-,-," + "K" * 128, f'bad.csv:2: the gpu_kind "{"K" * 40}..." is too long'),
        ]:
            with self.subTest(row):
                tasks = self.HEAD + "a,1,1,1,1," + row + "\n"
                self.assertEqual(self.complaint_of(tasks=tasks), complaint)


class Nodes(SimulateCase):
    """Braces in --gpus are nodes: the GPUs of one task are of one of them."""

    def test_a_task_runs_on_one_node(self):
        """Two GPUs are free at once, but not on one node."""
        arrivals = [(0, "small"), (0, "small"), (1, "pair")]
        for gpus, total_s in (("4xA30", 301), ("{2xA30},2x{A30}", 400)):
            result = self.simulate(*arrivals, gpus=gpus, policy="exclusive")
            self.assertAlmostEqual(result["total_s"], total_s, delta=1)

    def test_more_gpus_than_a_node_has(self):
        result = self.simulate((0, "pair"), (0, "small"), gpus="3x{A30}", policy="exclusive")
        self.assertEqual((result["left_out"], result["completed"]), (1, 1))
        result = self.simulate((0, "pair"), gpus="3xA30", policy="exclusive")
        self.assertEqual((result["left_out"], result["completed"]), (0, 1))


class Results(SimulateCase):
    def test_alone(self):
        result = self.simulate((10, "small"))
        self.assertEqual(list(result), KEYS)
        self.assertEqual([result[key] for key in KEYS[:6]], [100, 0, 100, 100, 0, 1])
        self.assertAlmostEqual(result["energy_mj"], 135 * 100 / 1e6)
        self.assertAlmostEqual(result["mean_smact"], 0.3)
        self.assertEqual(result["lower_bound_s"], 100)

    def test_exclusive_takes_turns(self):
        result = self.simulate((0, "small"), (0, "small"), policy="exclusive")
        self.assertEqual([result[key] for key in KEYS[:6]], [200, 50, 100, 150, 0, 2])

    def test_exclusive_needs_no_mps(self):
        self.tasks = self.write("tasks.csv", TASKS.replace("0.3,1,", "0.3,0.5,"))
        self.assertEqual(
            self.simulate((0, "small"), policy="exclusive", sharing="mps")["total_s"], 100
        )
        under_mps = 100 * (1 + laws()["launch_cost"] * 0.5)
        self.assertAlmostEqual(
            self.simulate((0, "small"), policy="magm", sharing="mps")["total_s"],
            under_mps,
            delta=0.01,
        )

    def test_sharing(self):
        arrivals = (0, "small"), (40, "small")  # the second finds the hold-off of the first over
        self.assertAlmostEqual(
            self.simulate(*arrivals)["total_s"],
            40 + 60 * slowdown_beside(0.3, 0.3) + 40,
            delta=0.01,
        )
        turns = 2 * (1 + laws()["switch_cost"] + laws()["cold_cost"])
        self.assertAlmostEqual(
            self.simulate(*arrivals, sharing="streams")["total_s"], 40 + 60 * turns + 40, delta=0.01
        )

    def test_several_gpus_are_as_fast_as_the_slowest(self):
        result = self.simulate((0, "pair"), (60, "large"), gpus="2xA100-40GB")
        large_s = 200 * slowdown_beside(
            0.6, 0.5
        )  # they share one GPU for all of the large one's life
        pair_s = 300 + large_s * (1 - 1 / slowdown_beside(0.5, 0.6))
        self.assertAlmostEqual(result["avg_exec_s"], (pair_s + large_s) / 2, delta=0.05)

    def test_mig(self):
        result = self.simulate((0, "small"), (0, "small"), gpus="A100-40GB:1g.5gb+1g.5gb")
        self.assertAlmostEqual(result["total_s"], 100 * 0.3 / (14 / 108), places=3)
        result = self.simulate((0, "small"), (0, "small"), gpus="A30:1g.6gb+1g.6gb")
        self.assertAlmostEqual(result["total_s"], 100 * 0.3 / (14 / 56), places=3)

    def test_who_asks_last_crashes_and_recovers(self):
        result = self.simulate((0, "large"), (100, "large"), estimator="none")
        self.assertEqual((result["oom"], result["completed"]), (1, 2))
        result = self.simulate((0, "large"), (100, "large"), estimator="declared")
        self.assertEqual((result["oom"], result["total_s"]), (0, 400))

    def test_estimates_of_the_catalogue(self):
        lines = self.colloc(
            "simulate",
            "--trace",
            self.trace((0, "small"), (1, "large")),
            "--tasks",
            self.tasks,
            "--estimator=careful",
            "--trace-out=-",
        )
        self.assertIn("submit small#1 gpus=1 need=5.9 GiB", lines)
        self.assertIn("submit large#2 gpus=1 need=unknown", lines)

    def test_oracles_know_the_memory(self):
        arrivals = (0, "large"), (100, "large")
        for name in ("off", "OBF", "owf", "olug"):
            with self.subTest(name):
                self.assertEqual(self.simulate(*arrivals, policy=name, estimator="none")["oom"], 0)

    def test_every_policy_ends_the_trace(self):
        trace = os.path.join(ROOT, "data", "traces", "philly-60.txt")
        for policy in ("exclusive", "rr", "magm", "lug", "mug", "first-fit", "best-fit"):
            with self.subTest(policy):
                result = json.loads(
                    self.colloc("simulate", "--trace", trace, "--policy", policy, "--json")
                )
                self.assertEqual(result["completed"], 60)

    def test_oracles_by_streams_mps_and_mig(self):
        """An oracle knows what each task takes: its few crashes are holes in memory, and a MIG
        instance with one task has none.
        """
        trace = os.path.join(ROOT, "data", "traces", "philly-60.txt")
        for policy in ("off", "obf", "owf", "olug"):
            for gpus, words in (
                ("4xA100-40GB", ["--sharing=streams"]),
                ("4xA100-40GB", ["--sharing=mps"]),
                ("4xA100-40GB:4g.20gb+3g.20gb", ["--sharing=streams"]),
            ):
                with self.subTest(policy=policy, gpus=gpus, words=words):
                    done = self.run_colloc(
                        "simulate",
                        "--trace",
                        trace,
                        "--policy",
                        policy,
                        "--gpus",
                        gpus,
                        "--estimator=none",
                        "--json",
                        *words,
                    )
                    result, left_out = json.loads(done.stdout), done.stderr.count("left out")
                    self.assertEqual(
                        (result["left_out"], result["completed"] + result["failed"] + left_out),
                        (left_out, 60),
                    )
                    self.assertGreater(result["completed"], 40)
                    self.assertLessEqual(result["oom"], 0 if "g.20gb" in gpus else 1)
                    self.assertGreaterEqual(result["total_s"], result["lower_bound_s"])

    def test_first_fit_and_best_fit(self):
        arrivals = (0, "large"), (60, "pair"), (120, "small")
        tasks = TASKS.replace("pair,2,", "pair,1,")
        self.tasks = self.write("tasks.csv", tasks)
        self.assertEqual(
            self.places(arrivals, "off"), ["gpu0", "gpu0", "gpu1"]
        )  # above 0.8 of the SMs are busy then
        self.assertEqual(self.places(arrivals, "owf"), ["gpu0", "gpu1", "gpu1"])
        self.tasks = self.write("tasks.csv", tasks.replace("0.6,", "0.2,"))
        self.assertEqual(
            self.places([(0, "small"), (1, "large"), (60, "small")], "obf"),
            ["gpu0", "gpu1", "gpu1"],
        )
        self.assertEqual(
            self.places([(0, "small"), (1, "large"), (60, "small")], "off"),
            ["gpu0", "gpu1", "gpu0"],
        )

    def places(self, arrivals, policy):
        lines = self.colloc(
            "simulate",
            "--trace",
            self.trace(*arrivals),
            "--tasks",
            self.tasks,
            "--gpus=2xA100-40GB",
            "--policy",
            policy,
            "--trace-out=-",
        )
        return [line.split()[3] for line in lines.splitlines() if " place " in line]

    def test_seed(self):
        runs = [self.simulate((0, "small"), (0, "large"), seed=seed) for seed in (0, 1, 1, 2)]
        self.assertEqual(runs[1], runs[2])
        self.assertEqual(len({run["total_s"] for run in runs}), 3)
        self.assertLess(abs(runs[1]["total_s"] / runs[0]["total_s"] - 1), 0.1)

    def test_resample(self):
        arrivals = [
            (time, task)
            for time, task in zip(range(0, 5000, 250), ["small", "large", "pair", "small"] * 5)
        ]
        other = [
            self.simulate(*arrivals, gpus="2xA100-40GB", resample=seed) for seed in (1, 1, 2, 3)
        ]
        self.assertEqual(other[0], other[1])
        self.assertEqual([result["completed"] for result in other], [20] * 4)
        self.assertEqual(len({result["avg_jct_s"] for result in other}), 3)
        # Of one task and one gap there is nothing else to draw.
        same = [(0, "small"), (200, "small"), (400, "small")]
        self.assertEqual(self.simulate(*same, resample=7), self.simulate(*same))

    def test_what_is_known_is_for_predictive_and_backfill(self):
        arrivals = (0, "large"), (40, "small"), (80, "large"), (120, "small")
        knowns = "none", "activity", "time", "all"
        in_order = [self.simulate(*arrivals, known=what, backfill="no") for what in knowns]
        self.assertEqual(in_order, in_order[:1] * 4)
        backfilled = [self.simulate(*arrivals, known=what) for what in knowns]
        self.assertEqual(backfilled[0], in_order[0])
        self.assertLess(backfilled[1]["avg_wait_s"], in_order[1]["avg_wait_s"])
        many = [(time, "small") for time in range(0, 240, 30)]
        known = [
            self.simulate(*many, policy="predictive", known=what)["avg_jct_s"]
            for what in ("none", "activity")
        ]
        self.assertNotEqual(known[0], known[1])

    def test_rules_of_recovery_that_contradict(self):
        stop = "--recovery=stop-queue"
        self.assertIn("exclusive shares no GPU", self.complaint_of("--policy=exclusive", stop))
        self.assertIn(
            "stop-queue: with preempt",
            self.complaint_of("--policy=predictive", "--preempt", stop),
        )
        self.assertIn(
            "decision-delay: with preempt",
            self.complaint_of("--policy=predictive", "--preempt", "--decision-delay=30s"),
        )

    def test_preemption(self):
        self.tasks = self.write(
            "tasks.csv",
            "task,gpus,solo_s,memory_mib,smact,gract,dram,power_w\n"
            "long,1,7200,30000,0.9,1,0.1,135\n"
            "short,1,100,20000,0.9,1,0.1,135\n",
        )
        arrivals = (0, "long"), (1000, "short")
        run = {"policy": "predictive", "known": "all", "sharing": "streams"}
        waits = self.simulate(*arrivals, **run)
        self.assertEqual(list(waits), KEYS)
        self.assertAlmostEqual(waits["total_s"], 7300, delta=5)
        goes_first = self.simulate(*arrivals, **run, preempt="yes")
        self.assertEqual(list(goes_first), KEYS + GIVING_WAY)
        self.assertEqual((goes_first["suspensions"], goes_first["moves"]), (1, 0))
        # 20.4 s to suspend 29.3 GiB, 100 s, and 6 s to resume it: so much later the long one ends.
        self.assertAlmostEqual(goes_first["total_s"], 7200 + 20.4 + 100 + 6, delta=5)
        self.assertAlmostEqual(2 * goes_first["avg_jct_s"], 7326.4 + 120.4, delta=10)
        self.assertAlmostEqual(goes_first["max_stretch"], 7326.4 / 7200, delta=0.01)
        # Clients of MPS are paused: there is no room for both memories.
        run["sharing"] = "mps"
        self.assertEqual(self.simulate(*arrivals, **run, preempt="yes")["suspensions"], 0)
        # Its time is not known, but it has had nothing yet.
        run.update(policy="las", known="none", sharing="streams")
        self.assertEqual(self.simulate(*arrivals, **run, preempt="yes")["suspensions"], 1)
        self.assertIn("use predictive or las", self.complaint_of("--policy=magm", "--preempt"))

    def test_every_allocation_that_waits_gets_an_answer(self):
        """Memory that is nearly enough: the driver hands out multiples of 2 MiB."""
        self.tasks = self.write(
            "tasks.csv",
            "task,gpus,solo_s,memory_mib,smact\nlittle,1,1,20000,1\nmuch,1,10,39000,0.9\n"
            "long,1,300,39900,0.9\nnone,1,10,39900,0\n",
        )
        names = "little long long none none long much none long none none much much none".split()
        times = (32, 33, 63, 63, 64, 94, 94, 95, 96, 97, 188, 218, 218, 219)
        run = {"policy": "predictive", "known": "all", "sharing": "mps", "preempt": "yes"}
        result = self.simulate(*zip(times, names), **run, need_error=1)
        self.assertEqual(result["completed"] + result["failed"], len(names))

    def test_orders_that_are_simulated(self):
        self.tasks = self.write(
            "tasks.csv",
            "task,gpus,solo_s,memory_mib,smact,gract,dram,power_w\n"
            "both,2,100,30000,0.9,1,0.1,135\nlong,1,6000,30000,0.9,1,0.1,135\n"
            "short,1,2000,30000,0.9,1,0.1,135\nshortest,1,1000,30000,0.9,1,0.1,135\n",
        )
        arrivals = (0, "both"), (1, "long"), (2, "short"), (3, "shortest")
        run = {"policy": "predictive", "known": "all", "gpus": "2xA100-40GB", "preempt": "yes"}
        soonest_first = self.simulate(*arrivals, **run)
        self.assertAlmostEqual(soonest_first["total_s"], 100 + 1000 + 6000, delta=5)
        # The long one first: no task waits for it, and two others have the other GPU in turn.
        best = self.simulate(*arrivals, **run, look_ahead="yes")
        self.assertAlmostEqual(best["total_s"], 100 + 6000, delta=5)
        self.assertAlmostEqual(best["avg_jct_s"], soonest_first["avg_jct_s"], delta=5)
        for words in (["--policy=predictive"], ["--policy=las", "--preempt"]):
            self.assertIn(
                "--policy=predictive --preempt", self.complaint_of("--look-ahead", *words)
            )

    def test_look_ahead_over_more_tasks_than_a_gpu_is_predicted_for(self):
        self.tasks = self.write(
            "tiny.csv",
            "task,solo_s,memory_mib,smact,gract\nfirst,50,2000,0.9,1\ntiny,500,200,0.001,0.01\n",
        )
        arrivals = [(0, "first"), *[(1, "tiny")] * 45]
        run = {"policy": "predictive", "gpus": "1xA100-80GB", "sharing": "mps", "preempt": "yes"}
        plain = self.simulate(*arrivals, **run)
        self.assertEqual(self.simulate(*arrivals, **run, look_ahead="yes"), plain)
        self.assertEqual(plain["completed"], 46)

    def test_sharing_that_is_chosen(self):
        self.tasks = self.write(
            "launches.csv",
            "task,solo_s,memory_mib,smact,gract\nwaits,1000,4000,0.05,0.1\nworks,1000,4000,0.3,1\n",
        )
        total = {}
        for task in ("waits", "works"):
            for how in ("streams", "mps", "auto"):
                result = self.simulate((0, task), (60, task), sharing=how)
                total[task, how] = result["total_s"]
        self.assertEqual(total["works", "auto"], total["works", "mps"])
        self.assertLess(total["works", "auto"], total["works", "streams"])
        self.assertLess(total["waits", "auto"], total["waits", "mps"])

    def test_time_slots(self):
        self.tasks = self.write(
            "tasks.csv",
            "task,gpus,solo_s,memory_mib,smact,gract,dram,power_w\n"
            "long,1,3000,30000,0.9,1,0.1,135\n",
        )
        arrivals = (0, "long"), (1, "long")
        run = {"policy": "magm", "gpus": "1xA100-40GB", "sharing": "streams", "slots": "10m"}
        turns = self.simulate(*arrivals, **run)
        self.assertEqual(list(turns), KEYS + GIVING_WAY)
        # Slots of at least 20 times 26 s: 5 or 6 for each of the two.
        self.assertIn(turns["suspensions"], (8, 9, 10))
        self.assertGreater(turns["avg_jct_s"], 5600)
        self.assertLess(turns["max_stretch"], 2.1)
        self.assertEqual(self.simulate(*arrivals, **{**run, "sharing": "mps"})["suspensions"], 0)
        self.assertIn("one of the two", self.complaint_of("--slots=10m", "--preempt"))
        # With the carrier the context stays on the only GPU: slots of about 45 s.
        driver = self.simulate(*arrivals, **{**run, "slots": "30s"})
        carrier = self.simulate(*arrivals, **{**run, "slots": "30s", "carrier": True})
        self.assertLess(driver["suspensions"], 14)
        self.assertIn(carrier["suspensions"], range(120, 140))
        self.assertLess(carrier["total_s"], 1.07 * 6000)  # 5 % for stops, and starts

    def test_copies_on_a_neighbour_gpu(self):
        """Two tasks take turns on a GPU; beside a third one, on another GPU, their copies have
        room."""
        self.tasks = self.write(
            "tasks.csv",
            "task,gpus,solo_s,memory_mib,smact,gract,dram,power_w\n"
            "long,1,3000,30000,0.3,1,0.1,135\n"
            "big,1,9000,45000,0.9,1,0.1,135\n",
        )
        arrivals = (0, "big"), (100, "long"), (200, "long")
        run = {"gpus": "A100-80GB,A100-40GB", "sharing": "streams", "slots": "60s"}
        host = self.simulate(*arrivals, **run, carrier=True)
        near = self.simulate(*arrivals, **run, carrier=True, neighbour_memory=True)
        self.assertGreater(near["suspensions"], 50)
        self.assertEqual(near["completed"], 3)
        # A way out and back takes 0.3 s instead of 3.3 s.
        self.assertLess(near["avg_jct_s"], host["avg_jct_s"] - near["suspensions"] / 2)
        self.assertIn("add --carrier", self.complaint_of("--slots=10m", "--neighbour-memory"))

    def test_allocations_that_wait(self):
        self.tasks = self.write(
            "tasks.csv",
            "task,gpus,solo_s,memory_mib,smact,gract,dram,power_w\n"
            "a,1,600,20000,0.2,0.3,0.1,135\nb,1,600,30000,0.2,0.3,0.1,135\n"
            "wide,2,600,30000,0.2,0.3,0.1,135\nb2,1,600,10400,0.2,0.3,0.1,135\n"
            "tiny,1,600,4000,0.2,0.3,0.1,135\nfull,1,600,40200,0.2,0.3,0.1,135\n"
            "brief,1,20,4000,0.2,0.3,0.1,135\n",
        )
        run = {"policy": "rr", "estimator": "none", "known": "none", "sharing": "streams"}
        run.update(min_free_gib=0, margin_gib=0, smact_max=1)
        arrivals = (0, "a"), (90, "b")
        # 50,000 MiB are more than the GPU has: b crashes, or a gives way to its allocation.
        crashes = self.simulate(*arrivals, **run, gpus="1xA100-40GB")
        self.assertEqual((list(crashes), crashes["oom"]), (KEYS, 1))
        waits = self.simulate(*arrivals, **run, gpus="1xA100-40GB", preload="yes")
        self.assertEqual(list(waits), KEYS + GIVING_WAY)
        self.assertEqual((waits["oom"], waits["suspensions"], waits["memory_waits"]), (0, 1, 1))
        self.assertGreater(waits["memory_wait_s"], 13)  # so long 19.5 GiB take to leave
        # On GPU 1, beside tiny, there is enough memory: b is moved there.
        three = (0, "a"), (1, "tiny"), (90, "b")
        moved = self.simulate(*three, **run, gpus="2xA100-40GB", preload="yes")
        self.assertEqual((moved["oom"], moved["moves"], moved["suspensions"]), (0, 1, 0))
        # Not even the context of the last one fits on GPU 0. It computes only after the move.
        early = (0, "full"), (1, "brief"), (120, "tiny")
        moved = self.simulate(*early, **run, gpus="2xA100-40GB", preload="yes")
        self.assertEqual((moved["completed"], moved["oom"], moved["moves"]), (3, 0, 1))
        self.assertAlmostEqual(moved["total_s"], 720, delta=3)
        # A task on two GPUs waits for the one that is full.
        wide = self.simulate((0, "a"), (90, "wide"), **run, gpus="2xA100-40GB", preload="yes")
        self.assertEqual((wide["completed"], wide["oom"], wide["memory_waits"]), (2, 0, 1))
        # 624 MiB of a GPU are the driver's: 30,000 + 10,400 do not fit, and one try shows it.
        tight = (0, "b"), (90, "b2")
        for way in ("preload", "make_room"):
            short = self.simulate(*tight, **run, gpus="1xA100-40GB", **{way: "yes"})
            self.assertEqual((short["oom"], short["memory_waits"]), (0, 1))
        words = [f"--{name.replace('_', '-')}={value}" for name, value in run.items()]
        trace = ("--trace", self.trace(*arrivals), "--tasks", self.tasks)
        out = self.colloc("simulate", *trace, "--gpus=A100-40GB", "--preload", *words)
        self.assertRegex(out, r"Memory +1 allocations waited, 0:\d\d in all\n")

    def test_memory_in_pieces(self):
        """The core counts the pieces together, and the last quarter of d fits into none of them: a
        task gives way once that was refused."""
        self.tasks = self.write(
            "tasks.csv",
            "task,gpus,solo_s,memory_mib,smact\na,1,120,10000,0.2\nb,1,900,10000,0.2\n"
            "c,1,900,15000,0.2\nd,1,600,15300,0.2\n",
        )
        run = {"policy": "rr", "estimator": "none", "known": "none", "sharing": "streams"}
        run.update(min_free_gib=0, margin_gib=0, smact_max=1, make_room="yes")
        run["gpu_kinds"] = self.write("linear.txt", "constant linear_memory 1\n")
        tried = self.simulate((0, "a"), (30, "b"), (60, "c"), (300, "d"), **run)
        self.assertEqual((tried["oom"], tried["completed"]), (0, 4))
        self.assertEqual((tried["memory_waits"], tried["suspensions"]), (1, 1))
        self.assertLess(tried["memory_wait_s"], 20)

    def test_making_room(self):
        self.tasks = self.write(
            "tasks.csv",
            "task,gpus,solo_s,memory_mib,smact,gract,dram,power_w\n"
            "small,1,3000,8000,0.2,0.3,0.1,135\nlarge,1,600,35000,0.9,1,0.1,135\n",
        )
        arrivals = (0, "small"), (60, "small"), (900, "large")
        run = {"policy": "magm", "gpus": "2xA100-40GB", "sharing": "streams"}
        waits = self.simulate(*arrivals, **run)
        moved = self.simulate(*arrivals, **run, make_room="yes")
        self.assertEqual((moved["moves"], moved["suspensions"]), (1, 0))
        self.assertLess(moved["avg_wait_s"], 15)
        self.assertGreater(waits["avg_wait_s"], 600)
        self.assertLess(moved["avg_jct_s"], waits["avg_jct_s"])

    def test_needs_that_are_wrong(self):
        arrivals = [
            (40 * time, task) for time, task in enumerate(["large", "small", "small", "large"] * 3)
        ]
        right, wrong, same = [self.simulate(*arrivals, need_error=error) for error in (0, 0.5, 0.5)]
        self.assertEqual(wrong, same)
        self.assertNotEqual(right, wrong)
        self.assertIn("--need-error", self.complaint_of("--need-error=-1"))

    def test_margin(self):
        arrivals = (0, "large"), (
            100,
            "small",
        )  # 10.7 GiB are left beside the large one, the small one takes 3.9
        self.assertEqual(self.simulate(*arrivals, margin_gib=6)["avg_wait_s"], 0)
        self.assertEqual(self.simulate(*arrivals, margin_gib=7)["avg_wait_s"], 50)

    def test_hold_off(self):
        arrivals = (0, "small"), (1, "small")
        self.assertGreater(self.simulate(*arrivals)["avg_wait_s"], 5)
        self.assertEqual(self.simulate(*arrivals, hold_off="0s")["avg_wait_s"], 0)

    def written(self, option, *arrivals, **options):
        self.simulate(*arrivals, **{option: os.path.join(self.folder, "out.csv")}, **options)
        with open(os.path.join(self.folder, "out.csv"), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def test_a_row_per_task(self):
        rows = self.written("per_task", (10, "small"), (10, "small"), policy="exclusive")
        self.assertEqual(
            [list(row.values()) for row in rows],
            [
                [
                    "1",
                    "small",
                    "1",
                    "completed",
                    *(f"{s:.6f}" for s in (10, 10, 110, 0, 100, 100)),
                    "1",
                    "0",
                ],
                [
                    "2",
                    "small",
                    "1",
                    "completed",
                    *(f"{s:.6f}" for s in (10, 110, 210, 100, 100, 200)),
                    "1",
                    "0",
                ],
            ],
        )
        crashed = self.written("per_task", (0, "large"), (100, "large"), estimator="none")[-1]
        self.assertEqual((crashed["attempts"], crashed["oom"]), ("2", "1"))

    def test_gpus_over_time(self):
        rows = self.written(
            "timeline", (0, "small"), (40, "large"), gpus="2xA100-40GB", policy="exclusive"
        )
        self.assertEqual(list(rows[0].values()), ["0.000000", "0", "0", "0.0000", "50.0", "0"])
        for gpu, memory, smact, power, tasks_s in (
            ("0", "4006", "0.3000", "135.0", 100),
            ("1", "30004", "0.6000", "185.0", 200),
        ):
            mine = [row for row in rows if row["gpu"] == gpu]
            busy = [row for row in mine if row["tasks"] == "1"]
            self.assertEqual(
                [row["mem_used_mib"] for row in busy],
                sorted((row["mem_used_mib"] for row in busy), key=int),
            )
            self.assertEqual(
                (busy[-1]["mem_used_mib"], busy[-1]["smact"], busy[-1]["power_w"]),
                (memory, smact, power),
            )
            self.assertEqual(float(mine[-1]["time_s"]) - float(busy[0]["time_s"]), tasks_s)
            self.assertEqual(
                (mine[-1]["mem_used_mib"], mine[-1]["power_w"], mine[-1]["tasks"]),
                ("0", "50.0", "0"),
            )

    def test_energy_is_the_power_over_time(self):
        path = os.path.join(ROOT, "data", "traces", "philly-60.txt")
        out = os.path.join(self.folder, "out.csv")
        result = json.loads(self.colloc("simulate", "--trace", path, "--json", "--timeline", out))
        energy_j, last = 0, {}
        with open(out, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                since_s, power_w = last.get(row["gpu"], (0, 0))
                energy_j += power_w * (float(row["time_s"]) - since_s)
                last[row["gpu"]] = float(row["time_s"]), float(row["power_w"])
        energy_j += sum(
            power_w * (result["total_s"] - since_s) for since_s, power_w in last.values()
        )
        self.assertAlmostEqual(energy_j / 1e6, result["energy_mj"], places=2)

    def test_own_traces(self):
        path = os.path.join(ROOT, "data", "traces", "philly-60.txt")
        words = ["simulate", "--trace", path, "--json", "--policy"]
        exclusive, magm = (
            json.loads(self.colloc(*words, policy)) for policy in ("exclusive", "magm")
        )
        for run in (exclusive, magm):
            self.assertEqual(run["completed"], 60)
            self.assertGreater(run["total_s"], run["lower_bound_s"])
        self.assertLess(magm["total_s"], 0.85 * exclusive["total_s"])
        self.assertEqual(exclusive, json.loads(self.colloc(*words, "exclusive", "--every-second")))
        slow = json.loads(self.colloc(*words, "magm", "--every-second"))
        self.assertLess(abs(magm["total_s"] / slow["total_s"] - 1), 0.05)

    def test_lower_bound(self):
        # Bound by the SMs: 6 x 200 s x 0.6; the last one arrives at 0 as well.
        self.assertAlmostEqual(self.simulate(*[(0, "small")] * 10)["lower_bound_s"], 300)
        # Bound by memory: 30000 of 40336 MiB for 200 s each.
        self.assertAlmostEqual(
            self.simulate(*[(0, "large")] * 2)["lower_bound_s"], 400 * 30000 / 40336
        )
        self.assertAlmostEqual(self.simulate((0, "small"), (500, "small"))["lower_bound_s"], 600)

    def test_columns_of_others(self):
        """Attributes of a task come from a task alike; an empty newer memory falls back to the
        older.
        """
        tasks = self.write(
            "theirs.csv",
            "task,model,dataset,batch_size,gpus,epochs,epoch_minutes,memory_mb_thesis,"
            "memory_mb_2025\n"
            "a,Resnet50,imagenet,32,1,2,1.5,5262,\n",
        )
        done = self.run_colloc(
            "simulate",
            "--trace",
            self.trace((0, "a")),
            "--tasks",
            tasks,
            "--sharing=streams",
            "--trace-out=-",
            "--json",
        )
        self.assertEqual(done.stderr, "")
        self.assertIn("need=5.1 GiB", done.stdout)
        result = json.loads(done.stdout[done.stdout.index("{") :])
        self.assertEqual(result["total_s"], 180)
        self.assertAlmostEqual(result["mean_smact"], 0.63 / 4)


class EarlyStop(SimulateCase):
    """Arrays by --stop. With the policy exclusive each trial runs alone, at the speed of its
    catalogue: 27 epochs of 100 s."""

    TASKS = "task,gpus,solo_s,memory_mib,smact,gract,dram,power_w,epochs\n" + (
        "trial,1,2700,4000,0.3,1,0.1,135,27\nwide,2,2700,4000,0.3,1,0.1,135,27\n"
        "plain,1,2700,4000,0.3,1,0.1,135,-\n"
    )
    RULE = "--stop=asha:metric=loss,min,rung=3"

    def words(self, rows, head="submit_s,task,array,metric"):
        return (
            "--trace="
            + self.write("arrays.csv", head + "\n" + "".join(f"{row}\n" for row in rows)),
            "--tasks=" + self.write("trials.csv", self.TASKS),
        )

    def run_stop(self, rows, *words, rule=RULE):
        words = self.words(rows) + (rule,) + words
        return json.loads(self.colloc("simulate", "--json", "--policy=exclusive", *words))

    def test_the_example_of_the_rule(self):
        """The reports at the first rung of the table in docs/sweeps.md, one GPU after the other:
        rank 1 of 1, 2 of 2 (stopped), 1 of 3."""
        lines = os.path.join(self.folder, "lines")
        result = self.run_stop(
            ["0,trial,s,0.5;0.3;0.2", "0,trial,s,0.7;0.6;0.6", "0,trial,s,0.4;0.2;0.1"],
            "--gpus=1xA100-40GB",
            "--trace-out=" + lines,
        )
        self.assertEqual(
            {key: result[key] for key in ("stopped", "completed", "failed", "arrays", "best_kept")},
            {"stopped": 1, "completed": 2, "failed": 0, "arrays": 1, "best_kept": 1},
        )
        self.assertEqual(result["saved_gpu_s"], 2400)
        self.assertEqual(result["total_s"], 2700 + 300 + 2700)
        self.assertEqual(result["avg_exec_s"], 5700 / 3)
        self.assertIsNone(result["lower_bound_s"])
        with open(lines, encoding="utf-8") as file:
            stops = [line for line in file.read().splitlines() if "stop" in line or "STOP" in line]
        self.assertEqual(
            stops,
            [
                "t=3000 stop trial#3 rung=0 rank=2 of=2",
                "t=3000 exit trial#3 stopped signal=15",
                "t=3000 end trial#3 STOPPED",
            ],
        )

    def test_diverged_and_maximised(self):
        rows = ["0,wide,s,0.5;0.6;0.7", "0,wide,s,nan", "0,wide,s,0.4", "0,wide,s,0.9;0.1;0.1"]
        result = self.run_stop(
            rows, "--gpus=2xA100-40GB", rule="--stop=asha:metric=acc,max,rung=3,factor=2"
        )
        # at 3: 0.5 is 1 of 1; nan 2 of 2; 0.4 2 of 3; 0.9 1 of 4. At 6: 0.6 1 of 1; 0.1 2 of 2
        self.assertEqual((result["stopped"], result["completed"]), (3, 1))
        self.assertEqual(result["saved_gpu_s"], 2 * (2400 + 2400 + 2100))
        self.assertEqual(result["best_kept"], 1)

    def test_drawn_curves(self):
        rows = [f"{100 * array},trial,s{array},-" for array in range(4) for _ in range(27)]
        first, again, other = (
            self.run_stop(rows, f"--curve-seed={seed}", "--gpus=4xA100-40GB") for seed in (1, 1, 2)
        )
        self.assertEqual(first, again)
        self.assertNotEqual(first["saved_gpu_s"], other["saved_gpu_s"])
        self.assertEqual(first["stopped"] + first["completed"], len(rows))
        self.assertGreater(first["stopped"], len(rows) // 2)
        self.assertGreater(first["completed"], 3)  # the best of an array is never stopped

    def test_beside_others(self):
        """Trials that share, are suspended and run again are judged as any: each ends once."""
        rows = [f"{100 * array},trial,s{array},-" for array in range(4) for _ in range(9)]
        for words in (
            ["--sharing=streams", "--slots=2m"],
            ["--sharing=mps", "--estimator=none"],
            ["--preload", "--estimator=none"],
        ):
            with self.subTest(words):
                arguments = self.words(rows) + (self.RULE, "--gpus=2xA100-40GB", *words)
                result = json.loads(self.colloc("simulate", "--json", "--policy=magm", *arguments))
                self.assertEqual(result["stopped"] + result["completed"], len(rows))
                self.assertGreater(result["stopped"], 8)

    def test_without_a_rule_arrays_are_tasks(self):
        rows = ["0,trial,s,0.5", "0,trial,s,oops", "9,trial,s,-"]
        words = self.words(rows) + ("--policy=exclusive", "--gpus=1xA100-40GB")
        result = json.loads(self.colloc("simulate", "--json", *words))
        self.assertEqual(result["completed"], 3)
        self.assertNotIn("stopped", result)
        self.assertIn("lower_bound_s", result)

    def test_the_text(self):
        words = self.words(["0,trial,s,0.5", "0,trial,s,0.7"]) + (self.RULE, "--gpus=1xA100-40GB")
        self.assertIn(
            "Early stop    1 trials stopped, which had 40:00 of GPU time left; the best trial of 1 "
            "of 1 arrays completed\n",
            self.colloc("simulate", "--policy=exclusive", *words),
        )

    def test_bad_input(self):
        follow = (
            'the rows of the array "s" must follow each other, with the same time, task and user'
        )
        for rows, complaint in [
            (["0,trial,s,1", "1,trial,s,1"], "arrays.csv:3: " + follow),
            (["0,trial,s,1", "0,wide,s,1"], "arrays.csv:3: " + follow),
            (["0,trial,s,1", "0,trial,t,1", "0,trial,s,1"], "arrays.csv:4: " + follow),
            (["0,trial,s,1", "0,trial,-,-", "0,trial,s,1"], "arrays.csv:4: " + follow),
            (
                ["0,plain,s,1"],
                'arrays.csv:2: the task "plain" of an array must be a training with epochs in the '
                "catalogue: they are the steps of --stop",
            ),
            (
                ["0,trial,s,0.9;much"],
                'arrays.csv:2: invalid metric "0.9;much": give its values at the rungs and at the '
                "end, as in 0.9;0.5;nan",
            ),
        ]:
            with self.subTest(rows):
                words = self.words(rows) + (self.RULE,)
                self.assertEqual(
                    self.complaint("simulate", *words, code=2).replace(self.folder + "/", ""),
                    complaint,
                )
        for words, complaint in [
            (
                [self.RULE],
                "trace.csv:1: --stop is a rule for arrays: the first line must name the column "
                '"array", which has the same value in all rows of an array',
            ),
            (["--curve-seed=2"], "--curve-seed has a meaning with --stop only"),
            (
                [self.RULE, "--resample=2"],
                "--stop: --resample draws single tasks, which are no arrays: use one of the two",
            ),
            (
                ["--stop=asha:metric=loss,min"],
                "stop=asha:metric=loss,min: must be asha:metric=NAME,min|max,rung=STEP[,factor=N], "
                "such as asha:metric=val_loss,min,rung=3",
            ),
        ]:
            with self.subTest(words):
                self.assertEqual(self.complaint_of(*words), complaint)


class BadInput(SimulateCase):
    def test_traces(self):
        for trace, complaint in [
            ("", "trace.csv: the file is empty: a line with the names of the columns is missing"),
            (
                "when,what\n",
                'trace.csv:1: the first line must name the columns "submit_s" and "task"; '
                "`colloc trace import` makes such a trace of another cluster's log",
            ),
            ("submit_s,task\n5,small\n4,small\n", "trace.csv:3: out of order: 4 s comes after 5 s"),
            (
                "submit_s,task\n-5,small\n",
                "trace.csv:2: submit_s is -5: it must be between 0 and 1e+10",
            ),
            ("submit_s,task\nnan,small\n", 'trace.csv:2: submit_s is "nan", which is not a number'),
            (
                "submit_s,task\n1e99,small\n",
                "trace.csv:2: submit_s is 1e99: it must be between 0 and 1e+10",
            ),
            (
                "submit_s,task\n0,tiny\n",
                'trace.csv:2: the catalogue of tasks (--tasks) has no "tiny"',
            ),
            ("submit_s,task\n0\n", "trace.csv:2: 1 fields, where the first line names 2 columns"),
            ("submit_s,task\n0,\n", "trace.csv:2: an arrival has a time and a task"),
            (
                "submit_s,task\n" + "x" * 70000,
                "trace.csv:2: the line is longer than 65534 bytes, or binary",
            ),
        ]:
            with self.subTest(trace[:40]):
                self.assertEqual(self.complaint_of(trace=trace), complaint)

    def test_catalogues(self):
        head = "task,gpus,solo_s,memory_mib,smact\n"
        for tasks, complaint in [
            (head, "bad.csv: no tasks"),
            (head + "a,0,1,1,1\n", "bad.csv:2: gpus is 0: it must be between 1 and 100000"),
            (head + "a,1,-1,1,1\n", "bad.csv:2: solo_s is -1: it must be between 0 and 1e+09"),
            (head + "a,1,1,1,nan\n", 'bad.csv:2: smact is "nan", which is not a number'),
            (head + "a,1,1,1,7\n", "bad.csv:2: smact is 7: it must be between 0 and 1"),
            (
                head + "a,1,,1,1\n",
                'bad.csv:2: the time of "a" is missing: solo_s, or epochs and epoch_minutes',
            ),
            (head + "a,1.5,1,1,1\n", "bad.csv:2: gpus is 1.5: it must be a whole number"),
            (head + "a,nan,1,1,1\n", 'bad.csv:2: gpus is "nan", which is not a number'),
            (
                head + "a,1,1,1e300,1\n",
                "bad.csv:2: memory_mib is 1e300: it must be between 0 and 1e+08",
            ),
            (head + "a,1,1,1,1,1\n", "bad.csv:2: 6 fields, where the first line names 5 columns"),
            (head + "a,1,1,,1\n", 'bad.csv:2: the memory of "a" is missing: memory_mib'),
            (head + "a,1,1,1,1\na,1,1,1,1\n", 'bad.csv: "a" is listed twice'),
        ]:
            with self.subTest(tasks):
                self.assertEqual(self.complaint_of(tasks=tasks), complaint)

    def test_options(self):
        for words, complaint in [
            (["--gpus=0xA100-40GB"], '"0" GPUs: there must be 1 to 100000'),
            (["--gpus=0"], '"0" is a number of GPUs without a kind: write 4xA100-40GB'),
            (
                ["--gpus=B100"],
                'no GPU is called "B100"; there are: A100-40GB, A100-80GB, H100, H200, V100-16GB, '
                "V100-32GB, T4, A10, A30, A40, L4, L40S, A6000, RTX-3090, RTX-4090, RTX-5090, "
                "B200, A100-40GB-DGX-Station",
            ),
            (["--gpus=A100-40GB:9g.5gb"], 'A100-40GB has no MIG profile "9g.5gb"'),
            (
                ["--gpus=A100-40GB:7g.40gb+1g.5gb"],
                "these MIG instances are more than one A100-40GB",
            ),
            (
                ["--policy=magn"],
                "--policy=magn: no such policy; did you mean magm; give one of exclusive, rr, "
                "magm, "
                "lug, mug, first-fit, best-fit, predictive, las, off, obf, owf, olug",
            ),
            (["--smact-max=nan"], "--smact-max=nan: invalid number: give one from 0 to 1"),
            (["--min-free-gib=-1"], "--min-free-gib=-1: invalid number: give one from 0 to 1e+06"),
            (["--margin-gib=x"], "--margin-gib=x: invalid number: give one from 0 to 1e+06"),
            (["--timeline=/nowhere/t.csv"], "/nowhere/t.csv: No such file or directory"),
            (
                ["--estimator=psychic"],
                'estimator "psychic": the tasks have no column psychic_mb_reported or psychic_mib; '
                "without such columns there are none and declared",
            ),
        ]:
            with self.subTest(words):
                self.assertEqual(self.complaint_of(*words), complaint)
        self.assertEqual(
            self.complaint("simulate", code=2),
            "simulate: no trace given: add --trace=FILE (`colloc help simulate` has its form)",
        )

    LOG = (
        "JobID|User|Submit|Elapsed|State|AllocTRES\n"
        "7|ada|2024-03-01T10:00:00|00:01:40|COMPLETED|gres/gpu=1\n"
        "8|bob|2024-03-01T10:00:10|00:05:00|COMPLETED|gres/gpu=2\n"
        "9|bob|2024-03-01T10:00:10|00:05:00|COMPLETED|gres/gpu=16\n"
    )

    def test_the_jobs_of_a_log_keep_their_lengths(self):
        """It gives what `trace import --tasks-out` and a simulation of its trace give: no task of
        the catalogue is as long as the first job."""
        log = self.write("log", self.LOG.replace("00:01:40", "3-00:00:00"))
        trace, tasks, rows = (f"{self.folder}/{name}.csv" for name in ("made", "jobs", "rows"))
        self.colloc("trace", "import", log, "-o", trace, "--tasks-out", tasks, "--gpus=2")
        words = ("--json", "--gpus=2xA100-40GB")
        expected = json.loads(self.colloc("simulate", trace, "--tasks", tasks, *words))
        done = self.run_colloc("simulate", log, "--per-task", rows, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), expected)
        self.assertIn("each job keeps its GPUs and its length", done.stderr)
        self.assertIn("memory and activity of the jobs are not in the log", done.stderr)
        with open(rows, encoding="utf-8") as file:
            exec_s = {row["task"]: float(row["exec_s"]) for row in csv.DictReader(file)}
        self.assertGreaterEqual(exec_s["j1"], 3 * 86400)
        self.assertGreaterEqual(exec_s["j2"], 300)

    def test_a_log_is_recognised(self):
        """With a catalogue it gives what `trace import` and a simulation of its trace give."""
        log, trace = self.write("log", self.LOG), self.folder + "/made.csv"
        words = ("--tasks", self.tasks, "--gpus=2xA100-40GB")
        self.colloc("trace", "import", log, "-o", trace, "--tasks", self.tasks, "--gpus=2")
        expected = json.loads(self.colloc("simulate", trace, "--json", *words))
        done = self.run_colloc("simulate", log, "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), expected)
        self.assertEqual(expected["completed"], 2)
        self.assertIn("log: read as `colloc trace import --from=sacct` does", done.stderr)
        self.assertIn("log: 3 jobs read, 2 kept", done.stderr)
        self.assertEqual(
            self.colloc("simulate", "--trace", log, "--json", *words, "--resample=1")[:1], "{"
        )

    def test_a_pipe_is_not_read_ahead(self):
        words = ("--tasks", self.tasks, "--json")
        trace = "submit_s,task\n0,small\n"
        for path in ("/dev/stdin", "-"):
            done = self.run_colloc("simulate", path, *words, stdin=trace)
            self.assertEqual(json.loads(done.stdout)["completed"], 1, done.stderr)

    def test_logs_and_traces_that_cannot_be(self):
        log = self.write("log", self.LOG)
        self.assertIn(
            "none of its jobs ran on GPUs, ended, and fits these 1",
            self.complaint(
                "simulate",
                self.write("large", "\n".join(self.LOG.splitlines()[::3])),
                "--gpus=A100-40GB",
                code=2,
            ),
        )
        self.assertIn("two traces given", self.complaint("simulate", log, f"--trace={log}", code=2))

    def test_tables_of_spreadsheets(self):
        trace = self.write("trace.csv", "\ufeffsubmit_s,task\r\n0,small\r\n")
        result = json.loads(
            self.colloc("simulate", "--trace", trace, "--tasks", self.tasks, "--json")
        )
        self.assertEqual(result["completed"], 1)

    def test_what_fits_nowhere_is_left_out(self):
        trace = self.trace((0, "giant"), (1, "pair"), (2, "small"))
        words = ("--trace", trace, "--tasks", self.tasks, "--gpus=A100-40GB")
        done = self.run_colloc("simulate", *words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["completed"], 1)
        self.assertIn(" 2 left out, ", self.colloc("simulate", *words))
        giant, pair = done.stderr.splitlines()
        self.assertIn("trace.csv:2: left out: giant: memory=48.8 GiB", giant)
        self.assertIn("trace.csv:3: left out: pair: gpus=2", pair)

    def test_reserved_memory_is_not_free(self):
        """624 MiB of an A100-40GB are the driver's, whether allocations can wait or not."""
        self.tasks = self.write(
            "tasks.csv",
            "task,gpus,solo_s,memory_mib,smact\nlarger,1,100,40400,0.2\n"
            "most,1,100,30000,0.2\nrest,1,100,10400,0.2\n",
        )
        for run in ({"sharing": "streams"}, {"sharing": "streams", "preload": "yes"}):
            alone = self.simulate((0, "larger"), **run)
            self.assertEqual((alone["left_out"], alone["oom"], alone["failed"]), (1, 0, 0))
            one_after_the_other = self.simulate((0, "most"), (90, "rest"), margin_gib=0, **run)
            self.assertEqual(one_after_the_other["oom"], 0)
            self.assertAlmostEqual(one_after_the_other["total_s"], 200, delta=1)

    def test_what_turns_out_too_large_fails(self):
        result = self.simulate((0, "giant"), (1, "small"), estimator="none")
        self.assertEqual((result["oom"], result["completed"]), (1, 1))

    def test_kinds(self):
        for text, complaint in [
            ("kind X 100 200 10 1 1 1 1\n", 'kinds.txt:1: reserved_mib: "200" is not possible'),
            ("constant switch_cost nan\n", 'kinds.txt:1: switch_cost: "nan" is not possible'),
            ("kind X 100 20 0 9 1 1 1\n", 'kinds.txt:1: sms: "0" is not possible'),
            ("kind X 100 20 10 nan 1 1 1\n", 'kinds.txt:1: watts: "nan" is not possible'),
            (
                "kind X 100 20 10 9 5 1 1\n",
                "kinds.txt:1: awake_w must be between idle_w and limit_w",
            ),
            ("constant ramp_s 1e99\n", 'kinds.txt:1: ramp_s: "1e99" is not possible'),
            ("constant switch_cost 2\n", 'kinds.txt:1: switch_cost: "2" is not possible'),
            ("\nconstant speed 2\n", 'kinds.txt:2: there is no constant "speed"'),
            (
                "gpu X\n",
                "kinds.txt:1: a line begins with constant, kind, alias, speed, nvml or mig, not "
                "with "
                '"gpu"',
            ),
        ]:
            with self.subTest(text):
                self.assertEqual(
                    self.complaint_of("--gpu-kinds", self.write("kinds.txt", text)), complaint
                )

    def test_kinds_of_ones_own(self):
        kinds = self.write(
            "kinds.txt", "kind Mine 60000 500 100 300 20 30 100\nconstant ramp_s 1\n"
        )
        result = self.simulate((0, "giant"), gpus="Mine", gpu_kinds=kinds)
        self.assertEqual(result["completed"], 1)


MIXES = """gpu,driver,sharing,trainings,speeds,smact,power_w,crashed
A100-40GB,580,mps,small + large,0.5 + 0.25,0.9,300,
A100-40GB,580,mps,small + small,0.4 + 0.6,0.8,250,
"""


class Mixes(SimulateCase):
    """--mixes: measured speeds of trainings that share a GPU."""

    def mixed(self, *arrivals, mixes=MIXES, **options):
        # Nothing holds the second training off, and no memory step takes time.
        return self.simulate(
            *arrivals,
            mixes=self.write("mixes.csv", mixes),
            policy="rr",
            smact_max=1,
            margin_gib=0,
            **options,
        )

    def test_the_measured_speeds_hold(self):
        rows = os.path.join(self.folder, "rows.csv")
        result = self.mixed((0, "large"), (0, "small"), per_task=rows)
        with open(rows, encoding="utf-8") as file:
            small, large = sorted(csv.DictReader(file), key=lambda row: row["task"])[::-1]
        # small: 100 s at 0.5; large: at 0.25 meanwhile, then alone.
        self.assertAlmostEqual(float(small["exec_s"]), 200, delta=8)
        self.assertAlmostEqual(float(large["exec_s"]), 200 + (200 - 50), delta=8)
        self.assertEqual(result["mixes"]["measured"], 1)
        self.assertEqual(result["mixes"]["missing"], 0)

    def test_equal_trainings_have_their_mean(self):
        result = self.mixed((0, "small"), (0, "small"))
        # While the second waits the first is alone, and so is the second after the first.
        self.assertAlmostEqual(result["avg_exec_s"], 200 - 2 * result["avg_wait_s"], delta=2)

    def test_missing_mixes_are_modelled_and_listed(self):
        missing = os.path.join(self.folder, "missing.csv")
        result = self.mixed((0, "large"), (0, "small"), sharing="streams", mixes_missing=missing)
        model = self.simulate(
            (0, "large"),
            (0, "small"),
            sharing="streams",
            policy="rr",
            smact_max=1,
            margin_gib=0,
        )
        self.assertEqual(result["total_s"], model["total_s"])
        self.assertEqual(
            result["mixes"],
            {
                "measured": 0,
                "missing": 1,
                "crashed": 0,
                "measuring_s": 30,
                "longest_missing": {"trainings": "large + small", "sharing": "streams"},
            },
        )
        with open(missing, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 1)
        self.assertEqual(rows[0]["trainings"], "large + small")
        self.assertEqual((rows[0]["gpu"], rows[0]["sharing"]), ("A100-40GB", "streams"))
        self.assertGreater(float(rows[0]["simulated_s"]), 100)
        # until the first has shown its memory
        self.assertAlmostEqual(float(rows[0]["first_s"]), model["avg_wait_s"] * 2, delta=2)

    def test_without_a_table_all_are_missing(self):
        result = self.simulate(
            (0, "small"),
            (0, "small"),
            policy="rr",
            mixes_missing=os.path.join(self.folder, "m.csv"),
        )
        self.assertEqual(result["mixes"]["measured"], 0)

    def test_a_mix_that_crashed_is_named_and_not_measured_again(self):
        missing = os.path.join(self.folder, "missing.csv")
        crashed = MIXES.splitlines()[0] + "\nA100-40GB,580,mps,large + small,,,,1\n"
        result = self.mixed((0, "large"), (0, "small"), mixes=crashed, mixes_missing=missing)
        self.assertEqual((result["mixes"]["missing"], result["mixes"]["crashed"]), (0, 1))
        with open(missing, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 1)

    def test_bad_tables(self):
        head, first = MIXES.splitlines()[:2]
        for lines, complaint in [
            ([head], "no mix stands there"),
            (["a,b", "1,2"], "no column gpu: is it a table of mixes?"),
            ([head, first, first], "the mix large + small (mps) stands there twice"),
            (
                [head, first.replace("0.5 + 0.25", "0.5")],
                "it has 2 trainings, but not as many speeds",
            ),
            ([head, first.replace("0.25", "nan")], 'invalid speed "nan"'),
            ([head, first.replace("0.25", "-1")], 'invalid speed "-1"'),
            ([head, first.replace("0.25", "0")], 'invalid speed "0"'),
            ([head, first.replace("mps", "mig")], "sharing: give streams or mps"),
            ([head, first.replace("0.5 + 0.25", "")], "give speeds, or crashed 1"),
            ([head, first + "1"], "give speeds, or crashed 1"),
            (
                [head, first.replace("small + ", "small +  + ").replace("0.5", "1 + 1")],
                "a training has no name",
            ),
            (
                [head, first, first.replace("580", "535")],
                "driver 535, but mixes before it are of 580",
            ),
            ([head, first, first.replace("A100-40GB", "H200")], "gpu H200, but mixes before it"),
            ([head, first.replace("A100-40GB", "H200")], "a simulated GPU is A100-40GB"),
            (
                [head, first.replace("small + large", " + ".join(["s"] * 65))],
                "more than 64 trainings",
            ),
        ]:
            with self.subTest(complaint):
                table = self.write("mixes.csv", "\n".join(lines) + "\n")
                self.assertIn(complaint, self.complaint_of("--mixes", table))
        table = self.write("mixes.csv", MIXES)
        self.assertIn(
            "mixes are of one kind of GPU",
            self.complaint_of("--mixes", table, "--gpus", "A100-40GB,H100"),
        )


class Promises(SimulateCase):
    """Tasks that are promised a speed, and a truth that the scheduler's model does not know."""

    CATALOGUE = (
        "task,gpus,solo_s,memory_mib,smact,gract,dram\n"
        "long,1,20000,4000,0.5,1,0.1\nshort,1,2000,4000,0.5,1,0.1\n"
    )

    def result(self, *words, tasks=2, last="long"):
        catalogue = self.write("long.csv", self.CATALOGUE)
        kinds = ["long"] * (tasks - 1) + [last]
        trace = self.trace(*((60 * i, kind) for i, kind in enumerate(kinds)))
        return json.loads(
            self.colloc(
                "simulate",
                f"--trace={trace}",
                f"--tasks={catalogue}",
                "--gpus=1xA100-40GB",
                "--policy=predictive",
                "--json",
                *words,
            )
        )

    def test_a_promise_keeps_others_away(self):
        shared = self.result()
        self.assertNotIn("promised", shared)
        self.assertNotIn("delay_factor_mps", shared)
        promised = self.result("--promise=1.2")
        self.assertEqual((promised["promised"], promised["promises_kept"]), (2, 2))
        self.assertAlmostEqual(promised["longest_promised"], 1, delta=0.02)
        self.assertAlmostEqual(promised["total_s"], 40000, delta=500)
        self.assertLess(shared["total_s"], 0.9 * promised["total_s"])

    def test_a_wrong_model_is_corrected(self):
        self.assertEqual(self.result("--promise=3")["delay_factor_mps"], 1)
        wrong = self.result("--delay-factor=1.5")
        learning = self.result("--delay-factor=1.5", "--learn-delays")
        self.assertGreater(wrong["total_s"], self.result()["total_s"])
        self.assertGreater(wrong["prediction_error_later"], 0.08)
        self.assertLess(learning["prediction_error_later"], 0.5 * wrong["prediction_error_later"])
        self.assertAlmostEqual(learning["delay_factor_mps"], 1.5, delta=0.1)
        self.assertEqual(learning["delay_factor_streams"], 1)

    def test_a_probe_measures_what_was_never_alone(self):
        unknown = ("--promise=3", "--speeds-unknown=1")
        without = self.result(*unknown, last="short")
        self.assertEqual((without["speeds_known"], without["probes"]), (1, 0))
        self.assertEqual((without["probes_s"], without["probes_cost"]), (0, 0))
        probed = self.result(*unknown, "--probe-share=0.01", last="short")
        self.assertEqual((probed["speeds_known"], probed["probes"]), (2, 1))
        self.assertTrue(1 < probed["probes_s"] < 5, probed["probes_s"])
        self.assertTrue(0 < probed["probes_cost"] <= 0.01, probed["probes_cost"])

    def test_a_share_of_the_tasks_is_promised(self):
        some = self.result("--promise=50", "--promise-share=0.5", tasks=20)
        self.assertTrue(3 <= some["promised"] <= 17, some["promised"])
        self.assertEqual(some, self.result("--promise=50", "--promise-share=0.5", tasks=20))
        self.assertEqual(self.result("--promise=50", "--promise-share=0")["promised"], 0)

    def test_bad_values_are_named(self):
        for words, complaint in (
            (("--promise=0.9",), "--promise=0.9: a task cannot take less time than alone"),
            (("--promise=101",), "--promise=101: invalid number"),
            (("--promise=1.2", "--promise-share=1.1"), "--promise-share=1.1: invalid number"),
            (("--promise-share=0.5",), "--promise-share has a meaning with --promise only"),
            (("--delay-factor=0",), "--delay-factor=0: give a number above 0"),
            (("--delay-factor=-1",), "--delay-factor=-1: invalid number"),
            (("--delay-error=x",), "--delay-error=x: invalid number"),
            (("--speeds-unknown=1.1",), "--speeds-unknown=1.1: invalid number"),
            (("--probe-share=-0.1",), "--probe-share=-0.1: invalid number"),
        ):
            with self.subTest(words):
                self.assertIn(complaint, self.complaint_of(*words))


if __name__ == "__main__":
    unittest.main()
