# SPDX-License-Identifier: Apache-2.0
"""Containers that a task starts by the real docker, with its cgroup driver systemd: its default.

dockerd asks a real systemd for each container's scope, in a slice that is the task's
(src/exec/container_slice.h). `docker compose` is tested where it is installed, or where
COLLOC_COMPOSE names its plugin.
"""

import json
import os
import signal
import subprocess
import sys
import unittest

import booted_systemd
from daemon_case import LIMIT_S, program, read, until
from docker_case import DockerCase

SLICES = "/sys/fs/cgroup/colloc.slice"
COMPOSE = [os.environ.get("COLLOC_COMPOSE", "")] + [
    f"/usr/{place}/docker/cli-plugins/docker-compose" for place in ("libexec", "lib", "local/lib")
]


@unittest.skipUnless(booted_systemd.is_inside(), booted_systemd.why_not() or "runs as a program")
class DockerBySystemd(DockerCase):
    driver = "systemd"

    def setUp(self):
        super().setUp()
        self.loaded = self.systemctl("show", "--value", "-p", "UnitsLoadFinishTimestampMonotonic")

    def slices(self):
        names = os.listdir(SLICES) if os.path.isdir(SLICES) else []
        return [name for name in names if name.startswith("colloc-")]

    def train(self, options=(), mib=3000, **members):
        """A task that starts a container with a training, and its process there."""
        train = f"{program('pretend-train')} --memory-mib={mib} --seconds=1e6"
        words = " ".join(self.words(*train.split(), options=options))
        task = self.submit(f"docker {words}\nexec sleep 1000", **members)
        until(lambda: (self.task(task).get("mem_used_mib") or 0) > mib - 100, "the task's memory")
        [container] = self.containers()
        return task, container, self.process_of(container, f"--memory-mib={mib}")

    def wait_ended(self, pid):
        self.wait_gone(pid)
        until(lambda: not self.containers(), "the container's end")
        until(lambda: not self.slices(), "the slice's end")
        listed = self.systemctl("list-units", "--all", "--plain", "--no-legend", "colloc-*")
        self.assertEqual(listed, "")
        settings = "/run/systemd/system.control"  # a task that has ended has left no limits there
        until(lambda: not os.path.isdir(settings) or not os.listdir(settings), "no settings")
        since = self.systemctl("show", "--value", "-p", "UnitsLoadFinishTimestampMonotonic")
        self.assertEqual(since, self.loaded, "systemd was reloaded: containers lose their GPUs")

    def systemctl(self, *words):
        return subprocess.run(
            ["systemctl", *words], capture_output=True, text=True, timeout=LIMIT_S, check=False
        ).stdout.strip()

    def test_a_container_is_a_part_of_the_task(self):
        for options in ((), ("--detach",)):
            task, container, pid = self.train(options=options)
            used = [gpu for gpu in self.get("/v1/gpus")["gpus"] if gpu["foreign_processes"]]
            self.assertEqual(used, [])
            self.assertIn(f"_{task}.1.slice/docker-{container}", read(f"/proc/{pid}/cgroup"))
            self.act("cancel", task)
            self.wait(task, "CANCELLED")
            self.wait_ended(pid)

    def test_it_has_the_tasks_limits_and_gpus(self):
        task, container, pid = self.train(options=["--detach"], cpus=2, host_memory_mib=3000)
        [name] = self.slices()
        until(
            lambda: self.systemctl("show", "--value", "-p", "MemoryMax", name) == str(3000 << 20),
            "the limit",
        )
        self.assertEqual(self.systemctl("show", "--value", "-p", "CPUQuotaPerSecUSec", name), "2s")
        path = os.path.join(SLICES, name, "memory.max")
        if os.path.exists(path):  # where the hierarchy has the controller
            self.assertEqual(int(read(path)), 3000 << 20)
        self.act("cancel", task)
        self.wait_ended(pid)
        # dockerd starts no container with --gpus where there is no driver.
        task = self.submit(
            "echo $COLLOC_GPUS; docker create --gpus=all --restart=always lab/train:1 true"
        )
        self.wait(task, "COMPLETED")
        gpu, container = self.read(f"colloc-{task}.out").split()
        self.check_made(container, gpu)

    def check_made(self, container, gpu):
        """Its GPUs are the task's, and dockerd does not start it again."""
        [shown] = json.loads(self.docker("inspect", container).stdout)
        self.assertEqual(shown["HostConfig"]["RestartPolicy"]["Name"] or "no", "no")
        [request] = shown["HostConfig"]["DeviceRequests"]
        self.assertEqual(request["DeviceIDs"], [gpu])
        return shown["Config"]["Labels"]

    def test_it_ends_with_a_task_whose_script_ends(self):
        train = f"{program('pretend-train')} --memory-mib=3000 --seconds=1e6".split()
        words = " ".join(self.words(*train, options=["--detach"]))
        task = self.submit(f"docker {words}")
        self.wait(task, "COMPLETED")
        until(lambda: not self.containers(), "the container's end")
        until(lambda: not self.slices(), "the slice's end")

    def test_it_ends_without_collocd_and_without_the_shim(self):
        for kills in ("collocd", "shim", "both"):
            task, _, pid = self.train(options=["--detach"])
            shim = self.shim_of(task)
            if kills != "shim":
                self.stop(signal.SIGKILL)
            if kills == "collocd":
                # The task's script ends while no daemon runs: its shim ends the container.
                for child in self.children_of(shim):
                    os.kill(child, signal.SIGKILL)
                self.wait_gone(pid)
            else:
                os.kill(shim, signal.SIGKILL)
            if kills != "shim":
                self.start()
            self.wait(task)
            self.wait_ended(pid)

    def children_of(self, pid):
        return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children").split()]

    def shim_of(self, task):
        return int(read(os.path.join(self.state, "tasks", str(task), "1", "claim")).split()[0])

    def test_a_container_that_comes_back_is_ended(self):
        words = self.words("/usr/bin/sleep", "1000", options=["--detach"])
        words.remove("--rm")
        task = self.submit("docker " + " ".join(words) + " && sleep 1000")
        until(self.containers, "the container")
        [container] = self.containers()
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        until(lambda: not self.containers() and not self.slices(), "the end of its slice")
        self.stop()  # else it may end it before a process is there, which is not in the log
        self.assertEqual(self.docker("start", container).returncode, 0)
        self.start()
        self.wait_log("processes were killed in containers of tasks that have ended")
        until(lambda: not self.containers() and not self.slices(), "its end")
        self.docker("rm", container)

    def test_a_paused_task_pauses_its_containers(self):
        self.restart(sharing="mps", **{"suspend-without-gate": "yes"})
        words = self.words("/usr/bin/sleep", "1000", options=["--detach"])
        mine = f"{program('pretend-train')} --memory-mib=2000 --seconds=1e6"
        task = self.submit("docker " + " ".join(words) + f"\nexec {mine}")
        until(lambda: (self.task(task).get("mem_used_mib") or 0) > 1900, "the task's memory")
        [name] = self.slices()
        frozen = os.path.join(SLICES, name, "cgroup.events")
        self.assertIn("PAUSED", self.colloc("suspend", str(task)).stdout)
        until(lambda: "frozen 1" in read(frozen), "the containers' pause")
        self.assertIn("RUNNING", self.colloc("resume", str(task)).stdout)
        until(lambda: "frozen 0" in read(frozen), "the containers' run")
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        until(lambda: not self.containers() and not self.slices(), "its end")

    def test_compose(self):
        plugin = next((path for path in COMPOSE if path and os.path.exists(path)), None)
        if not plugin:
            self.skipTest("docker compose is not installed")
        plugins = os.path.join(self.folder, "config", "cli-plugins")
        os.makedirs(plugins)
        os.symlink(plugin, os.path.join(plugins, "docker-compose"))
        self.env["DOCKER_CONFIG"] = os.path.dirname(plugins)
        folder = os.path.join(self.work, "a project")
        os.mkdir(folder)
        mounts = [word for word in self.mounts() if word.startswith("/")]
        train = [program("pretend-train"), "--memory-mib=3000", "--seconds=1e6"]
        service = {
            "image": "lab/train:1",
            "command": ["/usr/bin/sh", "-c", f"echo $$HOME; exec {' '.join(train)}"],
            "network_mode": "none",
            "pid": "host",
            "restart": "always",
            "volumes": mounts,
            "environment": {name: self.env[name] for name in ("COLLOC_EMULATOR", "PATH")},
        }
        service["environment"]["LD_LIBRARY_PATH"] = self.env.get("LD_LIBRARY_PATH", "")
        devices = {"devices": [{"capabilities": ["gpu"], "count": "all"}]}
        with_gpu = {**service, "deploy": {"resources": {"reservations": devices}}}
        services = {"train": service, "made": {**with_gpu, "profiles": ["made"]}}
        self.write("a project/compose.yaml", json.dumps({"services": services}))
        alone = {**self.env, "DOCKER_CONFIG": folder, "PATH": f"{self.env['PATH']}:{plugins}"}
        for line, environment in (
            ("docker compose up", self.env),
            ("docker compose up -d", self.env),
            ("docker-compose up -d", self.env),
            ("docker-compose up -d", alone),  # the same program, and docker has no plugin
        ):
            task = self.submit(f"cd '{folder}'\n{line}\nexec sleep 1000", environment=environment)
            until(
                lambda: (self.task(task).get("mem_used_mib") or 0) > 2900,
                "the task's memory",
                explain=lambda: self.read_if(f"colloc-{task}.out"),
            )
            self.assertNotIn("warning", self.read(f"colloc-{task}.out"))
            [container] = self.containers()
            pid = self.process_of(container, "--memory-mib=3000")
            self.act("cancel", task)
            self.wait(task, "CANCELLED")
            self.wait_ended(pid)
        task = self.submit(
            f"cd '{folder}'\necho $COLLOC_GPUS\ndocker compose create made 2>&1",
            environment=self.env,
        )
        self.wait(task, "COMPLETED")
        made = self.docker("ps", "-aq", "--filter=label=com.docker.compose.service=made")
        labels = self.check_made(
            made.stdout.decode().strip(), self.read(f"colloc-{task}.out").split()[0]
        )
        self.assertEqual(labels["colloc.task"], str(task))
        self.assertEqual(labels["com.docker.compose.project.working_dir"], folder)
        self.assertEqual(labels["com.docker.compose.project"], "aproject")


if __name__ == "__main__":
    if booted_systemd.is_inside() or booted_systemd.why_not():
        unittest.main()
    sys.exit(booted_systemd.run([sys.executable, *sys.argv]))
