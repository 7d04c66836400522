# SPDX-License-Identifier: Apache-2.0
"""MPS under colloc: control daemons, limits, ends, and failures of one client among several."""
import os
import signal
import time
import unittest

from daemon_case import DaemonCase, at_least, is_alive, processes_with, read, until


# The first attempt of a task goes on until it is stopped, and ends where the file is there.
STOPPED_ONCE = "$([ -e again ] && echo 5 || echo 1e6)"


class Care(DaemonCase):
    gpus = "1xA100-40GB"
    settings = {"sharing": "mps"}

    def out_of_memory_to_the_end(self, ended):
        """The last attempt is alone. There is one more if the neighbour was still there at the
        first retry."""
        self.assertIn(ended["attempt_count"], (2, 3))
        self.assertEqual(ended["oom_count"], ended["attempt_count"])
        self.assertEqual(ended["failure"], "gpu-oom")

    @property
    def home(self):
        return f"{self.state}/mps/{os.geteuid()}"

    def processes(self, name):
        """Of this test's daemon: those whose program has the name."""

        def program_of(pid):
            try:
                return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            except OSError:
                return ""

        return [pid for pid in processes_with(self.folder) if program_of(pid) == name]

    def server(self):
        return until(lambda: self.processes("nvidia-cuda-mps-server"), "an MPS server")[0]

    def control(self):
        return self.processes("nvidia-cuda-mps-control")

    def small(self, seconds=1e6, options="", **members):
        return self.train(3000, seconds, "--smact=0.1 " + options, **members)

    def running(self, count, **members):
        """Starts `count` clients of one server and waits until collocd has sampled their memory.
        From a run that ends earlier it learns too low a limit for the command's next run."""
        tasks = [self.small(**members) for _ in range(count)]
        for task in tasks:
            until(
                lambda task=task: "(MPS)" in self.output(task), f"task {task} to be a client of MPS"
            )
            until(
                lambda task=task: at_least(self.task(task)["mem_used_mib"], 3000),
                f"the memory of task {task}",
            )
        return tasks

    def story(self, task, event):
        return [entry["text"] for entry in self.task(task)["events"] if entry["event"] == event]

    def cancel(self, *tasks):
        for task in tasks:
            self.act("cancel", task)
        return [self.wait(task, "CANCELLED") for task in tasks]


class NamedGpus(Care):
    gpus = "2xA100-40GB"
    settings = {"sharing": "mps", "mps-gpus": "1", "policy": "magm"}

    def test_only_the_named_gpus_share_by_mps(self):
        tasks = [self.small() for _ in range(4)]
        for task in tasks:
            until(lambda task=task: self.output(task), f"the first line of task {task}")
        by_gpu = {}
        for task in tasks:
            by_gpu.setdefault(self.task(task)["gpus"][0], []).append("(MPS)" in self.output(task))
        self.assertEqual(
            {gpu: set(clients) for gpu, clients in by_gpu.items()}, {"0": {False}, "1": {True}}
        )
        turns = next(task for task in tasks if self.task(task)["gpus"][0] == "0")
        self.assertIn(
            "the setting mps-gpus does not list its GPU", self.colloc("show", str(turns)).stdout
        )


class Instances(Care):
    """Each MIG instance has its own control daemon; a task of 37 GB needs the whole GPU."""

    gpus = "1xA100-40GB:2g.10gb,1xA100-40GB"
    settings = {"sharing": "mps", "mps-linger": "200ms"}

    def on_instance(self):
        """Two tasks on the instance, while a third fills the whole GPU."""
        large = self.train(37000, 1e6, "--smact=0.1", memory_mib=37000)
        until(lambda: "Using GPU-" in self.output(large), "the large task on the whole GPU")
        tasks = self.running(2, memory_mib=3000)
        for task in tasks:
            self.assertEqual(self.task(task)["gpus"], ["0:0"])
            self.assertRegex(self.output(task), r"Using MIG-\S+ \(MPS\)")
        return large, tasks

    def daemons(self):
        """The control daemons that run: GPU and tasks of each."""
        shown = self.get("/v1/mps")["daemons"]
        return {d["gpu"]: d["tasks"] for d in shown if d["state"] == "running"}

    def test_tasks_share_an_instance_by_its_own_server(self):
        large, tasks = self.on_instance()
        self.assertEqual(self.daemons(), {None: 1, "0:0": 2})
        self.assertEqual(len(self.processes("nvidia-cuda-mps-server")), 2)
        self.assertRegex(self.colloc("mps").stdout, r"(?m)^\S+ +0:0 +running")
        before = sorted(self.control())
        self.restart(signal.SIGKILL)
        self.assertEqual(self.daemons(), {None: 1, "0:0": 2})
        self.assertEqual(sorted(self.control()), before)
        self.cancel(*tasks)
        until(lambda: self.daemons() == {None: 1}, "the end of the instance's control daemon")
        self.cancel(large)

    def test_a_removed_instance_takes_its_control_daemon_along(self):
        self.restart(mps_linger="1h")
        _, tasks = self.on_instance()
        self.emulator("set", "0", "vanish=0")
        for task in tasks:
            self.wait_state(task, "PENDING")
        until(lambda: self.daemons() == {None: 1}, "the end of the instance's control daemon")
        self.emulator("set", "0", "appear=0")
        for task in tasks:
            until(lambda task=task: self.task(task)["state"] == "RUNNING", f"task {task} again")
        until(lambda: self.daemons() == {None: 1, "0:0": 2}, "its next control daemon")

    def test_a_named_instance(self):
        self.restart(mps_gpus="1", gpus="0:0")
        task = self.small()
        until(lambda: "(streams)" in self.output(task), f"task {task} to be time-sliced")
        self.cancel(task)
        self.restart(mps_gpus="0:0", gpus="0:0")
        self.running(1)


class Daemons(Care):
    settings = {"sharing": "mps", "mps-linger": "200ms"}

    def test_starts_with_the_first_client_and_stops_when_unused(self):
        self.assertEqual(self.control(), [])
        (task,) = self.running(1)
        self.assertEqual(len(self.control()), 1)
        shown = self.get("/v1/mps")["daemons"]
        self.assertEqual(
            [(d["state"], d["tasks"], d["pipe_directory"]) for d in shown],
            [("running", 1, f"{self.home}/pipe")],
        )
        self.assertIn("running", self.colloc("mps").stdout)
        self.cancel(task)
        until(lambda: not self.control(), "the end of the control daemon")
        until(
            lambda: self.get("/v1/mps")["daemons"][0]["state"] == "stopped",
            "that collocd knows of it",
        )

    def test_goes_after_clients_that_are_not_ours_too(self):
        self.restart(log_level="debug")
        (task,) = self.running(1)
        other = self.small(
            sharing="streams", environment={"CUDA_MPS_PIPE_DIRECTORY": f"{self.home}/pipe"}
        )
        until(lambda: "(MPS)" in self.output(other))
        self.cancel(task)
        self.wait_log("stays: 1 process still uses it")
        self.cancel(other)
        until(lambda: not self.control(), "the end of the control daemon")

    def test_does_not_stay_for_a_task_that_was_cancelled_meanwhile(self):
        self.restart(log_level="debug")
        self.cancel(self.small())
        until(lambda: not self.control(), "the end of the control daemon")

    def test_a_new_collocd_takes_over_the_old_ones(self):
        (task,) = self.running(1)
        self.restart(signal.SIGKILL)
        self.assertEqual(self.get("/v1/mps")["daemons"][0]["tasks"], 1)
        self.cancel(task)
        until(lambda: not self.control(), "the end of the control daemon")

    def test_stays_while_its_clients_outlive_collocd_and_goes_with_it_otherwise(self):
        (task,) = self.running(1)
        self.stop()
        self.assertEqual(len(self.control()), 1)
        self.start(mps_linger="1h")
        self.cancel(task)
        self.assertEqual(len(self.control()), 1)
        self.stop()
        until(lambda: not self.control(), "the end of the control daemon")
        self.start()

    def test_a_stale_pipe_directory(self):
        os.makedirs(f"{self.home}/pipe")
        os.mkfifo(f"{self.home}/pipe/control_lock")
        for name, text in (
            ("nvidia-cuda-mps-control.pid", "999999\n"),
            ("control", "not even a socket"),
            ("keep.txt", "mine"),
        ):
            with open(f"{self.home}/pipe/{name}", "w", encoding="ascii") as file:
                file.write(text)
        (task,) = self.running(1)
        self.assertEqual(read(f"{self.home}/pipe/keep.txt"), "mine")
        self.cancel(task)


class ByHand(Care):
    settings = {"sharing": "streams"}

    def test_start_and_stop(self):
        self.assertIn("No MPS control daemons.", self.colloc("mps", "status").stdout)
        self.colloc("mps", "start")
        self.assertEqual(len(self.control()), 1)
        self.colloc("mps", "start")
        task = self.small(sharing="mps")
        until(lambda: "(MPS)" in self.output(task))
        self.assertIn("1 task of user", self.colloc("mps", "stop", code=1).stderr)
        self.cancel(task)
        self.colloc("mps", "stop")
        self.assertEqual(self.control(), [])
        self.assertIn("has no MPS control daemon", self.colloc("mps", "stop", code=1).stderr)
        self.assertIn("give status, start or stop", self.colloc("mps", "restart", code=2).stderr)

    def test_not_below_a_run_that_is_not_ours(self):
        self.colloc("mps", "start")
        environment = {"CUDA_MPS_PIPE_DIRECTORY": f"{self.home}/pipe"}
        other = self.small(environment=environment)
        until(lambda: "(MPS)" in self.output(other))
        self.assertIn("1 process still uses it", self.colloc("mps", "stop", code=1).stderr)
        self.cancel(other)
        self.colloc("mps", "stop")


class Limits(Care):
    def test_a_wrong_need_hurts_only_its_own_task(self):
        (neighbour,) = self.running(1)
        wrong = self.train(12000, 60, "--smact=0.1", memory_mib=6000)
        until(lambda: self.task(wrong)["oom_count"] == 1, "a crash at the limit")
        self.assertIn("at most 7.9 GiB", self.story(wrong, "PLACE")[0])
        self.assertIn("gpu-oom under its own limit of 7.9 GiB", self.story(wrong, "EXITED")[0])
        self.cancel(neighbour)
        self.assertEqual(self.wait(wrong, "COMPLETED")["mem_limit_mib"], None)

    def test_one_that_leaks_until_it_crashes(self):
        neighbour = self.small(100)
        leaking = self.small(1e6, "--leak-mib=200", memory_mib=4000)
        self.wait(neighbour, "COMPLETED")
        ended = self.wait(leaking, "OUT_OF_MEMORY")
        self.out_of_memory_to_the_end(ended)
        self.assertIn("with its GPU to itself", ended["reason_text"])

    def test_not_wanted(self):
        self.restart(mps_memory_limit="no")
        task = self.small(memory_mib=4000)
        self.wait_state(task, "RUNNING")
        self.assertIsNone(self.task(task)["mem_limit_mib"])
        self.cancel(task)

    def test_part_of_the_sms(self):
        task = self.submit(
            "env; exec colloc-pretend-train --memory-mib=2000 --seconds=1",
            thread_percentage=30,
            memory_mib=2000,
        )
        self.wait(task, "COMPLETED")
        lines = self.output(task).splitlines()
        self.assertIn("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30", lines)
        self.assertIn("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4048M", lines)
        self.assertIn(", mps, 30 % of the SMs, at most 4.0 GiB", self.story(task, "PLACE")[0])
        self.refused(400, "thread_percentage", script="true", thread_percentage=101)

    def test_priority_is_for_those_that_were_promised_a_speed(self):
        own = {"CUDA_MPS_CLIENT_PRIORITY": "0"}
        plain = self.submit("env", memory_mib=1000, environment=own)
        promised = self.submit("env", memory_mib=1000, max_slowdown=1.5)
        for task, priority in ((plain, 1), (promised, 0)):
            self.wait(task, "COMPLETED")
            lines = self.output(task).splitlines()
            self.assertIn(f"CUDA_MPS_CLIENT_PRIORITY={priority}", lines)

    def test_frameworks_own_limits_by_streams(self):
        """8192 MiB and the margin of 2048, of the 40336 that tasks can have of a GPU."""
        self.restart(sharing="streams", framework_memory_limit="yes")
        own = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
        first = self.submit("env", memory_mib=8192, environment=own)
        second = self.submit(
            "env", memory_mib=8192, environment={"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.9"}
        )
        third = self.submit("env")
        for task in (first, second, third):
            self.wait(task, "COMPLETED")
        self.assertIn(
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,per_process_memory_fraction:0.2539",
            self.output(first),
        )
        self.assertIn("XLA_PYTHON_CLIENT_MEM_FRACTION=0.2539", self.output(first))
        self.assertIn(
            "PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.2539", self.output(second)
        )
        self.assertIn("XLA_PYTHON_CLIENT_MEM_FRACTION=0.9\n", self.output(second))
        self.assertNotIn("ALLOC_CONF", self.output(third))


class Endings(Care):
    def server_log(self):
        return read(f"{self.home}/log/server.log")

    def test_its_work_is_dropped_before_it_is_signalled(self):
        neighbour, task = self.running(2)
        self.cancel(task)
        self.assertEqual(self.server_log().count("Client termination succeeded"), 1)
        self.assertEqual(self.task(neighbour)["state"], "RUNNING")
        self.cancel(neighbour)

    def test_one_that_wants_to_write_a_checkpoint_is_left_to_it(self):
        (task,) = self.running(1)
        polite = self.small(options="--catch-term")
        until(lambda: "(MPS)" in self.output(polite))
        ended, _ = self.cancel(polite, task)
        self.assertEqual(ended["exit_code"], 0)
        self.assertNotIn("Traceback", self.output(polite))
        self.assertEqual(self.server_log().count("Client termination succeeded"), 1)

    def wrapped(self, how, sharing="mps"):
        """What a wrapper reported when its task was cancelled, and how long that took."""
        training = (
            "colloc-pretend-train --memory-mib=2000 --seconds=1e6 --ramp-seconds=1 --smact=0.1"
        )
        task = self.submit(how.format(training=training), sharing=sharing, grace_s=120)
        until(lambda: (self.task(task)["mem_used_mib"] or 0) >= 2000, "the training")
        begin = time.monotonic()
        self.cancel(task)
        said = [line for line in self.output(task).splitlines() if line == "checkpoint saved"]
        return said, time.monotonic() - begin

    def test_a_wrapper_that_traps_sigterm_has_its_grace(self):
        wrapper = "set -e; trap 'echo checkpoint saved' TERM; {training}"
        self.running(1)
        for sharing in ("streams", "mps"):
            words, took = self.wrapped(wrapper, sharing)
            self.assertEqual(words, ["checkpoint saved"], sharing)
            self.assertLess(took, 60)  # bash waits for its foreground, which is dropped at once
        self.assertEqual(self.server_log().count("Client termination succeeded"), 1)

    def test_a_wrapper_saves_while_its_training_still_works(self):
        self.running(1)
        words, took = self.wrapped(
            "trap 'sleep 0.5; kill -0 $pid && echo checkpoint saved; exit' TERM; "
            "{training} & pid=$!;"
            "wait $pid"
        )
        self.assertEqual(words, ["checkpoint saved"])
        self.assertLess(took, 60)
        self.assertEqual(
            self.server_log().count("Client termination succeeded"), 1
        )  # once the wrapper had ended

    def test_a_wrapper_that_does_not_end_is_not_waited_for_beyond_its_grace(self):
        task = self.submit(
            "trap 'echo trapped' TERM; "
            "colloc-pretend-train --memory-mib=2000 --seconds=1e6 --smact=0.1 &"
            "while :; do wait; done",
            grace_s=0.3,
        )
        until(lambda: "(MPS)" in self.output(task), "a client of MPS")
        self.cancel(task)
        self.assertIn("trapped", self.output(task))
        self.assertEqual(self.server_log().count("Client termination succeeded"), 1)

    def test_a_control_program_that_hangs_does_not_keep_a_task_alive(self):
        (task,) = self.running(1)
        for pid in self.control():
            os.kill(pid, signal.SIGSTOP)
        self.cancel(task)


class Faults(Care):
    """Nothing is lost, and the daemon stays up."""

    def test_the_server_is_killed_while_four_train(self):
        tasks = self.running(4, seconds=STOPPED_ONCE)
        self.write("again", "")
        before = self.server()
        os.kill(before, signal.SIGKILL)
        ended = [self.wait(task, "COMPLETED") for task in tasks]
        self.assertEqual(
            [(task["attempt_count"], task["requeue_count"]) for task in ended], [(2, 1)] * 4
        )
        self.assertEqual(
            [self.story(task, "EXITED")[0].partition(":")[0] for task in tasks], ["mps"] * 4
        )
        self.assertTrue(is_alive(self.process.pid))

    def test_one_that_faults_among_innocents(self):
        innocent = self.running(3, seconds=STOPPED_ONCE)
        self.write("again", "")
        guilty = self.small(options="--fault-after=20")
        ended = self.wait(guilty, "FAILED")
        self.assertEqual(
            (ended["failure"], ended["reason"], ended["attempt_count"]),
            ("gpu-fault", "GpuFault", 2),
        )
        self.assertIn("the fault that stopped its neighbours was its own", ended["reason_text"])
        self.assertIn("illegal memory access", ended["evidence"])
        for task in innocent:
            ended = self.wait(task, "COMPLETED")
            self.assertEqual(
                (ended["attempt_count"], ended["requeue_count"], ended["sharing"]),
                (2, 1, "streams"),
            )
            self.assertIn(
                "a fault under MPS stopped it, its own or another task's",
                self.story(task, "PLACE")[1],
            )

    def test_a_foreign_process_takes_60_gib_meanwhile(self):
        self.emulator("create", "--gpus", "1xH200", "--speed", "100", self.env["COLLOC_EMULATOR"])
        self.restart()
        first, end = self.train_until_ended(70000, memory_mib=70000)
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 69000)
        self.emulator("set", "0", "foreign-mib=60000")
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 129000)
        second = self.train(20000, 60, "--smact=0.3", memory_mib=20000)
        until(lambda: "short" in self.task(second)["reason_text"], "the memory to be short")
        end()
        self.wait(first, "COMPLETED")
        self.wait(second, "COMPLETED")

    def test_a_foreign_process_takes_what_a_task_was_to_grow_into(self):
        self.emulator("create", "--gpus", "1xH200", "--speed", "20", self.env["COLLOC_EMULATOR"])
        self.restart()
        task = self.submit(  # the first attempt's memory grows for 20 s
            "exec colloc-pretend-train --memory-mib=90000 --ramp-seconds=400 "
            f"--seconds={STOPPED_ONCE}",
            memory_mib=90000,
        )
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 5000)
        self.write("again", "")
        self.emulator("set", "0", "foreign-mib=120000")
        until(lambda: self.task(task)["oom_count"] == 1, "a memory crash")
        self.assertEqual(self.wait_state(task, "PENDING")["reason"], "Recovering")
        self.emulator("set", "0", "foreign-mib=0")
        self.wait(task, "COMPLETED")


class FaultsByStreams(Care):
    """Without limits of memory, and with faults that stop only their own process."""

    settings = {"sharing": "streams"}

    def test_one_that_leaks_until_it_crashes(self):
        neighbour = self.small()
        until(lambda: (self.task(neighbour)["mem_used_mib"] or 0) >= 3000)
        leaking = self.small(1e6, "--leak-mib=400", memory_mib=4000)
        until(lambda: self.task(leaking)["oom_count"] == 1, "a memory crash")
        self.assertEqual(self.task(leaking)["reason"], "Recovering")
        self.assertEqual(
            (self.task(neighbour)["state"], self.task(neighbour)["attempt_count"]), ("RUNNING", 1)
        )
        self.cancel(neighbour)
        ended = self.wait(leaking, "OUT_OF_MEMORY")
        self.out_of_memory_to_the_end(ended)

    def test_one_that_faults_among_innocents(self):
        innocent = [self.small(200) for _ in range(2)]
        guilty = self.small(options="--fault-after=20")
        ended = self.wait(guilty, "FAILED")
        self.assertEqual((ended["failure"], ended["attempt_count"]), ("gpu-fault", 1))
        self.assertIn("illegal memory access", ended["evidence"])
        for task in innocent:
            ended = self.wait(task, "COMPLETED")
            self.assertEqual((ended["attempt_count"], ended["requeue_count"]), (1, 0))


class ExclusiveProcess(Care):
    """A GPU whose compute mode admits one process."""

    settings = {"sharing": "streams"}

    def setUp(self):
        super().setUp()
        self.emulator("set", "0", "exclusive-process=on")
        self.restart()

    def test_set_while_collocd_runs(self):
        self.emulator("set", "0", "exclusive-process=off")
        self.wait_log("GPU 0: its compute mode is Default now")
        first, second = self.small(), self.small()
        until(lambda: len(self.gpu()["tasks"]) == 2, "both on the GPU")
        self.cancel(first, second)
        self.emulator("set", "0", "exclusive-process=on")
        self.wait_log("GPU 0: its compute mode is Exclusive_Process now")
        self.test_by_streams_one_after_the_other()

    def test_by_streams_one_after_the_other(self):
        first, second = self.small(), self.small(50)
        why = f"its compute mode admits one process, now task {first}"
        until(lambda: why in self.task(second)["reason_text"], why)
        self.cancel(first)
        self.wait(second, "COMPLETED")

    def test_by_mps_together(self):
        tasks = self.running(2, sharing="auto")
        self.assertIn("only through MPS", self.task(tasks[0])["sharing_text"])
        outsider = self.small(50, sharing="streams")
        until(lambda: "admits one process" in self.task(outsider)["reason_text"])
        self.cancel(*tasks)
        self.wait(outsider, "COMPLETED")


class ExclusiveProcessBesideAnUnlistedGpu(Care):
    """GPU 0 admits several tasks only by MPS, GPU 1 none by MPS: one on both has to wait."""

    gpus = "2xA100-40GB"
    settings = {"sharing": "auto", "mps-gpus": "0", "policy": "magm"}

    def setUp(self):
        super().setUp()
        self.emulator("set", "0", "exclusive-process=on")
        self.restart()

    def test_a_task_on_both_waits_for_the_clients_of_mps(self):
        (first,) = self.running(1)
        both = self.small(50, gpus=2)
        why = f"task {first} has it, and its compute mode admits others only by MPS"
        until(lambda: why in self.task(both)["reason_text"], why)
        self.assertIn(why, self.colloc("show", str(both)).stdout)
        second = self.small(50, options="--smact=0.2")
        self.cancel(first)
        for task in (both, second):
            self.assertEqual(self.wait(task, "COMPLETED")["attempt_count"], 1)


class Auto(Care):
    settings = {"sharing": "auto"}

    def shared(self, **members):
        """A task, how it shares and why."""
        task = self.small(**members)
        found = self.wait_state(task, "RUNNING")
        return task, (found["sharing"], found["thread_percentage"]), found["sharing_text"]

    def test_beside_a_small_one(self):
        first, how, _ = self.shared(smact=0.1)
        self.assertEqual(how, ("mps", None))
        # At 0.97 the prediction is so near the threshold that what is measured of the first counts.
        second, how, why = self.shared(smact=1)
        self.assertEqual(how, ("mps", 70))
        self.assertIn("leaves some SMs", why)
        third, how, _ = self.shared(smact=0.1)
        self.assertEqual(how, ("mps", None))
        self.cancel(first, second, third)

    def test_beside_one_that_takes_turns(self):
        first, how, _ = self.shared(sharing="streams")
        self.assertEqual(how, ("streams", None))
        second, how, _ = self.shared(smact=0.5)
        self.assertEqual(how, ("streams", None))
        self.assertIn("time-sliced", self.colloc("show", str(second)).stdout)
        held = self.small(hold=True)
        self.assertEqual(self.task(held)["sharing"], "auto")
        self.cancel(first, second, held)

    def test_who_would_gain_nothing_waits_for_a_gpu_of_its_own(self):
        first, how, _ = self.shared(smact=0.85, sharing="streams", options="--smact=0.79")
        self.assertEqual(how, ("streams", None))
        # Before, the window has the first's start in it, beside which the second gains.
        self.wait_gpu(lambda gpu: (gpu["smact_window"] or 0) > 0.75, what="its SM activity")
        second = self.small(20, smact=0.79)
        until(
            lambda: "shared, all tasks together would lose" in self.task(second)["reason_text"],
            "the reason to wait",
        )
        self.cancel(first)
        self.wait(second, "COMPLETED")


if __name__ == "__main__":
    unittest.main()
