# SPDX-License-Identifier: Apache-2.0
"""Jobs that leave their GPUs at the controller's word, and come back: the agent of a node. A
program stands for the controller (test_slurm_gives_way.py has the real one)."""

import contextlib
import mmap
import os
import random
import re
import shutil
import signal
import socket
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import preload_daemon as pd  # noqa: E402
from daemon_case import BUILD, MIB, proc, program, read, until, words_of  # noqa: E402
from slurm_node_case import CHECKPOINT, EMULATOR, LIBRARY, NodeCase  # noqa: E402

from colloc_slurm import loopback  # noqa: E402

CLOCK = os.path.abspath(os.path.join(BUILD, "tests", "system", "libshifted-clock.so"))
OTHER_USER = 64033
TRAINING = os.path.abspath(os.path.join(BUILD, "tests", "system", "carried-training"))


def memory_cgroup():
    """A new cgroup below that of this process, and the name of the file of its limit; or None."""
    for line in read("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        is_v1 = "memory" in names.split(",")
        mount = "/sys/fs/cgroup" + ("/memory" if is_v1 else "")
        folder = f"{mount}{path}".rstrip("/") + f"/colloc-test-{os.getpid()}"
        limit = "memory.limit_in_bytes" if is_v1 else "memory.max"
        with contextlib.suppress(OSError):
            os.mkdir(folder)
            if os.path.exists(f"{folder}/{limit}"):
                return folder, limit
            os.rmdir(folder)
    return None, None


def remove_cgroup(folder):
    """Whether it is still there: processes in it have not ended."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)
    return os.path.exists(folder)


class GivesWayCase(NodeCase):
    options = ["--carrier=yes", f"--checkpoint={CHECKPOINT}"]

    def start_agent(self, *options, **env):
        super().start_agent(f"--preload-library={LIBRARY}", *self.options, *options, **env)

    def end_agent(self):
        """The controller knows of it before the next one reports."""
        self.agent.kill()
        self.agent.wait()
        self.hub.wait(lambda value: value == "gone n0")

    def start_again(self, *options, **env):
        self.start_agent(*options, **env)
        self.hub.wait_report(lambda r: True)

    def start_training(self, *options, before="true"):
        folder = self.slurm.path("work")
        return self.start_script(
            f"{before}; exec {TRAINING} --end={folder}/end --idle={folder}/idle",
            "--gres=shard:i1:10",
            *options,
        )

    def start_ranks(self, options=""):
        """Two that wait for each other in each step, each on one of the job's GPUs."""
        training = f"{TRAINING} {options} --device=$LOCAL_RANK --rank=$LOCAL_RANK --all-reduce=1"
        return self.start_script(
            f"for LOCAL_RANK in 0 1; do export LOCAL_RANK; {training} & done\nwait -n; kill 0",
            "--gres=shard:i0:10,shard:i1:10",
        )

    def start_script(self, text, *options):
        folder = self.slurm.path("work")
        script = f"export LD_LIBRARY_PATH={EMULATOR} COLLOC_EMULATOR={folder}/gpus\n{text}"
        job = self.sbatch(script, "--hold", *options)
        self.hub.say(f"pin n0 {job} streams")
        self.hub.wait(lambda value: value == "pinned 0")
        self.hub.wait_report(lambda r: True)
        self.hub.wait_report(lambda r: True)
        self.slurm.run("scontrol", "release", job)
        self.goes_on(job)
        return job

    def steps(self, job):
        return self.output(job).count("step")

    def goes_on(self, job):
        path = self.slurm.path(f"work/{job}.out")
        self.slurm.until(lambda: os.path.exists(path), "its output")
        before = self.steps(job)
        until(lambda: self.steps(job) > before + 3, f"further steps of job {job}")

    def order(self, *jobs):
        self.hub.say(" ".join(("out n0",) + jobs))
        self.hub.wait(lambda value: value == f"ordered {len(jobs)}")

    def entry(self, report, job):
        return next((e for e in report.get("jobs", []) if e["job"] == int(job)), {})

    def wait_where(self, job, where):
        """A job of which nothing is to say is here."""
        return self.hub.wait_report(lambda r: self.entry(r, job).get("where", "here") == where)

    def is_stopped(self):
        """Has Slurm stopped the training? It says so of the job before."""
        argument = f"--end={self.slurm.path('work/end')}"
        of_training = [
            pid for pid in filter(str.isdigit, os.listdir("/proc")) if argument in words_of(pid)
        ]
        states = [proc(pid, "stat").rpartition(") ")[2][:1] for pid in of_training]
        return "T" in states

    def send_out(self, job):
        self.order(job)
        report = self.wait_where(job, "out")
        self.assertEqual(self.slurm.job(job)["JobState"], "RUNNING")
        return report

    def is_decided(self, report, job):
        entry = self.entry(report, job)
        return entry.get("where") == "out" or "failed" in entry

    def send_out_again(self, job):
        """Its pages come with its next calls of CUDA: until then it cannot leave now."""
        while True:
            self.order(job)
            entry = self.entry(self.hub.wait_report(lambda r: self.is_decided(r, job)), job)
            if entry.get("where") == "out":
                return
            self.assertEqual(entry["failed"], "not-now", entry)
            self.order()
            self.hub.wait_report(lambda r: not self.entry(r, job).get("failed"))

    def end(self, job):
        """It ends by itself, with all that it had in its memory."""
        open(self.slurm.path("work/end"), "w").close()
        self.slurm.wait_job(job, "COMPLETED")
        self.assertTrue(self.output(job).endswith("whole\n"), self.output(job, "err"))
        self.assertEqual(self.slurm.job(job)["Restarts"], "0")
        folder = self.slurm.path("run/state/out")
        until(lambda: not os.path.isdir(folder) or not os.listdir(folder), "no record")

    def check_out_and_back(self):
        job = self.start_training()
        for _ in range(2):
            report = self.send_out(job)
            entry = self.entry(report, job)
            self.assertGreater(entry["held"], 63 * MIB)
            steps = self.steps(job)
            report = self.hub.wait_report(lambda r: True)
            self.assertEqual(self.steps(job), steps)
            self.order()
            self.wait_where(job, "here")
            self.goes_on(job)
        self.end(job)

    def write_record(self, job, text):
        folder = self.slurm.path("run/state/out")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, str(job)), "w", encoding="ascii") as file:
            file.write(text)

    def wait_log(self, text):
        until(lambda: text in read(self.agent.log), text)

    def check_damaged_record(self, text, keeps_steps=True):
        """The job comes back by what its processes say, and its user learns why."""
        job = self.start_training()
        self.send_out(job)
        self.end_agent()
        self.write_record(job, text)
        if not keeps_steps:
            shutil.rmtree(self.slurm.path("run/state/steps"))
        self.start_again()
        report = self.hub.wait_report(lambda r: "damaged" in self.entry(r, job).get("why", ""))
        self.assertEqual(self.entry(report, job)["where"], "out")
        self.order(job)  # also while it is ordered out
        self.wait_where(job, "here")
        self.order()
        self.goes_on(job)
        self.end(job)

    def check_kills(self):
        """The agent is killed at random instants of the way out and back: nothing is lost."""
        chance = random.Random(int(os.environ.get("COLLOC_SUSPEND_SEED", "1")))
        job = self.start_training()
        for _ in range(int(os.environ.get("COLLOC_SUSPEND_KILLS", "5"))):
            self.order(*([job] if chance.random() < 0.6 else []))
            end = time.monotonic() + chance.random() * 0.6
            until(lambda: time.monotonic() > end)
            self.agent.kill()
            self.agent.wait()
            self.start_agent()
        self.order()
        self.goes_on(job)
        self.end(job)


class GivesWay(GivesWayCase):
    """Jobs leave their GPUs at the controller's word, and come back. To Slurm they run."""

    def test_out_and_back(self):
        self.check_out_and_back()

    def test_ranks(self):
        """They leave together, and the controller hears that they must be back in time."""
        job = self.start_ranks()
        self.send_out_again(job)
        self.assertIs(self.entry(self.wait_where(job, "out"), job).get("ranks"), True)
        self.end_agent()
        self.start_again()  # the next one hears it from the processes
        is_seen = lambda r: self.entry(r, job).get("where") == "out"  # noqa: E731
        self.hub.wait_report(lambda r: is_seen(r) and self.entry(r, job).get("ranks"))
        self.order()
        self.wait_where(job, "here")
        self.goes_on(job)

    def test_ranks_that_cannot_leave_say_why(self):
        """They go on, and the log says where each stood."""
        job = self.start_ranks("--pool-mib=400")
        self.order(job)
        report = self.hub.wait_report(lambda r: "in pools" in self.entry(r, job).get("why", ""))
        self.assertEqual(self.entry(report, job)["failed"], "not-now")
        self.assertIn("most of its memory is in pools", self.entry(report, job)["why"])
        line = (
            rf"job {job}: process \d+: \d+ calls of NCCL; gate closed, 0 calls within; memory here"
        )
        until(lambda: len(re.findall(line, read(self.agent.log))) >= 2, "a line of each rank")
        self.order()
        self.goes_on(job)

    def test_kills(self):
        self.check_kills()

    def test_an_order_that_is_not_repeated_ends(self):
        """The controller has gone: the lease ends."""
        job = self.start_training()
        self.send_out(job)
        self.hub.say("silent n0")
        self.wait_where(job, "here")
        self.goes_on(job)
        self.end(job)

    def test_an_agent_that_is_killed_while_it_is_out(self):
        job = self.start_training()
        self.send_out(job)
        self.end_agent()
        # A write that the kill has ended.
        open(self.slurm.path(f"run/state/out/{job}.aB3dE6"), "w", encoding="ascii").close()
        self.start_agent()
        self.wait_where(job, "out")
        self.order()
        self.wait_where(job, "here")
        self.goes_on(job)
        self.end(job)

    def test_an_agent_that_is_killed_while_it_is_here(self):
        """The next one knows its steps, also without cgroups, and no others."""
        job = self.start_training()
        self.end_agent()
        folder = self.slurm.path("run/state/steps")
        (record,) = os.listdir(folder)
        line = read(os.path.join(folder, record))
        wrong = {
            record.split("-")[0] + "-1": line,  # its pid was another process's then
            f"{os.getpid()}-1": line,
            "4000000-5": line,
            "x": line,
            "1-": "",
        }
        for name, text in wrong.items():
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(text)
        self.start_again()
        until(lambda: os.listdir(folder) == [record], "no other record")
        self.send_out_again(job)
        self.order()
        self.wait_where(job, "here")
        self.goes_on(job)
        self.end(job)
        until(lambda: not os.listdir(folder), "no record of a step that has ended")

    def test_a_step_whose_record_is_damaged_stays_on_its_gpus(self):
        job = self.start_training()
        self.end_agent()
        folder = self.slurm.path("run/state/steps")
        path = os.path.join(folder, os.listdir(folder)[0])
        with open(path, "w", encoding="ascii") as file:
            file.write("start job=")
        self.start_again()
        self.goes_on(job)
        self.order(job)
        report = self.hub.wait_report(lambda r: self.entry(r, job).get("failed"))
        self.assertIn(self.entry(report, job)["failed"], ("refused", "not-now"))
        self.assertEqual(os.listdir(folder), [])
        self.end(job)

    def test_an_agent_without_step_records_brings_back_what_is_out(self):
        job = self.start_training()
        self.send_out(job)
        self.end_agent()
        shutil.rmtree(self.slurm.path("run/state/steps"))
        self.start_again()
        self.wait_where(job, "out")
        self.order()
        self.wait_where(job, "here")
        self.goes_on(job)
        self.end(job)

    def test_a_damaged_record_of_a_job_that_is_out(self):
        self.check_damaged_record("attempt 1\nphase")

    def test_a_damaged_record_and_none_of_its_steps(self):
        self.check_damaged_record("", keeps_steps=False)

    def test_a_damaged_record_of_a_job_that_has_ended(self):
        job = self.start_training()
        self.end_agent()
        self.write_record("4000000", "")
        self.start_again()
        self.wait_log("job 4000000, whose record is damaged, has ended")
        self.goes_on(job)
        self.end(job)

    def test_clocks_that_differ(self):
        """The node is 40 s ahead: the lease of an order is counted by the node."""
        self.end_agent()
        ahead = {"LD_PRELOAD": CLOCK, "COLLOC_TEST_CLOCK_AHEAD_S": "40"}
        self.start_again(**ahead)
        job = self.start_training()
        report = self.send_out(job)
        self.assertGreater(report["time_us"] / 1e6 - time.time(), 20)
        self.order()
        self.wait_where(job, "here")
        self.send_out(job)
        self.end_agent()
        self.start_again()  # its clock was set back
        self.wait_where(job, "out")
        self.hub.say("silent n0")
        self.goes_on(job)
        self.end(job)

    def test_a_driver_that_is_too_old(self):
        """Of nodes with different drivers each says what its own one cannot."""
        self.slurm.run(program("emulator"), "set", "machine", "cuda=12040")
        self.end_agent()
        self.options = ["--carrier=no", f"--checkpoint={CHECKPOINT}"]
        self.start_again()
        job = self.start_training()
        self.order(job)
        report = self.hub.wait_report(lambda r: self.entry(r, job).get("failed"))
        self.assertEqual(self.entry(report, job)["failed"], "refused")
        self.assertIn("570", self.entry(report, job)["why"])
        self.order()
        self.goes_on(job)
        self.end(job)

    def test_an_agent_without_a_controller_brings_back_what_it_finds(self):
        job = self.start_training()
        self.send_out(job)
        self.hub.say("silent n0")
        self.agent.kill()
        self.agent.wait()
        self.start_agent()
        self.goes_on(job)
        self.end(job)

    def test_slurms_own_suspension(self):
        """`scontrol suspend` of a job that is out: it is away until `scontrol resume`. One that is
        stopped already is not taken off its GPU."""
        job = self.start_training()
        self.send_out(job)
        self.slurm.run("scontrol", "suspend", job)
        until(self.is_stopped, "Slurm to stop its processes")
        self.order()
        for _ in range(5):
            report = self.hub.wait_report(lambda r: True)
            self.assertEqual(self.entry(report, job)["where"], "out")
        self.slurm.run("scontrol", "resume", job)
        self.wait_where(job, "here")
        self.goes_on(job)
        self.slurm.run("scontrol", "suspend", job)
        self.order(job)
        report = self.hub.wait_report(lambda r: self.entry(r, job).get("failed"))
        self.assertEqual(self.entry(report, job)["failed"], "not-now")
        self.order()
        self.slurm.run("scontrol", "resume", job)
        self.goes_on(job)
        self.end(job)

    def test_it_is_cancelled_or_requeued_while_it_is_out(self):
        job = self.start_training()
        self.send_out(job)
        self.slurm.run("scontrol", "requeuehold", job)
        until(lambda: self.slurm.job(job)["JobState"] == "PENDING", "it to be requeued")
        self.hub.wait_report(lambda r: not self.entry(r, job))
        until(lambda: not os.listdir(self.slurm.path("run/state/out")), "no record of it")
        self.slurm.run("scancel", job)
        job = self.start_training()
        self.send_out(job)
        self.slurm.run("scancel", job)
        self.slurm.wait_job(job, "CANCELLED")
        self.hub.wait_report(lambda r: not self.entry(r, job))

    def test_environments_of_users(self):
        """A library that the user preloads, and none of the variables of the submission."""
        own = os.path.abspath(os.path.join(BUILD, "tests", "preload", "libinterposer.so"))
        for export in (f"ALL,LD_PRELOAD={own}", "NONE"):
            job = self.start_training(f"--export={export}")
            self.send_out(job)
            self.order()
            self.wait_where(job, "here")
            self.goes_on(job)
            self.end(job)
            os.unlink(self.slurm.path("work/end"))

    def test_what_cannot_leave_says_why(self):
        job = self.start_training("--colloc-preload=no")
        self.order(job)
        report = self.hub.wait_report(lambda r: self.entry(r, job).get("failed"))
        self.assertEqual(self.entry(report, job)["failed"], "refused")
        self.assertIn("preloaded library", self.entry(report, job)["why"])
        self.goes_on(job)
        self.end(job)

    def test_a_memory_limit_that_its_copy_would_exceed(self):
        """Slurm would end the job for it."""
        self.end_agent()
        self.start_again("--carrier-pool=1MiB")
        cgroup, limit = memory_cgroup()
        if not cgroup:
            self.skipTest("cannot make a cgroup with a limit of memory here")
        self.addCleanup(until, lambda: not remove_cgroup(cgroup), "the end of the cgroup")
        job = self.start_training(before=f"echo $$ >{cgroup}/cgroup.procs")
        with open(f"{cgroup}/{limit}", "w", encoding="ascii") as file:
            file.write(str(self.used_bytes(cgroup) + 40 * MIB))
        self.order(job)
        report = self.hub.wait_report(lambda r: self.entry(r, job).get("failed"))
        self.assertEqual(self.entry(report, job)["failed"], "not-now")
        self.assertIn("memory limit", self.entry(report, job)["why"])
        self.goes_on(job)
        with open(f"{cgroup}/{limit}", "w", encoding="ascii") as file:
            file.write(str(self.used_bytes(cgroup) + 1000 * MIB))
        self.order()
        self.hub.wait_report(lambda r: not self.entry(r, job).get("failed"))
        self.send_out(job)
        self.order()
        self.wait_where(job, "here")
        self.end(job)

    def rooms(self):
        """The files of the agent's pool."""
        folder, found = f"/proc/{self.agent.pid}/fd", []
        for fd in os.listdir(folder):
            with contextlib.suppress(OSError):
                if "colloc-room" in os.readlink(f"{folder}/{fd}"):
                    found.append(os.stat(f"{folder}/{fd}").st_blocks * 512)
        return found

    def wait_room(self):
        """Its last page is there, and the agent knows it."""
        until(lambda: sum(self.rooms()) >= 64 * MIB, "host memory for its copy")
        maps = f"/proc/{self.agent.pid}/maps"
        until(lambda: "colloc-room" not in read(maps), "the end of the agent's work")
        for _ in range(2):
            self.hub.wait_report(lambda r: True)

    def check_out_and_here(self, job):
        self.send_out(job)
        self.order()
        self.wait_where(job, "here")
        self.goes_on(job)

    def test_a_memory_limit_without_its_copy(self):
        """The copy is memory of the agent's: Slurm counts none of it, and the agent has made it."""
        cgroup, limit = memory_cgroup()
        if cgroup:
            self.addCleanup(until, lambda: not remove_cgroup(cgroup), "the end of the cgroup")
        before = f"echo $$ >{cgroup}/cgroup.procs" if cgroup else "true"
        job = self.start_training(before=before)
        self.wait_room()
        said = self.entry(self.hub.wait_report(lambda r: "room" in self.entry(r, job)), job)
        self.assertGreaterEqual(said["room"], 64 * MIB)
        self.assertRegex(said["rooms"], r"^[\d.]+ MiB are ready; its user has ")
        self.check_out_and_here(job)  # emulated pinned memory is real from its first use on
        if cgroup:
            with open(f"{cgroup}/{limit}", "w", encoding="ascii") as file:
                file.write(str(self.used_bytes(cgroup) + 60 * MIB))
        self.check_out_and_here(job)
        self.end(job)
        until(lambda: not self.rooms(), "the end of its room")

    def used_bytes(self, cgroup):
        names = ("memory.current", "memory.usage_in_bytes")
        return int(read(next(p for p in (f"{cgroup}/{n}" for n in names) if os.path.exists(p))))

    def test_a_job_that_calls_no_cuda(self):
        job = self.start_training()
        idle = self.slurm.path("work/idle")
        open(idle, "w").close()
        self.hub.wait_report(lambda r: self.entry(r, job).get("idle_us", 0) >= 2_000_000)
        self.send_out(job)
        os.unlink(idle)
        self.hub.wait_report(lambda r: self.entry(r, job).get("called"))
        self.order()
        self.goes_on(job)
        self.end(job)

    def claim_job(self, job):
        """A process of another user says that it is of the job, and keeps its page."""
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.setegid(OTHER_USER)
        os.seteuid(OTHER_USER)
        try:
            client.connect(self.slurm.path("run/node.sock.preload"))
        finally:
            os.seteuid(0)
            os.setegid(0)
        client.settimeout(60)
        client.send(pd.MESSAGE.pack(pd.MAGIC, 1, pd.HELLO, 0, 0, int(job), *[0] * 5, bytes(16)))
        message, passed, _, _ = client.recvmsg(pd.MESSAGE.size, socket.CMSG_SPACE(4))
        self.assertEqual(pd.MESSAGE.unpack(message)[2], pd.WELCOME)
        fd = struct.unpack("=i", passed[0][2])[0]
        with mmap.mmap(fd, pd.PAGE_SIZE) as page:
            struct.pack_into("=I", page, pd.AT_GATE, 1)
            struct.pack_into("=I", page, pd.FLAGS, pd.OTHER_COLLECTIVES)
        os.close(fd)
        return client

    def test_a_process_of_another_user_that_names_the_job(self):
        """Before the agent knows the job: it neither calls for it nor keeps it on its GPUs."""
        job = str(int(self.sbatch("true")) + 1)
        with self.claim_job(job):
            self.assertEqual(self.start_training(), job)
            open(self.slurm.path("work/idle"), "w").close()
            report = self.hub.wait_report(lambda r: self.entry(r, job).get("idle_us", 0) > 0)
            self.assertIs(self.entry(report, job).get("carried"), True)
            self.send_out(job)
            report = self.hub.wait_report(lambda r: True)
            self.assertNotIn("called", self.entry(report, job))
            os.unlink(self.slurm.path("work/idle"))
            self.hub.wait_report(lambda r: self.entry(r, job).get("called"))
            self.order()
            self.goes_on(job)
            self.end(job)

    def test_suspend_no(self):
        self.agent.kill()
        self.hub.wait(lambda value: value == "gone n0")
        self.start_agent("--suspend=no")
        report = self.hub.wait_report(lambda r: True)
        self.assertNotIn("suspends", report)
        job = self.start_training()
        self.order(job)
        for _ in range(5):
            report = self.hub.wait_report(lambda r: True)
        self.assertEqual(self.entry(report, job), {})
        self.end(job)


class Preempted(GivesWayCase):
    """Slurm's own preemption of a job that is out, for one of a partition of a higher tier."""

    slurm_settings = {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"}
    slurm_lines = (
        loopback.INTAKE,
        loopback.RUN,
        "PartitionName=urgent Nodes=ALL State=UP PriorityTier=10 PreemptMode=OFF",
    )

    def preempt(self, script="true"):
        """A job that needs all CPUs."""
        return self.sbatch(script, "--partition=urgent", "--cpus-per-task=64", "--mem=1")

    def test_it_is_requeued(self):
        """Its copy goes with it."""
        job = self.start_training()
        self.send_out(job)
        self.slurm.wait_job(self.preempt(), "COMPLETED")
        self.assertEqual(self.slurm.job(job)["Restarts"], "1")
        self.hub.wait_report(lambda r: not self.entry(r, job))
        until(lambda: not os.listdir(self.slurm.path("run/state/out")), "no record of it")
        self.slurm.run("scancel", job)


class PreemptedBySuspension(Preempted):
    """The job stays out as long as Slurm has stopped it."""

    slurm_settings = {"PreemptType": "preempt/partition_prio", "PreemptMode": "SUSPEND,GANG"}

    test_it_is_requeued = None

    def test_it_is_suspended(self):
        job = self.start_training()
        self.send_out(job)
        go = self.slurm.path("work/go")
        urgent = self.preempt(f"until [ -e {go} ]; do sleep 0.05; done")
        self.slurm.wait_job(job, "SUSPENDED")
        until(self.is_stopped, "Slurm to stop its processes")
        self.order()
        for _ in range(5):
            report = self.hub.wait_report(lambda r: True)
            self.assertEqual(self.entry(report, job)["where"], "out")
        open(go, "w").close()
        self.slurm.wait_job(urgent, "COMPLETED")
        self.wait_where(job, "here")
        self.goes_on(job)
        self.end(job)


class GivesWayByDriver(GivesWayCase):
    """Without the carrier NVIDIA's driver takes all of it."""

    options = ["--carrier=no", f"--checkpoint={CHECKPOINT}"]

    def test_out_and_back(self):
        self.check_out_and_back()

    def test_a_damaged_record_of_a_job_that_is_out(self):
        self.check_damaged_record("attempt 1\nphase")

    def test_a_damaged_record_and_none_of_its_steps(self):
        self.check_damaged_record("", keeps_steps=False)

    def test_kills(self):
        self.check_kills()


class TwoAtOnce(GivesWayCase):
    """The driver needs seconds for each GiB: a job on another GPU does not wait for that."""

    options = ["--carrier=no", f"--checkpoint={CHECKPOINT}"]
    speed = 0.05  # as 2.9 and 0.6 GiB on a GPU at a fifth of its speed: 7.3 s, and 1.5 s
    large, small = 742, 153  # MiB
    rounds = int(os.environ.get("COLLOC_SUSPEND_KILLS", "2"))

    def start_on(self, gpu, mib):
        folder = self.slurm.path("work")
        blocks = f"--blocks=1 --first-mib={mib}"
        return self.start_script(
            f"exec {TRAINING} {blocks} --end={folder}/end --idle={folder}/idle",
            f"--gres=shard:i{gpu}:10",
        )

    def start_two(self):
        large, small = self.start_on(0, self.large), self.start_on(1, self.small)
        self.goes_on(large)
        return large, small

    def helpers(self):
        return [
            int(pid)
            for pid in filter(str.isdigit, os.listdir("/proc"))
            if CHECKPOINT in words_of(pid)
        ]

    def where(self, report, job):
        return self.entry(report, job).get("where", "here")

    def wait_both(self, jobs, where):
        self.hub.wait_report(lambda r: all(self.where(r, job) == where for job in jobs))

    def test_the_small_one_is_out_and_back_before_the_large_one_is_out(self):
        large, small = self.start_two()
        self.order(large)
        self.wait_where(large, "going")
        began = time.monotonic()
        self.order(large, small)
        report = self.wait_where(small, "out")
        took_s = time.monotonic() - began
        self.assertEqual(self.where(report, large), "going", f"small: {took_s:.1f} s")
        self.order(large)
        report = self.wait_where(small, "here")
        self.assertEqual(self.where(report, large), "going", f"small: {took_s:.1f} s")
        self.goes_on(small)
        self.wait_where(large, "out")
        self.order()
        self.wait_where(large, "here")
        self.goes_on(large)
        self.end_both(large, small)

    def end_both(self, *jobs):
        open(self.slurm.path("work/end"), "w").close()
        for job in jobs:
            self.end(job)

    def test_kills_while_both_are_with_the_driver(self):
        """One helper of two, or the agent: each job comes to where it was ordered."""
        jobs = self.start_two()
        for i in range(self.rounds):
            self.order(*jobs)
            helpers = until(lambda: len(self.helpers()) > 1 and self.helpers(), "two helpers")
            if i % 2 == 0:
                self.end_agent()
                self.start_again()
            else:
                os.kill(helpers[0], signal.SIGKILL)
            self.order()
            self.wait_both(jobs, "here")
            for job in jobs:
                self.goes_on(job)
        self.end_both(*jobs)


if __name__ == "__main__":
    unittest.main(verbosity=2)
