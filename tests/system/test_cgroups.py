# SPDX-License-Identifier: Apache-2.0
"""A cgroup per attempt: no process of a task escapes its end, and no cgroup is left behind."""

import os
import signal
import subprocess
import unittest

from daemon_case import LIMIT_S, DaemonCase, cgroup_of, cgroups_of, is_alive, program, read, until

NO_CGROUPS = "no cgroup per task"


class Cgroups(DaemonCase):
    def setUp(self):
        super().setUp()
        if any(NO_CGROUPS in line for line in self.log):
            self.skipTest(next(line for line in self.log if NO_CGROUPS in line))

    def escaped(self):
        """The pids of a task that left a process in a new session, without its variable."""
        task = self.submit(
            "env -i setsid sh -c 'echo $$ >escaped; exec sleep 1000' & echo $$ >main; wait"
        )
        return task, int(self.wait_file("main")), int(self.wait_file("escaped"))

    def shim(self, pid):
        return int(read(f"/proc/{pid}/stat").rpartition(")")[2].split()[1])

    def test_its_processes_are_in_it_and_it_goes_with_the_task(self):
        task, main, escaped = self.escaped()
        cgroup = cgroup_of(main)
        self.assertTrue(cgroup.endswith(f"-{task}.1"), cgroup)
        self.assertEqual(cgroup_of(escaped), cgroup)
        self.assertNotEqual(cgroup_of(self.shim(main)), cgroup)
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        self.assertFalse(is_alive(escaped))
        until(lambda: not cgroups_of(self.state), "the removal of the cgroup")

    @unittest.skipIf(os.geteuid() != 0, "moving a process into a task's cgroup needs root")
    def test_what_a_server_starts_in_it_is_the_tasks(self):
        task = self.submit("echo $COLLOC_CGROUP >cgroup; exec sleep 1000")
        cgroup = self.wait_file("cgroup").strip()
        inside = os.path.join(cgroup, "container")
        os.mkdir(inside)
        started = subprocess.Popen(
            [program("pretend-train"), "--memory-mib=9000", "--seconds=1e6", "--ramp-seconds=1"],
            env=self.env,
            stdout=subprocess.DEVNULL,
        )
        try:
            with open(f"{inside}/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(started.pid))
            gpu = self.wait_gpu(
                lambda g: [t for t in g["tasks"] if (t["mem_used_mib"] or 0) > 8900]
            )
            self.assertEqual(gpu["foreign_processes"], [])
            self.act("cancel", task)
            self.wait(task, "CANCELLED")
            self.assertEqual(started.wait(LIMIT_S), -signal.SIGKILL)
        finally:
            started.kill()
            started.wait()
        self.assertGreater(self.task(task)["mem_peak_mib"], 8900)
        until(lambda: cgroups_of(self.state) == [], "the removal of the cgroups")

    def test_many_leave_nothing(self):
        task = self.submit("echo $$ >main; while [ ! -e go ]; do sleep 0.02; done")
        self.wait_file("main")
        self.assertEqual(len(cgroups_of(self.state)), 1)
        self.write("go", "")
        for each in (task, *[self.submit("(setsid true &) ; exit 3") for _ in range(20)]):
            self.wait(each)
        until(lambda: not cgroups_of(self.state), "the removal of the cgroup")

    def test_after_the_death_of_its_shim_nothing_of_it_lives(self):
        task, main, escaped = self.escaped()
        os.kill(self.shim(main), signal.SIGKILL)
        self.assertEqual(self.wait(task, "FAILED")["reason"], "Lost")
        self.wait_gone(escaped)
        self.assertFalse(is_alive(main))
        until(lambda: cgroups_of(self.state) == [], "the removal of the cgroup")

    def test_nor_when_no_daemon_ran(self):
        task, main, escaped = self.escaped()
        shim = self.shim(main)
        self.stop(signal.SIGKILL)
        os.kill(shim, signal.SIGKILL)
        self.wait_gone(main)
        self.assertTrue(is_alive(escaped))
        self.start()
        self.assertEqual(self.wait(task, "FAILED")["reason"], "Lost")
        self.wait_gone(escaped)
        until(lambda: cgroups_of(self.state) == [], "the removal of the cgroup")

    def test_a_task_that_runs_is_left_alone_by_a_restart(self):
        task, main, escaped = self.escaped()
        self.restart(signal.SIGKILL)
        self.assertTrue(is_alive(main) and is_alive(escaped))
        self.assertEqual(len(cgroups_of(self.state)), 1)
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        until(lambda: not cgroups_of(self.state), "the removal of the cgroup")


class GpuFilter(DaemonCase):
    """Device files of NVIDIA's numbers without a driver: ENXIO says that opening was allowed."""

    gpus = "3xA100-40GB"
    settings = {"gpu-filter": "yes", "suspend": "no"}
    OPEN = (
        'for gpu in 0 1 2 255; do (exec <"nvidia$gpu") 2>&1 | grep -o "No such.*\\|Operation.*"; '
        "done"
    )

    def setUp(self):
        super().setUp()
        reasons = [line for line in self.log if NO_CGROUPS in line or "gpu-filter: tasks" in line]
        if reasons or os.geteuid() != 0 or os.path.exists("/dev/nvidiactl"):
            self.skipTest((reasons or ["needs root, and a machine without NVIDIA's driver"])[0])
        for minor in (0, 1, 2, 255):
            try:
                os.mknod(os.path.join(self.work, f"nvidia{minor}"), 0o20666, os.makedev(195, minor))
            except PermissionError as error:
                self.skipTest(str(error))

    def opened(self, script, **members):
        """The device files that it could open."""
        task = self.submit(script, **members)
        self.wait(task, "COMPLETED")
        return [line == "No such device or address" for line in self.output(task).splitlines()]

    def test_a_task_opens_its_gpus_only(self):
        first = self.submit("exec sleep 1000", exclusive=True)
        gpu = int(self.wait_state(first, "RUNNING")["gpus"][0])
        own = self.opened(self.OPEN, gpus=2, sharing="streams")
        self.assertEqual(own, [gpu != i for i in range(3)] + [True])
        self.assertEqual(self.opened(self.OPEN, gpus=1, sharing="mps"), [True] * 4)

    def test_it_is_named_by_uuid_and_cannot_make_the_file_itself(self):
        task = self.submit(
            "echo $CUDA_VISIBLE_DEVICES; for i in 0 1 2; do mknod own$i c 195 $i && echo $i; done",
            sharing="streams",
        )
        self.wait(task)
        words = self.output(task).split()
        self.assertTrue(words[0].startswith("GPU-"), words)
        self.assertEqual(sum(word in ("0", "1", "2") for word in words), 1, words)

    def test_suspension_is_refused_beside_it(self):
        self.stop()
        status, text = self.run_daemon(suspend="yes")
        self.assertEqual(status, 2)
        self.assertIn("gpu-filter: a task that sees only its own GPUs", text)


class HostResources(DaemonCase):
    settings = {"host-cpus": "4", "host-memory": "8GiB", "cpus-per-gpu": "3"}

    def test_tasks_wait_for_cpus_and_main_memory(self):
        first = self.submit("exec sleep 1000", cpus=3, host_memory_mib=5000)
        self.wait_state(first, "RUNNING")
        second = self.submit("true", cpus=1, host_memory_mib=4000)
        words = "of main memory are free, it needs 3.9 GiB"
        until(lambda: words in self.task(second)["reason_text"], "the reason")
        shown = self.task(second)
        self.assertEqual((shown["state"], shown["reason"]), ("PENDING", "Resources"))
        self.restart(signal.SIGKILL)
        self.assertEqual(self.task(second)["state"], "PENDING")
        self.act("cancel", first)
        self.wait(second, "COMPLETED")

    def test_a_task_that_names_none_has_the_part_of_its_gpus(self):
        task = self.submit("exec sleep 1000")
        self.assertEqual(self.task(task)["cpus"], 3)
        other = self.submit()
        until(
            lambda: "1 of 4 CPUs are free, it needs 3" in self.task(other)["reason_text"],
            "the reason",
        )
        self.assertIn("1 of 4 CPUs", self.colloc("queue").stdout)
        self.assertRegex(self.colloc("show", str(task)).stdout, r"CPUs +3\n")
        self.refused(400, "cpus=5", "at most 4 CPUs", cpus=5)
        self.refused(400, "cpus=6", "at most 4 CPUs", gpus=2)
        self.refused(400, "host_memory=9.0 GiB", "at most 8.0 GiB", host_memory_mib=9 << 10, cpus=1)

    def test_a_task_that_names_no_memory_is_bounded_by_its_part(self):
        task = self.submit("exec sleep 1000", gpus=2, cpus=1)
        self.wait_state(task, "RUNNING")
        files = [os.path.join(path, n) for path, _, names in os.walk(self.state) for n in names]
        spec = read(next(path for path in files if path.endswith("/spec")), "rb")
        self.assertIn(b"memory_bytes 10 %d\n" % (4 << 30), spec)  # two of four GPUs
        self.assertIn(b"cpu_weight 3 200\n", spec)
        self.assertIsNone(self.task(task).get("host_memory_mib"))  # it is not counted

    def test_what_cannot_be_enforced_is_said_once(self):
        said = [line for line in self.log if "not enforced" in line]
        home = os.path.join(cgroup_of("self") or "/nonexistent", "colloc")
        enabled = os.path.join(home, "cgroup.subtree_control")
        has = set(read(enabled).split()) if os.path.exists(enabled) else set()
        self.assertEqual(len(said), 0 if {"cpu", "memory", "pids"} <= has else 1, self.log)


@unittest.skipIf(os.geteuid() != 0, "becoming a user without rights to cgroups needs root")
class NotWritable(DaemonCase):
    daemon_prefix = ("setpriv", "--reuid=64001", "--regid=64001", "--clear-groups")

    def start(self, **settings):
        os.chown(self.folder, 64001, 64001)
        os.chown(self.work, 64001, 64001)
        os.chmod(self.env["COLLOC_EMULATOR"], 0o666)
        super().start(**settings)

    def test_it_is_said_once_and_tasks_run(self):
        self.assertEqual(sum(NO_CGROUPS in line for line in self.log), 1, self.log)
        os.setegid(64001)
        os.seteuid(64001)
        try:
            self.wait(self.submit("setsid true"), "COMPLETED")
        finally:
            os.seteuid(0)
            os.setegid(0)


if __name__ == "__main__":
    unittest.main()
