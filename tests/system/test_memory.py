# SPDX-License-Identifier: Apache-2.0
"""Out of GPU memory, sharing by MPS and MIG."""

import os
import signal
import sqlite3
import subprocess
import unittest

from daemon_case import DaemonCase, program, read, until


class OneGpu(DaemonCase):
    gpus = "1xA100-40GB"

    def test_crash_beside_another_is_recovered_alone(self):
        first, end = self.train_until_ended(28000)
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 27000 and not gpu["hold_off"])
        second = self.train(20000, 100)
        until(lambda: self.task(second)["reason"] == "Recovering")
        end()
        ended = self.wait(second, "COMPLETED")
        self.assertEqual(
            (ended["oom_count"], ended["attempt_count"], ended["exit_code"]), (1, 2, 0)
        )
        self.assertEqual(self.wait(first, "COMPLETED")["oom_count"], 0)
        self.assertEqual(self.output(second).count("CUDA out of memory. Tried to allocate"), 1)
        events = [event["event"] for event in self.task(second)["events"]]
        self.assertEqual(
            events,
            [
                "SUBMIT",
                "PLACE",
                "STARTED",
                "EXITED",
                "RECOVER",
                "PLACE",
                "STARTED",
                "EXITED",
                "END",
            ],
        )
        self.assertGreaterEqual(ended["started_at"], self.task(first)["ended_at"])
        crash, retry = ended["attempts"]
        self.assertEqual(
            (crash["gpus"], crash["reason"], crash["exit_code"]), (["0"], "OutOfMemory", 1)
        )
        self.assertEqual((retry["gpus"], retry["reason"], retry["exit_code"]), (["0"], "None", 0))
        self.assertEqual(
            (retry["started_at"], retry["ended_at"]), (ended["started_at"], ended["ended_at"])
        )
        self.assertLess(crash["started_at"], crash["ended_at"])
        self.assertEqual(crash["gpu_uuids"], [self.gpu()["uuid"]])
        self.assertRegex(
            self.colloc("show", str(second)).stdout,
            r"(?m)^Attempt 1    GPU 0, .* to .*: OutOfMemory$",
        )

    def fail_as_cudnn(self):
        """The first attempt fails as cuDNN does on a full GPU."""
        return self.submit(
            "[ -e failed ] && exit; touch failed; echo 'Traceback (most recent call last):'; "
            "echo '  File \"train.py\", line 1, in <module>'; "
            "echo 'RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR'; exit 1",
            memory_mib=500,
        )

    def test_a_library_that_finds_no_room(self):
        self.restart(margin="0", smact_max="1")
        first, end = self.train_until_ended(39300, memory_mib=39300)
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 39000 and not gpu["hold_off"])
        second = self.fail_as_cudnn()
        until(lambda: self.task(second)["reason"] == "Recovering")
        end()
        ended = self.wait(second, "COMPLETED")
        self.assertEqual((ended["oom_count"], ended["attempt_count"]), (1, 2))
        self.assertEqual(ended["attempts"][0]["reason"], "OutOfMemory")
        self.wait(first, "COMPLETED")

    def test_a_library_that_had_room(self):
        self.train(20000, 1e6, memory_mib=20000)
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 19000 and not gpu["hold_off"])
        failed = self.wait(self.fail_as_cudnn(), "FAILED")
        self.assertEqual((failed["oom_count"], failed["failure"]), (0, "program"))

    def test_recovery_survives_the_daemon(self):
        first, end = self.train_until_ended(28000)
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 27000 and not gpu["hold_off"])
        second = self.train(20000, 100)
        until(lambda: self.task(second)["oom_count"] == 1)
        self.assertEqual(self.task(second)["reason"], "Recovering")
        before = self.task(second)["attempts"]
        self.restart(9)
        self.assertEqual(self.task(second)["reason"], "Recovering")
        self.assertEqual(self.task(second)["attempts"], before)
        self.assertEqual([attempt["reason"] for attempt in before], ["OutOfMemory"])
        end()
        self.assertEqual(self.wait(first, "COMPLETED")["attempt_count"], 1)
        self.assertEqual(self.wait(second, "COMPLETED")["attempt_count"], 2)

    def test_who_took_more_than_was_declared_is_named(self):
        culprit = self.train(23000, 1e6, memory_mib=12288)
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 22900 and not gpu["hold_off"])
        self.assertRegex(
            self.task(culprit)["mem_text"], r"^took 10\.\d GiB more than declared \(12\.0 GiB\)$"
        )
        victim = self.train(20000, 100, memory_mib=15000)
        until(lambda: self.task(victim)["oom_count"] == 1)
        said = rf"task {culprit} took 10\.\d GiB more than it declared"
        self.assertRegex(self.task(victim)["mem_text"], said)
        self.restart(9)
        self.assertRegex(self.task(victim)["mem_text"], said)
        self.act("cancel", culprit)
        self.wait(victim, "COMPLETED")
        shown = self.colloc("show", str(victim)).stdout
        self.assertRegex(shown, rf"(?m)^Memory note  .*{said}")
        self.assertRegex(shown, rf"EXITED +gpu-oom: .*{said}")
        self.assertIn("10.", self.wait(culprit, "CANCELLED")["mem_text"])

    def test_a_task_within_its_word_is_not_blamed(self):
        first = self.train(20000, 1e6, memory_mib=20400)
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 19900 and not gpu["hold_off"])
        second = self.train(23000, 50, memory_mib=15000)
        until(lambda: self.task(second)["oom_count"] == 1)
        self.assertNotIn(f"task {first}", self.task(second)["mem_text"])
        self.assertEqual(self.task(first)["mem_text"], "")
        self.act("cancel", first)
        self.wait(second, "COMPLETED")

    def test_alone_is_the_end(self):
        """Its memory grows for longer than a sample takes: a process that is listed only when it
        has ended is not known to be the task's."""
        ended = self.wait(self.train(60000, 1000, "--ramp-seconds=300"), "OUT_OF_MEMORY")
        self.assertEqual(
            (ended["attempt_count"], ended["reason"], ended["failure"]),
            (1, "OutOfMemory", "gpu-oom"),
        )
        self.assertIn("CUDA out of memory", ended["evidence"])
        self.assertIn("to itself", ended["reason_text"])

    def test_a_program_that_speaks_of_memory_is_not_recovered(self):
        ended = self.wait(
            self.submit(
                'echo "please note: a CUDA out of memory can happen here"; '
                'echo "ValueError: bad label" >&2; exit 1'
            ),
            "FAILED",
        )
        self.assertEqual(
            (ended["attempt_count"], ended["failure"], ended["reason"]),
            (1, "program", "NonZeroExitCode"),
        )

    def test_declared_memory_is_kept_free(self):
        first, end = self.train_until_ended(20000, memory_mib=21000)
        second = self.train(19000, 100, memory_mib=19500)
        waits = until(
            lambda: next((t for t in [self.task(second)] if "short" in t["reason_text"]), None)
        )
        self.assertEqual((waits["state"], waits["reason"]), ("PENDING", "Resources"))
        end()
        for task in (first, second):
            self.assertEqual(self.wait(task, "COMPLETED")["oom_count"], 0)

    def test_what_the_driver_reserves_is_not_free(self):
        """Of 40960 MiB, 39900 are used and 624 are reserved: 436 are left for tasks."""
        self.restart(margin="0")
        self.emulator("set", "0", "foreign-mib=39900")
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) >= 39900)
        task = self.submit("true", memory_mib=800)
        until(lambda: "364.0 MiB short" in self.task(task)["reason_text"], "the lack of memory")
        self.emulator("set", "0", "foreign-mib=0")
        self.wait(task, "COMPLETED")

    def test_the_memory_of_who_loads_data_first_is_not_given_away(self):
        for others_mib in (0, 1000):
            self.emulator("set", "0", f"foreign-mib={others_mib}")
            self.wait_gpu(lambda gpu: len(gpu["foreign_processes"] or []) == bool(others_mib))
            first = self.submit("exec sleep 1000", memory_mib=26000)
            second = self.train(20000, 100, memory_mib=20000)
            waits = until(
                lambda: next(
                    (t for t in [self.task(second)] if "GiB short" in t["reason_text"]), None
                )
            )
            self.assertEqual(waits["state"], "PENDING")
            for task in (second, first):
                self.act("cancel", task)
                self.wait(task, "CANCELLED")

    def test_memory_of_hidden_processes_counts_once(self):
        self.emulator("set", "0", "hidden-processes=on")
        first = self.train(15000, 1e6, memory_mib=16000)
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 14900)
        second = self.train(10000, 100, memory_mib=11000)
        self.assertEqual(self.wait(second, "COMPLETED")["oom_count"], 0)
        self.assertEqual(self.task(first)["state"], "RUNNING")


class Mps(DaemonCase):
    gpus = "1xA100-40GB"
    settings = {"sharing": "mps"}

    def test_clients_of_one_server(self):
        tasks = [self.train(5000, 1e6, "--smact=0.2") for _ in range(2)]
        self.wait_gpu(
            lambda gpu: [
                t["mem_used_mib"] is not None and t["mem_used_mib"] >= 4900 for t in gpu["tasks"]
            ]
            == [True, True]
        )
        shown = self.show()
        self.assertEqual(shown.count("  MPS  "), 2, shown)
        self.assertEqual(self.gpu()["foreign_processes"], [])
        alone = self.train(2000, 1e6, "--smact=0.2", sharing="streams")
        self.wait_state(alone, "RUNNING")
        until(lambda: "streams" in self.show())
        for task in [*tasks, alone]:
            self.act("cancel", task)
            self.wait(task, "CANCELLED")

    def restart_with(self, control=None):
        """Without the emulator's MPS, or with another control program."""
        self.stop()
        path = self.env["PATH"]
        bare = os.path.join(self.folder, "bin")
        os.mkdir(bare)
        for name in ("colloc-pretend-train", "colloc-emulator"):
            os.symlink(os.path.join(path.split(":", maxsplit=1)[0], name), os.path.join(bare, name))
        if control:
            os.symlink(
                self.write("control", control), os.path.join(bare, "nvidia-cuda-mps-control")
            )
            os.chmod(os.path.join(self.work, "control"), 0o755)
        self.env["PATH"] = bare + ":" + path.split(":", 1)[1]
        self.start()

    def test_mps_that_hangs_is_not_asked_again_and_again(self):
        self.restart_with(f"#!/bin/sh\necho asked >> {self.work}/asked\nexec sleep 1000\n")
        for task in [self.train(2000, 50) for _ in range(3)]:
            self.wait_log(f"task {task} shares by time slices: ")
            self.wait(task, "COMPLETED")
        self.assertEqual(self.read("asked"), "asked\n")

    LAST_WORDS = (
        "RuntimeError: CUDA error: the remote procedural call between the MPS server and the MPS "
        "client failed"
    )

    def test_that_it_went_by_streams_survives_a_kill(self):
        """Killed between the start and its STARTED's way into the log: the attempt tells."""
        self.restart_with()
        for ended in (False, True):
            task = self.submit(
                f"while [ ! -e go ]; do sleep 0.02; done; echo '{self.LAST_WORDS}' >&2; exit 1"
            )
            self.wait_log(f"task {task} shares by time slices: ")
            self.wait_state(task, "RUNNING")
            shim = self.shim_of(task)
            self.stop(signal.SIGKILL)
            if ended:
                self.write("go", "")
                self.wait_gone(shim)
            with sqlite3.connect(self.state + "/colloc.db") as log:
                log.execute(
                    "DELETE FROM events WHERE task = ? AND kind NOT IN ('SUBMIT', 'PLACE')", (task,)
                )
            log.close()
            self.start()
            if ended:
                found = self.wait(task, "FAILED")
                self.assertEqual((found["failure"], found["requeue_count"]), ("program", 0))
            else:
                self.assertEqual(self.task(task)["sharing"], "streams")
                self.act("cancel", task)
                self.wait(task, "CANCELLED")

    def shim_of(self, task):
        claim = f"{self.state}/tasks/{task}/1/claim"
        return int(until(lambda: os.path.exists(claim) and read(claim), "the shim's claim"))

    def test_without_mps_by_streams_and_said_so(self):
        self.restart_with()
        task = self.train(2000, 100)
        self.wait_log(f"task {task} shares by time slices: ")
        self.assertEqual(self.wait(task, "COMPLETED")["sharing"], "streams")
        story = self.get(f"/v1/tasks/{task}")["task"]["events"]
        self.assertIn(
            ("STARTED", "time-sliced: MPS could not be had"),
            [(event["event"], event["text"]) for event in story],
        )

    def show(self):
        return subprocess.run(
            [program("emulator"), "show"], env=self.env, capture_output=True, text=True, check=True
        ).stdout


class Mig(DaemonCase):
    gpus = "1xA100-40GB:3g.20gb+2g.10gb+1g.5gb,1xA100-40GB"

    def test_instances_are_places_and_their_parent_is_not(self):
        gpus = self.get("/v1/gpus")["gpus"]
        parent = next(gpu for gpu in gpus if gpu["health"] == "mig-parent")
        instances = [gpu for gpu in gpus if gpu["mig_profile"]]
        self.assertEqual([gpu["parent_uuid"] for gpu in instances], [parent["uuid"]] * 3)
        self.assertEqual(
            sorted(gpu["mig_profile"] for gpu in instances), ["1g.5gb", "2g.10gb", "3g.20gb"]
        )
        tasks = [
            self.submit(
                "echo $CUDA_VISIBLE_DEVICES; "
                "exec colloc-pretend-train --memory-mib=3000 --seconds=50 "
                "--ramp-seconds=1",
                exclusive=True,
            )
            for _ in range(4)
        ]
        for task in tasks:
            self.wait(task, "COMPLETED")
        used = {self.output(task).split()[0] for task in tasks}
        self.assertNotIn(parent["uuid"], used)
        self.assertTrue(any(uuid.startswith("MIG-") for uuid in used), used)
        self.refused(400, "gpus", gpus=5)

    def test_a_task_too_large_for_an_instance_goes_to_the_whole_gpu(self):
        task = self.submit("echo $CUDA_VISIBLE_DEVICES", memory_mib=30000)
        self.wait(task, "COMPLETED")
        self.assertTrue(self.output(task).startswith("GPU-"), self.output(task))


if __name__ == "__main__":
    unittest.main()
