# SPDX-License-Identifier: Apache-2.0
"""GPUs that fall off the bus, say nothing, or are used by others."""

import csv
import io
import json
import os
import pwd
import re
import signal
import subprocess
import time
import unittest

from daemon_case import (
    LIMIT_S,
    DaemonCase,
    at_least,
    proc,
    processes_with,
    program,
    read,
    short_training,
    until,
    words_of,
)


def cpus_of(line):
    """The CPUs of "Cpus_allowed_list: 0-3,7"."""
    ranges = [part.split("-") for part in line.split()[1].split(",")]
    return {
        cpu for first, *last in ranges for cpu in range(int(first), int((last or [first])[0]) + 1)
    }


class Kinds(DaemonCase):
    gpus = "A100-40GB,V100-16GB"

    def test_a_task_runs_on_the_kind_that_it_names(self):
        first = self.submit("exec sleep 1000", gpu_kinds="v100", exclusive=True)
        self.assertEqual(self.wait_state(first, "RUNNING")["gpus"], ["1"])
        waiting = self.submit("echo $COLLOC_GPUS", gpu_kinds="V100,T4")
        until(
            lambda: self.task(waiting)["reason_text"].startswith("waits for a GPU of kind V100,T4")
        )
        passing = self.submit("echo $COLLOC_GPUS")  # the one before it cannot use GPU 0
        self.wait(passing, "COMPLETED")
        self.assertEqual(self.output(passing), "0\n")
        self.restart(signal.SIGKILL)  # the log keeps the kind
        self.assertIn("GPU kind", self.colloc("show", str(waiting)).stdout)
        self.act("cancel", first)
        self.wait(waiting, "COMPLETED")
        self.assertEqual(self.output(waiting), "1\n")

    def test_what_is_not_there_is_refused_with_the_list(self):
        names = "NVIDIA A100-SXM4-40GB, Tesla V100"
        self.refused(400, "gpu_kinds=H100: no GPU here is of that kind", names, gpu_kinds="H100")
        self.refused(400, "at most 1 of kind a100", gpus=2, gpu_kinds="a100")
        self.refused(400, "gpu_kinds", gpu_kinds="x" * 128)

    def test_an_estimate_for_no_kind_in_particular_says_so(self):
        summary = {"name": "model.txt", "text": "Linear(in_features=8, out_features=8)\n"}
        said = {}
        for kinds in ("", "A100"):
            body = self.body(hold=True, summary=summary, batch=8, gpu_kinds=kinds)
            said[kinds] = self.request("POST", "/v1/tasks", body).json["warnings"]
        self.assertIn("the GPUs are of several kinds", said[""][-1])
        self.assertEqual(said["A100"], said[""][:-1])


class KindSpeeds(DaemonCase):
    gpus = "T4,A100-40GB"

    def test_predictive_takes_the_faster_idle_gpu(self):
        for index in range(2):  # without a reading it is not known to be idle
            self.wait_gpu(lambda gpu: gpu["smact"] is not None, index)
        task = self.submit("exec sleep 1000", policy="predictive", memory_mib=1000)
        self.assertEqual(self.wait_state(task, "RUNNING")["gpus"], ["1"])


class Topology(DaemonCase):
    """NVLink between GPUs 0 and 2, and 1 and 3; 0 and 1 are near one half of the CPUs."""

    def gpus_and_cpus(self, task):
        self.wait(task, "COMPLETED")
        gpus, cpus = self.output(task).splitlines()
        return gpus.split(","), cpus_of(cpus)

    def test_the_closest_gpus_and_their_cpus(self):
        for pair in (("0", "2"), ("1", "3")):
            self.emulator("set", pair[0], f"nvlink={pair[1]}:4")
        self.emulator("set", "machine", "numa=2")
        self.restart()
        script = "echo $COLLOC_GPUS; exec grep Cpus_allowed_list /proc/self/status"
        far = self.submit("exec sleep 1000", gpus=2, exclusive=True)
        self.assertEqual(sorted(self.wait_state(far, "RUNNING")["gpus"]), ["0", "2"])
        near = self.submit(script, gpus=2)
        gpus, cpus = self.gpus_and_cpus(near)
        count, own = os.cpu_count(), os.sched_getaffinity(0)
        self.assertEqual((sorted(gpus), cpus), (["1", "3"], own))  # the CPUs of both halves
        (gpu,), cpus = self.gpus_and_cpus(self.submit(script))
        self.assertEqual(cpus, {c for c in own if c * 2 // count == int(gpu) // 2} or own)
        self.restart(near_cpus="no")
        self.assertEqual(self.gpus_and_cpus(self.submit(script))[1], own)


class Gpus(DaemonCase):
    gpus = "2xA100-40GB"

    def test_a_lost_gpu_takes_no_task(self):
        self.emulator("set", "0", "lost=on")
        self.wait_gpu(lambda gpu: gpu["health"] == "lost", 0)
        tasks = [self.submit("echo $COLLOC_GPUS") for _ in range(3)]
        for task in tasks:
            self.wait(task, "COMPLETED")
            self.assertEqual(self.output(task), "1\n")
        self.assertIn("lost", self.colloc("gpus").stdout)
        waiting = self.submit(gpus=2)
        until(lambda: "lost" in self.task(waiting)["reason_text"])
        self.emulator("set", "0", "lost=off")
        self.wait(waiting, "COMPLETED")

    def test_a_task_whose_gpu_is_lost_goes_on_elsewhere(self):
        task = self.submit(
            "echo $COLLOC_GPUS; "
            "exec colloc-pretend-train --memory-mib=3000 "
            "--seconds=$([ -e again ] && echo 5 || echo 1e6)"
        )
        gpu = self.wait_state(task, "RUNNING")["gpus"][0]
        self.wait_gpu(lambda g: (g["mem_used_mib"] or 0) > 2900, int(gpu))
        self.write("again", "")
        self.emulator("set", gpu, "lost=on")
        ended = self.wait(task, "COMPLETED")
        self.assertEqual((ended["requeue_count"], ended["attempt_count"]), (1, 2))
        given = [line for line in self.output(task).splitlines() if line in ("0", "1")]
        self.assertEqual(
            given, [gpu, "1" if gpu == "0" else "0"]
        )  # both attempts write to one file
        exits = [event["text"] for event in self.task(task)["events"] if event["event"] == "EXITED"]
        self.assertRegex(exits[0], f"^gpu-gone: GPU {gpu}: ")

    def test_utilisation_stands_in_for_smact(self):
        for gpu in "01":
            self.emulator("set", gpu, "gpm=off")
        task = self.train(3000, 1e6)
        gpu = int(self.wait_state(task, "RUNNING")["gpus"][0])
        seen = self.wait_gpu(lambda g: g["utilisation"] and g["smact"] is None, gpu)
        self.assertEqual(seen["health"], "ok")
        other = self.train(3000, 50)
        self.wait(other, "COMPLETED")

    def test_nothing_known_is_not_idle(self):
        for gpu in "01":
            self.emulator("set", gpu, "gpm=off", "utilization=off", "memory=off")
        for index in (0, 1):
            self.wait_gpu(
                lambda g: g["smact"] is None
                and g["utilisation"] is None
                and g["mem_used_mib"] is None,
                index,
            )
        task = self.submit(policy="magm")
        until(
            lambda: self.task(task)["reason_text"].startswith("GPUs 0, 1: free memory not known"),
            "the reason",
        )
        self.assertEqual(self.task(task)["state"], "PENDING")
        for gpu in "01":
            self.emulator("set", gpu, "gpm=on", "utilization=on", "memory=on")
        self.wait(task, "COMPLETED")

    def test_placement_looks_at_the_statistic_that_is_set(self):
        task = self.train(3000, 1e6, "--smact=0.6", policy="exclusive")
        gpu = int(self.wait_state(task, "RUNNING")["gpus"][0])
        for how in ("mean", "p95", "ewma"):
            self.restart(smact_statistic=how)
            self.assertEqual(self.get("/v1/info")["settings"]["smact_statistic"], how)
            self.wait_gpu(lambda g: at_least(g["smact_statistics"]["p95"], 0.5), gpu)
        self.wait_gpu(lambda g: g["smact_statistics"]["slope_per_s"] is not None, gpu)
        self.assertIn("mean, p95 or ewma", self.run_daemon(smact_statistic="median")[1])

    def test_missing_sensors_show_as_unknown(self):
        self.emulator("set", "0", "power=off", "energy=off", "temperature=off", "processes=off")
        seen = self.wait_gpu(lambda g: g["power_w"] is None and g["temperature_c"] is None)
        self.assertEqual((seen["energy_mj"], seen["foreign_processes"]), (None, None))
        self.wait(self.submit(gpus=2), "COMPLETED")
        self.colloc("gpus")


class Faulty(DaemonCase):
    """GPUs that work, and are not to be trusted."""

    gpus = "2xA100-40GB"

    def is_avoided(self, words):
        seen = self.wait_gpu(lambda g: g["health"] == "faulty", 0)
        self.assertIn(words, seen["health_text"])
        self.wait_log(r"GPU 0: .*" + words + ".*; it takes no task")
        task = self.submit("echo $COLLOC_GPUS")
        self.wait(task, "COMPLETED")
        self.assertEqual(self.output(task), "1\n")
        self.assertIn(words.split()[0], self.colloc("gpus").stdout)

    def is_used_again(self):
        self.wait_gpu(lambda g: g["health"] == "ok", 0)
        self.wait_log("GPU 0: nothing is wrong with it any more")
        self.wait(self.submit(gpus=2), "COMPLETED")

    def test_an_xid_of_the_gpu(self):
        self.emulator("set", "0", "xid=79")
        self.is_avoided("fallen off the bus")
        waiting = self.submit(gpus=2)
        until(lambda: "GPU 0: faulty" in self.task(waiting)["reason_text"])
        self.assertIn("no GPU '7'", self.colloc("gpus", "--clear=7", code=1).stderr)
        self.colloc("gpus", "--clear=0")
        self.assertIn("Xid 79", self.wait_log(f"GPU 0: cleared by user {os.geteuid()} "))
        self.wait(waiting, "COMPLETED")
        self.emulator("set", "0", "xid=79")
        self.wait_gpu(lambda g: g["health"] == "faulty", 0)

    def test_what_the_driver_still_tells_is_not_cleared(self):
        self.emulator("set", "0", "ecc=2", "xid=79")
        self.wait_gpu(lambda g: g["health"] == "faulty", 0)
        self.colloc("gpus", "--clear=0")
        self.assertIn(
            "ECC", self.wait_gpu(lambda g: "Xid" not in g["health_text"], 0)["health_text"]
        )

    def test_an_xid_of_a_program(self):
        self.emulator("set", "0", "xid=31")
        seen = self.wait_gpu(lambda g: "Xid 31" in g["health_text"], 0)
        self.assertEqual(seen["health"], "ok")
        self.wait(self.submit(gpus=2), "COMPLETED")

    def test_errors_of_memory(self):
        self.emulator("set", "0", "ecc=2")
        self.is_avoided("2 uncorrectable ECC errors")
        self.emulator("set", "0", "ecc=0", "remap-failed=on")
        self.wait_gpu(lambda g: "cannot be remapped" in g["health_text"], 0)
        self.emulator("set", "0", "remap-failed=off", "remap-pending=on")
        self.wait_gpu(lambda g: "has to be remapped" in g["health_text"], 0)
        self.emulator("set", "0", "remap-pending=off")
        self.is_used_again()

    def test_clocks_held_down(self):
        self.emulator("set", "0", "slowdown=heat")
        self.is_avoided("throttled by heat")
        self.emulator("set", "0", "slowdown=off")
        self.is_used_again()

    def test_a_driver_that_hangs_reads_as_stale_and_not_as_idle(self):
        self.wait_gpu(lambda g: g["smact"] == 0, 0)
        self.emulator("set", "0", "hang=on")
        self.wait_gpu(lambda g: g["health"] == "stale", 0)
        task = self.submit()
        until(
            lambda: "no recent" in self.task(task)["reason_text"] or self.task(task)["reason_text"]
        )
        self.assertEqual(self.task(task)["state"], "PENDING")
        self.emulator("set", "0", "hang=off")
        self.wait(task, "COMPLETED")


class Power(DaemonCase):
    gpus = "2xA100-40GB"
    settings = {"server-power-max": "420"}

    def test_what_all_gpus_may_draw(self):
        """An idle A100 draws 50 W, its limit is 400 W."""
        task = self.submit("exec sleep 1000")
        until(
            lambda: "all GPUs would draw at least 450 W with it even if no other task ran"
            in self.task(task)["reason_text"],
            "the reason",
        )
        self.assertIn("it can never start", self.task(task)["reason_text"])
        self.act("cancel", task)
        expected = self.submit("exec sleep 1000", smact=0.5)
        self.wait_state(expected, "RUNNING")
        self.restart(**{"server-power-max": "300"})
        script = self.write("train.sh", "true\n")
        refused = self.colloc("submit", "--smact=0.9", script, code=1).stderr
        self.assertIn("would draw 360 W, and all GPUs of the server may draw 300 W", refused)
        self.restart(**{"server-power-max": "0"})
        self.wait_state(self.submit("exec sleep 1000"), "RUNNING")


class FaultyMig(DaemonCase):
    gpus = "A100-40GB:3g.20gb+2g.10gb"

    def test_instances_have_the_troubles_of_their_card(self):
        self.emulator("set", "0", "xid=48")
        for index in (1, 2):
            self.assertIn(
                "double-bit", self.wait_gpu(lambda g: g["health"] == "faulty", index)["health_text"]
            )


class NoEvents(DaemonCase):
    gpus = "A100-40GB"

    def start(self, **settings):
        self.emulator("set", "0", "events=off")
        super().start(**settings)

    def test_a_driver_without_events(self):
        self.emulator("set", "0", "xid=79")
        self.wait(self.train(2000, 50), "COMPLETED")
        self.assertEqual(self.gpu()["health"], "ok")


class Unused(DaemonCase):
    gpus = "2xA100-40GB"
    settings = {"unused-after": "500ms"}

    def holder(self, index=0):
        """What the GPU says of the one task there."""
        tasks = self.gpu(index)["tasks"]
        return tasks[0] if tasks else None

    def test_who_holds_a_gpu_and_does_not_use_it(self):
        idle = self.submit("exec sleep 1000", gpus=2)
        self.wait_state(idle, "RUNNING")
        seen = until(
            lambda: next((h for h in [self.holder(0)] if h and h["unused_for_long"]), None)
        )
        self.assertGreaterEqual(seen["unused_s"], 0.5)
        self.assertLess(seen["unused_s"], LIMIT_S)
        self.wait_log(f"task {idle} has GPU 0 and has not used it")
        words = rf"task {idle} has not used it for \d+:\d\d"
        self.assertRegex(self.colloc("gpus").stdout, words)

    def test_who_uses_it_or_may_use_it_is_left_alone(self):
        busy = self.train(3000, 1e6)
        gpu = int(self.wait_state(busy, "RUNNING")["gpus"][0])
        self.wait_gpu(lambda g: g["smact"], gpu)
        until(lambda: (self.holder(gpu) or {}).get("unused_s") == 0, "its use")
        for index in "01":
            self.emulator("set", index, "gpm=off", "utilization=off")
        self.wait_gpu(lambda g: g["smact"] is None and g["utilisation"] is None, gpu)
        held = until(lambda: next((h for h in [self.holder(gpu)] if h["unused_s"] is None), None))
        self.assertFalse(held["unused_for_long"])

    def test_time_begins_anew_with_use_and_with_not_knowing(self):
        idle = self.submit("exec sleep 1000")
        gpu = int(self.wait_state(idle, "RUNNING")["gpus"][0])
        until(lambda: (self.holder(gpu) or {}).get("unused_for_long"), "its unused time")
        self.emulator("set", str(gpu), "gpm=off", "utilization=off")
        self.wait_gpu(lambda g: g["tasks"][0]["unused_s"] is None, gpu)
        known = time.monotonic()
        self.emulator("set", str(gpu), "gpm=on", "utilization=on")
        anew = self.wait_gpu(lambda g: g["tasks"][0]["unused_s"] is not None, gpu)
        self.assertLess(anew["tasks"][0]["unused_s"], time.monotonic() - known + 0.3)


class WithoutGpm(DaemonCase):
    def start(self, **settings):
        for gpu in range(self.gpus.count("A100")):
            self.emulator("set", str(gpu), "gpm=off")
        super().start(**settings)


class WithoutLibrary(WithoutGpm):
    """libdcgm is of another version: dcgmi is used instead."""

    def start(self, **settings):
        self.env["COLLOC_EMULATOR_DCGM"] = "dcgmInit:refuse"
        super().start(**settings)


class MigBeforeHopper(WithoutGpm):
    """MIG instances without GPM: DCGM reports their activity, too."""

    gpus = "A100-40GB:3g.20gb+2g.10gb"
    settings = {"sharing": "streams", "smact-max": "0.8", "tasks-per-gpu": "4"}

    def instance(self, profile):
        for gpu in self.get("/v1/gpus")["gpus"]:
            if gpu["mig_profile"] == profile and gpu["health"] == "ok":
                return gpu
        return None

    def wait_instance(self, profile, holds):
        def seen():
            gpu = self.instance(profile)
            return gpu if gpu and holds(gpu) else None

        return until(seen, f"instance {profile}")

    def test_activity_is_told_by_dcgm(self):
        self.wait_instance("2g.10gb", lambda g: g["smact"] == 0)
        self.train(12000, 1e6, "--smact=0.5", memory_mib=13000)
        seen = self.wait_instance("3g.20gb", lambda g: g["smact"])
        self.assertEqual((seen["activity_source"], seen["activity_text"]), ("dcgm", ""))
        self.assertIsNone(seen["utilisation"])
        self.assertEqual(self.instance("2g.10gb")["smact"], 0)

    def test_tasks_share_an_instance_of_known_activity(self):
        first = self.train(6000, 1e6, "--smact=0.1", memory_mib=8000, policy="magm")
        self.wait_instance("3g.20gb", lambda g: g["smact"] is not None)
        self.wait_state(first, "RUNNING")
        second = self.train(10500, 1e6, "--smact=0.1", memory_mib=11000)
        self.assertEqual(self.wait_state(second, "RUNNING")["gpus"], self.task(first)["gpus"])

    @unittest.skipUnless(os.geteuid() == 0, "only root makes instances")
    def test_a_new_instance_is_asked_for(self):
        self.wait_instance("2g.10gb", lambda g: g["smact"] == 0)
        self.colloc("mig", "apply", "0", "4g.20gb", "1g.5gb", "--yes")
        self.wait_instance("4g.20gb", lambda g: g["smact"] == 0)
        self.wait_instance("1g.5gb", lambda g: g["smact"] == 0)

    def test_without_dcgm_it_says_so(self):
        self.restart(dcgmi="none")
        seen = self.wait_instance("2g.10gb", lambda g: g["activity_text"])
        self.assertIn("no GPM", seen["activity_text"])
        self.assertIsNone(seen["smact"])


class MigBeforeHopperByDcgmi(WithoutLibrary, MigBeforeHopper):
    pass


class BeforeHopper(WithoutGpm):
    """GPUs without GPM: their activity comes from one child that goes on."""

    gpus = "2xA100-40GB"
    child = "colloc-dcgm"
    logged = r"SM activity of GPUs without GPM: by libdcgm\.so\.4 with "

    def stream(self):
        """The pids of the children that print rows."""
        return [pid for pid in processes_with(self.folder) if self.child in proc(pid, "cmdline")]

    def test_activity_is_told_by_dcgm(self):
        task = self.train(3000, 1e6, "--smact=0.6")
        gpu = int(self.wait_state(task, "RUNNING")["gpus"][0])
        seen = self.wait_gpu(lambda g: g["smact"] and abs(g["smact"] - 0.6) < 0.02, gpu)
        self.assertEqual((seen["activity_source"], seen["activity_text"]), ("dcgm", ""))
        self.assertLess(seen["activity_age_s"], LIMIT_S)
        self.assertEqual(self.wait_gpu(lambda g: g["smact"] is not None, 1 - gpu)["smact"], 0)
        until(lambda: len(self.stream()) == 1, "one child")
        self.wait_log(self.logged)

    def test_a_stalled_one_does_not_read_as_idle_and_a_dead_one_is_replaced(self):
        self.wait_gpu(lambda g: g["smact"] == 0)
        (first,) = until(lambda: next((s for s in [self.stream()] if len(s) == 1), None))
        os.kill(first, signal.SIGSTOP)
        seen = self.wait_gpu(lambda g: g["smact"] is None)
        self.assertEqual(seen["activity_source"], None)
        self.assertIn("dcgm", seen["activity_text"])
        os.kill(first, signal.SIGKILL)
        self.wait_gpu(lambda g: g["smact"] == 0)
        self.assertNotIn(first, self.stream())
        self.stop()
        until(lambda: not processes_with(self.folder), "the end of its children")

    def test_its_period_follows_the_configuration(self):
        config = self.write("collocd.yaml", "window: 1s\n")
        command = self.command

        def without_period(**settings):
            words = command(**settings)
            return [word for word in words if not word.startswith(("--sample-period", "--window"))]

        self.command = without_period
        self.restart(config=config)
        self.wait_gpu(lambda g: g["smact"] == 0)
        for period, text in (("300ms", "300"), ("2s", "2000")):
            self.write("collocd.yaml", f"window: 4s\nsample-period: {period}\n")
            self.process.send_signal(signal.SIGHUP)
            self.wait_log(f"sample-period changed from .* to {period}")
            until(lambda: [self.period(pid) for pid in self.stream()] == [text], "its new period")
        self.wait_gpu(lambda g: g["smact"] == 0)

    @staticmethod
    def period(pid):
        words = words_of(pid)
        return words[1] if len(words) > 1 else None

    def test_unknown_values_are_not_idle(self):
        call = "dcgmEntitiesGetLatestValues"
        for fault in ("blank", "none", "old"):
            with self.subTest(fault):
                self.env["COLLOC_EMULATOR_DCGM"] = f"{call}:{fault}"
                self.restart()
                self.wait_gpu(lambda g: "no SM activity" in g["activity_text"])
                self.assertIsNone(self.get("/v1/gpus")["gpus"][0]["smact"])

    def test_a_library_that_fails_is_replaced_by_dcgmi(self):
        for fault in (
            "dcgmFieldGroupCreate:refuse",
            "dcgmGetAllDevices:refuse",
            "dcgmWatchFields:refuse",
            "dcgmEntitiesGetLatestValues:refuse",
            "dcgmGroupCreate:crash",
        ):
            with self.subTest(fault):
                self.env["COLLOC_EMULATOR_DCGM"] = fault
                self.restart()
                self.wait_gpu(lambda g: g["smact"] == 0)
                self.wait_log(r"SM activity of GPUs without GPM: by dcgmi \(.*(version|ended)")

    def test_a_library_that_hangs_is_replaced_by_dcgmi(self):
        self.env["COLLOC_EMULATOR_DCGM"] = "dcgmWatchFields:hang"
        self.restart()
        self.wait_gpu(lambda g: g["smact"] == 0)
        self.wait_log(r"by dcgmi \(libdcgm was silent\)")

    def test_none_uses_neither(self):
        self.restart(dcgmi="none")
        self.wait_gpu(lambda g: "not used" in g["activity_text"])
        self.wait(self.train(3000, 50), "COMPLETED")
        self.assertEqual(self.stream(), [])


class BeforeHopperByDcgmi(WithoutLibrary, BeforeHopper):
    child = "dmon"
    logged = r"SM activity of GPUs without GPM: by dcgmi \(libdcgm\.so\.4: dcgmInit: API version"

    @staticmethod
    def period(pid):
        words = words_of(pid)
        return words[words.index("-d") + 1] if "-d" in words else None

    def test_without_dcgmi_it_says_so(self):
        self.restart(dcgmi="/nowhere/dcgmi")
        seen = self.wait_gpu(lambda g: "not on PATH" in g["activity_text"])
        self.assertIsNone(seen["smact"])

    # What the library does wrong does not depend on dcgmi.
    test_unknown_values_are_not_idle = None
    test_a_library_that_fails_is_replaced_by_dcgmi = None
    test_a_library_that_hangs_is_replaced_by_dcgmi = None


class Csv(DaemonCase):
    gpus = "A100-40GB,A100-40GB:3g.20gb"

    def test_gpus_as_csv(self):
        self.emulator("set", "0", "power=off")
        self.wait_gpu(lambda g: g["power_w"] is None and g["smact"] == 0)
        rows = list(csv.DictReader(io.StringIO(self.colloc("gpus", "--csv").stdout)))
        self.assertEqual(
            [row["index"] for row in rows], [gpu["index"] for gpu in self.get("/v1/gpus")["gpus"]]
        )
        self.assertEqual(
            (rows[0]["power_w"], rows[0]["smact"], rows[0]["uuid"]), ("", "0", self.gpu(0)["uuid"])
        )
        self.assertEqual(float(rows[0]["mem_total_mib"]), self.gpu(0)["mem_total_mib"])
        self.assertGreater(float(rows[0]["sampled_at"]), 1.7e9)
        self.assertEqual([row["mig_profile"] for row in rows], ["", "", "3g.20gb"])
        self.assertIn("exclude each other", self.colloc("gpus", "--csv", "--json", code=2).stderr)


class Shares(DaemonCase):
    """Shares of a GPU's activity, power and energy sum to the GPU's; ended tasks keep theirs."""

    gpus = "1xA100-40GB"
    settings = {"sharing": "streams", "tasks-per-gpu": "4", "smact-max": "1"}

    def parts(self, gpu, key, foreign):
        return [task[key] for task in gpu["tasks"]] + [gpu[foreign]]

    def two(self, **members):
        tasks = [
            self.train(3000, 1e6, f"--smact={smact}", memory_mib=3000, **members)
            for smact in (0.6, 0.2)
        ]
        for task in tasks:
            self.wait_state(task, "RUNNING")
        self.wait_gpu(lambda g: len(g["tasks"]) == 2 and all(t["smact"] for t in g["tasks"]))
        return tasks

    def test_parts_add_up_to_the_gpu(self):
        other = subprocess.Popen(
            ["colloc-pretend-train", "--memory-mib=3000", "--seconds=1e6", "--smact=0.3"],
            env=self.env,
            stdout=subprocess.DEVNULL,
        )
        self.addCleanup(lambda: (other.kill(), other.wait()))
        self.wait_gpu(lambda g: g["foreign_smact"])
        tasks = self.two(policy="first-fit")
        # A process that had no processor between two samples has no part of that time.
        seen = self.wait_gpu(lambda g: all(self.parts(g, "smact", "foreign_smact")))
        self.assertFalse(seen["shares_estimated"])
        self.assertAlmostEqual(sum(self.parts(seen, "smact", "foreign_smact")), seen["smact"], 6)
        powers = self.parts(seen, "power_w", "foreign_power_w")
        self.assertAlmostEqual(sum(powers), seen["power_w"], 3)
        self.assertGreater(min(powers), 0)
        self.assertEqual({task["id"] for task in seen["tasks"]}, set(tasks))

    def test_what_a_task_had_is_kept_when_it_has_ended(self):
        before = self.wait_gpu(lambda g: g["energy_mj"])["energy_mj"]
        self.wait_gpu(lambda g: g["energy_mj"] > before)  # a look without the task
        task = self.train(3000, 1000, "--smact=0.6")
        ended = self.wait(task, "COMPLETED")
        drawn_j = 1e6 * (self.gpu()["energy_mj"] - before)
        trains_s = 1000 / self.speed  # the rest is its start and end
        self.assertAlmostEqual(ended["smact_mean"], 0.6 * trains_s / ended["exec_s"], delta=0.1)
        self.assertGreater(ended["energy_j"], 0.5 * drawn_j)
        self.assertLessEqual(
            ended["energy_j"], drawn_j + 1
        )  # no look may lie between its end and now
        self.assertFalse(ended["shares_estimated"])
        self.restart()
        self.assertEqual(self.task(task)["energy_j"], ended["energy_j"])
        self.assertRegex(self.colloc("show", str(task)).stdout, r"Energy +[0-9.]+ Wh")
        self.assertIn(" Wh", self.colloc("history").stdout)

    def test_a_restart_does_not_forget_what_was_used(self):
        task = self.train(3000, 1e6, "--smact=0.6")
        before = until(
            lambda: next(
                (t for t in [self.task(task)] if t["energy_j"] and t["mem_peak_mib"] == 3000), None
            )
        )
        self.restart()
        after = self.task(task)
        self.assertGreaterEqual(after["energy_j"], before["energy_j"])
        self.assertEqual(after["mem_peak_mib"], before["mem_peak_mib"])
        self.stop()
        self.write("../state/usage.json", "[{")
        self.start()
        self.assertEqual(self.task(task)["state"], "RUNNING")

    def test_under_mps_parts_are_estimated(self):
        self.restart(sharing="mps")
        self.two(policy="first-fit")
        seen = self.wait_gpu(lambda g: g["shares_estimated"])
        one, two = (task["smact"] for task in seen["tasks"])
        self.assertAlmostEqual(one, two, 6)
        self.assertTrue(all(self.task(task["id"])["shares_estimated"] for task in seen["tasks"]))


class MigShares(DaemonCase):
    gpus = "A100-40GB:3g.20gb+2g.10gb"

    def test_instances_have_their_part_of_the_cards_power(self):
        for _ in range(2):
            self.wait_state(self.train(3000, 1e6, "--smact=0.3", policy="exclusive"), "RUNNING")
        self.wait_gpu(lambda g: g["tasks"] and g["tasks"][0]["power_w"], 2)

        def parts(gpus):
            return [gpu["tasks"][0]["power_w"] or 0 for gpu in gpus[1:]]

        gpus = until(
            lambda: next(
                (
                    gpus
                    for gpus in [self.get("/v1/gpus")["gpus"]]
                    if sum(parts(gpus)) > 0.9 * gpus[0]["power_w"]
                ),
                None,
            )
        )
        self.assertLess(sum(parts(gpus)), 1.05 * gpus[0]["power_w"])
        self.assertGreater(min(parts(gpus)), 10)


class Past(DaemonCase):
    gpus = "2xA100-40GB"
    settings = {"samples": "200ms:1m,1s:1h"}

    def past(self, since):
        return list(csv.DictReader(io.StringIO(self.colloc("gpus", f"--since={since}").stdout)))

    def test_the_past_is_kept_over_a_restart(self):
        task = self.train(3000, 1e6, "--smact=0.6", policy="exclusive")
        gpu = self.wait_state(task, "RUNNING")["gpus"][0]
        # The last seconds are only in memory (docs/monitor.md).
        until(
            lambda: sum(row["index"] == gpu and row["smact"] == "0.6" for row in self.past("30s"))
            > 8
        )
        # As an older version had them.
        folder = os.path.join(self.state, "samples")
        os.mkdir(folder)
        with open(os.path.join(folder, "GPU-1.series"), "w", encoding="utf-8") as file:
            file.write("old")
        self.restart(signal.SIGKILL)
        self.assertFalse(os.path.exists(folder))
        self.assertTrue(any("removed 1 files of an older version" in line for line in self.log))
        seen = until(lambda: next((rows for rows in [self.past("1h")] if rows), None))
        self.assertEqual({row["step_s"] for row in seen}, {"1"})
        fine = [row for row in self.past("30s") if row["index"] == gpu]
        self.assertEqual({row["step_s"] for row in fine}, {"0.2"})
        self.assertIn("0.6", [row["smact"] for row in fine])
        self.assertEqual(max(float(row["mem_used_max_mib"]) for row in fine), 3000)
        self.assertIn("1", [row["tasks"] for row in fine])
        times = [float(row["time"]) for row in fine]
        self.assertEqual(times, sorted(times))
        self.refused(400, "a number of seconds", path="/v1/samples?since_s=x", method="GET")

    def test_nothing_is_kept_when_nothing_is_wanted(self):
        self.restart(samples="none")
        self.wait_gpu(lambda g: g["smact"] == 0)
        self.assertEqual(self.get("/v1/samples")["gpus"], [])
        self.assertIn("such as 1s:1h,10s:1d", self.run_daemon(samples="1s")[1])
        self.assertIn("such as 1s:1h,10s:1d", self.run_daemon(samples="1s:1000000h")[1])


class Hang(DaemonCase):
    """A GPU whose NVML call does not return harms no other GPU."""

    gpus = "3xA100-40GB"

    def gpu(self, i):
        return self.request("GET", "/v1/gpus").json["gpus"][i]

    def test_the_other_gpus_go_on(self):
        until(lambda: self.gpu(1)["health"] == "ok", "a sample")
        self.emulator("set", "1", "hang=on")
        until(lambda: "has not returned for" in self.gpu(1)["health_text"], "the GPU's name")
        self.assertEqual(self.gpu(1)["health"], "stale")
        until(lambda: [self.gpu(i)["health"] for i in (0, 2)] == ["ok", "ok"], "the others")
        self.wait_log(r"GPU 1: a call of NVML has not returned for \d.* the other GPUs go on")
        tasks = [self.train(3000, 1e6, memory_mib=4000, policy="exclusive") for _ in range(2)]
        third = self.submit(policy="exclusive")
        for task in tasks:
            self.wait_state(task, "RUNNING")
        self.assertEqual({self.task(task)["gpus"][0] for task in tasks}, {"0", "2"})
        for task in tasks:
            self.act("cancel", task)
            self.wait(task, "CANCELLED")
        self.wait(third, "COMPLETED")
        self.emulator("set", "1", "hang=off")
        self.wait_log("GPU 1: NVML answers again")
        until(lambda: self.gpu(1)["health"] == "ok", "its samples")
        self.assertEqual(self.gpu(1)["health_text"], "")

    def test_the_energy_of_the_gap_counts(self):
        """Also where the tasks have ended before the GPU answers again."""

        def spent():
            return self.request("GET", "/v1/stats").json["energy_mj"]

        task = self.train(3000, 1e6, memory_mib=4000)
        self.wait_state(task, "RUNNING")
        gpu = int(self.task(task)["gpus"][0])
        until(lambda: (self.gpu(gpu)["smact"] or 0) > 0.1, "its work")
        self.emulator("set", str(gpu), "hang=on")
        until(lambda: self.gpu(gpu)["health"] == "stale", "the gap")
        before, spent_before = self.gpu(gpu)["energy_mj"], spent()
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        for _ in range(2):
            last = self.request("GET", "/v1/gpus").json["sampled_at"]
            until(lambda: self.request("GET", "/v1/gpus").json["sampled_at"] != last, "a poll")
        self.emulator("set", str(gpu), "hang=off")
        until(lambda: self.gpu(gpu)["health"] == "ok", "its samples")
        gap = self.gpu(gpu)["energy_mj"] - before
        self.assertGreater(gap, 0)
        self.assertGreater(spent() - spent_before, 0.5 * gap)

    def test_a_restart_meanwhile_answers(self):
        task = self.train(3000, 1e6, memory_mib=4000)
        self.wait_state(task, "RUNNING")
        self.emulator("set", "2", "hang=on")
        self.restart(signal.SIGKILL)
        shown = self.colloc("gpus")
        self.assertIn("a call of the NVIDIA driver does not return", shown.stdout + shown.stderr)
        self.assertEqual(self.task(task)["state"], "RUNNING")
        self.refused(400, "NVML has not listed the GPUs yet", "try again")
        self.restart()  # SIGTERM ends it, too
        self.assertEqual(self.task(task)["state"], "RUNNING")
        self.emulator("set", "2", "hang=off")
        self.wait_log("NVML has listed the GPUs after .*: 3")
        self.wait(self.submit(), "COMPLETED")
        until(lambda: self.task(task)["mem_used_mib"] == 3000, "its samples")
        self.act("cancel", task)
        self.wait(task, "CANCELLED")


class Misplaced(DaemonCase):
    """A script that sets CUDA_VISIBLE_DEVICES itself, as published ones do."""

    gpus = "2xA100-40GB"
    settings = {"settle-max": "2s", "unused-after": "1s", "suspend-unused-after": "1s"}

    def test_a_process_on_a_gpu_that_its_task_was_not_given(self):
        first = self.train(3000, 1e6, memory_mib=4000, policy="exclusive")
        self.wait_state(first, "RUNNING")
        train = "exec colloc-pretend-train --memory-mib=3000 --seconds=1e6 --ramp-seconds=0"
        begun = time.monotonic()
        second = self.submit(f"export CUDA_VISIBLE_DEVICES=0; {train}", policy="exclusive")
        self.wait_state(second, "RUNNING")
        self.assertEqual(self.task(second)["gpus"], ["1"])
        until(lambda: self.task(second)["mem_used_mib"] == 3000, "its memory, where it is")

        def gpus():
            return self.request("GET", "/v1/gpus").json["gpus"]

        shown = gpus()[0]
        self.assertEqual(shown["foreign_processes"], [])
        misplaced = shown["misplaced_processes"]
        self.assertEqual([(p["task"], p["mem_used_mib"]) for p in misplaced], [(second, 3000)])
        self.assertEqual(gpus()[1]["misplaced_processes"], [])
        words = "it uses GPU 0, which it was not given: its script sets CUDA_VISIBLE_DEVICES"
        until(lambda: words in (self.task(second)["reason_text"] or ""), "10 s there")
        self.assertGreater(time.monotonic() - begun, 9, "it may only pass by")
        self.assertIn(words, self.colloc("show", str(second)).stdout)
        self.assertIn(f"task {second} uses it, though it", self.colloc("gpus").stdout)
        until(lambda: self.task(second)["smact_mean"], "its activity")
        until(lambda: "taking its memory" not in (gpus()[1]["hold_off"] or ""), "GPU 1 settles")
        warning = f"task {second} uses GPU 0, which it was not given"
        self.assertEqual(len([line for line in self.log if warning in line]), 1)
        self.assertEqual(self.task(second)["suspensions"], 0)
        self.act("cancel", second)
        until(lambda: not gpus()[0]["misplaced_processes"], "its end")


class Foreign(DaemonCase):
    gpus = "1xA100-40GB"

    def test_an_external_process(self):
        other = subprocess.Popen(
            [
                os.path.join(os.path.dirname(program("emulator")), "colloc-pretend-train"),
                "--memory-mib=9000",
                "--seconds=1e6",
                "--ramp-seconds=1",
            ],
            env=self.env,
            stdout=subprocess.DEVNULL,
        )
        try:
            seen = self.wait_gpu(
                lambda g: g["foreign_processes"] and (g["mem_used_mib"] or 0) > 8900
            )
            self.assertEqual([p["pid"] for p in seen["foreign_processes"]], [other.pid])
            self.assertEqual(seen["tasks"], [])
            named = seen["foreign_processes"][0]
            self.assertEqual(
                (named["name"], named["uid"]), ("colloc-pretend-train"[:15], os.getuid())
            )
            self.assertAlmostEqual(named["started_at"], time.time(), delta=60)
            row = self.colloc("gpus").stdout.splitlines()[1]
            user = pwd.getpwuid(os.getuid()).pw_name
            self.assertRegex(
                row,
                rf"external {user}: \S+colloc-pretend-train.* \(pid {other.pid}\) 8\.\d GiB, "
                r"\d+:\d\d old$",
            )
            named = json.loads(self.colloc("gpus", "--json").stdout)["gpus"][0][
                "foreign_processes"
            ][0]
            self.assertEqual(named["user"], user)
            self.assertIn("--memory-mib=9000", named["command"])
            alone = self.submit(policy="exclusive")
            until(lambda: "process" in self.task(alone)["reason_text"])
            self.act("hold", alone)
            beside = self.train(30000, 50, memory_mib=30000)
            until(lambda: "short" in self.task(beside)["reason_text"])
        finally:
            other.kill()
            other.wait()
        self.act("release", alone)
        self.wait(alone, "COMPLETED")
        self.wait(beside, "COMPLETED")


class ShortTasks(DaemonCase):
    """A task of a few samples has the work between its first and last sample, and that of its ends.

    In real time.
    """

    gpus = "H200"
    speed = 1
    settings = {"sample-period": "300ms"}

    def energies(self, seconds):
        """Of a training by the daemon and of the same by `colloc record`, in joules; and its mean
        activity, as a part of what it should be. Each is None if there was no sample."""
        ended = self.wait(self.train(1000, seconds, "--smact=0.6 --ramp-seconds=0.1"), "COMPLETED")
        mean = ended["smact_mean"]
        part = mean and mean / (0.6 * seconds / ended["exec_s"])
        recorded = self.colloc(
            "record",
            "--interval=100ms",
            "--json",
            "--",
            *short_training(seconds),
        ).stderr
        return ended["energy_j"], json.loads(recorded)["gpus"][0]["command_energy_j"], part

    def test_the_first_and_the_last_interval_count(self):
        """A busy machine may lengthen one of two runs, and its energy, or take no sample: one of a
        few pairs has to agree."""
        for _ in range(10):
            by_daemon, by_record, part = found = self.energies(seconds=1.4)
            if None not in found and abs(by_daemon / by_record - 1) <= 0.15 and abs(part - 1) < 0.1:
                return
        self.fail(f"joules by the daemon and by record, and its part of the activity: {found}")

    def emulated_smact_s(self):
        """The GPU's SM activity over time, so far."""
        return float(re.search(r"([0-9.]+) s x SMACT", self.emulator("show"))[1])

    def test_a_task_whose_process_ended_before_the_sample_has_its_work(self):
        """collocd is stopped while most of the work is done and the process ends."""
        task = self.submit(
            f"{' '.join(short_training(1e6))} & until [ -e done ]; do sleep 0.02; done; "
            "kill $!; wait; until [ -e end ]; do sleep 0.02; done; exit 3"
        )
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 900)
        self.process.send_signal(signal.SIGSTOP)
        sampled_s = self.emulated_smact_s()
        until(lambda: self.emulated_smact_s() > sampled_s + 0.6, "the work")
        self.write("done", "")
        until(lambda: " pid " not in self.emulator("show"), "the end of the process")
        self.process.send_signal(signal.SIGCONT)
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) < 900)
        self.stop()
        (usage,) = json.loads(read(f"{self.state}/usage.json"))
        self.assertEqual(usage["task"], task)
        # Without the interval in which the process ended it would be 0.6 less.
        self.assertAlmostEqual(usage["smact_s"], self.emulated_smact_s(), delta=0.1)
        self.start()
        self.write("end", "")
        self.wait(task, "FAILED")


if __name__ == "__main__":
    unittest.main()
