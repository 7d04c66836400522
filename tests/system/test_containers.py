# SPDX-License-Identifier: Apache-2.0
"""Containers that a task starts: their processes are the task's. Needs root and a usable podman."""

import os
import shutil
import subprocess
import unittest

from daemon_case import LIMIT_S, DaemonCase, cgroup_of, proc, processes_with, program, read, until

PODMAN = (
    "podman {options} run --rm --network=none --pid=host --ulimit=nofile=1024:1024 "
    "--ulimit=nproc=1000:1000 -v /lib:/lib:ro -v /usr:/usr:ro {mounts} --rootfs {root} {command}"
)


def trainings_of(folder):
    """The pretend trainings of the test with this folder: other tests run some, too."""
    return [pid for pid in processes_with(folder) if "pretend" in proc(pid, "comm")]


class Containers(DaemonCase):
    gpus = "1xA100-40GB"

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or not shutil.which("podman"):
            self.skipTest("needs root and podman")
        self.root = os.path.join(self.folder, "root")
        for name in ("bin", "lib", "usr", "proc", "dev", "etc", "tmp"):
            os.makedirs(os.path.join(self.root, name))
        for name in ("bin", "lib64"):
            path = os.path.join(self.root, name)
            if os.path.isdir(path):
                os.rmdir(path)
            os.symlink(f"usr/{name}", path)
        self.options = next((o for o in ("", "--runtime=runc") if self.can_run(o)), None)
        if self.options is None:
            self.skipTest("podman starts no container here: " + self.reason)

    def podman(self, command, options=None):
        paths = {self.folder, os.path.abspath(os.path.join(os.path.dirname(program("emulator"))))}
        mounts = " ".join(f"-v {path}:{path}" for path in sorted(paths))
        variables = " ".join(f"-e {n}" for n in ("COLLOC_EMULATOR", "LD_LIBRARY_PATH", "PATH"))
        return PODMAN.format(
            options=self.options if options is None else options,
            mounts=f"{mounts} {variables}",
            root=self.root,
            command=command,
        )

    def can_run(self, options):
        done = subprocess.run(
            self.podman("/bin/true", options),
            shell=True,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        self.reason = done.stderr.strip()
        return done.returncode == 0

    def test_its_processes_are_attributed_and_end_with_the_task(self):
        train = program("pretend-train") + " --memory-mib=3000 --seconds=1e6"
        task = self.submit("exec " + self.podman(train))
        self.wait_gpu(lambda gpu: (gpu["mem_used_mib"] or 0) > 2900, 0)
        until(lambda: (self.task(task).get("mem_used_mib") or 0) > 2900, "the task's memory")
        gpu = self.get("/v1/gpus")["gpus"][0]
        self.assertEqual(gpu["foreign_processes"], [], gpu)
        pids = trainings_of(self.folder)
        self.assertEqual(len(pids), 1, pids)
        print(f"the container's cgroup: {cgroup_of(pids[0])}")
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        self.wait_gone(pids[0])


PRETEND_PODMAN = """#!/usr/bin/env python3
import os, sys
with open(os.environ["PODMAN_WORDS"], "w") as file:
    file.write("\\0".join(sys.argv[1:]))
image = sys.argv.index("docker.io/lab/train:1")
os.execvp(sys.argv[image + 1], sys.argv[image + 1:])
"""


class Submitted(DaemonCase):
    """colloc submit --container, with a podman that records its words and starts the command."""

    gpus = "2xA100-40GB"

    def setUp(self):
        super().setUp()
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        podman = os.path.join(self.bin, "podman")
        with open(podman, "w", encoding="utf-8") as file:
            file.write(PRETEND_PODMAN)
        os.chmod(podman, 0o755)
        self.words = os.path.join(self.folder, "words")

    def submit_container(self, *words, code=0, path=True):
        search = f"{self.bin}:{self.env['PATH']}" if path else "/nowhere"
        return self.colloc("submit", *words, code=code, PATH=search, PODMAN_WORDS=self.words)

    def test_it_has_the_tasks_gpu_and_belongs_to_the_task(self):
        first = self.submit("exec sleep 1000", exclusive=True)
        taken = self.wait_state(first, "RUNNING")["gpus"]
        train = [program("pretend-train"), "--memory-mib=3000", "--seconds=1e6"]
        done = self.submit_container("--container=docker.io/lab/train:1", "--", *train)
        task = int(done.stdout.split()[-1])
        gpu = self.wait_state(task, "RUNNING")["gpus"]
        self.assertNotEqual(gpu, taken)
        until(lambda: (self.task(task).get("mem_used_mib") or 0) > 2900, "the task's memory")
        words = read(self.words).split("\0")
        self.assertEqual(words[:3], ["run", "--rm", "--cgroups=disabled"])
        devices = [word for word in words if word.startswith("--device=")]
        self.assertEqual(devices, [f"--device=nvidia.com/gpu={gpu[0]}"])
        self.assertIn(f"--workdir={self.work}", words)
        self.assertEqual(words[words.index("docker.io/lab/train:1") + 1 :], train)
        shown = self.task(task)
        self.assertEqual((shown["sharing"], shown["name"]), ("streams", "colloc-pretend-train"))
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        until(lambda: not trainings_of(self.folder), "its end")

    def test_refusals(self):
        script = os.path.join(self.work, "train.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\ntrue\n")
        for words, path, text in (
            (("--container=a b", "--", "true"), True, "'a b' is no name of an image"),
            (("--container=--privileged", "--", "true"), True, "is no name of an image"),
            (("--container=a", script), True, "after --"),
            (("--container=a", "--", "true"), False, "neither podman nor docker is on PATH"),
        ):
            done = self.submit_container(*words, code=2, path=path)
            self.assertIn(text, done.stderr)
        done = self.colloc("container", "docker.io/lab/train:1", "--", "true", code=2)
        self.assertIn("this is no task", done.stderr)
        self.assertFalse(os.path.exists(self.words))


if __name__ == "__main__":
    unittest.main()
