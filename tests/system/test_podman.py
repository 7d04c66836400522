# SPDX-License-Identifier: Apache-2.0
"""`colloc submit --container` with the real podman: in cgroup v2, below a systemd of the test.

The image has a shell and what it loads, so no registry is needed; pretend GPUs have no device
files, so /dev/null is in their place in the CDI specification, under another name for each.
"""

import json
import os
import shutil
import subprocess
import sys
import unittest

import booted_systemd
from daemon_case import (
    LIMIT_S,
    SANITIZED,
    DaemonCase,
    cgroup_of,
    cgroups_of,
    proc,
    processes_with,
    until,
)

PROGRAMS = ("/bin/sh", "/bin/ls", "/bin/cat", "/bin/sleep")
CDI = "/run/cdi/nvidia.json"  # of the test's systemd: /run is its own
IMAGE = "localhost/lab/train:1"


def cdi_device(gpu):
    node = {"path": f"/dev/pretend-gpu{gpu}", "hostPath": "/dev/null"}
    return {"name": str(gpu), "containerEdits": {"deviceNodes": [node]}}


def sleepers():
    """The container's process, once it has become what it does."""
    return [pid for pid in processes_with("1234567") if proc(pid, "comm") == "sleep\n"]


@unittest.skipUnless(booted_systemd.is_inside(), booted_systemd.why_not() or "runs as a program")
@unittest.skipUnless(
    shutil.which("podman") and shutil.which("catatonit"), "needs podman, catatonit"
)
@unittest.skipIf(SANITIZED, "programs of the sanitizer's build want all of /proc")
class Podman(DaemonCase):
    gpus = "2xA100-40GB"

    def setUp(self):
        super().setUp()
        configuration = self.write("containers.conf", '[containers]\nnetns = "none"\n')
        storage = self.write(
            "storage.conf",
            f'[storage]\ndriver = "vfs"\nrunroot = "{self.folder}/run"\n'
            f'graphroot = "{self.folder}/graph"\n',
        )
        self.env["CONTAINERS_CONF"] = configuration
        self.env["CONTAINERS_STORAGE_CONF"] = storage
        os.makedirs(os.path.dirname(CDI), exist_ok=True)
        with open(CDI, "w", encoding="utf-8") as file:
            devices = [cdi_device(gpu) for gpu in (0, 1)]
            json.dump({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices}, file)
        self.make_image()

    def make_image(self):
        root = os.path.join(self.folder, "root")
        listed = subprocess.run(["ldd", *PROGRAMS], capture_output=True, text=True, check=True)
        libraries = {word for word in listed.stdout.split() if word.startswith("/lib")}
        for path in (*PROGRAMS, *(word.rstrip(":") for word in libraries)):
            target = os.path.join(root, path[1:])
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(path, target)
        tar = subprocess.run(["tar", "c", "-C", root, "."], stdout=subprocess.PIPE, check=True)
        self.podman("import", "-", IMAGE, text=tar.stdout)

    def podman(self, *words, text=b""):
        done = subprocess.run(
            ["podman", *words],
            env=self.env,
            input=text,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def submit_container(self, *words):
        done = self.colloc("submit", f"--container={IMAGE}", *words)
        return int(done.stdout.split()[-1])

    def test_it_has_the_tasks_gpu_and_belongs_to_the_task(self):
        first = self.submit("exec sleep 1000", exclusive=True)
        taken = self.wait_state(first, "RUNNING")["gpus"]
        script = "pwd; ls -d /dev/pretend-gpu*; echo $COLLOC_TASK_ID; exec sleep 1234567"
        task = self.submit_container("--", "sh", "-c", script)
        gpu = self.wait_state(task, "RUNNING")["gpus"]
        self.assertNotEqual(gpu, taken)
        expected = f"{self.work}\n/dev/pretend-gpu{gpu[0]}\n{task}\n"
        until(
            lambda: self.read_if(f"colloc-{task}.out") == expected,
            expected,
            explain=lambda: self.read_if(f"colloc-{task}.out"),
        )
        until(sleepers, "the container's process")
        [pid] = sleepers()
        self.assertIn(cgroup_of(pid), cgroups_of(self.state))
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        self.wait_gone(pid)
        self.assertEqual(self.podman("ps", "--all", "--quiet").stdout, b"")

    def test_its_exit_code_and_its_files_are_the_tasks(self):
        task = self.submit_container("--", "sh", "-c", "echo trained >model; exit 7")
        self.assertEqual(self.wait(task, "FAILED")["exit_code"], 7)
        self.assertEqual(self.read("model"), "trained\n")


if __name__ == "__main__":
    if booted_systemd.is_inside() or booted_systemd.why_not():
        unittest.main()
    sys.exit(booted_systemd.run([sys.executable, *sys.argv]))
