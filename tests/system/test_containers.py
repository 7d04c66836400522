# SPDX-License-Identifier: Apache-2.0
"""Containers that a task starts: their processes are the task's. Needs root and a usable podman."""

import os
import shutil
import subprocess
import unittest

from daemon_case import LIMIT_S, DaemonCase, cgroup_of, proc, processes_with, program, until

PODMAN = (
    "podman {options} run --rm --network=none --pid=host --ulimit=nofile=1024:1024 "
    "--ulimit=nproc=1000:1000 -v /lib:/lib:ro -v /usr:/usr:ro {mounts} --rootfs {root} {command}"
)


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
        pids = [
            pid
            for pid in processes_with(program("pretend-train"))
            if "pretend" in proc(pid, "comm")
        ]
        self.assertEqual(len(pids), 1, pids)
        print(f"the container's cgroup: {cgroup_of(pids[0])}")
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        self.wait_gone(pids[0])


if __name__ == "__main__":
    unittest.main()
