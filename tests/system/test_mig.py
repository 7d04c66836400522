# SPDX-License-Identifier: Apache-2.0
"""MIG by hand, on pretend GPUs: what is legal, what is refused, and what collocd makes of it."""
import contextlib
import json
import os
import signal
import socketserver
import threading
import unittest

from daemon_case import DaemonCase, at_least, is_alive, proc, until

ROOT = os.geteuid() == 0
OTHER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


class Answering:
    """Something that listens where a collocd would, and gives every client the same answer."""

    def __init__(self, path, answer):
        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError):
                    self.request.recv(4096)
                    self.request.sendall(answer)

        self.path, self.server = path, socketserver.ThreadingUnixStreamServer(path, Handler)

    def __enter__(self):
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        os.unlink(self.path)


class PartlyFilled(DaemonCase):
    """GPU instances of one profile with slices left, as another program may make them."""

    divisions = (
        "1c.3g.20gb++1c.3g.20gb",
        "1c.3g.20gb+1c.3g.20gb++2c.3g.20gb",
        "2c.3g.20gb+1c.3g.20gb+2g.10gb+1g.5gb",
    )
    gpus = ",".join("A100-40GB:" + division for division in divisions)

    def test_a_plan_for_the_queue_reads_which_share_memory(self):
        self.submit("true", memory_mib=2000, hold=True)
        text = self.colloc("mig", "plan", "--what-if").stdout
        for division in self.divisions:
            self.assertIn(f" {division} ", text)


class MigCase(DaemonCase):
    def mig(self, *words, code=0):
        done = self.colloc("mig", *words, code=code)
        return done.stdout if code == 0 else done.stderr

    def instances(self):
        return sorted(
            gpu["mig_profile"]
            for gpu in self.get("/v1/gpus")["gpus"]
            if gpu["mig_profile"] and gpu["health"] == "ok"
        )

    def wait_instances(self, *profiles):
        until(lambda: self.instances() == list(profiles), f"instances {profiles}")

    def rows(self, text, head):
        """Profiles and starts of the table below a head line."""
        lines = text.split(head + "\n", 1)[1].splitlines()
        rows = [line.split() for line in lines[1:]]
        return [
            (row[0], int(row[-1]))
            for row in rows[
                : next(
                    (i for i, row in enumerate(rows) if len(row) < 4 or not row[-1].isdigit()), None
                )
            ]
        ]

    def take_whole_gpu(self, memory_mib=30000):
        """A task that fits GPU 1 only, which is not divided, has it to itself."""
        blocker = self.submit("exec sleep 1000", exclusive=True, memory_mib=memory_mib)
        self.assertEqual(self.wait_state(blocker, "RUNNING")["gpus"], ["1"])

    def profiles(self):
        """Names and placements of the profiles that GPU 0 has."""
        lines = self.mig("plan", "0").split("Profiles of this GPU:\n", 1)[1].splitlines()[1:]
        return [(line.split()[0], line.split()[-1]) for line in lines]


class FourSlices(MigCase):
    """An A30: four slices of compute and of memory."""

    gpus = "A30:4g.24gb,A30"

    def test_a_plan(self):
        self.assertEqual(
            self.profiles(), [("1g.6gb", "0,1,2,3"), ("2g.12gb", "0,2"), ("4g.24gb", "0")]
        )
        self.assertEqual(
            self.rows(self.mig("plan", "0", "1", "1", "2"), "Instances that it would have:"),
            [("2g.12gb", 0), ("1g.6gb", 2), ("1g.6gb", 3)],
        )
        for words in (["1g"] * 5, ["2g", "2g", "1g"], ["4g", "1g"]):
            self.assertIn("do not fit", self.mig("plan", "0", *words, code=1))
        self.assertIn("3g: no MIG profile", self.mig("plan", "0", "3g", code=1))

    @unittest.skipUnless(ROOT, "root only")
    def test_apply(self):
        self.assertIn("Done.", self.mig("apply", "0", "1c.2g", "1c.2g", "1g", "1g", "--yes"))
        self.wait_instances("1c.2g.12gb", "1c.2g.12gb", "1g.6gb", "1g.6gb")
        self.take_whole_gpu(memory_mib=20000)
        task = self.train(4000, 5, memory_mib=4500)
        self.wait(task, "COMPLETED")
        self.mig("reset", "0", "--yes")
        self.wait_instances()

    @unittest.skipUnless(ROOT, "root only")
    def test_a_plan_for_the_queue_is_carried_out(self):
        self.assertIn("Done.", self.mig("apply", "0", *["1g"] * 4, "--yes"))
        self.wait_instances(*["1g.6gb"] * 4)
        self.take_whole_gpu(memory_mib=20000)
        task = self.submit("true", memory_mib=10000)  # it fits no instance of GPU 0
        self.wait_state(task, "PENDING")
        self.assertRegex(self.mig("plan", "--apply"), r"GPU 0 has (2g.12gb\+)?[24]g.[12][24]gb")
        self.wait(task, "COMPLETED")


class Mig(MigCase):
    gpus = "1xA100-40GB:3g.20gb+2g.10gb+1g.5gb,1xA100-40GB"

    def test_a_plan_changes_nothing_and_says_where_what_goes(self):
        text = self.mig("plan", "0", "1g.5gb", "3g", "2")
        self.assertEqual(
            self.rows(text, "Instances of GPU 0 now:"),
            [("3g.20gb", 0), ("2g.10gb", 4), ("1g.5gb", 6)],
        )
        self.assertEqual(
            self.rows(text, "Instances that it would have:"),
            [("3g.20gb", 0), ("2g.10gb", 4), ("1g.5gb", 6)],
        )
        self.assertEqual(
            self.profiles(),
            [
                ("1g.5gb", "0,1,2,3,4,5,6"),
                ("1g.10gb", "0,2,4,6"),
                ("2g.10gb", "0,2,4"),
                ("3g.20gb", "0,4"),
                ("4g.20gb", "0"),
                ("7g.40gb", "0"),
            ],
        )
        seven = self.rows(self.mig("plan", "0", *["1"] * 7), "Instances that it would have:")
        self.assertEqual(seven, [("1g.5gb", start) for start in range(7)])
        self.assertEqual(
            self.rows(self.mig("plan", "0", "3g", "4g"), "Instances that it would have:"),
            [("4g.20gb", 0), ("3g.20gb", 4)],
        )

    def test_what_cannot_be_is_said(self):
        for words, said in (
            (("plan", "0", "4g", "4g"), "do not fit"),
            (("plan", "0", "5g.20gb"), "it has 1g.5gb, 1g.10gb"),
            (("plan", "1"), "MIG is off on GPU 1"),
            (("plan", "7"), "this machine has no GPU 7"),
            (("plan", "0", *["1"] * 8), "do not fit"),
        ):
            self.assertIn(said, self.mig(*words, code=1))
        for words, said in (
            (("apply", "0"), "no profiles given"),
            (("reset", "0", "1g"), "unexpected profiles"),
            (("make", "0"), "give plan, apply or reset"),
            (("reset",), "no GPU given"),
            (("plan", "0", "--what-if"), "without a GPU"),
            (("plan", "--what-if", "--apply"), "cannot be combined"),
        ):
            self.assertIn(said, self.mig(*words, code=2))

    def test_without_yes_nothing_happens(self):
        self.assertIn("Nothing was changed", self.mig("apply", "0", "7g"))
        self.assertIn("Nothing was changed", self.mig("reset", "0"))
        self.wait_instances("1g.5gb", "2g.10gb", "3g.20gb")

    def test_only_root_changes_anything(self):
        done = self.colloc("mig", "apply", "0", "7g", "--yes", code=1, prefix=OTHER if ROOT else ())
        self.assertIn("only root can change MIG instances", done.stderr)
        self.wait_instances("1g.5gb", "2g.10gb", "3g.20gb")

    @unittest.skipUnless(ROOT, "root only")
    def test_apply_and_reset(self):
        self.assertIn("Done.", self.mig("apply", "0", "4g", "2g", "1g", "--yes"))
        self.wait_instances("1g.5gb", "2g.10gb", "4g.20gb")
        task = self.submit(
            "echo $CUDA_VISIBLE_DEVICES; exec colloc-pretend-train --memory-mib=1000 --seconds=5",
            memory_mib=3000,
        )
        self.wait(task, "COMPLETED")
        self.mig("reset", "0", "--yes")
        self.wait_instances()
        self.assertIn("No instances.", self.mig("plan", "0"))

    def test_compute_instances_in_a_plan(self):
        text = self.mig("plan", "0", "1c.3g", "2c.3g.20gb", "2g", "1g")
        self.assertEqual(
            self.rows(text, "Instances that it would have:"),
            [("1c.3g.20gb", 0), ("2c.3g.20gb", 0), ("2g.10gb", 4), ("1g.5gb", 6)],
        )
        self.assertIn("1c.3g.20gb      1 shared 19.5 GiB  0", text)
        for words, said in (
            (("4c.3g",), "4c.3g: a GPU instance 3g.20gb has 3 slices of compute"),
            (("5c.7g",), "there are no compute instances of 5 slices"),
            (("2c.3g", "2c.3g", "2c.3g"), "these 3 instances do not fit"),
            (("1c.9g",), "1c.9g: no MIG profile of this GPU"),
            (("1c",), "1c: no MIG profile of this GPU"),
        ):
            self.assertIn(said, self.mig("plan", "0", *words, code=1))

    @unittest.skipUnless(ROOT, "root only")
    def test_compute_instances_share_their_memory(self):
        self.assertIn("Done.", self.mig("apply", "0", "1c.3g", "1c.3g", "1c.3g", "4g", "--yes"))
        self.wait_instances(*["1c.3g.20gb"] * 3, "4g.20gb")
        self.assertEqual(
            self.rows(self.mig("plan", "0"), "Instances of GPU 0 now:"),
            [("4g.20gb", 0)] + [("1c.3g.20gb", 4)] * 3,
        )
        self.take_whole_gpu()
        blocker = self.submit("exec sleep 1000", exclusive=True, memory_mib=15000)
        large = self.wait_state(blocker, "RUNNING")["gpus"][0]
        self.restart(gpus=",".join(set(self.places()) - {large}))
        first = self.submit("exec sleep 1000", memory_mib=12000)  # it takes nothing
        self.wait_state(first, "RUNNING")
        second = self.submit("exec sleep 1000", memory_mib=12000)
        until(lambda: "GiB short" in self.task(second)["reason_text"], "the lack of memory")
        self.assertEqual(self.task(second)["state"], "PENDING")
        self.act("cancel", first)
        self.wait(first, "CANCELLED")
        self.wait_state(second, "RUNNING")
        self.act("cancel", second)
        self.wait(second, "CANCELLED")
        shared = [self.train(3000, 1e6, memory_mib=3000) for _ in range(3)]
        for task in shared:
            self.wait_state(task, "RUNNING")
        places = {self.task(task)["gpus"][0] for task in shared}
        self.assertEqual(len(places), 3)
        self.mig("reset", "0", "--yes", code=1)

    @unittest.skipUnless(ROOT, "root only")
    def test_a_plan_for_the_queue_knows_compute_instances(self):
        self.assertIn("Done.", self.mig("apply", "0", "1c.3g", "2c.3g", "4g", "--yes"))
        self.wait_instances("1c.3g.20gb", "2c.3g.20gb", "4g.20gb")
        self.take_whole_gpu()
        self.wait_for_large_instance()
        text = self.mig("plan")
        self.assertRegex(" ".join(text.split()), r"0 [124gbc.+0-9]+ 7g.40gb")
        self.assertIn("1c.3g.20gb+2c.3g.20gb", text)

    @unittest.skipUnless(ROOT, "root only")
    def test_a_compute_instance_that_the_driver_refuses(self):
        refusal = self.mig("apply", "0", "3c.4g", "1g", "--yes", code=1)
        self.assertIn("GPU 0: cannot create 3c.4g.20gb at slice 0", refusal)
        self.assertIn("Done.", self.mig("apply", "0", "1c.4g", "3g", "--yes"))
        self.wait_instances("1c.4g.20gb", "3g.20gb")

    def places(self):
        return [gpu["index"] for gpu in self.get("/v1/gpus")["gpus"] if gpu["mig_profile"]]

    def wait_for_large_instance(self):
        """A task that fits no instance of GPU 0, while the other GPU is taken."""
        task = self.submit("echo $COLLOC_GPUS", memory_mib=25000)
        self.wait_state(task, "PENDING")
        return task

    def test_a_plan_for_the_queue(self):
        self.assertIn("No task waits", self.mig("plan"))
        self.take_whole_gpu()
        task = self.wait_for_large_instance()
        text = self.mig("plan")
        self.assertIn("0 3g.20gb+2g.10gb+1g.5gb 7g.40gb", " ".join(text.split()))
        self.assertIn("worth a change", text)
        plan = json.loads(self.mig("plan", "--json"))
        self.assertEqual(
            (plan["tasks"], plan["now"]["left_out"], plan["proposed"]["left_out"]), (1, 1, 0)
        )
        what_if = json.loads(self.mig("plan", "--what-if", "--json"))
        self.assertEqual([gpu["index"] for gpu in what_if["gpus"]], ["0", "1"])
        self.assertEqual(what_if["tasks"], 2)
        self.wait_instances("1g.5gb", "2g.10gb", "3g.20gb")
        self.assertEqual(self.task(task)["state"], "PENDING")

    @unittest.skipUnless(ROOT, "root only")
    def test_a_plan_for_the_queue_is_carried_out(self):
        self.take_whole_gpu()
        task = self.wait_for_large_instance()
        self.assertIn("GPU 0 has 7g.40gb now.", self.mig("plan", "--apply"))
        self.wait(task, "COMPLETED")
        self.assertEqual(self.output(task), "0:0\n")

    @unittest.skipUnless(ROOT, "root only")
    def test_a_gpu_with_a_task_is_not_divided(self):
        self.take_whole_gpu()
        holder = self.submit("exec sleep 1000", memory_mib=3000, exclusive=True)
        self.assertTrue(self.wait_state(holder, "RUNNING")["gpus"][0].startswith("0:"))
        self.wait_for_large_instance()
        self.assertIn("nothing can be divided now", self.mig("plan", "--apply"))
        self.wait_instances("1g.5gb", "2g.10gb", "3g.20gb")

    @unittest.skipUnless(ROOT, "root only")
    def test_the_daemon_divides_gpus_when_it_may(self):
        self.restart(mig_plan="1s")
        self.take_whole_gpu()
        self.wait_instances("1g.5gb", "2g.10gb", "3g.20gb")
        task = self.wait_for_large_instance()
        self.wait(task, "COMPLETED")
        self.wait_instances("7g.40gb")

    @unittest.skipUnless(ROOT, "root only")
    def test_nothing_is_changed_below_a_task_or_a_process(self):
        tasks = [self.submit("exec sleep 1000", exclusive=True) for _ in range(4)]
        for task in tasks:
            self.wait_state(task, "RUNNING")
        self.assertRegex(self.mig("reset", "0", "--yes", code=1), r"task \d uses GPU 0:\d")
        for task in tasks:
            self.act("cancel", task)
            self.wait(task, "CANCELLED")
        busy = self.submit(
            "exec colloc-pretend-train --memory-mib=2000 --seconds=1e6",
            environment={"PATH": self.env["PATH"]},
            gpus=1,
            hold=True,
        )
        self.restart(gpus="0:0,0:1,0:2")
        self.act("release", busy)
        until(lambda: "Using MIG" in self.output(busy))
        self.stop()
        self.assertIn("uses GPU 0:", self.mig("reset", "0", "--yes", code=1))
        self.start()
        self.act("cancel", busy)
        self.wait(busy, "CANCELLED")

    @unittest.skipUnless(ROOT, "root only")
    def test_an_unused_mps_server_is_ended_first(self):
        self.restart(sharing="mps", mps_linger="1h", gpus="0:0,0:1,0:2")
        task = self.train(2000, 1e6)
        until(lambda: "(MPS)" in self.output(task), "a client of MPS")
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        (daemon,) = self.get("/v1/mps")["daemons"]
        self.assertEqual((daemon["state"], daemon["tasks"]), ("running", 0))
        self.assertIn("Done.", self.mig("reset", "0", "--yes"))
        self.wait_instances()
        self.assertEqual(self.get("/v1/mps")["daemons"][0]["state"], "stopped")

    @unittest.skipUnless(ROOT, "root only")
    def test_an_mps_server_without_its_collocd_is_in_the_way(self):
        self.restart(sharing="mps", mps_linger="1h", gpus="0:0,0:1,0:2")
        task = self.train(2000, 1e6)
        until(lambda: "(MPS)" in self.output(task), "a client of MPS")
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        self.stop(signal.SIGKILL)
        refusal = self.mig("reset", "0", "--yes", code=1)
        self.assertRegex(refusal, r"the MPS server \d+ uses GPU 0:\d: collocd stops its own")
        self.start()
        self.assertIn("Done.", self.mig("reset", "0", "--yes"))

    @unittest.skipUnless(ROOT, "root only")
    def test_what_a_daemon_does_not_say_is_not_nothing(self):
        before = ("1g.5gb", "2g.10gb", "3g.20gb")
        self.wait_instances(*before)
        self.stop()
        for answer in (
            b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            b"nonsense",
            b"",
        ):
            with Answering(self.socket, answer):
                self.assertRegex(self.mig("reset", "0", "--yes", code=1), "nothing was changed")
        self.start()
        self.wait_instances(*before)
        self.stop(signal.SIGKILL)
        self.assertTrue(os.path.exists(self.socket))
        self.assertIn("Done.", self.mig("reset", "0", "--yes"))

    @unittest.skipUnless(ROOT, "root only")
    def test_without_instances_the_other_gpu_serves(self):
        self.mig("reset", "0", "--yes")
        self.wait_instances()
        tasks = [self.train(2000, 20, exclusive=True) for _ in range(3)]
        for task in tasks:
            self.wait(task, "COMPLETED")
            self.assertIn("Using GPU-", self.output(task))


class Vanishing(DaemonCase):
    """An instance that goes from under its task, and comes back; a kill -9 at every turn of it."""

    gpus = "1xA100-40GB:3g.20gb+2g.10gb"
    ALL = ["0:0", "0:1"]

    def places(self):
        return [gpu["index"] for gpu in self.get("/v1/gpus")["gpus"] if gpu["mig_profile"]]

    def wait_places(self, *places):
        until(lambda: self.places() == list(places), f"instances {places}")

    def occupy(self, script, **members):
        """A task on the small instance, and what it is blocked by: a task on the other."""
        blocker = self.submit("exec sleep 1000", exclusive=True, memory_mib=15000)
        self.wait_state(blocker, "RUNNING")
        task = self.submit(script, memory_mib=3000, **members)
        self.assertEqual(self.wait_state(task, "RUNNING")["gpus"], ["0:1"])
        return blocker, task

    def story(self, task):
        return [(event["event"], event["text"]) for event in self.task(task)["events"]]

    def check_back(self, task, n=1):
        found = self.wait_state(task, "PENDING")
        self.assertEqual((found["failure"], found["requeue_count"]), ("gpu-gone", n))
        story = self.story(task)
        self.assertIn(
            ("EXITED", "gpu-gone: GPU 0:1: the MIG instance is not there any more"), story
        )
        self.assertIn(("REQUEUE", "its GPU or MIG instance is gone"), story)

    def test_who_dies_of_it_goes_back_and_on_when_it_is_there_again(self):
        _, task = self.occupy(
            "exec colloc-pretend-train --memory-mib=2000 "
            "--seconds=$([ -e again ] && echo 5 || echo 1e6)"
        )
        until(lambda: "Using MIG" in self.output(task))
        self.emulator("set", "0", "vanish=1")
        self.check_back(task)
        self.wait_places("0:0")
        self.write("again", "")
        self.emulator("set", "0", "appear=1")
        self.wait_places(*self.ALL)
        self.wait(task, "COMPLETED")
        self.assertEqual([event for event, _ in self.story(task)].count("STARTED"), 2)

    def test_who_has_not_noticed_is_ended(self):
        _, task = self.occupy("[ -e again ] && exit 0; exec sleep 1000")
        self.emulator("set", "0", "vanish=1")
        self.check_back(task)
        self.assertIn("EVICT", [event for event, _ in self.story(task)])
        self.write("again", "")
        self.emulator("set", "0", "appear=1")
        self.wait(task, "COMPLETED")

    def test_who_is_evicted_goes_back_even_when_it_is_there_again(self):
        _, task = self.occupy(
            "[ -e again ] && exit 0; trap 'until [ -e again ]; do sleep 0.02; done; exit 1' TERM\n"
            "while :; do sleep 0.02; done",
            grace_s=600,
        )
        self.emulator("set", "0", "vanish=1")
        until(lambda: "EVICT" in [event for event, _ in self.story(task)])
        self.emulator("set", "0", "appear=1")
        self.wait_places(*self.ALL)
        self.write("again", "")
        self.wait(task, "COMPLETED")
        self.assertIn(
            ("EXITED", "gpu-gone: GPU 0:1: the MIG instance was not there any more"),
            self.story(task),
        )

    def ended_shims(self):
        """How many shims have ended. Helpers of the daemon are its children, too."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            children = file.read().split()
        ended = [pid for pid in children if not is_alive(int(pid))]
        return [proc(pid, "comm").strip() for pid in ended].count("colloc-shim")

    def test_what_cannot_be_started_while_an_instance_goes(self):
        train = "colloc-pretend-train --seconds=1e6 --memory-mib="
        first = self.submit(
            f"{train}15000 & until [ -e done ]; do sleep 0.02; done; kill $!", memory_mib=15000
        )
        self.wait_state(first, "RUNNING")
        self.wait_gpu(lambda gpu: at_least(gpu["mem_used_mib"], 14001), 1)
        second = self.submit(f"exec {train}2000", memory_mib=3000)
        until(lambda: "Using MIG" in self.output(second))
        third = self.submit(exclusive=True, memory_mib=15000)
        with open(f"{self.state}/tasks/{third}", "w"):
            pass
        self.process.send_signal(signal.SIGSTOP)
        self.emulator("set", "0", "vanish=1")
        until(lambda: self.ended_shims() == 1, "the end of the second")
        self.write("done", "")
        until(lambda: self.ended_shims() == 2, "the end of the first")
        self.process.send_signal(signal.SIGCONT)
        until(
            lambda: ("REQUEUE", "its GPU or MIG instance is gone") in self.story(second),
            "the second's return",
        )
        self.act("cancel", second)  # it may be on the idle instance before the third
        self.assertEqual(self.wait(third, "FAILED")["failure"], "launch")
        self.wait_places("0:0")

    def test_an_instance_that_is_there_only_now_is_used(self):
        self.emulator("set", "0", "vanish=1")
        self.wait_places("0:0")
        first = self.submit("exec sleep 1000", exclusive=True)
        self.wait_state(first, "RUNNING")
        second = self.submit("echo $COLLOC_GPUS", exclusive=True)
        self.wait_state(second, "PENDING")
        self.emulator("set", "0", "appear=1")
        self.wait(second, "COMPLETED")
        self.assertEqual(self.output(second), "0:1\n")

    def test_gone_while_no_daemon_ran(self):
        for script in (
            "[ -e again ] && exit 0; exec sleep 1000",
            "[ -e again ] && exit 0; exec colloc-pretend-train --memory-mib=2000 --seconds=1e6",
        ):
            blocker, task = self.occupy(script)
            self.stop(signal.SIGKILL)
            self.emulator("set", "0", "vanish=1")
            self.start()
            self.check_back(task)
            self.wait_places("0:0")
            self.stop(signal.SIGKILL)
            self.start()
            self.check_back(task)
            self.stop(signal.SIGKILL)
            self.write("again", "")
            self.emulator("set", "0", "appear=1")
            self.start()
            self.wait(task, "COMPLETED")
            self.act("cancel", blocker)
            self.wait(blocker, "CANCELLED")
            os.unlink(self.work + "/again")

    def test_killed_in_the_midst_of_it(self):
        _, task = self.occupy("trap '' TERM; until [ -e again ]; do sleep 0.05; done", grace_s=1000)
        self.emulator("set", "0", "vanish=1")
        until(lambda: "EVICT" in [event for event, _ in self.story(task)])
        self.stop(signal.SIGKILL)
        self.start()
        self.assertEqual(self.task(task)["state"], "COMPLETING")
        self.act("cancel", task)
        self.write("again", "")
        self.wait(task, "CANCELLED")

    def test_a_driver_that_says_nothing_is_no_loss(self):
        _, task = self.occupy("exec sleep 1000")
        self.emulator("set", "0", "lost=on")
        self.wait_gpu(lambda gpu: gpu["health"] == "lost", 2)
        self.restart(signal.SIGKILL)
        self.assertEqual(self.task(task)["state"], "RUNNING")
        self.stop()
        self.env["COLLOC_EMULATOR"] += "-elsewhere"
        self.start()
        self.assertEqual(self.task(task)["state"], "RUNNING")
        self.assertEqual(self.places(), [])


if __name__ == "__main__":
    unittest.main()
